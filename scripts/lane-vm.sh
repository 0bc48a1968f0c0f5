# SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
# shellcheck shell=bash
#
# What differs between the lanes' machines: their parts, how they are started and ended. For run-lane.sh, which sources
# it after lib.sh.

# prepare_parts LANE: builds or finds TREE, KERNEL (build tree) and IMAGE of the lane.
prepare_parts() {
	TREE=$("$TOP/scripts/build-rootfs.sh")
	case $1 in
	uml) KERNEL=$("$TOP/scripts/build-uml.sh") ;;
	debug)
		KERNEL=$("$TOP/scripts/build-debug-kernel.sh")
		IMAGE=$("$TOP/scripts/build-image.sh")
		;;
	stock | pair)
		IMAGE=$("$TOP/scripts/build-image.sh")
		;;
	esac
}

# kernel_of LANE: the lane that the kernel, and so the modules, are of
kernel_of() { if [ "$1" = pair ]; then echo stock; else echo "$1"; fi; }

# copy_peer_modules LANE FOLDER: the kernel's own modules, flat; the stock kernel has its in the image.
copy_peer_modules() {
	[ "$(kernel_of "$1")" != stock ] || return 0
	find "$KERNEL/" -name '*.ko' -exec cp -t "$2" {} +
}

# exec_vm LANE JOB-FOLDER: becomes the machine; its console is the standard output.
exec_vm() {
	case $1 in
	uml)
		# its memory is a file, best in a tmpfs that is large enough
		[ "$(df --output=avail -m /dev/shm | tail -n 1)" -lt 3000 ] || export TMPDIR=/dev/shm
		exec setsid "$KERNEL/linux" mem="${UML_MEM:-4G}" ncpus=2 seccomp=on con=null con0=null,fd:1 ssl=null \
			root=none rootfstype=hostfs "rootflags=$TREE" ro init=/sbin/herald-init \
			herald.overlay "herald.job=hostfs:$2" loglevel=4 panic=-1
		;;
	debug)
		# its ACPI interpreter, under KASAN and emulation, takes longer than everything else at boot; without it
		# the kernel sees one CPU a socket
		CPUS=2,sockets=2 qemu_words "$2" 4G -kernel "$KERNEL/arch/x86/boot/bzImage" -append "$(qemu_cmdline) acpi=off"
		exec setsid "${QEMU[@]}"
		;;
	stock)
		stock_qemu "$2" 3G
		exec setsid "${QEMU[@]}"
		;;
	pair)
		export IMAGE
		exec setsid "$TOP/scripts/pair-vm.sh" "$2"
		;;
	esac
}

CPUS=2 # of QEMU's machines

# The emulated TSC is good, but the kernel would not believe it, and ask an HPET, at which the emulator leaves its fast path.
qemu_cmdline() {
	echo "console=ttyS0 root=/dev/vda rw init=/sbin/herald-init herald.job=9p loglevel=4 panic=-1 oops=panic tsc=reliable"
}

# stock_qemu JOB-FOLDER MEMORY [WORD...]: leaves in QEMU what starts Debian's kernel, with these words on its command line
stock_qemu() {
	qemu_words "$1" "$2" -kernel "$IMAGE/vmlinuz" -initrd "$IMAGE/initrd.img" \
		-append "$(qemu_cmdline) log_buf_len=2M kfence.sample_interval=100 ${*:3}"
}

# Without "erms" and its younger relatives the kernel copies and clears by words: the emulator runs `rep movsb` and `rep stosb`
# byte by byte, and they would be all that is seen of anything that moves bytes.
qemu_cpu() {
	local cpu=max known flag
	known=" $(qemu-system-x86_64 -cpu help | tr -s '[:space:]' ' ') "
	for flag in erms fsrm fsrs fzrm; do
		case $known in *" $flag "*) cpu+=,$flag=off ;; esac
	done
	echo "$cpu"
}

qemu_words() { # JOB-FOLDER MEMORY ARG...
	QEMU=(
		qemu-system-x86_64 -accel "tcg,thread=multi" -cpu "$(qemu_cpu)" -smp "$CPUS" -m "$2"
		-nodefaults -no-user-config -no-reboot -display none -monitor none -serial stdio
		-drive "file=$IMAGE/root.ext2,format=raw,if=virtio,snapshot=on"
		-virtfs "local,path=$1,mount_tag=job,security_model=none,id=job"
		-device virtio-rng-pci "${@:3}"
	)
}

# kill_vm PID: the machine with the processes of its own session (UML has one for each address space; a pair's are two).
kill_vm() {
	kill -TERM "$1" 2>/dev/null || true
	timeout 10 tail --pid="$1" -f /dev/null 2>/dev/null || true
	kill -KILL -- "-$1" 2>/dev/null || true
}
