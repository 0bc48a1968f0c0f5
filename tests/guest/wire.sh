# SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
# shellcheck shell=bash
#
# For the jobs about the wire, after lib.sh: two hosts with a cable between them. Host a is the namespace of the job, with
# the device wa on the interface va; host b is the namespace B, with wb on vb. In the pair lane, host b is another machine.

readonly ADDRESS_a=198.51.100.1 ADDRESS_b=198.51.100.2 ADDRESS6_a=2001:db8::1 ADDRESS6_b=2001:db8::2
WIRE_PORT=18800

# on HOST CMD...: CMD there. `ip netns exec` shows it the sysfs of its namespace as well.
on() {
	local host=$1
	shift
	if [ "$host" = a ]; then "$@"; else ip netns exec B "$@"; fi
}
# The same as words for a command line
at() { [ "$1" = a ] || echo "ip netns exec B"; }
other() { if [ "$1" = a ]; then echo b; else echo a; fi; }
# there HOST FUNCTION...: a function of the job (which calls no other of the job's), of lib.sh or of wire.sh at that host
there() {
	# shellcheck disable=SC2016 # for the shell there
	on "$1" bash -c '. "$JOBDIR/guest/lib.sh"; . "$JOBDIR/guest/wire.sh"; '"$(declare -f "$2")"'; "$@"' there "${@:2}"
}

# cable [MTU]: the two hosts, and what is between them
cable() {
	veth_pair va $ADDRESS_a/24 vb $ADDRESS_b/24 "${1:-}" B || return 1
	ip addr add $ADDRESS6_a/64 dev va nodad
	on b ip addr add $ADDRESS6_b/64 dev vb nodad
}
set_mtu() {
	ip link set va mtu "$1" && on b ip link set vb mtu "$1"
}
# device HOST [TYPE]: that host's
device() { on "$1" rdma link add "w$1" type "${2:-$DEV_TYPE}" netdev "v$1"; }
device_gone() { ! on "$1" rdma link show "w$1/1" >/dev/null 2>&1; }

# gid_index DEVICE v4|v6|ll [SUFFIX]: its first RoCEv2 GID of the family (IPv4, IPv6, IPv6 link-local) that ends so
gid_index() {
	local dir=/sys/class/infiniband/$1/ports/1 i gid type
	for i in $(seq 0 31); do
		{ read -r type <"$dir/gid_attrs/types/$i" && read -r gid <"$dir/gids/$i"; } 2>/dev/null || continue
		[ "$type" = "RoCE v2" ] || continue
		case $2:$gid in
		v4:0000:0000:0000:0000:0000:ffff:*"${3:-}" | v6:2001:*"${3:-}" | ll:fe80:*"${3:-}") ;;
		*) continue ;;
		esac
		echo "$i"
		return
	done
	return 1
}
gid() { # HOST FAMILY [SUFFIX]
	on "$1" bash -c "$(declare -f gid_index); gid_index w$1 $2 ${3:-}"
}
# know_gids: GID_a_v4 and so on, from now on
# shellcheck disable=SC2034
GID_a_v4='' GID_b_v4=''
know_gids() {
	local host family
	for host in a b; do
		for family in v4 v6 ll; do declare -g "GID_${host}_$family=$(gid $host $family)"; done
	done
}
known_gid() { # HOST FAMILY
	local name=GID_$1_$2
	echo "${!name}"
}
# wait_gids: until both hosts have all of theirs: a link-local address comes when the stack has seen the cable
wait_gids() {
	local host family
	for host in a b; do
		for family in v4 v6 ll; do wait_until gid $host $family >/dev/null; done
	done
}

# counter HOST NAME: of that host's device
counter() {
	statistic "$1" | sed -n "s/^$2 //p"
}
# counters HOST: those about the wire that are not 0
counters() {
	printf 'w%s: ' "$1"
	statistic "$1" | awk '$2 != 0 && /wire|retr|dupl|nak|icrc|peer|ud_|uc_|mcast/ { printf "%s=%s ", $1, $2 }'
	echo
}
# shellcheck disable=SC2020
statistic() { on "$1" rdma statistic show link "w$1/1" | tr -s ' \n' '\n\n' | paste -d ' ' - -; }

