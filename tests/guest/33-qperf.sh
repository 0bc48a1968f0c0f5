#!/bin/bash
# SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
#
# qperf: its RDMA tests.
# timeout: 300
# lanes: uml
. "$(dirname "$0")/lib.sh"

# its UC and UD tests use no RDMA CM and address by LID: they work on no RoCE device
tests="rc_bi_bw rc_bw rc_lat rc_rdma_read_bw rc_rdma_read_lat rc_rdma_write_bw rc_rdma_write_lat rc_rdma_write_poll_lat
	rc_compare_swap_mr rc_fetch_add_mr ver_rc_compare_swap ver_rc_fetch_add"

check load_modules 30 load_modules || exit 1
add_netdev dum0 192.0.2.1/24
check link_add 20 link_add qperf0 dum0 || exit 1
qperf --listen_port 19765 >"$RESULTS/$JOB.server.log" 2>&1 &
server=$!
check listen 20 wait_listen 19765 $server
for t in $tests; do check "$t" 30 qperf --listen_port 19765 -t 1 -cm 1 192.0.2.1 "$t"; done
kill $server
check link_del 20 link_del qperf0
exit 0
