#!/bin/bash
# SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
#
# rdma-core's own pyverbs suite, module by module, but for those of other vendors' devices. What is skipped is listed with its reason in tests/skips/; at least
# PYVERBS_LEAST tests have to pass.
# timeout: 900
# lanes: uml stock
. "$(dirname "$0")/lib.sh"

: "${PYVERBS_LEAST:=103}"

enough() {
	local n
	n=$(grep -c "^PASS $JOB/test_" "$RESULTS/results")
	echo "$n tests passed, at least $PYVERBS_LEAST must"
	[ "$n" -ge "$PYVERBS_LEAST" ]
}

check load_modules 30 load_modules || exit 1
veth_pair veth0 198.51.100.1/24 veth1 198.51.100.2/24 4200
ip addr add 2001:db8:1::1/64 dev veth0 nodad
check link_add 20 link_add pyv0 veth0 || exit 1
gid=$(ibv_devinfo -d pyv0 -v | sed -n 's/^.*GID\[ *\([0-9]*\)\].*::ffff:198.51.100.1.*/\1/p' | sed -n 1p)
modules=${PYVERBS:-$(ls /opt/pyverbs-tests/tests | sed -n 's/^\(test_.*\)\.py$/\1/p' | grep -v '^test_\(mlx5\|efa\)')}
for module in $modules; do
	pyverbs_run pyv0 "$module" "${gid:-1}"
done
[ -n "${PYVERBS:-}" ] || check enough 20 enough
check link_del 20 link_del pyv0
exit 0
