# SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
# shellcheck shell=bash
#
# What every script here shares: strict mode, messages, long steps that show their progress, the cache outside the
# tree, and apt reached through the machine's own mirror. Source it; it runs nothing.

set -euo pipefail

TOP=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)
# shellcheck disable=SC2034 # for those who source this
BUILD=$TOP/build
CACHE=${XDG_CACHE_HOME:-${HOME:-/root}/.cache}/herald
# shellcheck disable=SC2034 # for those who source this
JOBS=${JOBS:-$(nproc)}
export DEBIAN_FRONTEND=noninteractive LC_ALL=C.UTF-8

say() { printf '== %s\n' "$*" >&2; }
warn() { printf 'warning: %s\n' "$*" >&2; }
die() {
	printf 'error: %s\n' "$*" >&2
	exit 1
}

need_root() { [ "$(id -u)" = 0 ] || die "$(basename "$0") has to run as root (apt, chroot, mount)"; }

# --- long steps -------------------------------------------------------------------------------------------------

STEP_PGID=

# A step runs in its own process group, so that an interrupted script takes it along.
stop_step() {
	[ -n "$STEP_PGID" ] || return 0
	kill -TERM -- "-$STEP_PGID" 2>/dev/null || true
	STEP_PGID=
}
trap stop_step EXIT
trap 'stop_step; exit 130' INT
trap 'stop_step; exit 143' TERM

# step WHAT LOG CMD...: CMD (a command or function) with its output in LOG. A line every 15 s says how long it has
# been running and what it printed last; if it fails, the end of the log is shown and the script's own status is 1.
step() {
	local what=$1 log=$2 start=$SECONDS rc last pipe
	shift 2
	mkdir -p "$(dirname "$log")"
	rm -f "$log.status"
	say "$what"
	exec {pipe}<> <(:)
	set -m
	(
		set +e
		(
			trap - EXIT INT TERM
			set -e
			"$@"
		) >"$log" 2>&1 </dev/null
		echo $? >"$log.status"
		# one byte: a read that times out in the middle of a line has lost its beginning
		echo >&"$pipe"
	) &
	STEP_PGID=$!
	set +m
	until read -r -t 15 <&"$pipe"; do
		last=$(tail -n 1 "$log" 2>/dev/null | tr -cd '[:print:]' | cut -c 1-90)
		printf '   %4ds %s: %s\n' $((SECONDS - start)) "$what" "$last" >&2
		# its reporter may have been killed between two looks
		kill -0 "$STEP_PGID" 2>/dev/null || break
	done
	exec {pipe}>&-
	wait "$STEP_PGID" 2>/dev/null || true
	STEP_PGID=
	rc=$(cat "$log.status" 2>/dev/null || echo 137)
	rm -f "$log.status"
	if [ "$rc" != 0 ]; then
		printf '%s\n' "--- end of $log" >&2
		tail -n "${STEP_TAIL:-40}" "$log" >&2
		die "$what failed (status $rc, $((SECONDS - start)) s); log: $log"
	fi
	printf '   %4ds %s: done\n' $((SECONDS - start)) "$what" >&2
}

# --- cache ------------------------------------------------------------------------------------------------------

# hash_of WORD...: a key of the words; a word that names a file stands for its content.
hash_of() {
	local word
	for word; do
		if [ -f "$word" ]; then sha256sum <"$word"; else printf '%s\n' "$word"; fi
	done | sha256sum | cut -c 1-16
}

# cached NAME KEY WHAT FUNC [ARG...]: leaves in CACHED the cache folder NAME-KEY, made by `FUNC FOLDER ARG...` if it is
# not there. Build trees hold their own absolute path, so a folder is made in place and counts only once its `.done` is
# there. (No command substitution here: a subshell would lose the traps that end an interrupted step.)
cached() {
	local name=$1 dir=$CACHE/$1-$2 what=$3 func=$4 lock
	shift 4
	mkdir -p "$CACHE/log"
	exec {lock}>"$CACHE/$name.lock"
	if ! flock -n "$lock"; then
		say "$what: another run is making it, waiting"
		flock "$lock"
	fi
	if [ ! -e "$dir/.done" ]; then
		rm -rf --one-file-system "$dir"
		mkdir -p "$dir"
		# the lock must not outlive this script in a child
		step "$what" "$CACHE/log/$name.log" "$func" "$dir" "$@" {lock}>&-
		touch "$dir/.done.tmp"
		mv "$dir/.done.tmp" "$dir/.done"
		prune_cache "$name" "$dir"
	fi
	touch "$dir/.used"
	exec {lock}>&-
	# shellcheck disable=SC2034 # the result
	CACHED=$dir
}

