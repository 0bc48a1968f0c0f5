#!/bin/bash
# SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
#
# librdmacm's own programs: connections, datagrams, multicast, rsockets; IPv4 and IPv6.
# timeout: 400
# lanes: uml stock
. "$(dirname "$0")/lib.sh"

n=$((100 / FACTOR + 10))

cm_test() { # NAME SECONDS PORT SERVER CLIENT
	CLIENT_WAIT=wait_cm_listen PORT=$3 client_server "$1" "$2" "$4" "$5"
}

family() { # v4|v6 ADDRESS
	local f=$1 a=$2 p
	cm_test "rping-$f" 30 7174 "$RPING -s -a $a -v -V -C $n" "$RPING -c -a $a -v -V -C $n"
	cm_test "rping-$f-big" 30 7174 "$RPING -s -a $a -V -S 65000 -C 10" "$RPING -c -a $a -V -S 65000 -C 10"
	p=7471
	cm_test "ucmatose-$f" 30 $p "ucmatose -b $a -f $([ $f = v4 ] && echo ip || echo ip6) -c 4 -C 20" \
		"ucmatose -s $a -b $a -f $([ $f = v4 ] && echo ip || echo ip6) -c 4 -C 20"
	cm_test "udaddy-$f" 30 7174 "udaddy -b $a -c 2 -C 20" "udaddy -b $a -s $a -c 2 -C 20"
	cm_test "rdma_server-$f" 30 7471 "rdma_server -s $a -p 7471" "rdma_client -s $a -p 7471"
	# rdma_xserver listens on IPv4 alone
	[ "$f" = v6 ] || cm_test "rdma_xserver-$f" 30 7471 "rdma_xserver -p 7471 -c r" "rdma_xclient -s $a -p 7471 -c r"
	cm_test "rstream-$f" 60 7471 "rstream -b $a -p 7471 -f $([ $f = v4 ] && echo ip || echo ip6) -T r -S 4096 -C 20" \
		"rstream -s $a -p 7471 -f $([ $f = v4 ] && echo ip || echo ip6) -T r -S 4096 -C 20"
}

# Both ends join the group; the receiver ends once it has its messages.
mcast_body() { # OWN-ADDRESS GROUP
	local pid rc=0
	mckey -b "$1" -m "$2" -c 1 -C 10 &
	pid=$!
	# the receiver has joined when its QP is a member; there is nothing to ask, so the sender repeats itself
	while kill -0 $pid 2>/dev/null; do
		mckey -b "$1" -m "$2" -s -c 1 -C 10 || rc=$?
		[ $rc = 0 ] || break
	done
	[ $rc = 0 ] || kill $pid 2>/dev/null
	wait $pid || rc=$?
	return $rc
}

check load_modules 30 load_modules || exit 1
add_netdev dum0 192.0.2.1/24
ip addr add 2001:db8::1/64 dev dum0 nodad
check link_add 20 link_add cm0 dum0 || exit 1
family v4 192.0.2.1
family v6 2001:db8::1
check mckey-v4 60 mcast_body 192.0.2.1 239.1.2.3
# the kernel joins no IPv6 groups for RoCE (cma_iboe_join_multicast: ENOTSUPP)

# CASES 70, in small: nothing is left behind by many connections.
many_connections() {
	local before after
	before=$(rdma resource show cm0)
	for _ in $(seq $((20 / FACTOR + 3))); do
		client_server_body "$RPING -s -a 192.0.2.1 -C 3" "$RPING -c -a 192.0.2.1 -C 3" || return 1
	done
	for _ in $(seq 100); do
		after=$(rdma resource show cm0)
		[ "$before" = "$after" ] && return 0
		read -r -t 0.2 <> <(:) || true
	done
	echo "before: $before"
	echo "after: $after"
	return 1
}
CLIENT_WAIT=wait_cm_listen PORT=7174 check many_connections 120 many_connections
check link_del 20 link_del cm0

# CASES 74. Not on lo: RDMA CM looks for RoCE devices on Ethernet interfaces alone (cma_validate_port), and takes
# 127.0.0.1 for "any device".
veth_pair veth0 198.51.100.1/24 veth1 198.51.100.2/24 9000
add_netdev br0 203.0.113.1/24 bridge
for netdev in veth0 br0; do
	address=198.51.100.1
	[ $netdev = veth0 ] || address=203.0.113.1
	check "link_add_$netdev" 20 link_add cm1 $netdev || continue
	cm_test "rping-$netdev" 30 7174 "$RPING -s -a $address -V -C $n" "$RPING -c -a $address -V -C $n"
	cm_test "ucmatose-$netdev" 30 7471 "ucmatose -b $address -C 5" "ucmatose -s $address -b $address -C 5"
	check "link_del_$netdev" 20 link_del cm1
done
exit 0
