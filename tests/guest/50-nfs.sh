#!/bin/bash
# SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
#
# An NFS server and a client on one host, over RDMA: versions 3, 4.0 and 4.2; random file operations compared byte for
# byte, with caches dropped, after a remount, and on the server's own side.
# timeout: 500
# lanes: uml stock
. "$(dirname "$0")/lib.sh"

export_dir=/run/nfs-export
mnt=/run/nfs-mnt
address=192.0.2.1
operations=500
[ -z "${HERALD_LONG:-}" ] || operations=1500
operations=$((operations / FACTOR + 100))

start_server() {
	mkdir -p $export_dir $mnt
	mount -t tmpfs -o size=256m tmpfs $export_dir && chmod 777 $export_dir && nfs_serve $export_dir
}

stop_server() { nfs_stop && umount $export_dir; }

mount_it() { # VERSION
	local path=/
	[ "$1" != 3 ] || path=$export_dir
	nfs_mount $address $path $mnt "$1" && grep " $mnt " /proc/mounts | grep "proto=rdma"
}

drop_caches() {
	sync
	echo 3 >/proc/sys/vm/drop_caches
}

random_io() { # VERSION
	fsx_like -s "$((RANDOM + 1))" -n $operations -m /run/model $mnt/fsx && drop_caches && fsx_like -c /run/model $mnt/fsx
}
random_direct_io() {
	fsx_like -s 7 -n $((operations / 2)) -d -m /run/model $mnt/fsx && drop_caches && fsx_like -c /run/model $mnt/fsx
}
big_file() {
	local mib=$((64 / FACTOR + 8))
	dd if=/dev/urandom of=/run/big bs=1M count=$mib status=none && cp /run/big $mnt/big && sync -f $mnt && drop_caches &&
		cmp /run/big $mnt/big && cmp /run/big $export_dir/big
	local rc=$?
	rm -f /run/big $mnt/big
	return $rc
}
remount_and_compare() { # VERSION
	umount $mnt && mount_it "$1" && fsx_like -c /run/model $mnt/fsx && fsx_like -c /run/model $export_dir/fsx
}
small_files() {
	local i
	mkdir -p $mnt/many
	for i in $(seq $((200 / FACTOR + 20))); do echo "file $i" >$mnt/many/$i || return 1; done
	drop_caches
	for i in $(seq $((200 / FACTOR + 20))); do [ "$(cat $mnt/many/$i)" = "file $i" ] || return 1; done
	rm -r $mnt/many
}
two_writers() {
	local a b rc=0
	fsx_like -s 11 -n $((operations / 2)) $mnt/one &
	a=$!
	fsx_like -s 12 -n $((operations / 2)) $mnt/two &
	b=$!
	wait $a || rc=$?
	wait $b || rc=$?
	return $rc
}

check load_modules 30 load_modules || exit 1
add_netdev dum0 $address/24
check link_add 20 link_add nfs0 dum0 || exit 1
check server 60 start_server || exit 1
for version in ${NFS_VERSIONS:-3 4.0 4.2}; do
	check "v$version-mount" 60 mount_it $version || continue
	check "v$version-random_io" 120 random_io $version
	check "v$version-remount" 60 remount_and_compare $version
	check "v$version-random_direct_io" 120 random_direct_io
	check "v$version-big_file" 60 big_file
	check "v$version-small_files" 60 small_files
	check "v$version-two_writers" 120 two_writers
	check "v$version-umount" 60 umount $mnt
done
check stop_server 60 stop_server
check link_del 30 link_del nfs0
exit 0
