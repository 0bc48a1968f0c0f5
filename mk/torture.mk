# SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
#
#	make torture				completion events under random load, in UML: an hour
#	make torture TORTURE_SECONDS=600 SEED=7	ten minutes, with the random numbers of the run that printed this seed

.PHONY: torture

torture:
	@scripts/torture.sh
