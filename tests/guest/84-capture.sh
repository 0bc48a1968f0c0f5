#!/bin/bash
# SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
#
# What two hosts send to each other, captured (capture.py) for tests/capture/check.py, which judges every packet when the
# lane is over: one file for each part of this job, and a line in the list of captures that says what has to be in it.
# Operations, path MTUs, trains whole and taken apart by the stack, IPv4, IPv6, VLAN, RDMA CM, loss, an injected RNR. Slow lanes
# do some of it (WIRE_ALL=1: all).
# timeout: 300
# lanes: uml stock
. "$(dirname "$0")/lib.sh"
. "$(dirname "$0")/wire.sh"

n=10
all_parts=${WIRE_ALL:-}
[ "$LANE" != uml ] || all_parts=1
list=$RESULTS/$JOB.captures

# capture PART NEEDS CMD...: what CMD sends. NEEDS: what has to be in it, as check.py calls it.
capture() {
	local part=$1 needs=$2 file=$RESULTS/$JOB.$1.pcap pid rc=0
	shift 2
	python3 "$JOBDIR/guest/capture.py" "$file" va vb@B >"$tmp/counts" &
	pid=$!
	wait_until ready_or_gone "$pid" "$file.ready"
	"$@"
	kill -TERM "$pid"
	wait "$pid" || rc=$?
	cat "$tmp/counts"
	echo "$part $needs" >>"$list"
	if [ $rc = 0 ]; then pass "$part-captured"; else fail "$part-captured" "$(tail -n 1 "$tmp/counts")"; fi
}
ready_or_gone() { ! kill -0 "$1" 2>/dev/null || [ -e "$2" ]; }
trains() { # what the last capture has had: packets, skbs, trains, longest
	sed -n "s/.*\b$1=\([0-9]*\).*/\1/p" "$tmp/counts"
}

# --- what goes over the wire ------------------------------------------------------------------------------------------

# operations NAME FAMILY PATH-MTU [KIND...]
operations() {
	local name=$1 family=$2 mtu=$3
	shift 3
	check "$name" 60 env LARGEST=$((24 * mtu)) python3 "$JOBDIR/guest/wire_data.py" wa "$(known_gid a "$family")" \
		wb "$(known_gid b "$family")" "$mtu" $((20 * FACTOR)) "$@"
}
extensions() { # NAME FAMILY PATH-MTU
	check "$1" 60 python3 "$JOBDIR/guest/wire_extensions.py" wa "$(known_gid a "$2")" wb "$(known_gid b "$2")" "$3" $((20 * FACTOR))
}
programs() {
	local f
	for f in v4 v6; do
		pingpong "$f-rc" b $f rc -s 5000 -m 1024 -n $n
		pingpong "$f-uc" a $f uc -s 5000 -m 1024 -n $n
		pingpong "$f-ud" b $f ud -s 1021 -n $n
		pingpong "$f-srq" b $f srq -s 1021 -m 1024 -n $n
		rdma_cm_programs "" b $f $n
	done
	perftest fetch_add b v4 ib_atomic_bw -n $n -A FETCH_AND_ADD
	perftest cmp_swap a v6 ib_atomic_bw -n $n -A CMP_AND_SWAP
	perftest write_imm b v4 ib_write_bw -n $n -s 4097 --write_with_imm
	check mckey-v4 60 mcast_body b 239.1.2.3
}
all_kinds() { # NAME FAMILY
	operations "$1" "$2" 1024
	extensions "$1-extensions" "$2" 1024
}
long() {
	perftest long-write b v4 ib_write_bw -n 5 -s 250000
	perftest long-read b v6 ib_read_bw -n 5 -s 250000
}

offload() { # on|off
	local host name words=()
	for name in tso gso tx-udp-segmentation tx; do words+=("$name" "$1"); done
	for host in a b; do on $host ethtool -K v$host "${words[@]}"; done
}
on_vlan() {
	try_module 8021q
	ip link add link va name va.7 type vlan id 7 && prepare_netdev va.7 10.7.7.1/24 &&
		on b ip link add link vb name vb.7 type vlan id 7 && prepare_netdev vb.7 10.7.7.2/24 "" B &&
		wait_until gid a v4 0a07:0701 && wait_until gid b v4 0a07:0702 || return
	declare -g "GID_a_vlan=$(gid a v4 0a07:0701)" "GID_b_vlan=$(gid b v4 0a07:0702)"
}
netem() {
	tc qdisc replace dev va root netem "$@" && on b tc qdisc replace dev vb root netem "$@"
}
lossy() {
	check netem 10 netem loss 2% || return
	operations lossy v4 1024 RC
	operations lossy-v6 v6 256 RC
	tc qdisc del dev va root
	on b tc qdisc del dev vb root
}

