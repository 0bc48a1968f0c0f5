// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/* The requester's window on the wire: how WRs enter it, wait in it and leave it. */
#include "device.h"
#include "opcode.h"
#include "psn.h"
#include "wire_qp.h"

static bool has_room(const struct herald_wire_qp *w)
{
	return w->req.tail - w->req.head < HERALD_WIRE_OPS;
}

bool herald_wire_answered_by_data(const struct herald_op *op)
{
	switch (herald_opcode(op->opcode)->kind) {
	case HERALD_KIND_READ:
	case HERALD_KIND_ATOMIC:
	case HERALD_KIND_ATOMIC_WRITE:
	case HERALD_KIND_FLUSH:
		return true;
	default:
		return false;
	}
}

/* As much of it as there is. */
static void copy_op(struct herald_op *dst, const struct herald_op *src)
{
	size_t n = offsetof(struct herald_op, sge);

	if (src->flags & HERALD_WR_INLINE)
		n += src->length;
	else
		n += src->num_sge * sizeof(src->sge[0]);
	memcpy(dst, src, n);
}

bool herald_wire_may_take(struct herald_qp *qp)
{
	struct herald_wire_qp *w = qp->wire;
	u32 i;

	if (!has_room(w))
		return false;
	if (!qp->sq.busy)
		return true;
	/* what it takes away may have to be sent again */
	if (qp->sq.op.opcode == HERALD_WR_LOCAL_INV)
		return w->req.head == w->req.tail;
	/* the keys that it changes are those that the WRs before it were posted with */
	if (herald_opcode(qp->sq.op.opcode)->kind == HERALD_KIND_LOCAL &&
	    w->req.send != w->req.tail)
		return false;
	if (!(qp->sq.op.flags & HERALD_WR_FENCE))
		return true;
	for (i = w->req.head; i != w->req.tail; i++)
		if (herald_wire_answered_by_data(&herald_wire_slot(w, i)->op))
			return false;
	return true;
}

void herald_wire_take(struct herald_qp *qp, enum herald_outcome out, int status)
{
	struct herald_wire_qp *w = qp->wire;
	struct herald_wire_op *slot = herald_wire_slot(w, w->req.tail);
	const struct herald_op *op = &qp->sq.op;

	/* a WR that failed before it, on UC, may have left PSNs that were never sent */
	if (w->req.head == w->req.tail) {
		w->req.next = w->req.psn;
		w->req.una = w->req.psn;
	}
	w->req.tail++;
	copy_op(&slot->op, op);
	slot->settled = out != HERALD_OK || status != IB_WC_SUCCESS ||
			herald_opcode(op->opcode)->kind == HERALD_KIND_LOCAL;
	slot->fate = HERALD_FATE_UNKNOWN;
	slot->outcome = out;
	slot->status = status;
	slot->first = w->req.psn;
	if (!slot->settled) {
		w->req.psn = herald_psn_add(w->req.psn, herald_wire_packets(qp->mtu, op->length));
		slot->last = herald_psn_add(w->req.psn, -1);
	}
	qp->sq.busy = false;
}

static void leave(struct herald_wire_qp *w)
{
	if (w->req.send == w->req.head)
		w->req.send++;
	w->req.head++;
}

void herald_wire_complete_head(struct herald_qp *qp, int status, struct herald_deferred *d)
{
	struct herald_wire_qp *w = qp->wire;
	struct herald_op *op = &herald_wire_slot(w, w->req.head)->op;

	leave(w);
	if (status == IB_WC_SUCCESS || status == IB_WC_WR_FLUSH_ERR)
		herald_requester_complete(qp, op, status, d);
	else
		herald_requester_fail(qp, op, status, d);
}

bool herald_wire_flush(struct herald_qp *qp, struct herald_deferred *d)
{
	if (!herald_wire_busy(qp))
		return false;
	herald_wire_complete_head(qp, IB_WC_WR_FLUSH_ERR, d);
	return true;
}

/* What needs no answer and has become the oldest */
bool herald_wire_settle(struct herald_qp *qp, struct herald_deferred *d)
{
	struct herald_wire_op *slot = herald_wire_slot(qp->wire, qp->wire->req.head);

	if (!herald_wire_busy(qp) || !slot->settled)
		return false;
	herald_wire_complete_head(qp, slot->outcome == HERALD_OK ? slot->status :
				  herald_outcome_row(slot->outcome)->req_status, d);
	return true;
}
