#!/bin/bash
# SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
#
# Who may touch what: the rules that keep the module's layers apart, checked by pattern. Comments do not count.
#
#	scripts/check-layers.sh [TREE]
#
# Prints FILE:LINE: RULE for every violation, and exits 1 if there was one.

set -euo pipefail
cd "${1:-$(dirname "$0")/..}"

bad=0

# strip FILE: its lines with comments and string contents blanked, so that line numbers stay.
strip() {
	awk '
	{
		line = $0; out = ""
		while (length(line)) {
			if (comment) {
				end = index(line, "*/")
				if (!end) { line = ""; break }
				line = substr(line, end + 2); comment = 0
				continue
			}
			if (match(line, /\/\*|\/\/|"/) == 0) { out = out line; break }
			out = out substr(line, 1, RSTART - 1)
			token = substr(line, RSTART, RLENGTH)
			line = substr(line, RSTART + RLENGTH)
			if (token == "/*") { comment = 1; continue }
			if (token == "//") break
			if (out ~ /^[ \t]*#[ \t]*include[ \t]*$/) { out = out "\"" line; break }
			# a string: up to the quote that no backslash precedes
			while (match(line, /\\.|"/) && substr(line, RSTART, 1) == "\\")
				line = substr(line, RSTART + RLENGTH)
			line = RSTART ? substr(line, RSTART + 1) : ""
			out = out "\"\""
		}
		print out
	}' "$1"
}

# files WHERE... [not NAME...]: the C files of these folders but for the named ones.
files() {
	local where=()
	while [ $# -gt 0 ] && [ "$1" != not ]; do
		where+=("$1")
		shift
	done
	[ $# = 0 ] || shift
	local file name
	for file in "${where[@]}"; do
		[ -e "$file" ] || continue
		for name; do [ "$(basename "$file")" = "$name" ] && continue 2; done
		printf '%s\n' "$file"
	done
}

# forbid PATTERN RULE FILE...: no line of the files may match, but for those that match ALLOW.
ALLOW='^$'
forbid() {
	local pattern=$1 rule=$2 file hits
	shift 2
	for file; do
		hits=$(strip "$file" | grep -nE -- "$pattern" | grep -vE -- "$ALLOW" || true)
		[ -n "$hits" ] || continue
		while IFS=: read -r line text; do
			printf '%s:%s: %s:%s\n' "$file" "$line" "$rule" "${text:+ ${text#"${text%%[![:space:]]*}"}}"
		done <<<"$hits"
		bad=1
	done
}

rule() { # PATTERN RULE NAME...: forbidden in all of kernel/ but in the named files
	local pattern=$1 text=$2 list
	shift 2
	mapfile -t list < <(files kernel/*.[ch] kernel/compat/*.[ch] not "$@")
	forbid "$pattern" "$text" "${list[@]}"
}

# --- 1. who completes, who publishes, who calls back ------------------------------------------------------------

rule '\<herald_cq_publish *\(' 'only completion.c builds a work completion' completion.c cq.c cq.h
rule '\<struct herald_cqe +[a-z_]+ *(=|;)' 'only completion.c builds a work completion' completion.c cq_hold.c
rule '\<struct ib_wc\>' 'only cq.c fills in a work completion for a kernel consumer' cq.c cq.h
rule '\<struct herald_cq_ctl\>|->cqes\>|\<cq->ctl\>' 'only cq.c and cq_resize.c touch a CQ ring' \
	cq.c cq.h cq_resize.c cq_ring.h
rule '->comp_handler\>|\.comp_handler *\(' 'only notify.c calls comp_handler' notify.c
rule '->event_handler\>|\.event_handler *\(|\<ib_dispatch_event\>' 'only event.c calls an event handler' event.c
rule '\<herald_notify_(defer|run|flush) *\(' 'events are decided by cq.c and delivered by event.c' \
	notify.c notify.h moderate.c cq.c event.c

# --- 2. engines see no packets, transports see no queues ---------------------------------------------------------

mapfile -t engines < <(files kernel/requester.[ch] kernel/responder.[ch] kernel/ack.[ch])
forbid '\<sk_buff\>|\<skb_|#include <linux/skbuff.h>' 'engines see no skb' "${engines[@]}"
mapfile -t wire < <(cd kernel && files wire*.[ch])
# cq.c has a netlink message
rule '\<(struct sk_buff|skb_[a-z_]+|alloc_skb|k?free_skb)\>|#include <linux/skbuff.h>' 'only wire_*.c see skbs' \
	cq.c cq.h "${wire[@]}"
mapfile -t transports < <(files kernel/transport*.[ch])
forbid '\<struct herald_ring\>|\<herald_ring_|\<herald_op_fetch\>|\<herald_recv_copy\>|\<(sq|resp)\.ring\>' \
	'transports see no ring' "${transports[@]}"

# --- 3. pure files -----------------------------------------------------------------------------------------------

mapfile -t pure < <(files kernel/{qp_state,opcode,pkt,outcome,notify_table,path_migration_table,timer,wire_check}.c \
	kernel/{qp_state,opcode,pkt,psn,timer,wire_check}.h)
ALLOW='<(linux/(types|string|crc32)\.h|rdma/ib_verbs\.h|rdma/herald-abi\.h)>' \
	forbid '#[[:space:]]*include[[:space:]]*<' 'a pure file includes types, verbs and plain functions only' "${pure[@]}"
forbid '\<(spin_|mutex_|rcu_|k[mzc]alloc|kfree|queue_work|printk|pr_[a-z]+ *\(|jiffies|schedule|READ_ONCE|WRITE_ONCE)' \
	'a pure file uses no kernel service' "${pure[@]}"

# --- 4. kernels and rdma-core in one place each ------------------------------------------------------------------

mapfile -t list < <(files kernel/*.[ch])
forbid '\<LINUX_VERSION_CODE\>|\<KERNEL_VERSION\>|\<RHEL_RELEASE' 'kernels differ in kernel/compat only' "${list[@]}"
forbid '\<(HERALD_)?HAVE_[A-Z0-9_]+' 'HAVE_ symbols belong into kernel/compat' "${list[@]}"
mapfile -t list < <(files user/provider/*.{c,cc,h} not herald_glue.c)
forbid '#include .*infiniband/driver\.h' 'only herald_glue.c includes driver.h' "${list[@]}"

exit $bad
