#!/bin/bash
# SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
#
# Same-host speed of software RDMA devices against each other and against what the machine can do; scripts/bench.sh
# starts it and says how the numbers are made. Not a test: no number fails it, only a herald run that does not end well.
#
#	BENCH_DEVICES	the devices, by link type ("herald rxe siw")
#	BENCH_TESTS	lines of bench/tests.txt, by name ("all")
#	BENCH_RUNS	rounds (5); every round takes each device once through each test, and then the limits
#	BENCH_SECONDS	about how long a run lasts (1)
#	BENCH_QPS	queue pairs whose memory is measured (1000; 0: none)
# timeout: 900
# lanes: none
. "$(dirname "$0")/lib.sh"
. "$(dirname "$0")/bench/perftest.sh"

: "${BENCH_DEVICES:=herald rxe siw}" "${BENCH_TESTS:=all}" "${BENCH_RUNS:=5}" "${BENCH_SECONDS:=1}" "${BENCH_QPS:=1000}"
read -r -a devices <<<"$BENCH_DEVICES"
mapfile -t tests < <(select_tests same_host "$BENCH_TESTS")

# Every device has its own interface and subnet, because RDMA CM picks the device by address.
add_device() { # TYPE INDEX
	local type=$1 index=$2
	# rxe has the RoCEv2 port; both ends are on this host
	DEV_TYPE=$type WIRE=off load_modules
	veth_pair "veth$index" "10.9.$index.1/24" "peer$index" "10.9.$index.2/24" 9000
	link_add "bench_$type" "veth$index" "$type"
	ibv_devinfo -d "bench_$type"
}

# Both programs use the same device.
side_of() { options=(-d "bench_$1" -R); }
client_target() {
	local index=index_$1
	echo "10.9.${!index}.1"
}
# The state says LISTEN a little before a connection is accepted, and perftest's client does not survive a rejection.
wait_server() { wait_cm_listen "$BENCH_PORT" "$2" && sleep 0.1; }

run_limits() { # RUN
	local test size name value unit
	while read -r test size name value unit; do
		record limit "$test" "$size" "$name" "$1" "$value" "$unit"
	done < <(bench_limits "$(bc <<<"scale=2; $BENCH_SECONDS / 4")")
}

# The same two processes wake each other through completion channels and through eventfds.
event_pingpong() { # DEVICE RUN
	local log=$RESULTS/bench.$1.event_pingpong.$2.log size name value unit
	run_timed 120 "$log" bench_event_pingpong "bench_$1" || {
		no_result "$1" event_pingpong "$2" "$(tail -n 1 "$log")"
		return
	}
	while read -r _ size name value unit; do
		case $name in
		channel) record device event_pingpong "$size" "$1" "$2" "$value" "$unit" ;;
		eventfd) record limit event_pingpong 0 eventfd_pair "$2" "$value" "$unit" ;;
		esac
	done < <(grep '^event_pingpong' "$log")
}

measure_memory() { # TYPE
	local line log=$RESULTS/bench.$1.qp_memory.log
	# a process maps at most 48 pairs of siw
	run_timed 120 "$log" bench_qp_memory "bench_$1" "$BENCH_QPS" ||
		{ [ "$1" != herald ] && run_timed 120 "$log" bench_qp_memory "bench_$1" $((BENCH_QPS / 25)); } || {
		no_result "$1" qp_memory 0 "$(tail -n 1 "$log")"
		return
	}
	line=$(tail -n 1 "$log")
	printf 'BENCH {"lane": "%s", "kind": "memory", "device": "%s", %s}\n' "$LANE" "$1" "$line"
}

add_devices add_device || exit 1

record_machine
if [ "$BENCH_QPS" -gt 0 ]; then
	for device in "${present[@]}"; do measure_memory "$device"; done
fi
declare -A iterations
for test in "${tests[@]}"; do
	for device in "${present[@]}"; do calibrate "$device" "$test"; done
done
for ((run = 1; run <= BENCH_RUNS; run++)); do
	echo "round $run of $BENCH_RUNS"
	for test in "${tests[@]}"; do
		for device in "${present[@]}"; do measure "$device" "$test" "$run"; done
	done
	case " ${tests[*]} " in
	*send_lat_event*) for device in "${present[@]}"; do event_pingpong "$device" "$run"; done ;;
	esac
	run_limits "$run"
done
for device in "${present[@]}"; do check "del_$device" 30 link_del "bench_$device"; done
exit 0
