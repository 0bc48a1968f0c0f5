#!/bin/bash
# SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
#
# Torture of completion events, by consumers in the kernel (tests/kmod/torture*) and by a process (tests/user/torture) at
# the same time: random posts, arms, polls, resizes, kills and destroys, with an account of every completion and every
# event. `make torture` is the same for an hour. A seed decides what each thread does, not how the threads meet.
#
#	SEED		what the random numbers start from (random; it is printed)
#	TORTURE_SECONDS	how long the process runs (30; 15 on slow lanes); the kernel's part ends before
#	TORTURE_PARTS	"kernel user"; or one of them
#	TORTURE_ARMS	arms that have to be checked in all (0)
# timeout: 160
. "$(dirname "$0")/lib.sh"

: "${SEED:=$RANDOM}" "${TORTURE_SECONDS:=$((FACTOR > 1 ? 15 : 30))}" "${TORTURE_PARTS:=kernel user}" "${TORTURE_ARMS:=0}"
module=herald_torture
debugfs=/sys/kernel/debug/$module
user_log=$RESULTS/$JOB.user.log
# a stall; far longer than it can take on a slow lane
patience=$((FACTOR > 1 ? 5000 : 2000))
# beyond the time that is asked for: what has not happened yet (60 s, kMoreTime), and what is slow at the end
margin=90

has() { case " $TORTURE_PARTS " in *" $1 "*) return 0 ;; esac && return 1; }

# What the device says about its CQs, if it does.
show_cqs() {
	local table
	for table in /sys/kernel/debug/herald/*/cqs; do
		[ ! -e "$table" ] || { echo "--- $table" && cat "$table"; }
	done
}

start_kernel() {
	load_module $module device=t0 seconds=$((TORTURE_SECONDS > 20 ? TORTURE_SECONDS - 10 : TORTURE_SECONDS)) \
		seed="$SEED" patience=$patience
}
kernel_is_done() { grep -q 'done' $debugfs/state; }
kernel_failed() { grep -q '^not ok' $debugfs/results; }

run_user() { herald_torture --dev t0 --seconds "$TORTURE_SECONDS" --seed "$SEED" --patience $patience; }

number() { sed -n "s/.*\b$1 \([0-9]*\).*/\1/p" | sed -n 1p; } # of what is read, the one after the word

enough_arms() {
	local kernel user
	kernel=$(has kernel && number arms <$debugfs/results)
	user=$(has user && number arms <"$user_log")
	echo "TORTURE arms checked: $((${kernel:-0} + ${user:-0})), in the kernel ${kernel:-0}, by a process ${user:-0}; seed $SEED"
	[ $((${kernel:-0} + ${user:-0})) -ge "$TORTURE_ARMS" ]
}

echo "TORTURE seed $SEED, $TORTURE_SECONDS s"
check load_modules 30 load_modules || exit 1
add_netdev dum0 192.0.2.1/24
check link_add 20 link_add t0 dum0 || exit 1
! has kernel || check start_kernel 30 start_kernel || exit 1
if has user; then
	CHECK_TAIL=200 check user $((TORTURE_SECONDS + margin)) run_user || show_cqs
	grep '^arms' "$user_log"
fi
if has kernel; then
	check kernel $((TORTURE_SECONDS + margin)) wait_until kernel_is_done
	ktap_collect $module kernel_
	! kernel_failed || { dmesg | grep "$module: #" && show_cqs; }
fi
check enough_arms 10 enough_arms
cat "$RESULTS/$JOB.enough_arms.log"
! has kernel || check unload 20 rmmod $module
check link_del 20 link_del t0
exit 0
