#!/bin/bash
# SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
#
# heraldctl: each command as a user types it, what it prints as text and as JSON, its exit statuses, and what it says when
# something is wrong (one line: what, which object, what to do).
# timeout: 240
# lanes: uml stock
. "$(dirname "$0")/lib.sh"

MODULE=$JOBDIR/modules/herald.ko
OUT=$RESULTS/$JOB.out ERR=$RESULTS/$JOB.err

# ctl STATUS ARG...: heraldctl has to end with this status; its output is in OUT and ERR.
ctl() {
	local want=$1 rc=0
	shift
	heraldctl "$@" >"$OUT" 2>"$ERR" || rc=$?
	cat "$OUT" "$ERR"
	[ $rc = "$want" ] && return
	echo "heraldctl $*: status $rc, not $want"
	return 1
}
out_has() { grep -q -- "$1" "$OUT" || { echo "stdout has no '$1'"; return 1; }; }
# says TEXT...: stderr is one line, and has each of these.
says() {
	local text
	[ "$(wc -l <"$ERR")" = 1 ] || { echo "stderr is not one line"; return 1; }
	for text; do grep -qF -- "$text" "$ERR" || { echo "stderr does not say '$text'"; return 1; }; done
}
# json EXPRESSION: OUT is JSON, and the expression is true of it (j).
json() { python3 -c 'import json, sys; j = json.load(open(sys.argv[1])); sys.exit(not eval(sys.argv[2]))' "$OUT" "$1" || { echo "JSON: not $1"; return 1; }; }

# --- the module -------------------------------------------------------------------------------------------------

not_loaded() {
	[ ! -e /sys/module/herald ] || rmmod herald || return 1 # as the job before left it
	ctl 4 unload && says "not loaded" || return 1
	ctl 1 link add h0 dum0 && says "h0" "heraldctl load" || return 1
	ctl 4 hold h0 1 && says "not loaded" "heraldctl load" || return 1
	ctl 0 show && [ ! -s "$OUT" ] || return 1
	ctl 0 --json show && json 'j == []'
}

# A file whose vermagic is another kernel's, in the same number of bytes.
other_kernel() {
	python3 - "$MODULE" /tmp/other.ko <<-'END' || return 1
		import re, sys
		data = open(sys.argv[1], 'rb').read()
		magic = re.search(rb'vermagic=[^\0]*', data).group()
		other = b'vermagic=' + b'3.2.1-other'.ljust(len(magic) - 9, b'x')
		assert len(other) == len(magic)
		open(sys.argv[2], 'wb').write(data.replace(magic, other))
	END
	ctl 1 load --module /tmp/other.ko && says /tmp/other.ko "3.2.1-other" "$(uname -r) is running"
}

bad_loads() {
	ctl 4 load --module /tmp/no.ko && says /tmp/no.ko || return 1
	echo nonsense >/tmp/nonsense.ko
	ctl 1 load --module /tmp/nonsense.ko && says /tmp/nonsense.ko || return 1
	ctl 2 load --module "$MODULE" frobnicate=1 && says frobnicate "$MODULE" || return 1
	ctl 2 load --module "$MODULE" frobnicate && says "PARAM=VALUE" || return 1
	[ ! -e /sys/module/herald ]
}

load() {
	ctl 1 load --module "$MODULE" wire=nonsense && [ ! -e /sys/module/herald ] || return 1
	ctl 0 load --module "$MODULE" wire=off && grep -x off /sys/module/herald/parameters/wire && ctl 0 unload || return 1
	ctl 0 --json load --module "$MODULE" provoke=1 && json "j['loaded'] == '$MODULE' and j['version']" || return 1
	[ -e /sys/module/herald ] || return 1
	ctl 5 load --module "$MODULE" && says "loaded already" "unload" || return 1
	try_module rdma_ucm
}

# --- links and devices --------------------------------------------------------------------------------------------

links() {
	ctl 4 link add h0 nosuch0 && says h0 nosuch0 || return 1
	ctl 0 link add h0 dum0 || return 1
	[ -e /sys/class/infiniband/h0 ] || return 1
	ctl 5 link add h0 dum0 && says h0 taken || return 1
	ctl 0 link list && out_has '^h0 *ACTIVE *dum0$' || return 1
	ctl 0 --json link list && json "j == [{'device': 'h0', 'state': 'ACTIVE', 'interface': 'dum0'}]" || return 1
	ctl 4 link del nosuch && says nosuch "link list"
}

