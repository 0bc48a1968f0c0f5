#!/bin/bash
# SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
#
# Other people's programs and the kernel's own consumers, unmodified, when the port goes down and up and when the device is
# taken away under them (CASES 48, 49, 50; docs/events.md, When the device goes). REMOVAL_OF says which of them
# ("asyncwatch rping nfs kernel").
# timeout: 700
. "$(dirname "$0")/lib.sh"

address=192.0.2.1
export_dir=/run/nfs-export
mnt=/run/nfs-mnt
limit=$((5 * FACTOR)) # so long taking the device away may take

log() { echo "$RESULTS/$JOB.$1.log"; }
gone() { ! [ -e "/sys/class/infiniband/w0" ]; }
port_is() { grep -q "$1" /sys/class/infiniband/w0/ports/1/state; }
port_down_and_up() {
	ip link set dum0 down && wait_until port_is DOWN && ip link set dum0 up && wait_until port_is ACTIVE
}

# taken_away: in time, and the next of this name works at once.
taken_away() {
	timeout $limit rdma link del w0 && gone && link_add w0 dum0 && works
}
works() { HERALD_DEV=w0 herald_conformance --gtest_brief=1 --gtest_filter='RcOps.SendAndItsCompletions'; }

# --- ibv_asyncwatch -------------------------------------------------------------------------------------------------

watch_begin() { # NAME
	watched=$(log "$1")
	ibv_asyncwatch -d w0 >"$watched" 2>&1 &
	watch=$!
	wait_until grep -q 'async event FD' "$watched"
}
watch_end() {
	kill "$watch"
	wait "$watch" 2>/dev/null
	cat "$watched"
}
saw() { [ "$(grep -c "event_type $1 " "$watched")" = "$2" ]; } # EVENT TIMES

watch_ports() {
	local i rc=0
	watch_begin asyncwatch-ports
	for i in $(seq $((5 / FACTOR + 2))); do
		ip link set dum0 down && wait_until saw IBV_EVENT_PORT_ERR "$i" &&
			ip link set dum0 up && wait_until saw IBV_EVENT_PORT_ACTIVE "$i" && saw IBV_EVENT_PORT_ERR "$i" || rc=1
	done
	watch_end
	return $rc
}
# CASES 50: it never closes the device, and waits for ever; the module goes all the same, and comes back.
watch_removal() {
	local rc=0
	watch_begin asyncwatch-removal
	timeout $limit rdma link del w0 && gone && wait_until saw IBV_EVENT_DEVICE_FATAL 1 || rc=1
	timeout $limit rmmod "$DEV_TYPE" && load_modules && link_add w0 dum0 && works || rc=1
	saw IBV_EVENT_DEVICE_FATAL 1 && kill -0 "$watch" || rc=1
	watch_end
	return $rc
}

# --- rping ----------------------------------------------------------------------------------------------------------

# It checks every byte that comes back (-V), and says so in a line (-v).
rping_begin() {
	rping -s -a $address -V -S 4000 >"$(log rping-server)" 2>&1 &
	server=$!
	wait_cm_listen 7174 $server && stdbuf -oL rping -c -a $address -v -V -S 4000 >"$(log rping-client)" 2>&1 &
	client=$!
	wait_until pings 10
}
pings() { # at least N, or it has ended
	! kill -0 "$client" || [ "$(grep -c '^ping data' "$(log rping-client)")" -ge "$1" ]
} 2>/dev/null
pings_on() {
	wait_until pings $(($(grep -c '^ping data' "$(log rping-client)") + 10)) && kill -0 "$client"
}
rping_end() {
	kill "$client" "$server" 2>/dev/null
	wait "$client" "$server" 2>/dev/null
	true
}
rping_ports() {
	local i rc=0
	rping_begin
	for i in $(seq $((5 / FACTOR + 2))); do
		port_down_and_up && pings_on || { rc=1; break; }
	done
	rping_end
	! grep -i 'error\|mismatch' "$(log rping-client)" && return $rc
}
# Both ends hear of the removal from RDMA CM, and end by themselves.
rping_removal() {
	local rc=0
	rping_begin && taken_away || rc=$?
	wait "$client"
	wait "$server"
	return $rc
}
rping_unplugged() {
	local rc=0
	rping_begin && timeout $limit ip link del dum0 && wait_until gone || rc=$?
	wait "$client"
	wait "$server"
	add_netdev dum0 $address/24 && link_add w0 dum0 && works || rc=1
	return $rc
}

