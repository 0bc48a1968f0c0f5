#!/bin/bash
# SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
#
# The tracepoints of events: what fires, with which fields, for causes that are natural and for those that are provoked. Those
# of the wire: every packet that one host has sent, the other has received.
# timeout: 180
# lanes: stock
. "$(dirname "$0")/lib.sh"
. "$(dirname "$0")/wire.sh"

tracing=/sys/kernel/tracing
debugfs=/sys/kernel/debug/herald/tr0

check load_modules 30 load_modules || exit 1
trace_without_names
add_netdev dum0 192.0.2.1/24
check link_add 20 link_add tr0 dum0 || exit 1
export HERALD_DEV=tr0

events_are_there() { [ -d $tracing/events/herald/herald_async_event ] && [ -d $tracing/events/herald/herald_comp_event ]; }
check events_are_there 10 events_are_there || exit 1

# traced CMD...: runs it with the tracepoints on; what they said is in $RESULTS/trace afterwards.
traced() {
	local rc=0
	echo >$tracing/trace
	echo 1 >$tracing/events/herald/enable
	"$@" || rc=$?
	echo 0 >$tracing/events/herald/enable
	cat $tracing/trace >"$RESULTS/trace"
	cat "$RESULTS/trace" # into the log
	return $rc
}

# fired N PATTERN: exactly N lines match
fired() {
	local n
	n=$(grep -cE "$2" "$RESULTS/trace")
	[ "$n" = "$1" ] || { echo "$n lines, not $1, match $2"; return 1; }
}

provoke() { echo "provoke $*" >$debugfs/control; }

port_provoked() {
	traced provoke lid-change || return 1
	fired 1 'herald_async_event: device=tr0 event=11 name=lid-change object=port number=1 cause=provoked pid=0 verdict=raised' &&
		fired 1 'name=lid-change .*verdict=delivered' && fired 2 herald_async_event:
}
check port_provoked 20 port_provoked

port_natural() {
	traced ip link set dum0 down || return 1
	fired 1 'herald_async_event: device=tr0 event=10 name=port-err object=port number=1 cause=natural pid=0 verdict=raised'
	local rc=$?
	ip link set dum0 up
	return $rc
}
check port_natural 20 port_natural

# a program whose QP gets a bad rkey: the event names the QP and the process
natural_qp() {
	traced herald_conformance --gtest_brief=1 --gtest_filter=AsyncEvent.OneAccessErrorPerTransition || return 1
	fired 2 'herald_async_event: device=tr0 event=3 name=qp-access-err object=qp number=[1-9][0-9]* cause=natural pid=[1-9][0-9]* verdict=raised' &&
		fired 2 'name=qp-access-err .*verdict=delivered' &&
		fired 0 cause=provoked
}
check natural_qp 60 natural_qp

# CQ_ERR and what follows from it (QP_FATAL of two QPs) are all of one cause
provoked_cq() {
	traced herald_conformance --gtest_brief=1 --gtest_filter=Provoke.Cases54_CqError || return 1
	fired 1 'event=0 name=cq-err object=cq number=[1-9][0-9]* cause=provoked pid=[1-9][0-9]* verdict=raised' &&
		fired 2 'event=1 name=qp-fatal object=qp number=[1-9][0-9]* cause=provoked pid=[1-9][0-9]* verdict=raised' &&
		fired 0 'herald_async_event: .*cause=natural'
}
check provoked_cq 60 provoked_cq

# LAST_WQE_REACHED comes of the flush, in another context perhaps
provoked_last_wqe() {
	traced herald_conformance --gtest_brief=1 --gtest_filter=Provoke.Cases54_LastWqeReached || return 1
	fired 1 'name=qp-last-wqe-reached object=qp .*cause=provoked .*verdict=raised' && fired 0 'herald_async_event: .*cause=natural'
}
check provoked_last_wqe 60 provoked_last_wqe

# each verdict about a completion event
comp_events() {
	traced herald_conformance --gtest_brief=1 --gtest_filter='CompEvent.OneShot:CompEvent.Cases7_SolicitedMessages' || return 1
	local verdict
	for verdict in raised delivered unarmed unsolicited; do
		grep -qE "herald_comp_event: device=tr0 cqn=[1-9][0-9]* pid=[1-9][0-9]* verdict=$verdict" "$RESULTS/trace" ||
			{ echo "no $verdict"; return 1; }
	done
	# what is raised is delivered, but for what its CQ's destruction takes along
	fired "$(grep -c 'verdict=raised' "$RESULTS/trace")" 'verdict=delivered'
}
check comp_events 60 comp_events

