#!/bin/bash
# SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
#
# Checks the shape of a built provider: it exports nothing, needs no C++ runtime, throws nothing, and has no constructor
# but the one that registers it.
#
#	scripts/check-exports.sh [FILE]		(default: the one in build/user)

set -euo pipefail

top=$(cd "$(dirname "$0")/.." && pwd)
lib=${1:-}
[ -n "$lib" ] || lib=$(find "$top/build/user/user/provider" -name 'libherald-rdmav*.so' -print -quit)
[ -f "$lib" ] || {
	echo "error: no provider at '$lib'" >&2
	exit 1
}
failed=0

complain() { # WHAT, and a list on stdin: nothing if the list is empty
	local list
	list=$(cat)
	[ -n "$list" ] || return 0
	printf '%s: %s:\n%s\n' "$lib" "$1" "$list" >&2
	failed=1
}

complain "exports symbols" < <(nm -D --defined-only "$lib" | awk '$2 != "A"')
complain "needs more than libibverbs and the C library" < <(
	readelf -d "$lib" | sed -n 's/.*(NEEDED).*\[\(.*\)\]/\1/p' | grep -Ev '^(libibverbs\.so|libc\.so|libpthread\.so|ld-linux)' || true
)
complain "uses the C++ runtime" < <(nm -D --undefined-only "$lib" | grep -E ' (_Z|__cxa_(throw|begin|rethrow|guard|allocate)|__gxx_)' || true)
# frame_dummy is the compiler's own
complain "has more constructors than the registering one" < <(
	size=$(readelf -SW "$lib" | awk '{ sub(/^ *\[ *[0-9]+\] */, "") } $1 == ".init_array" { print $5 }')
	[ "$((16#${size:-0} / 8))" -le 2 ] || echo "$((16#$size / 8)) entries in .init_array"
)
exit "$failed"
