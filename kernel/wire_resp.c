// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/*
 * The responder's half of a connection over the wire: packets into requests.
 *
 * A packet is looked at in the order of the specification (IBTA vol. 1, 9.6 and
 * 9.7.4): is it the expected one, does its opcode follow from the one before,
 * is its length right; then responder.c executes it as a piece of a message.
 */
#include "device.h"
#include "mr.h"
#include "opcode.h"
#include "path_migration.h"
#include "pkt.h"
#include "psn.h"
#include "responder.h"
#include "transport.h"
#include "wire_qp.h"
#include "wire_segments.h"

/* How much one turn takes, and answers to READs */
#define TURN_BYTES	(256u << 10)

/* ... of which a packet uses up so much by itself, and one that has an answer of its own */
#define PACKET_COST	256u
#define ANSWER_COST	1024u

/* A request's packets, and what may be wrong with them */
struct request {
	struct herald_pkt pkt;
	const struct herald_pkt_row *row;
	const struct herald_segments *segs;
	u32 count;
	u32 length;		/* payload of all of them */
};

enum verdict {
	TAKEN,
	DROPPED,
	AGAIN,			/* the same packets once more, in a moment */
};

/* ------------------------------------------------------------- answers -- */

static void nak(struct herald_qp *qp, u8 syndrome)
{
	struct herald_wire_qp *w = qp->wire;

	if (w->resp.nak_sent)
		return;
	w->resp.ack_due = false;
	w->resp.nak_sent = herald_wire_send_nak(qp, syndrome);
}

/* The specification's word for what the responder has found. */
static void answer_outcome(struct herald_qp *qp, enum herald_outcome out)
{
	switch (herald_outcome_row(out)->nak) {
	case HERALD_NAK_KIND_RNR:
		return nak(qp, HERALD_AETH_RNR | qp->attr.min_rnr_timer);
	case HERALD_NAK_KIND_INVALID_REQUEST:
		return nak(qp, HERALD_AETH_NAK_INVALID_REQUEST);
	case HERALD_NAK_KIND_REMOTE_ACCESS:
		return nak(qp, HERALD_AETH_NAK_REMOTE_ACCESS);
	case HERALD_NAK_KIND_REMOTE_OPERATION:
		return nak(qp, HERALD_AETH_NAK_REMOTE_OPERATION);
	default:
		return;
	}
}

void herald_wire_refuse_read(struct herald_qp *qp, enum herald_outcome out)
{
	struct herald_wire_qp *w = qp->wire;

	if (w->resp.reading.again)
		return;
	/* the answer that is not given: those before it were, and the message does not count */
	w->resp.psn = w->resp.reading.psn;
	w->resp.msn = (w->resp.msn - 1) & HERALD_PSN_MASK;
	answer_outcome(qp, out);
}

/* A packet that does not fit what came before it. */
static enum verdict refuse(struct herald_qp *qp, struct herald_deferred *d)
{
	if (qp->type == IB_QPT_UC) {
		herald_count(qp->dev, HERALD_CTR_uc_dropped);
		qp->wire->resp.message = 0;
		return DROPPED;
	}
	herald_responder_refuse(qp, HERALD_NAK_INV_REQ, d);
	nak(qp, HERALD_AETH_NAK_INVALID_REQUEST);
	return DROPPED;
}

/* ----------------------------------------------------- SEND and WRITE -- */

static void begin_message(struct herald_wire_qp *w, const struct request *r)
{
	w->resp.message = r->row->kind;
	w->resp.offset = 0;
	w->resp.va = r->pkt.va;
	w->resp.rkey = r->pkt.rkey;
	w->resp.length = r->pkt.dmalen;
}

static struct herald_request make_request(struct herald_qp *qp, const struct request *r,
					  struct herald_cursor *payload)
{
	struct herald_wire_qp *w = qp->wire;
	bool last = r->row->flags & HERALD_PKT_LAST;