# between NAME SECONDS SERVER-HOST SERVER-CMD CLIENT-CMD: as client_server; the client is on the other host. The ping-pongs
# look at what they have received, but do not fail for it.
between() {
	HANGS_AFTER=$(($2 * FACTOR - 5)) check "$1" "$2" between_body "${@:3}"
}
between_body() {
	local host=$1 out watcher='' rc=0
	out=$(mktemp)
	if [ -n "${HANGS_AFTER:-}" ]; then
		look_at_hang "$HANGS_AFTER" &
		watcher=$!
	fi
	SERVER_HOST=$host CLIENT_WAIT=${CLIENT_WAIT:-wait_wire_listen} PORT=${PORT:-$WIRE_PORT} \
		client_server_body "$(at "$host") $2" "$(at "$(other "$host")") $3" 2>&1 | tee "$out"
	rc=${PIPESTATUS[0]}
	[ -z "$watcher" ] || kill "$watcher"
	[ "$rc" = 0 ] && ! grep "invalid data" "$out" && return 0
	counters a && counters b && grep "invalid data" "$out"
	[ "$rc" != 0 ] && return "$rc"
	return 1
}
# look_at_hang SECONDS: what there is to see of programs that have not ended by then; soon afterwards they are made to.
look_at_hang() {
	local host
	read -r -t "$1" <> <(:)
	for host in a b; do
		counters $host
		on $host rdma resource show qp link "w$host/1"
	done
}
wait_wire_listen() { # PORT PID
	wait_until listens_or_gone "$2" on "${SERVER_HOST:-a}" ss -Hltn "sport = :$1" && kill -0 "$2"
}
# A listener may be of either host's process: in the namespace mode "shared" both see all.
wait_wire_cm() { # PORT PID
	wait_until listens_or_gone "$2" cm_listener_on "${SERVER_HOST:-a}" "$1" && kill -0 "$2"
}
cm_listener_on() { on "$1" rdma resource show cm_id | grep "state LISTEN.*:$2\b"; }

address() { # HOST v4|v6|ll, as the other host has to call it
	local name=ADDRESS_$1
	[ "$2" != v6 ] || name=ADDRESS6_$1
	if [ "$2" = ll ]; then
		on "$1" ip -6 -o addr show dev "v$1" scope link | sed 's/.*inet6 \([^/]*\).*/\1/' | tr -d '\n'
		echo "%v$(other "$1")"
	else
		echo "${!name}"
	fi
}

# pingpong NAME SERVER-HOST FAMILY KIND OPTIONS...
pingpong() {
	local name=$1 host=$2 family=$3 program=ibv_$4_pingpong client
	client=$(other "$host")
	shift 4
	WIRE_PORT=$((WIRE_PORT + 1))
	between "$name" 30 "$host" "$program -d w$host -g $(known_gid "$host" "$family") -p $WIRE_PORT $*" \
		"$program -d w$client -g $(known_gid "$client" "$family") -p $WIRE_PORT $* $(address "$host" v4)"
}
# perftest NAME SERVER-HOST FAMILY PROGRAM OPTIONS...
perftest() {
	local name=$1 host=$2 family=$3 program=$4 client
	client=$(other "$host")
	shift 4
	WIRE_PORT=$((WIRE_PORT + 1))
	set -- -F ${PERFTEST_OPTIONS:-} "$@"
	between "$name" 40 "$host" "$program -d w$host -x $(known_gid "$host" "$family") -p $WIRE_PORT $*" \
		"$program -d w$client -x $(known_gid "$client" "$family") -p $WIRE_PORT $* $(address "$host" v4)"
}
# rdma_cm NAME PORT SERVER-HOST SERVER-CMD CLIENT-CMD
rdma_cm() {
	CLIENT_WAIT=wait_wire_cm PORT=$2 between "$1" 40 "$3" "$4" "$5"
}

# rdma_cm_programs NAME-PREFIX SERVER-HOST FAMILY N
rdma_cm_programs() {
	local host=$2 n=$4 server client f=ip
	server=$(address "$host" "$3")
	client=$(address "$(other "$host")" "$3")
	if [ "$3" = ll ]; then
		# each side has its own name for the link
		rdma_cm "$1rping-ll" 7174 "$host" "$RPING -s -a ${server%\%*}%v$host -V -C $n" "$RPING -c -a $server -V -C $n"
		return
	fi
	[ "$3" = v4 ] || f=ip6
	rdma_cm "$1rping-$3" 7174 "$host" "$RPING -s -a $server -V -C $n" "$RPING -c -a $server -V -C $n"
	rdma_cm "$1rping-$3-big" 7174 "$host" "$RPING -s -a $server -V -S 65000 -C 10" "$RPING -c -a $server -V -S 65000 -C 10"
	rdma_cm "$1ucmatose-$3" 7471 "$host" "ucmatose -b $server -f $f -c 4 -C 20" \
		"ucmatose -s $server -b $client -f $f -c 4 -C 20"
	rdma_cm "$1udaddy-$3" 7174 "$host" "udaddy -b $server -c 2 -C 20" "udaddy -s $server -b $client -c 2 -C 20"
}

