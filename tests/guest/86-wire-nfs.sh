#!/bin/bash
# SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
#
# NFS over RDMA from one network namespace to another: the server on either, over IPv4 and IPv6, between herald and herald and
# between herald and rdma_rxe, which is in the initial namespace. (Two machines: 92-pair-storage.)
# timeout: 300
# lanes: uml
. "$(dirname "$0")/lib.sh"
. "$(dirname "$0")/wire.sh"
. "$(dirname "$0")/wire-nfs.sh"

# shellcheck disable=SC2034 # for wire-nfs.sh
all='' mib=4 operations=200

# A network namespace's NFS server and its pipes are file systems of that namespace: host b keeps its mounts while this lives.
ip netns add B
ip netns exec B sleep infinity &
holder=$!
trap 'kill "$holder"' EXIT
on() {
	local host=$1
	shift
	if [ "$host" = a ]; then "$@"; else nsenter -t "$holder" -n -m -r -w "$@"; fi
}
held() { [ "$(cat "/proc/$holder/comm")" = sleep ]; }
own_mounts() {
	wait_until held && on b sh -c 'for at in /proc/fs/nfsd /run/rpc_pipefs; do ! mountpoint -q $at || umount $at || exit 1; done'
}
hosts() {
	veth_pair va $ADDRESS_a/24 vb $ADDRESS_b/24 "" B && own_mounts && ip addr add $ADDRESS6_a/64 dev va nodad &&
		on b ip addr add $ADDRESS6_b/64 dev vb nodad
}

devices() { device a "${1:-$DEV_TYPE}" && device b && wait_gids; }
devices_gone() { rdma link del wa && rdma link del wb; }

check load_modules 30 load_modules || exit 1
check hosts 20 hosts || exit 1
check devices 60 devices || exit 1
nfs b b v4 3 4.2
nfs a-v6 a v6 4.0 4.2
check nothing_damaged 20 nothing_damaged a b
check all_arrived 20 all_arrived
check devices_gone 20 devices_gone
check rxe 60 load_module rdma_rxe || exit 1
check rxe-devices 60 devices rxe || exit 1
nfs herald-serves b v4 4.2
nfs rxe-serves-v6 a v6 3 4.2
check rxe-nothing_damaged 20 nothing_damaged b
exit 0
