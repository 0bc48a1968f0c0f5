#!/bin/bash
# SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
#
# A consumer in the kernel (tests/kmod): every way to poll, virtual DMA, fast registration, drain, completion events.
# timeout: 300
# lanes: uml debug
. "$(dirname "$0")/lib.sh"

collect() { # one result per line of KTAP
	local line name found=0
	while read -r line; do
		name=$(sed 's/^\(not \)\{0,1\}ok [0-9]* //; s/ #.*//' <<<"$line")
		case $line in
		'not ok '*) found=1 && fail "$name" "$(dmesg | grep 'herald_krping: #' | tail -n 1)" ;;
		'ok '*) found=1 && pass "$name" ;;
		esac
	done </sys/kernel/debug/herald_krping/results
	[ $found = 1 ] || fail krping "no results"
}

check load_modules 30 load_modules || exit 1
add_netdev dum0 192.0.2.1/24
check link_add 20 link_add kr0 dum0 || exit 1
before=$(rdma resource show kr0)
check run 200 load_module herald_krping device=kr0 && collect
check unload 20 rmmod herald_krping
nothing_left() {
	rdma resource show kr0
	[ "$(rdma resource show kr0)" = "$before" ]
}
check nothing_left 10 nothing_left
check link_del 20 link_del kr0
exit 0
