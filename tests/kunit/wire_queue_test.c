// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/*
 * What arrives for a QP on the wire while its engines are busy: so much waits, and the rest is
 * lost.  From outside nobody can keep them busy for as long as it takes.  wire_qp.c is the test.
 */
#include <kunit/test.h>
#include <linux/skbuff.h>

/* The sources themselves: the module exports nothing. */
#include "../../kernel/wire_qp.c"
#include "../../kernel/qp_state.c"

/* As much as waits, in bytes of skbs, and a train of which that is a multiple */
#define BOUND		(8u << 20)
#define TRAIN		(64u << 10)
#define TRAINS		(BOUND / TRAIN)

/* ------------------------------------------------ what wire_qp.c calls -- */

static struct {
	u64 counters[HERALD_CTR_MAX];
	u32 freed;
	u32 requester_kicks, responder_kicks;
} seen;

const struct herald_transport_ops herald_transport_wire = { .name = "wire" };
const struct herald_transport_ops herald_transport_local = { .name = "local" };

void herald_count_add(struct herald_dev *dev, enum herald_counter c, u64 n)
{
	seen.counters[c] += n;
}

void herald_requester_kick(struct herald_qp *qp, enum herald_run_context ctx)
{
	seen.requester_kicks++;
}

void herald_requester_kick_work(struct herald_qp *qp)
{
	seen.requester_kicks++;
}

void herald_responder_kick(struct herald_qp *qp, struct herald_deferred *d)
{
	seen.responder_kicks++;
}

void herald_qp_queue_responder(struct herald_qp *qp)
{
	seen.responder_kicks++;
}

void herald_deferred_run(struct herald_deferred *d)
{
}

enum herald_pace_what herald_pace_ring(struct herald_pace *pace)
{
	return HERALD_PACE_RUN;
}

u64 herald_pace_delay_ns(const struct herald_pace *pace)
{
	return 0;
}

bool herald_pace_overdue(struct herald_pace *pace)
{
	return false;
}

void herald_pace_reset(struct herald_pace *pace)
{
}

enum herald_wire_mode herald_wire_mode(void)
{
	return HERALD_WIRE_FORCE;
}

bool herald_wire_wanted(struct herald_qp *qp, const struct herald_av *av)
{
	return true;
}

bool herald_may_run_here(void)
{
	return true;
}

void herald_route_drop(struct herald_dev *dev, struct herald_route *route)
{
}

/* ------------------------------------------------------------- builders -- */

/* A connected QP, nobody of which takes anything: its responder's work item is still to run. */
static int queue_init(struct kunit *test)
{
	struct herald_qp *qp = kunit_kzalloc(test, sizeof(*qp), GFP_KERNEL);

	KUNIT_ASSERT_NOT_NULL(test, qp);
	memset(&seen, 0, sizeof(seen));
	qp->type = IB_QPT_RC;
	qp->state = IB_QPS_RTS;
	qp->transport = &herald_transport_wire;
	KUNIT_ASSERT_EQ(test, herald_wire_qp_init(qp), 0);
	set_bit(WORK_STRUCT_PENDING_BIT, work_data_bits(&qp->resp.work));
	test->priv = qp;
	return 0;
}

static void queue_exit(struct kunit *test)
{
	herald_wire_qp_exit(test->priv);
}

static void count_freed(struct sk_buff *skb)
{
	seen.freed++;
}

/* @n trains, each of which counts for @size bytes, whatever is in it */
static void arrive(struct kunit *test, bool response, u32 n, u32 size)
{
	struct sk_buff *skb;

	while (n--) {
		skb = alloc_skb(0, GFP_KERNEL);
		KUNIT_ASSERT_NOT_NULL(test, skb);
		skb->truesize = size;
		skb->destructor = count_freed;
		herald_wire_arrived(test->priv, skb, response);
	}
}

static void expect_waiting(struct kunit *test, u32 requests, u32 responses)
{
	struct herald_qp *qp = test->priv;

	KUNIT_EXPECT_EQ(test, skb_queue_len(&qp->wire->requests), requests);
	KUNIT_EXPECT_EQ(test, skb_queue_len(&qp->wire->responses), responses);
}

/* So many were lost till now: freed, and counted as that. */
static void expect_lost(struct kunit *test, u32 n)
{
	KUNIT_EXPECT_EQ(test, seen.freed, n);
	KUNIT_EXPECT_EQ(test, seen.counters[HERALD_CTR_wire_queue_full], (u64)n);
}

static struct sk_buff *take(struct kunit *test)
{
	struct herald_qp *qp = test->priv;
	struct sk_buff *skb = herald_wire_dequeue(qp->wire, &qp->wire->requests);

