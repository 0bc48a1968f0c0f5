#!/bin/bash
# SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
#
# Other devices and their providers next to ours: unharmed, whichever comes first. Two that want the same UDP port in
# one namespace cannot be; without the wire, they can.
# timeout: 120
# lanes: uml stock
. "$(dirname "$0")/lib.sh"

devices() { # NAME...: all of them are listed, and can be opened
	local name
	for name; do ibv_devices | grep -w "$name" && ibv_devinfo -d "$name" || return 1; done
}

pingpong() { # DEVICE
	local gid
	gid=$(ibv_devinfo -d "$1" -v | sed -n 's/^.*GID\[ *\([0-9]*\)\].*::ffff:192.0.2.*/\1/p' | sed -n 1p)
	client_server "pingpong_$1" 30 "ibv_rc_pingpong -d $1 -g $gid -n 50" "ibv_rc_pingpong -d $1 -g $gid -n 50 127.0.0.1"
}

# One clear line says why.
port_taken() {
	! link_add her0 dum0 && dmesg | grep 'herald: port 4791 is in use' && ! rdma link show her0/1
}
reload_without_wire() { rmmod herald && load_modules wire=off; }

check load_modules 30 load_modules || exit 1
add_netdev dum0 192.0.2.1/24
add_netdev dum1 192.0.2.129/25
check rxe_module 20 load_module rdma_rxe || exit 1
check rxe_first 20 link_add rxe0 dum1 rxe
check rxe_alone 20 devices rxe0
check port_taken 20 port_taken
check without_wire 30 reload_without_wire
check herald_too 20 link_add her0 dum0
check both 20 devices rxe0 her0
wait_gid() { wait_until grep -q ffff:c000:0281 /sys/class/infiniband/rxe0/ports/1/gids/0 /sys/class/infiniband/rxe0/ports/1/gids/1; }
check rxe_gid 30 wait_gid
pingpong her0
pingpong rxe0
check del_rxe 20 link_del rxe0
check herald_alone 20 devices her0
check del_herald 20 link_del her0
rmmod rdma_rxe 2>/dev/null
rmmod herald # what comes next has the wire again
exit 0
