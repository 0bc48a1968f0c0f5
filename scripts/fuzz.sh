#!/bin/bash
# SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
#
# Builds tests/fuzz/NAME_fuzz.cc with the pure files, libFuzzer and sanitizers, and runs it.
#
#	scripts/fuzz.sh pkt|check [SECONDS]
#
# It begins with the packets of tests/golden (check: with conversations made of them) and what earlier runs here found
# (build/fuzz/corpus). An input that fails is
# kept in build/fuzz, and the last line says where: `build/fuzz/NAME_fuzz INPUT` runs it again.

. "$(dirname "$0")/lib.sh"

name=${1:-} seconds=${2:-5}
dir=$BUILD/fuzz
corpus=$dir/corpus/$name
flags=(-g -O1 -Wall -Wextra -Werror -fno-omit-frame-pointer "-fsanitize=fuzzer,address,undefined" -fno-sanitize-recover=all
	"-I$TOP/tests/shim" "-I$TOP/include/uapi")

# One file a packet, or a conversation.
seeds() {
	local packet hex rest
	if [ -x "$TOP/tests/fuzz/${name}_seeds.py" ]; then
		"$TOP/tests/fuzz/${name}_seeds.py" "$corpus"
		return
	fi
	while read -r packet hex rest; do
		[[ $packet != \#* ]] || continue
		printf '%b' "$(sed 's/../\\x&/g' <<<"$hex")" >"$corpus/${packet//\//-}"
	done <"$TOP/tests/golden/packets.txt"
}

build() {
	local file objects=()
	for file in opcode pkt wire_check; do
		clang-19 -std=gnu11 "${flags[@]}" -c "$TOP/kernel/$file.c" -o "$dir/$file.o"
		objects+=("$dir/$file.o")
	done
	clang++-19 -std=gnu++20 "${flags[@]}" "$TOP/tests/fuzz/${name}_fuzz.cc" "${objects[@]}" -o "$dir/${name}_fuzz"
}

# -max_len: a packet of the largest path MTU, and more
run() {
	"$dir/${name}_fuzz" -max_total_time="$seconds" -max_len=4608 -timeout=30 -print_final_stats=1 \
		-artifact_prefix="$dir/$name-" "$corpus"
}

# What went wrong, and where the input is.
finding() {
	grep -m 1 -E 'does not hold|ERROR: |runtime error' "$dir/$name.log" || echo "${name}_fuzz failed"
	sed -n 's/^artifact_prefix=.*Test unit written to /input: /p' "$dir/$name.log"
}

[ -f "$TOP/tests/fuzz/${name}_fuzz.cc" ] || die "usage: $0 pkt|check [SECONDS]"
lock_build fuzz
mkdir -p "$corpus"
build
seeds
run 2>&1 | tee "$dir/$name.log" | sed -u 's/^/   /' || die "$(finding)"
