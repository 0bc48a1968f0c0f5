#!/bin/bash
# SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
#
# Unpacks the source of Debian 13's rdma-core in the cache, makes its generated headers inside the guests' tree, and
# prints the path of the folder, which holds `source` and `build`. A provider compiles with
#
#	-I build/include -I source/libibverbs	(infiniband/driver.h, and what it includes, are under build/include)
#
# and links the tree's own libibverbs.so.1. Inside the tree (scripts/build-user.sh) the folder is /herald/rdma-core.
#
#	scripts/build-rdma-core.sh

. "$(dirname "$0")/lib.sh"

make_rdma_core() { # DIR TARBALL TREE
	mkdir -p "$1/source" "$1/build"
	tar -xf "$2" -C "$1/source" --strip-components=1
	in_tree "$3" --bind "$1:/herald/rdma-core" cmake -S /herald/rdma-core/source -B /herald/rdma-core/build -G Ninja \
		-DCMAKE_BUILD_TYPE=RelWithDebInfo -DNO_MAN_PAGES=1 -DNO_PYVERBS=1
	in_tree "$3" --bind "$1:/herald/rdma-core" ninja -C /herald/rdma-core/build kern-abi ibverbs
	# the generated headers are links by the path inside the tree; make them hold on the host too
	local link target
	find "$1/build/include" -type l | while read -r link; do
		target=$(readlink "$link")
		ln -sfn "$(realpath -m --relative-to="$(dirname "$link")" "$1/${target#/herald/rdma-core/}")" "$link"
	done
	test -e "$1/build/include/infiniband/driver.h"
}

tree=$("$TOP/scripts/build-rootfs.sh")
tarball=$("$TOP/scripts/fetch-source.sh" rdma-core)
cached rdma-core "$(hash_of "$0" "$(basename "$tarball")" "$tree")" \
	"rdma-core headers" make_rdma_core "$tarball" "$tree"
printf '%s\n' "$CACHED"
