#!/bin/bash
# SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
#
# libibverbs' own examples: RC, UC, UD and SRQ ping-pongs, polling and with events, on several kinds of interface, over
# IPv4 and IPv6 GIDs (PINGPONG_ON="lo dum0 veth0").
# timeout: 400
# lanes: uml stock
. "$(dirname "$0")/lib.sh"

iters=${ITERS:-$((500 / FACTOR + 20))}
port=18600

# gid_index DEVICE v4|v6: of the first RoCEv2 GID of the family; a link-local one will not do (on lo nothing leads to it).
gid_index() {
	local dir=/sys/class/infiniband/$1/ports/1 i gid
	for i in $(seq 0 63); do
		gid=$(cat "$dir/gids/$i" 2>/dev/null)
		[ "$(cat "$dir/gid_attrs/types/$i" 2>/dev/null)" = "RoCE v2" ] || continue
		case $gid in
		0000:0000:0000:0000:0000:ffff:*) [ "$2" = v4 ] || continue ;;
		0000:0000:0000:0000:0000:0000:0000:0000 | fe80:*) continue ;;
		*) [ "$2" = v6 ] || continue ;;
		esac
		echo "$i"
		return
	done
	return 1
}

pingpong() { # NAME PROGRAM DEVICE GID OPTIONS...
	local name=$1 program=$2 device=$3 gid=$4
	shift 4
	port=$((port + 1))
	PORT=$port client_server "$name" 30 "$program -d $device -g $gid -p $port -n $iters $*" \
		"$program -d $device -g $gid -p $port -n $iters $* 127.0.0.1"
}

all_on() { # NETDEV
	local family gid kind
	link_add pp0 "$1" || { fail "link_$1" "link add failed"; return; }
	for family in v4 v6; do
		gid=$(gid_index pp0 $family) || { skip "$1-$family" "the interface has no such address"; continue; }
		for kind in rc uc ud srq; do
			pingpong "$1-$family-$kind" "ibv_${kind}_pingpong" pp0 "$gid"
			pingpong "$1-$family-$kind-events" "ibv_${kind}_pingpong" pp0 "$gid" -e
		done
		# compare the data as well, and sizes around the MTU
		pingpong "$1-$family-rc-check" ibv_rc_pingpong pp0 "$gid" -c -s 65537
		pingpong "$1-$family-rc-small" ibv_rc_pingpong pp0 "$gid" -s 1 -m 256
	done
	link_del pp0
}

check load_modules 30 load_modules || exit 1
add_netdev dum0 192.0.2.1/24
veth_pair veth0 198.51.100.1/24 veth1 198.51.100.2/24 9000
ip addr add 2001:db8::1/64 dev dum0 nodad
ip addr add 2001:db8:1::1/64 dev veth0 nodad
for netdev in ${PINGPONG_ON:-lo dum0 veth0}; do all_on $netdev; done
exit 0
