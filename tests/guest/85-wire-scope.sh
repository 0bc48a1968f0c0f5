#!/bin/bash
# SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
#
# Whose an address is, when several interfaces of a namespace have it: a link-local address (RFC 4291, 2.5.6) is one of its
# own link, any other one of its L3 domain (VRF). What routing would send over the wire goes there, although a device of this
# host has the same address elsewhere; and what comes in over one link reaches no device of another, but is counted. The
# devices wa and wb as ever; wc is host a's as well, on vc, which has the addresses of vb, and wd is at the other end of that
# link.
# timeout: 120
# lanes: uml debug
. "$(dirname "$0")/lib.sh"
. "$(dirname "$0")/wire.sh"

declare -A NAMESPACE=([a]='' [b]=B [c]='' [d]=D)
on() {
	local host=$1
	shift
	if [ -z "${NAMESPACE[$host]}" ]; then "$@"; else ip netns exec "${NAMESPACE[$host]}" "$@"; fi
}

links() {
	cable && ip addr add fe80::a/64 dev va nodad && on b ip addr add fe80::b/64 dev vb nodad || return 1
	ip link add vc type veth peer name vd || return 1
	ip netns add D && on d ip link set lo up && ip link set vd netns D && ip link set vc up && on d ip link set vd up || return 1
	# as vb; and as va
	ip addr add fe80::b/64 dev vc nodad && ip addr add fe80::a/64 dev vc nodad && on d ip addr add fe80::d/64 dev vd nodad
}
gids() {
	local host
	for host in a b c d; do device $host || return 1; done
	wait_until gid a ll 000a && wait_until gid b ll 000b && wait_until gid c ll 000a && wait_until gid c ll 000b &&
		wait_until gid d ll 000d
}

# pair KIND SERVER FAMILY SUFFIX CLIENT FAMILY SUFFIX: a ping-pong between two devices by these addresses. All processes are in
# the namespace of the job: it is not the question what they agree upon by TCP.
pair() {
	local server client
	WIRE_PORT=$((WIRE_PORT + 1))
	server=$(gid "$2" "$3" "$4") && client=$(gid "$5" "$6" "$7") || return 1
	PORT=$WIRE_PORT client_server_body "ibv_$1_pingpong -d w$2 -g $server -p $WIRE_PORT -s 1024 -n 20 -c" \
		"ibv_$1_pingpong -d w$5 -g $client -p $WIRE_PORT -s 1024 -n 20 -c 127.0.0.1"
}
# over_wire HOST HOST pair...: that many packets at least went from one to the other; and back
over_wire() {
	local before_1 before_2
	before_1=$(counter "$1" wire_tx_packets) before_2=$(counter "$2" wire_tx_packets)
	"${@:3}" && [ $(($(counter "$1" wire_tx_packets) - before_1)) -ge 20 ] &&
		[ $(($(counter "$2" wire_tx_packets) - before_2)) -ge 20 ]
}
# locally HOST pair...: none went, and messages did
locally() {
	local packets messages
	packets=$(counter "$1" wire_tx_packets) messages=$(counter "$1" local_messages)
	"${@:2}" && [ "$(counter "$1" wire_tx_packets)" = "$packets" ] && [ "$(counter "$1" local_messages)" -gt "$messages" ]
}

# reaches_nobody HOST RECEIVER...: datagrams from b, for the QP of a device that has their destination on another link, are
# dropped, and counted at the device on this one.
reaches_nobody() {
	local before packets pids=() rc=0
	before=$(counter a wire_rx_no_qp) packets=$(counter c wire_rx_packets)
	WIRE_PORT=$((WIRE_PORT + 1))
	ibv_ud_pingpong -d wc -g "$(gid c ll 000a)" -p "$WIRE_PORT" -n 20 &
	pids+=($!)
	wait_listen "$WIRE_PORT" $! || return 1
	ibv_ud_pingpong -d wb -g "$(gid b ll 000b)" -p "$WIRE_PORT" -n 20 127.0.0.1 &
	pids+=($!)
	wait_until refused_more "$before" && [ "$(counter c wire_rx_packets)" = "$packets" ] || rc=1
	kill "${pids[@]}"
	wait "${pids[@]}"
	return $rc
}
refused_more() { [ "$(counter a wire_rx_no_qp)" -gt "$1" ]; }

