# SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
#
#	make bench			speed against rxe, siw and the machine's limits, in QEMU and in UML: about 25 minutes
#	make bench BENCH=short		the same with fewer and shorter runs: about 6 minutes, for a first look

BENCH ?= full

.PHONY: bench

bench:
	scripts/bench.sh $(BENCH)
