#!/bin/bash
# SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
#
# Other people's programs, killed at random: nothing is left, and the next ones work.
# timeout: 300
# lanes: uml debug
. "$(dirname "$0")/lib.sh"

rounds=$((15 / FACTOR + 3))

# Until the device has no more than it had.
settled() { [ "$(rdma resource show k0)" = "$before" ]; }

pause() { read -r -t "0.$((RANDOM % 4))$((RANDOM % 10))" <> <(:) || true; }

kill_both() { # SERVER-CMD CLIENT-CMD
	local server client
	before=$(rdma resource show k0)
	for _ in $(seq $rounds); do
		setsid bash -c "exec $1" >/dev/null 2>&1 &
		server=$!
		pause
		setsid bash -c "exec $2" >/dev/null 2>&1 &
		client=$!
		pause
		if [ $((RANDOM % 2)) = 0 ]; then
			kill -KILL $server 2>/dev/null
			pause
			kill -KILL $client 2>/dev/null
		else
			kill -KILL $client 2>/dev/null
			kill -KILL $server 2>/dev/null
		fi
		wait $server $client 2>/dev/null
		wait_until settled
	done
	return 0
}

check load_modules 30 load_modules || exit 1
add_netdev dum0 192.0.2.1/24
check link_add 20 link_add k0 dum0 || exit 1
gid=$(ibv_devinfo -d k0 -v | sed -n 's/^.*GID\[ *\([0-9]*\)\].*::ffff:192.0.2.1.*/\1/p' | sed -n 1p)
export HERALD_DEV=k0
CHECK_TAIL=10
check rc_pingpong 90 kill_both "ibv_rc_pingpong -d k0 -g $gid -n 10000000 -e" "ibv_rc_pingpong -d k0 -g $gid -n 10000000 -e 127.0.0.1"
check srq_pingpong 90 kill_both "ibv_srq_pingpong -d k0 -g $gid -n 10000000" "ibv_srq_pingpong -d k0 -g $gid -n 10000000 127.0.0.1"
check write_bw 90 kill_both "ib_write_bw -d k0 -x $gid -F -D 1000 -s 1048576 -q 4" "ib_write_bw -d k0 -x $gid -F -D 1000 -s 1048576 -q 4 127.0.0.1"
check rping 90 kill_both "rping -s -a 192.0.2.1 -C 10000000" "rping -c -a 192.0.2.1 -C 10000000"
GTEST_SECONDS=200 gtest_run herald_conformance 'KillTest.*:PeerTest.*'
check afterwards 30 herald_conformance --gtest_brief=1 --gtest_filter='RcOps.*'
check link_del 20 link_del k0
exit 0
