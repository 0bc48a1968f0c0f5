// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/*
 * What a requester hears from the other end of its connection: acknowledgements,
 * refusals, and the data of READs and atomics.
 *
 * Every response acknowledges all requests before it.  But one that was to be
 * answered with data is not done before that has come: a later response tells
 * that it was lost, and it is asked for again (IBTA vol. 1, 9.7.6 and 9.7.7).
 */
#include "device.h"
#include "mr.h"
#include "opcode.h"
#include "pkt.h"
#include "psn.h"
#include "transport.h"
#include "wire_qp.h"
#include "wire_segments.h"

/* A packet of the response, or several equal ones in a row */
struct response {
	struct herald_pkt pkt;
	const struct herald_pkt_row *row;
	const u8 *payload;
	u32 count;
	u32 stride;		/* from one payload to the next */
	u32 length;		/* of all payloads */
};

static struct herald_wire_op *head_slot(struct herald_wire_qp *w)
{
	return herald_wire_slot(w, w->req.head);
}

/*
 * Is the oldest WR one that was sent, or is being sent?  Once one has failed, all
 * behind it are to be flushed, whatever the peer says of them.
 */
static bool has_head(const struct herald_qp *qp)
{
	const struct herald_wire_qp *w = qp->wire;

	return (herald_qp_may(qp) & HERALD_MAY_CONTINUE) && w->req.head != w->req.tail &&
	       !herald_wire_slot(qp->wire, w->req.head)->settled;
}

static void advance_una(struct herald_qp *qp, u32 una)
{
	struct herald_wire_qp *w = qp->wire;

	if (herald_psn_diff(una, w->req.una) <= 0)
		return;
	w->req.una = una;
	w->req.gap_seen = false;
	/* what is sent again may be acknowledged meanwhile */
	if (herald_psn_diff(w->req.next, una) < 0)
		w->req.next = una;
	herald_wire_progress(qp);
}

/* Answers were lost: ask again, once for each place where that shows. */
static void ask_again(struct herald_qp *qp, struct herald_deferred *d)
{
	struct herald_wire_qp *w = qp->wire;

	if (w->req.gap_seen)
		return;
	w->req.gap_seen = true;
	herald_count(qp->dev, HERALD_CTR_wire_responses_lost);
	herald_wire_retry(qp, HERALD_WAIT_NOTHING, d);
}

/*
 * All before @psn was executed.  false: a WR that was to be answered with data
 * stands in the way, and its answer was lost.
 */
static bool acknowledge(struct herald_qp *qp, u32 psn, struct herald_deferred *d)
{
	struct herald_wire_qp *w = qp->wire;

	while (has_head(qp) && herald_psn_diff(psn, w->req.una) > 0) {
		struct herald_wire_op *slot = head_slot(w);

		if (herald_wire_answered_by_data(&slot->op))
			return false;
		if (herald_psn_diff(psn, slot->last) <= 0) {
			advance_una(qp, psn);
			return true;
		}
		advance_una(qp, herald_psn_add(slot->last, 1));
		herald_wire_complete_head(qp, IB_WC_SUCCESS, d);
		/* results that waited for it, in order */
		while (herald_wire_settle(qp, d))
			;
	}
	return true;
}

static void bad_response(struct herald_qp *qp, struct herald_deferred *d)
{
	herald_count(qp->dev, HERALD_CTR_wire_bad_response);
	herald_wire_complete_head(qp, IB_WC_BAD_RESP_ERR, d);
}

/* ----------------------------------------------------------------- NAKs -- */

static enum herald_outcome refusal(u8 syndrome)
{
	switch (syndrome) {
	case HERALD_AETH_NAK_INVALID_REQUEST:
		return HERALD_NAK_INV_REQ;
	case HERALD_AETH_NAK_REMOTE_ACCESS:
		return HERALD_NAK_ACCESS;
	case HERALD_AETH_NAK_REMOTE_OPERATION:
		return HERALD_NAK_BAD_RECV;
	default:
		return HERALD_OK;
	}
}

static void not_ready(struct herald_qp *qp, u8 timer, struct herald_deferred *d)
{
	herald_count(qp->dev, HERALD_CTR_wire_rnr_received);
	herald_wire_rewind(qp);
	qp->sq.rnr_timer = timer;
	if (herald_requester_wait_rnr(qp) != HERALD_RNR)
		herald_wire_complete_head(qp, IB_WC_RNR_RETRY_EXC_ERR, d);
}

/* The timer runs for a receive WR of the peer's, and nothing was sent since. */
static bool waits_for_receiver(const struct herald_qp *qp)
{
	return READ_ONCE(qp->sq.waiting) && qp->sq.wait_kind == HERALD_WAIT_RNR;
}

