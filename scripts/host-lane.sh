#!/bin/bash
# SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
#
# The host lane: what needs no running kernel. The rules of the tree, the shell scripts, checkpatch.pl and sparse for the
# module, the proofs of the event contract, clang-format and clang-tidy for the user space, and under GoogleTest with
# sanitizers the pure files (on this machine) and the provider (in the guests' tree). A tool that is missing is a SKIP; the
# guests' tree is made if need be, and a herd7 that cannot be had is a FAIL.
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

# check NAME CMD...: CMD passes or fails; the reason is the first line that it printed, but for messages of steps.
check() {
	local name=$1 log=$logs/${1//\//-}.log
	shift
	if "$@" >"$log" 2>&1; then
		result PASS "$name"
	else
		result FAIL "$name" "$(grep -v -m 1 -e '^== ' -e '^   ' "$log") (log: ${log#"$TOP/"})"
		sed 's/^/   /' "$log" | tail -n 30 >&2
	fi
}

# pool NAME CMD...: as check, beside others, as many as there are processors. What they found comes with pool_end, in order.
pool=() pool_dir=$logs/pool
pool() {
	mkdir -p "$pool_dir"
	while [ "$(jobs -rp | wc -l)" -ge "$JOBS" ]; do wait -n || true; done
	(results=/dev/null check "$@") >"$pool_dir/${#pool[@]}" 2>&1 &
	pool+=("$1")
}
pool_end() {
	local i line
	wait
	for i in "${!pool[@]}"; do
		while IFS= read -r line; do
			case $line in
			PASS\ * | FAIL\ *) printf '%s\n' "$line" | tee -a "$results" ;;
			*) printf '%s\n' "$line" >&2 ;;
			esac
			[[ $line != FAIL\ * ]] || failed=1
		done <"$pool_dir/$i"
	done
	pool=()
	rm -rf "$pool_dir"
}

# --- what the checks need: here, since it may take long and says how it gets on ---------------------------------------

if ! { "$TOP/scripts/fetch-source.sh" linux-6.12 && "$TOP/scripts/build-rdma-core.sh"; } >/dev/null; then
	result FAIL parts "the guests' tree, rdma-core's headers or the kernel's source could not be made"
	exit 1
fi

# --- the tree's own rules ---------------------------------------------------------------------------------------

check rules/layers "$TOP/scripts/check-layers.sh"
check rules/events "$TOP/scripts/check-events.sh"
check rules/compat "$TOP/scripts/check-compat.sh"
check rules/licence "$TOP/scripts/check-tree.sh" licence
check rules/hosts "$TOP/scripts/check-tree.sh" hosts
check rules/mutations "$TOP/scripts/mutate.sh" --check

if command -v shellcheck >/dev/null; then
	while read -r script; do
		pool "shellcheck/${script#"$TOP/"}" shellcheck -x -S warning -P "$(dirname "$script")" "$script"
	done < <(find "$TOP/scripts" "$TOP/tests/guest" "$TOP/kernel/compat" -name '*.sh' | sort)
	pool_end
else
	result SKIP shellcheck "no shellcheck"
fi

# --- the kernel's code ------------------------------------------------------------------------------------------

check checkpatch "$TOP/scripts/check-kernel-style.sh"

sparse_is_silent() {
	cat "$BUILD/stock/sparse.txt"
	[ ! -s "$BUILD/stock/sparse.txt" ]
}

# it is built here because sparse needs the kernel's headers; the stock lane takes what was built
if ! command -v sparse >/dev/null; then
	result SKIP sparse "no sparse"
elif "$TOP/scripts/build-module.sh" stock >&2; then
	check sparse sparse_is_silent
else
	result FAIL sparse "the module does not build (log: build/log/module-stock.log)"
fi

# --- the proofs -------------------------------------------------------------------------------------------------

# A model is checked, and so is each of its mutants: each has to be found broken.
while read -r model; do
	pool "proof-code/$(basename "$model")" "$TOP/scripts/check-model-code.py" "$model"
done < <(find "$TOP/tests/litmus" "$TOP/tests/spin" -name '*.litmus' -o -name '*.pml' | sort)
pool_end

if "$TOP/scripts/fetch-herd.sh" >/dev/null; then
	while read -r -a words; do
		pool "litmus/$(IFS=/; printf %s "${words[*]}")" "$TOP/scripts/check-litmus.sh" "${words[@]}"
	done < <("$TOP/scripts/check-litmus.sh" list)
	pool_end
else
	result FAIL litmus "herd7 or the memory model could not be had: is sid in reach of apt? (log: $CACHE/log/herd.log)"
fi

if command -v spin >/dev/null && command -v gcc >/dev/null; then
	while read -r -a words; do
		pool "spin/$(IFS=/; printf %s "${words[*]}")" "$TOP/scripts/check-spin.sh" "${words[@]}"
	done < <("$TOP/scripts/check-spin.sh" list)
	pool_end
else
	result SKIP spin "no spin, or no gcc"
fi

# --- the user space's code --------------------------------------------------------------------------------------

if command -v clang-format-19 >/dev/null; then
	check clang-format "$TOP/scripts/check-cxx.sh" format
else
	result SKIP clang-format "no clang-format-19"
fi
if command -v clang-tidy-19 >/dev/null; then
	while read -r file; do
		pool "clang-tidy/$file" "$TOP/scripts/check-cxx.sh" tidy "$file"
	done < <(cd "$TOP" && find user tests/user/tools tests/user/torture -name '*.cc' | sort)
	pool_end
else
	result SKIP clang-tidy "no clang-tidy-19"
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

# --- packets ----------------------------------------------------------------------------------------------------

golden_packets_are_made() { diff -u "$TOP/tests/golden/packets.txt" <("$TOP/tests/golden/make_packets.py"); }

if /usr/bin/python3 -c 'import scapy' 2>/dev/null; then
	check golden/packets golden_packets_are_made
else
	result SKIP golden/packets "no scapy"
fi
if /usr/bin/python3 -c 'import scapy' 2>/dev/null && command -v tshark >/dev/null; then
	check capture/faults "$TOP/tests/capture/test_check.py"
else
	result SKIP capture/faults "no scapy, or no tshark"
fi
if command -v clang++-19 >/dev/null; then
	seconds=5
	[ -z "${HERALD_LONG:-}" ] || seconds=600
	check fuzz/pkt "$TOP/scripts/fuzz.sh" pkt $seconds
	check fuzz/check "$TOP/scripts/fuzz.sh" check $seconds
else
	result SKIP fuzz/pkt "no clang++-19"
	result SKIP fuzz/check "no clang++-19"
fi

# --- the provider -----------------------------------------------------------------------------------------------

# provider_tests NAME SANITIZERS: what the build has to say goes to the terminal.
provider_tests() {
	local log=$logs/$1.log rc=0
	"$TOP/scripts/provider-unit.sh" "$1" "$2" --gtest_color=no >"$log" || rc=$?
	if grep -q '^\[=====' "$log"; then
		gtest_results "$1" "$log" "$rc"
	else
		result FAIL "$1/build" "log: build/log/$1.log"
	fi
}

provider_tests provider-unit address,undefined
provider_tests provider-unit-tsan thread

exit $failed
