#!/bin/bash
# SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
#
# Process 1 of a lane's guest, started by /sbin/herald-init (tests/lanes/stage1-init) once the job folder is mounted.
# Makes the tree usable, installs the provider, runs the jobs that scripts/run-lane.sh asked for (file `env` in the job
# folder) and powers off. Lines that start with @@ are for run-lane.sh. In the pair lane that is host a; host b does what a
# tells it (tests/guest/pair.sh), and `init.sh NAME` there does what a job of a ends with, clean_up or unload_modules.

export PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin HOME=/root LC_ALL=C.UTF-8 TERM=dumb
JOBDIR=/herald/job
JOB=init
# shellcheck source=/dev/null
. "$JOBDIR/env" # LANE FACTOR DEV_TYPE JOBS
# shellcheck source=tests/guest/lib.sh
. "$JOBDIR/guest/lib.sh"
HOST=$(sed -n 's/.*herald\.host=\([ab]\).*/\1/p' /proc/cmdline)
# shellcheck source=tests/guest/pair.sh
[ -z "$HOST" ] || . "$JOBDIR/guest/pair.sh"

mount_once() { # TYPE FOLDER [OPTIONS]
	mountpoint -q "$2" && return
	mkdir -p "$2" 2>/dev/null
	mount -t "$1" "$1" "$2" ${3:+-o "$3"} 2>/dev/null
}

make_usable() {
	mount_once proc /proc
	mount_once sysfs /sys
	mount_once devtmpfs /dev
	mount_once devpts /dev/pts mode=620,ptmxmode=666
	mount_once tmpfs /dev/shm
	mount_once tmpfs /run mode=755
	mount_once tmpfs /tmp mode=1777
	mount_once debugfs /sys/kernel/debug
	mount_once tracefs /sys/kernel/tracing
	mount_once configfs /sys/kernel/config
	mount_once cgroup2 /sys/fs/cgroup
	[ -e /dev/fd ] || ln -s /proc/self/fd /dev/fd
	mkdir -p /run/lock /run/netns /var/lib/nfs
	hostname herald
	ulimit -l unlimited
	ulimit -c 0
	sysctl -qw kernel.printk_ratelimit=0 net.ipv6.conf.default.accept_dad=0
	ip link set lo up
	# perftest asks /proc/cpuinfo for a clock frequency, and UML's has none
	if ! grep -q MHz /proc/cpuinfo; then
		sed 's/^bogomips.*/cpu MHz\t\t: 1000.000\n&/' /proc/cpuinfo >/run/cpuinfo
		mount --bind /run/cpuinfo /proc/cpuinfo
	fi
	[ ! -e /sys/kernel/debug/kmemleak ] || echo clear >/sys/kernel/debug/kmemleak
}

# From 9p a program is read again whenever it starts, which takes seconds under emulation.
keep_in_memory() {
	local folder
	[ "$(stat -f -c %T "$JOBDIR")" = v9fs ] || return 0
	mkdir /run/job
	for folder in modules user guest tests; do
		cp -a "$JOBDIR/$folder" /run/job/ && mount --bind "/run/job/$folder" "$JOBDIR/$folder"
	done
}

# What build-user.sh installed, over the tree's own paths.
install_user() {
	[ ! -d "$JOBDIR/user/install" ] || cp -a "$JOBDIR/user/install/." /
	ldconfig
}

timeout_of() { # FILE
	local seconds=''
	[ -z "${HERALD_LONG:-}" ] || seconds=$(sed -n 's/^# timeout-long: *\([0-9]*\).*/\1/p' "$1" | sed -n 1p)
	echo "${seconds:-$(sed -n 's/^# timeout: *\([0-9]*\).*/\1/p' "$1" | sed -n 1p)}"
}

run_job() { # FILE-NAME
	local file=$JOBDIR/guest/$1 name=${1%.sh} seconds rc=0 before after
	seconds=${JOB_SECONDS:-$(timeout_of "$file")}
	seconds=${seconds:-120}
	echo "@@job $1 $((seconds * FACTOR))"
	mark "begin $name"
	before=$(wc -l <"$RESULTS/results")
	JOB=$name run_timed "$seconds" - bash "$file" > >(tee "$RESULTS/$name.log") 2>&1 || rc=$?
	after=$(wc -l <"$RESULTS/results")
	JOB=$name
	if [ $rc = 124 ]; then
		fail job "no end after $((seconds * FACTOR)) s"
	elif [ $rc != 0 ]; then
		fail job "status $rc"
	elif [ "$before" = "$after" ]; then
		fail job "gave no result"
	fi
	clean_up
	[ "$HOST" != a ] || finish_b clean_up
	JOB=init
	mark "end $name"
	echo "@@jobend $1 $rc"
}

