// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/*
 * The requester's half of a connection over the wire: it sends the packets of the WRs
 * in its window (wire_window.c).
 *
 * A WR gets its PSNs when it enters the window, and leaves it when it is the
 * oldest and all of it is acknowledged; so WRs complete in order.  What is
 * known of a WR without sending it (a local operation's result, its own fault)
 * waits for its turn in the window, too.  Packets are sent from req.next on;
 * when some are lost, req.next goes back to the oldest one not acknowledged.
 */
#include "device.h"
#include "mr.h"
#include "opcode.h"
#include "path_migration.h"
#include "pkt.h"
#include "psn.h"
#include "timer.h"
#include "transport.h"
#include "wire_qp.h"
#include "wire_train.h"

/* ---------------------------------------------------------------- timer -- */

/*
 * The timeout, twice and four times that when it was overdue before: the answers
 * may be late because of all that is sent again.  More than four times is not
 * allowed (IBTA vol. 1, 9.7.6.1.3).
 */
static u64 patience_ns(const struct herald_qp *qp)
{
	int retries = qp->attr.retry_cnt - qp->sq.retry_left;

	return herald_requester_patience_ns(qp) << clamp(retries, 0, 2);
}

static void start_timer(struct herald_qp *qp)
{
	struct herald_wire_qp *w = qp->wire;

	/* code 0 is no timeout: whoever chose it waits for ever (IBTA vol. 1, 9.7.6.1.3) */
	if (!READ_ONCE(qp->attr.timeout))
		return;
	w->req.deadline = ktime_add_ns(ktime_get(), patience_ns(qp));
	w->req.timing = true;
	/* one that fires too early looks again; the timeout may have become shorter */
	if (!hrtimer_is_queued(&w->timer) ||
	    ktime_before(w->req.deadline, hrtimer_get_expires(&w->timer)))
		hrtimer_start(&w->timer, w->req.deadline, HRTIMER_MODE_ABS);
}

void herald_wire_progress(struct herald_qp *qp)
{
	herald_requester_start_retries(qp);
	if (qp->wire->req.una != qp->wire->req.next)
		start_timer(qp);
	else
		qp->wire->req.timing = false;
}

void herald_wire_rewind(struct herald_qp *qp)
{
	struct herald_wire_qp *w = qp->wire;
	u32 i;

	for (i = w->req.head; i != w->req.tail; i++)
		herald_wire_slot(w, i)->fate = HERALD_FATE_UNKNOWN;
	w->req.send = w->req.head;
	w->req.next = w->req.una;
	w->req.reads = 0;
	w->req.timing = false;
}

bool herald_wire_retry(struct herald_qp *qp, enum herald_wait why, struct herald_deferred *d)
{
	bool mig_failed = false, again;

	if (!herald_wire_busy(qp))
		return false;
	again = herald_requester_may_retry(qp, why, &mig_failed, d);
	if (again)
		herald_wire_rewind(qp);
	else
		herald_wire_complete_head(qp, IB_WC_RETRY_EXC_ERR, d);
	if (unlikely(mig_failed))
		herald_mig_gave_up(qp, d);
	return again;
}

/* Is the answer overdue?  The timer fires early if the deadline was moved. */
static bool overdue(struct herald_qp *qp)
{
	struct herald_wire_qp *w = qp->wire;

	if (!w->req.timing || hrtimer_is_queued(&w->timer))
		return false;
	if (ktime_before(ktime_get(), w->req.deadline)) {
		hrtimer_start(&w->timer, w->req.deadline, HRTIMER_MODE_ABS);
		return false;
	}
	return true;
}

/* -------------------------------------------------------------- sending -- */

/* How many are asked for in a window of a long message */
#define ANSWERS	8

static void request_headers(const struct herald_op *op, struct herald_pkt *pkt)
{
	const struct herald_send_wqe *u = &op->u;

	pkt->imm = op->imm_or_rkey;
	pkt->ieth = op->imm_or_rkey;
	switch (herald_opcode(op->opcode)->kind) {
	case HERALD_KIND_WRITE:
	case HERALD_KIND_READ:
	case HERALD_KIND_ATOMIC_WRITE:
		pkt->va = u->rdma.remote_addr;
		pkt->rkey = u->rdma.rkey;
		pkt->dmalen = op->length;
		break;
	case HERALD_KIND_ATOMIC:
		pkt->va = u->atomic.remote_addr;
		pkt->rkey = u->atomic.rkey;
		pkt->swap_add = op->opcode == HERALD_WR_ATOMIC_CMP_AND_SWP ?
				u->atomic.swap : u->atomic.compare_add;
		pkt->compare = op->opcode == HERALD_WR_ATOMIC_CMP_AND_SWP ?
			       u->atomic.compare_add : 0;
		break;
	case HERALD_KIND_FLUSH:
		pkt->va = u->flush.remote_addr;
		pkt->rkey = u->flush.rkey;
		pkt->dmalen = u->flush.length;
		pkt->flush_placement = u->flush.placement;
		pkt->flush_selectivity = u->flush.selectivity;
		break;
	}
}

static u8 pkt_class(const struct herald_qp *qp)
{
	return qp->type == IB_QPT_UC ? HERALD_CLASS_UC : HERALD_CLASS_RC;
}

/* The headers of the packet with this PSN; a read's request covers @dmalen bytes from @offset. */
static void build_packet(struct herald_qp *qp, const struct herald_wire_op *slot, u32 psn,
			 struct herald_pkt *pkt)
{
	const struct herald_op *op = &slot->op;
	bool single = herald_wire_answered_by_data(op);
	bool last = single || psn == slot->last;

	request_headers(op, pkt);
	pkt->psn = psn;
	pkt->opcode = herald_pkt_request_opcode(pkt_class(qp), op->opcode,
						single || psn == slot->first, last);
	pkt->solicited = last && (op->flags & HERALD_WR_SOLICITED);
}

/* How many packets of a SEND or WRITE fit into the next train */
static u32 train_length(struct herald_qp *qp, const struct herald_wire_op *slot)
{
	struct herald_wire_qp *w = qp->wire;
	u32 left = herald_psn_diff(slot->last, w->req.next) + 1;
	u32 room = herald_wire_window(qp->mtu) - herald_psn_diff(w->req.next, w->req.una);
	u32 n = min3(left, room, herald_wire_max_train(qp->dev, herald_train_middle_len(qp)));
	const struct herald_opcode_row *row = herald_opcode(slot->op.opcode);
	u32 rest;

	if (n <= 1)
		return 1;
	/* a WRITE's first packet is longer than the others, of which one may be the last here */
	if (row->kind == HERALD_KIND_WRITE && w->req.next == slot->first)
		return 2;
	/* ... and the last one may be, with what else it carries */
	rest = slot->op.length - (u64)qp->mtu * herald_psn_diff(slot->last, slot->first);
	if (n == left && (row->traits & (HERALD_OP_IMM | HERALD_OP_INVALIDATE)) &&
	    rest + sizeof(u32) > qp->mtu)
		return n - 1;
	return n;
}

/* Was the next packet sent before? */
static bool is_repeated(const struct herald_wire_qp *w)
{
	return herald_psn_diff(w->req.next, w->req.end) < 0;
}

/*
 * Is the train of @n PSNs to be answered?  The end of a message always is; what is long, several
 * times in a window, lest that is full before an answer comes; and what is sent again, lest the
 * time is over each time before the part that was to be answered has arrived.
 */
static bool wants_answer(const struct herald_qp *qp, const struct herald_wire_op *slot, u32 n)
{
	u32 begin = herald_psn_diff(qp->wire->req.next, slot->first), end = begin + n;
	u32 each = herald_wire_window(qp->mtu) / ANSWERS;

	if (qp->type != IB_QPT_RC || herald_wire_answered_by_data(&slot->op))
		return false;
	return end > herald_psn_diff(slot->last, slot->first) || begin / each != end / each ||
	       is_repeated(qp->wire);
}

/* The train leaves, and with it @n PSNs. */
static void leave_with(struct herald_qp *qp, const struct herald_wire_op *slot,
		       struct herald_train *train, u32 n)
{
	struct herald_wire_qp *w = qp->wire;

	if (wants_answer(qp, slot, n))
		herald_train_ask(train);
	train->fate = slot->fate;
	train->repeated = is_repeated(w);
	train->ahead = herald_psn_diff(w->req.end, w->req.next) + n;
	herald_train_send(train);
	w->req.next = herald_psn_add(w->req.next, n);
}

/* A train of packets of a SEND or WRITE.  0; -EFAULT the WR's own memory; -ENOMEM. */
static int send_data(struct herald_qp *qp, struct herald_wire_op *slot, u32 *bytes)
{
	struct herald_wire_qp *w = qp->wire;
	u32 first = herald_psn_diff(w->req.next, slot->first);
	u64 offset = (u64)first * qp->mtu;
	const struct herald_span span = herald_op_span(qp, &slot->op);
	struct herald_cursor from __uninitialized;
	struct herald_train train;
	struct herald_pkt pkt;
	u32 i, n, length;

	/* of a message whose memory is not all there, nothing leaves */
	if (!offset && slot->op.length > qp->mtu && herald_span_check(&span))
		return -EFAULT;
	n = herald_train_begin(&train, qp, &w->req.route, train_length(qp, slot),
			       herald_train_middle_len(qp));
	if (!n)
		return -ENOMEM;
	length = min_t(u64, slot->op.length - offset, (u64)n * qp->mtu);
	if (herald_cursor_open(&from, &span, offset, length)) {
		herald_train_drop(&train);
		return -EFAULT;
	}
	for (i = 0; i < n; i++) {
		u32 psn = herald_psn_add(w->req.next, i);
		u32 part = min(length, qp->mtu);

		herald_train_packet(&train, &pkt);
		build_packet(qp, slot, psn, &pkt);
		herald_train_add(&train, &pkt, &from, part);
		length -= part;
		*bytes += part;
	}
	herald_cursor_close(&from);
	leave_with(qp, slot, &train, n);
	return 0;
}

/* ---------------------------------------------------- one packet each -- */

static bool is_small(const struct herald_wire_op *slot)
{
	return !slot->settled && slot->first == slot->last &&
	       !herald_wire_answered_by_data(&slot->op);
}

/* The bytes of its packet, from the BTH to the iCRC */
static u32 small_len(const struct herald_qp *qp, const struct herald_wire_op *slot)
{
	const struct herald_op *op = &slot->op;
	int opcode = herald_pkt_request_opcode(pkt_class(qp), op->opcode, true, true);

	return herald_pkt_row(opcode)->hdr_len + op->length + herald_pkt_pad(op->length) +
	       HERALD_ICRC_LEN;
}

/*
 * How many WRs from the one at req.send on may travel together: all as long as each other,
 * but the last may be shorter.
 */
static u32 count_small(struct herald_qp *qp, u32 seg_len)
{
	struct herald_wire_qp *w = qp->wire;
	u32 room = herald_wire_window(qp->mtu) - herald_psn_diff(w->req.next, w->req.una);
	u32 max = min3(room, w->req.tail - w->req.send, herald_wire_max_train(qp->dev, seg_len));
	u32 n = 0, len = seg_len;

	/* what happens to a message on purpose happens to it alone */
	if (herald_fault_armed(&qp->dev->faults, HERALD_FAULT_MESSAGE))
		return 1;
	while (n < max && len == seg_len && is_small(herald_wire_slot(w, w->req.send + n))) {
		len = small_len(qp, herald_wire_slot(w, w->req.send + n));
		if (len > seg_len)
			break;
		n++;
	}
	return n;
}

/* One WR's packet.  0 or -EFAULT. */
static int add_small(struct herald_qp *qp, struct herald_train *train,
		     const struct herald_wire_op *slot)
{
	const struct herald_span span = herald_op_span(qp, (struct herald_op *)&slot->op);
	struct herald_cursor from __uninitialized;
	struct herald_pkt pkt;

	if (herald_cursor_open(&from, &span, 0, slot->op.length))
		return -EFAULT;
	herald_train_packet(train, &pkt);
	build_packet(qp, slot, slot->first, &pkt);
	herald_train_add(train, &pkt, &from, slot->op.length);
	herald_cursor_close(&from);
	return 0;
}

/* A train of SENDs and WRITEs of one packet each, from this one on.  As send_data(). */
static int send_small(struct herald_qp *qp, struct herald_wire_op *slot, u32 *bytes)
{
	u32 seg_len = small_len(qp, slot), send = qp->wire->req.send, i, n;
	struct herald_train train;

	n = herald_train_begin(&train, qp, &qp->wire->req.route, count_small(qp, seg_len), seg_len);
	if (!n)
		return -ENOMEM;
	for (i = 0; i < n && !add_small(qp, &train, herald_wire_slot(qp->wire, send + i)); i++)
		*bytes += seg_len;
	/* the one that has no memory any more is looked at when its turn comes */
	if (!i) {
		herald_train_drop(&train);
		return -EFAULT;
	}
	leave_with(qp, slot, &train, i);
	return 0;
}

/* --------------------------------------------------------- and others -- */

/*
 * How many responses the next part of a READ has.  Parts always end at the same
 * places: what is asked for again must lie within what was asked for before.
 */
static u32 read_part(const struct herald_qp *qp, const struct herald_wire_op *slot)
{
	u32 part = HERALD_WIRE_READ_PART / qp->mtu;
	u32 done = herald_psn_diff(qp->wire->req.next, slot->first);
	u32 left = herald_psn_diff(slot->last, qp->wire->req.next) + 1;

	return min(left, part - done % part);
}

/* READ, atomics, FLUSH: one packet, of which more than one may be the answer.  As send_data(). */
static int send_single(struct herald_qp *qp, struct herald_wire_op *slot, u32 *bytes)
{
	struct herald_wire_qp *w = qp->wire;
	const struct herald_opcode_row *row = herald_opcode(slot->op.opcode);
	struct herald_span span = herald_op_span(qp, &slot->op);
	bool inlined = row->kind == HERALD_KIND_ATOMIC_WRITE;
	struct herald_cursor from __uninitialized;
	struct herald_train train;
	struct herald_pkt pkt;
	u32 n = 1;

	/* an answer is of no use without a place for it */
	if (inlined ? herald_cursor_open(&from, &span, 0, slot->op.length) :
		      herald_span_check(&span))
		return -EFAULT;
	if (!herald_train_begin(&train, qp, &w->req.route, 1, HERALD_TRAIN_BARE_LEN)) {
		if (inlined)
			herald_cursor_close(&from);
		return -ENOMEM;
	}
	herald_train_packet(&train, &pkt);
	build_packet(qp, slot, w->req.next, &pkt);
	if (row->kind == HERALD_KIND_READ) {
		u64 offset = (u64)herald_psn_diff(w->req.next, slot->first) * qp->mtu;

		n = read_part(qp, slot);
		pkt.va += offset;
		pkt.dmalen = min_t(u64, slot->op.length - offset, (u64)n * qp->mtu);
	}
	herald_train_add(&train, &pkt, inlined ? &from : NULL, inlined ? slot->op.length : 0);
	if (inlined)
		herald_cursor_close(&from);
	leave_with(qp, slot, &train, n);
	w->req.reads++;
	*bytes += sizeof(u64);
	return 0;
}

/* May the next packet leave?  */
static bool may_send(struct herald_qp *qp, const struct herald_wire_op *slot)
{
	struct herald_wire_qp *w = qp->wire;

	if (herald_psn_diff(w->req.next, w->req.una) >= (s32)herald_wire_window(qp->mtu))
		return false;
	if (!herald_wire_answered_by_data(&slot->op))
		return true;
	if (w->req.next == w->req.una)
		w->req.reads = 0;
	/* the next part of a READ, when the one before has come */
	if (w->req.next != slot->first)
		return w->req.next == w->req.una;
	return w->req.reads < max_t(u32, qp->attr.max_rd_atomic, 1);
}

/* Is all of it sent? */
static bool has_left(const struct herald_wire_qp *w, const struct herald_wire_op *slot)
{
	return !slot->settled && herald_psn_diff(w->req.next, slot->last) > 0;
}

/* Everything before req.next was sent. */
static void sent(struct herald_qp *qp)
{
	struct herald_wire_qp *w = qp->wire;

	if (herald_psn_diff(w->req.next, w->req.end) > 0)
		w->req.end = w->req.next;
	while (w->req.send != w->req.tail && has_left(w, herald_wire_slot(w, w->req.send)))
		w->req.send++;
	if (qp->type == IB_QPT_UC)
		w->req.una = w->req.next;
	else if (!w->req.timing)
		start_timer(qp);
}

/* UC: what was sent is done. */
static bool complete_unreliable(struct herald_qp *qp, struct herald_deferred *d)
{
	struct herald_wire_qp *w = qp->wire;

	if (qp->type != IB_QPT_UC || w->req.head == w->req.send)
		return false;
	herald_wire_complete_head(qp, IB_WC_SUCCESS, d);
	return true;
}

/*
 * What becomes of this attempt at a message?  It is asked when its first packet is
 * to leave.  true: it is late, and passes when it is sent next.
 */
static bool is_late(struct herald_qp *qp, struct herald_wire_op *slot)
{
	if (qp->wire->req.next == slot->first && !slot->fate)
		slot->fate = herald_fault_message(qp, &qp->sq.pause_usec);
	if (slot->fate != HERALD_FATE_DELAY)
		return false;
	slot->fate = HERALD_FATE_PASS;
	if (qp->type != IB_QPT_RC || !READ_ONCE(qp->attr.timeout) ||
	    (u64)qp->sq.pause_usec * NSEC_PER_USEC < herald_requester_patience_ns(qp))
		return true;
	/* later than an answer may be */
	qp->sq.pause_usec = 0;
	slot->fate = HERALD_FATE_LOSE;
	return false;
}

static enum herald_progress send_some(struct herald_qp *qp, u32 *bytes)
{
	struct herald_wire_qp *w = qp->wire;
	struct herald_wire_op *slot;
	int ret;

	for (; w->req.send != w->req.tail; w->req.send++) {
		slot = herald_wire_slot(w, w->req.send);
		if (!slot->settled)
			break;
		if (slot->outcome != HERALD_OK || slot->status != IB_WC_SUCCESS)
			return HERALD_BUSY;
	}
	if (w->req.send == w->req.tail || !may_send(qp, slot))
		return HERALD_BUSY;
	if (herald_fault_armed(&qp->dev->faults, HERALD_FAULT_MESSAGE) && is_late(qp, slot))
		return HERALD_AGAIN;

	if (is_small(slot))
		ret = send_small(qp, slot, bytes);
	else if (herald_wire_answered_by_data(&slot->op))
		ret = send_single(qp, slot, bytes);
	else
		ret = send_data(qp, slot, bytes);
	if (ret == -ENOMEM)
		return HERALD_AGAIN;
	if (ret) {
		slot->settled = true;
		slot->outcome = HERALD_LOC_PROT;
	} else {
		sent(qp);
	}
	return HERALD_MORE;
}

enum herald_progress herald_wire_advance(struct herald_qp *qp, unsigned int may, u32 *bytes,
					 struct herald_deferred *d)
{
	struct sk_buff *skb;

	/* between two states in which there is something to do: a reset is under way */
	if (!(may & HERALD_MAY_CONTINUE))
		return HERALD_BUSY;
	/* before a response: what waits for its turn is not in that one's way */
	if (herald_wire_settle(qp, d) || complete_unreliable(qp, d))
		return HERALD_MORE;
	skb = herald_wire_dequeue(qp->wire, &qp->wire->responses);
	if (skb) {
		*bytes += skb->len;
		herald_wire_response(qp, skb, d);
		consume_skb(skb);
		return HERALD_MORE;
	}
	if (overdue(qp)) {
		herald_wire_retry(qp, HERALD_WAIT_ACK, d);
		return HERALD_MORE;
	}
	if (READ_ONCE(qp->sq.waiting))
		return HERALD_BUSY;
	return send_some(qp, bytes);
}

/* ------------------------------------------------------------- transport -- */

static enum herald_progress push(struct herald_qp *qp, struct herald_op *op,
				 enum herald_outcome *outcome, struct herald_deferred *d)
{
	*outcome = herald_op_length_check(op);
	if (*outcome != HERALD_OK)
		return HERALD_DONE;
	herald_wire_take(qp, HERALD_OK, IB_WC_SUCCESS);
	return HERALD_TAKEN;
}

const struct herald_transport_ops herald_transport_wire = {
	.name = "wire",
	.push = push,
};
