// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/* PURE: one row per operation of a send queue. */
#include <rdma/ib_verbs.h>

#include "opcode.h"

#define RC	(1 << IB_QPT_RC)
#define UC	(1 << IB_QPT_UC)
#define UD	(1 << IB_QPT_UD | 1 << IB_QPT_GSI)

const struct herald_opcode_row herald_opcodes[HERALD_WR_OPCODE_MAX] = {
	[HERALD_WR_SEND] = {
		.name = "SEND", .qp_types = RC | UC | UD, .kind = HERALD_KIND_SEND,
		.traits = HERALD_OP_TAKES_RECV | HERALD_OP_MAY_INLINE,
		.wc_opcode = IB_WC_SEND,
	},
	[HERALD_WR_SEND_WITH_IMM] = {
		.name = "SEND_WITH_IMM", .qp_types = RC | UC | UD, .kind = HERALD_KIND_SEND,
		.traits = HERALD_OP_TAKES_RECV | HERALD_OP_MAY_INLINE | HERALD_OP_IMM,
		.wc_opcode = IB_WC_SEND,
	},
	[HERALD_WR_SEND_WITH_INV] = {
		.name = "SEND_WITH_INV", .qp_types = RC, .kind = HERALD_KIND_SEND,
		.traits = HERALD_OP_TAKES_RECV | HERALD_OP_MAY_INLINE | HERALD_OP_INVALIDATE,
		.wc_opcode = IB_WC_SEND,
	},
	[HERALD_WR_RDMA_WRITE] = {
		.name = "RDMA_WRITE", .qp_types = RC | UC, .kind = HERALD_KIND_WRITE,
		.traits = HERALD_OP_MAY_INLINE,
		.wc_opcode = IB_WC_RDMA_WRITE,
		.qp_access = IB_ACCESS_REMOTE_WRITE, .key_access = IB_ACCESS_REMOTE_WRITE,
	},
	[HERALD_WR_RDMA_WRITE_WITH_IMM] = {
		.name = "RDMA_WRITE_WITH_IMM", .qp_types = RC | UC, .kind = HERALD_KIND_WRITE,
		.traits = HERALD_OP_TAKES_RECV | HERALD_OP_MAY_INLINE | HERALD_OP_IMM,
		.wc_opcode = IB_WC_RDMA_WRITE,
		.qp_access = IB_ACCESS_REMOTE_WRITE, .key_access = IB_ACCESS_REMOTE_WRITE,
	},
	[HERALD_WR_RDMA_READ] = {
		.name = "RDMA_READ", .qp_types = RC, .kind = HERALD_KIND_READ,
		.traits = HERALD_OP_WRITES_LOCAL,
		.wc_opcode = IB_WC_RDMA_READ,
		.qp_access = IB_ACCESS_REMOTE_READ, .key_access = IB_ACCESS_REMOTE_READ,
	},
	[HERALD_WR_ATOMIC_CMP_AND_SWP] = {
		.name = "ATOMIC_CMP_AND_SWP", .qp_types = RC, .kind = HERALD_KIND_ATOMIC,
		.traits = HERALD_OP_WRITES_LOCAL,
		.wc_opcode = IB_WC_COMP_SWAP,
		.qp_access = IB_ACCESS_REMOTE_ATOMIC, .key_access = IB_ACCESS_REMOTE_ATOMIC,
	},
	[HERALD_WR_ATOMIC_FETCH_AND_ADD] = {
		.name = "ATOMIC_FETCH_AND_ADD", .qp_types = RC, .kind = HERALD_KIND_ATOMIC,
		.traits = HERALD_OP_WRITES_LOCAL,
		.wc_opcode = IB_WC_FETCH_ADD,
		.qp_access = IB_ACCESS_REMOTE_ATOMIC, .key_access = IB_ACCESS_REMOTE_ATOMIC,
	},
	[HERALD_WR_ATOMIC_WRITE] = {
		.name = "ATOMIC_WRITE", .qp_types = RC, .kind = HERALD_KIND_ATOMIC_WRITE,
		.traits = HERALD_OP_MAY_INLINE,
		.wc_opcode = IB_WC_ATOMIC_WRITE,
		.qp_access = IB_ACCESS_REMOTE_WRITE, .key_access = IB_ACCESS_REMOTE_WRITE,
	},
	[HERALD_WR_FLUSH] = {
		.name = "FLUSH", .qp_types = RC, .kind = HERALD_KIND_FLUSH,
		.wc_opcode = IB_WC_FLUSH,
	},
	[HERALD_WR_LOCAL_INV] = {
		.name = "LOCAL_INV", .qp_types = RC | UC, .kind = HERALD_KIND_LOCAL,
		.traits = HERALD_OP_INVALIDATE,
		.wc_opcode = IB_WC_LOCAL_INV,
	},
	[HERALD_WR_BIND_MW] = {
		.name = "BIND_MW", .qp_types = RC | UC, .kind = HERALD_KIND_LOCAL,
		.wc_opcode = IB_WC_BIND_MW,
	},
	[HERALD_WR_REG_MR] = {
		.name = "REG_MR", .qp_types = RC | UC, .kind = HERALD_KIND_LOCAL,
		.traits = HERALD_OP_KERNEL_ONLY,
		.wc_opcode = IB_WC_REG_MR,
	},
};

const struct herald_opcode_row herald_no_opcode = { .name = "unknown" };
