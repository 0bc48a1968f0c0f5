# SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
# shellcheck shell=bash
# Bash completion for heraldctl(8).

_heraldctl_devices() {
	local file
	for file in /sys/class/infiniband/*/hca_type; do
		[ "$(cat "$file" 2>/dev/null)" = herald ] || continue
		file=${file%/hca_type}
		printf '%s\n' "${file##*/}"
	done
}

# _heraldctl_numbers DEVICE TABLE: the numbers of a device's objects; for root
_heraldctl_numbers() { awk 'NR > 1 { print $1 }' "/sys/kernel/debug/herald/$1/$2" 2>/dev/null; }

_heraldctl_table() { # EVENT
	case $1 in
	cq-err) echo cqs ;;
	srq-*) echo srqs ;;
	qp-* | comm-est | sq-drained | path-mig*) echo qps ;;
	esac
}

# What may follow the words of a fault: DEVICE KIND COUNT LAST
_heraldctl_fault() {
	local verbs="create-qp create-cq create-srq create-ah alloc-pd reg-mr modify-qp resize-cq post-send post-recv post-srq-recv
		req-notify"
	local statuses="loc-len-err loc-qp-op-err loc-prot-err mw-bind-err bad-resp-err loc-access-err rem-inv-req-err rem-access-err
		rem-op-err retry-exc-err rnr-retry-exc-err rem-abort-err fatal-err resp-timeout-err general-err"
	case $4 in
	--qpn) _heraldctl_numbers "$1" qps && return ;;
	--*) return ;;
	esac
	case $2:$3 in
	message:3) echo lose delay duplicate reorder corrupt ;;
	message:*) echo --nth --every --permille --times --seed --qpn --usec ;;
	rnr:*) echo --qpn --times ;;
	verb:3) echo "$verbs" ;;
	verb:4) echo EIO ENOMEM EBUSY EINVAL EAGAIN ;;
	verb:*) echo --nth --times ;;
	wr:3) echo "$statuses" ;;
	recv:3) echo loc-len-err loc-prot-err loc-access-err rem-inv-req-err ;;
	wr:* | recv:*) echo --qpn --nth ;;
	clear:3) _heraldctl_numbers "$1" faults ;;
	esac
}

_heraldctl() {
	local commands="load unload link show provoke hold release release-before-arm release-after-arm reorder resume event
		fault allow watch doctor"
	local events="cq-err qp-fatal qp-req-err qp-access-err comm-est sq-drained path-mig path-mig-err device-fatal
		port-active port-err lid-change pkey-change sm-change srq-err srq-limit-reached qp-last-wqe-reached
		client-reregister gid-change device-speed-change"
	local cur=${COMP_WORDS[COMP_CWORD]} word words=() choice=''
	for word in "${COMP_WORDS[@]:1:COMP_CWORD-1}"; do [[ $word = --json ]] || words+=("$word"); done
	case "${words[0]:-}:${#words[@]}" in
	:0) choice="$commands --json --help --version" ;;
	load:*) choice="--module $(modinfo -F parm herald 2>/dev/null | sed 's/:.*/=/')" ;;
	unload:*) choice=--force ;;
	link:1) choice="add del list" ;;
	link:2) [[ ${words[1]} != del ]] || choice=$(_heraldctl_devices) ;;
	link:3) [[ ${words[1]} != add ]] || choice=$(cd /sys/class/net && echo *) ;;
	show:1) choice="$(_heraldctl_devices) cqs qps srqs" ;;
	show:2) choice="cqs qps srqs" ;;
	provoke:2) choice=$events ;;
	provoke:3) choice=$(_heraldctl_numbers "${words[1]}" "$(_heraldctl_table "${words[2]}")") ;;
	fault:2) choice="message rnr verb wr recv list clear" ;;
	fault:*) choice=$(_heraldctl_fault "${words[1]}" "${words[2]}" "${#words[@]}" "${words[-1]}") ;;
	allow:2) choice="on off" ;;
	watch:*) choice="$(_heraldctl_devices) --all --count --seconds" ;;
	doctor:*) choice=--json ;;
	*:1) choice=$(_heraldctl_devices) ;;
	*:2) choice=$(_heraldctl_numbers "${words[1]}" cqs) ;;
	esac
	mapfile -t COMPREPLY < <(compgen -W "$choice" -- "$cur")
}
complete -o default -F _heraldctl heraldctl
