#!/bin/bash
# SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
#
# Builds the User-Mode-Linux kernel of the uml lane in the cache (tests/lanes/uml.config on top of tinyconfig) and prints
# the path of its build tree: `linux` is the kernel, and `make -C TREE ARCH=um M=...` builds modules for it.
#
#	scripts/build-uml.sh

. "$(dirname "$0")/lib.sh"
. "$(dirname "$0")/kernel-lib.sh"

fragment=$TOP/tests/lanes/uml.config

make_uml() { # DIR TARBALL
	unpack_source "$2" "$1/source"
	configure_kernel "$1/source" "$1/build" "$fragment" ARCH=um
	make -C "$1/build" ARCH=um -j"$JOBS" linux modules
	"$1/build/linux" --version
}

"$TOP/scripts/setup-host.sh"
tarball=$("$TOP/scripts/fetch-source.sh" linux-7.2)
cached uml "$(hash_of "$fragment" "$0" "$TOP/scripts/kernel-lib.sh" "$(basename "$tarball")" "$(gcc -dumpfullversion)")" \
	"UML kernel from $(basename "$tarball")" make_uml "$tarball"
printf '%s\n' "$CACHED/build"
