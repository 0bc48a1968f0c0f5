#!/bin/bash
# SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
#
# perftest: every program, plain and with events, RDMA CM, SRQ, UC, UD and many QPs. Few iterations: whether it works,
# not how fast.
# timeout: 600
# lanes: uml
. "$(dirname "$0")/lib.sh"

n=${ITERS:-$((200 / FACTOR + 20))}
port=18700

# wait_asleep PORT PID: a listener is in that state before rdma_listen(3) is over; then perftest sleeps until somebody comes.
wait_asleep() { wait_cm_listen "$@" && wait_until asleep_or_gone "$2" && kill -0 "$2"; }
asleep_or_gone() { # PID
	local state
	read -r _ _ state _ 2>/dev/null </proc/"$1"/stat || return 0
	[ "$state" != R ] && [ "$state" != D ]
}

run() { # NAME PROGRAM OPTIONS...
	local name=$1 program=$2 wait=wait_listen
	shift 2
	port=$((port + 1))
	case " $* " in *' -R '*) wait=wait_asleep ;; esac
	CLIENT_WAIT=$wait PORT=$port client_server "$name" 40 "$program -d perf0 -x $gid -p $port -n $n -F $*" \
		"$program -d perf0 -x $gid -p $port -n $n -F $* 192.0.2.1"
}

check load_modules 30 load_modules || exit 1
add_netdev dum0 192.0.2.1/24
check link_add 20 link_add perf0 dum0 || exit 1
gid=$(ibv_devinfo -d perf0 -v | sed -n 's/^.*GID\[ *\([0-9]*\)\].*::ffff:192.0.2.1.*/\1/p' | sed -n 1p)
gid=${gid:-1}

for kind in write read send atomic; do
	for what in bw lat; do
		program=ib_${kind}_$what
		run "$program" "$program"
		# a write completes at its sender alone, so perftest offers no events for it
		[ $kind = write ] || run "$program-events" "$program" -e
		run "$program-cm" "$program" -R
		# the latency tests take one QP only
		[ $what = lat ] || run "$program-q8" "$program" -q 8
	done
done
run ib_send_bw-srq ib_send_bw --use-srq -q 4
run ib_send_lat-srq ib_send_lat --use-srq
for what in bw lat; do
	run ib_send_$what-uc ib_send_$what -c UC
	run ib_send_$what-ud ib_send_$what -c UD
	run ib_send_$what-ud-cm ib_send_$what -c UD -R
	run ib_write_$what-uc ib_write_$what -c UC
done
run ib_write_bw-64k ib_write_bw -s 65536
run ib_write_bw-1m ib_write_bw -s 1048576
run ib_send_bw-sizes ib_send_bw -a
run ib_send_bw-both ib_send_bw -b
run ib_write_bw-both ib_write_bw -b
run ib_write_bw-inline ib_write_bw -s 64 -I 64
check link_del 20 link_del perf0
exit 0
