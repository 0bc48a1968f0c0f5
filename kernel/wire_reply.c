// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/* The responder's answers: acknowledgements, refusals, and the data of READs and atomics. */
#include "device.h"
#include "mr.h"
#include "opcode.h"
#include "pkt.h"
#include "psn.h"
#include "responder.h"
#include "transport.h"
#include "wire_qp.h"
#include "wire_train.h"

static bool send_answer(struct herald_qp *qp, struct herald_pkt *answer)
{
	struct herald_train train;
	struct herald_pkt pkt;

	if (!herald_train_begin(&train, qp, &qp->wire->resp.route, 1, HERALD_TRAIN_BARE_LEN))
		return false;
	herald_train_packet(&train, &pkt);
	pkt.opcode = answer->opcode;
	pkt.psn = answer->psn;
	pkt.syndrome = answer->syndrome;
	pkt.msn = qp->wire->resp.msn;
	pkt.atomic_orig = answer->atomic_orig;
	herald_train_add(&train, &pkt, NULL, 0);
	herald_train_send(&train);
	return true;
}

void herald_wire_send_ack(struct herald_qp *qp)
{
	struct herald_pkt answer = {
		.opcode = HERALD_BTH_RC_ACKNOWLEDGE, .syndrome = HERALD_AETH_NO_CREDITS,
		.psn = qp->wire->resp.acked,
	};

	send_answer(qp, &answer);
}

bool herald_wire_send_nak(struct herald_qp *qp, u8 syndrome)
{
	struct herald_pkt answer = {
		.opcode = HERALD_BTH_RC_ACKNOWLEDGE, .syndrome = syndrome,
		.psn = qp->wire->resp.psn,
	};

	return send_answer(qp, &answer);
}

void herald_wire_send_atomic(struct herald_qp *qp, u32 psn, u64 value)
{
	struct herald_pkt answer = {
		.opcode = HERALD_BTH_RC_ATOMIC_ACKNOWLEDGE, .syndrome = HERALD_AETH_NO_CREDITS,
		.psn = psn, .atomic_orig = value,
	};

	send_answer(qp, &answer);
}

void herald_wire_send_done(struct herald_qp *qp, u32 psn)
{
	struct herald_pkt answer = {
		.opcode = HERALD_BTH_RC_RDMA_READ_RESPONSE_ONLY,
		.syndrome = HERALD_AETH_NO_CREDITS, .psn = psn,
	};

	send_answer(qp, &answer);
}

/* ----------------------------------------------------------------- READ -- */

/* Responses in the next train: the first and the last have a longer header. */
static u32 train_length(const struct herald_qp *qp, const struct herald_wire_reading *rd)
{
	u32 max = herald_wire_max_train(qp->dev, herald_train_middle_len(qp));

	if (!rd->offset || rd->left == 1)
		return 1;
	return min(rd->left - 1, max);
}

static u8 response_opcode(const struct herald_wire_reading *rd)
{
	if (!rd->offset)
		return rd->left == 1 ? HERALD_BTH_RC_RDMA_READ_RESPONSE_ONLY :
				       HERALD_BTH_RC_RDMA_READ_RESPONSE_FIRST;
	return rd->left == 1 ? HERALD_BTH_RC_RDMA_READ_RESPONSE_LAST :
			       HERALD_BTH_RC_RDMA_READ_RESPONSE_MIDDLE;
}

/* Have the data put where the train's packets are; what is wrong with it. */
static enum herald_outcome read_into(struct herald_qp *qp, const struct herald_span *span,
				     struct herald_deferred *d)
{
	const struct herald_wire_reading *rd = &qp->wire->resp.reading;
	struct herald_cursor to __uninitialized;
	enum herald_outcome out = HERALD_OK;
	struct herald_request rq = {
		.opcode = HERALD_WR_RDMA_READ, .payload = &to,
		.length = rd->length, .offset = rd->offset, .piece = span->length,
		.remote_addr = rd->va, .rkey = rd->rkey, .src_qpn = qp->dest_qpn,
		.repeated = rd->again,
	};

	herald_cursor_open(&to, span, 0, span->length);
	herald_responder_execute(qp, &rq, &out, d);
	return out;
}

static bool send_part(struct herald_qp *qp, u32 *bytes, struct herald_deferred *d)
{
	struct herald_wire_reading *rd = &qp->wire->resp.reading;
	u32 length = min_t(u64, rd->length - rd->offset, qp->mtu);
	struct herald_span span = { .seg = length };
	enum herald_outcome out;
	struct herald_train train;
	struct herald_pkt pkt;
	u32 n, gap;

	n = herald_train_begin(&train, qp, &qp->wire->resp.route, train_length(qp, rd),
			       herald_train_middle_len(qp));
	if (!n)
		return false;
	span.length = n * length;
	herald_train_packet(&train, &pkt);
	pkt.opcode = response_opcode(rd);
	pkt.psn = rd->psn;
	pkt.msn = rd->msn;
	pkt.syndrome = HERALD_AETH_NO_CREDITS;
	span.linear = herald_train_reserve(&train, &pkt, n, length, &gap);
	span.gap = gap;

	out = read_into(qp, &span, d);
	if (out != HERALD_OK) {
		herald_train_drop(&train);
		rd->active = false;
		herald_wire_refuse_read(qp, out);
		return true;
	}
	if (rd->left == n && !rd->again)
		herald_wire_answered(qp->wire);
	herald_train_send(&train);
	rd->psn = herald_psn_add(rd->psn, n);
	rd->left -= n;
	rd->offset += span.length;
	rd->active = rd->left;
	*bytes += span.length;
	return true;
}

bool herald_wire_serve(struct herald_qp *qp, u32 *budget, struct herald_deferred *d)
{
	struct herald_wire_reading *rd = &qp->wire->resp.reading;
	u32 bytes;

	while (rd->active) {
		if (!(herald_qp_may(qp) & HERALD_MAY_RECEIVE)) {
			rd->active = false;
			break;
		}
		if (!*budget)
			return false;
		bytes = 1;
		if (!send_part(qp, &bytes, d))
			return false;
		*budget -= min(bytes, *budget);
	}
	return true;
}
