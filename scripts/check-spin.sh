#!/bin/bash
# SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
#
# Every state of the models in tests/spin, by spin.
#
#	scripts/check-spin.sh list			the runs of the models, and their mutants: MODEL RUN [MUTANT] a line
#	scripts/check-spin.sh MODEL RUN			no assertion fails, and nobody is left waiting, in any state
#	scripts/check-spin.sh MODEL RUN MUTANT		spin has to find the mutant, by the failure that the model names
#
# In a model, `// run RUN: DEFINES` is a run, and `// mutant MUTANT of RUN: FAILURE` a mutant, which is that run with
# MUTANT_... defined; FAILURE is a part of what spin says. The model that failed, its trail (spin -t -p) and what spin
# said stay in build/spin/MODEL-RUN[-MUTANT]. What passed is not run again until the model, spin or gcc changes.

. "$(dirname "$0")/lib.sh"

models=$TOP/tests/spin
run_timeout=900 # seconds; they take 1 to 20
memory=1900     # MB

list() {
	local file model
	for file in "$models"/*.pml; do
		model=$(basename "$file" .pml)
		sed -n "s|^// run \\([a-z-]*\\): .*|$model \\1|p" "$file"
		sed -n "s|^// mutant \\([a-z-]*\\) of \\([a-z-]*\\): .*|$model \\2 \\1|p" "$file"
	done
}

# search DEFINE...: spin's output, in $dir
search() {
	cp "$file" "$dir/model.pml"
	cd "$dir"
	spin "$@" -a model.pml || return
	# compressed, but nothing left out
	gcc "$optimise" -w -DSAFETY -DCOLLAPSE -DMEMLIM="$memory" -o pan pan.c || return
	timeout "$run_timeout" ./pan -m10000 -n
}

# judge FAILURE: is what spin said what it has to say?
judge() {
	if ! grep -q 'errors: [0-9]' "$dir/output"; then
		echo "spin did not finish: $(tail -n 1 "$dir/output")"
	elif [ -n "$1" ] && grep -qF 'errors: 0' "$dir/output"; then
		echo "not found: spin sees nothing wrong with the mutant"
	elif [ -n "$1" ]; then
		grep -F 'pan:1:' "$dir/output" | grep -qF "$1" && return
		echo "found, but by another failure than '$1': $(grep -m 1 -F 'pan:1:' "$dir/output")"
	elif ! grep -qF 'errors: 0' "$dir/output"; then
		echo "$(grep -m 1 -F 'pan:1:' "$dir/output"); see build/spin"
	elif grep -qE 'Search not completed|max search depth too small' "$dir/output"; then
		echo "not every state was looked at: $(grep -m 1 -E 'pan: reached|too small' "$dir/output")"
	else
		return 0
	fi
	cat "$dir/output"
	return 1
}

check() { # MODEL RUN [MUTANT]
	local defines failure='' macro optimise=-O2
	defines=$(sed -n "s|^// run $2: ||p" "$file")
	[ -n "$defines" ] || die "$1 has no run $2"
	read -r -a defines <<<"$defines"
	if [ -n "${3:-}" ]; then
		failure=$(sed -n "s|^// mutant $3 of $2: ||p" "$file")
		[ -n "$failure" ] || die "$1 has no mutant $3 of $2"
		macro=MUTANT_${3^^}
		optimise=-O1 # it is soon found
		defines+=("-D${macro//-/_}")
	fi
	(search "${defines[@]}") >"$dir/output" 2>&1 || true
	judge "$failure" || return
	rm -f "$dir"/pan*
}

case ${1:-} in
list) list ;;
'') die "usage: $0 list | MODEL RUN [MUTANT]" ;;
*)
	file=$models/$1.pml
	dir=$BUILD/spin/$1-${2:-}${3:+-$3}
	[ -e "$file" ] && [ -n "${2:-}" ] || die "usage: $0 list | MODEL RUN [MUTANT]"
	rm -rf "$dir"
	mkdir -p "$dir"
	pass_once spin "$(hash_of "$file" "$0" "$(spin -V)" "$(gcc --version)" "${@:2}")" check "$@"
	;;
esac
