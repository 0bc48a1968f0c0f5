#!/bin/bash
# SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
#
# From insmod to an NFS mount over RDMA, told step by step for a person to read; scripts/demo.sh starts it. A step that
# fails ends it.
# timeout: 120
# lanes: none
. "$(dirname "$0")/lib.sh"

DEVICE=herald0 NETDEV=demo0 ADDRESS=192.0.2.1 MOUNT=/mnt/demo SHARE=/srv/demo
steps=0 log=$RESULTS/demo.step

step() { # TITLE
	steps=$((steps + 1))
	printf '\n%d. %s\n\n' $steps "$1"
}

indented() { sed 's/^/      /' "$1"; }

# run SECONDS COMMAND: shows the command, runs it, shows what it said.
run() {
	local rc=0
	printf '    # %s\n' "$2"
	run_timed "$1" "$log" eval "$2" || rc=$?
	indented "$log"
	[ $rc = 0 ] || give_up "$2" $rc
}

# both SECONDS WAIT PORT SERVER CLIENT: a server in the background, a client once `WAIT PORT` says that it listens.
both() {
	local rc=0
	printf '    # %s &\n' "$4"
	printf '    # %s\n' "$5"
	CLIENT_WAIT=$2 PORT=$3 run_timed "$1" "$log" client_server_body "$4" "$5" || rc=$?
	indented "$log"
	[ $rc = 0 ] || give_up "$5" $rc
}

give_up() { # COMMAND STATUS
	local why="status $2"
	[ "$2" != 124 ] || why="no end in time"
	fail "step_$steps" "$1: $why" >/dev/null
	printf '\nStep %d failed (%s): %s\n' $steps "$why" "$1"
	exit 0 # it has been said
}

counter() { rdma statistic show link $DEVICE/1 | grep -o "\b$1 [0-9]*" | cut -d ' ' -f 2; }

# expect WHAT COMMAND...: a line for what the machine checks and a person would overlook
expect() {
	local what=$1
	shift
	"$@" || give_up "$what" $?
	printf '      [%s]\n' "$what"
}

same_sum() { [ "$(sha256sum <"$1")" = "$(sha256sum <"$2")" ]; }
over_rdma() { grep -A 50 "mounted on $MOUNT " /proc/self/mountstats | grep -q 'xprt:.*rdma'; }
no_trouble() { ! dmesg --level=emerg,alert,crit,err | grep .; }
gone() { [ ! -e "/sys/module/$1" ] && [ ! -e "/sys/class/infiniband/$DEVICE" ]; }

module=$DEV_TYPE
[ "$module" != rxe ] || module=rdma_rxe
dmesg --clear
try_module ib_uverbs
try_module rdma_ucm

step "Load the module"
run 10 "uname -sr"
if [ "$DEV_TYPE" = herald ]; then run 10 "insmod $JOBDIR/modules/herald.ko"; else run 10 "load_modules"; fi
run 10 "lsmod | grep -w $module"

step "Make an RDMA device of a network interface: a dummy one here, any other does as well"
run 10 "ip link add $NETDEV type dummy"
run 10 "ip link set $NETDEV mtu 9000 up"
run 10 "ip address add $ADDRESS/24 dev $NETDEV"
run 10 "rdma link add $DEVICE type $DEV_TYPE netdev $NETDEV"
run 10 "rdma link show"

step "What programs see of it"
run 10 "ibv_devinfo -d $DEVICE"
gid=$(ibv_devinfo -v -d $DEVICE | sed -n "s/.*GID\[ *\([0-9]*\)\].*:$ADDRESS,.*/\1/p" | sed -n 1p)

step "Two programs play ping-pong and sleep until a completion event wakes them (-e)"
[ "$DEV_TYPE" != herald ] || before=$(counter cq_events)
both 20 wait_listen 18515 "ibv_rc_pingpong -d $DEVICE -g ${gid:-0} -e" "ibv_rc_pingpong -d $DEVICE -g ${gid:-0} -e localhost"
[ "$DEV_TYPE" != herald ] ||
	expect "$(($(counter cq_events) - before)) completion events were raised" test "$(counter cq_events)" -gt "$before"

step "Asynchronous events with their natural causes: docs/examples/async_events.cc"
run 20 "async_events $DEVICE"

step "RDMA CM finds the way by IP address: rping"
both 20 wait_cm_listen 7174 "rping -s -a $ADDRESS -C 3 -v" "rping -c -a $ADDRESS -C 3 -v"

step "An NFS server and its client, over RDMA, on this one host"
run 10 "mkdir -p $SHARE $MOUNT && mount -t tmpfs -o size=128M tmpfs $SHARE"
printf '    (exportfs, rpc.nfsd, rpc.mountd, and: echo rdma 20049 >/proc/fs/nfsd/portlist)\n'
run 30 "nfs_serve $SHARE"
run 30 "mount -t nfs -o rdma,port=20049,vers=4.2,nolock $ADDRESS:/ $MOUNT"
run 10 "mount | grep $MOUNT"
expect "the transport of this mount is RDMA" over_rdma

step "Write a file, drop it from the caches, read it back"
run 20 "dd if=/dev/urandom of=/tmp/original bs=1M count=32 status=none"
[ "$DEV_TYPE" != herald ] || before=$(counter bytes_moved)
run 40 "dd if=/tmp/original of=$MOUNT/file bs=1M conv=fsync 2>&1 | tail -n 1"
run 20 "echo 3 >/proc/sys/vm/drop_caches"
run 40 "sha256sum /tmp/original $MOUNT/file"
expect "the two are the same" same_sum /tmp/original $MOUNT/file
[ "$DEV_TYPE" != herald ] ||
	expect "$((($(counter bytes_moved) - before) >> 20)) MiB went through $DEVICE, for 32 written and as many read" \
		test $((($(counter bytes_moved) - before) >> 20)) -ge 64

step "Take everything down again"
run 20 "umount $MOUNT"
run 20 "nfs_stop"
run 10 "umount $SHARE"
run 20 "rdma link del $DEVICE"
run 10 "ip link del $NETDEV"
[ "$DEV_TYPE" != herald ] || run 20 "rmmod $module"
[ "$DEV_TYPE" != herald ] || expect "module and device are gone" gone "$module"
expect "the kernel's log has no error in it" no_trouble

pass "all_${steps}_steps" >/dev/null
printf '\nAll %d steps done.\n' $steps
exit 0
