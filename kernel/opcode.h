/* SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB */
/* PURE: one row per operation of a send queue. */
#ifndef HERALD_OPCODE_H
#define HERALD_OPCODE_H

#include <linux/types.h>
#include <rdma/herald-abi.h>

enum herald_op_kind {
	HERALD_KIND_NONE,
	HERALD_KIND_SEND,
	HERALD_KIND_WRITE,
	HERALD_KIND_READ,
	HERALD_KIND_ATOMIC,	/* compare-and-swap, fetch-and-add */
	HERALD_KIND_ATOMIC_WRITE,
	HERALD_KIND_FLUSH,
	HERALD_KIND_LOCAL,	/* never leaves the requester */
};

enum herald_op_traits {
	HERALD_OP_IMM		= 1 << 0,	/* carries immediate data */
	HERALD_OP_INVALIDATE	= 1 << 1,	/* carries a key to invalidate */
	HERALD_OP_TAKES_RECV	= 1 << 2,	/* consumes a receive WR */
	HERALD_OP_MAY_INLINE	= 1 << 3,
	HERALD_OP_WRITES_LOCAL	= 1 << 4,	/* its SGEs are written to */
	HERALD_OP_KERNEL_ONLY	= 1 << 5,
};

/**
 * struct herald_opcode_row - what is known of an operation
 * @name: for messages and traces
 * @qp_types: bit (1 << enum ib_qp_type) for each type that has it
 * @kind: enum herald_op_kind
 * @traits: enum herald_op_traits
 * @wc_opcode: enum ib_wc_opcode of its completion
 * @qp_access: enum ib_access_flags that the responder's QP must allow
 * @key_access: enum ib_access_flags that the remote key must carry
 */
struct herald_opcode_row {
	const char *name;
	u8 qp_types;
	u8 kind;
	u8 traits;
	u8 wc_opcode;
	u32 qp_access;
	u32 key_access;
};

extern const struct herald_opcode_row herald_opcodes[HERALD_WR_OPCODE_MAX];
extern const struct herald_opcode_row herald_no_opcode;

/* The row of an enum herald_wr_opcode; one of kind HERALD_KIND_NONE for any other value. */
static inline const struct herald_opcode_row *herald_opcode(unsigned int opcode)
{
	if (opcode >= HERALD_WR_OPCODE_MAX || herald_opcodes[opcode].kind == HERALD_KIND_NONE)
		return &herald_no_opcode;
	return &herald_opcodes[opcode];
}

/* May a QP of this type post it?  @user: from a process's ring. */
static inline bool herald_opcode_allowed(int qp_type, unsigned int opcode, bool user)
{
	const struct herald_opcode_row *row = herald_opcode(opcode);

	if (row->kind == HERALD_KIND_NONE || !(row->qp_types & (1 << qp_type)))
		return false;
	return !(user && (row->traits & HERALD_OP_KERNEL_ONLY));
}

#endif /* HERALD_OPCODE_H */
