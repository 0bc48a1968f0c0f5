#!/bin/bash
# SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
#
# The user space's C++ (and the provider's C) under the LLVM tools. Version 19 is in Debian 12 and in Debian 13, and
# another one would format and warn otherwise, so it is called by that name.
#
#	scripts/check-cxx.sh format		what clang-format would change
#	scripts/check-cxx.sh format --fix	... and changes it
#	scripts/check-cxx.sh tidy FILE		clang-tidy; a file that passed is not looked at again until it, a header or
#						.clang-tidy changes

. "$(dirname "$0")/lib.sh"

format() {
	local fix=${1:-} file bad=0
	while read -r file; do
		if [ "$fix" = --fix ]; then
			clang-format-19 -i "$file"
		elif ! clang-format-19 "$file" | diff -u --label "$file" --label "$file, formatted" "$file" -; then
			bad=1
		fi
	done < <(find user tests/user tests/fuzz docs \( -name '*.cc' -o -name '*.h' -o -name '*.c' \) | sort)
	return $bad
}

tidy() {
	local file=$1 rdma_core key
	rdma_core=$("$TOP/scripts/build-rdma-core.sh")
	key=$(hash_of "$(clang-tidy-19 --version | grep -m 1 version)" "$rdma_core" "$file" "$0" \
		"$(find . -path ./build -prune -o -name .clang-tidy -exec cat {} +)" \
		"$(files_hash . include "$(dirname "$file")" user/provider)")
	pass_once tidy "$key" clang-tidy-19 --quiet "$file" -- -std=gnu++20 -Wall -Wextra -Wno-missing-field-initializers \
		-DHERALDCTL_VERSION='"0"' -DHERALDCTL_LIBDIR='"/usr/lib"' -DHERALDCTL_PROVIDER='"lib"' -DFMT_HEADER_ONLY \
		-Iinclude/uapi -Iuser/provider -isystem /usr/include/libnl3 -isystem "$rdma_core/build/include"
}

cd "$TOP"
case ${1:-} in
format) format "${@:2}" ;;
tidy) tidy "${2:?no file}" ;;
*) die "usage: $0 format [--fix] | tidy FILE" ;;
esac
