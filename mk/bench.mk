# SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
#
#	make bench			speed against rxe, siw and the machine's limits, in QEMU and in UML: more than half an hour
#	make bench BENCH=short		the same with fewer and shorter runs: some ten minutes, for a first look
#	make bench-native		what polling and arming cost in user space, beside librxe, on this machine: two minutes

BENCH ?= full

.PHONY: bench bench-native

bench:
	scripts/bench.sh $(BENCH)

bench-native:
	scripts/bench-native.sh
