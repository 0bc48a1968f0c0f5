#!/bin/bash
# SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
#
# herald on host a, the kernel's own RoCEv2 in software, rdma_rxe, on host b: each as server and as client. PAIR=short: some.
# timeout: 700
# lanes: pair
. "$(dirname "$0")/lib.sh"
. "$(dirname "$0")/wire.sh"

n=20 all=1
[ "${PAIR:-}" != short ] || all=

add_devices() { device a && device b rxe && wait_gids; }

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
		for kind in rc uc srq; do pingpong "$host-$f-$kind" "$host" "$f" $kind -c -s 9000 -m 1024 -n $n; done
		pingpong "$host-$f-ud" "$host" "$f" ud -c -s 1024 -n $n
		rdma_cm_programs "$host-" "$host" "$f" $n
	done
	check "$host-mckey-v4" 60 mcast_body "$host" 239.1.2.3
}

shorter() {
	pingpong a-v4-rc a v4 rc -c -s 9000 -m 1024 -n $n
	pingpong a-v6-uc a v6 uc -c -s 9000 -m 1024 -n $n
	pingpong b-v6-rc b v6 rc -c -s 9000 -m 1024 -n $n
	pingpong b-v4-ud b v4 ud -c -s 1024 -n $n
	rdma_cm a-rping-v6 7174 a "$RPING -s -a $ADDRESS6_a -V -S 65000 -C 5" "$RPING -c -a $ADDRESS6_a -V -S 65000 -C 5"
	rdma_cm b-rping-v4 7174 b "$RPING -s -a $ADDRESS_b -V -C $n" "$RPING -c -a $ADDRESS_b -V -C $n"
	data data-1024 v4 1024 RC
}

check load_modules 30 load_modules || exit 1
check only_rxe 60 only_rxe || exit 1
check cable 20 cable || exit 1
check devices 60 add_devices || exit 1
know_gids
if [ -z "$all" ]; then
	shorter
else
	matrix a
	matrix b
	data data-256 v4 256
	data data-1024 v6 1024
	check mtu-9000 20 set_mtu 9000
	data data-4096 v4 4096
	perftest_all rxe-serves- b v4 $n
	perftest_all herald-serves- a v6 $n
fi
check link_del 30 on b rdma link del wb
check unload_rxe 60 on b rmmod rdma_rxe
exit 0
