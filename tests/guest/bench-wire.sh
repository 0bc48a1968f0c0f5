#!/bin/bash
# SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
#
# Speed of software RDMA devices over a wire: two devices each, on the two ends of a veth pair, so that every byte goes
# through the IP stack. scripts/bench.sh starts it and says how the numbers are made. Not a test: no number fails it, only a
# run of herald or TCP that does not end well. BENCH_DEVICES, BENCH_TESTS, BENCH_RUNS and BENCH_SECONDS as in bench.sh.
# timeout: 900
# lanes: none
. "$(dirname "$0")/lib.sh"
. "$(dirname "$0")/bench/perftest.sh"

: "${BENCH_DEVICES:=herald rxe siw}" "${BENCH_TESTS:=all}" "${BENCH_RUNS:=5}" "${BENCH_SECONDS:=1}"
read -r -a devices <<<"$BENCH_DEVICES"
mapfile -t tests < <(select_tests wire "$BENCH_TESTS")
readonly MTU=9000

# set_mtu TYPE TEST: of the interfaces, before the test: that of Ethernet itself if the test's name ends in it
set_mtu() {
	local index=index_$1 mtu=$MTU end ns
	case $2 in *_1500) mtu=1500 ;; esac
	for end in a b; do
		ns=()
		[ "$1" != herald ] || ns=(-n "$1_$end")
		ip "${ns[@]}" link set "v$end${!index}" mtu "$mtu" || return 1
	done
}

# Each end in a network namespace of its own
hosts_apart() { # TYPE INDEX
	ip netns add "${1}_a" && ip -n "${1}_a" link set lo up && ip netns add "${1}_b" && ip -n "${1}_b" link set lo up || return 1
	ip link add "va$2" netns "${1}_a" type veth peer name "vb$2" netns "${1}_b" || return 1
	prepare_netdev "va$2" "10.9.$2.1/24" "$MTU" "${1}_a"
	prepare_netdev "vb$2" "10.9.$2.2/24" "$MTU" "${1}_b"
	ip netns exec "${1}_a" rdma link add "$1_a" type "$1" netdev "va$2" &&
		ip netns exec "${1}_b" rdma link add "$1_b" type "$1" netdev "vb$2"
}

# rxe has one socket, and siw resolves addresses, in the initial namespace alone: both ends are there. What the host sends to
# itself leaves by the cable all the same, and it believes what comes from there with an address of its own.
ends_here() { # TYPE INDEX
	local netdev
	veth_pair "va$2" "10.9.$2.1/24" "vb$2" "10.9.$2.2/24" "$MTU"
	for netdev in all "va$2" "vb$2"; do sysctl -qw "net.ipv4.conf.$netdev.rp_filter=0" "net.ipv4.conf.$netdev.accept_local=1"; done
	ip route add "10.9.$2.2" dev "va$2" src "10.9.$2.1" table "3${2}2"
	ip route add "10.9.$2.1" dev "vb$2" src "10.9.$2.2" table "3${2}1"
	ip rule add pref 10 from "10.9.$2.1" to "10.9.$2.2" iif lo lookup "3${2}2"
	ip rule add pref 10 from "10.9.$2.2" to "10.9.$2.1" iif lo lookup "3${2}1"
	! ip rule show pref 0 | grep -q . || { ip rule add pref 100 lookup local && ip rule del pref 0; }
	link_add "$1_a" "va$2" "$1" && link_add "$1_b" "vb$2" "$1"
}

add_pair() { # TYPE INDEX
	DEV_TYPE=$1 load_modules || return 1
	if [ "$1" = herald ]; then hosts_apart "$@"; else ends_here "$@"; fi
	ibv_devinfo -d "$1_a" && ibv_devinfo -d "$1_b"
}

# gid_of DEVICE: the index of its IPv4 GID for RoCEv2, which is the last one
gid_of() {
	local dir=/sys/class/infiniband/$1/ports/1 i
	for i in 3 2 1 0; do
		case $(cat "$dir/gids/$i") in 0000:0000:0000:0000:0000:ffff:*) echo "$i" && return ;; esac
	done
	return 1
}