# Two messages do not leave, and those behind them do.
losing() {
	echo "fault message lose nth 4 times 2" >/sys/kernel/debug/herald/wa/control
	perftest losing b v4 ib_write_bw -n 20 -s 8193 -t 16
	echo "fault message lose nth 3" >/sys/kernel/debug/herald/wb/control
	perftest losing-read a v6 ib_read_bw -n 20 -s 8193 -t 16
	local dev
	for dev in wa wb; do echo "fault clear" >/sys/kernel/debug/herald/$dev/control; done
}
# The server's QP finds no receive WR, three times.
not_ready() {
	CLIENT_WAIT=arm_rnr pingpong rnr b v4 rc -s 1024 -n $n
}
arm_rnr() { # PORT PID
	local qpn
	wait_wire_listen "$1" "$2" || return
	qpn=$(awk -v pid="$2" '$2 == pid { print $1 }' /sys/kernel/debug/herald/wb/qps)
	echo "fault rnr $qpn 3" >/sys/kernel/debug/herald/wb/control
}

# --- the parts --------------------------------------------------------------------------------------------------------

messages() { # rc|uc
	local op
	for op in send_first send_middle send_last send_last_with_immediate send_only send_only_with_immediate \
		rdma_write_first rdma_write_middle rdma_write_last rdma_write_last_with_immediate rdma_write_only \
		rdma_write_only_with_immediate; do echo "$1_$op"; done
}
rc="$(messages rc | tr '\n' ' ')rc_rdma_read_request rc_rdma_read_response_first rc_rdma_read_response_middle"
rc+=" rc_rdma_read_response_last rc_rdma_read_response_only rc_acknowledge rc_atomic_acknowledge rc_compare_swap rc_fetch_add"
all="$rc $(messages uc | tr '\n' ' ')ud_send_only ud_send_only_with_immediate psn_wrap padded"
extended="rc_send_last_with_invalidate rc_send_only_with_invalidate rc_flush rc_atomic_write"
devices() { device a && device b && wait_gids; }

tmp=$(mktemp -d)
: >"$list"
check load_modules 30 load_modules || exit 1
check cable 20 cable 4200 || exit 1
check devices 30 devices || exit 1
know_gids
if [ -n "$all_parts" ]; then
	for mtu in 256 4096; do capture "mtu-$mtu" "mtu=$mtu ipv4 $all" operations "mtu-$mtu" v4 $mtu; done
	for mtu in 512 2048; do capture "mtu-$mtu" "mtu=$mtu ipv6 $all" operations "mtu-$mtu" v6 $mtu; done
fi
capture whole "mtu=1024 ipv4 $all $extended" all_kinds whole v4
if [ "$(trains trains)" -gt 0 ]; then pass whole-trains; else fail whole-trains "no train"; fi
capture long "ipv4 ipv6 rc_rdma_write_middle rc_rdma_read_response_middle" long
if [ "$(trains longest)" -gt 10 ]; then pass long-trains; else fail long-trains "none of more than 10 packets"; fi
check offload_off 10 offload off
capture apart-v4 "mtu=1024 ipv4 $all $extended" all_kinds apart-v4 v4
if [ "$(trains trains)" = 0 ]; then pass apart-trains; else fail apart-trains "some are whole"; fi
capture apart-v6 "mtu=1024 ipv6 $all $extended" all_kinds apart-v6 v6
check offload_on 10 offload on
programs="rc_send_first rc_send_only rc_rdma_write_only rc_rdma_write_last_with_immediate rc_rdma_read_response_only"
programs+=" rc_atomic_acknowledge uc_send_first ud_send_only ud_send_only_with_immediate"
[ -z "$all_parts" ] || capture programs "ipv4 ipv6 multicast $programs" programs
if [ -z "$all_parts" ]; then
	: # in the fast lane
elif on_vlan >"$tmp/vlan" 2>&1; then
	capture vlan "mtu=1024 vlan ipv4 $all" operations vlan vlan 1024
else
	fail vlan "$(tail -n 1 "$tmp/vlan")"
fi
capture rnr "rnr_nak retransmission rc_send_only" not_ready
capture losing "loss ipv4 ipv6 sequence_nak retransmission rc_rdma_write_middle rc_rdma_read_request" losing
[ -z "$all_parts" ] || capture lossy "loss ipv4 ipv6 retransmission $rc" lossy
rm -rf "$tmp"
exit 0