show() {
	ctl 0 show && out_has '^h0: ACTIVE, on dum0' && out_has 'GID .*ffff:c000:0201 RoCE v2 dum0' || return 1
	ctl 0 show h0 --json && json "len(j) == 1 and j[0]['device'] == 'h0' and j[0]['users'] == []" || return 1
	json "any(g['gid'].endswith('c000:0201') for g in j[0]['gids'])" || return 1
	ctl 4 show h9 && says h9 || return 1
	ctl 2 show h0 nonsense && says nonsense cqs
}

tables() {
	local table
	ctl 0 show h0 cqs && out_has '^device *cqn *pid' || return 1
	ctl 0 --json show cqs && json 'isinstance(j, list)' || return 1
	for table in qps srqs; do
		ctl 0 --json show h0 $table && json 'isinstance(j, list)' || return 1
	done
}

# --- control ------------------------------------------------------------------------------------------------------

# use_device: something that has a CQ and waits for an event; its pid is in USER_PID, the CQ's number in CQN.
use_device() {
	ibv_rc_pingpong -d h0 -g 0 -e >/dev/null 2>&1 &
	USER_PID=$!
	wait_until has_cq
}
has_cq() {
	CQN=$(awk -v pid="$USER_PID" 'NR > 1 && $2 == pid { print $1 }' /sys/kernel/debug/herald/h0/cqs)
	[ -n "$CQN" ]
}
end_use() {
	kill -KILL "$USER_PID"
	wait "$USER_PID" 2>/dev/null
	true
}

# column NAME: of that CQ in the table
column() { ctl 0 --json show h0 cqs && json "[q['$1'] for q in j if q['cqn'] == $CQN] == [$2]"; }

control() {
	local command
	use_device || return 1
	ctl 0 show h0 && out_has "users: ibv_rc_pingpong (pid $USER_PID)" || return 1
	column pid "$USER_PID" || return 1
	ctl 0 hold h0 "$CQN" || return 1
	for command in release release-before-arm release-after-arm; do ctl 0 $command h0 "$CQN" 1 || return 1; done
	ctl 5 reorder h0 "$CQN" 42 && says h0 "CQ $CQN" "resume h0 $CQN first" || return 1
	ctl 0 resume h0 "$CQN" || return 1
	ctl 0 --json reorder h0 "$CQN" 42 && json "j == {'device': 'h0', 'done': 'reorder $CQN 42'}" || return 1
	ctl 0 resume h0 "$CQN" || return 1
	ctl 0 event h0 "$CQN" 1 || return 1
	column events 1 || return 1
	end_use
}

# --- asynchronous events ------------------------------------------------------------------------------------------

port_is() { grep -q "$1" /sys/class/infiniband/h0/ports/1/state; }

doctor_sees_held() { heraldctl doctor | grep -q "^note *device h0: CQ $CQN holds back"; }

provoke() {
	local qpn
	use_device || return 1
	ctl 0 --json show h0 qps || return 1
	qpn=$(python3 -c 'import json, sys; print(*[q["qpn"] for q in json.load(sys.stdin) if q["pid"] == int(sys.argv[1])])' "$USER_PID" <"$OUT")
	ctl 0 hold h0 "$CQN" && ctl 0 provoke h0 qp-fatal "$qpn" || return 1
	# its receives are flushed, into a CQ that is held
	wait_until doctor_sees_held || return 1
	ctl 0 --json show h0 qps && json "[q['state'] for q in j if q['qpn'] == $qpn] == ['ERR']" || return 1
	ctl 1 provoke h0 qp-fatal "$qpn" && says h0 "qp-fatal $qpn" "QP $qpn" || return 1
	end_use
	ctl 0 provoke h0 port-err && port_is DOWN || return 1
	ctl 0 --json provoke h0 port-active && port_is ACTIVE && json "j['done'] == 'provoke port-active'"
}

bad_provoke() {
	ctl 4 provoke h0 qp-fatal 16777215 && says h0 "no QP 16777215" "show h0" || return 1
	ctl 4 provoke h0 srq-err 16777215 && says h0 "no SRQ 16777215" || return 1
	ctl 4 provoke h9 port-err && says h9 || return 1
	ctl 6 provoke h0 wq-fatal 1 && says wq-fatal "no work queues" || return 1
	ctl 2 provoke h0 qp-nonsense 1 && says qp-nonsense qp-fatal || return 1
	ctl 2 provoke h0 qp-fatal && says "QP" "show DEVICE qps" || return 1
	ctl 2 provoke h0 qp-fatal one && says one || return 1
	ctl 2 provoke h0 port-err 1 && says port-err
}

