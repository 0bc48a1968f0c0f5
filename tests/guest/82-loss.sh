#!/bin/bash
# SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
#
# A wire that loses, repeats, delays, reorders and damages packets (netem at both ends): reliable connections deliver the
# right data all the same, each WR once and in order, or say that their retries are used up; the counters show that it
# happened; when it is over, traffic goes on.
# HERALD_LONG=1: five minutes of each instead of some seconds.
# timeout: 500
# timeout-long: 4000
# lanes: uml
. "$(dirname "$0")/lib.sh"
. "$(dirname "$0")/wire.sh"

duration=2
[ -z "${HERALD_LONG:-}" ] || duration=300
port=18800
share=1 # of the messages, where each takes long
tmp=$(mktemp -d)

# What the programs have to agree upon goes another way.
side_wire() {
	ip link add oa type veth peer name ob netns B && prepare_netdev oa 192.0.2.1/24 && prepare_netdev ob 192.0.2.2/24 "" B
}
netem() {
	tc qdisc replace dev va root netem "$@" && on b tc qdisc replace dev vb root netem "$@"
}
netem_off() {
	tc qdisc del dev va root && on b tc qdisc del dev vb root
}

# sum COUNTER...: of both devices
sum() {
	local total=0 name host
	for name; do
		for host in a b; do total=$((total + $(counter "$host" "$name"))); done
	done
	echo "$total"
}

# round SERVER-CMD CLIENT-CMD: 0, and `good` or `given_up` is one more. Who ends first may have gone before the other
# has its last acknowledgement: then that one gives up, which is no fault.
round() {
	local server client first=0 last=0
	bash -c "exec ip netns exec B $1" >"$tmp/server" 2>&1 &
	server=$!
	SERVER_HOST=b wait_wire_listen "$port" "$server" || return 1
	bash -c "exec $2" >"$tmp/client" 2>&1 &
	client=$!
	wait -n "$server" "$client" || {
		first=$?
		kill "$server" "$client" 2>/dev/null
	}
	wait "$server" || last=$?
	wait "$client" || last=$((last + $?))
	if grep "invalid data" "$tmp/server" "$tmp/client"; then return 1; fi
	if [ "$first" = 0 ] && [ "$last" = 0 ]; then
		good=$((good + 1))
	elif gave_up; then
		[ "$first" = 0 ] || given_up=$((given_up + 1))
	else
		tail -n 5 "$tmp/server" "$tmp/client"
		return 1
	fi
}
gave_up() { grep -qE 'transport retry counter exceeded|[Ff]ailed status 12|Failed status transport retry' "$tmp/server" "$tmp/client"; }

pingpong_round() { # OPTIONS
	port=$((port + 1))
	round "ibv_rc_pingpong -d wb -g $GID_b_v4 -p $port -c $*" "ibv_rc_pingpong -d wa -g $GID_a_v4 -p $port -c $* 192.0.2.2"
}
perftest_round() { # PROGRAM OPTIONS
	local program=$1
	shift
	port=$((port + 1))
	round "$program -d wb -x $GID_b_v4 -p $port -F $*" "$program -d wa -x $GID_a_v4 -p $port -F $* 192.0.2.2"
}
data_round() {
	if python3 "$JOBDIR/guest/wire_data.py" wa "$GID_a_v4" wb "$GID_b_v4" 1024 60 RC >"$tmp/client" 2>&1; then
		good=$((good + 1))
	elif grep -q "status 12" "$tmp/client"; then
		given_up=$((given_up + 1))
	else
		cat "$tmp/client"
		return 1
	fi
}
# Each WR once and in order (wire_exact.py)
exact_round() {
	local rc=0
	python3 "$JOBDIR/guest/wire_exact.py" wa "$GID_a_v4" wb "$GID_b_v4" $((400 / share)) 60 >"$tmp/client" 2>&1 || rc=$?
	case $rc in
	0) good=$((good + 1)) ;;
	3) given_up=$((given_up + 1)) ;;
	*) cat "$tmp/client" && return 1 ;;
	esac
}
all_rounds() {
	pingpong_round -s 4096 -n $((200 / share)) && pingpong_round -s 65537 -n $((48 / share)) -m 1024 &&
		pingpong_round -s 1000000 -n 5 && perftest_round ib_write_bw -n $((100 / share)) &&
		perftest_round ib_read_bw -n $((100 / share)) && perftest_round ib_send_bw -n $((100 / share)) -e &&
		perftest_round ib_atomic_bw -n $((200 / share)) && data_round &&
		exact_round
}

# under COUNTERS NETEM-WORDS...: one of the counters has grown
under() {
	local counters=$1 before end=$((SECONDS + duration)) good=0 given_up=0
	shift
	# shellcheck disable=SC2086
	before=$(sum $counters)
	netem "$@" || return 1
	while :; do
		all_rounds || return 1
		[ "$SECONDS" -lt "$end" ] || break
	done
	netem_off || return 1
	counters a
	counters b
	# shellcheck disable=SC2086
	echo "$good good, $given_up with all retries used up; $counters: $(($(sum $counters) - before))"
	# shellcheck disable=SC2086
	[ "$(sum $counters)" -gt "$before" ] && [ "$good" -gt 0 ] && [ "$good" -ge "$given_up" ]
}

# Traffic goes on when the loss ends: it neither stops nor waits for long.
goes_on() {
	local server client before rc=0
	port=$((port + 1))
	before=$(sum retries wire_out_of_sequence)
	netem loss 2% || return 1
	on b ibv_rc_pingpong -d wb -g "$GID_b_v4" -p "$port" -s 16384 -n 100000000 >"$tmp/server" 2>&1 &
	server=$!
	SERVER_HOST=b wait_wire_listen "$port" "$server" || return 1
	ibv_rc_pingpong -d wa -g "$GID_a_v4" -p "$port" -s 16384 -n 100000000 192.0.2.2 >"$tmp/client" 2>&1 &
	client=$!
	wait_until more_than "$((before + 5))" retries wire_out_of_sequence
	netem_off
	before=$(counter a sends_completed)
	wait_until counted a sends_completed $((before + 2000))
	kill -0 "$server" && kill -0 "$client" || rc=$?
	kill "$server" "$client"
	wait
	return "$rc"
}
more_than() { # NUMBER COUNTER...
	[ "$(sum "${@:2}")" -gt "$1" ]
}
counted() { # HOST COUNTER NUMBER
	[ "$(counter "$1" "$2")" -ge "$3" ]
}

add_devices() { side_wire && device a && device b && wait_gids; }
limit=$((duration + 60))

check load_modules 30 load_modules || exit 1
check cable 20 cable || exit 1
check devices 30 add_devices || exit 1
know_gids
lost="retries wire_out_of_sequence wire_responses_lost"
check loss-1 "$limit" under "$lost" loss 1%
check loss-5 "$limit" under "$lost" loss 5%
share=4
check loss-20 $((limit * 2)) under "$lost" loss 20%
check delay "$limit" under "$lost" delay 10ms 5ms
share=1
check duplicate "$limit" under "duplicates wire_ghosts" duplicate 20%
check reorder "$limit" under "$lost" delay 2ms reorder 25% 50%
# the stack's own checksum finds most of it
check corrupt "$limit" under "$lost" corrupt 1%
share=4
check everything $((limit * 2)) under "$lost" delay 1ms 1ms loss 3% duplicate 3% corrupt 1% reorder 10%
check goes_on 60 goes_on
exit 0
