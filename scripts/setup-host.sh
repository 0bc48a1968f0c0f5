#!/bin/bash
# SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
#
# Installs what the machine itself needs to build and to run every lane: Debian 12 or 13, as root. Installs only what is
# missing, so it costs nothing the second time.
#
#	scripts/setup-host.sh
#
# HERALD_SETUP=build: only what builds the provider.

. "$(dirname "$0")/lib.sh"

# trees, and a header for heraldctl that is not in them
packages=(mmdebstrap debian-archive-keyring rsync util-linux nlohmann-json3-dev)
[ "${HERALD_SETUP:-}" = build ] || packages+=(
	# kernels
	gcc g++ make bc bison flex libelf-dev libssl-dev libc6-dev cpio kmod xz-utils zstd python3 perl
	# images, virtual machines
	e2fsprogs qemu-system-x86
	# the host lane
	cmake ninja-build pkg-config shellcheck libgtest-dev libgmock-dev sparse clang-format-19 clang-tidy-19 spin
	libcli11-dev libfmt-dev libkmod-dev libnl-3-dev clang-19 libclang-rt-19-dev python3-scapy tshark
	# what the scripts themselves call
	procps psmisc patch
)

apt_install "${packages[@]}"
