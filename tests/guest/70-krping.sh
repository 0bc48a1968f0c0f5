#!/bin/bash
# SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
#
# A consumer in the kernel (tests/kmod): every way to poll, virtual DMA, fast registration, drain, completion events.
# timeout: 300
# lanes: uml debug stock
. "$(dirname "$0")/lib.sh"

check load_modules 30 load_modules || exit 1
add_netdev dum0 192.0.2.1/24
check link_add 20 link_add kr0 dum0 || exit 1
before=$(rdma resource show kr0)
check run 200 load_module herald_krping device=kr0 chains=$((1600 / FACTOR + 80)) && ktap_collect herald_krping
check unload 20 rmmod herald_krping
nothing_left() {
	rdma resource show kr0
	[ "$(rdma resource show kr0)" = "$before" ]
}
# tests/kmod/krping_fault.c: of each kind of post, and of arms, the third fails
arm_faults() {
	local verb
	for verb in post-send post-recv post-srq-recv req-notify; do
		echo "fault verb $verb 3 EIO" >/sys/kernel/debug/herald/kr0/control || return 1
	done
}
if [ "$DEV_TYPE" = herald ]; then
	check arm_faults 10 arm_faults
	check run_faults 60 load_module herald_krping device=kr0 faults=1 && ktap_collect herald_krping
	check unload_faults 20 rmmod herald_krping
fi
check nothing_left 10 nothing_left
check link_del 20 link_del kr0
exit 0
