#!/bin/bash
# SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
#
# Measures what polling and arming a CQ cost in user space, natively, without a device: herald's provider beside librxe,
# which is built from rdma-core's source. Prints a table and leaves it in build/bench/native.md (Markdown) and native.txt,
# with Google Benchmark's results in native.json and native-shared.json.
#
#	scripts/bench-native.sh
#
# BENCH_CORE (the last one) says where, BENCH_REPETITIONS (31) how often. docs/benchmark.md explains.

. "$(dirname "$0")/lib.sh"
. "$(dirname "$0")/user-lib.sh"

core=${BENCH_CORE:-$(($(nproc) - 1))}
name=bench-native
out=$BUILD/bench

measure() { # FILE [VARIABLE=VALUE]...; the repetitions of all take turns, so that what drifts hits all of them
	local file=$1
	shift
	inside "$name" env "$@" taskset -c "$core" /herald/build/tests/user/bench/herald_poll_bench \
		--benchmark_repetitions="${BENCH_REPETITIONS:-31}" --benchmark_min_time=0.02s \
		--benchmark_enable_random_interleaving=true --benchmark_filter="${FILTER:-.}" --benchmark_format=json \
		>"$out/$file" 2>"$BUILD/log/$name-run.log" || die "see build/log/$name-run.log"
}

mkdir -p "$out"
build_in_tree "native benchmark" "$name" herald_poll_bench "CMakeLists.txt include user tests/user/bench"
say "measuring on core $core"
measure native.json
FILTER=herald_cq measure native-shared.json HERALD_BENCH_SHARED=1
"$TOP/scripts/bench_native_table.py" --markdown "$out/native.json" "$out/native-shared.json" >"$out/native.md"
"$TOP/scripts/bench_native_table.py" "$out/native.json" "$out/native-shared.json" | tee "$out/native.txt"
