#!/bin/bash
# SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
#
# Makes the guests' Debian 13 tree in the cache and prints its path. The tree has the stock kernel and its headers,
# RDMA user space, the tools the tests call, and what builds the project's user space (by chroot). Nothing changes it
# afterwards: guests write to an overlay or to a snapshot.
#
#	scripts/build-rootfs.sh

. "$(dirname "$0")/lib.sh"

list=$TOP/tests/lanes/rootfs-packages.txt
stage1=$TOP/tests/lanes/stage1-init

make_rootfs() { # DIR RDMA_CORE_TARBALL
	local dir=$1 packages
	packages=$(sed 's/#.*//' "$list" | grep -o '[^[:space:]]*' | paste -sd,)
	# mmdebstrap wants to make the tree itself; the marker of a finished cache folder stays outside of it
	mmdebstrap --variant=apt --mode=root --include="$packages" \
		--aptopt='Acquire::Retries "3"' --aptopt='APT::Install-Recommends "false"' \
		--dpkgopt='path-exclude=/usr/share/man/*' --dpkgopt='path-exclude=/usr/share/locale/*' \
		--dpkgopt='path-exclude=/usr/share/doc/*' \
		trixie "$dir/root" "deb $(apt_mirror) trixie main"

	install -m 755 "$stage1" "$dir/root/sbin/herald-init"
	# where the guests and build-user.sh mount the job, the repository and rdma-core
	mkdir -p "$dir/root/herald/"{job,repo,build,rdma-core}
	echo herald >"$dir/root/etc/hostname"
	printf '127.0.0.1 localhost herald\n::1 localhost\n' >"$dir/root/etc/hosts"
	chroot "$dir/root" useradd -m -u 1000 -s /bin/bash tester
	# rdma-core's own tests of pyverbs are not in a package
	mkdir -p "$dir/root/opt/pyverbs-tests"
	tar -xf "$2" -C "$dir/root/opt/pyverbs-tests" --strip-components=1 --wildcards '*/tests/*'
}

need_root
"$TOP/scripts/setup-host.sh"
tarball=$("$TOP/scripts/fetch-source.sh" rdma-core)
cached rootfs "$(hash_of "$list" "$stage1" "$0" "$(basename "$tarball")")" \
	"Debian 13 tree" make_rootfs "$tarball"
printf '%s\n' "$CACHED/root"