	return (struct herald_request){
		.opcode = r->row->wr_opcode,
		.solicited = r->pkt.solicited,
		.imm_or_rkey = r->row->ext & HERALD_EXT_IETH ? r->pkt.ieth : r->pkt.imm,
		.finish = w->resp.finish,
		/* how long a SEND is, its last packet tells */
		.length = r->row->kind == HERALD_KIND_SEND ?
			  w->resp.offset + r->length + !last : w->resp.length,
		.offset = w->resp.offset,
		.piece = r->length,
		.payload = payload,
		.remote_addr = w->resp.va,
		.rkey = w->resp.rkey,
		.src_qpn = qp->dest_qpn,
	};
}

/* Executed, all of them. */
static void done(struct herald_qp *qp, const struct request *r)
{
	struct herald_wire_qp *w = qp->wire;

	w->resp.psn = herald_psn_add(w->resp.psn, r->count);
	w->resp.acked = herald_psn_add(w->resp.psn, -1);
	w->resp.finish = false;
	w->resp.offset += r->length;
	if (r->row->flags & HERALD_PKT_LAST) {
		w->resp.message = 0;
		w->resp.msn = (w->resp.msn + 1) & HERALD_PSN_MASK;
	}
	w->resp.ack_due |= r->pkt.ack_req && qp->type == IB_QPT_RC;
}

static struct herald_span payload_of(const struct request *r)
{
	return (struct herald_span){
		.linear = (void *)r->segs->payload, .length = r->length,
		.seg = r->pkt.payload_len, .gap = r->segs->stride - r->pkt.payload_len,
	};
}

static enum verdict take_piece(struct herald_qp *qp, const struct request *r,
			       struct herald_deferred *d)
{
	const struct herald_span span = payload_of(r);
	struct herald_cursor payload __uninitialized;
	struct herald_wire_qp *w = qp->wire;
	enum herald_outcome out = HERALD_OK;
	struct herald_request rq;

	if ((r->row->flags & HERALD_PKT_FIRST) && !w->resp.finish)
		begin_message(w, r);
	herald_cursor_open(&payload, &span, 0, r->length);
	rq = make_request(qp, r, &payload);
	qp->resp.dropped = false;
	switch (herald_responder_execute(qp, &rq, &out, d)) {
	case HERALD_AGAIN:
		/* the same packet comes again, and its opcode is to fit then, too */
		if (r->row->flags & HERALD_PKT_FIRST)
			w->resp.message = 0;
		w->resp.finish = true;
		return AGAIN;
	case HERALD_MORE:
		break;
	default:
		/* the message begins anew, if its first packet was not taken */
		if (out != HERALD_OK && (r->row->flags & HERALD_PKT_FIRST))
			w->resp.message = 0;
		w->resp.finish = false;
		break;
	}
	if (out == HERALD_OK)
		done(qp, r);
	else
		answer_outcome(qp, out);
	/* the rest of an unreliable message goes the way of its beginning */
	if (unlikely(qp->resp.dropped)) {
		w->resp.message = 0;
		w->resp.skipping = true;
	}
	return out == HERALD_OK ? TAKEN : DROPPED;
}

/* ------------------------------------------- READ, atomics, and others -- */

static struct herald_wire_done *remember(struct herald_wire_qp *w, const struct request *r,
					 u32 responses)
{
	struct herald_wire_done *done = &w->resp.done[w->resp.next_done++ % HERALD_WIRE_READS];

	w->resp.asked++;
	*done = (struct herald_wire_done){
		.first = r->pkt.psn, .last = herald_psn_add(r->pkt.psn, responses - 1),
		.opcode = r->pkt.opcode, .valid = true,
		.va = r->pkt.va, .rkey = r->pkt.rkey, .length = r->pkt.dmalen,
	};
	return done;
}

static void executed(struct herald_qp *qp, u32 responses)
{
	struct herald_wire_qp *w = qp->wire;

	w->resp.psn = herald_psn_add(w->resp.psn, responses);
	w->resp.msn = (w->resp.msn + 1) & HERALD_PSN_MASK;
	/* the answer says it */
	w->resp.ack_due = false;
}

static void begin_reading(struct herald_qp *qp, const struct request *r, u32 responses,
			  bool again)
{
	struct herald_wire_qp *w = qp->wire;

	w->resp.reading = (struct herald_wire_reading){
		.active = true, .again = again,
		.psn = r->pkt.psn, .left = responses, .msn = w->resp.msn,
		.va = r->pkt.va, .rkey = r->pkt.rkey, .length = r->pkt.dmalen,
	};
}

