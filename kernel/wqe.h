/* SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB */
/* One WQE, copied once and validated as a copy; and a kernel consumer's WR written into a slot. */
#ifndef HERALD_WQE_H
#define HERALD_WQE_H

#include <rdma/ib_verbs.h>
#include <rdma/herald-abi.h>

#include "completion.h"
#include "limits.h"
#include "ring.h"

struct herald_qp;
struct herald_ah;

/**
 * struct herald_op - a send WR that herald may trust
 * @index: free running index of its slot
 * @length: bytes of payload, the sum of its SGEs or the inline data
 * @ah: UD: referenced until herald_op_put()
 * @u: the operation's own part, as in herald_send_wqe
 * @sge: num_sge entries, or
 * @inl: @length bytes, if flags has HERALD_WR_INLINE
 */
struct herald_op {
	u64 wr_id;
	u8 opcode;
	u8 num_sge;
	u16 flags;
	u32 imm_or_rkey;
	u32 index;
	u32 length;
	struct herald_ah *ah;
	struct herald_send_wqe u;
	union {
		struct herald_sge sge[HERALD_MAX_SGE];
		u8 inl[HERALD_MAX_INLINE];
	};
};

/**
 * struct herald_recv - a receive WR that was taken from its queue
 * @queue: enum herald_cqe_queue
 * @length: bytes of room, the sum of its SGEs
 */
struct herald_recv {
	u64 wr_id;
	u64 length;
	u32 index;
	u8 queue;
	u8 num_sge;
	struct herald_sge sge[HERALD_MAX_SGE];
};

/**
 * herald_op_fetch - take the next send WQE
 * @qp: the QP; the caller owns its requester
 * @op: filled in
 * @outcome: HERALD_OK, or what is wrong with the WQE (wr_id, index, flags are valid then)
 *
 * Return: 1 a WQE was taken; 0 none is there; -EINVAL the ring's index is impossible.
 * Does not publish the consumer index: completing does.
 * Context: any; no lock held.
 */
int herald_op_fetch(struct herald_qp *qp, struct herald_op *op, enum herald_outcome *outcome);

/* Give back what the op references (its AH).  Idempotent. */
void herald_op_put(struct herald_op *op);

/**
 * herald_recv_copy - copy one receive WQE out of a ring and check it
 * @ring: the ring; the caller holds the lock of its consumer side
 * @max_sge: of the queue
 * @recv: filled in; wr_id and index always are
 *
 * Advances and publishes the consumer index.
 * Return: 1 taken; 0 none there; -EINVAL the index is impossible; -EBADMSG taken, but malformed.
 */
int herald_recv_copy(struct herald_ring *ring, u32 max_sge, struct herald_recv *recv);

/**
 * herald_wqe_post_send, herald_wqe_post_recv - write a kernel consumer's WR into the next slot
 * @qp: its QP; the caller holds @qp->sq.post_lock
 * @ring: the receive ring; the caller serialises its posters
 * @max_sge: of the receive ring
 * @wr: the WR; its successors are not looked at
 *
 * The slot is pushed only if the WR is valid.
 * Return: 0; -EINVAL the WR is invalid; -ENOMEM the ring is full.
 * Context: any.
 */
int herald_wqe_post_send(struct herald_qp *qp, const struct ib_send_wr *wr);
int herald_wqe_post_recv(struct herald_ring *ring, u32 max_sge, const struct ib_recv_wr *wr);

/*
 * Give back what the send WQEs that were never taken reference.  The caller
 * has stopped the requester and the posters.  Context: any.
 */
void herald_wqe_drop_sends(struct herald_qp *qp);

#endif /* HERALD_WQE_H */