mark() { # TEXT: in the kernel's log, for check-kernel-log.py
	echo "herald-job: $1" >/dev/kmsg
	[ "$HOST" != a ] || timeout $((30 * FACTOR)) "${ON_B[@]}" sh -c "echo 'herald-job: $1' >/dev/kmsg"
}

# Leftovers of one job must not decide how the next one ends.
clean_up() {
	local pid device
	for pid in /proc/[0-9]*; do
		pid=${pid#/proc/}
		case $pid in 1 | "$$" | "$DMESG_PID" | "$OBEY_PID") continue ;; esac
		readlink "/proc/$pid/exe" >/dev/null 2>&1 || continue # a kernel thread
		[ "$(cat "/proc/$pid/comm" 2>/dev/null)" = tee ] || kill -KILL "$pid" 2>/dev/null
	done
	ip -all netns del 2>/dev/null
	for device in $(rdma link 2>/dev/null | sed -n 's/^link \([^/]*\)\/.*/\1/p'); do rdma link del "$device" 2>/dev/null; done
	for device in $(ip -o link show type veth | sed 's/^[0-9]*: \([^:@]*\).*/\1/') \
		$(ip -o link show type dummy | sed 's/^[0-9]*: \([^:@]*\).*/\1/'); do
		ip link del "$device" 2>/dev/null
	done
	[ -z "$HOST" ] || reset_cable "$HOST"
}

# The project's modules must go when nothing uses them.
unload_modules() {
	local module why
	JOB=end${HOST:+-$HOST}
	for module in $(lsmod | awk '$1 ~ /^herald/ { print $1 }' | sort -r); do
		[ -d "/sys/module/$module" ] || continue
		if why=$(timeout $((60 * FACTOR)) rmmod "$module" 2>&1); then pass "unload_$module"; else fail "unload_$module" "$why"; fi
	done
}

# Objects count as leaked once they are 5 s old and two scans found no pointer to them.
scan_leaks() {
	local leaks=/sys/kernel/debug/kmemleak
	[ -e $leaks ] || return 0
	echo "@@job kmemleak $((60 * FACTOR))"
	echo scan >$leaks
	sleep 6
	echo scan >$leaks
	cat $leaks >"$RESULTS/kmemleak.txt"
}

# QEMU is told to end at a restart: the debug kernel runs without ACPI and cannot power off.
power_off() {
	sync
	echo "@@end"
	restart
}
restart() {
	local restart=0x1234567 power_off=0x4321fedc how
	how=$restart
	[ "$LANE" != uml ] || how=$power_off
	perl -e "syscall(169, 0xfee1dead, 672274793, $how, 0)" # reboot(2)
	while :; do sleep 60; done
}

# finish_b clean_up|unload_modules: the same at host b. If b does not answer, the jobs that are left get another pair.
finish_b() {
	timeout $((30 * FACTOR)) "${ON_B[@]}" bash "$JOBDIR/guest/init.sh" "$1" && return
	fail host_b "no answer, or status $?"
	echo "pair: host b does not answer"
	restart
}

start() { # DMESG-FILE
	make_usable
	mkdir -p "$RESULTS"
	touch "$RESULTS/results"
	dmesg --follow --nopager >"$RESULTS/$1" &
	DMESG_PID=$!
	keep_in_memory
	install_user
	[ -z "$HOST" ] || name_interfaces "$HOST"
}

# Host b of a pair: until a says that it is over
obey() {
	start dmesg-b.txt
	export DMESG_PID
	python3 "$JOBDIR/guest/pair_obey.py"
	power_off
}

OBEY_PID=${OBEY_PID:-none}
if [ $$ != 1 ]; then
	"$@"
	exit 0
fi
[ "$HOST" != b ] || obey
start dmesg.txt
[ -z "$HOST" ] || wait_until "${ON_B[@]}" true 2>/dev/null
echo "@@booted $(uname -r) after $(cut -d ' ' -f 1 /proc/uptime) s"
for job in $JOBS; do run_job "$job"; done
unload_modules
if [ "$HOST" = a ]; then
	finish_b unload_modules
	"${ON_B[@]}" @@end
fi
scan_leaks
power_off
