#!/bin/bash
# SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
#
# The pair lane: two virtual machines, host a, where the jobs run, and host b, where pair_obey.py runs what it is told over a
# cable that is only for that. For init.sh, and for wire.sh, whose two hosts these are then.
#
#	pair.sh CMD...		runs CMD at host b; what it prints and its status are those of CMD there

# shellcheck disable=SC2034 # for those who source this
ON_B=(bash "$JOBDIR/guest/pair.sh")

# The output is taken line by line, both streams in one, up to the \x01 with the status. 255: the connection ended without.
on_b() {
	local line='' b
	exec {b}<>/dev/tcp/10.0.0.2/1 || return 255
	printf '%d\n' $# >&"$b"
	printf '%s\0' "$@" >&"$b"
	while IFS= read -r line <&"$b"; do printf '%s\n' "$line"; done
	exec {b}>&-
	case $line in
	*$'\x01'*) ;;
	*) return 255 ;;
	esac
	printf '%s' "${line%$'\x01'*}"
	return "${line##*$'\x01'}"
}

# name_interfaces HOST: va or vb, and `control`; QEMU has given them these addresses (scripts/pair-vm.sh).
name_interfaces() {
	local netdev n=1
	try_module virtio_net
	for netdev in /sys/class/net/*; do
		case $(cat "$netdev/address") in
		52:54:*:01) ip link set "${netdev##*/}" name "v$1" ;;
		52:54:*:02) ip link set "${netdev##*/}" name control ;;
		esac
	done
	[ "$1" = a ] || n=2
	ip link set control up
	ip addr add 10.0.0.$n/24 dev control
}

reset_cable() { # HOST
	ip link set "v$1" down mtu 1500
	ip addr flush dev "v$1"
	tc qdisc del dev "v$1" root 2>/dev/null
}

# --- for wire.sh, whose addresses these are ---------------------------------------------------------------------

on() {
	local host=$1
	shift
	if [ "$host" = a ]; then "$@"; else on_b "$@"; fi
}
at() { [ "$1" = a ] || echo "${ON_B[*]}"; }

# cable [MTU]: which loses nothing, as RDMA's networks are made. fq_codel drops what has waited for 5 ms, which is soon here.
# shellcheck disable=SC2154
cable() {
	local host
	prepare_netdev va "$ADDRESS_a/24" "${1:-}" && there b prepare_netdev vb "$ADDRESS_b/24" "${1:-}" || return 1
	for host in a b; do on $host tc qdisc replace dev v$host root pfifo limit 20000 || return 1; done
	ip addr add "$ADDRESS6_a/64" dev va nodad
	on b ip addr add "$ADDRESS6_b/64" dev vb nodad
}

# only_rxe: loads it at host b, where it takes the port for itself
only_rxe() {
	if on b test -d /sys/module/herald; then on b rmmod herald; fi
	there b load_module ib_uverbs && there b load_module rdma_ucm && there b load_module rdma_rxe
}

data() { # NAME FAMILY PATH-MTU [KIND...]
	WIRE_PORT=$((WIRE_PORT + 1))
	check "$1" 120 data_body "${@:2}"
}
data_body() {
	local patience=$((20 * FACTOR)) program="python3 $JOBDIR/guest/wire_data.py"
	between_body b "$program serve $WIRE_PORT wb $(known_gid b "$1") $patience" \
		"$program wa $(known_gid a "$1") 10.0.0.2:$WIRE_PORT - $2 $patience ${*:3}"
}

if [ "${BASH_SOURCE[0]}" = "$0" ]; then on_b "$@"; fi
