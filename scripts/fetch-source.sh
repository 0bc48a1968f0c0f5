#!/bin/bash
# SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
#
# Fetches one source package into the cache and prints the path of its tarball.
#
#	scripts/fetch-source.sh linux-7.2 | linux-6.12 | rdma-core
#
# The point release is whatever the archive has; it is part of the tarball's name, and so of the keys of what is built
# from it. A tarball is used for REFRESH_DAYS (30) before the archive is asked for a newer one; HERALD_REFRESH=1 asks now.

. "$(dirname "$0")/lib.sh"

RDMA_CORE_VERSION=56.1-1 # Debian 13's: the provider's private ABI goes with it

have_recent() {
	[ -z "${HERALD_REFRESH:-}" ] && [ -e "$dir/current" ] &&
		[ -n "$(find "$dir/stamp" -mtime "-${REFRESH_DAYS:-30}" 2>/dev/null)" ]
}

# newest_kernel AT_LEAST: the linux-source-X.Y package of that release or, once the archive has dropped it, the newest.
newest_kernel() {
	local names
	names=$(private_apt apt-cache pkgnames linux-source- | grep -E '^linux-source-[0-9]+\.[0-9]+$' | sort -V)
	grep -qx "linux-source-$1" <<<"$names" && printf 'linux-source-%s\n' "$1" && return
	warn "the archive has no linux-source-$1 any more"
	tail -n 1 <<<"$names"
}

# download APT-COMMAND...: into the scratch folder.
download() {
	cd "$tmp" || return
	private_apt apt-get "$@"
}

unpack_kernel() { # PACKAGE TARBALL
	dpkg-deb --fsys-tarfile "$tmp"/*.deb | tar -xO -f - "./usr/src/$1.tar.xz" >"$tmp/$2"
}

fetch_kernel() {
	local package version tar
	package=$(newest_kernel "$1")
	version=$(private_apt apt-cache policy "$package" | sed -n 's/^ *Candidate: //p')
	tar=${package}_$version.tar.xz
	if [ ! -e "$dir/$tar" ]; then
		step "download $package $version" "$CACHE/log/fetch-$package.log" download download "$package=$version"
		step "unpack $package $version" "$CACHE/log/fetch-$package.log" unpack_kernel "$package" "$tar"
		mv "$tmp/$tar" "$dir/$tar"
	fi
	ln -sfn "$tar" "$dir/current"
}

fetch_rdma_core() {
	local tar=rdma-core_${RDMA_CORE_VERSION%-*}.orig.tar.gz
	if [ ! -e "$dir/$tar" ]; then
		step "download rdma-core $RDMA_CORE_VERSION" "$CACHE/log/fetch-rdma-core.log" \
			download source --tar-only "rdma-core=$RDMA_CORE_VERSION"
		mv "$tmp/$tar" "$dir/$tar"
	fi
	ln -sfn "$tar" "$dir/current"
}

what=${1:-}
dir=$CACHE/source/$what
case $what in
linux-7.2 | linux-6.12 | rdma-core) ;;
*) die "usage: $0 linux-7.2 | linux-6.12 | rdma-core" ;;
esac
mkdir -p "$dir"
exec {lock}>"$CACHE/source/lock"
flock "$lock"
if ! have_recent; then
	"$TOP/scripts/setup-host.sh"
	private_apt_update
	tmp=$(mktemp -d "$dir/tmp.XXXXXX")
	trap 'rm -rf "$tmp"; stop_step' EXIT
	case $what in
	linux-*) fetch_kernel "${what#linux-}" ;;
	rdma-core) fetch_rdma_core ;;
	esac
	touch "$dir/stamp"
fi
printf '%s\n' "$dir/$(readlink "$dir/current")"
