#!/bin/bash
# SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
#
# Builds the kernel modules for one lane's kernel, with W=1, and leaves them as build/LANE/*.ko. The sources are copied
# to build/LANE/module first, since one source tree serves several kernels. What kernel/compat's probes found must be
# what its golden list says. Modules that were built from the same sources before are taken from the cache.
#
#	scripts/build-module.sh uml|debug|stock
#
# For stock it also runs sparse, whose warnings it leaves in build/stock/sparse.txt: the host lane looks at them.

. "$(dirname "$0")/lib.sh"

lane=${1:-}
case $lane in
uml) kernel=$("$TOP/scripts/build-uml.sh") args=(ARCH=um) ;;
debug) kernel=$("$TOP/scripts/build-debug-kernel.sh") args=() ;;
stock) kernel=$("$TOP/scripts/build-rootfs.sh") args=() ;;
*) die "usage: $0 uml|debug|stock" ;;
esac
[ -e "$TOP/Kbuild" ] || die "no Kbuild in $TOP"

out=$BUILD/$lane copy=$BUILD/$lane/module log=$BUILD/log/module-$lane.log
lock_build "module-$lane"
mkdir -p "$copy"
sources=()
for path in Kbuild kernel include tests/kunit tests/kmod; do
	[ ! -e "$TOP/$path" ] || sources+=("$TOP/./$path")
done
# no --times: what has changed must be newer than what was made from it
rsync -rlpR --checksum --delete --exclude='*.o' --exclude='*.ko' --exclude='*.mod' --exclude='*.mod.c' \
	--exclude='.*.cmd' --exclude='modules.order' --exclude='Module.symvers' "${sources[@]}" "$copy/"

make_modules() { # MAKE-ARG...
	if [ "$lane" = stock ]; then
		in_tree "$kernel" --bind "$copy:/herald/build" sh -c 'exec make -C /lib/modules/*/build "$@"' make \
			M=/herald/build W=1 HERALD_TESTS=1 -j"$JOBS" "$@" modules
	else
		make -C "$kernel" "${args[@]}" M="$copy" W=1 HERALD_TESTS=1 -j"$JOBS" "$@" modules
	fi
}

kernel_version() {
	if [ "$lane" = stock ]; then
		basename "$kernel"/lib/modules/*
	else
		cat "$kernel/include/config/kernel.release"
	fi
}

# The host's sparse runs in the tree: it needs no library but libc. The objects are up to date, so that C=2 checks only.
run_sparse() {
	cp /usr/bin/sparse "$copy/.sparse"
	make_modules C=2 CHECK=/herald/build/.sparse
}

build() {
	make_modules
	"$TOP/scripts/check-compat.sh" "$copy" "$(kernel_version)"
	rm -rf "$out/made"
	mkdir "$out/made"
	find "$copy" -name '*.ko' -exec cp -t "$out/made" {} +
	ls "$out/made"/*.ko
	if [ "$lane" = stock ]; then
		run_sparse 2>&1 | tee "$out/sparse.log"
		grep -E '^/?[^ ]+:[0-9]+:[0-9]+: |^[^ ]+: (warning|error)' "$out/sparse.log" |
			sed 's|^/herald/build/||' >"$out/made/sparse.txt" || true
	fi
}

compiler=$([ "$lane" = stock ] || gcc -dumpfullversion)
sparse=$([ "$lane" != stock ] || sparse --version)
key=$(hash_of "$0" "$TOP/scripts/check-compat.sh" "$kernel" "$compiler" "$sparse" \
	"$(files_hash "$copy" Kbuild kernel include tests)")
if find_build "module-$lane" "$key"; then
	say "modules for $lane: built before"
	made=$KEPT
else
	step "modules for $lane" "$log" build
	grep -E 'warning:|WARNING:' "$log" >&2 || true
	made=$out/made
	keep_build "module-$lane" "$key" "$made"
fi
rm -f "$out"/*.ko "$out/sparse.txt"
find "$made" -maxdepth 1 -type f ! -name '.used' -exec cp -t "$out" {} +
