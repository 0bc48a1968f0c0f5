// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/*
 * The responder on the wire, when a SEND with invalidate has to wait until nobody uses its key's
 * memory any more: by whom that is used, nobody can choose from outside.  responder.c is the test.
 */
#include <kunit/test.h>
#include <linux/skbuff.h>

/* The sources themselves: the module exports nothing. */
#include "../../kernel/wire_resp.c"
#include "../../kernel/wire_segments.c"
#include "../../kernel/wire_check.c"
#include "../../kernel/outcome.c"
#include "../../kernel/qp_state.c"
/* some have short names that are in the way of the next one's */
#undef ROW
#include "../../kernel/compat/crc.c"
#include "../../kernel/pkt.c"
#include "../../kernel/opcode.c"

#define MTU		256
#define FIRST_PSN	1000
#define KEY		0x1234
#define MOST		16	/* pieces that are executed in a test */

/* ----------------------------------------------- what wire_resp.c calls -- */

/* A piece as the responder gets it */
struct piece {
	u8 opcode;
	bool finish;
	u64 offset;
	u32 length;
	u32 key;
};

/* What happened, and how often the responder is to ask for the same once more */
static struct {
	struct piece pieces[MOST];
	u32 count;
	u32 again;
	bool was_reset;
	u32 acks, naks;
	u32 acked, msn;		/* of the last ACK */
} seen;

enum herald_progress herald_responder_execute(struct herald_qp *qp, const struct herald_request *rq,
					      enum herald_outcome *outcome,
					      struct herald_deferred *d)
{
	bool invalidates = rq->opcode == HERALD_WR_SEND_WITH_INV &&
			   rq->offset + rq->piece == rq->length;

	if (seen.count < MOST)
		seen.pieces[seen.count] = (struct piece){
			.opcode = rq->opcode, .finish = rq->finish, .offset = rq->offset,
			.length = rq->piece, .key = rq->imm_or_rkey,
		};
	seen.count++;
	*outcome = HERALD_OK;
	if (rq->finish && seen.was_reset) {
		*outcome = HERALD_NO_ANSWER;
		return HERALD_DONE;
	}
	if (invalidates && seen.again) {
		seen.again--;
		return HERALD_AGAIN;
	}
	return rq->offset + rq->piece < rq->length ? HERALD_MORE : HERALD_DONE;
}

enum herald_outcome herald_responder_refuse(struct herald_qp *qp, enum herald_outcome why,
					    struct herald_deferred *d)
{
	return why;
}

void herald_wire_send_ack(struct herald_qp *qp)
{
	seen.acks++;
	seen.acked = qp->wire->resp.acked;
	seen.msn = qp->wire->resp.msn;
}

bool herald_wire_send_nak(struct herald_qp *qp, u8 syndrome)
{
	seen.naks++;
	return true;
}

void herald_wire_send_atomic(struct herald_qp *qp, u32 psn, u64 value)
{
}

void herald_wire_send_done(struct herald_qp *qp, u32 psn)
{
}

bool herald_wire_serve(struct herald_qp *qp, u32 *budget, struct herald_deferred *d)
{
	return true;
}

bool herald_wire_datagrams(struct herald_qp *qp, struct sk_buff *skb, struct herald_deferred *d)
{
	return true;
}

bool herald_wire_arrives(struct herald_qp *qp, const struct sk_buff *skb,
			 const struct herald_pkt *pkt, struct herald_deferred *d)
{
	return true;
}

struct sk_buff *herald_wire_dequeue(struct herald_wire_qp *w, struct sk_buff_head *queue)
{
	return skb_dequeue(queue);
}

void herald_wire_put_back(struct herald_wire_qp *w, struct sk_buff_head *queue, struct sk_buff *skb)
{
	skb_queue_head(queue, skb);
}

int herald_cursor_open(struct herald_cursor *c, const struct herald_span *span, u64 off, u64 len)
{
	return 0;
}

int herald_span_check(const struct herald_span *span)
{
	return 0;
}

void herald_qp_comm_est(struct herald_qp *qp, struct herald_deferred *d)
{
}

void herald_count_add(struct herald_dev *dev, enum herald_counter c, u64 n)
{
}

const struct herald_transport_ops herald_transport_wire = { .name = "wire" };

/* ------------------------------------------------------------- builders -- */

