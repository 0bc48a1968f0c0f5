#!/bin/bash
# SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
#
# Shows what herald does, from insmod to an NFS mount over RDMA, in a User-Mode Linux kernel that leaves this machine's
# own alone. What is missing is built first; the story itself is tests/guest/demo.sh.
#
#	scripts/demo.sh [NAME=VALUE...]		DEV_TYPE=rxe plays it on another device
#
# Status 0 if every step went well and the kernel complained of nothing.

. "$(dirname "$0")/lib.sh"

start=$SECONDS
cat <<'EOT'
herald, shown in a User-Mode Linux kernel: a whole Linux that runs as a process of this machine. The first run builds
it, which takes some minutes; from then on it boots in a second or two. Lines with # are what is typed in it.
EOT
if "$TOP/scripts/run-lane.sh" uml "$@" demo.sh </dev/null; then
	printf '\nThe demo went well, %d s in all.\n' $((SECONDS - start))
else
	printf '\nThe demo FAILED; logs: build/results/uml/\n'
	exit 1
fi