static enum verdict take_read(struct herald_qp *qp, const struct request *r,
			      struct herald_deferred *d)
{
	u32 responses = herald_wire_packets(qp->mtu, r->pkt.dmalen);

	if (r->pkt.dmalen > HERALD_MAX_MSG || !(qp->attr.qp_access_flags & IB_ACCESS_REMOTE_READ))
		return refuse(qp, d);
	remember(qp->wire, r, responses);
	executed(qp, responses);
	begin_reading(qp, r, responses, false);
	return TAKEN;
}

/* One packet that is executed at once, and whose answer says more than that it was. */
static enum verdict take_single(struct herald_qp *qp, const struct request *r,
				struct herald_deferred *d)
{
	u64 value = 0;
	struct herald_span span = { .linear = &value, .length = sizeof(value) };
	struct herald_cursor payload __uninitialized;
	enum herald_outcome out = HERALD_OK;
	struct herald_wire_done *done;
	struct herald_request rq;
	u32 length = r->row->kind == HERALD_KIND_FLUSH ? r->pkt.dmalen : sizeof(value);
	u32 psn = r->pkt.psn;

	/* it may take long, and waits for a work item */
	if (r->row->kind == HERALD_KIND_FLUSH && in_softirq())
		return AGAIN;
	if (length > HERALD_MAX_MSG)
		return refuse(qp, d);
	if (r->row->kind == HERALD_KIND_ATOMIC_WRITE)
		span.linear = (void *)r->segs->payload;
	herald_cursor_open(&payload, &span, 0, sizeof(value));
	rq = (struct herald_request){
		.opcode = r->row->wr_opcode, .payload = &payload,
		.length = length, .piece = length,
		.remote_addr = r->pkt.va, .rkey = r->pkt.rkey, .src_qpn = qp->dest_qpn,
		.compare_add = r->pkt.swap_add, .swap = 0,
		.flush_placement = r->pkt.flush_placement,
		.flush_selectivity = r->pkt.flush_selectivity,
	};
	if (rq.opcode == HERALD_WR_ATOMIC_CMP_AND_SWP) {
		rq.compare_add = r->pkt.compare;
		rq.swap = r->pkt.swap_add;
	}
	herald_responder_execute(qp, &rq, &out, d);
	if (out != HERALD_OK) {
		answer_outcome(qp, out);
		return DROPPED;
	}
	done = remember(qp->wire, r, 1);
	done->value = value;
	executed(qp, 1);
	herald_wire_answered(qp->wire);
	if (r->row->kind == HERALD_KIND_ATOMIC)
		herald_wire_send_atomic(qp, psn, value);
	else
		herald_wire_send_done(qp, psn);
	return TAKEN;
}

/* ---------------------------------------------------------- duplicates -- */

static const struct herald_wire_done *find_done(const struct herald_wire_qp *w,
						const struct request *r)
{
	const struct herald_wire_done *done;
	u32 i;

	/* the newest first: an older one may have the same PSNs, once around the circle */
	for (i = 1; i <= HERALD_WIRE_READS; i++) {
		done = &w->resp.done[(w->resp.next_done - i) % HERALD_WIRE_READS];
		if (herald_wire_is_done(done, &r->pkt))
			return done;
	}
	return NULL;
}

static void read_again(struct herald_qp *qp, const struct request *r,
		       const struct herald_wire_done *done)
{
	const struct herald_sge sge = {
		.addr = r->pkt.va, .length = r->pkt.dmalen, .lkey = r->pkt.rkey,
	};
	const struct herald_span span = {
		.sge = &sge, .nsge = 1, .length = sge.length, .qp = qp,
		.access = IB_ACCESS_REMOTE_READ, .remote = true,
	};

	if (!herald_wire_reads_again(done, &r->pkt, qp->mtu))
		return;
	/* a key or a right that was withdrawn meanwhile is no fault of the connection's */
	if (herald_span_check(&span))
		return;
	begin_reading(qp, r, herald_wire_packets(qp->mtu, r->pkt.dmalen), true);
}

