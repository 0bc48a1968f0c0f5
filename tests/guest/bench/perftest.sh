# SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
# shellcheck shell=bash
#
# For bench.sh, which sources it after lib.sh: runs one perftest pair and records what it measured.

BENCH_PORT=20000 # five for each test, since run_test works in a subshell

# select_tests BENCHMARK "all | NAME...": the lines of tests.txt, without the first column
select_tests() {
	awk -F '\t' -v OFS='\t' -v benchmark="$1" -v names=" $2 " '
		$1 == benchmark && NF == 5 && (names == " all " || index(names, " " $2 " ")) { print $2, $3, $4, $5 }
	' "$JOBDIR/guest/bench/tests.txt"
}

record_machine() {
	printf 'BENCH {"lane": "%s", "kind": "machine", "kernel": "%s", "cpu": "%s", "cpus": %d, "seconds": %s}\n' "$LANE" \
		"$(uname -r)" "$(sed -n 's/^model name[^:]*: //p' /proc/cpuinfo | sed -n 1p)" "$(nproc)" "$BENCH_SECONDS"
}

# add_devices FUNCTION: calls it with each kind of `devices` and its number, from 1 on (index_KIND); which of them are there
# is in `present`. Status 1: none.
add_devices() {
	local i
	present=()
	# shellcheck disable=SC2154 # `devices` is the job's
	for i in "${!devices[@]}"; do
		if check "add_${devices[i]}" 60 "$1" "${devices[i]}" $((i + 1)); then present+=("${devices[i]}"); fi
		declare -g "index_${devices[i]}=$((i + 1))"
	done
	[ ${#present[@]} -gt 0 ]
}

record() { # KIND TEST SIZE DEVICE RUN VALUE UNIT
	printf 'BENCH {"lane": "%s", "kind": "%s", "test": "%s", "size": %d, "device": "%s", "run": %d, "value": %s, "unit": "%s"}\n' \
		"$LANE" "$1" "$2" "$3" "$4" "$5" "$6" "$7"
}

# A peer that cannot do a test leaves a gap in the table; herald must not.
no_result() { # DEVICE TEST RUN WHY
	echo "no result: $1 $2 run $3: $4"
	[ "$1" != herald ] || fail "$2.$3" "$4"
	printf 'BENCH {"lane": "%s", "kind": "gap", "test": "%s", "device": "%s", "run": %d}\n' "$LANE" "$2" "$1" "$3"
}

# perftest_pair DEVICE SIZE MESSAGES PROGRAM [OPTION...]: the client's report on standard output. Of the job that sources this:
#	side_of DEVICE server|client	the command's beginning (`side`: where it runs) and options (`options`)
#	client_target DEVICE		what the client is told to connect to
#	wait_server DEVICE PID		until it listens
perftest_pair() {
	local device=$1 size=$2 messages=$3 program=("${@:4}") server rc=0 log=$RESULTS/bench.server side=() options=()
	program+=(-F -p "$BENCH_PORT" -s "$size" -n "$messages")
	side_of "$device" server
	timeout -s KILL $((60 * FACTOR)) "${side[@]}" "${program[@]}" "${options[@]}" >"$log" 2>&1 &
	server=$!
	side_of "$device" client
	wait_server "$device" $server &&
		timeout -s KILL $((60 * FACTOR)) "${side[@]}" "${program[@]}" "${options[@]}" "$(client_target "$device")" 2>&1 || rc=$?
	[ $rc = 0 ] || kill $server 2>/dev/null
	wait $server || rc=$?
	[ $rc = 0 ] || tail -n 3 "$log"
	return $rc
}

# The last row of a report: `VALUE UNIT`; bandwidth and rate are averages, latency the median. It is 0 or
# infinite, and no value, if perftest could not find out how fast its clock runs, as happens on a busy machine.
report_value() { # TEST SIZE
	awk -v test="$1" -v size="$2" '
		$1 == size && NF >= 5 { average = $4; rate = $5; typical = $5 }
		END {
			value = test ~ /_bw/ ? average : test ~ /_rate/ ? rate : typical
			if (value !~ /^[0-9.]+$/ || value == 0) exit 1
			print value, test ~ /_bw/ ? "MiB/s" : test ~ /_rate/ ? "M/s" : "us"
		}'
}

# run_test DEVICE LINE MESSAGES: prints `VALUE UNIT`, or why there is none. Three tries, since connecting may fail for
# perftest's own reasons.
run_test() {
	local name size program log
	IFS=$'\t' read -r name size _ program <<<"$2"
	log=$RESULTS/bench.$1.$name.log
	for _ in 1 2 3; do
		# shellcheck disable=SC2086 # a program and its options
		perftest_pair "$1" "$size" "$3" $program >"$log" && report_value "$name" "$size" <"$log" && return
		BENCH_PORT=$((BENCH_PORT + 1))
	done
	grep -v '^[ -]*$' "$log" | tail -n 2 | tr '\n' ' '
	return 1
}

# calibrate DEVICE LINE: a first run, short, says how many messages fill the time; it counts for nothing else.
calibrate() {
	local name size least answer
	IFS=$'\t' read -r name size least _ <<<"$2"
	BENCH_PORT=$((BENCH_PORT + 5))
	answer=$(run_test "$1" "$2" "$least") || {
		no_result "$1" "$name" 0 "$answer"
		return
	}
	iterations[$1.$name]=$(awk -v size="$size" -v least="$least" -v seconds="$BENCH_SECONDS" '{
		each = $2 == "MiB/s" ? size / 1048576 / $1 : $2 == "M/s" ? 1e-6 / $1 : 2e-6 * $1
		n = int(seconds / each)
		print (n > least ? n : least)
	}' <<<"$answer")
}

measure() { # DEVICE LINE RUN
	local name size answer
	IFS=$'\t' read -r name size _ <<<"$2"
	[ -n "${iterations[$1.$name]:-}" ] || return 0
	BENCH_PORT=$((BENCH_PORT + 5))
	if answer=$(run_test "$1" "$2" "${iterations[$1.$name]}"); then
		record device "$name" "$size" "$1" "$3" "${answer% *}" "${answer#* }"
	else
		no_result "$1" "$name" "$3" "$answer"
	fi
}