allow() {
	ctl 0 --json allow h0 off && json "j == {'device': 'h0', 'provoking_allowed': False}" || return 1
	ctl 0 show h0 && out_has 'provoking: not allowed' || return 1
	ctl 3 provoke h0 port-err && says h0 "heraldctl allow h0 on" && port_is ACTIVE || return 1
	ctl 3 hold h0 1 && says h0 "heraldctl allow h0 on" || return 1
	ctl 0 allow h0 on && ctl 0 provoke h0 lid-change || return 1
	ctl 2 allow h0 perhaps && says perhaps || return 1
	ctl 4 allow h9 on && says h9
}

# the list has one fault, and this is true of it (f)
armed() { ctl 0 --json fault h0 list && json "[bool($1) for f in j] == [True]"; }

fault() {
	use_device || return 1
	local qpn
	ctl 0 --json show h0 qps || return 1
	qpn=$(python3 -c 'import json, sys; print(*[q["qpn"] for q in json.load(sys.stdin) if q["pid"] == int(sys.argv[1])])' "$USER_PID" <"$OUT")
	ctl 0 --json fault h0 list && json 'j == []' || return 1
	ctl 0 --json fault h0 message delay --usec 5 --permille 10 --seed 18446744073709551615 --qpn "$qpn" &&
		json "j['done'] == 'fault message delay permille 10 seed 18446744073709551615 qpn $qpn usec 5'" || return 1
	armed "f['kind'] == 'message' and f['what'] == 'delay' and f['value'] == 5 and f['qpn'] == $qpn and f['when'] == 'permille'" || return 1
	armed "f['number'] == 10 and f['seed'] == 2**64 - 1 and f['left'] is None and f['struck'] == 0" || return 1
	ctl 0 fault h0 list && out_has '^device *id *kind' && out_has '^h0 .* message *delay' || return 1
	ctl 0 fault h0 clear && ctl 0 fault h0 rnr --qpn "$qpn" --times 3 && armed "f['kind'] == 'rnr' and f['left'] == 3" || return 1
	ctl 0 fault h0 clear && ctl 0 fault h0 wr rem-access-err --qpn "$qpn" --nth 2 && armed "f['what'] == 'rem-access-err'" || return 1
	ctl 0 fault h0 clear && ctl 0 fault h0 recv loc-prot-err --qpn "$qpn" && armed "f['kind'] == 'recv' and f['number'] == 1" || return 1
	end_use
	# it went with its QP
	ctl 0 --json fault h0 list && json 'j == []' || return 1
	ctl 0 fault h0 verb alloc-pd ENODATA --times 2 && armed "f['value'] == 61 and f['left'] == 2" || return 1
	ibv_rc_pingpong -d h0 -g 0 >/dev/null 2>&1 && { echo "a program that can have no PD works"; return 1; }
	armed "f['struck'] == 1 and f['left'] == 1" || return 1
	ctl 0 fault h0 clear "$(python3 -c 'import json, sys; print(json.load(sys.stdin)[0]["id"])' <"$OUT")" || return 1
	ctl 0 --json fault h0 list && json 'j == []'
}

bad_fault() {
	ctl 2 fault h0 message drop && says "'drop'" lose corrupt || return 1
	ctl 2 fault h0 frobnicate && says frobnicate message || return 1
	ctl 2 fault h0 message lose --nth one && says one || return 1
	ctl 2 fault h0 rnr && says "--qpn" || return 1
	ctl 2 fault h0 verb create-qp EWHAT && says EWHAT || return 1
	ctl 1 fault h0 message lose --permille 1001 && says h0 "permille 1001" docs/faults.md || return 1
	ctl 4 fault h0 wr general-err --qpn 16777215 && says h0 "no QP 16777215" || return 1
	ctl 4 fault h0 clear 4294967295 && says h0 "no fault 4294967295" "fault h0 list" || return 1
	ctl 4 fault h9 list && says h9 || return 1
	ctl 0 allow h0 off && ctl 3 fault h0 message lose && says h0 "heraldctl allow h0 on" && ctl 0 allow h0 on
}

bad_control() {
	ctl 4 hold h0 77777 && says h0 "CQ 77777" "heraldctl show h0" || return 1
	ctl 4 hold h9 1 && says h9 || return 1
	ctl 2 hold h0 five && says five || return 1
	ctl 2 hold h0 && says CQN || return 1
	ctl 2 frobnicate && says "heraldctl --help" || return 1
	ctl 2 && says "heraldctl --help" || return 1
	ctl 4 --json hold h0 77777 && json "j['exit'] == 4 and 'CQ 77777' in j['error']" || return 1
	ctl 0 --version && out_has '^[0-9.]*$'
}

