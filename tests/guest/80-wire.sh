#!/bin/bash
# SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
#
# Over the wire: a herald device each in two network namespaces, with a veth between them. Ping-pongs, RDMA CM's programs
# and perftest; IPv4, IPv6 and link-local; MTUs of interface and path; with and without segmentation and merging by the
# stack; RDMA's namespaces shared and exclusive. Few iterations: whether it works. Slow lanes
# do some of it (WIRE_ALL=1: all).
# timeout: 400
# lanes: uml stock debug
. "$(dirname "$0")/lib.sh"
. "$(dirname "$0")/wire.sh"

n=$((100 / FACTOR + 10))
all=${WIRE_ALL:-}
[ "$LANE" != uml ] || all=1

families() {
	local f kind
	for f in ${all:+v4 ll} v6; do
		for kind in rc uc srq; do pingpong "$f-$kind" b "$f" $kind -c -s 1024 -m 1024 -n $n; done
		pingpong "$f-ud" b "$f" ud -c -s 1024 -n $n
		data "$f-data" "$f" 1024
		pingpong "$f-rc-events" a "$f" rc -c -e -s 65537 -m 1024 -n $n
		rdma_cm_programs "" b "$f" $n
	done
	[ -n "$all" ] || rdma_cm rping-v4 7174 b "$RPING -s -a $ADDRESS_b -V -C $n" "$RPING -c -a $ADDRESS_b -V -C $n"
	check mckey-v4 60 mcast_body b 239.1.2.3
}

# Interface's MTU, and the path MTUs that go with it
mtus() {
	local mtu path paths
	while read -r mtu paths; do
		check "mtu-$mtu" 10 set_mtu "$mtu" || continue
		for path in $paths; do
			data "mtu-$mtu-$path-v4" v4 "$path"
			[ -z "$all" ] || pingpong "mtu-$mtu-$path-v6" a v6 rc -c -s 65537 -m "$path" -n $n
		done
	done <<-END
		65535 4096 256
		9000 4096 512
		1500 1024 256
		4200 2048 4096
	END
}

# veth merges nothing that comes from an interface which segments TCP
segmentation=(tso gso tx-udp-segmentation)

trains_whole() {
	local ratio
	ratio=$(trains transfer 18700 $n) && [ "$ratio" -gt 200 ]
}
trains_apart() {
	local ratio
	offload a off "${segmentation[@]}" && ratio=$(trains transfer 18701 $n) && [ "$ratio" = 100 ]
}
trains_merged() {
	local ratio
	offload a off "${segmentation[@]}" && offload b on gro && ratio=$(trains transfer 18702 $n) && [ "$ratio" -gt 110 ]
}
offloads() {
	check trains-whole 60 trains_whole
	check trains-apart 60 trains_apart
	pingpong trains-apart-v6 b v6 rc -c -s 65537 -n $n
	check trains-merged 60 trains_merged
	pingpong trains-merged-v6 b v6 rc -c -s 65537 -n $n
	offload a on "${segmentation[@]}"
	check trains-whole-and-merged 60 trains_whole
	offload b off gro
}

# Before 7.x the core puts each new device into the initial namespace: there it has to be moved.
devices_there() {
	device a && device b || return 1
	! rdma link show wb/1 2>/dev/null || rdma dev set wb netns B || return 1
	wait_gids
}
# A device belongs to the RDMA namespace of its interface; nobody else sees it in the exclusive mode.
only_there() {
	! rdma link show wb/1 2>/dev/null && on b rdma link show wb/1 && rdma link show wa/1 && ! on b rdma link show wa/1 2>/dev/null
}
moved_and_back() {
	ip netns attach A $$ || return 1
	rdma dev set wa netns B && on b rdma link show wa/1 && ! rdma link show wa/1 2>/dev/null &&
		on b rdma dev set wa netns A && rdma link show wa/1 && ip netns del A
}
# Whoever uses it is told to go.
moved_in_use() {
	local pids=() port=18710 rc=0
	on b ibv_rc_pingpong -d wb -g "$GID_b_v4" -p "$port" -n 100000000 &
	pids+=($!)
	SERVER_HOST=b wait_wire_listen "$port" $! || return 1
	ibv_rc_pingpong -d wa -g "$GID_a_v4" -p "$port" -n 100000000 "$ADDRESS_b" &
	pids+=($!)
	wait_until flowing "$(counter a wire_tx_packets)"
	moved_and_back || rc=1
	kill "${pids[@]}"
	wait "${pids[@]}"
	return "$rc"
}
flowing() { [ "$(counter a wire_tx_packets)" -gt $(($1 + 500)) ]; }

add_devices() { device a && device b && wait_gids; }
down() {
	on b rdma link del wb
	rdma link del wa
	ip link del va
	ip netns del B
	wait_until nothing_left
}
nothing_left() { [ -z "$(ls /sys/kernel/debug/herald/)" ]; }

check load_modules 30 load_modules || exit 1
check cable 20 cable || exit 1
check devices 30 add_devices || exit 1
know_gids
families
mtus
[ -z "$all" ] || perftest_all "" b v4 $n
offloads
check down 30 down

# only without other namespaces, which take their time to go
if check exclusive 30 wait_until rdma system set netns exclusive; then
	check exclusive-cable 20 cable
	check exclusive-devices 30 devices_there
	know_gids
	check exclusive-only_there 10 only_there
	rdma_cm_programs exclusive- b v4 $n
	pingpong exclusive-rc a v6 rc -c -s 65537 -n $n
	check exclusive-moved_and_back 20 moved_and_back
	rdma_cm_programs moved- a v4 $n
	check exclusive-moved_in_use 30 moved_in_use
	pingpong moved-rc b v4 rc -c -s 65537 -n $n
	check exclusive-down 30 down
	check shared 30 wait_until rdma system set netns shared
fi
exit 0
