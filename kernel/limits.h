/* SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB */
/* What the device advertises; each of these is enforced where the object is made. */
#ifndef HERALD_LIMITS_H
#define HERALD_LIMITS_H

#define HERALD_MAX_QP		65536
#define HERALD_MAX_QP_WR	16384
#define HERALD_MAX_SGE		32
#define HERALD_MAX_INLINE	512	/* bytes, == HERALD_MAX_SGE * sizeof(struct herald_sge) */
#define HERALD_MAX_CQ		65536
#define HERALD_MAX_CQE		4194304u
#define HERALD_MAX_MR		1048576
#define HERALD_MAX_MW		1048576
#define HERALD_MAX_PD		65536
#define HERALD_MAX_AH		65536
#define HERALD_MAX_SRQ		65536
#define HERALD_MAX_SRQ_WR	16384
#define HERALD_MAX_RD_ATOMIC	128
#define HERALD_MAX_MCAST_GRP	8192
#define HERALD_MAX_MCAST_QP	1024	/* per group */
#define HERALD_MAX_FAST_REG	4096	/* pages per fast registration */
#define HERALD_MAX_MSG		0x80000000u	/* bytes */
#define HERALD_GID_TABLE_LEN	1024
#define HERALD_PKEY_TABLE_LEN	2
#define HERALD_DEFAULT_PKEY	0xffff

/* Data moves in pieces of this size; between two pieces an engine checks state. */
#define HERALD_PIECE		65536u

/* How much an engine does in the caller's context before its work item takes over. */
#define HERALD_BUDGET_OPS	256
#define HERALD_BUDGET_BYTES	(4u << 20)
#define HERALD_BUDGET_BYTES_INLINE	(64u << 10)	/* a kernel consumer's post */

#endif /* HERALD_LIMITS_H */