static void duplicate(struct herald_qp *qp, const struct request *r)
{
	struct herald_wire_qp *w = qp->wire;
	const struct herald_wire_done *done;

	herald_count(qp->dev, HERALD_CTR_duplicates);
	switch (r->row->kind) {
	case HERALD_KIND_SEND:
	case HERALD_KIND_WRITE:
		w->resp.ack_due |= r->pkt.ack_req || (r->row->flags & HERALD_PKT_LAST);
		return;
	}
	done = find_done(w, r);
	if (!done)
		return;
	if (r->row->kind == HERALD_KIND_READ)
		read_again(qp, r, done);
	else if (r->row->kind == HERALD_KIND_ATOMIC)
		herald_wire_send_atomic(qp, r->pkt.psn, done->value);
	else
		herald_wire_send_done(qp, r->pkt.psn);
}

/* -------------------------------------------------------------- packets -- */

/* How many of them are as they should be, and can be executed together. */
static u32 acceptable(const struct herald_qp *qp, const struct request *r)
{
	const struct herald_wire_qp *w = qp->wire;
	const struct herald_wire_check check = {
		.pkt = &r->pkt, .row = r->row, .count = r->count, .mtu = qp->mtu,
		.message = w->resp.message, .offset = w->resp.offset, .length = w->resp.length,
	};
	u64 end = w->resp.offset + r->length, room = qp->resp.recv.length;
	u32 n = herald_wire_check(&check);

	if (n <= 1 || r->row->kind != HERALD_KIND_SEND || end < room)
		return n;
	/* the first one that is too much for the receive WR is looked at by itself */
	if (w->resp.offset + qp->mtu >= room)
		return 1;
	return min_t(u64, n, (room - w->resp.offset - 1) / qp->mtu);
}

/*
 * IBTA vol. 1, 9.9.3: more READs and atomics than the connection has resources for.  Those
 * count that had no answer yet when this one came: the peer cannot have taken one for it.
 */
static bool too_many(const struct herald_qp *qp, const struct request *r)
{
	u32 answered = herald_wire_cb(r->segs->skb)->answered;

	return (s32)(qp->wire->resp.asked - answered) >= qp->attr.max_dest_rd_atomic;
}

static enum verdict take(struct herald_qp *qp, struct request *r, struct herald_segments *segs,
			 struct herald_deferred *d)
{
	u32 n = segs->malformed ? 0 : acceptable(qp, r);

	if (!n || !herald_opcode_allowed(qp->type, r->row->wr_opcode, false))
		return refuse(qp, d);
	if (unlikely(n < r->count)) {
		herald_segments_trim(segs, n);
		r->count = n;
		r->length = n * r->pkt.payload_len;
	}
	switch (r->row->kind) {
	case HERALD_KIND_SEND:
	case HERALD_KIND_WRITE:
		return take_piece(qp, r, d);
	}
	if (too_many(qp, r))
		return refuse(qp, d);
	return r->row->kind == HERALD_KIND_READ ? take_read(qp, r, d) : take_single(qp, r, d);
}

/* A message of which something is missing is dropped, whole. */
static enum verdict unreliable(struct herald_qp *qp, struct request *r,
			       struct herald_segments *segs, struct herald_deferred *d)
{
	struct herald_wire_qp *w = qp->wire;

	if (r->pkt.psn != w->resp.psn) {
		if (w->resp.message) {
			herald_count(qp->dev, HERALD_CTR_uc_dropped);
			w->resp.skipping = true;
		}
		w->resp.message = 0;
		w->resp.psn = r->pkt.psn;
	}
	/* a new message begins in the middle of one: that one is lost */
	if (r->row->flags & HERALD_PKT_FIRST) {
		if (w->resp.message)
			herald_count(qp->dev, HERALD_CTR_uc_dropped);
		w->resp.message = 0;
		w->resp.skipping = false;
	} else if (!w->resp.message) {
		w->resp.psn = herald_psn_add(r->pkt.psn, r->count);
		if (!w->resp.skipping)
			herald_count(qp->dev, HERALD_CTR_uc_dropped);
		w->resp.skipping = true;
		return DROPPED;
	}
	return take(qp, r, segs, d);
}

/* The first of several packets may have been taken already. */
static void skip(struct request *r, struct herald_segments *segs, u32 n)
{
	r->pkt.psn = herald_psn_add(r->pkt.psn, n);
	r->count -= n;
	r->length -= n * r->pkt.payload_len;
	segs->payload += n * segs->stride;
	segs->count -= n;
}

