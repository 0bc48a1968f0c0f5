#!/bin/bash
# SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
#
# herald on two machines: ping-pongs, RDMA CM's programs, perftest and each byte of every operation, over virtio's network
# card, which segments nothing itself; a cable that is pulled under traffic. PAIR=short: some of it.
# timeout: 700
# lanes: pair
. "$(dirname "$0")/lib.sh"
. "$(dirname "$0")/wire.sh"

n=20 all=1
[ "${PAIR:-}" != short ] || all=

add_devices() { device a && device b && wait_gids; }

families() {
	local f kind host=a
	for f in v4 v6 ${all:+ll}; do
		for kind in rc uc ${all:+srq}; do pingpong "$f-$kind" $host $f $kind -c -s 9000 -m 1024 -n $n; done
		pingpong "$f-ud" $host $f ud -c -s 1024 -n $n
		[ -z "$all" ] || pingpong "$f-rc-events" $host $f rc -c -e -s 65537 -m 256 -n $n
		[ -z "$all" ] || data "$f-data" $f 1024
		host=b
	done
	for f in ${all:+v4 ll} v6; do rdma_cm_programs "" b $f $n; done
	[ -n "$all" ] || rdma_cm rping-v4 7174 a "$RPING -s -a $ADDRESS_a -V -C $n" "$RPING -c -a $ADDRESS_a -V -C $n"
	check mckey-v4 60 mcast_body b 239.1.2.3
}

# Path MTUs of a longer cable; with packets that the stack has merged, and that it has taken apart early
longer() {
	check mtu-9000 20 set_mtu 9000 || return
	if [ -z "$all" ]; then
		data data-4096 v4 4096 RC
		return
	fi
	data data-4096 v4 4096
	data data-512 v6 512
	offload b off gro && data data-gro-off v4 4096
	offload a off gso && data data-gso-off v4 4096
	offload a on gso && offload b on gro
	check trains 60 trains transfer 18700 $n
}

operations() {
	local program
	if [ -n "$all" ]; then
		perftest_all "" b v4 $n
		perftest_all v6- a v6 $n
		return
	fi
	for program in send_bw write_bw read_bw; do perftest $program a v6 ib_$program -n $n -s 65537; done
	perftest fetch_add b v4 ib_atomic_bw -n $n -A FETCH_AND_ADD
}

# Who gets no answer any more says so; with the cable back, it works as before.
pulled() {
	local client server rc=1
	WIRE_PORT=18990
	on b ib_write_bw -d wb -x "$GID_b_v4" -p $WIRE_PORT -F -D 1000 &
	server=$!
	SERVER_HOST=b wait_wire_listen $WIRE_PORT $server || return 1
	ib_write_bw -d wa -x "$GID_a_v4" -p $WIRE_PORT -F -D 1000 "$ADDRESS_b" &
	client=$!
	wait_until sent_more $(($(counter a wire_tx_packets) + 1000))
	on b ip link set vb down
	wait "$client" || rc=0
	on b ip link set vb up
	kill "$server"
	return $rc
}
sent_more() { [ "$(counter a wire_tx_packets)" -ge "$1" ]; }
pulled_and_back() {
	local log=$RESULTS/$JOB.pulled-programs.log
	pulled >"$log" 2>&1 || return 1
	cat "$log"
	grep -E "status (is )?12|transport retry counter exceeded" "$log"
}

check load_modules 30 load_modules || exit 1
check load_modules_b 30 there b load_modules || exit 1
check cable 20 cable || exit 1
check devices 30 add_devices || exit 1
know_gids
families
longer
operations
[ -n "$all" ] || exit 0
check pulled 60 pulled_and_back
check readdress 20 on b ip addr add "$ADDRESS6_b/64" dev vb nodad
check gids_back 20 wait_gids
know_gids
pingpong after-v4 b v4 rc -c -s 65537 -n $n
pingpong after-v6 a v6 rc -c -s 65537 -n $n
exit 0
