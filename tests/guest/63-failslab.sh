#!/bin/bash
# SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
#
# Allocation failure at each create (CASES 59): every allocation of a verb is made to fail once, the first, the second, and
# so on. Each call ends, in success or in an error; nothing is left behind, and the kernel has nothing to say.
# timeout: 400
# lanes: debug
. "$(dirname "$0")/lib.sh"

knobs=/sys/kernel/debug/failslab

prepare() {
	[ -d $knobs ] || return 1
	echo N >$knobs/ignore-gfp-wait
	echo 0 >$knobs/verbose
	[ ! -d /sys/kernel/debug/fail_page_alloc ] || echo N >/sys/kernel/debug/fail_page_alloc/ignore-gfp-wait
}

# fail_nth N CMD...: the N-th allocation of CMD fails (it is exec'd in the thread that the number is set for).
fail_nth() { bash -c 'echo "$1" >/proc/self/fail-nth; shift; exec "$@"' - "$@"; }

sweep() { # WHAT
	before=$(rdma resource show f0)
	fail_nth_sweep f0 "$1" || return 1
	wait_until settled
}
settled() { [ "$(rdma resource show f0)" = "$before" ]; }

link_sweep() {
	local n
	for n in $(seq 1 9 400); do
		fail_nth "$n" rdma link add fl0 type herald netdev dum1 >/dev/null 2>&1
		[ ! -e /sys/class/infiniband/fl0 ] || rdma link del fl0 || return 1
	done
	link_add fl0 dum1 && link_del fl0
}

check load_modules 30 load_modules || exit 1
add_netdev dum0 192.0.2.1/24
add_netdev dum1 192.0.3.1/24
check link_add 20 link_add f0 dum0 || exit 1
check failslab 10 prepare || exit 1
for what in context pd cq qp srq mr mw ah resize modify attach; do check "$what" 60 sweep $what; done
check links 120 link_sweep
check afterwards 60 env HERALD_DEV=f0 herald_conformance --gtest_brief=1 --gtest_filter='RcOps.*'
check link_del 20 link_del f0
exit 0
