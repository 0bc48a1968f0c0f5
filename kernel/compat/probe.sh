#!/bin/sh
# SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
# probe.sh KERNEL_SOURCE PROBES: one -D flag for each feature that the kernel's
# headers have. A probe is a line "SYMBOL FILE REGEX"; the file's line breaks
# and runs of blanks count as one blank, so that a prototype can be matched.
set -eu

tree=$1
probes=$2

if [ ! -r "$tree/include/rdma/ib_verbs.h" ]; then
	echo "probe.sh: no kernel headers in $tree" >&2
	exit 1
fi

while read -r symbol file regex; do
	case $symbol in
	'' | '#'*) continue ;;
	esac
	[ -r "$tree/$file" ] || continue
	if tr -s ' \t\n' ' ' < "$tree/$file" | grep -Eq -e "$regex"; then
		printf -- '-D%s ' "$symbol"
	fi
done < "$probes"