# mcast_body RECEIVER-HOST GROUP: the sender repeats itself until the receiver, which nobody can ask whether it has joined,
# has its messages.
mcast_body() {
	local host=$1 pid rc=0 to
	to=$(other "$host")
	on "$host" mckey -b "$(address "$host" v4)" -m "$2" -c 1 -C 10 &
	pid=$!
	while kill -0 $pid 2>/dev/null; do
		on "$to" mckey -b "$(address "$to" v4)" -m "$2" -s -c 1 -C 10 || rc=$?
		[ $rc = 0 ] || break
	done
	[ $rc = 0 ] || kill $pid 2>/dev/null
	wait $pid || rc=$?
	return $rc
}

# data NAME FAMILY PATH-MTU [KIND...]: each byte, by a process that sees both devices (not so in the namespace mode "exclusive")
data() {
	check "$1" 60 python3 "$JOBDIR/guest/wire_data.py" wa "$(known_gid a "$2")" wb "$(known_gid b "$2")" "$3" $((20 * FACTOR)) "${@:4}"
}

# perftest_all PREFIX SERVER-HOST FAMILY N: every operation, and the sizes that packets care about
perftest_all() {
	local prefix=$1 host=$2 f=$3 n=$4 size
	for size in 1 1023 4097 65537; do
		perftest "${prefix}send-$size" "$host" "$f" ib_send_bw -n "$n" -s $size
		perftest "${prefix}write-$size" "$host" "$f" ib_write_bw -n "$n" -s $size
		perftest "${prefix}read-$size" "$host" "$f" ib_read_bw -n "$n" -s $size
	done
	perftest "${prefix}write_imm" "$host" "$f" ib_write_bw -n "$n" -s 4097 --write_with_imm
	perftest "${prefix}write_lat_imm" "$host" "$f" ib_write_lat -n "$n" -s 5 --write_with_imm
	perftest "${prefix}send-inline" "$host" "$f" ib_send_lat -n "$n" -s 63 -I 64
	perftest "${prefix}write-inline" "$host" "$f" ib_write_lat -n "$n" -s 63 -I 64
	perftest "${prefix}fetch_add" "$host" "$f" ib_atomic_bw -n "$n" -A FETCH_AND_ADD
	perftest "${prefix}cmp_swap" "$host" "$f" ib_atomic_bw -n "$n" -A CMP_AND_SWAP
	perftest "${prefix}uc" "$host" "$f" ib_write_bw -n "$n" -s 4097 -c UC
	perftest "${prefix}ud" "$host" "$f" ib_send_lat -n "$n" -s 1021 -c UD
	perftest "${prefix}both_ways" "$host" "$f" ib_send_bw -n "$n" -s 4097 -b -q 4
}

# offload HOST on|off NAME...
offload() {
	local host=$1 how=$2 name words=()
	shift 2
	for name; do words+=("$name" "$how"); done
	on "$host" ethtool -K "v$host" "${words[@]}"
}

# trains CMD...: packets per train that host b has received, times 100, meanwhile
trains() {
	local trains packets
	trains=$(counter b wire_rx_trains) packets=$(counter b wire_rx_packets)
	"$@" >&2 || return 1
	trains=$(($(counter b wire_rx_trains) - trains)) packets=$(($(counter b wire_rx_packets) - packets))
	echo "$packets packets in $trains trains" >&2
	echo $((packets * 100 / trains))
}
# transfer PORT N: WRITEs of 256 KiB to host b
transfer() {
	local a b
	a=$(known_gid a v4) b=$(known_gid b v4)
	WIRE_PORT=$1 between_body b "ib_write_bw -d wb -x $b -p $1 -F -s 262144 -n $2" \
		"ib_write_bw -d wa -x $a -p $1 -F -s 262144 -n $2 $ADDRESS_b"
}

# shellcheck source=tests/guest/pair.sh
[ "$LANE" != pair ] || . "$JOBDIR/guest/pair.sh"
