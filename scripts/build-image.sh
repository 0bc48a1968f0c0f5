#!/bin/bash
# SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
#
# Makes, in the cache, what QEMU boots, and prints the folder's path: the guests' tree as an image (root.ext2: ext4 would
# cost the debug kernel forty files; runs use it with snapshot=on), and the stock kernel and initrd (vmlinuz, initrd.img).
#
#	scripts/build-image.sh

. "$(dirname "$0")/lib.sh"

make_image() { # DIR TREE
	cp "$2"/boot/vmlinuz-* "$1/vmlinuz"
	cp "$2"/boot/initrd.img-* "$1/initrd.img"
	truncate -s 6G "$1/root.ext2"
	mkfs.ext2 -q -F -L herald -E lazy_itable_init=1,nodiscard -d "$2" "$1/root.ext2"
}

need_root
tree=$("$TOP/scripts/build-rootfs.sh")
cached image "$(hash_of "$0" "$tree")" "disk image for QEMU" make_image "$tree"
printf '%s\n' "$CACHED"
