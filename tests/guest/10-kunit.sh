#!/bin/bash
# SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
#
# The KUnit modules: pure tables, the WQE codec, memory, the wire responder between its neighbours. The stock kernel has no KUnit.
# timeout: 120
# lanes: uml debug
. "$(dirname "$0")/lib.sh"

check load_modules 30 load_modules || exit 1
found=0
for module in "$JOBDIR"/modules/herald*kunit.ko; do
	[ -e "$module" ] || continue
	found=1
	check "insmod-$(basename "$module" .ko)" 60 insmod "$module"
done
[ $found = 1 ] || fail modules "no KUnit module was built"
kunit_collect 'herald*'
for module in "$JOBDIR"/modules/herald*kunit.ko; do rmmod "$(basename "$module" .ko)" 2>/dev/null; done
exit 0
