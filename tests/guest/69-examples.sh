#!/bin/bash
# SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
#
# The examples with a bug each (docs/examples/README.md): the commands there expose it every time, and the corrected program
# stands them. What a program has come to is seen in the device's tables.
# timeout: 200
. "$(dirname "$0")/lib.sh"

debugfs=/sys/kernel/debug/herald/ex0
rounds=$((5 / FACTOR + 2))

# begin EXAMPLE [--fixed]: runs it, with `line` as its input and `out` as its output.
begin() {
	out=$RESULTS/$JOB.$1${2:-}.out
	rm -f /run/in
	mkfifo /run/in
	"$1" ex0 ${2:-} </run/in >"$out" 2>&1 &
	pid=$!
	exec {input}>/run/in
}
line() { local i; for i in $(seq "${1:-1}"); do echo "$i" >&"$input"; done; } # [HOW-MANY]
end_of_input() { exec {input}>&-; }
printed() { grep -qx "$1" "$out"; }
until_printed() { wait_until printed "$1"; }
# stays_asleep: it sleeps, and goes on sleeping. (What must not happen cannot be waited for.)
asleep() { grep -q 'State:[[:space:]]*S' "/proc/$pid/status"; }
stays_asleep() {
	wait_until asleep && ! timeout $((1 + FACTOR)) tail --pid=$pid -f /dev/null && asleep
}
stop() {
	end_of_input
	kill -KILL $pid
	wait $pid
} 2>/dev/null

# column ENTRIES NAME: of the line of the program's CQ with so many entries.
column() {
	awk -v pid=$pid -v entries="$1" -v name="$2" '
		NR == 1 { for (i = 1; i <= NF; i++) at[$i] = i }
		$at["pid"] == pid && $at["cqe"] == entries { print $at[name] }' $debugfs/cqs
}
is() { [ "$(column "$1" "$2")" = "$3" ]; } # ENTRIES NAME VALUE
entries() { sed -n "s/.*$1: a CQ of \([0-9]*\).*/\1/p" "$out"; } # receives or sends
control() { echo "$*" >$debugfs/control; }

# --- acks_wrong_cq --------------------------------------------------------------------------------------------------

wrong_acks() { # [--fixed]
	local sends
	begin acks_wrong_cq "${1:-}"
	until_printed 'sends: .*'
	sends=$(entries sends)
	line 3
	until_printed 'message 3'
	control event "$(column "$sends" cqn)" 3
	wait_until acks_are_seen "$sends" "${1:-}" || return 1
	end_of_input
	if [ -n "${1:-}" ]; then
		wait $pid && printed 'all is destroyed'
	else
		# the kernel's half of the CQ is gone, the program still waits for acks
		wait_until is "$sends" cqn '' && stays_asleep && ! printed 'all is destroyed'
	fi
}
acks_are_seen() { # ENTRIES [--fixed]
	local got acked
	got=$(column "$1" events_read) acked=$(column "$1" events_acked)
	if [ -n "${2:-}" ]; then [ "$got" -ge 4 ] && [ "$acked" = $((got - 1)) ]; else [ "$got" -ge 4 ] && [ "$acked" = 0 ]; fi
}

# --- polls_before_arming --------------------------------------------------------------------------------------------

late_message() { # [--fixed]
	local cq cqn
	begin polls_before_arming "${1:-}"
	until_printed 'receives: .*'
	cq=$(entries receives)
	cqn=$(column "$cq" cqn)
	line
	until_printed 'message 1'
	control hold "$cqn"
	line 2
	wait_until is "$cq" held 2
	control release-before-arm "$cqn" 1
	control release "$cqn" 1
	until_printed 'message 2'
	wait_until is "$cq" held 0
	if [ -n "${1:-}" ]; then
		until_printed 'message 3'
	else
		wait_until is "$cq" armed next && stays_asleep && is "$cq" unpolled 1 && ! printed 'message 3' || return 1
		# the next message wakes it, and it finds both
		control resume "$cqn"
		line
		until_printed 'message 3' && until_printed 'message 4'
	fi
	control resume "$cqn"
	end_of_input
	wait $pid && printed 'the last message'
}

# --- ignores_last_wqe -----------------------------------------------------------------------------------------------

broken_qp() { # [--fixed]
	local qpn
	begin ignores_last_wqe "${1:-}"
	until_printed 'connected: .*'
	line
	until_printed 'message 1'
	qpn=$(sed -n 's/connected: QP //p' "$out")
	control provoke qp-fatal "$qpn" || return 1
	if [ -n "${1:-}" ]; then
		wait_until connected_twice
		line
		until_printed 'message 2'
		end_of_input
		wait $pid && printed 'end of input'
	else
		wait_until in_error "$qpn"
		line
		stays_asleep && ! printed 'message 2'
	fi
}
in_error() { rdma resource show qp | grep "link ex0/1 lqpn $1 .*state ERR"; }
connected_twice() { [ "$(grep -c '^connected' "$out")" = 2 ]; }

# --------------------------------------------------------------------------------------------------------------------

every_time() { # WHAT [--fixed]
	local i rc
	for i in $(seq $rounds); do
		rc=0
		"$@" || rc=$?
		stop
		[ $rc = 0 ] || { cat "$out" && cat $debugfs/cqs && return $rc; }
	done
}

check load_modules 30 load_modules || exit 1
add_netdev dum0 192.0.2.1/24
check link_add 20 link_add ex0 dum0 || exit 1
check acks_wrong_cq 60 every_time wrong_acks
check acks_wrong_cq_fixed 60 every_time wrong_acks --fixed
check polls_before_arming 60 every_time late_message
check polls_before_arming_fixed 60 every_time late_message --fixed
check ignores_last_wqe 60 every_time broken_qp
check ignores_last_wqe_fixed 60 every_time broken_qp --fixed
check link_del 20 link_del ex0
exit 0
