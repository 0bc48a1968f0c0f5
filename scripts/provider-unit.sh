#!/bin/bash
# SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
#
# Builds the provider's unit tests with sanitizers inside the guests' Debian 13 tree, whose rdma-core they need, and runs
# them there: they need no device. GoogleTest's output goes to standard output.
#
#	scripts/provider-unit.sh NAME SANITIZERS [GTEST-ARG...]		into build/NAME

. "$(dirname "$0")/lib.sh"
. "$(dirname "$0")/user-lib.sh"

name=${1:-}
[ $# -ge 2 ] || die "usage: $0 NAME SANITIZERS [GTEST-ARG...]"
sanitizers=$2
shift 2
build_in_tree "provider's unit tests ($sanitizers)" "$name" herald_provider_unit \
	"CMakeLists.txt include user tests/user/provider_unit" "-DHERALD_SANITIZE=$sanitizers"
inside "$name" timeout 300 /herald/build/tests/user/provider_unit/herald_provider_unit "$@"
