#!/bin/bash
# SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
#
# fio's rdma engine: memory and channel semantics, reads and writes.
# timeout: 200
# lanes: uml
. "$(dirname "$0")/lib.sh"

size=$((16 / FACTOR + 1))m

server() { # PORT SIZE DEPTH
	fio --name=server --ioengine=rdma --port="$1" --rw=read --bs=64k --size="$2" --iodepth="$3"
}
client() { # PORT SIZE VERB
	fio --name=client --ioengine=rdma --hostname=192.0.2.1 --port="$1" --verb="$3" --rw=write --bs=64k --size="$2" --iodepth=4
}
both() { # PORT SIZE VERB SERVER-DEPTH
	local pid rc=0
	server "$1" "$2" "$4" &
	pid=$!
	wait_cm_listen "$1" $pid && client "$1" "$2" "$3" || rc=$?
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
check write 60 both 18801 $size write 4
check read 60 both 18802 $size read 4
# fio connects with no RNR retries: all that is sent must have its receive WR beforehand
check send 60 both 18803 1m send 32
check link_del 20 link_del fio0
exit 0
