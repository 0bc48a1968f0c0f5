#!/bin/bash
# SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
#
# Devices come and go: on every kind of interface, many at once; the interface renamed or unregistered under them; in
# use when they are deleted; the module removed (CASES 48, 49, 50, 60, 87, 89). The UDP port is open in a namespace that
# has devices, and only as long as it has.
# timeout: 400
# lanes: uml debug
. "$(dirname "$0")/lib.sh"

# Whatever the last check left behind must not fail this one.
try() { # NAME SECONDS CMD...
	rdma link del l0 2>/dev/null
	ip link del un0 2>/dev/null
	ip netns del na 2>/dev/null
	ip netns del nb 2>/dev/null
	check "$@"
}

works() { # DEVICE
	HERALD_DEV=$1 HERALD_PATIENCE=$((20 * FACTOR)) herald_conformance --gtest_brief=1 --gtest_filter='RcOps.SendAndItsCompletions:UdTest.CompletionFields'
}
has_gid() { # DEVICE IPV4-MAPPED-SUFFIX
	grep -qi "ffff:$2" "/sys/class/infiniband/$1/ports/1/gids/"* 2>/dev/null
}
gone() { ! [ -e "/sys/class/infiniband/$1" ]; }

# A VLAN's device is on the interface below it, where the core keeps the VLAN's GIDs.
on_interface() { # NETDEV [NETDEV-SHOWN]
	link_add l0 "$1" && rdma link show l0/1 | grep "netdev ${2:-$1} " && ibv_devinfo -d l0 >/dev/null && works l0 && link_del l0 && gone l0
}

bad_links() {
	! link_add l0 nosuchdev || return 1
	link_add l0 dum0 || return 1
	! link_add l0 dum0 || return 1
	link_del l0
	! link_del l0
}

# CASES 87: no waiting for GIDs.
gids_at_once() {
	local i
	for i in $(seq 20); do
		link_add l0 dum0 || return 1
		has_gid l0 c000:0201 || { cat /sys/class/infiniband/l0/ports/1/gids/* | sort -u; return 1; }
		link_del l0
	done
}

# CASES 89: addresses that come and go.
addresses() {
	link_add l0 dum0 || return 1
	ip addr add 192.0.2.77/24 dev dum0
	wait_until has_gid l0 c000:024d
	ip addr del 192.0.2.77/24 dev dum0
	wait_until no_gid l0 c000:024d
	ip addr add 192.0.2.77/24 dev dum0
	wait_until has_gid l0 c000:024d
	ip addr del 192.0.2.77/24 dev dum0
	works l0
	link_del l0
}
no_gid() { ! has_gid "$@"; }

many_links() {
	local i n=$((60 / FACTOR + 4))
	for i in $(seq $n); do
		ip link add m$i type dummy && ip addr add 10.9.$i.1/24 dev m$i && ip link set m$i up || return 1
		link_add many$i m$i || return 1
	done
	rdma link | grep -c '^link many' | grep -qx $n || return 1
	works many1 && works many$n || return 1
	for i in $(seq $n); do link_del many$i || return 1; done
	for i in $(seq $n); do ip link del m$i; done
}

add_and_delete() {
	local i
	for i in $(seq $((100 / FACTOR + 10))); do link_add l0 dum0 && link_del l0 || return 1; done
}

renamed() {
	ip link add ren0 type dummy && ip addr add 10.8.0.1/24 dev ren0 && ip link set ren0 up && link_add l0 ren0 || return 1
	ip link set ren0 down && ip link set ren0 name ren1 && ip link set ren1 up || return 1
	rdma link show l0/1 | grep "netdev ren1 " && works l0 && link_del l0 && ip link del ren1
}

unregistered() {
	local i
	for i in $(seq $((20 / FACTOR + 3))); do
		ip link add un0 type dummy && ip link set un0 up && link_add l0 un0 && ip link del un0 || return 1
		wait_until gone l0
	done
}

# busy DEVICE: something that uses the device for ever, and says when it has begun.
busy() {
	HERALD_DEV=$1 HERALD_PATIENCE=1 herald_conformance --gtest_repeat=-1 --gtest_filter='RcOps.*:CompEvent.*' >/dev/null 2>&1 &
	busy_pid=$!
	wait_until in_use "$1"
}
in_use() { rdma resource show qp link "$1/1" | grep -q 'type RC'; }
end_busy() {
	kill -KILL $busy_pid 2>/dev/null
	wait $busy_pid 2>/dev/null
	true
}

# CASES 49, 50: in use, and deleted all the same, soon.
deleted_in_use() {
	local rc=0
	link_add l0 dum0 && busy l0 || return 1
	timeout $((10 * FACTOR)) rdma link del l0 || rc=$?
	end_busy
	[ $rc = 0 ] && gone l0
}
unregistered_in_use() {
	ip link add un0 type dummy && ip addr add 10.7.0.1/24 dev un0 && ip link set un0 up && link_add l0 un0 && busy l0 || return 1
	timeout $((10 * FACTOR)) ip link del un0
	local rc=$?
	wait_until gone l0
	end_busy
	return $rc
}

# CASES 50: a process that holds it open for ever.
held_open() {
	local rc=0
	link_add l0 dum0 || return 1
	exec 9<>"/dev/infiniband/$(basename "$(dirname "$(grep -lx l0 /sys/class/infiniband_verbs/uverbs*/ibdev)")")"
	timeout $((5 * FACTOR)) rdma link del l0 || rc=$?
	exec 9>&-
	return $rc
}

