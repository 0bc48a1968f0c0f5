#!/bin/bash
# SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
#
# fio's rdma engine: memory and channel semantics, reads and writes.
# timeout: 200
. "$(dirname "$0")/lib.sh"

size=$((16 / FACTOR + 1))m

server() {
	fio --name=server --ioengine=rdma --port="$1" --rw=read --bs=64k --size=$size --iodepth=4
}
client() {
	fio --name=client --ioengine=rdma --hostname=192.0.2.1 --port="$1" --verb="$2" --rw=write --bs=64k --size=$size \
		--iodepth=4
}
both() { # PORT VERB
	local pid rc=0
	server "$1" &
	pid=$!
	wait_cm_listen "$1" $pid && client "$1" "$2" || rc=$?
	[ $rc = 0 ] || kill $pid
	wait $pid || rc=$?
	return $rc
}

fio --enghelp 2>/dev/null | grep -qw rdma || {
	skip fio "this fio has no rdma engine"
	exit 0
}
check load_modules 30 load_modules || exit 1
add_netdev dum0 192.0.2.1/24
check link_add 20 link_add fio0 dum0 || exit 1
check write 60 both 18801 write
check read 60 both 18802 read
check send 60 both 18803 send
check link_del 20 link_del fio0
exit 0
