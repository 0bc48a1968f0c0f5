#!/bin/bash
# SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
#
# Allocation failure at each create (CASES 59): every allocation of a verb is made to fail once, the first, the second, and
# so on. Each call ends, in success or in an error that says why; nothing is left behind, and the kernel has nothing to say.
# timeout: 400
# lanes: debug
#
# A link takes 15000, most of them for the core's files in sysfs: by default the first ones fail, among which are herald's
# own, and some of the others. FULL=N (scripts/run-lane.sh debug FULL=1000 63-failslab.sh) makes the first N fail.
. "$(dirname "$0")/lib.sh"

knobs=/sys/kernel/debug

# Pages, too, one at a time, and copies from and to user space; without a word in the log about each.
prepare() {
	[ -d $knobs/failslab ] && [ -d $knobs/fail_page_alloc ] || return 1
	echo N | tee $knobs/{failslab,fail_page_alloc}/ignore-gfp-wait $knobs/fail_page_alloc/ignore-gfp-highmem
	echo 0 | tee $knobs/fail*/verbose $knobs/fail_page_alloc/min-order
}

# spare START END: what is called from there does not fail.
spare() {
	echo "$1" | tee $knobs/fail*/reject-start
	echo "$2" | tee $knobs/fail*/reject-end
}

# If ib_init_ucontext() fails for a command by ioctl, the core (6.12 and 7.2) forgets that it holds a reference to the
# caller's task; kmemleak finds it.
sweep_context() {
	local range
	mapfile -t range < <(awk '$3 == "ib_init_ucontext" { print "0x" $1; getline; print "0x" $1; exit }' /proc/kallsyms)
	[ ${#range[@]} = 2 ] && spare "${range[@]}" && sweep context && spare 0 0
}

sweep() { # WHAT...
	before=$(rdma resource show)
	fail_nth_sweep f0 "$@" || return 1
	wait_until settled
}
settled() { [ "$(rdma resource show)" = "$before" ]; }

check load_modules 30 load_modules || exit 1
add_netdev dum0 192.0.2.1/24
add_netdev dum1 192.0.3.1/24
check link_add 20 link_add f0 dum0 || exit 1
check failslab 10 prepare || exit 1
check context 60 sweep_context
for what in pd cq qp srq mr mw ah resize modify attach; do check "$what" 60 sweep $what; done
SPARSE=${FULL:-24} check link 150 sweep link dum1
check afterwards 60 env HERALD_DEV=f0 herald_conformance --gtest_brief=1 --gtest_filter='RcOps.SendAndItsCompletions:UdTest.CompletionFields'
check link_del 20 link_del f0
exit 0