# local_table FROM TO: its rule's place
local_table() {
	local family
	for family in -4 -6; do ip $family rule add pref "$2" table local && ip $family rule del pref "$1" || return 1; done
}
# What comes for an address of this host that no device has is counted all the same, at the device of its interface.
nobodys_address() {
	local packets malformed
	ip addr add 203.0.113.1/32 dev lo && on b ip route add 203.0.113.1 dev vb || return 1
	packets=$(counter a wire_rx_packets) malformed=$(counter a wire_rx_malformed)
	on b bash -c 'echo "no packet of ours" >/dev/udp/203.0.113.1/4791' && wait_until malformed_more "$malformed" &&
		[ "$(counter a wire_rx_packets)" -gt "$packets" ]
}
malformed_more() { [ "$(counter a wire_rx_malformed)" -gt "$1" ]; }

# A VLAN's device has the addresses of the interface below in its table as well. RDMA CM listens at the oldest device that has an
# address, and so its messages are for that one.
vlan() {
	try_module 8021q
	ip link add va.10 link va type vlan id 10 && ip link set va.10 up && rdma link del wa &&
		rdma link add wv type "$DEV_TYPE" netdev va.10 && device a && wait_until gid a v4
}
vlan_gone() { rdma link del wv && ip link del va.10; }

vrf() {
	try_module vrf
	ip link add red type vrf table 7 && ip link set red up && ip link set vc master red || return 1
	# the VRF's table is asked before the local one, and a socket of no VRF hears of VRFs
	local_table 0 32765 && sysctl -qw net.ipv4.udp_l3mdev_accept=1 || return 1
	ip addr add $ADDRESS_b/24 dev vc && on d ip addr add $ADDRESS_a/24 dev vd || return 1
	ip addr add $ADDRESS6_b/64 dev vc nodad && on d ip addr add $ADDRESS6_a/64 dev vd nodad || return 1
	wait_until gid c v4 && wait_until gid d v4 && wait_until gid c v6 && wait_until gid d v6
}
gone() {
	rdma link del wc && rdma link del wa && on b rdma link del wb && on d rdma link del wd || return 1
	ip addr del 203.0.113.1/32 dev lo
	ip link del va && ip link del vc && ip netns del B && ip netns del D || return 1
	[ ! -e /sys/class/net/red ] || { ip link del red && local_table 32765 0 && sysctl -qw net.ipv4.udp_l3mdev_accept=0; }
}

check load_modules 30 load_modules || exit 1
check links 20 links || exit 1
check gids 30 gids || exit 1
for kind in rc uc ud; do
	check link-local-$kind 30 over_wire a b pair $kind b ll 000b a ll 000a
	check link-local-$kind-back 30 over_wire a b pair $kind a ll 000a b ll 000b
	check link-local-$kind-other 30 over_wire c d pair $kind d ll 000d c ll 000a
	check link-local-$kind-own 30 locally c pair $kind c ll 000b c ll 000a
done
check other-link 30 reaches_nobody
check nobodys-address 30 nobodys_address
if check vlan 30 vlan; then
	rdma_cm below-vlan 7174 a "$RPING -s -a $ADDRESS_a -V -C 10" "$RPING -c -a $ADDRESS_a -V -C 10"
	rdma_cm below-vlan-v6 7174 a "$RPING -s -a $ADDRESS6_a -V -C 10" "$RPING -c -a $ADDRESS6_a -V -C 10"
	check vlan-gone 30 vlan_gone
fi
if check vrf 30 vrf; then
	for family in v4 v6; do
		for kind in rc uc ud; do
			check vrf-$family-$kind 30 over_wire a b pair $kind b $family '' a $family ''
			check vrf-$family-$kind-inside 30 over_wire c d pair $kind d $family '' c $family ''
			check vrf-$family-$kind-own 30 locally c pair $kind c $family '' c $family ''
		done
	done
fi
check gone 30 gone
exit 0
