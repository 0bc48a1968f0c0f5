#!/bin/bash
# SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
#
# Every list of the events that can be provoked names the same ones as the module's table (kernel/provoke.c).
#
#	scripts/check-events.sh [TREE]
#
# Prints what a list lacks (<) or has too many (>), and exits 1 if any does. wq-fatal can only be refused: the lists
# for people need not have it.

set -euo pipefail
cd "${1:-$(dirname "$0")/..}"

bad=0

agree() { # NAME EXPECTED FOUND: two lists, one event a line
	local difference
	difference=$(diff <(sort -u <<<"$2") <(sort -u <<<"$3") | grep '^[<>]' || true)
	[ -n "$difference" ] || return 0
	printf '%s and kernel/provoke.c disagree:\n%s\n' "$1" "$difference"
	bad=1
}

between() { # FILE FROM TO: what is between two lines that match, these included
	sed -n "/$2/,/$3/p" "$1"
}

module=$(sed -nE 's/^\t(QP|CQ|SRQ|DEV)\("([a-z-]+)",.*/\2/p' kernel/provoke.c)
people=$(grep -vx wq-fatal <<<"$module")
[ -n "$people" ] || {
	echo "kernel/provoke.c: no table of events found"
	exit 1
}

agree user/heraldctl/events.cc "$module" "$(sed -nE 's/^\t\{"([a-z-]+)", Object::.*/\1/p' user/heraldctl/events.cc)"
agree user/heraldctl/heraldctl.bash "$people" \
	"$(between user/heraldctl/heraldctl.bash 'local events="' '"$' | sed 's/local events=//' | tr -d '"' | tr -s ' \t' '\n' | sed '/^$/d')"
agree user/heraldctl/heraldctl.8 "$people" \
	"$(between user/heraldctl/heraldctl.8 '^is one of$' ' \.$' | sed -nE 's/^\.BR ([a-z\\-]+) .*/\1/p' | tr -d '\\')"
agree docs/events.md "$module" \
	"$(between docs/events.md '^| event | what happens |' '^$' | sed -nE 's/^\| ([a-z][a-z, -]+) \|.*/\1/p' | grep -v '^event$' | tr -d ' ' | tr ',' '\n')"
exit "$bad"
