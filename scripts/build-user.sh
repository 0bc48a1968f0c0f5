#!/bin/bash
# SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
#
# Builds the user space (provider, tools, tests: the top CMakeLists.txt) inside the guests' Debian 13 tree, so that it
# links what the guests run, into build/user, and installs it into build/user/install, which a guest lays over its root.
# The unit tests are the host lane's (scripts/host-lane.sh).
#
#	scripts/build-user.sh [CMAKE-ARG...]
#
# scripts/user-lib.sh says how. Writes build/lanes.env with the lanes' paths for shells and editors.

. "$(dirname "$0")/lib.sh"
. "$(dirname "$0")/user-lib.sh"

mkdir -p "$BUILD"
cat >"$BUILD/lanes.env" <<EOT
# Written by scripts/build-user.sh: where the lanes' parts are.
HERALD_TREE=$tree
RDMA_CORE_SRC=$rdma_core/source
RDMA_CORE_BUILD=$rdma_core/build
# -I \$RDMA_CORE_BUILD/include gives infiniband/driver.h, util/*.h, kernel-abi/*.h, ccan/*.h and config.h
EOT

# nlohmann-json is not in the tree, and its headers are the same everywhere: the machine's own
mkdir -p "$BUILD/include"
rsync -rlp --checksum --delete /usr/include/nlohmann "$BUILD/include/"
build_in_tree "user space" user all \
	"CMakeLists.txt dkms.conf build/include include user tests/user/conformance tests/user/tools tests/user/bench tests/user/torture tests/shim tests/kunit/ib_values.h kernel/opcode.c kernel/opcode.h kernel/pkt.c kernel/pkt.h kernel/psn.h docs/examples" "$@"
