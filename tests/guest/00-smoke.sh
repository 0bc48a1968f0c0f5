#!/bin/bash
# SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
#
# The lane itself: modules load, a device can be added to every kind of interface and removed again, and two programs
# talk over it.
# timeout: 60
. "$(dirname "$0")/lib.sh"

check two_cpus 5 test "$(nproc)" = 2 # else no race can show
check load_modules 30 load_modules || exit 1

add_and_remove() { # NETDEV
	link_add smoke0 "$1" && rdma link show smoke0/1 && ibv_devinfo -d smoke0 && link_del smoke0
}

add_netdev dum0 192.0.2.1/24
veth_pair veth0 198.51.100.1/24 veth1 198.51.100.2/24 9000
[ "$DEV_TYPE" = siw ] || check link_on_dummy 20 add_and_remove dum0
check link_on_veth 20 add_and_remove veth0

check link_add 20 link_add dev0 veth0
gid=$(ibv_devinfo -d dev0 -v | sed -n 's/^.*GID\[ *\([0-9]*\)\].*::ffff:198.51.100.1.*/\1/p' | sed -n 1p)
if [ "$DEV_TYPE" != siw ]; then
	client_server pingpong 20 "ibv_rc_pingpong -e -d dev0 -g ${gid:-1}" "ibv_rc_pingpong -e -d dev0 -g ${gid:-1} 127.0.0.1"
fi
CLIENT_WAIT=wait_cm_listen PORT=18516 client_server rdma_cm 20 \
	"ib_send_lat -R -d dev0 -p 18516 -n 100" "ib_send_lat -R -d dev0 -p 18516 -n 100 198.51.100.1"

# CASES 99: a CQ's and the device's counters, as the tools show them (the core's own CQ for management is there always)
cq_details() {
	rdma -dd resource show cq
	rdma -dd resource show cq | tr '\n' ' ' |
		grep -E 'dev0 .*drv_unpolled 0 .*drv_armed (next|no|solicited) .*drv_posted [0-9]+ .*drv_events_acked'
}
device_counters() {
	rdma statistic show link dev0/1
	rdma statistic show link dev0/1 | tr '\n' ' ' | grep -E 'cq_arms [1-9].*cq_events [1-9].*cq_events_read [1-9]'
}
if [ "$DEV_TYPE" = herald ]; then
	check cq_details 20 cq_details
	check device_counters 20 device_counters
fi
check link_del 20 link_del dev0
exit 0
