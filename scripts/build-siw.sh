#!/bin/bash
# SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
#
# Debian's stock kernel has no siw, and the benchmark compares with it: builds siw.ko in the cache, from the kernel's own
# source and against the headers of the guests' tree. Prints the folder that holds it.
#
#	scripts/build-siw.sh

. "$(dirname "$0")/lib.sh"

make_siw() { # DIR TARBALL TREE
	mkdir -p "$1/siw"
	tar -xJf "$2" -C "$1/siw" --wildcards --strip-components=5 '*/drivers/infiniband/sw/siw'
	in_tree "$3" --bind "$1/siw:/herald/build" bash -c \
		"make -C /lib/modules/*/build M=/herald/build CONFIG_RDMA_SIW=m -j$JOBS modules"
	mv "$1/siw/siw.ko" "$1/"
}

tree=$("$TOP/scripts/build-rootfs.sh")
tarball=$("$TOP/scripts/fetch-source.sh" linux-6.12)
cached siw "$(hash_of "$0" "$(basename "$tarball")" "$tree")" "siw for the stock kernel" make_siw "$tarball" "$tree"
printf '%s\n' "$CACHED"