as_nobody() { setpriv --reuid 1000 --regid 1000 --clear-groups env PATH="$PATH" heraldctl "$@"; }
# nobody STATUS ARG...: the same as ctl, without any privilege
nobody() {
	local want=$1 rc=0
	shift
	as_nobody "$@" >"$OUT" 2>"$ERR" || rc=$?
	cat "$OUT" "$ERR"
	[ $rc = "$want" ] || { echo "status $rc, not $want"; return 1; }
}

not_root() {
	nobody 0 show && out_has '^h0: ACTIVE' || return 1
	nobody 3 show h0 cqs && says h0 "be root" || return 1
	nobody 3 hold h0 1 && says h0 "be root" || return 1
	nobody 3 link add h1 dum0 && says h1 "be root" || return 1
	nobody 3 link del h0 && says h0 "be root" || return 1
	nobody 3 unload && says "be root" || return 1
	[ -e /sys/class/infiniband/h0 ]
}

# --- watch and doctor ---------------------------------------------------------------------------------------------

no_instance() { ! compgen -G '/sys/kernel/tracing/instances/heraldctl-*' >/dev/null; }

# Kernels without event tracing, and modules without the tracepoint, are told apart from herald not being there.
watch_refused() {
	ctl 6 watch && no_instance || return 1
	if [ -e /sys/kernel/tracing/instances ]; then says tracepoint; else says "no event tracing"; fi
}

# start_watch ARG...: its pid in WATCH_PID, its output in /tmp/watch; it watches already.
start_watch() {
	heraldctl "$@" >/tmp/watch 2>/tmp/watch.err &
	WATCH_PID=$!
	wait_until watches || return 1
}
watches() { grep -qs 1 "/sys/kernel/tracing/instances/heraldctl-$WATCH_PID/events/herald/herald_async_event/enable" || ! kill -0 "$WATCH_PID"; }
# watched EXPRESSION: of the lines that were printed, each an object
watched() { python3 -c 'import json, sys; j = [json.loads(l) for l in open("/tmp/watch")]; sys.exit(not eval(sys.argv[1]))' "$1" || { cat /tmp/watch /tmp/watch.err; return 1; }; }

# Natural and provoked ones, in order; of this device only; once each.
watching() {
	start_watch --json watch h0 --count 3 || return 1
	ip link set dum0 down
	wait_until port_is DOWN
	ip link set dum0 up
	wait_until port_is ACTIVE
	ctl 0 provoke h0 lid-change || return 1
	wait $WATCH_PID || return 1
	watched "[(e['device'], e['event'], e['object'], e['cause'], e['verdict']) for e in j] == [('h0', n, 'port', c, 'raised') for n, c in
		(('port-err', 'natural'), ('port-active', 'natural'), ('lid-change', 'provoked'))]" || return 1
	watched "[e['time'] for e in j] == sorted(e['time'] for e in j) and abs(j[0]['time'] - $(date +%s)) < 100" || return 1
	no_instance
}

# The owner's pid and name; as text; with the deliveries; another device's are left out.
watching_objects() {
	use_device || return 1
	start_watch watch --all --count 2 || return 1
	ctl 0 provoke h0 cq-err "$CQN" || return 1
	wait $WATCH_PID || return 1
	cat /tmp/watch
	grep -q "^[0-9:.]* h0 cq-err cq $CQN provoked pid $USER_PID (ibv_rc_pingpong)$" /tmp/watch || return 1
	start_watch watch h9 --seconds 1 || return 1
	ctl 0 provoke h0 lid-change || return 1
	wait $WATCH_PID && [ ! -s /tmp/watch ] || return 1
	end_use
}

# The instance goes however it ends; if it was killed, with the next watch.
watch_ends() {
	local signal
	for signal in INT TERM HUP; do
		start_watch watch || return 1
		kill -$signal $WATCH_PID
		wait $WATCH_PID || return 1
		no_instance || return 1
	done
	start_watch watch || return 1
	kill -KILL $WATCH_PID
	wait $WATCH_PID
	! no_instance || return 1
	ctl 0 watch --seconds 0.1 && no_instance
}

# What herald does on purpose is told from what is broken.
doctor_provoked() {
	ctl 0 provoke h0 port-err && port_is DOWN || return 1
	ctl 1 doctor && out_has '^finding device h0.*on purpose' && out_has 'remedy: heraldctl provoke h0 port-active' || return 1
	ctl 0 provoke h0 port-active && port_is ACTIVE || return 1
	add_netdev dum1 192.0.2.9/24
	ctl 0 link add h1 dum1 && ctl 0 allow h1 on && ctl 0 provoke h1 device-fatal || return 1
	ctl 1 doctor && out_has '^finding device h1: it had a fatal error' &&
		out_has 'remedy: heraldctl link del h1; heraldctl link add h1 dum1' || return 1
	ctl 0 link del h1 && ip link del dum1 && ctl 0 doctor
}

