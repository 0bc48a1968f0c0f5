#!/bin/bash
# SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
#
# What kernel/compat/probes.txt found in a kernel must be what the golden list says: a header that moved, or a regular
# expression that is wrong, would silently build the code for another kernel.
#
#	scripts/check-compat.sh				the lists: probes, golden lists and kernel/compat agree about the names
#	scripts/check-compat.sh MODULE_BUILD VERSION	what the build of the module in that folder was given
#
# A kernel is held to the list of its own version, else to that of the newest older one.

set -euo pipefail
top=$(cd "$(dirname "$0")/.." && pwd)
compat=$top/kernel/compat
bad=0

complain() {
	printf '%s\n' "$*"
	bad=1
}

list() { sed 's/#.*//' "$1" | grep -o '[A-Z0-9_]*' | sort -u; }

check_lists() {
	local file probes
	probes=$(sed 's/#.*//' "$compat/probes.txt" | awk 'NF { print $1 }' | sort -u)
	for file in "$compat"/golden-*.txt; do
		while read -r name; do
			complain "${file#"$top/"}: no probe $name in probes.txt"
		done < <(comm -23 <(list "$file") <(printf '%s\n' "$probes"))
	done
	while read -r name; do
		complain "kernel/compat uses $name, and probes.txt has no such probe"
	done < <(comm -23 <(grep -hoE '\<HAVE_[A-Z0-9_]+' "$compat"/*.[ch] | sort -u) <(printf '%s\n' "$probes"))
	while read -r name; do
		complain "probes.txt: nothing in kernel/compat uses $name"
	done < <(comm -13 <(grep -hoE '\<HAVE_[A-Z0-9_]+' "$compat"/*.[ch] | sort -u) <(printf '%s\n' "$probes"))
}

# golden_for VERSION: the newest list that is not newer.
golden_for() {
	local file version
	for file in "$compat"/golden-*.txt; do
		version=${file##*/golden-}
		printf '%s\n' "${version%.txt}"
	done | sort -V | while read -r version; do
		if [ "$(printf '%s\n%s\n' "$version" "$1" | sort -V | tail -n 1)" = "$1" ]; then printf '%s\n' "$version"; fi
	done | tail -n 1
}

check_build() { # FOLDER VERSION
	local version=${2%%[-+]*} golden name
	golden=$(golden_for "$version")
	if [ -z "$golden" ]; then
		complain "no golden list is as old as Linux $version"
		return
	fi
	# what the compiler was told, as Kbuild noted it
	[ -e "$1/kernel/compat/.ops.o.cmd" ] || { complain "no build of the module in $1"; return; }
	while IFS=: read -r missing extra; do
		name=${missing:-$extra}
		complain "Linux $version: golden-$golden.txt has $name ${extra:+not}, the probes found it ${missing:+not}"
	done < <(comm -3 --output-delimiter=: <(list "$compat/golden-$golden.txt") \
		<(grep -oE -- '-DHAVE_[A-Z0-9_]+' "$1/kernel/compat/.ops.o.cmd" | sed 's/^-D//' | sort -u))
}

case $# in
0) check_lists ;;
2) check_build "$@" ;;
*)
	echo "usage: $0 [MODULE_BUILD VERSION]" >&2
	exit 2
	;;
esac
exit $bad
