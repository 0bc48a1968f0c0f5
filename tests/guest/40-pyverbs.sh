#!/bin/bash
# SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
#
# rdma-core's own pyverbs suite, module by module. Each skip must be on a list with its reason (tests/skips/), and each
# line of the lists must be a skip; at least PYVERBS_LEAST tests have to pass.
# timeout: 900
. "$(dirname "$0")/lib.sh"

suite=/opt/pyverbs-tests
runner=$(dirname "$0")/pyverbs_run.py
: "${PYVERBS_LEAST:=103}"
lines=$RESULTS/$JOB.lines

run_module() { # MODULE
	local module=$1 rc=0 log=$RESULTS/$JOB.$1.log what name reason started=''
	run_timed 120 "$log" bash -c "cd $suite && exec python3 $runner $suite $module --dev pyv0 --gid $gid 2>$log.err" || rc=$?
	while IFS=$'\t' read -r what name reason; do
		case $what in
		START) started=$name ;;
		PASS) pass "$name" && started='' ;;
		SKIP) skip "$name" "$reason" && started='' ;;
		FAIL) fail "$name" "$reason" && started='' ;;
		*) continue ;;
		esac
		printf '%s\t%s\t%s\n' "$what" "$name" "$reason" >>"$lines"
	done <"$log"
	if [ -n "$started" ]; then
		if [ $rc = 124 ]; then fail "$started" "hangs"; else fail "$started" "died, status $rc"; fi
	elif [ $rc != 0 ]; then
		tail -n 20 "$log.err"
		fail "$module" "status $rc: $(tail -n 1 "$log.err")"
	fi
}

judge() {
	local lists=("$JOBDIR/tests/skips/pyverbs-common.txt")
	[ ! -e "$JOBDIR/tests/skips/pyverbs-$LANE.txt" ] || lists+=("$JOBDIR/tests/skips/pyverbs-$LANE.txt")
	python3 "$runner" --judge "$lines" "${lists[@]}"
}

enough() {
	local n
	n=$(grep -c '^PASS' "$lines")
	echo "$n tests passed, at least $PYVERBS_LEAST must"
	[ "$n" -ge "$PYVERBS_LEAST" ]
}

check load_modules 30 load_modules || exit 1
# two interfaces that see each other: the RDMA CM tests want one with a neighbour
veth_pair veth0 198.51.100.1/24 veth1 198.51.100.2/24 4200
ip addr add 2001:db8:1::1/64 dev veth0 nodad
check link_add 20 link_add pyv0 veth0 || exit 1
gid=$(ibv_devinfo -d pyv0 -v | sed -n 's/^.*GID\[ *\([0-9]*\)\].*::ffff:198.51.100.1.*/\1/p' | sed -n 1p)
gid=${gid:-1}
: >"$lines"
modules=${PYVERBS:-$(ls $suite/tests | sed -n 's/^\(test_.*\)\.py$/\1/p')}
for module in $modules; do run_module "$module"; done
[ -n "${PYVERBS:-}" ] || {
	CHECK_TAIL=300 check skip_list 20 judge
	check enough 20 enough
}
check link_del 20 link_del pyv0
exit 0