	KUNIT_ASSERT_NOT_NULL(test, skb);
	skb->destructor = NULL;
	return skb;
}

/* ---------------------------------------------------------------- tests -- */

/* As much waits as the bound says, and not a byte more; what is lost leaves nothing to be done. */
static void queue_bound_test(struct kunit *test)
{
	arrive(test, false, TRAINS, TRAIN);
	expect_waiting(test, TRAINS, 0);
	expect_lost(test, 0);
	KUNIT_EXPECT_EQ(test, seen.counters[HERALD_CTR_wire_deferred], (u64)TRAINS);
	arrive(test, false, 1, 1);
	arrive(test, false, 1, TRAIN);
	expect_waiting(test, TRAINS, 0);
	expect_lost(test, 2);
	KUNIT_EXPECT_EQ(test, seen.counters[HERALD_CTR_wire_deferred], (u64)TRAINS);
	KUNIT_EXPECT_EQ(test, seen.responder_kicks, 0u);
}

/* What is lost takes no room: however much that was, what is taken out makes as much of it. */
static void queue_room_test(struct kunit *test)
{
	arrive(test, false, TRAINS, TRAIN);
	arrive(test, false, 3 * TRAINS, TRAIN);
	expect_lost(test, 3 * TRAINS);
	kfree_skb(take(test));
	arrive(test, false, 2, TRAIN / 2);
	expect_waiting(test, TRAINS + 1, 0);
	expect_lost(test, 3 * TRAINS);
	arrive(test, false, 1, 1);
	expect_lost(test, 3 * TRAINS + 1);
}

/* Both engines' trains are in one account. */
static void queue_both_kinds_test(struct kunit *test)
{
	arrive(test, true, TRAINS / 2, TRAIN);
	arrive(test, false, TRAINS / 2, TRAIN);
	expect_waiting(test, TRAINS / 2, TRAINS / 2);
	expect_lost(test, 0);
	KUNIT_EXPECT_EQ(test, seen.requester_kicks, TRAINS / 2);
	arrive(test, true, 1, TRAIN);
	arrive(test, false, 1, TRAIN);
	expect_waiting(test, TRAINS / 2, TRAINS / 2);
	expect_lost(test, 2);
	KUNIT_EXPECT_EQ(test, seen.requester_kicks, TRAINS / 2);
}

/* What was begun has its room kept by nobody, and is put back all the same, in front. */
static void queue_put_back_test(struct kunit *test)
{
	struct herald_qp *qp = test->priv;
	struct sk_buff *begun;

	arrive(test, false, TRAINS, TRAIN);
	begun = take(test);
	arrive(test, false, 1, TRAIN);
	herald_wire_put_back(qp->wire, &qp->wire->requests, begun);
	expect_waiting(test, TRAINS + 1, 0);
	expect_lost(test, 0);
	KUNIT_EXPECT_PTR_EQ(test, skb_peek(&qp->wire->requests), begun);
	arrive(test, false, 1, TRAIN);
	expect_lost(test, 1);
	kfree_skb(take(test));
	arrive(test, false, 1, TRAIN);
	expect_lost(test, 2);
}

/* After a reset there is all of the room again. */
static void queue_reset_test(struct kunit *test)
{
	struct herald_qp *qp = test->priv;

	arrive(test, true, TRAINS / 2, TRAIN);
	arrive(test, false, TRAINS / 2, TRAIN);
	herald_wire_resp_reset(qp);
	herald_wire_req_reset(qp);
	expect_waiting(test, 0, 0);
	KUNIT_EXPECT_EQ(test, seen.freed, TRAINS);
	arrive(test, false, TRAINS, TRAIN);
	expect_waiting(test, TRAINS, 0);
	arrive(test, false, 1, 1);
	KUNIT_EXPECT_EQ(test, seen.counters[HERALD_CTR_wire_queue_full], 1ull);
}

static struct kunit_case queue_cases[] = {
	KUNIT_CASE(queue_bound_test),
	KUNIT_CASE(queue_room_test),
	KUNIT_CASE(queue_both_kinds_test),
	KUNIT_CASE(queue_put_back_test),
	KUNIT_CASE(queue_reset_test),
	{ }
};

static struct kunit_suite queue_suite = {
	.name = "herald_wire_queue",
	.init = queue_init,
	.exit = queue_exit,
	.test_cases = queue_cases,
};

kunit_test_suite(queue_suite);

MODULE_DESCRIPTION("herald: KUnit tests of what waits for a QP on the wire");
MODULE_LICENSE("Dual BSD/GPL");
