#!/bin/bash
# SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
#
# Rules for every file of the repository:
#
#	scripts/check-tree.sh licence	each source file says its licence in its first lines
#	scripts/check-tree.sh hosts	what runs or is read names no host: packages come from the machine's own mirror
#
# Prints FILE: RULE for every violation, and exits 1 if there was one.

set -euo pipefail
cd "$(dirname "$0")/.."

# all but what is built
files() {
	find . \( -path ./build -o -path ./.git -o -name __pycache__ \) -prune -o -type f ! -name '*.o' ! -name '*.ko' \
		! -name '*.mod' ! -name '*.mod.c' ! -name '.*.cmd' ! -name modules.order ! -name Module.symvers -print |
		sed 's|^\./||' | sort
}

# Licences' own texts, prose, and data that is read line by line need none.
licence() {
	local file bad=0
	while read -r file; do
		[ -f "$file" ] || continue
		case $file in
		LICENSE | LICENSES/* | *.md | .gitignore | tests/lanes/*.config | *.txt | *.driver)
			case $file in */CMakeLists.txt | CMakeLists.txt | kernel/*) ;; *) continue ;; esac ;;
		esac
		head -n 3 "$file" | grep -qE 'SPDX-License-Identifier: \(?\(?GPL-2\.0' && continue
		printf '%s: no SPDX line in the first three\n' "$file"
		bad=1
	done < <(files)
	return $bad
}

hosts() {
	local names='https?://|\<[a-z0-9-]+(\.[a-z0-9-]+)*\.(org|com|io|net|dev)\>' hits
	# C and C++ have members with such names
	hits=$(files | grep -vE '^LICENSES?(/|$)|\.(c|cc|h)$|^scripts/check-tree\.sh$' |
		xargs -d '\n' grep -nIE -- "$names" || true)
	hits+=$(files | grep -E '\.(c|cc|h)$' | xargs -d '\n' grep -nIE -- 'https?://' || true)
	[ -z "$hits" ] && return
	sed 's/$/ (names a host)/' <<<"$hits"
	return 1
}

case ${1:-} in
licence) licence ;;
hosts) hosts ;;
*)
	echo "usage: $0 licence | hosts" >&2
	exit 2
	;;
esac
