#!/bin/bash
# SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
#
# herald and the kernel's own RoCEv2 in software, rdma_rxe, over a wire: each as server and as client. rxe is in the
# initial namespace, where it takes the port for itself; herald in another one. Slow lanes do some of it (WIRE_ALL=1: all).
# timeout: 400
# lanes: uml stock
. "$(dirname "$0")/lib.sh"
. "$(dirname "$0")/wire.sh"

n=$((50 / FACTOR + 10))
all=${WIRE_ALL:-}
[ "$LANE" != uml ] || all=1

# A retransmission timeout that a slow machine does not reach. When rxe sends several messages again and their acknowledgement comes
# meanwhile, it may send an empty SEND ONLY in place of one that is acknowledged and all that follows with PSNs shifted by
# one, and what herald has to say to that is "invalid request".
PERFTEST_OPTIONS='-u 18'

# matrix SERVER-HOST
matrix() {
	local host=$1 f kind
	for f in ${all:+v4 ll} v6; do
		# srq: the program does not wait for its last acknowledgements, and rxe with a retry count of 7 sends again for ever. So
		# rxe's end can hang where a packet was lost at the end, with nobody to blame here: then wire_rx_no_qp grows.
		for kind in rc uc srq; do pingpong "$host-$f-$kind" "$host" "$f" $kind -c -s 1024 -m 1024 -n $n; done
		pingpong "$host-$f-ud" "$host" "$f" ud -c -s 1024 -n $n
		pingpong "$host-$f-rc-events" "$host" "$f" rc -c -e -s 65537 -m 1024 -n $n
		rdma_cm_programs "$host-" "$host" "$f" $n
	done
	check "$host-mckey-v4" 60 mcast_body "$host" 239.1.2.3
}

devices() { load_module rdma_rxe && device a rxe && device b && wait_gids; }

check load_modules 30 load_modules || exit 1
check cable 20 cable 4200 || exit 1
check devices 60 devices || exit 1
know_gids
matrix a
matrix b
for mtu in 256 512 1024 2048 4096; do data data-$mtu v4 $mtu; done
data data-v6 v6 4096
[ -n "$all" ] || exit 0
perftest_all herald-serves- b v4 $n
perftest_all rxe-serves- a v6 $n
exit 0
