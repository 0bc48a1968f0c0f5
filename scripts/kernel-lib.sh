# SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
# shellcheck shell=bash
#
# Building a kernel of a lane from a linux-source tarball and a config fragment. For build-uml.sh and
# build-debug-kernel.sh, which source it after lib.sh.

# unpack_source TARBALL DIR
unpack_source() {
	mkdir -p "$2"
	tar -xJf "$1" -C "$2" --strip-components=1 --exclude='*/Documentation/translations' --exclude='*/Documentation/ABI'
}

# check_config FRAGMENT CONFIG: every option of the fragment must have survived olddefconfig; names those that did not.
check_config() {
	local line option lost=0
	while read -r line; do
		option=${line%%=*}
		if [ "${line#*=}" = n ]; then
			! grep -q "^$option=" "$2" && continue
		else
			grep -qxF "$line" "$2" && continue
		fi
		echo "not honoured: $line ($(grep -E "^(# )?${option}[ =]" "$2" || echo absent))"
		lost=1
	done < <(grep '^CONFIG_' "$1")
	return $lost
}

# configure_kernel SOURCE BUILD FRAGMENT MAKE-ARG...: the fragment on top of tinyconfig.
configure_kernel() {
	local source=$1 build=$2 fragment=$3
	shift 3
	make -C "$source" O="$build" "$@" tinyconfig
	cat "$fragment" >>"$build/.config"
	make -C "$build" "$@" olddefconfig
	check_config "$fragment" "$build/.config"
}
