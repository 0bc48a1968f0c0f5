#!/bin/bash
# SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
#
# Puts herd7 and the Linux kernel memory model into the cache and prints the folder: `FOLDER/herd7 FILE.litmus` checks a
# litmus test against the model, and FOLDER/version says which herd7 and which model that is.
#
# Of Debian's suites only sid has herd7, built for sid's C library. So it is unpacked, not installed, with the libraries
# that it needs, and runs through their own loader. Its version is whatever sid has; one that is in the cache stays. The
# model comes with the kernel's source, 6.12's, which the host lane has anyway.
#
#	scripts/fetch-herd.sh

. "$(dirname "$0")/lib.sh"

unpack_herd() { # FOLDER KERNEL_TARBALL
	local dir=$1 tarball=$2 packages loader libraries deb
	mkdir "$dir/debs" "$dir/root" "$dir/model"
	mapfile -t packages < <(private_apt apt-cache depends --recurse --no-recommends --no-suggests --no-conflicts \
		--no-breaks --no-replaces --no-enhances herdtools7 | sed -n 's/^\([a-z0-9].*\)$/\1/p')
	[ ${#packages[@]} -gt 0 ] || { echo "sid has no herdtools7, or its lists did not arrive" && return 1; }
	(cd "$dir/debs" && private_apt apt-get download "${packages[@]/%//sid}")
	for deb in "$dir"/debs/*.deb; do
		# of 250 MB, these few
		dpkg-deb --fsys-tarfile "$deb" | tar -x -C "$dir/root" --wildcards --ignore-failed-read \
			'./usr/bin/herd7' './usr/share/herdtools7/herd' './usr/lib/*.so*' './usr/lib64' './lib/*.so*' './lib64' \
			2>/dev/null || true
	done
	loader=$(find "$dir/root" -name 'ld-linux*.so.*' | sort | sed -n 1p)
	[ -x "$loader" ] && [ -x "$dir/root/usr/bin/herd7" ] || { echo "herdtools7's packages are not what they were" && return 1; }
	rm -r "$dir/debs"
	libraries=$(find "$dir/root" -name '*.so.*' -printf '%h\n' | sort -u | paste -sd:)

	tar -xJf "$tarball" -C "$dir/model" --wildcards --strip-components=3 \
		'*/tools/memory-model/linux-kernel.*' '*/tools/memory-model/lock.cat'
	cat >"$dir/herd7" <<-EOT
		#!/bin/sh
		exec "$loader" --library-path "$libraries" \\
			"$dir/root/usr/bin/herd7" -set-libdir "$dir/root/usr/share/herdtools7/herd" -I "$dir/model" \\
			-conf "$dir/model/linux-kernel.cfg" "\$@"
	EOT
	chmod 755 "$dir/herd7"
	printf 'herd7 %s; %s\n' "$("$dir/herd7" -version | sed 's/,.*//')" "$(basename "$tarball" .tar.xz)" >"$dir/version"
}

tarball=$("$TOP/scripts/fetch-source.sh" linux-6.12)
make_herd() {
	exec {lists}>"$CACHE/source/lock"
	flock "$lists"
	private_apt_update
	unpack_herd "$@"
}
cached herd "$(hash_of "$0" "$(basename "$tarball")")" "herd7 from sid" make_herd "$tarball"
printf '%s\n' "$CACHED"