check link_del 20 link_del tr0

# --- the wire ---------------------------------------------------------------------------------------------------------

wire_devices() {
	[ -d $tracing/events/herald/herald_wire_send ] && [ -d $tracing/events/herald/herald_wire_receive ] &&
		cable 4200 && device a && device b && wait_gids
}

# packets EVENT PATTERN: how many, in all lines that match
packets() {
	grep -E "$1: .*$2" "$RESULTS/trace" | sed -n 's/.* packets=\([0-9]*\) .*/\1/p' | awk '{ n += $1 } END { print n + 0 }'
}
# as_many EVENT PATTERN N
as_many() {
	local n
	n=$(packets "$1" "$2")
	[ "$n" = "$3" ] || { echo "$n packets, not $3, in $1 with $2"; return 1; }
}
write_to_b() { # MESSAGES OPTIONS...
	local n=$1
	shift
	WIRE_PORT=$((WIRE_PORT + 1))
	between_body b "ib_write_bw -d wb -x $GID_b_v4 -p $WIRE_PORT -F -n $n $*" \
		"ib_write_bw -d wa -x $GID_a_v4 -p $WIRE_PORT -F -n $n $* $ADDRESS_b"
}

# five WRITEs of three packets: each one's first two, and the last one, and what comes of them
wire_traffic() {
	local to_b
	traced write_to_b 5 -s 2500 -m 1024 || return 1
	to_b=$(sed -n 's/.*herald_wire_send: device=wa .* dest_qpn=\([0-9]*\) opcode=RC_RDMA_WRITE_FIRST .*/\1/p' "$RESULTS/trace" | sort -u)
	fired 5 'herald_wire_send: device=wa qpn=[1-9][0-9]* dest_qpn=[1-9][0-9]* opcode=RC_RDMA_WRITE_FIRST psn=[0-9]+ packets=2 bytes=2096 verdict=sent' &&
		fired 5 'herald_wire_send: device=wa qpn=[1-9][0-9]* dest_qpn=[1-9][0-9]* opcode=RC_RDMA_WRITE_LAST psn=[0-9]+ packets=1 bytes=468 verdict=sent' &&
		as_many herald_wire_receive "device=wb dest_qpn=$to_b opcode=RC_RDMA_WRITE_.* verdict=delivered" 15 &&
		as_many herald_wire_receive "device=wa .*opcode=RC_ACKNOWLEDGE .*verdict=delivered" \
			"$(packets herald_wire_send "device=wb qpn=$to_b .*opcode=RC_ACKNOWLEDGE .*verdict=sent")" &&
		fired 0 'verdict=(repeated|bad-icrc|no-qp)'
}

# one attempt's packets are damaged, and sent again
wire_damage() {
	echo "fault message corrupt nth 1" >/sys/kernel/debug/herald/wa/control
	traced write_to_b 5 -s 600 -m 1024 -t 1 || return 1
	fired 1 'herald_wire_send: device=wa .* opcode=RC_RDMA_WRITE_ONLY .* packets=1 bytes=632 verdict=damaged' &&
		fired 1 'herald_wire_receive: device=wb .* opcode=RC_RDMA_WRITE_ONLY .* packets=1 bytes=632 verdict=bad-icrc' &&
		fired 1 'herald_wire_send: device=wa .* opcode=RC_RDMA_WRITE_ONLY .* packets=1 bytes=632 verdict=repeated' &&
		fired 5 'herald_wire_receive: device=wb .* opcode=RC_RDMA_WRITE_ONLY .* verdict=delivered'
}

# nothing is traced when nobody looks
wire_silent() {
	echo >$tracing/trace
	write_to_b 5 -s 600 || return 1
	cat $tracing/trace >"$RESULTS/trace"
	fired 0 herald_wire
}

if check wire_devices 60 wire_devices; then
	know_gids
	check wire_traffic 60 wire_traffic
	check wire_damage 60 wire_damage
	check wire_silent 60 wire_silent
fi
exit 0
