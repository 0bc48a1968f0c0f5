#!/bin/bash
# SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
#
# The host lane: what needs no kernel of its own. The rules of the tree, the shell scripts, and the pure files under
# GoogleTest with sanitizers. Installs nothing; what is missing is a SKIP.
#
#	scripts/host-lane.sh [RESULTS_FILE]
#
# Prints `PASS|FAIL|SKIP NAME[: REASON]` lines, and appends them to the file if one is named. Logs are in
# build/results/host. Exits 1 if anything failed.

. "$(dirname "$0")/lib.sh"

results=${1:-/dev/null}
logs=$BUILD/results/host
mkdir -p "$logs"
failed=0

result() { # STATUS NAME [REASON]
	local line="$1 ${2// /_}${3:+: $(printf %s "$3" | tr '\n\t' '  ' | cut -c 1-300)}"
	printf '%s\n' "$line"
	printf '%s\n' "$line" >>"$results"
	[ "$1" != FAIL ] || failed=1
}

# check NAME CMD...: CMD passes or fails; the reason is the first line that it printed.
check() {
	local name=$1 log=$logs/${1//\//-}.log
	shift
	if "$@" >"$log" 2>&1; then
		result PASS "$name"
	else
		result FAIL "$name" "$(sed -n 1p "$log") (log: ${log#"$TOP/"})"
		sed 's/^/   /' "$log" | tail -n 30 >&2
	fi
}

# --- the tree's own rules ---------------------------------------------------------------------------------------

check rules/layers "$TOP/scripts/check-layers.sh"
if [ -x "$TOP/scripts/check-compat.sh" ]; then check rules/compat "$TOP/scripts/check-compat.sh"; fi

if command -v shellcheck >/dev/null; then
	while read -r script; do
		check "shellcheck/${script#"$TOP/"}" shellcheck -x -S warning -P "$(dirname "$script")" "$script"
	done < <(find "$TOP/scripts" "$TOP/tests/guest" "$TOP/kernel/compat" -name '*.sh' | sort)
else
	result SKIP shellcheck "no shellcheck"
fi

# --- the pure files ---------------------------------------------------------------------------------------------

# gtest_results NAME LOG STATUS: the lines that GoogleTest printed, as results; a run that stopped early has failed.
gtest_results() {
	local name=$1 log=$2 status=$3 test count=0
	while read -r test; do
		result PASS "$name/$test"
		count=$((count + 1))
	done < <(sed -n 's/^\[       OK \] \([^ ]*\).*/\1/p' "$log")
	while read -r test; do
		result FAIL "$name/$test" "log: ${log#"$TOP/"}"
	done < <(sed -n 's/^\[  FAILED  \] \([^ ]*\).* ([0-9]* ms)$/\1/p' "$log")
	while read -r test; do
		result SKIP "$name/$test" "says the test"
	done < <(sed -n 's/^\[  SKIPPED \] \([^ ]*\).* ([0-9]* ms)$/\1/p' "$log")
	if [ "$status" != 0 ] && ! grep -q '^\[  FAILED  \]' "$log"; then
		result FAIL "$name/run" "status $status; log: ${log#"$TOP/"}"
	elif [ "$count" = 0 ]; then
		result FAIL "$name/run" "no test ran; log: ${log#"$TOP/"}"
	fi
}

# unit_tests NAME SANITIZERS [GTEST_ARGS...]: builds tests/user/unit and runs it.
unit_tests() {
	local name=$1 sanitize=$2 dir=$BUILD/host/$1 log=$logs/$1.log rc=0
	shift 2
	if ! cmake -S "$TOP/tests/user/unit" -B "$dir" -DHERALD_SANITIZE="$sanitize" >"$log" 2>&1 ||
		! cmake --build "$dir" -j "$JOBS" >>"$log" 2>&1; then
		result FAIL "$name/build" "$(grep -m 1 -i 'error' "$log") (log: ${log#"$TOP/"})"
		return
	fi
	if grep -q 'no GoogleTest' "$log"; then
		result SKIP "$name" "no GoogleTest"
		return
	fi
	timeout 300 "$dir/herald_unit_tests" --gtest_color=no "$@" >"$log" 2>&1 || rc=$?
	gtest_results "$name" "$log" "$rc"
}

if command -v cmake >/dev/null && command -v c++ >/dev/null; then
	unit_tests unit address,undefined
	unit_tests unit-tsan thread --gtest_filter='ArmLitmus.*'
else
	result SKIP unit "no cmake, or no C++ compiler"
fi

exit $failed
