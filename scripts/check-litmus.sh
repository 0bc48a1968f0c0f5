#!/bin/bash
# SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
#
# The barriers between kernel and process, against the Linux kernel memory model: tests/litmus/NAME.litmus, by herd7.
#
#	scripts/check-litmus.sh list		the tests, and their mutants: NAME or NAME MUTANT a line
#	scripts/check-litmus.sh NAME		herd7 has to find that what the test forbids never happens, and no data race
#	scripts/check-litmus.sh NAME MUTANT	herd7 has to find that it does happen without what the mutant leaves out
#
# In a test, `// mutant MUTANT: STATEMENT` says what replaces the statement that follows, nothing if it is empty;
# `// mutant MUTANT adds: STATEMENT` says what is put there. The process's side is C++: its acquire, release and
# sequentially consistent fence stand as smp_load_acquire(), smp_store_release() and smp_mb(), which are the same
# instructions, or weaker ones, on every machine that Linux has both on.

. "$(dirname "$0")/lib.sh"

tests=$TOP/tests/litmus

list() {
	local file
	for file in "$tests"/*.litmus; do
		basename "$file" .litmus
		sed -n 's|^[[:space:]]*// mutant \([a-z-]*\)\( adds\)\?:.*|\1|p' "$file" | sort -u | sed "s|^|$(basename "$file" .litmus) |"
	done
}

# A statement is one line.
mutate() { # FILE MUTANT
	awk -v "mutant=$2" '
		match($0, "// mutant " mutant "( adds)?:") {
			statement = substr($0, RSTART + RLENGTH)
			print statement
			replace = substr($0, RSTART, RLENGTH) !~ / adds:$/
			next
		}
		/^[[:space:]]*\/\// { next }
		replace { replace = 0; next }
		{ print }
	' "$1"
}

check() { # NAME [MUTANT]
	local file=$tests/$1.litmus want=Never herd variant got output
	[ -e "$file" ] || die "no $file"
	herd=$("$TOP/scripts/fetch-herd.sh")
	if [ -n "${2:-}" ]; then
		grep -qE "// mutant $2( adds)?:" "$file" || die "$1 has no mutant $2"
		want=Sometimes
	fi
	variant=$BUILD/litmus/$1${2:+-$2}.litmus
	mkdir -p "$BUILD/litmus"
	mutate "$file" "${2:-}" >"$variant"
	output=$(timeout 120 "$herd/herd7" "$variant" 2>&1) || true
	got=$(sed -n 's/^Observation [^ ]* \([A-Z][a-z]*\) .*/\1/p' <<<"$output")
	if [ "$got" != "$want" ]; then
		echo "$1${2:+ without what $2 leaves out}: herd7 says ${got:-nothing}, not $want"
		[ "$got" != Sometimes ] || echo "what is forbidden happens: a barrier is missing"
	elif grep -q '^Observation .* 0 0$' <<<"$output"; then
		echo "$1: no execution is left to look at"
	elif [ -z "${2:-}" ] && grep -q '^Flag ' <<<"$output"; then
		echo "$1: $(grep -m 1 '^Flag ' <<<"$output")"
	else
		return 0
	fi
	printf '%s; %s\n%s\n' "$(cat "$herd/version")" "${variant#"$TOP/"}" "$output"
	return 1
}

case ${1:-} in
'') die "usage: $0 list | NAME [MUTANT]" ;;
list) list ;;
*) check "$@" ;;
esac
