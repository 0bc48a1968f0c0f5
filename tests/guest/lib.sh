# SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
# shellcheck shell=bash
#
# For the job scripts that run inside a lane's guest (tests/guest/NN-name.sh). A job starts with
#
#	#!/bin/bash
#	# SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
#	#
#	# What it tests.
#	# timeout: 60			seconds in the uml lane; slower lanes multiply it; JOB_SECONDS replaces it
#	# timeout-long: 600		optional; with HERALD_LONG=1, for a job that takes longer then
#	# lanes: uml debug stock	optional; without it the job runs in these; pair is another
#	. "$(dirname "$0")/lib.sh"
#
# and says what it found with pass, fail, skip, check, gtest_run and kunit_collect. A job that ends with another status
# than 0, that times out or that says nothing has failed. Test names get the job's name in front: NN-name/NAME.
#
# Set by the lane: LANE (uml, debug, stock, pair), FACTOR (how much slower than uml; time-outs are multiplied by it),
# DEV_TYPE (herald; rxe or siw to try a script on another device), JOB, RESULTS (folder for logs), JOBDIR (the shared
# folder: modules/, user/ (= build/user), guest/, tests/).

: "${JOBDIR:=/herald/job}" "${RESULTS:=$JOBDIR/results}" "${FACTOR:=1}" "${DEV_TYPE:=herald}" "${LANE:=none}"
JOB=${JOB:-$(basename "$0" .sh)}
export JOBDIR RESULTS FACTOR DEV_TYPE LANE JOB
# the project's own programs
export PATH=$JOBDIR/user/bin:$JOBDIR/user/install/bin:$JOBDIR/user/install/usr/bin:$PATH
# shellcheck disable=SC2034 # for the jobs
RPING=$JOBDIR/guest/rping.sh

# --- results ----------------------------------------------------------------------------------------------------

result() { # STATUS NAME [REASON]
	local line="$1 $JOB/${2// /_}"
	[ -z "${3:-}" ] || line+=": $(printf %s "$3" | tr '\n\t' '  ' | cut -c 1-300)"
	printf '%s\n' "$line" >>"$RESULTS/results"
	printf '%s\n' "$line"
}
pass() { result PASS "$1"; }
fail() { result FAIL "$1" "${2:-failed}"; }
skip() { result SKIP "$1" "${2:-no reason given}"; }

# run_timed SECONDS LOG CMD...: runs CMD (a command or a function) with its output in LOG (- for none: where it goes now).
# Returns its status, or 124 if it took longer than SECONDS x FACTOR; then its process group is killed.
run_timed() {
	local seconds=$(($1 * FACTOR)) log=$2 pipe rc pid
	shift 2
	[ "$log" = - ] || : >"$log"
	exec {pipe}<> <(:)
	set -m
	(
		set +e
		if [ "$log" = - ]; then ("$@"); else ("$@") >>"$log" 2>&1; fi
		echo $? >&"$pipe"
	) </dev/null &
	pid=$!
	set +m
	disown "$pid" # no word of the shell about how it ended
	if ! read -r -t "$seconds" rc <&"$pipe"; then
		rc=124
		# what hangs in the kernel shows here
		echo w >/proc/sysrq-trigger
		kill -KILL -- "-$pid" 2>/dev/null # not waited for: it may be stuck in the kernel
	fi
	exec {pipe}>&-
	return "$rc"
}

# check NAME SECONDS CMD...: a test that passes if CMD succeeds in time. Status 77 means skipped (the last line of its
# output says why). The output goes to a log; its end is shown on failure.
check() {
	local name=$1 seconds=$2 log rc=0 start=$SECONDS
	shift 2
	log=$RESULTS/$JOB.${name//[^A-Za-z0-9._-]/_}.log
	run_timed "$seconds" "$log" "$@" || rc=$?
	printf '%4d s %s\n' $((SECONDS - start)) "$JOB/$name" >>"$RESULTS/times-of-checks.txt"
	case $rc in
	0) pass "$name" ;;
	77) skip "$name" "$(tail -n 1 "$log")" ;;
	*)
		echo "--- $name: $*"
		tail -n "${CHECK_TAIL:-30}" "$log"
		echo "---"
		if [ $rc = 124 ]; then
			fail "$name" "no end after $((seconds * FACTOR)) s: $(tail -n 1 "$log")"
		else
			fail "$name" "status $rc: $(grep -v '^[[:space:]]*$' "$log" | tail -n 1)"
		fi
		return 1
		;;
	esac
}

# Before events are traced: without the names of the commands, for which the kernel would patch its scheduler while that runs.
# Under QEMU's emulation a CPU may see the breakpoint of such a patch when it is over ("Oops: int3").
trace_without_names() {
	local option=/sys/kernel/tracing/options/record-cmd
	[ ! -e $option ] || echo 0 >$option
}