side_of() { # TYPE server|client
	local end=b
	[ "$2" = server ] || end=a
	side=() options=(-d "$1_$end")
	if [ "$1" = herald ]; then side=(ip netns exec "$1_$end"); fi
	if [ "$1" = siw ]; then options+=(-R --bind_source_ip "$(end_address siw $end)"); else options+=(-x "$("${side[@]}" bash -c "$(declare -f gid_of); gid_of $1_$end")"); fi
}
end_address() { # TYPE a|b
	local index=index_$1
	if [ "$2" = a ]; then echo "10.9.${!index}.1"; else echo "10.9.${!index}.2"; fi
}
client_target() { # TYPE
	if [ "$1" = rxe ]; then echo 127.0.0.1; else end_address "$1" b; fi
}
wait_server() { # TYPE PID
	case $1 in
	siw) wait_cm_listen "$BENCH_PORT" "$2" && sleep 0.1 ;;
	rxe) wait_listen "$BENCH_PORT" "$2" ;;
	*) wait_until listens_or_gone "$2" ip netns exec "$1_b" ss -Hltn "sport = :$BENCH_PORT" && kill -0 "$2" ;;
	esac
}

# TCP over herald's own cable
tcp() { # RUN
	local log=$RESULTS/bench.tcp.$1.log server rate
	set_mtu herald tcp || { fail "tcp.$1" "no MTU" && return; }
	ip netns exec herald_b iperf3 -s -1 -p $((5201 + $1)) >/dev/null &
	server=$!
	wait_until listens_or_gone $server ip netns exec herald_b ss -Hltn "sport = :$((5201 + $1))"
	run_timed 60 "$log" ip netns exec herald_a iperf3 -c "$(end_address herald b)" -p $((5201 + $1)) -l 65536 -n "$((iterations[tcp] * 65536))" -J
	kill $server 2>/dev/null # if there was no client
	wait $server
	rate=$(python3 -c 'import json,sys; print(json.load(sys.stdin)["end"]["sum_received"]["bits_per_second"] / 8 / 2**20)' <"$log") ||
		{ fail "tcp.$1" "$(tail -n 1 "$log")" && return; }
	record limit tcp 0 tcp "$1" "$rate" MiB/s
}

# shellcheck disable=SC2020
counter() { # DEVICE NAME
	ip netns exec "$1" rdma statistic show link "$1/1" | tr -s ' \n' '\n\n' | grep -A 1 "^$2\$" | tail -n 1
}
# Of what herald has received since the last call
packets_per_skb() { # RUN
	local packets trains
	packets=$(counter herald_b wire_rx_packets) trains=$(counter herald_b wire_rx_trains)
	record limit packets_per_skb 0 packets_per_skb "$1" "$(bc <<<"scale=1; ($packets - $packets_before) / ($trains - $trains_before)")" packets
	packets_before=$packets trains_before=$trains
}

record_machine
[ ${#tests[@]} -gt 0 ] || exit 0
add_devices add_pair || exit 1
declare -A iterations
packets_before=0 trains_before=0
for test in "${tests[@]}"; do
	for device in "${present[@]}"; do
		set_mtu "$device" "${test%%$'\t'*}" || exit 1
		calibrate "$device" "$test"
	done
done
iterations[tcp]=$((${iterations[herald.wire_write_bw_64k]:-500} * 4))
for ((run = 1; run <= BENCH_RUNS; run++)); do
	echo "round $run of $BENCH_RUNS"
	for test in "${tests[@]}"; do
		for device in "${present[@]}"; do
			[ "$device.${test%%$'\t'*}" != herald.wire_write_bw_64k ] || {
				packets_before=$(counter herald_b wire_rx_packets) trains_before=$(counter herald_b wire_rx_trains)
			}
			set_mtu "$device" "${test%%$'\t'*}" || exit 1
			measure "$device" "$test" "$run"
			[ "$device.${test%%$'\t'*}" != herald.wire_write_bw_64k ] || packets_per_skb "$run"
		done
	done
	case " ${present[*]} " in *' herald '*) tcp "$run" ;; esac
done
exit 0
