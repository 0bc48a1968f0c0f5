#!/bin/bash
# SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
#
# checkpatch.pl --strict over all C of the module, the ABI and the tests in the kernel. The script is that of the 6.12
# source, which the lanes fetch anyway: a newer one would ask for what 6.12 has not.
#
#	scripts/check-kernel-style.sh

. "$(dirname "$0")/lib.sh"

# What it is not asked about, and why:
ignore=(
	BIT_MACRO              # the pure files and the ABI are compiled in user space too, which has no BIT()
	BLOCK_COMMENT_STYLE    # a field's comment may go on in a second line
	COMPLEX_MACRO          # lists of the form X(a) X(b)
	MACRO_ARG_REUSE        # the same lists
	MACRO_WITH_FLOW_CONTROL # KRPING_EXPECT() and KRPING_DO() end the test
	TRAILING_SEMICOLON     # what such a list is expanded to
	UNCOMMENTED_DEFINITION # locks are described in the kernel-doc of their struct
)

extract() { # DIR TARBALL
	tar -xJf "$2" -C "$1" --wildcards --strip-components=2 \
		'*/scripts/checkpatch.pl' '*/scripts/spelling.txt' '*/scripts/const_structs.checkpatch'
	test -s "$1/checkpatch.pl" && test -s "$1/spelling.txt" && test -s "$1/const_structs.checkpatch"
}

tarball=$("$TOP/scripts/fetch-source.sh" linux-6.12)
cached checkpatch "$(hash_of "$0" "$(basename "$tarball")")" "checkpatch.pl" extract "$tarball"
cd "$TOP"
mapfile -t files < <(find kernel include tests/kunit tests/kmod \( -name '*.c' -o -name '*.h' \) ! -name '*.mod.c' | sort)
pass_once checkpatch "$(hash_of "$CACHED" "$(files_hash . "${files[@]}")")" \
	perl "$CACHED/checkpatch.pl" -f --no-tree --strict --max-line-length=100 --show-types --terse --no-summary --quiet \
		--ignore "$(IFS=,; printf %s "${ignore[*]}")" "${files[@]}"
