#!/bin/bash
# SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
#
# Builds the x86-64 kernel of the debug lane in the cache (tests/lanes/debug.config on top of tinyconfig: KASAN, lockdep,
# kmemleak, object debugging, UBSAN, fault injection, KUnit) and prints the path of its build tree: arch/x86/boot/bzImage
# is the kernel, and `make -C TREE M=...` builds modules for it.
#
#	scripts/build-debug-kernel.sh

. "$(dirname "$0")/lib.sh"
. "$(dirname "$0")/kernel-lib.sh"

fragment=$TOP/tests/lanes/debug.config

make_debug_kernel() { # DIR TARBALL
	unpack_source "$2" "$1/source"
	configure_kernel "$1/source" "$1/build" "$fragment" ARCH=x86_64
	make -C "$1/build" -j"$JOBS" bzImage modules
}

"$TOP/scripts/setup-host.sh"
tarball=$("$TOP/scripts/fetch-source.sh" linux-6.12)
cached debug-kernel \
	"$(hash_of "$fragment" "$0" "$TOP/scripts/kernel-lib.sh" "$(basename "$tarball")" "$(gcc -dumpfullversion)")" \
	"debug kernel from $(basename "$tarball")" make_debug_kernel "$tarball"
printf '%s\n' "$CACHED/build"