removed_with_user() {
	local rc=0
	link_add l0 dum0 && busy l0 || return 1
	timeout $((20 * FACTOR)) rmmod herald || rc=$?
	end_busy
	# a module that says it is in use is as good as one that goes
	if [ -d /sys/module/herald ]; then
		echo "rmmod refused: $rc"
		rdma link show l0/1 && link_del l0 && rmmod herald
	else
		gone l0
	fi && load_modules
}

# CASES 48: the interface's state is the port's.
port_state() {
	local i
	link_add l0 dum0 || return 1
	for i in $(seq $((20 / FACTOR + 3))); do
		ip link set dum0 down
		wait_until grep -q DOWN /sys/class/infiniband/l0/ports/1/state
		ip link set dum0 up
		wait_until grep -q ACTIVE /sys/class/infiniband/l0/ports/1/state
	done
	link_del l0
}

listening() { # NETNS N: so many sockets have the RoCEv2 port
	[ "$(ip netns exec "$1" ss -Huln 'sport = :4791' | wc -l)" = "$2" ]
}
netns_with_link() { # NETNS DEVICE
	ip netns add "$1" && ip netns exec "$1" ip link add ns0 type dummy && ip -n "$1" link set ns0 up || return 1
	ip netns exec "$1" rdma link add "$2" type herald netdev ns0
}

port_open() {
	ip netns add na && listening na 0 || return 1
	ip netns exec na ip link add ns0 type dummy && ip netns exec na ip link add ns1 type dummy || return 1
	ip netns exec na rdma link add l0 type herald netdev ns0 && listening na 2 || return 1
	ip netns exec na rdma link add l1 type herald netdev ns1 && listening na 2 || return 1
	link_del l0 && listening na 2 || return 1
	link_del l1 && listening na 0 || return 1
	ip netns del na
}
moved_to_netns() {
	netns_with_link na l0 && ip netns add nb || return 1
	ip -n na link set ns0 netns nb || return 1
	wait_until gone l0
	listening na 0 && listening nb 0 || return 1
	ip netns exec nb rdma link add l0 type herald netdev ns0 && listening nb 2 && link_del l0 && listening nb 0 || return 1
	ip netns del na && ip netns del nb
}
netns_deleted() {
	local i
	for i in $(seq $((10 / FACTOR + 2))); do
		netns_with_link na l0 && ip netns del na || return 1
		wait_until gone l0
	done
}

check load_modules 30 load_modules || exit 1
add_netdev dum0 192.0.2.1/24
veth_pair veth0 198.51.100.1/24 veth1 198.51.100.2/24 9000
add_netdev br0 203.0.113.1/24 bridge
try_module 8021q
ip link add link veth0 name vlan7 type vlan id 7 && prepare_netdev vlan7 10.7.7.1/24
for netdev in lo dum0 veth0 br0 vlan7; do
	[ -e /sys/class/net/$netdev ] || { skip "on_$netdev" "this kernel has no such interface"; continue; }
	shown=$netdev
	[ $netdev != vlan7 ] || shown=veth0
	try on_$netdev 60 on_interface $netdev $shown
done
try bad_links 20 bad_links
try gids_at_once 60 gids_at_once
try addresses 60 addresses
try many_links 120 many_links
try add_and_delete 120 add_and_delete
try renamed 60 renamed
try unregistered 60 unregistered
try port_state 60 port_state
try deleted_in_use 60 deleted_in_use
try unregistered_in_use 60 unregistered_in_use
try port_open 30 port_open
try moved_to_netns 60 moved_to_netns
try netns_deleted 60 netns_deleted
try held_open 30 held_open
try removed_with_user 90 removed_with_user
exit 0
