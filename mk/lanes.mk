# SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
#
# The test lanes, for the top Makefile to include.
#
#	make test [LANES="host uml stock debug pair"]	build everything, run these lanes (default: all)
#	make test-long					all jobs in all lanes; some hours
#	make lane-uml [JOBS_UML="DEV_TYPE=rxe 00-smoke.sh"]	one lane, these jobs (lane-debug, lane-stock, lane-pair alike)
#	make module-uml | module-debug | module-stock	the kernel module for one lane's kernel
#	make mutations [MUTATIONS="c1 c2-..."]		break each rule's code, see its tests fail
#	make user					provider, tools and user-space tests
#	make lanes-setup				kernels, tree and image, without running anything

LANES ?= host uml stock debug pair

.PHONY: test test-long mutations user lanes-setup lane-uml lane-debug lane-stock lane-pair module-uml module-debug module-stock

test:
	@scripts/run-tests.sh $(LANES)

test-long:
	@HERALD_LONG=1 scripts/run-tests.sh $(LANES)

mutations:
	@scripts/mutate.sh $(MUTATIONS)

user:
	scripts/build-user.sh

lanes-setup:
	scripts/build-rdma-core.sh
	scripts/build-uml.sh
	scripts/build-image.sh
	scripts/build-debug-kernel.sh

module-uml module-debug module-stock: module-%:
	scripts/build-module.sh $*

lane-uml:
	scripts/run-lane.sh uml $(JOBS_UML)

lane-debug:
	scripts/run-lane.sh debug $(JOBS_DEBUG)

lane-stock:
	scripts/run-lane.sh stock $(JOBS_STOCK)

lane-pair:
	scripts/run-lane.sh pair $(JOBS_PAIR)
