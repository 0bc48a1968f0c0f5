#!/bin/bash
# SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
#
# The long form of tests/guest/65-torture.sh, in UML: TORTURE_SECONDS (3600) of it. TORTURE_ARMS arms must have been checked
# at least: 10 million in an hour, and any number if it is made shorter. SEED=N does what the run did that printed this seed. Ends with one line of counts, and with
# `N passed, N failed, N skipped`.
#
#	scripts/torture.sh

. "$(dirname "$0")/lib.sh"

seconds=${TORTURE_SECONDS:-3600}
seed=${SEED:-$((RANDOM << 15 | RANDOM))}
arms=${TORTURE_ARMS:-$((seconds < 3600 ? 0 : 10000000))}
log=$BUILD/results/uml/65-torture.log
results=$BUILD/results/uml/results

say "torture: seed $seed, $seconds s"
rc=0
"$TOP/scripts/run-lane.sh" uml SEED="$seed" TORTURE_SECONDS="$seconds" TORTURE_ARMS="$arms" JOB_SECONDS=$((seconds + 300)) \
	65-torture.sh </dev/null || rc=$?
[ ! -e "$log" ] || sed -n 's/^TORTURE arms/torture: arms/p' "$log"
count() { grep -cs "^$1 " "$results" || true; }
echo "$(count PASS) passed, $(count FAIL) failed, $(count SKIP) skipped"
exit $rc