# gtest_run BINARY [FILTER]: one result per GoogleTest case, JOB/Suite.Case. GTEST_SECONDS (300) bounds the whole run;
# GTEST_LOG names its log where one program runs several times.
gtest_run() {
	local binary=$1 filter=${2:-*} log rc=0
	log=$RESULTS/$JOB.$(basename "$binary")${GTEST_LOG:+.$GTEST_LOG}.log
	[ -x "$binary" ] || binary=$(command -v "$binary") || {
		fail "$1" "no such program"
		return 1
	}
	run_timed "${GTEST_SECONDS:-300}" "$log" "$binary" --gtest_color=no --gtest_filter="$filter" || rc=$?
	# a case's end is the line with its time; the summary repeats the names without one
	awk '
		function name(line) { sub(/^\[[^]]*\] /, "", line); sub(/ \([0-9]+ ms\)$/, "", line); sub(/, where .*/, "", line); return line }
		/^\[ RUN      \] / { running = name($0); why = ""; next }
		/^\[       OK \] .* \([0-9]+ ms\)$/ { print "PASS\t" name($0); running = ""; next }
		/^\[  SKIPPED \] .* \([0-9]+ ms\)$/ { print "SKIP\t" name($0) "\t" why; running = ""; next }
		/^\[  FAILED  \] .* \([0-9]+ ms\)$/ { print "FAIL\t" name($0) "\t" why; running = ""; next }
		running != "" && NF && length(why) < 250 { if ($0 !~ /: Skipped$/) why = why (why == "" ? "" : " ") $0 }
		END { if (running != "") print "DIED\t" running "\t" why }
	' "$log" >"$log.cases"
	local status name why bad=0 count=0
	while IFS=$'\t' read -r status name why; do
		count=$((count + 1))
		case $status in
		PASS) pass "$name" ;;
		SKIP) skip "$name" "$why" ;;
		FAIL) fail "$name" "$why" && bad=1 ;;
		DIED)
			if [ $rc = 124 ]; then fail "$name" "hangs"; else fail "$name" "$(basename "$binary") died with status $rc: $why"; fi
			bad=1
			;;
		esac
	done <"$log.cases"
	if [ $count = 0 ] || { [ $rc != 0 ] && [ $bad = 0 ]; }; then
		fail "$(basename "$binary")" "status $rc after $count cases: $(tail -n 1 "$log")"
		bad=1
	fi
	[ $bad = 0 ] || {
		echo "--- end of $(basename "$binary")'s output"
		tail -n "${CHECK_TAIL:-60}" "$log"
		echo "---"
	}
	return $bad
}

# pyverbs_run DEVICE MODULE [GID-INDEX]: one result per test of that module (test_cq ...) of rdma-core's own tests,
# JOB/module.Class.test. One module at a time: together they stop at test_fork.
pyverbs_run() {
	local log=$RESULTS/$JOB.pyverbs-$2.log rc=0 status name why count=0 bad=0
	run_timed "${PYVERBS_SECONDS:-120}" "$log" env PYTHONWARNINGS=ignore \
		python3 /opt/pyverbs-tests/tests/run_tests.py --dev "$1" ${3:+--gid "$3"} -v "tests.$2" || rc=$?
	while IFS=$'\t' read -r status name why; do
		count=$((count + 1))
		case $status in
		ok) pass "$name" ;;
		skipped) skip "$name" "$why" ;;
		*) fail "$name" "$status; $(basename "$log") says why" && bad=1 ;;
		esac
	done < <(awk '
		# "test_x (tests.test_cq.CQTest.test_x)", perhaps a line of what it is about, then " ... ok"
		match($0, /^test_[A-Za-z0-9_]+ \(tests\.[^)]*\)/) {
			if (id != "") print "no end\t" id
			id = $2; gsub(/^\(tests\.|\)$/, "", id)
		}
		id != "" && match($0, /(^|\.\.\. )(ok|FAIL|ERROR|skipped .*)$/) {
			end = substr($0, RSTART); sub(/^\.\.\. /, "", end); why = ""
			if (end ~ /^skipped/) { why = end; sub(/^skipped ./, "", why); sub(/.$/, "", why); end = "skipped" }
			print end "\t" id "\t" why; id = ""
		}
		END { if (id != "") print "no end\t" id }
	' "$log")
	if [ $count = 0 ] || { [ $rc != 0 ] && [ $bad = 0 ]; }; then
		fail "$2" "status $rc after $count tests: $(tail -n 1 "$log")"
		bad=1
	fi
	[ $bad = 0 ] || {
		echo "--- end of $2"
		tail -n "${CHECK_TAIL:-60}" "$log"
		echo "---"
	}
	return $bad
}