static bool is_of_head(const struct herald_qp *qp, u32 psn)
{
	struct herald_wire_qp *w = qp->wire;

	return has_head(qp) && herald_psn_diff(psn, w->req.una) >= 0 &&
	       herald_psn_diff(psn, head_slot(w)->last) <= 0;
}

/* It is about the packet with this PSN, which was not executed; those before it were. */
static void refused(struct herald_qp *qp, const struct herald_pkt *pkt, struct herald_deferred *d)
{
	enum herald_outcome out = refusal(pkt->syndrome);
	const struct herald_wire_qp *w = qp->wire;

	herald_count(qp->dev, HERALD_CTR_wire_naks_received);
	/* an answer may be refused half way through */
	if (!acknowledge(qp, pkt->psn, d) && !is_of_head(qp, pkt->psn))
		return ask_again(qp, d);
	/* what comes late is about packets that were sent again since */
	if (!has_head(qp) || herald_psn_diff(pkt->psn, w->req.una) < 0)
		return;
	if ((pkt->syndrome & HERALD_AETH_KIND_MASK) == HERALD_AETH_RNR) {
		if (!waits_for_receiver(qp))
			not_ready(qp, pkt->syndrome & HERALD_AETH_VALUE_MASK, d);
	} else if (pkt->syndrome == HERALD_AETH_NAK_SEQUENCE) {
		/* twice about the same: it is being sent again already */
		if (!waits_for_receiver(qp) && w->req.next != w->req.una)
			herald_wire_retry(qp, HERALD_WAIT_NOTHING, d);
	} else if (out != HERALD_OK) {
		herald_wire_complete_head(qp, herald_outcome_row(out)->req_status, d);
	} else {
		bad_response(qp, d);
	}
}

static void acknowledged(struct herald_qp *qp, const struct herald_pkt *pkt,
			 struct herald_deferred *d)
{
	if ((pkt->syndrome & HERALD_AETH_KIND_MASK) != HERALD_AETH_ACK)
		return refused(qp, pkt, d);
	if (!acknowledge(qp, herald_psn_add(pkt->psn, 1), d))
		ask_again(qp, d);
}

/* ----------------------------------------------------------------- data -- */

/* 0, or -EFAULT: the WR's own memory is not what it was when it was posted */
static int store(struct herald_qp *qp, const struct herald_op *op, u64 offset,
		 const struct response *r)
{
	const struct herald_span to = herald_op_span(qp, (struct herald_op *)op);
	const struct herald_span from = {
		.linear = (void *)r->payload, .length = r->length,
		.seg = r->pkt.payload_len, .gap = r->stride - r->pkt.payload_len,
	};
	struct herald_cursor dst __uninitialized, src __uninitialized;

	if (!r->length)
		return 0;
	if (herald_cursor_open(&dst, &to, offset, r->length))
		return -EFAULT;
	herald_cursor_open(&src, &from, 0, r->length);
	herald_cursor_move(&dst, &src, r->length);
	herald_cursor_close(&dst);
	return 0;
}

static int store_atomic(struct herald_qp *qp, struct herald_op *op, const struct herald_pkt *pkt)
{
	u64 value = pkt->atomic_orig;
	const struct herald_span from = { .linear = &value, .length = sizeof(value) };
	const struct herald_span to = herald_op_span(qp, op);

	return herald_copy(&to, 0, &from, 0, sizeof(value)) == HERALD_COPY_OK ? 0 : -EFAULT;
}

/* How much the packets of this part of a READ have to carry: what was asked for. */
static bool right_length(const struct herald_qp *qp, const struct herald_wire_op *slot, u64 offset,
			 const struct response *r)
{
	u64 left = slot->op.length - offset;

	/* only a READ is answered with a payload */
	if (herald_opcode(slot->op.opcode)->kind != HERALD_KIND_READ)
		return !r->length;
	return r->length == min_t(u64, left, (u64)r->count * qp->mtu);
}

/*
 * Is it the packet that this place of a READ has?  What was asked for again begins in
 * the middle, and each part of a long one ends there.
 */
static bool right_place(const struct herald_wire_op *slot, const struct response *r, u32 end)
{
	bool last = r->row->flags & HERALD_PKT_LAST;

	if (r->pkt.psn == slot->first && !(r->row->flags & HERALD_PKT_FIRST))
		return false;
	if (herald_psn_diff(end, slot->last) > 0)
		return last;
	return !last || slot->op.length > HERALD_WIRE_READ_PART;
}

