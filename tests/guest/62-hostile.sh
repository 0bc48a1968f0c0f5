#!/bin/bash
# SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
#
# Garbage in every shared page, malformed commands, wrong keys: longer than the conformance job gives them, and as a user
# without privileges (CASES 80) too. The kernel's log must stay clean; the lane looks.
# timeout: 500
# lanes: uml debug
. "$(dirname "$0")/lib.sh"

check load_modules 30 load_modules || exit 1
add_netdev dum0 192.0.2.1/24
check link_add 20 link_add h0 dum0 || exit 1
export HERALD_DEV=h0
GTEST_LOG=again GTEST_SECONDS=300 gtest_run herald_conformance 'HostileTest.*:HostileControl.*:MmapTest.*:RawTest.*:KeysTest.*'

# CASES 80: nobody in particular, with little memory to lock.
as_nobody() {
	local log=$RESULTS/$JOB.nobody.log
	chmod a+rw /dev/infiniband/uverbs*
	setpriv --reuid 1000 --regid 1000 --clear-groups bash -c \
		"ulimit -l 8192; exec $(command -v herald_conformance) --gtest_brief=1 --gtest_filter='RcOps.*:UdTest.*:CompEvent.*-*Many*'" 2>&1
}
check as_nobody 120 as_nobody
check afterwards 30 herald_conformance --gtest_brief=1 --gtest_filter='RcOps.*'
check link_del 20 link_del h0
exit 0
