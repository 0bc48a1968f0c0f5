# SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
# shellcheck shell=bash
#
# Building user-space programs inside the guests' Debian 13 tree. For build-user.sh and provider-unit.sh, which
# source it after lib.sh.
#
# The sources are copied to build/NAME/.src first, and a file whose content is the same keeps its copy with its time: so
# what was built from the same sources in another clone can be taken over, and where some differ, ninja builds what
# depends on those and no more. Inside the tree the copy is /herald/repo, build/NAME is /herald/build and rdma-core's
# source and generated headers are in /herald/rdma-core/{source,build}.

tree=$("$TOP/scripts/build-rootfs.sh")
rdma_core=$("$TOP/scripts/build-rdma-core.sh")

# inside NAME CMD...
inside() {
	local out=$BUILD/$1
	shift
	in_tree "$tree" --bind "$out/.src:/herald/repo" --bind "$rdma_core:/herald/rdma-core" --bind "$out:/herald/build" "$@"
}

copy_sources() { # NAME PATH...
	local to=$BUILD/$1/.src path here=()
	shift
	mkdir -p "$to"
	for path; do
		if [ -e "$TOP/$path" ]; then here+=("$TOP/./$path"); else rm -rf "${to:?}/$path"; fi
	done
	# no --times: what has changed must be newer than what was made from it
	rsync -rlpR --checksum --delete "${here[@]}" "$to/"
}

run_build() { # NAME TARGET CMAKE-ARG...
	local name=$1 target=$2
	shift 2
	inside "$name" cmake -S /herald/repo -B /herald/build -G Ninja -DCMAKE_BUILD_TYPE=RelWithDebInfo \
		-DCMAKE_INSTALL_PREFIX=/usr -DCMAKE_INSTALL_SYSCONFDIR=/etc -DCMAKE_INSTALL_LIBDIR=lib/x86_64-linux-gnu \
		-DCMAKE_EXPORT_COMPILE_COMMANDS=1 \
		-DRDMA_CORE_SRC=/herald/rdma-core/source -DRDMA_CORE_BUILD=/herald/rdma-core/build "$@"
	inside "$name" ninja -C /herald/build -j"$JOBS" "$target"
	if [ "$target" = all ]; then
		rm -rf "$BUILD/$name/install"
		inside "$name" env DESTDIR=/herald/build/install ninja -C /herald/build install
	fi
}

# take_build NAME: the kept folder KEPT becomes build/NAME.
take_build() {
	rsync -a --delete --exclude /.used "$KEPT/" "$BUILD/$1/"
}

# build_in_tree WHAT NAME TARGET PATHS [CMAKE-ARG...]: build/NAME from these paths of the repository (one word).
build_in_tree() {
	local what=$1 name=$2 target=$3 out=$BUILD/$2 log=$BUILD/log/$2.log made_from key paths
	read -r -a paths <<<"$4"
	shift 4
	lock_build "$name"
	mkdir -p "$out"
	copy_sources "$name" "${paths[@]}"
	# another tree, another compiler or other arguments mean another build
	made_from=$(hash_of "$tree" "$rdma_core" "$target" "$TOP/scripts/user-lib.sh" "$@")
	key=$(hash_of "$made_from" "$(files_hash "$out/.src" .)")
	if [ "$(cat "$out/.key" 2>/dev/null)" = "$key" ]; then
		say "$what: nothing has changed"
		find_build "$name" "$key" || true
		return
	fi
	if find_build "$name" "$key"; then
		say "$what: built before"
		take_build "$name"
		return
	fi
	if [ "$(cat "$out/.made-from" 2>/dev/null)" != "$made_from" ]; then
		if newest_build "$name" && [ "$(cat "$KEPT/.made-from")" = "$made_from" ]; then
			take_build "$name"
		else
			find "$out" -mindepth 1 -delete
		fi
		copy_sources "$name" "${paths[@]}"
	fi
	rm -f "$out/.key"
	echo "$made_from" >"$out/.made-from"
	step "$what" "$log" run_build "$name" "$target" "$@"
	echo "$key" >"$out/.key"
	keep_build "$name" "$key" "$out"
	grep -E 'warning:' "$log" >&2 || true
}
