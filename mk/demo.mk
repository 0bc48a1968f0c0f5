# SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
#
#	make demo	from a fresh machine to an NFS mount over RDMA, told step by step

.PHONY: demo

demo:
	@scripts/demo.sh
