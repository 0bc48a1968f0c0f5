#!/bin/bash
# SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
#
# The pair lane's machine: two virtual machines, host a and host b, with two cables between them, v for what is tested and
# c for what the hosts have to tell each other. For exec_vm of lane-vm.sh.
#
#	IMAGE=FOLDER scripts/pair-vm.sh JOB-FOLDER
#
# One console: the lines of a as they are, those of b with "b: " before them. When one host has stopped, the other is given
# half a minute to do the same.

. "$(dirname "$0")/lib.sh"
. "$(dirname "$0")/lane-vm.sh"

cd "$1" # a socket's path is to be short
pids=()

# cable_end HOST CABLE NUMBER: QEMU's words for it. No packet gets lost there; the last byte of the address is the cable's number.
cable_end() {
	local other=b mac=0a
	[ "$1" = a ] || other=a mac=0b
	QEMU+=(
		-netdev "dgram,id=$2,local.type=unix,local.path=cable-$2.$1,remote.type=unix,remote.path=cable-$2.$other"
		-device "virtio-net-pci,netdev=$2,mac=52:54:00:00:$mac:0$3"
	)
}

start_host() { # HOST PREFIX
	stock_qemu "$PWD" "${PAIR_MEMORY:-1536M}" "herald.host=$1"
	cable_end "$1" v 1
	cable_end "$1" c 2
	"${QEMU[@]}" </dev/null > >(sed -u "s/^/$2/") 2>&1 &
	pids+=($!)
}

end_hosts() {
	kill -TERM "${pids[@]}" 2>/dev/null || true
	wait "${pids[@]}" 2>/dev/null || true
}
trap end_hosts EXIT
trap 'exit 143' TERM

rm -f cable-*
start_host b "b: "
start_host a ""
wait -n "${pids[@]}" || true
for pid in "${pids[@]}"; do timeout 30 tail --pid="$pid" -f /dev/null || echo "pair: the other host had to be stopped"; done
