# SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
#
#	make fuzz			arbitrary bytes as packets, under sanitizers: ten minutes
#	make fuzz FUZZ_SECONDS=60	a minute

FUZZ_SECONDS ?= 600

.PHONY: fuzz

fuzz:
	scripts/fuzz.sh pkt $(FUZZ_SECONDS)
