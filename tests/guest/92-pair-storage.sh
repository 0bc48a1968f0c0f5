#!/bin/bash
# SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
#
# Storage between two machines: NFS over RDMA with the server on either host, over IPv4 and IPv6, between herald and herald
# and between herald and rdma_rxe; NVMe over RDMA between herald and herald, to a disk in memory. What was written is
# compared, after the caches were dropped, at the server too. PAIR=short: some of it.
# timeout: 600
# lanes: pair
. "$(dirname "$0")/lib.sh"
. "$(dirname "$0")/wire.sh"
. "$(dirname "$0")/wire-nfs.sh"

io=16m
# shellcheck disable=SC2034 # for wire-nfs.sh
if [ "${PAIR:-}" = short ]; then all='' mib=4 operations=100 io=4m; fi

devices() { device a && device b ${1:+"$1"} && wait_gids; }
devices_gone() {
	rdma link del wa && on b rdma link del wb || return 1
	[ "${1:-}" != rxe ] || on b rmmod rdma_rxe
}

# --- NVMe -------------------------------------------------------------------------------------------------------

# nvme_serve FAMILY ADDRESS: a disk in memory, for everybody
nvme_serve() {
	local subsystem=/sys/kernel/config/nvmet/subsystems/herald port=/sys/kernel/config/nvmet/ports/1
	load_module nvmet_rdma && load_module brd rd_nr=1 rd_size=65536 && mkdir -p $subsystem/namespaces/1 $port || return 1
	echo 1 >$subsystem/attr_allow_any_host
	echo -n /dev/ram0 >$subsystem/namespaces/1/device_path
	echo 1 >$subsystem/namespaces/1/enable
	echo "${1/v/ipv}" >$port/addr_adrfam
	echo rdma >$port/addr_trtype
	echo "$2" >$port/addr_traddr
	echo 4420 >$port/addr_trsvcid
	ln -s $subsystem $port/subsystems/herald
}
nvme_unserve() {
	local subsystem=/sys/kernel/config/nvmet/subsystems/herald port=/sys/kernel/config/nvmet/ports/1
	rm $port/subsystems/herald && rmdir $port $subsystem/namespaces/1 $subsystem && rmmod brd nvmet_rdma
}
nvme_connect() { # ADDRESS
	local uuid=8e9a4b6c-2f1d-4c5e-9a7b-0123456789ab
	load_module nvme_rdma && nvme connect -t rdma -a "$1" -s 4420 -n herald -i 2 \
		-q nqn.2026-01.herald:host -I "$uuid" &&
		wait_until test -b /dev/nvme0n1
}
nvme_disconnect() { nvme disconnect -n herald && rmmod nvme_rdma; }
# nvme_io SIZE: written in blocks of all sizes, then read and compared
nvme_io() {
	fio --name=verify --filename=/dev/nvme0n1 --rw=randwrite --size="$1" --bsrange=4k-256k --blockalign=4k --ioengine=libaio \
		--direct=1 --iodepth=8 --verify=crc32c --verify_fatal=1 --randseed=3
}
same_bytes() { # SERVER-HOST
	local seen kept
	seen=$(on "$(other "$1")" sh -c "head -c 4M /dev/nvme0n1 | sha256sum") || return 1
	kept=$(on "$1" sh -c "head -c 4M /dev/ram0 | sha256sum") || return 1
	echo "$seen, at the server $kept"
	[ "$seen" = "$kept" ]
}
nvme_pair() { # PREFIX SERVER-HOST FAMILY
	local prefix=$1 host=$2 client address
	client=$(other "$2") address=$(address "$2" "$3")
	check "$prefix-serve" 60 there "$host" nvme_serve "$3" "$address" || return
	if check "$prefix-connect" 60 there "$client" nvme_connect "$address"; then
		check "$prefix-fio" 60 there "$client" nvme_io $io
		check "$prefix-same_bytes" 60 same_bytes "$host"
		check "$prefix-disconnect" 60 there "$client" nvme_disconnect
	fi
	check "$prefix-unserve" 60 there "$host" nvme_unserve
}

check load_modules 30 load_modules || exit 1
check load_modules_b 30 there b load_modules || exit 1
check cable 20 cable || exit 1
check devices 60 devices || exit 1
if [ -z "$all" ]; then
	nfs nfs-b b v4 4.2
	nfs nfs-a-v6 a v6 4.2
	nvme_pair nvme-a a v6
	check nothing_damaged 20 nothing_damaged a b
	check all_arrived 20 all_arrived
	exit 0
fi
nfs nfs-b b v4 3 4.0 4.2
nfs nfs-b-v6 b v6 3 4.0 4.2
nfs nfs-a a v4 4.2
nfs nfs-a-v6 a v6 3 4.2
nvme_pair nvme-a a v6
nvme_pair nvme-b b v4
check nothing_damaged 20 nothing_damaged a b
check all_arrived 20 all_arrived
check devices_gone 60 devices_gone
check rxe 60 only_rxe || exit 1
check rxe-devices 60 devices rxe || exit 1
nfs nfs-rxe b v4 3 4.2
nfs nfs-rxe-v6 b v6 3 4.2
nfs nfs-of-rxe a v4 4.2
nfs nfs-of-rxe-v6 a v6 3 4.2
check rxe-nothing_damaged 20 nothing_damaged a
check rxe-gone 60 devices_gone rxe
exit 0