# kunit_collect [SUITE-GLOB]: one result per KUnit case of the loaded modules, JOB/suite.case.
kunit_collect() {
	local file suite found=0 status name why
	for file in /sys/kernel/debug/kunit/${1:-*}/results; do
		[ -e "$file" ] || continue
		suite=$(basename "$(dirname "$file")")
		cp "$file" "$RESULTS/$JOB.kunit-$suite.log"
		while IFS=$'\t' read -r status name why; do
			found=1
			case $status in
			PASS) pass "$suite.$name" ;;
			SKIP) skip "$suite.$name" "$why" ;;
			FAIL) fail "$suite.$name" "$why" ;;
			esac
		done < <(awk '
			# cases are indented once, a parametrized case'"'"'s parameters twice
			/^    (not )?ok [0-9]+ / {
				status = $1 == "not" ? "FAIL" : "PASS"; line = $0; reason = why; why = ""
				sub(/^ *(not )?ok [0-9]+ (- )?/, "", line)
				if (line ~ / # SKIP/) { status = "SKIP"; reason = line; sub(/.* # SKIP ?/, "", reason); sub(/ # SKIP.*/, "", line) }
				sub(/ # .*/, "", line)
				print status "\t" line "\t" (status == "PASS" ? "" : reason)
				next
			}
			/^    # .*: (EXPECTATION|ASSERTION) FAILED/ { getline more; why = $0 " " more; sub(/^ *# /, "", why); gsub(/\t/, " ", why) }
		' "$file")
	done
	[ $found = 1 ] || {
		fail kunit "no KUnit results under /sys/kernel/debug/kunit"
		return 1
	}
}

# ktap_collect MODULE [PREFIX]: one result per line of the KTAP that a test module left in debugfs, JOB/PREFIXname; what
# its messages in the kernel's log say about a failure.
ktap_collect() {
	local line name why found=0
	while read -r line; do
		name=$(sed 's/^\(not \)\{0,1\}ok [0-9]* //; s/ #.*//' <<<"$line")
		case $line in
		'# '*) echo "$1: ${line#\# }" ;;
		'not ok '*)
			found=1
			why=$(dmesg | grep "$1: # $name: " | sed -n 1p)
			fail "${2:-}$name" "${why:-$(dmesg | grep "$1: #" | tail -n 1)}"
			;;
		'ok '*) found=1 && pass "${2:-}$name" ;;
		esac
	done <"/sys/kernel/debug/$1/results"
	[ $found = 1 ] || fail "$1" "no results"
}

# --- modules and devices ----------------------------------------------------------------------------------------

# load_module NAME [PARAM...]: from the job folder (with what it depends on) if it is there, else the kernel's own.
load_module() {
	local name=$1 file depends dependency
	shift
	[ ! -d "/sys/module/${name//-/_}" ] || return 0
	file=$JOBDIR/modules/$name.ko
	[ -e "$file" ] || file=$JOBDIR/modules/${name//_/-}.ko
	if [ -e "$file" ]; then
		depends=$(modinfo -F depends "$file")
		for dependency in ${depends//,/ }; do load_module "$dependency" || return 1; done
		insmod "$file" "$@"
	else
		modprobe "$name" "$@"
	fi
}

# try_module NAME: what may be built in.
try_module() { load_module "$1" 2>/dev/null || true; }

# load_modules: the RDMA core's user interfaces and the module of DEV_TYPE; herald with leave to provoke events.
# WIRE, CRC: how it uses the wire, and what computes its CRCs (the module's parameters); the latter must be what is in use then.
load_modules() {
	local module=$DEV_TYPE
	try_module ib_uverbs
	try_module rdma_ucm
	try_module ib_umad
	case $module in
	rxe) module=rdma_rxe ;;
	herald) set -- provoke=1 ${WIRE:+"wire=$WIRE"} ${CRC:+"crc=$CRC"} "$@" ;;
	esac
	load_module "$module" "$@" || return 1
	[ "$module" != herald ] || [ -z "${CRC:-}" ] || grep -x "$CRC" /sys/module/herald/parameters/crc
}

link_add() { rdma link add "$1" type "${3:-$DEV_TYPE}" netdev "$2"; } # NAME NETDEV [TYPE]
link_del() { rdma link del "$1"; }

# add_netdev NAME ADDRESS/BITS [TYPE [MTU]]: a dummy (or other) interface with addresses, ready for use at once.
add_netdev() {
	try_module "${3:-dummy}"
	ip link add "$1" type "${3:-dummy}" && prepare_netdev "$1" "$2" "${4:-}"
}