doctor() {
	# what the guest has set up is well
	ctl 0 doctor && out_has '^ok *kernel' && out_has '^ok *module' && out_has '^ok *provider' && out_has '^ok *device h0' &&
		out_has '^all well' || return 1
	ctl 0 --json doctor && json "j['findings'] == 0 and len(j['checks']) >= 11" || return 1
	ip link set dum0 down
	wait_until grep -q DOWN /sys/class/infiniband/h0/ports/1/state
	ctl 1 doctor && out_has '^finding device h0' && out_has 'remedy: ip link set' || return 1
	ip link set dum0 up
	wait_until grep -q ACTIVE /sys/class/infiniband/h0/ports/1/state
	ctl 0 doctor && out_has "^ok *udp-port: 4791 is herald's" || return 1
	# in a namespace without a device of ours, somebody else can have the port, and no link can be made
	ip netns add other && ip -n other link set lo up
	ip netns exec other python3 -c 'import signal, socket
s = socket.socket(socket.AF_INET, socket.SOCK_DGRAM); s.bind(("127.0.0.1", 4791)); print("bound", flush=True); signal.pause()' >/tmp/bound &
	local python=$! rc=0
	wait_until test -s /tmp/bound
	ip netns exec other heraldctl --json doctor >/tmp/doctor.json
	python3 -c "import json
found = [c['text'] for c in json.load(open('/tmp/doctor.json'))['checks'] if c['verdict'] == 'finding']
assert '4791 (RoCE v2) is used by python3 (pid $python)' in found, found" || rc=1
	ip netns exec other heraldctl link add h9 lo 2>/tmp/link.err && rc=1
	grep 'h9 on lo: somebody else has UDP port 4791' /tmp/link.err || rc=1
	kill $python
	ip netns del other
	chmod 600 /dev/infiniband/rdma_cm
	ctl 1 doctor && out_has '^finding dev: /dev/infiniband/rdma_cm has mode 600' || rc=1
	chmod 666 /dev/infiniband/rdma_cm
	return $rc
}

# --- the end ------------------------------------------------------------------------------------------------------

unload_in_use() {
	use_device || return 1
	ctl 5 unload && says "ibv_rc_pingpong (pid $USER_PID)" h0 "unload --force" || return 1
	[ -e /sys/class/infiniband/h0 ] || return 1
	ibv_asyncwatch -d h0 >/tmp/asyncwatch 2>&1 &
	local watcher=$!
	wait_until is_user $watcher
	ctl 0 --json unload --force && json "j == {'unloaded': True, 'deleted': ['h0']}" || return 1
	[ ! -e /sys/module/herald ] || return 1
	# it was told
	wait_until grep -q DEVICE_FATAL /tmp/asyncwatch
	kill -KILL $watcher
	wait $watcher
	end_use
}
is_user() { heraldctl --json show h0 | grep -q "\"pid\": $1\b"; }

unload() {
	ctl 0 load --module "$MODULE" && ctl 0 link add h0 dum0 && ctl 0 link del h0 || return 1
	[ ! -e /sys/class/infiniband/h0 ] || return 1
	ctl 0 unload && out_has '^unloaded$' && [ ! -e /sys/module/herald ]
}

try_module ib_uverbs
trace_without_names
add_netdev dum0 192.0.2.1/24
check not_loaded 20 not_loaded
check other_kernel 20 other_kernel
check bad_loads 20 bad_loads
check load 30 load || exit 1
check links 20 links || exit 1
check show 20 show
check tables 20 tables
check control 30 control
check bad_control 30 bad_control
check provoke 30 provoke
check bad_provoke 20 bad_provoke
check fault 30 fault
check bad_fault 20 bad_fault
check allow 20 allow
check not_root 20 not_root
if [ -e /sys/kernel/tracing/events/herald/herald_async_event ]; then
	check watching 20 watching
	check watching_objects 20 watching_objects
	check watch_ends 20 watch_ends
else
	check watch_refused 20 watch_refused
fi
check doctor 30 doctor
check doctor_provoked 30 doctor_provoked
check unload_in_use 40 unload_in_use
check unload 30 unload
# the jobs that follow find it as it was
[ -e /sys/module/herald ] || load_modules
exit 0
