#!/bin/bash
# SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
#
# Builds everything and runs the lanes; `make test` calls it.
#
#	scripts/run-tests.sh [LANE...]		default: host uml stock debug pair
#
# The host lane comes first. Then everything is built, one thing after the other. Then the stock lane, which takes longest,
# runs beside the others: no lane keeps two cores busy. What it prints is shown when they are done
# (build/results/beside.log has it at once).
#
# The host lane is scripts/host-lane.sh, which prints PASS/FAIL/SKIP lines (FAIL and SKIP with a reason) on standard
# output. tests/skips/LANE.txt lists the skips that are expected (name, tab, reason; the name without the lane): another
# skip is a failure, and so is a listed one that did not happen though its job ran. The last line is `N passed, N failed,
# N skipped`; the status is 1 if anything failed, or if a lane gave no result. Boots: tests/lanes/LANE.jobs, if it is there,
# has one boot a line (arguments of run-lane.sh); without it, or with HERALD_LONG=1, a lane is one boot with all its jobs.

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

run_vm_lane() {
	local boots=$TOP/tests/lanes/$1.jobs boot rc=0 words
	if [ ! -e "$boots" ] || [ -n "${HERALD_LONG:-}" ]; then
		"$TOP/scripts/run-lane.sh" "$1" </dev/null
		return
	fi
	while read -r -u 3 boot; do
		boot=${boot%%#*}
		read -r -a words <<<"$boot"
		[ ${#words[@]} = 0 ] || "$TOP/scripts/run-lane.sh" "$1" "${words[@]}" </dev/null || rc=1
	done 3<"$boots"
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

# run_lane LANE: leaves its results in build/results/LANE.results and prints a summary.
run_lane() {
	local lane=$1 results=$BUILD/results/$1.results rc=0 start=$SECONDS
	say "lane $lane"
	if [ "$lane" = host ]; then
		(run_host_lane) || rc=$?
	else
		(HERALD_APPEND=1 run_vm_lane "$lane") || rc=$?
	fi
	if [ "$(count '[A-Z]*' "$results")" = 0 ]; then
		echo "FAIL $lane/lane: gave no result (status $rc)" | tee -a "$results"
	elif [ $rc != 0 ] && [ "$(count FAIL "$results")" = 0 ]; then
		echo "FAIL $lane/lane: ended with status $rc" | tee -a "$results"
	fi
	check_skips "$lane"
	say "lane $lane: $(count PASS "$results") passed, $(count FAIL "$results") failed, $(count SKIP "$results") skipped in $((SECONDS - start)) s"
}

beside=
end_beside() {
	[ -n "$beside" ] || return 0
	kill -TERM -- "-$beside" 2>/dev/null || true
	wait "$beside" 2>/dev/null || true
	beside=
}
trap end_beside EXIT
trap 'exit 130' INT
trap 'exit 143' TERM

# run_beside LANE: in a process group of its own, so that it can be ended with all that it has started.
run_beside() {
	set -m
	(
		trap - EXIT INT TERM
		run_lane "$1"
	) >"$BUILD/results/beside.log" 2>&1 </dev/null &
	beside=$!
	set +m
}

start=$SECONDS files=() virtual=()
for lane in "${lanes[@]}"; do
	files+=("$BUILD/results/$lane.results")
	: >"$BUILD/results/$lane.results"
	[ "$lane" = host ] || virtual+=("$lane")
done
if [ ${#virtual[@]} -lt ${#lanes[@]} ]; then run_lane host; fi
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
for lane in "${ready[@]}"; do
	if [ "$lane" = stock ] && [ ${#ready[@]} -gt 1 ]; then run_beside stock; fi
done
for lane in "${ready[@]}"; do
	if [ "$lane" != stock ] || [ -z "$beside" ]; then run_lane "$lane"; fi
done
if [ -n "$beside" ]; then
	tail -n +1 -f --pid="$beside" "$BUILD/results/beside.log"
	wait "$beside" || echo "FAIL stock/lane: what ran it ended with status $?" | tee -a "$BUILD/results/stock.results"
	beside=
fi
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