# Folders of the same name with another key go once they have not been used for two weeks.
prune_cache() {
	local old
	for old in "$CACHE/$1"-*/; do
		old=${old%/}
		[ "$old" = "$2" ] && continue
		[[ ${old#"$CACHE/$1-"} =~ ^[0-9a-f]{16}$ ]] || continue
		if [ -n "$(find "$old/.used" -mtime -14 2>/dev/null)" ]; then continue; fi
		rm -rf --one-file-system "$old"
	done
}

# files_hash FOLDER PATH...: a key of the names and contents of the source files in these paths of the folder.
files_hash() {
	local folder=$1
	shift
	(
		cd "$folder"
		find "$@" -type f ! -name '*.o' ! -name '*.ko' ! -name '*.mod' ! -name '*.mod.c' ! -name '.*.cmd' \
			! -name modules.order ! -name Module.symvers -print0 |
			LC_ALL=C sort -z | xargs -0r sha256sum
	) | sha256sum | cut -c 1-16
}

# What was built is kept by a hash of what it was built from, so that another clone, or this one back at an older state,
# builds nothing. The newest KEEP_BUILDS of each name stay.
#
# keep_build NAME KEY FOLDER, find_build NAME KEY, newest_build NAME: the latter two leave the kept folder in KEPT, or
# give 1. A kept folder never changes; hold_builds, which they call, keeps it from being pruned until this script ends.
KEEP_BUILDS=${KEEP_BUILDS:-4}
KEPT=
BUILDS_HELD=

hold_builds() {
	mkdir -p "$CACHE/built"
	[ -n "$BUILDS_HELD" ] || exec {BUILDS_HELD}>"$CACHE/built/lock"
	flock -s "$BUILDS_HELD"
}

find_build() {
	hold_builds
	KEPT=$CACHE/built/$1-$2
	[ -e "$KEPT/.used" ] || return 1
	touch "$KEPT/.used"
}

newest_build() {
	hold_builds
	local used
	used=$(list_builds "$1" | sed -n 1p)
	KEPT=${used%/.used}
	[ -n "$KEPT" ]
}

list_builds() {
	find "$CACHE/built" -mindepth 2 -maxdepth 2 -path "$CACHE/built/$1-*/.used" -printf '%T@ %p\n' 2>/dev/null |
		sort -rn | cut -d ' ' -f 2- | grep -E "/$1-[0-9a-f]{16}/" || true
}

keep_build() {
	local dir=$CACHE/built/$1-$2 tmp old
	hold_builds
	if [ ! -e "$dir/.used" ]; then
		tmp=$(mktemp -d "$CACHE/built/tmp.XXXXXX")
		chmod 755 "$tmp"
		cp -a "$3/." "$tmp/"
		touch "$tmp/.used"
		mv -T "$tmp" "$dir" 2>/dev/null || rm -rf --one-file-system "$tmp" # another run was first
	fi
	# nobody prunes what somebody reads
	flock -n -x "$BUILDS_HELD" || return 0
	list_builds "$1" | tail -n +$((KEEP_BUILDS + 1)) | while read -r old; do
		rm -rf --one-file-system "${old%/.used}"
	done
	find "$CACHE/built" -mindepth 1 -maxdepth 1 -name 'tmp.*' -mmin +60 -exec rm -rf --one-file-system {} +
	flock -s "$BUILDS_HELD"
}

# pass_once NAME KEY CMD...: a check that passed is not made again for the same key.
pass_once() {
	local name=$1 key=$2 empty
	shift 2
	find_build "passed-$name" "$key" && return
	"$@" || return
	empty=$(mktemp -d)
	KEEP_BUILDS=100 keep_build "passed-$name" "$key" "$empty"
	rmdir "$empty"
}

# lock_build NAME: one run at a time for a part of build/, until this script ends.
lock_build() {
	local lock
	mkdir -p "$BUILD/lock"
	exec {lock}>"$BUILD/lock/$1"
	flock -n "$lock" && return
	say "another run has build/$1, waiting"
	flock "$lock"
}

# --- apt --------------------------------------------------------------------------------------------------------

APT_UPDATED=

# A third party's archive that is away is no reason to stop: what is missing shows at the install.
update_lists() { apt-get -o Acquire::Retries=3 update || echo "some lists did not arrive"; }

apt_update_once() {
	[ -z "$APT_UPDATED" ] || return 0
	step "apt-get update" "$CACHE/log/apt-update.log" update_lists
	APT_UPDATED=1
}

# apt_install PACKAGE...: those that are missing, and only if some are.
apt_install() {
	local package missing=()
	for package; do
		[ "$(dpkg-query -W -f '${db:Status-Abbrev}' "$package" 2>/dev/null)" = 'ii ' ] || missing+=("$package")
	done
	[ ${#missing[@]} -gt 0 ] || return 0
	need_root
	apt_update_once
	say "missing here: ${missing[*]}"
	step "apt-get install" "$CACHE/log/apt-install.log" \
		apt-get -o Acquire::Retries=3 -o DPkg::Lock::Timeout=300 install -y --no-install-recommends "${missing[@]}"
}

# apt_mirror: the address of the Debian archive that this machine's apt is set up with.
apt_mirror() {
	local uri
	# shellcheck disable=SC2016 # apt's own variables
	find_mirror() {
		apt-get indextargets --format '$(ORIGIN)|$(REPO_URI)' 'Created-By: Packages' | sed -n 's/^Debian|//p' |
			grep -v -e security -e backports | sort -u | sed -n 1p
	}
	uri=$(find_mirror)
	if [ -z "$uri" ]; then # a fresh machine has no lists yet
		apt_update_once >&2
		uri=$(find_mirror)
	fi
	[ -n "$uri" ] || die "apt knows no Debian archive (apt-get indextargets names none)"
	printf '%s\n' "$uri"
}

# A private apt for other suites, which leaves the machine's own alone: private_apt COMMAND ARG... (a mirror that stands
# still is as good here: sid's lists would expire after a week)
private_apt() {
	local tool=$1 dir=$CACHE/apt
	shift
	"$tool" -o Dir::Etc::sourcelist="$dir/sources.list" -o Dir::Etc::sourceparts=/nonexistent \
		-o Dir::State::Lists="$dir/lists" -o Dir::Cache="$dir/cache" -o Acquire::Retries=3 \
		-o Acquire::Languages=none -o Acquire::Check-Valid-Until=false -o APT::Sandbox::User=root -o APT::Get::List-Cleanup=false "$@"
}

private_apt_update() {
	local mirror keyring dir=$CACHE/apt
	for keyring in /usr/share/keyrings/debian-archive-keyring.{pgp,gpg}; do [ ! -e "$keyring" ] || break; done
	mirror=$(apt_mirror)
	mkdir -p "$dir/lists/partial" "$dir/cache/archives/partial"
	cat >"$dir/sources.list" <<-EOT
		deb [signed-by=$keyring] $mirror sid main
		deb [signed-by=$keyring] $mirror trixie main
		deb-src [signed-by=$keyring] $mirror trixie main
	EOT
	step "apt lists of trixie and sid" "$CACHE/log/apt-suites.log" private_apt apt-get update
}

# --- the guests' tree -------------------------------------------------------------------------------------------

# in_tree TREE [--bind FROM:TO]... CMD ARG...: runs CMD in the tree, with host folders bound to its folders, in a mount
# namespace of its own, so that nothing stays mounted. The tree itself is read-only there.
in_tree() {
	# shellcheck disable=SC2016 # expanded by the inner shell
	local tree=$1 script='set -e; tree=$1; shift
		mount --bind "$tree" "$tree"; mount -o remount,bind,ro "$tree"
		mount -t proc proc "$tree/proc"; mount --rbind /dev "$tree/dev"
		mount -t tmpfs tmpfs "$tree/tmp"; mount -t tmpfs tmpfs "$tree/run"
		while [ "$1" = --bind ]; do mount --bind "${2%%:*}" "$tree${2#*:}"; shift 2; done
		exec chroot "$tree" env -i HOME=/tmp PATH=/usr/sbin:/usr/bin:/sbin:/bin LC_ALL=C.UTF-8 TERM=dumb "$@"'
	need_root
	shift
	unshare --mount --propagation private bash -c "$script" in_tree "$tree" "$@"
}
