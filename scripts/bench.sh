#!/bin/bash
# SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
#
# Measures herald, rxe and siw on one host, and what that host can do at best, in one run; prints a table and leaves it
# in build/bench/bench.md (Markdown) and bench.txt, with the single results in bench.jsonl.
#
#	scripts/bench.sh full|short|report
#
# BENCH_DEVICES, BENCH_TESTS, BENCH_RUNS, BENCH_SECONDS and BENCH_QPS (tests/guest/bench.sh) change what is run, BENCH_LANES
# ("stock uml") where; `report` makes the tables again from the results that are there. docs/benchmark.md explains.

. "$(dirname "$0")/lib.sh"

mode=${1:-full}
case $mode in
full) runs=5 seconds=1 ;;
short) runs=3 seconds=0.3 ;;
report) ;;
*) die "usage: $0 full|short|report" ;;
esac
out=$BUILD/bench

# run LANE JOB VARIABLE...: the results go to LANE.jsonl; what the lane says is shown without them.
run() {
	local lane=$1 job=$2 rc=0
	shift 2
	say "benchmark in lane $lane"
	"$TOP/scripts/run-lane.sh" "$lane" "${peer[@]}" BENCH_DEVICES="$devices" BENCH_RUNS="${BENCH_RUNS:-$runs}" \
		BENCH_SECONDS="${BENCH_SECONDS:-$seconds}" "$@" "$job" </dev/null |
		tee "$out/$lane.$job.log" | grep --line-buffered -v '^BENCH ' || rc=$?
	sed -n 's/^BENCH //p' "$out/$lane.$job.log" >>"$out/$lane.jsonl"
	grep -q '^BENCH ' "$out/$lane.$job.log" || die "lane $lane measured nothing; log: $out/$lane.$job.log"
	return $rc
}

mkdir -p "$out"
status=0
if [ "$mode" != report ]; then
	devices=${BENCH_DEVICES:-herald rxe siw} peer=()
	# without herald among them, nothing of the project has to be built but the programs
	case " $devices " in
	*' herald '*) ;;
	*)
		peer=("DEV_TYPE=${devices%% *}")
		"$TOP/scripts/build-user.sh" >&2
		;;
	esac
	rm -f "$out"/*.jsonl
	for lane in ${BENCH_LANES:-stock uml}; do
		if [ "$lane" = uml ]; then
			run uml bench.sh BENCH_TESTS="${BENCH_TESTS:-write_bw_1m}" BENCH_QPS=0 || status=1
		else
			HERALD_MODULES=$("$TOP/scripts/build-siw.sh") || die "no siw"
			export HERALD_MODULES
			run "$lane" bench.sh BENCH_TESTS="${BENCH_TESTS:-all}" BENCH_QPS="${BENCH_QPS:-1000}" || status=1
			run "$lane" bench-wire.sh BENCH_TESTS="${BENCH_TESTS:-all}" || status=1
			unset HERALD_MODULES
		fi
	done
fi
cat "$out"/stock.jsonl "$out"/uml.jsonl 2>/dev/null >"$out/bench.jsonl.new" || true
mv "$out/bench.jsonl.new" "$out/bench.jsonl"
"$TOP/scripts/bench_table.py" --markdown "$out/bench.jsonl" >"$out/bench.md"
"$TOP/scripts/bench_table.py" "$out/bench.jsonl" | tee "$out/bench.txt"
exit $status
