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

all=1 mib=16 operations=300 io=16m
if [ "${PAIR:-}" = short ]; then all='' mib=4 operations=100 io=4m; fi
export_dir=/run/nfs-export
mnt=/run/nfs-mnt

devices() { device a && device b ${1:+"$1"} && wait_gids; }
devices_gone() {
	rdma link del wa && on b rdma link del wb || return 1
	[ "${1:-}" != rxe ] || on b rmmod rdma_rxe
}

# nothing_damaged HOST...: what a cable that loses nothing never makes herald count. (Retries it may: an emulated CPU is late
# sometimes, and the timer is not.)
nothing_damaged() {
	local host rc=0 never='icrc_dropped|nak_.*|bad_.*|retries_exceeded|rnr_exceeded|wire_bad_response|wire_no_memory'
	never+='|wire_tx_(down|no_route|too_big|dropped)|wire_rx_(down|malformed|fragmented|no_memory)|wire_wrong_.*'
	never+='|wire_icmp_errors|wire_queue_full'
	for host; do
		counters "$host"
		[ "$(counter "$host" wire_rx_packets)" -gt 0 ] || rc=1
		! statistic "$host" | grep -E "^($never) [1-9]" || rc=1
	done
	return $rc
}
# all_arrived: what either herald has sent, the other has seen
all_arrived() { wait_until arrived a b && wait_until arrived b a; }
arrived() { [ "$(counter "$1" wire_tx_packets)" = "$(counter "$2" wire_rx_packets)" ]; } # FROM TO

# --- NFS --------------------------------------------------------------------------------------------------------

nfs_start() { # SERVER-HOST
	on "$1" mkdir -p $export_dir && on "$1" mount -t tmpfs -o size=128m tmpfs $export_dir && on "$1" chmod 777 $export_dir &&
		there "$1" nfs_serve $export_dir
}
nfs_end() {
	there "$1" nfs_stop
	on "$1" umount $export_dir
}
nfs_mounted() { # SERVER-HOST FAMILY VERSION
	local client server path=/ proto=rdma
	client=$(other "$1") server=$(address "$1" "$2")
	[ "$2" != v6 ] || proto=rdma6
	[ "$3" != 3 ] || path=$export_dir
	on "$client" mkdir -p $mnt && there "$client" nfs_mount "$server" $path $mnt "$3" &&
		on "$client" grep " $mnt .*[ ,]vers=$3,.*,proto=$proto,.*addr=$server\b" /proc/mounts
}
# nfs_file FOLDER MIB: random bytes, there and back; prints what the server's file must look like
nfs_file() {
	dd if=/dev/urandom of=/run/big bs=1M count="$2" status=none && cp /run/big "$1/big" && sync -f "$1" || return 1
	echo 3 >/proc/sys/vm/drop_caches
	cmp /run/big "$1/big" && sha256sum <"$1/big"
}
nfs_big_file() { # SERVER-HOST
	local sent kept
	sent=$(there "$(other "$1")" nfs_file $mnt $mib) && kept=$(on "$1" sh -c "sha256sum <$export_dir/big") || return 1
	echo "$sent, at the server $kept"
	[ "$sent" = "$kept" ]
}
# nfs_random_io SERVER-HOST [OPTION...]: compared with a model, which the hosts share, at the server too
nfs_random_io() {
	local client model=$RESULTS/$JOB.model
	client=$(other "$1")
	on "$client" fsx_like -s 5 -n $operations "${@:2}" -m "$model" $mnt/fsx &&
		on "$client" sh -c "sync -f $mnt; echo 3 >/proc/sys/vm/drop_caches" && on "$client" fsx_like -c "$model" $mnt/fsx &&
		on "$1" fsx_like -c "$model" $export_dir/fsx
}
nfs() { # PREFIX SERVER-HOST FAMILY VERSION...
	local prefix=$1 host=$2 family=$3 version
	shift 3
	check "$prefix-server" 60 nfs_start "$host" || return
	for version; do
		check "$prefix-$version-mount" 60 nfs_mounted "$host" "$family" "$version" || continue
		check "$prefix-$version-big_file" 60 nfs_big_file "$host"
		check "$prefix-$version-random_io" 60 nfs_random_io "$host"
		[ -z "$all" ] || check "$prefix-$version-direct_io" 60 nfs_random_io "$host" -d
		check "$prefix-$version-umount" 60 on "$(other "$host")" umount $mnt
	done
	check "$prefix-end" 60 nfs_end "$host"
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
