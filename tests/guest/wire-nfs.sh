#!/bin/bash
# SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
# shellcheck shell=bash
#
# For the jobs about NFS over a wire, after wire.sh: a server on one host, a client on the other, what was written compared after the
# caches were dropped, at the server too. A job that wants less says so afterwards: all (empty: no direct I/O), mib (size of the
# file), operations (of fsx_like).

all=1 mib=16 operations=300
export_dir=/run/nfs-export
mnt=/run/nfs-mnt

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
