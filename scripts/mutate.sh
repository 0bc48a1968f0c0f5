#!/bin/bash
# SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
#
# Breaks the code on purpose, once for each file of tests/mutations, and sees the tests fail.
#
#	scripts/mutate.sh [NAME...]	all of them, or these: c4 is all of c4-...
#	scripts/mutate.sh --check	only: do they still apply, and are they in docs/testing.md?
#
# Each mutation is a patch with a head: the rule it breaks, what it does, how to run what must notice (`Run: unit FILTER`,
# `provider-unit FILTER`, or the arguments of run-lane.sh), and a regular expression of the result that must fail. They are
# applied to a copy, below build/mutant. Prints one line each; status 1 if one went unnoticed.

. "$(dirname "$0")/lib.sh"

mutant=$BUILD/mutant
log=$BUILD/log/mutate.log

field() { # NAME PATCH
	sed -n "s/^$1: *//p" "$2" | sed -n 1p
}

# A copy of the tree, whose build folder stays: little has to be compiled again.
copy_tree() {
	mkdir -p "$mutant"
	rsync -a --delete --exclude /build --exclude .git "$TOP/" "$mutant/"
}

run_unit() { # FILTER
	local dir=$mutant/build/host/unit
	cmake -S "$mutant/tests/user/unit" -B "$dir" -DHERALD_SANITIZE=address,undefined &&
		cmake --build "$dir" -j "$JOBS" && timeout 300 "$dir/herald_unit_tests" --gtest_filter="$1"
}

run() { # KIND ARGUMENT...
	case $1 in
	unit) run_unit "$2" ;;
	provider-unit) "$mutant/scripts/provider-unit.sh" provider-unit address,undefined --gtest_filter="$2" ;;
	*) "$mutant/scripts/run-lane.sh" "$@" ;;
	esac
}

# What failed, in whatever form the runner says so: NAME, SUITE.TEST or SUITE.TEST/PARAMETER
failures() {
	sed -n -e 's/^FAIL \([^ :]*\).*/\1/p' -e 's/^\[  FAILED  \] \([^ ,]*\.[^ ,]*\).*/\1/p' "$log" |
		sed -E -e 's|.*/([^/]*\.[^/]*(/[^/]*)?)$|\1|' -e t -e 's|.*/||' | sort -u
}

try() { # PATCH
	local patch=$1 name rule caught args hits
	name=$(basename "$patch" .patch)
	rule=$(field Rule "$patch")
	caught=$(field Caught-by "$patch")
	read -r -a args <<<"$(field Run "$patch")"
	copy_tree
	if ! patch -s -p1 --fuzz=0 -d "$mutant" <"$patch" >"$log" 2>&1; then
		printf 'FAIL %s: does not apply (log: %s)\n' "$name" "${log#"$TOP/"}"
		return 1
	fi
	run "${args[@]}" >"$log" 2>&1 </dev/null && {
		printf 'FAIL %s (%s): nothing failed\n' "$name" "$rule"
		return 1
	}
	hits=$(failures | grep -E "$caught" | tr '\n' ' ' || true)
	if [ -z "$hits" ]; then
		printf 'FAIL %s (%s): noticed by others than %s: %s\n' "$name" "$rule" "$caught" "$(failures | tr '\n' ' ')"
		return 1
	fi
	printf 'PASS %s (%s): %s\n' "$name" "$rule" "${hits% }"
}

check_applies() {
	local patch bad=0
	for patch in "$TOP"/tests/mutations/*.patch; do
		if ! patch -s -p1 --fuzz=0 -d "$TOP" --dry-run <"$patch" >/dev/null; then
			printf '%s does not apply any more: make it fit the code that it breaks\n' "${patch#"$TOP/"}"
			bad=1
		fi
		if ! grep -q "^| $(basename "$patch" .patch) | $(field Rule "$patch") |" "$TOP/docs/testing.md"; then
			printf '%s is not in the list in docs/testing.md\n' "${patch#"$TOP/"}"
			bad=1
		fi
	done
	return $bad
}

chosen() { # NAME...
	local name patch
	[ $# -gt 0 ] || set -- '*'
	for name; do
		for patch in "$TOP"/tests/mutations/$name.patch "$TOP"/tests/mutations/$name-*.patch; do
			if [ -e "$patch" ]; then printf '%s\n' "$patch"; fi
		done
	done | sort -u
}

mkdir -p "$BUILD/log" "$BUILD/results"
if [ "${1:-}" = --check ]; then
	check_applies
	exit
fi
passed=0 failed=0
mapfile -t patches < <(chosen "$@")
[ ${#patches[@]} -gt 0 ] || die "no such mutation"
: >"$BUILD/results/mutations.txt"
for patch in "${patches[@]}"; do
	if line=$(try "$patch"); then passed=$((passed + 1)); else failed=$((failed + 1)); fi
	printf '%s\n' "$line" | tee -a "$BUILD/results/mutations.txt"
done
printf '%d passed, %d failed, 0 skipped\n' "$passed" "$failed"
[ "$failed" = 0 ]
