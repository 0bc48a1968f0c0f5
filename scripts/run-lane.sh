#!/bin/bash
# SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
#
# Boots a lane and runs jobs (scripts of tests/guest/) in it.
#
#	scripts/run-lane.sh uml|debug|stock|pair [NAME=VALUE...] [JOB.sh...]
#	scripts/run-lane.sh --build uml|debug|stock|pair	only builds the parts
#
# Without jobs: all of tests/guest/[0-9]*.sh whose `# lanes:` line names the lane; one without that line is for all lanes but
# pair, which is two of the stock lane's machines with a cable between them (scripts/pair-vm.sh). A pattern ('8*.sh') stands for
# those of them that it fits. NAME=VALUE reaches the jobs as a variable; DEV_TYPE=rxe (or siw) tries them on a peer. The
# parts are built first if they are not there: the kernel, the tree, and, unless DEV_TYPE names a peer or HERALD_NO_BUILD
# is set, the module and the user space. Modules that the lane has not can be given: HERALD_MODULES=FOLDER.
#
# HERALD_BOOT=NAME (if unset, the lane's): runs of the same lane with other names keep out of each other's folders. The guest
# sees build/jobs/NAME.N: modules/, user/, guest/ (= tests/guest), tests/ and results/. Result lines (`PASS|FAIL|SKIP
# LANE/JOB/NAME[: REASON]`) go to the terminal and to build/results/NAME.results, logs to build/results/NAME/. A kernel that
# panics or hangs has failed its job; it is ended (by its pid) and the jobs that are left run in a fresh one. Status 1 if
# anything failed.

. "$(dirname "$0")/lib.sh"
. "$(dirname "$0")/lane-vm.sh"

build_only=
if [ "${1:-}" = --build ]; then
	build_only=1
	shift
fi
lane=${1:-}
shift || true
case $lane in
uml) factor=1 boot_seconds=60 ;;
debug) factor=10 boot_seconds=300 ;;
stock) factor=6 boot_seconds=240 ;;
pair) factor=8 boot_seconds=400 ;;
*) die "usage: $0 uml|debug|stock|pair [NAME=VALUE...] [JOB.sh...]" ;;
esac

dev_type=herald vars=() jobs=()
for word; do
	case $word in
	DEV_TYPE=*) dev_type=${word#*=} ;;
	*=*) vars+=("$word") ;;
	*) jobs+=("$(basename "$word")") ;;
	esac
done
for_lane() { # JOB
	local lanes
	lanes=$(sed -n 's/^# lanes: *//p' "$TOP/tests/guest/$1" | sed -n 1p)
	[[ " ${lanes:-uml debug stock} " == *" $lane "* ]]
}
[ ${#jobs[@]} -gt 0 ] || jobs=('[0-9]*.sh')
words=("${jobs[@]}") jobs=()
for word in "${words[@]}"; do
	case $word in
	*'*'*)
		for file in "$TOP"/tests/guest/$word; do
			if for_lane "${file##*/}"; then jobs+=("${file##*/}"); fi
		done
		;;
	*) jobs+=("$word") ;;
	esac
done
for job in "${jobs[@]}"; do [ -e "$TOP/tests/guest/$job" ] || die "no such job: tests/guest/$job"; done

# --- the job folder ---------------------------------------------------------------------------------------------

prepare_parts "$lane"
if [ "$dev_type" = herald ] && [ -z "${HERALD_NO_BUILD:-}" ]; then
	"$TOP/scripts/build-module.sh" "$(kernel_of "$lane")" >&2
	"$TOP/scripts/build-user.sh" >&2
fi
[ -z "$build_only" ] || exit 0