static int resp_init(struct kunit *test)
{
	struct herald_qp *qp = kunit_kzalloc(test, sizeof(*qp), GFP_KERNEL);
	struct herald_wire_qp *w = kunit_kzalloc(test, sizeof(*w), GFP_KERNEL);

	KUNIT_ASSERT_TRUE(test, qp && w);
	qp->type = IB_QPT_RC;
	qp->state = IB_QPS_RTS;
	qp->mtu = MTU;
	qp->transport = &herald_transport_wire;
	qp->wire = w;
	w->qp = qp;
	w->resp.psn = FIRST_PSN;
	w->resp.acked = FIRST_PSN - 1;
	skb_queue_head_init(&w->requests);
	memset(&seen, 0, sizeof(seen));
	test->priv = qp;
	return 0;
}

static void resp_exit(struct kunit *test)
{
	struct herald_qp *qp = test->priv;

	KUNIT_EXPECT_TRUE(test, skb_queue_empty(&qp->wire->requests));
	skb_queue_purge(&qp->wire->requests);
}

/* A train of @n packets with these opcodes, all of MTU bytes. */
static void arrive(struct kunit *test, u32 psn, const u8 *opcodes, u32 n)
{
	const u32 most = HERALD_PKT_HDR_MAX + MTU + HERALD_ICRC_LEN;
	struct sk_buff *skb = alloc_skb(n * most, GFP_KERNEL);
	struct herald_qp *qp = test->priv;
	u8 headers[HERALD_PKT_HDR_MAX];
	struct herald_wire_cb *cb;
	u32 i, len;

	KUNIT_ASSERT_NOT_NULL(test, skb);
	cb = herald_wire_cb(skb);
	memset(cb, 0, sizeof(*cb));
	for (i = 0; i < n; i++) {
		struct herald_pkt pkt = {
			.opcode = opcodes[i], .psn = psn + i, .pkey = 0xffff, .migreq = true,
			.ieth = KEY,
			.ack_req = !!(herald_pkt_row(opcodes[i])->flags & HERALD_PKT_LAST),
		};

		len = herald_pkt_emit(&pkt, headers);
		skb_put_data(skb, headers, len);
		skb_put_zero(skb, MTU + HERALD_ICRC_LEN);
		cb->seg_len = max_t(u32, cb->seg_len, len + MTU + HERALD_ICRC_LEN);
	}
	cb->count = n;
	skb_queue_tail(&qp->wire->requests, skb);
}

static bool respond_once(struct kunit *test)
{
	return herald_wire_respond(test->priv, NULL);
}

static void expect_piece(struct kunit *test, u32 i, u8 opcode, bool finish, u64 offset)
{
	KUNIT_EXPECT_EQ(test, seen.pieces[i].opcode, opcode);
	KUNIT_EXPECT_EQ(test, seen.pieces[i].finish, finish);
	KUNIT_EXPECT_EQ(test, seen.pieces[i].offset, offset);
	KUNIT_EXPECT_EQ(test, seen.pieces[i].length, (u32)MTU);
	if (opcode == HERALD_WR_SEND_WITH_INV)
		KUNIT_EXPECT_EQ(test, seen.pieces[i].key, (u32)KEY);
}

/* Nothing is said before it is done. */
static void expect_silence(struct kunit *test, u32 psn)
{
	struct herald_qp *qp = test->priv;

	KUNIT_EXPECT_EQ(test, qp->wire->resp.psn, psn);
	KUNIT_EXPECT_EQ(test, qp->wire->resp.msn, 0u);
	KUNIT_EXPECT_EQ(test, seen.acks, 0u);
	KUNIT_EXPECT_EQ(test, seen.naks, 0u);
}

static void expect_acked(struct kunit *test, u32 psn, u32 msn)
{
	KUNIT_EXPECT_EQ(test, seen.acks, 1u);
	KUNIT_EXPECT_EQ(test, seen.naks, 0u);
	KUNIT_EXPECT_EQ(test, seen.acked, psn);
	KUNIT_EXPECT_EQ(test, seen.msn, msn);
}

/* ---------------------------------------------------------------- tests -- */

/* It is not executed anew: only the end of it is asked for, as often as it takes. */
static void resp_only_waits_test(struct kunit *test)
{
	const u8 opcode = HERALD_BTH_RC_SEND_ONLY_WITH_INV;
	u32 i;

	seen.again = 3;
	arrive(test, FIRST_PSN, &opcode, 1);
	for (i = 0; i < 3; i++) {
		KUNIT_EXPECT_FALSE(test, respond_once(test));
		expect_silence(test, FIRST_PSN);
	}
	KUNIT_EXPECT_TRUE(test, respond_once(test));
	expect_acked(test, FIRST_PSN, 1);
	KUNIT_EXPECT_EQ(test, seen.count, 4u);
	for (i = 0; i < 4; i++)
		expect_piece(test, i, HERALD_WR_SEND_WITH_INV, i > 0, 0);
}