/* Does the response answer this WR at all? */
static bool right_kind(const struct herald_op *op, const struct response *r)
{
	switch (herald_opcode(op->opcode)->kind) {
	case HERALD_KIND_READ:
		return r->row->kind == HERALD_KIND_READ;
	case HERALD_KIND_ATOMIC:
		return r->row->kind == HERALD_KIND_ATOMIC;
	case HERALD_KIND_ATOMIC_WRITE:
	case HERALD_KIND_FLUSH:
		return r->pkt.opcode == HERALD_BTH_RC_RDMA_READ_RESPONSE_ONLY && !r->length;
	default:
		return false;
	}
}

static void take_data(struct herald_qp *qp, const struct response *r, struct herald_deferred *d)
{
	struct herald_wire_qp *w = qp->wire;
	struct herald_wire_op *slot = head_slot(w);
	u64 offset = (u64)herald_psn_diff(r->pkt.psn, slot->first) * qp->mtu;
	bool reads = herald_opcode(slot->op.opcode)->kind == HERALD_KIND_READ;
	u32 end = herald_psn_add(r->pkt.psn, r->count);
	int ret = 0;

	if (!right_kind(&slot->op, r) || herald_psn_diff(end, slot->last) > 1 ||
	    (reads && !right_place(slot, r, end)) || !right_length(qp, slot, offset, r))
		return bad_response(qp, d);
	if (reads)
		ret = store(qp, &slot->op, offset, r);
	else if (r->row->kind == HERALD_KIND_ATOMIC)
		ret = store_atomic(qp, &slot->op, &r->pkt);
	if (ret)
		return herald_wire_complete_head(qp, IB_WC_LOC_PROT_ERR, d);

	if (r->row->flags & HERALD_PKT_LAST && w->req.reads)
		w->req.reads--;
	advance_una(qp, end);
	if (herald_psn_diff(end, slot->last) > 0) {
		herald_wire_complete_head(qp, IB_WC_SUCCESS, d);
		while (herald_wire_settle(qp, d))
			;
	}
}

/* Everything before it was executed; it is taken if it is the next one. */
static void answered(struct herald_qp *qp, const struct response *r, struct herald_deferred *d)
{
	struct herald_wire_qp *w = qp->wire;

	if (!acknowledge(qp, r->pkt.psn, d) && r->pkt.psn != w->req.una)
		return ask_again(qp, d);
	if (!has_head(qp))
		return;
	if (r->pkt.psn == w->req.una)
		take_data(qp, r, d);
	else if (herald_psn_diff(r->pkt.psn, w->req.una) > 0)
		ask_again(qp, d);
}

/* --------------------------------------------------------------- trains -- */

/* Is it about something that was sent and is not done?  Others are ghosts. */
static bool is_awaited(const struct herald_qp *qp, const struct herald_pkt *pkt)
{
	const struct herald_wire_qp *w = qp->wire;

	return herald_psn_diff(pkt->psn, w->req.una) >= 0 &&
	       herald_psn_diff(pkt->psn, w->req.end) < 0;
}

/* The first ones of several may have been taken already. */
static void skip_taken(struct herald_qp *qp, struct response *r)
{
	s32 n = herald_psn_diff(qp->wire->req.una, r->pkt.psn);

	if (n <= 0 || n >= r->count)
		return;
	herald_count_add(qp->dev, HERALD_CTR_wire_ghosts, n);
	r->pkt.psn = qp->wire->req.una;
	r->payload += n * r->stride;
	r->length -= n * r->pkt.payload_len;
	r->count -= n;
}

static void respond(struct herald_qp *qp, struct response *r, struct herald_deferred *d)
{
	if (!(herald_qp_may(qp) & HERALD_MAY_CONTINUE))
		return;
	skip_taken(qp, r);
	if (!is_awaited(qp, &r->pkt)) {
		herald_count_add(qp->dev, HERALD_CTR_wire_ghosts, r->count);
		return;
	}
	if (r->row->flags & HERALD_PKT_ACK)
		acknowledged(qp, &r->pkt, d);
	else if ((r->pkt.syndrome & HERALD_AETH_KIND_MASK) == HERALD_AETH_ACK)
		answered(qp, r, d);
	else
		herald_count(qp->dev, HERALD_CTR_wire_ghosts);
}

void herald_wire_response(struct herald_qp *qp, struct sk_buff *skb, struct herald_deferred *d)
{
	struct herald_segments segs = herald_segments(skb);
	struct response r;

	while (herald_segments_next(&segs, qp, &r.pkt, &r.row)) {
		if (!herald_wire_arrives(qp, skb, &r.pkt, d))
			continue;
		r.payload = segs.payload;
		r.count = segs.count;
		r.stride = segs.stride;
		r.length = r.pkt.payload_len * r.count;
		respond(qp, &r, d);
	}
}