boot=${HERALD_BOOT:-$lane}
logs=$BUILD/results/$boot
results=$BUILD/results/$boot.results
mkdir -p "$BUILD/jobs" "$logs"
lock_build "jobs-$boot"
: >"$results"
find "$BUILD/jobs" -mindepth 1 -maxdepth 1 -type d -name "$boot.*" -exec rm -rf --one-file-system {} +
job_dir=$(mktemp -d "$BUILD/jobs/$boot.XXXX")
chmod 755 "$job_dir"
mkdir -p "$job_dir"/{modules,user,results}
cp -a "$TOP/tests/guest" "$job_dir/guest"
chmod -R a+rX "$job_dir/guest"
chmod a+x "$job_dir/guest/"*.sh
rsync -a --exclude guest "$TOP/tests" "$job_dir/"
copy_peer_modules "$lane" "$job_dir/modules"
if [ "$dev_type" = herald ]; then cp "$BUILD/$(kernel_of "$lane")"/*.ko "$job_dir/modules/"; fi
[ -z "${HERALD_MODULES:-}" ] || cp "$HERALD_MODULES"/*.ko "$job_dir/modules/"
if [ -d "$BUILD/user" ]; then
	rsync -a --exclude /.src --exclude CMakeFiles --exclude '*.o' --exclude '*.a' "$BUILD/user/" "$job_dir/user/"
fi
# nine tenths of what the guest would have to read are for debuggers
find "$job_dir"/{modules,user} -type f \( -name '*.ko' -o -name '*.so*' -o -path '*/bin/*' \) -exec strip -g {} + 2>/dev/null || true

write_env() {
	{
		printf 'export LANE=%q FACTOR=%q DEV_TYPE=%q\n' "$lane" "$factor" "$dev_type"
		[ ${#vars[@]} = 0 ] || printf 'export %q\n' "${vars[@]}"
		printf 'JOBS=%q\n' "$*"
	} >"$job_dir/env"
}

# --- one boot ---------------------------------------------------------------------------------------------------

vm_pid=
end_vm() {
	[ -n "$vm_pid" ] || return 0
	kill_vm "$vm_pid"
	vm_pid=
}
trap 'end_vm; stop_step' EXIT

host_result() { # LINE
	printf '%s\n' "$1" | tee -a "$job_dir/results/results"
}

# boot_and_watch JOB...: leaves in `left` the jobs that did not get their turn.
boot_and_watch() {
	local line console pending=("$@") current='' booted='' ended='' rc deadline=$((SECONDS + boot_seconds)) why='' job_start
	write_env "$@"
	rm -f "$job_dir"/results/dmesg*.txt
	exec {console}< <(exec_vm "$lane" "$job_dir" 2>&1 </dev/null)
	vm_pid=$!
	while :; do
		rc=0
		IFS= read -r -t $((deadline > SECONDS ? deadline - SECONDS : 1)) line <&"$console" || rc=$?
		if [ $rc -gt 128 ]; then
			[ -n "$ended" ] || why="no sign of life when its time was over"
			break
		elif [ $rc != 0 ] && [ -z "$line" ]; then
			break
		fi
		line=${line%$'\r'}
		printf '%s\n' "$line" >>"$logs/console.log"
		case $line in
		@@booted*)
			booted=1
			say "$lane: ${line#@@}"
			;;
		'@@job kmemleak '*)
			deadline=$((SECONDS + ${line##* } + 60))
			;;
		'@@job '*)
			current=${line#@@job }
			current=${current% *}
			pending=("${pending[@]:1}")
			deadline=$((SECONDS + ${line##* } + 30 * factor))
			job_start=$SECONDS
			say "$lane: $current"
			;;
		'@@jobend '*)
			printf '%4d s %s\n' $((SECONDS - job_start)) "$current" >>"$logs/times.txt"
			current=
			deadline=$((SECONDS + 60 * factor))
			;;
		@@end)
			ended=1
			deadline=$((SECONDS + 10 + 5 * factor))
			;;
		*) [ -z "$booted" ] || [ -n "${HERALD_QUIET:-}" ] || printf '%s\n' "$line" ;;
		esac
	done
	end_vm
	exec {console}<&-
	if [ -z "$ended" ]; then
		why=${why:-"the kernel stopped"}
		# the guest's copy of its log lacks the end; the console has what came last
		awk '/^@@job / { n = 0 } { line[n++] = $0 } END { for (i = 0; i < n; i++) print line[i] }' \
			"$logs/console.log" >>"$job_dir/results/dmesg.txt"
		if [ -z "$booted" ] || [ -n "${HERALD_QUIET:-}" ]; then tail -n 60 "$logs/console.log"; fi
		if [ -z "$booted" ]; then
			host_result "FAIL boot: $why"
			pending=()
		elif [ -n "$current" ]; then
			host_result "FAIL ${current%.sh}/job: $why"
		else
			host_result "FAIL end/job: $why"
		fi
	fi
	left=("${pending[@]}")
	if [ -s "$job_dir/results/kmemleak.txt" ]; then
		head -n 60 "$job_dir/results/kmemleak.txt"
		host_result "FAIL kernel-log/kmemleak: $(grep -c '^unreferenced' "$job_dir/results/kmemleak.txt") objects leaked"
	fi
	check_kernel_log dmesg.txt kernel-log
	check_kernel_log dmesg-b.txt kernel-log-b
}

check_kernel_log() { # FILE NAME
	local file=$job_dir/results/$1 line
	[ -e "$file" ] || return 0
	"$TOP/scripts/check-kernel-log.py" "$file" "$TOP/tests/lanes/dmesg-allow.txt" |
		while IFS= read -r line; do host_result "${line/kernel-log/$2}"; done
	cat "$file" >>"$logs/${1%.txt}.log"
}

# What jobs have captured is judged here: the guests have not got what it takes.
judge_captures() {
	local list line lines rc
	for list in "$job_dir"/results/*.captures; do
		[ -e "$list" ] || continue
		rc=0
		say "$lane: $(basename "$list")"
		lines=$("$TOP/tests/capture/check.py" "$list" 2>"$list.log") || rc=$?
		while IFS= read -r line; do [ -z "$line" ] || host_result "$line"; done <<<"$lines"
		sed "s/^/   /" "$list.log" >&2
		[ $rc = 0 ] || grep -q '^FAIL ' <<<"$lines" ||
			host_result "FAIL $(basename "$list" .captures)/captures: status $rc: $(tail -n 1 "$list.log")"
	done
}

rm -f "$logs"/*
: >"$job_dir/results/results"
start=$SECONDS left=("${jobs[@]}")
while [ ${#left[@]} -gt 0 ]; do boot_and_watch "${left[@]}"; done
judge_captures

# One line about each kernel log for the whole lane, however often it booted.
for log in kernel-log kernel-log-b; do
	if grep -q "^FAIL $log/" "$job_dir/results/results"; then sed -i "/^PASS $log\$/d" "$job_dir/results/results"; fi
done
awk '!(/^PASS kernel-log(-b)?$/ && seen[$0]++)' "$job_dir/results/results" |
	sed "s|^\([A-Z]*\) |\1 $lane/|" >"$results"
cp "$job_dir/results/"* "$logs/" 2>/dev/null || true
cp "$results" "$logs/results"

count() { grep -c "^$1 " "$logs/results" || true; }
grep '^FAIL ' "$logs/results" >&2 || true
say "$lane: $(count PASS) passed, $(count FAIL) failed, $(count SKIP) skipped in $((SECONDS - start)) s; logs: build/results/$boot/"
[ "$(count FAIL)" = 0 ] && [ "$(count PASS)" -gt 0 ]
