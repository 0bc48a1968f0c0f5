#!/bin/bash
# SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
#
# What becomes of connections over the wire, under traffic, when something under them goes: the interface is deleted or moved
# to another namespace, the namespace deleted, an address removed and added, the link deleted at either end, the module
# removed. Everything goes, and works when it has been made anew. Then the same wire with a VLAN, a bridge and a bond on it.
# timeout: 300
# lanes: uml
. "$(dirname "$0")/lib.sh"
. "$(dirname "$0")/wire.sh"

traffic_port=18900

# What the programs have to agree upon goes another way. All is made anew if it is not there.
prepare() {
	[ -d /sys/module/herald ] || load_modules || return 1
	[ -e /run/netns/B ] || ip netns add B
	on b ip link set lo up
	[ -e /sys/class/net/oa ] || {
		ip link add oa type veth peer name ob netns B && prepare_netdev oa 192.0.2.1/24 && prepare_netdev ob 192.0.2.2/24 "" B
	} || return 1
	[ -e /sys/class/net/va ] || cable || return 1
	! device_gone a || device a || return 1
	! device_gone b || device b || return 1
	wait_gids && GID_a_v4=$(gid a v4) GID_b_v4=$(gid b v4)
}

# traffic: begins, and is under way when this returns: over RC and UC, with long and short trains, and READs. All processes are
# in the namespace of the job, so that B is nobody's.
traffic() {
	local kind
	pids=()
	for kind in "ib_write_bw -s 65536" "ib_read_bw -s 16384" "ib_send_bw -s 1000 -b" "ib_write_bw -s 9000 -c UC"; do
		traffic_port=$((traffic_port + 1))
		$kind -d wb -x "$GID_b_v4" -p "$traffic_port" -F -D 600 >"$RESULTS/$JOB.server-$traffic_port.log" 2>&1 &
		pids+=($!)
		wait_listen "$traffic_port" $! || return 1
		$kind -d wa -x "$GID_a_v4" -p "$traffic_port" -F -D 600 127.0.0.1 >/dev/null 2>&1 &
		pids+=($!)
	done
	flows a && flows b && kill -0 "${pids[@]}"
}
# Packets are on their way from that host.
flows() {
	local before
	before=$(counter "$1" wire_tx_packets)
	wait_until sent_more "$1" $((before + 1000))
}
sent_more() { [ "$(counter "$1" wire_tx_packets)" -ge "$2" ]; }
end_traffic() {
	kill -KILL "${pids[@]}" 2>/dev/null
	wait "${pids[@]}" 2>/dev/null
	true
}
works() {
	GID_b_v4=$(gid b v4 "${1:-}") GID_a_v4=$(gid a v4 "${2:-}")
	traffic_port=$((traffic_port + 1))
	PORT=$traffic_port client_server_body "ibv_rc_pingpong -d wb -g $GID_b_v4 -p $traffic_port -c -s 65537 -n 20" \
		"ibv_rc_pingpong -d wa -g $GID_a_v4 -p $traffic_port -c -s 65537 -n 20 127.0.0.1"
}

# under_traffic CMD: CMD succeeds; then everything can be made anew and works.
under_traffic() {
	local rc=0 pids=()
	{ prepare && traffic && "$1"; } || rc=$?
	end_traffic
	[ "$rc" = 0 ] && prepare && works
}

# In the namespace mode "shared" every device is seen from here.
gone() { ! rdma link show "$1/1" >/dev/null 2>&1; }

interface_deleted() { ip link del va && wait_until gone wa && wait_until gone wb; }
interface_moved() {
	ip netns add C
	on b ip link set vb netns C && wait_until gone wb && ! gone wa && ip netns del C && wait_until gone wa
}
# The processes are not in it: it goes with its interfaces, and the devices on them.
namespace_deleted() {
	ip netns del B && wait_until gone wb && wait_until gone wa && wait_until no_interface va
}
no_interface() { ! [ -e "/sys/class/net/$1" ]; }

no_gid() { ! gid "$@" >/dev/null; }
address_comes_and_goes() {
	local _
	for _ in 1 2 3; do
		ip addr del "$ADDRESS_a/24" dev va && wait_until no_gid a v4 || return 1
		ip addr add "$ADDRESS_a/24" dev va && wait_until gid a v4 || return 1
	done
}
# While it is away, nothing is sent from it.
address_removed() {
	local before
	before=$(counter a wire_tx_no_route)
	ip addr del "$ADDRESS_a/24" dev va && wait_until no_gid a v4 && wait_until refused_more "$before" &&
		ip addr add "$ADDRESS_a/24" dev va && wait_until gid a v4
}
refused_more() { [ "$(counter a wire_tx_no_route)" -gt "$1" ]; }

link_deleted_here() { rdma link del wa && gone wa && ! gone wb; }
link_deleted_there() { rdma link del wb && gone wb && ! gone wa; }
# A module that says it is in use is as good as one that goes.
module_removed() {
	rmmod herald || { rdma link del wa && rdma link del wb && end_traffic && rmmod herald; }
	[ ! -d /sys/module/herald ] && gone wa && gone wb
}
ports_down_and_up() {
	local _
	for _ in 1 2 3; do
		ip link set va down && wait_until grep -q DOWN /sys/class/infiniband/wa/ports/1/state || return 1
		ip link set va up && wait_until grep -q ACTIVE /sys/class/infiniband/wa/ports/1/state || return 1
	done
	# IPv6 addresses went with it
	ip addr add "$ADDRESS6_a/64" dev va nodad
}

# --- interfaces on top of it ----------------------------------------------------------------------------------------

packets() { cat "/sys/class/net/$1/statistics/tx_packets"; }

on_vlan() {
	local before
	try_module 8021q
	prepare && ip link add link va name va.7 type vlan id 7 && prepare_netdev va.7 10.7.7.1/24 &&
		on b ip link add link vb name vb.7 type vlan id 7 && prepare_netdev vb.7 10.7.7.2/24 "" B || return 77
	wait_until gid a v4 0a07:0701 && wait_until gid b v4 0a07:0702
	before=$(packets va.7)
	works 0a07:0702 0a07:0701 && [ $(($(packets va.7) - before)) -gt 20 ] || return 1
	ip link del va.7 && wait_until no_gid a v4 0a07:0701 && works
}
# on_master KIND WORDS...: the interface is a part of another one, which has the device
on_master() {
	local kind=$1 before
	shift
	try_module "$kind"
	prepare && rdma link del wa && ip addr flush dev va || return 1
	ip link add top0 type "${kind%ing}" "$@" || { echo "this kernel has no $kind" && ip link del va && return 77; }
	ip link set va down && ip link set va master top0 && ip link set va up && prepare_netdev top0 198.51.100.1/24 || return 1
	rdma link add wa type herald netdev top0 && wait_until gid a v4 && before=$(packets va)
	works && [ $(($(packets va) - before)) -gt 20 ] && ip link del top0 && wait_until gone wa && ip link del va
}

check load_modules 30 load_modules || exit 1
for what in interface_deleted interface_moved namespace_deleted address_comes_and_goes address_removed ports_down_and_up \
	link_deleted_here link_deleted_there module_removed; do
	check $what 60 under_traffic $what
done
check vlan 60 on_vlan
check bridge 60 on_master bridge
check bond 60 on_master bonding mode active-backup miimon 100
exit 0