static enum verdict reliable(struct herald_qp *qp, struct request *r, struct herald_segments *segs,
			     struct herald_deferred *d)
{
	u32 skipped;

	switch (herald_wire_place(r->pkt.psn, r->count, qp->wire->resp.psn, &skipped)) {
	case HERALD_PLACE_EARLY:
		if (!qp->wire->resp.nak_sent)
			herald_count(qp->dev, HERALD_CTR_nak_sequence);
		herald_count_add(qp->dev, HERALD_CTR_wire_out_of_sequence, r->count);
		nak(qp, HERALD_AETH_NAK_SEQUENCE);
		return DROPPED;
	case HERALD_PLACE_DUPLICATE:
		if (!segs->malformed)
			duplicate(qp, r);
		return DROPPED;
	case HERALD_PLACE_EXPECTED:
		break;
	}
	if (skipped)
		skip(r, segs, skipped);
	qp->wire->resp.nak_sent = false;
	return take(qp, r, segs, d);
}

static enum verdict look_at(struct herald_qp *qp, struct request *r, struct herald_segments *segs,
			    struct herald_deferred *d)
{
	if (!(herald_qp_may(qp) & HERALD_MAY_RECEIVE) ||
	    qp->transport != &herald_transport_wire) {
		herald_count(qp->dev, HERALD_CTR_peer_not_ready);
		return DROPPED;
	}
	if (!herald_wire_arrives(qp, segs->skb, &r->pkt, d))
		return DROPPED;
	if (unlikely(READ_ONCE(qp->state) == IB_QPS_RTR))
		herald_qp_comm_est(qp, d);
	if (qp->type == IB_QPT_UC)
		return unreliable(qp, r, segs, d);
	return reliable(qp, r, segs, d);
}

/* ---------------------------------------------------------------- trains -- */

static u32 cost(const struct herald_pkt_row *row)
{
	bool quiet = row->kind == HERALD_KIND_SEND || row->kind == HERALD_KIND_WRITE;

	return quiet ? PACKET_COST : ANSWER_COST;
}

/* The train's packets; false: not all of them, in this turn. */
static bool take_train(struct herald_qp *qp, struct sk_buff *skb, u32 *budget,
		       struct herald_deferred *d)
{
	struct herald_segments segs = herald_segments(skb);
	struct request r = { .segs = &segs };

	segs.requests = qp->type == IB_QPT_RC;
	do {
		if (qp->wire->resp.reading.active && !herald_wire_serve(qp, budget, d))
			break;
		if (!*budget)
			break;
		if (!herald_segments_next(&segs, qp, &r.pkt, &r.row))
			return true;
		r.count = segs.count;
		r.length = r.pkt.payload_len * r.count;
		*budget -= min(*budget, cost(r.row));
		if (look_at(qp, &r, &segs, d) == AGAIN) {
			herald_segments_back(&segs);
			break;
		}
	} while (true);

	herald_segments_keep(&segs);
	return false;
}

static bool respond(struct herald_qp *qp, struct herald_deferred *d)
{
	struct sk_buff_head *queue = &qp->wire->requests;
	u32 budget = TURN_BYTES;
	struct sk_buff *skb;

	while (budget && (skb = herald_wire_dequeue(qp->wire, queue))) {
		bool all = qp->type == IB_QPT_RC || qp->type == IB_QPT_UC ?
			   take_train(qp, skb, &budget, d) : herald_wire_datagrams(qp, skb, d);

		if (!all) {
			herald_wire_put_back(qp->wire, queue, skb);
			return false;
		}
		budget -= min(skb->len, budget);
		consume_skb(skb);
	}
	if (!skb_queue_empty(queue))
		return false;
	return !qp->wire->resp.reading.active || herald_wire_serve(qp, &budget, d);
}

bool herald_wire_respond(struct herald_qp *qp, struct herald_deferred *d)
{
	bool all = respond(qp, d);

	/* the answer to a READ comes before what acknowledges later requests */
	if (qp->wire->resp.ack_due && !qp->wire->resp.reading.active) {
		qp->wire->resp.ack_due = false;
		herald_wire_send_ack(qp);
	}
	return all;
}
