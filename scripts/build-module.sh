#!/bin/bash
# SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
#
# Builds the kernel modules for one lane's kernel, with W=1, and leaves them as build/LANE/*.ko. The sources are copied
# to build/LANE/module first, since one source tree serves several kernels.
#
#	scripts/build-module.sh uml|debug|stock

. "$(dirname "$0")/lib.sh"

lane=${1:-}
case $lane in
uml) kernel=$("$TOP/scripts/build-uml.sh") args=(ARCH=um) ;;
debug) kernel=$("$TOP/scripts/build-debug-kernel.sh") args=() ;;
stock) kernel=$("$TOP/scripts/build-rootfs.sh") args=() ;;
*) die "usage: $0 uml|debug|stock" ;;
esac
[ -e "$TOP/Kbuild" ] || die "no Kbuild in $TOP"

out=$BUILD/$lane copy=$BUILD/$lane/module
lock_build "module-$lane"
mkdir -p "$copy"
sources=()
for path in Kbuild kernel include tests/kunit tests/kmod; do
	[ ! -e "$TOP/$path" ] || sources+=("$TOP/./$path")
done
rsync -aR --delete --exclude='*.o' --exclude='*.ko' --exclude='*.mod' --exclude='*.mod.c' --exclude='.*.cmd' \
	--exclude='modules.order' --exclude='Module.symvers' "${sources[@]}" "$copy/"

build() {
	if [ "$lane" = stock ]; then
		in_tree "$kernel" --bind "$copy:/herald/build" bash -c \
			"make -C /lib/modules/*/build M=/herald/build W=1 HERALD_TESTS=1 -j$JOBS modules"
	else
		make -C "$kernel" "${args[@]}" M="$copy" W=1 HERALD_TESTS=1 -j"$JOBS" modules
	fi
}

rm -f "$out"/*.ko
log=$BUILD/log/module-$lane.log
step "modules for $lane" "$log" build
grep -E 'warning:|WARNING:' "$log" >&2 || true
find "$copy" -name '*.ko' -exec cp -t "$out" {} +
ls "$out"/*.ko >/dev/null 2>&1 || die "no module came out; log: $log"