# prepare_netdev NAME ADDRESS/BITS [MTU] [NETNS]: up, no duplicate address detection to wait for.
prepare_netdev() {
	local ns=()
	[ -z "${4:-}" ] || ns=(ip netns exec "$4")
	"${ns[@]}" sysctl -qw "net.ipv6.conf.$1.accept_dad=0" "net.ipv6.conf.$1.router_solicitations=0"
	[ -z "${3:-}" ] || "${ns[@]}" ip link set "$1" mtu "$3"
	"${ns[@]}" ip link set "$1" up
	"${ns[@]}" ip addr add "$2" dev "$1"
}

# veth_pair A ADDRESS/BITS B ADDRESS/BITS [MTU [NETNS-OF-B]]
veth_pair() {
	try_module veth
	ip link add "$1" type veth peer name "$3" || return 1
	[ -z "${6:-}" ] || {
		ip netns add "$6" 2>/dev/null
		ip link set "$3" netns "$6"
		ip -n "$6" link set lo up
	}
	prepare_netdev "$1" "$2" "${5:-}"
	prepare_netdev "$3" "$4" "${5:-}" "${6:-}"
}

# nfs_serve FOLDER: exports FOLDER (a tmpfs will do) as the NFSv4 root over RDMA port 20049. A fresh NFSv4 server refuses
# opens for 90 s, unless nfsdcld tells it that there are no clients from before. There may be some: an NFSv4.0 client takes no
# leave, and after a restart nfsd may not find nfsdcld. So the wait is ended.
nfs_serve() {
	try_module rpcrdma
	mkdir -p /run/rpcbind
	mountpoint -q /proc/fs/nfsd || { try_module nfsd && mount -t nfsd nfsd /proc/fs/nfsd; } || return 1
	exportfs -o rw,fsid=0,no_root_squash,insecure,async "*:$1" || return 1
	mkdir -p /run/rpc_pipefs /var/lib/nfs/nfsdcld
	mountpoint -q /run/rpc_pipefs || mount -t rpc_pipefs rpc_pipefs /run/rpc_pipefs
	rpcbind -w
	nfsdcld
	rpc.nfsd --no-udp 2 && rpc.mountd && echo "rdma 20049" >/proc/fs/nfsd/portlist && nfs_end_grace
}
nfs_end_grace() { # "busy": it has ended, or is about to
	echo Y >/proc/fs/nfsd/v4_end_grace || true
} 2>/dev/null
nfs_stop() {
	rpc.nfsd 0
	exportfs -ua
	killall -q rpc.mountd rpcbind nfsdcld
}
# nfs_mount ADDRESS PATH FOLDER [VERSION]: nfsd listens at addresses of both kinds
nfs_mount() {
	local server=$1 proto=rdma
	case $1 in *:*) server=[$1] proto=rdma6 ;; esac
	mount -t nfs -o "proto=$proto,port=20049,vers=${4:-4.2},nolock" "$server:$2" "$3"
}

# client_server NAME SECONDS SERVER-CMD CLIENT-CMD: two shell commands; passes if both succeed. The server gets the time
# to listen: the client starts once `CLIENT_WAIT PORT PID` returns (wait_listen, or wait_cm_listen for RDMA CM servers).
client_server() {
	check "$1" "$2" client_server_body "$3" "$4"
}
# Who fails ends the other, which may wait for a message that does not come any more.
client_server_body() {
	local server client='' first='' rc=0
	bash -c "exec $1" &
	server=$!
	"${CLIENT_WAIT:-wait_listen}" "${PORT:-18515}" $server || rc=$?
	if [ $rc = 0 ]; then
		bash -c "exec $2" &
		client=$!
		wait -n -p first "$server" "$client" || rc=$?
	fi
	if [ $rc != 0 ]; then
		kill "$server" $client 2>/dev/null
		wait "$server" $client
		[ "$first" != "$server" ] || echo "the server ended first, with status $rc"
		return $rc
	fi
	wait "$client" || rc=$?
	wait "$server" || rc=$?
	return $rc
}

# wait_until CMD...: until CMD succeeds; the time-out is the caller's (check).
wait_until() {
	until "$@"; do read -r -t 0.1 <> <(:) || true; done
}

# wait_listen PORT [PID]: until a TCP socket listens on PORT, or PID is gone.
wait_listen() { wait_until listens_or_gone "${2:-$$}" ss -Hltn "sport = :$1" && kill -0 "${2:-$$}"; }
# wait_cm_listen PORT [PID]: the same for an RDMA CM listener.
wait_cm_listen() { wait_until listens_or_gone "${2:-$$}" cm_listener "$1" && kill -0 "${2:-$$}"; }
cm_listener() { rdma resource show cm_id | grep "state LISTEN.*:$1\b"; }
listens_or_gone() { # PID CMD...: CMD prints something, or PID is gone
	! kill -0 "$1" 2>/dev/null || [ -n "$("${@:2}")" ]
}
