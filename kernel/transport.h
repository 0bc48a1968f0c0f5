/* SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB */
/*
 * The contract between the requester and what carries its messages.  A
 * transport sees ops and spans, never rings.
 */
#ifndef HERALD_TRANSPORT_H
#define HERALD_TRANSPORT_H

#include "completion.h"
#include "mr.h"
#include "opcode.h"
#include "wqe.h"

struct herald_qp;
struct herald_deferred;

enum herald_progress {
	HERALD_DONE,	/* the op has an outcome */
	HERALD_MORE,	/* a piece was moved (qp->sq.done), call again */
	HERALD_BUSY,	/* the peer's responder is at work elsewhere: the requester was put
			 * on its waiting list and will be kicked */
	HERALD_AGAIN,	/* somebody else's copy must end first: call again in a moment */
	HERALD_TAKEN,	/* the transport has taken the op over, and completes it */
};

struct herald_transport_ops {
	const char *name;
	/**
	 * @push: move an op on by at most one piece
	 * @qp: the QP; the caller owns its requester
	 * @op: the op; qp->sq.done says how far it is
	 * @outcome: set with HERALD_DONE
	 * @d: gets what happens at the other end
	 *
	 * Context: any; no lock held; does not sleep.
	 */
	enum herald_progress (*push)(struct herald_qp *qp, struct herald_op *op,
				     enum herald_outcome *outcome, struct herald_deferred *d);
};

extern const struct herald_transport_ops herald_transport_local;
extern const struct herald_transport_ops herald_transport_wire;

/* The data of an op: what is sent, or where the answer goes.  Context: any. */
static inline struct herald_span herald_op_span(struct herald_qp *qp, struct herald_op *op)
{
	const struct herald_opcode_row *row = herald_opcode(op->opcode);
	struct herald_span span = { .length = op->length, .qp = qp };

	if (op->flags & HERALD_WR_INLINE) {
		span.linear = op->inl;
	} else {
		span.sge = op->sge;
		span.nsge = op->num_sge;
		if (row->traits & HERALD_OP_WRITES_LOCAL)
			span.access = IB_ACCESS_LOCAL_WRITE;
	}
	return span;
}

/* What the requester can see of an op's length by itself.  Context: any. */
static inline enum herald_outcome herald_op_length_check(const struct herald_op *op)
{
	u8 kind = herald_opcode(op->opcode)->kind;

	if (op->length > HERALD_MAX_MSG)
		return HERALD_LOC_LEN;
	if ((kind == HERALD_KIND_ATOMIC || kind == HERALD_KIND_ATOMIC_WRITE) &&
	    op->length != sizeof(u64))
		return HERALD_LOC_LEN;
	return HERALD_OK;
}

#endif /* HERALD_TRANSPORT_H */