/* The last packet of several waits, and not those before it. */
static void resp_last_waits_test(struct kunit *test)
{
	const u8 opcodes[] = { HERALD_BTH_RC_SEND_FIRST, HERALD_BTH_RC_SEND_MIDDLE };
	const u8 last = HERALD_BTH_RC_SEND_LAST_WITH_INV;

	seen.again = 2;
	arrive(test, FIRST_PSN, opcodes, 2);
	arrive(test, FIRST_PSN + 2, &last, 1);
	KUNIT_EXPECT_FALSE(test, respond_once(test));
	KUNIT_EXPECT_FALSE(test, respond_once(test));
	expect_silence(test, FIRST_PSN + 2);
	KUNIT_EXPECT_TRUE(test, respond_once(test));
	expect_acked(test, FIRST_PSN + 2, 1);
	KUNIT_EXPECT_EQ(test, seen.count, 5u);
	expect_piece(test, 0, HERALD_WR_SEND, false, 0);
	expect_piece(test, 1, HERALD_WR_SEND, false, MTU);
	expect_piece(test, 2, HERALD_WR_SEND_WITH_INV, false, 2 * MTU);
	expect_piece(test, 3, HERALD_WR_SEND_WITH_INV, true, 2 * MTU);
	expect_piece(test, 4, HERALD_WR_SEND_WITH_INV, true, 2 * MTU);
}

/* What came with it and behind it is executed behind it. */
static void resp_others_wait_test(struct kunit *test)
{
	const u8 train[] = { HERALD_BTH_RC_SEND_ONLY_WITH_INV, HERALD_BTH_RC_SEND_ONLY_WITH_INV };
	const u8 behind = HERALD_BTH_RC_SEND_ONLY;

	seen.again = 1;
	arrive(test, FIRST_PSN, train, 2);
	arrive(test, FIRST_PSN + 2, &behind, 1);
	KUNIT_EXPECT_FALSE(test, respond_once(test));
	KUNIT_EXPECT_EQ(test, seen.count, 1u);
	expect_silence(test, FIRST_PSN);
	KUNIT_EXPECT_TRUE(test, respond_once(test));
	expect_acked(test, FIRST_PSN + 2, 3);
	KUNIT_EXPECT_EQ(test, seen.count, 4u);
	expect_piece(test, 0, HERALD_WR_SEND_WITH_INV, false, 0);
	expect_piece(test, 1, HERALD_WR_SEND_WITH_INV, true, 0);
	expect_piece(test, 2, HERALD_WR_SEND_WITH_INV, false, 0);
	expect_piece(test, 3, HERALD_WR_SEND, false, 0);
}

/* A QP that was reset meanwhile, and connected again, owes nobody an answer. */
static void resp_reset_test(struct kunit *test)
{
	const u8 opcode = HERALD_BTH_RC_SEND_ONLY_WITH_INV;

	seen.again = 1;
	arrive(test, FIRST_PSN, &opcode, 1);
	KUNIT_EXPECT_FALSE(test, respond_once(test));
	seen.was_reset = true;
	KUNIT_EXPECT_TRUE(test, respond_once(test));
	expect_silence(test, FIRST_PSN);
	/* ... and the next one is executed from its beginning */
	arrive(test, FIRST_PSN, &opcode, 1);
	KUNIT_EXPECT_TRUE(test, respond_once(test));
	expect_acked(test, FIRST_PSN, 1);
	KUNIT_EXPECT_EQ(test, seen.count, 3u);
	expect_piece(test, 2, HERALD_WR_SEND_WITH_INV, false, 0);
}

static struct kunit_case resp_cases[] = {
	KUNIT_CASE(resp_only_waits_test),
	KUNIT_CASE(resp_last_waits_test),
	KUNIT_CASE(resp_others_wait_test),
	KUNIT_CASE(resp_reset_test),
	{ }
};

static struct kunit_suite resp_suite = {
	.name = "herald_wire_resp",
	.init = resp_init,
	.exit = resp_exit,
	.test_cases = resp_cases,
};

kunit_test_suite(resp_suite);

MODULE_DESCRIPTION("herald: KUnit tests of the responder on the wire");
MODULE_LICENSE("Dual BSD/GPL");
