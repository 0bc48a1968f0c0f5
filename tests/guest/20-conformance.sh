#!/bin/bash
# SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
#
# The conformance program, in parts, so that one that hangs or dies costs no other its result. All of it on a
# dummy interface; the data path once more on the other kinds.
# timeout: 1500
# timeout-long: 2400
. "$(dirname "$0")/lib.sh"

program=herald_conformance

# Where it takes long to start a program, that many suites share one.
together=1
[ "$FACTOR" -lt 3 ] || together=8

# list_cases FILTER: a line for each suite: its name, and its cases as a filter
list_cases() {
	"$program" --gtest_list_tests --gtest_filter="$1" | awk '
		/^[^ ]+\./ { suite = substr($1, 1, length($1) - 1); order[n++] = suite }
		/^ / { cases[suite] = cases[suite] ":" suite "." $1 }
		END { for (i = 0; i < n; i++) print order[i], substr(cases[order[i]], 2) }'
}

declare -A cases_of
# run_together SUITE...: one result per case
run_together() {
	local name=${1//\//-} filter='' suite
	[ $# = 1 ] || name+=-and-$(($# - 1))
	for suite; do filter+=:${cases_of[$suite]}; done
	GTEST_LOG=$name GTEST_SECONDS=${SUITE_SECONDS:-200} gtest_run "$program" "${filter#:}"
	[ $# -gt 1 ] || return
	# one that hangs or dies takes along those that come after it
	for suite; do
		cut -f 2 "$RESULTS/$JOB.$program.$name.log.cases" | grep -q "^$suite\." || run_together "$suite"
	done
}

run_suites() { # DEVICE FILTER
	local suite filter list=()
	export HERALD_DEV=$1
	while read -r suite filter; do
		list+=("$suite")
		cases_of[$suite]=$filter
	done < <(list_cases "$2")
	[ ${#list[@]} -gt 0 ] || fail "suites" "no test matches $2"
	while [ ${#list[@]} -gt 0 ]; do
		run_together "${list[@]:0:together}"
		list=("${list[@]:together}")
	done
}

check load_modules 30 load_modules || exit 1
try_module tun # for an interface whose speed can be set
try_module veth # for the peer on the wire
add_netdev dum0 192.0.2.1/24
ip addr add 2001:db8::1/64 dev dum0 nodad
check link_add 20 link_add conf0 dum0 || exit 1
run_suites conf0 "${CONFORMANCE:-*}"
check link_del 20 link_del conf0
# the other kinds of interface differ in their addresses, not by kernel: the fast lane will do
[ -z "${CONFORMANCE:-}" ] && [ "$LANE" = uml ] || exit 0

elsewhere='RcOps.*:UcTest.*:UdTest.*:McastTest.*'
veth_pair veth0 198.51.100.1/24 veth1 198.51.100.2/24 9000
ip addr add 2001:db8:1::1/64 dev veth0 nodad
for netdev in lo veth0; do
	JOB=20-conformance-$netdev
	check link_add 20 link_add conf1 $netdev || continue
	run_suites conf1 "$elsewhere"
	check link_del 20 link_del conf1
done

# The data path once more over the wire, which is the same host's here. What a fault does to one attempt at a message is not
# the same to all of its packets, and without a timeout nothing is sent again: docs/faults.md.
over_the_wire='*RcOps.*:RcTest.*:UcTest.*:UdTest.*:McastTest.*:StatusTest.*:FlushTest.*:SrqTest.*:MigrationTest.*:SizesTest.Read'
over_the_wire+=':FaultDatagram.*:FaultMessage.Delayed*:NaturalEvent.*-MigrationTest.RetriesUsedUpByNaks:MigrationTest.AnAddressThatComesBack'
# The long form has all the other suites, too, but for tests of faults, and those that count on work that is done at once.
if [ -n "${HERALD_LONG:-}" ]; then
	over_the_wire='*-Wire*.*:HugeTest.*:HostileTest.*:MmapTest.*:RawTest.*:FaultTest.*:FaultMessage.*:PortEvent.*:RaceTest.Held*Send*'
	over_the_wire+=':ReorderTest.Cases36*:MigrationTest.RetriesUsedUpByNaks:MigrationTest.AnAddressThatComesBack'
fi
JOB=20-conformance-wire
rmmod herald
check load_over_the_wire 30 load_modules wire=force || exit 1
check link_add 20 link_add conf2 dum0 || exit 1
run_suites conf2 "$over_the_wire"
check link_del 20 link_del conf2

# And from one namespace to another: a pair's other end is of the device there. What has one device's address, region or
# events for both ends does not fit.
apart='RcOps.*:RcTest.*:UcTest.*:StatusTest.*:FlushTest.*:SrqTest.*'
JOB=20-conformance-apart
device_apart() { ip netns exec B rdma link add conf4 type "$DEV_TYPE" netdev apart1; }
check cable 20 veth_pair apart0 203.0.113.1/24 apart1 203.0.113.2/24 "" B || exit 1
check link_add 20 link_add conf3 apart0 && check link_add_there 20 device_apart || exit 1
HERALD_PEER=conf4 run_suites conf3 "$apart"
exit 0
