#!/bin/bash
# SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
#
# Builds everything and runs the lanes; `make test` calls it.
#
#	scripts/run-tests.sh [LANE...]		default: host uml stock debug pair
#
# The host lane comes first. Then everything is built, one thing after the other. Then tests/lanes/boots.txt says what is booted
# and in which order: a line is a machine with some of a lane's jobs. Half of the time a machine waits, so one more than there
# are processors run at once (HERALD_AT_ONCE). What one prints is shown when it is done (build/results/BOOT.log has it at once).
#
# The host lane is scripts/host-lane.sh, which prints PASS/FAIL/SKIP lines (FAIL and SKIP with a reason) on standard
# output. tests/skips/LANE.txt lists the skips that are expected (name, tab, reason; the name without the lane): another
# skip is a failure, and so is a listed one that did not happen though its job ran. The last line is `N passed, N failed,
# N skipped`; the status is 1 if anything failed, or if a lane gave no result. A lane
# without a line in boots.txt, and with HERALD_LONG=1 every one, is one boot with all its jobs.

. "$(dirname "$0")/lib.sh"

lanes=("$@")
[ ${#lanes[@]} -gt 0 ] || lanes=(host uml stock debug pair)
mkdir -p "$BUILD/results"
"$TOP/scripts/setup-host.sh"

run_host_lane() {
	local script=$TOP/scripts/host-lane.sh rc=0
	[ -x "$script" ] || die "no scripts/host-lane.sh"
	mkdir -p "$BUILD/results/host"
	"$script" </dev/null | tee "$BUILD/results/host/output.log" || rc=$?
	sed -n 's/^\(PASS\|FAIL\|SKIP\) /&host\//p' "$BUILD/results/host/output.log" >>"$BUILD/results/host.results"
	return $rc
}

# check_skips LANE: adds a FAIL line for each skip that is not listed and each listed one that did not happen, if its job ran.
check_skips() {
	local list=$TOP/tests/skips/$1.txt results=$BUILD/results/$1.results
	awk -F '\t' -v lane="$1" '
		FILENAME == ARGV[1] { if ($0 !~ /^#/ && NF) expected[$1] = 1; next }
		{ job = $0; sub("^[A-Z]+ " lane "/", "", job); sub(/\/.*/, "", job); ran[job] = 1 }
		/^SKIP / { name = $0; sub("^SKIP " lane "/", "", name); sub(/: .*/, "", name)
			if (name in expected) seen[name] = 1; else print "FAIL " lane "/skips/" name ": skipped, and tests/skips/" lane ".txt does not say so" }
		END { for (name in expected) { job = name; sub(/\/.*/, "", job); if (job in ran && !(name in seen)) print "FAIL " lane "/skips/" name ": listed in tests/skips/" lane ".txt and not skipped" } }
	' "$([ -e "$list" ] && echo "$list" || echo /dev/null)" "$results" >"$results.skips"
	tee -a "$results" <"$results.skips"
	rm -f "$results.skips"
}

count() { # STATUS FILE...
	local status=$1
	shift
	cat "$@" 2>/dev/null | grep -c "^$status " || true
}

# judge LANE STATUS SECONDS: a lane whose results are there, but for its skips; prints a summary.
judge() {
	local lane=$1 rc=$2 results=$BUILD/results/$1.results
	if [ "$(count '[A-Z]*' "$results")" = 0 ]; then
		echo "FAIL $lane/lane: gave no result (status $rc)" | tee -a "$results"
	elif [ "$rc" != 0 ] && [ "$(count FAIL "$results")" = 0 ]; then
		echo "FAIL $lane/lane: ended with status $rc" | tee -a "$results"
	fi
	check_skips "$lane"
	say "lane $lane: $(count PASS "$results") passed, $(count FAIL "$results") failed, $(count SKIP "$results") skipped in $3 s"
}

# --- boots ------------------------------------------------------------------------------------------------------

# list_boots LANE...: leaves in `boots` a line for each: its name (LANE, or LANE-2 and so on), the lane, run-lane.sh's arguments
list_boots() {
	local line words lane
	declare -A nth=()
	boots=()
	while read -r line && [ -z "${HERALD_LONG:-}" ]; do
		read -r -a words <<<"${line%%#*}"
		lane=${words[0]:-none}
		[[ " $* " == *" $lane "* ]] || continue
		nth[$lane]=$((${nth[$lane]:-0} + 1))
		if [ "${nth[$lane]}" = 1 ]; then boots+=("$lane ${words[*]}"); else boots+=("$lane-${nth[$lane]} ${words[*]}"); fi
	done <"$TOP/tests/lanes/boots.txt"
	for lane; do [ -n "${nth[$lane]:-}" ] || boots+=("$lane $lane ${HERALD_LONG:+HERALD_LONG=1}"); done
}

declare -A running=() lane_of=() status_of=() seconds_of=()
end_boots() {
	local pid
	for pid in "${!running[@]}"; do kill -TERM -- "-$pid" 2>/dev/null || true; done
	for pid in "${!running[@]}"; do wait "$pid" 2>/dev/null || true; done
	running=()
}
trap end_boots EXIT
trap 'exit 130' INT
trap 'exit 143' TERM

# start_boot NAME LANE ARGUMENT...: in a process group of its own, so that it can be ended with all that it has started.
start_boot() {
	lane_of[$1]=$2
	say "$1: started"
	set -m
	(
		trap - EXIT INT TERM
		set -f
		HERALD_BOOT=$1 exec "$TOP/scripts/run-lane.sh" "${@:2}"
	) >"$BUILD/results/$1.log" 2>&1 </dev/null &
	running[$!]=$1
	set +m
	seconds_of[$1]=$SECONDS
}

# end_boot: waits for one of those that run, and shows what it has printed
end_boot() {
	local pid='' name rc=0
	wait -n -p pid "${!running[@]}" || rc=$?
	name=${running[$pid]}
	unset "running[$pid]"
	status_of[$name]=$rc seconds_of[$name]=$((SECONDS - seconds_of[$name]))
	say "$name"
	cat "$BUILD/results/$name.log"
}

run_boots() {
	local boot words
	for boot in "${boots[@]}"; do
		[ ${#running[@]} -lt "$at_once" ] || end_boot
		read -r -a words <<<"$boot"
		start_boot "${words[@]}"
	done
	while [ ${#running[@]} -gt 0 ]; do end_boot; done
}

# judge_boots LANE: of all of them together
judge_boots() {
	local name rc=0 seconds=0
	for name in "${!lane_of[@]}"; do
		[ "${lane_of[$name]}" = "$1" ] || continue
		[ "${status_of[$name]}" = 0 ] || rc=${status_of[$name]}
		seconds=$((seconds + seconds_of[$name]))
		if [ "$(count '[A-Z]*' "$BUILD/results/$name.results")" = 0 ]; then
			echo "FAIL $1/lane: boot $name gave no result (status ${status_of[$name]})" | tee -a "$BUILD/results/$1.results"
		elif [ "$name" != "$1" ]; then
			cat "$BUILD/results/$name.results" >>"$BUILD/results/$1.results"
		fi
	done
	judge "$1" $rc $seconds
}

start=$SECONDS files=() virtual=() at_once=${HERALD_AT_ONCE:-$(($(nproc) + 1))}
for lane in "${lanes[@]}"; do
	files+=("$BUILD/results/$lane.results")
	rm -f "$BUILD/results/$lane"-[0-9]*.results
	: >"$BUILD/results/$lane.results"
	[ "$lane" = host ] || virtual+=("$lane")
done
if [ ${#virtual[@]} -lt ${#lanes[@]} ]; then
	rc=0
	(run_host_lane) || rc=$?
	judge host $rc $((SECONDS - start))
fi
ready=()
for lane in "${virtual[@]}"; do
	if "$TOP/scripts/run-lane.sh" --build "$lane" </dev/null; then
		ready+=("$lane")
	else
		echo "FAIL $lane/build: a part of it could not be built" | tee -a "$BUILD/results/$lane.results"
	fi
done
# nobody is to build what another lane is copying
export HERALD_NO_BUILD=1
list_boots "${ready[@]}"
run_boots
for lane in "${ready[@]}"; do judge_boots "$lane"; done
for lane in "${lanes[@]}"; do
	[ -s "$BUILD/results/$lane.results" ] ||
		echo "FAIL $lane/lane: did not run" | tee -a "$BUILD/results/$lane.results"
done

say "$((SECONDS - start)) s in all; results and logs: build/results/"
if [ "$(count FAIL "${files[@]}")" -gt 0 ]; then
	echo "Failed:"
	cat "${files[@]}" | grep '^FAIL '
fi
echo "$(count PASS "${files[@]}") passed, $(count FAIL "${files[@]}") failed, $(count SKIP "${files[@]}") skipped"
[ "$(count FAIL "${files[@]}")" = 0 ]
