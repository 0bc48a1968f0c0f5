#!/bin/bash
# SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
#
# Builds the user space (provider, tools, tests: the top CMakeLists.txt) inside the guests' Debian 13 tree, so that it
# links what the guests run, into build/user, and installs it into build/user/install, which a guest lays over its root.
#
#	scripts/build-user.sh [CMAKE-ARG...]
#
# Inside the tree the repository is /herald/repo (read-only), the build folder /herald/build, rdma-core's source and
# generated headers /herald/rdma-core/{source,build}: -DRDMA_CORE_SRC and -DRDMA_CORE_BUILD say so. Writes
# build/lanes.env with these paths for shells and editors.

. "$(dirname "$0")/lib.sh"

tree=$("$TOP/scripts/build-rootfs.sh")
rdma_core=$("$TOP/scripts/build-rdma-core.sh")
[ -e "$TOP/CMakeLists.txt" ] || die "no CMakeLists.txt in $TOP"

lock_build user
out=$BUILD/user
mkdir -p "$out"
cat >"$BUILD/lanes.env" <<EOT
# Written by scripts/build-user.sh: where the lanes' parts are.
HERALD_TREE=$tree
RDMA_CORE_SRC=$rdma_core/source
RDMA_CORE_BUILD=$rdma_core/build
# -I \$RDMA_CORE_BUILD/include gives infiniband/driver.h, util/*.h, kernel-abi/*.h, ccan/*.h and config.h
EOT

inside() {
	in_tree "$tree" --bind "$TOP:/herald/repo" --bind "$rdma_core:/herald/rdma-core" --bind "$out:/herald/build" "$@"
}

build() {
	# another tree or another compiler means another build
	if [ "$(cat "$out/.made-in" 2>/dev/null)" != "$tree $rdma_core" ]; then
		find "$out" -mindepth 1 -delete
	fi
	echo "$tree $rdma_core" >"$out/.made-in"
	inside cmake -S /herald/repo -B /herald/build -G Ninja -DCMAKE_BUILD_TYPE=RelWithDebInfo \
		-DCMAKE_INSTALL_PREFIX=/usr -DCMAKE_INSTALL_SYSCONFDIR=/etc -DCMAKE_INSTALL_LIBDIR=lib/x86_64-linux-gnu \
		-DCMAKE_EXPORT_COMPILE_COMMANDS=1 \
		-DRDMA_CORE_SRC=/herald/rdma-core/source -DRDMA_CORE_BUILD=/herald/rdma-core/build "$@"
	inside ninja -C /herald/build -j"$JOBS"
	rm -rf "$out/install"
	inside env DESTDIR=/herald/build/install ninja -C /herald/build install
}

log=$BUILD/log/user.log
step "user space" "$log" build "$@"
grep -E 'warning:' "$log" >&2 || true
