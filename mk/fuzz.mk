# SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
#
#	make fuzz			arbitrary bytes as packets and as conversations, under sanitizers: ten minutes each
#	make fuzz FUZZ_SECONDS=60	a minute each

FUZZ_SECONDS ?= 600

.PHONY: fuzz

fuzz:
	scripts/fuzz.sh pkt $(FUZZ_SECONDS)
	scripts/fuzz.sh check $(FUZZ_SECONDS)