# --- NFS ------------------------------------------------------------------------------------------------------------

nfs_begin() {
	mkdir -p $export_dir $mnt
	mount -t tmpfs -o size=256m tmpfs $export_dir && chmod 777 $export_dir && nfs_serve $export_dir &&
		nfs_mount $address / $mnt && grep " $mnt " /proc/mounts | grep "proto=rdma"
}
nfs_end() { umount $mnt && nfs_stop && umount $export_dir; }

# under_io COMMAND: random file operations meanwhile, and every byte is what it must be, here and on the server's side.
under_io() {
	local rc=0 pid
	fsx_like -s "$RANDOM" -n $((2000 / FACTOR + 200)) -m /run/model $mnt/fsx &
	pid=$!
	wait_until [ -s $export_dir/fsx ]
	"$@" || rc=$?
	kill -0 $pid || echo "the operations were over before" # nothing is proved, and nothing is wrong
	wait $pid || rc=$?
	sync
	echo 3 >/proc/sys/vm/drop_caches
	fsx_like -c /run/model $mnt/fsx && fsx_like -c /run/model $export_dir/fsx && return $rc
}
ports() {
	local i
	for i in $(seq $((5 / FACTOR + 2))); do port_down_and_up || return 1; done
}

# --- consumers in the kernel that are told to go ----------------------------------------------------------------------

has_cqs() { rdma resource show w0 | grep -E ' cq ([5-9]|[0-9]{2,}) '; }
torture_removal() {
	local rc=0
	load_module herald_torture device=w0 seconds=60 seed=7 patience=$((5000 * FACTOR)) || return 1
	wait_until has_cqs
	# it ends its phase, and destroys all that it has
	timeout $((30 * FACTOR)) rdma link del w0 && gone && link_add w0 dum0 && works || rc=$?
	rmmod herald_torture
	return $rc
}

# --- valgrind -------------------------------------------------------------------------------------------------------

under_valgrind() {
	command -v valgrind >/dev/null || { echo "no valgrind"; return 77; }
	HERALD_DEV=w0 HERALD_PATIENCE=$((100 * FACTOR)) valgrind -q --error-exitcode=9 --leak-check=full \
		--show-leak-kinds=definite --errors-for-leak-kinds=definite herald_conformance --gtest_brief=1 \
		--gtest_filter='Cases49_Removal.*:RemovalAckTest.*:RemovalTest.Cases49_C*:RemovalTest.Cases50_*'
}

# try NAME SECONDS CMD...: with a device, whatever the last check has left behind.
try() {
	[ -e /sys/class/net/dum0 ] || add_netdev dum0 $address/24
	! gone || link_add w0 dum0
	check "$@"
}

check load_modules 30 load_modules || exit 1
add_netdev dum0 $address/24
for what in ${REMOVAL_OF:-asyncwatch rping nfs kernel}; do
	case $what in
	asyncwatch)
		try Cases48_asyncwatch 60 watch_ports
		try Cases50_asyncwatch_and_rmmod 60 watch_removal
		;;
	rping)
		try rping_ports 90 rping_ports
		try rping_removal 60 rping_removal
		try rping_unplugged 60 rping_unplugged
		;;
	nfs)
		[ "$LANE" != debug ] || continue # its kernel has no NFS
		try nfs_begin 60 nfs_begin || continue
		try nfs_ports 300 under_io ports
		try nfs_removal 300 under_io taken_away
		try nfs_end 60 nfs_end
		;;
	kernel) try torture_removal 90 torture_removal ;;
	*) fail "REMOVAL_OF" "not understood: $what" ;;
	esac
done
[ "$LANE" != uml ] || try Cases49_valgrind 300 under_valgrind
check link_del 20 link_del w0
exit 0
