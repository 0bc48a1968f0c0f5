// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/*
 * A requester's turn on the wire ends when it has used up its budget of WRs, which those do that
 * are gathered: also if the state changes at that very moment, which nobody can choose from
 * outside.  requester.c is the test.
 */
#include <kunit/test.h>

/* The sources themselves: the module exports nothing. */
#include "../../kernel/requester.c"
#include "../../kernel/outcome.c"
#include "../../kernel/qp_state.c"
/* some have short names that are in the way of the next one's */
#undef ROW
#include "../../kernel/opcode.c"
#include "../../kernel/timer.c"

#define OPS		4	/* of a turn's budget */
#define ENDLESS		1000	/* WRs that are there */

/* ---------------------------------------------- what requester.c calls -- */

/* What happened, and with which WR the QP gets into the error state; 0: with none */
static struct {
	u32 fetched, completed, in_window, flushed;
	u32 error_at;
} seen;

struct workqueue_struct *herald_wq;

int herald_op_fetch(struct herald_qp *qp, struct herald_op *op, enum herald_outcome *outcome)
{
	if (seen.fetched == ENDLESS)
		return 0;
	*op = (struct herald_op){ .opcode = HERALD_WR_RDMA_WRITE };
	if (++seen.fetched == seen.error_at)
		WRITE_ONCE(qp->state, IB_QPS_ERR);
	return 1;
}

void herald_op_put(struct herald_op *op)
{
}

void herald_complete_send(struct herald_qp *qp, const struct herald_op *op, int status,
			  struct herald_deferred *d)
{
	seen.completed++;
}

static enum herald_progress push(struct herald_qp *qp, struct herald_op *op,
				 enum herald_outcome *outcome, struct herald_deferred *d)
{
	return HERALD_DONE;
}

const struct herald_transport_ops herald_transport_wire = { .name = "wire", .push = push };

bool herald_wire_may_take(struct herald_qp *qp)
{
	return true;
}

void herald_wire_take(struct herald_qp *qp, enum herald_outcome out, int status)
{
	qp->sq.busy = false;
	seen.in_window++;
}

enum herald_progress herald_wire_advance(struct herald_qp *qp, unsigned int may, u32 *bytes,
					 struct herald_deferred *d)
{
	return HERALD_BUSY;
}

bool herald_wire_flush(struct herald_qp *qp, struct herald_deferred *d)
{
	if (!seen.in_window)
		return false;
	seen.in_window--;
	seen.flushed++;
	return true;
}

void herald_wire_purge(struct herald_wire_qp *w, struct sk_buff_head *queue)
{
}

bool herald_wire_may_ring(struct herald_qp *qp)
{
	return true;
}

void herald_wire_qp_stop(struct herald_qp *qp)
{
}

void herald_wire_req_reset(struct herald_qp *qp)
{
}

void herald_pace_rung(struct herald_pace *pace)
{
}

void herald_deferred_run(struct herald_deferred *d)
{
}

bool herald_responder_own(struct herald_qp *qp, struct herald_qp *waiter)
{
	return false;
}

void herald_responder_release(struct herald_qp *qp, struct herald_deferred *d)
{
}

enum herald_outcome herald_responder_verdict(int status)
{
	return HERALD_OK;
}

bool herald_qp_error(struct herald_qp *qp, int event, struct herald_deferred *d)
{
	return false;
}

void herald_qp_sq_error(struct herald_qp *qp, struct herald_deferred *d)
{
}

void herald_qp_drained(struct herald_qp *qp, struct herald_deferred *d)
{
}

void herald_late_drop(struct herald_qp *qp)
{
}

void herald_ring_reset(struct herald_ring *ring)
{
}

u8 herald_fault_wr(struct herald_qp *qp)
{
	return 0;
}

enum herald_mig_result herald_mig_move(struct herald_qp *qp, enum herald_mig_input why,
				       struct herald_deferred *d)
{
	return HERALD_MIG_FAILED;
}

void herald_mig_gave_up(struct herald_qp *qp, struct herald_deferred *d)
{
}

enum herald_outcome herald_key_invalidate_local(struct herald_qp *qp, u32 key)
{
	return HERALD_OK;
}

bool herald_key_quiet(struct herald_qp *qp, u32 key)
{
	return true;
}

enum herald_outcome herald_mw_bind(struct herald_qp *qp, const struct herald_op *op)
{
	return HERALD_OK;
}

enum herald_outcome herald_mr_register(struct herald_qp *qp, const struct herald_op *op)
{
	return HERALD_OK;
}

void herald_count_add(struct herald_dev *dev, enum herald_counter c, u64 n)
{
}

/* ---------------------------------------------------------------- tests -- */

static int requester_init(struct kunit *test)
{
	struct herald_qp *qp = kunit_kzalloc(test, sizeof(*qp), GFP_KERNEL);
	struct herald_wire_qp *w = kunit_kzalloc(test, sizeof(*w), GFP_KERNEL);
	struct herald_dev *dev = kunit_kzalloc(test, sizeof(*dev), GFP_KERNEL);

	KUNIT_ASSERT_TRUE(test, qp && w && dev);
	memset(&seen, 0, sizeof(seen));
	qp->type = IB_QPT_RC;
	qp->state = IB_QPS_RTS;
	qp->transport = &herald_transport_wire;
	qp->dev = dev;
	qp->wire = w;
	/* there is one; nobody looks at it */
	qp->sq.ring.shm = (void *)qp;
	test->priv = qp;
	return 0;
}

/* One turn, which is over when its budget is, and not before; the sums since the beginning */
static void expect_turn(struct kunit *test, u32 fetched, u32 done)
{
	struct budget budget = { .ctx = HERALD_RUN_WORK, .ops = OPS, .bytes = 1 };

	KUNIT_EXPECT_EQ(test, work_off(test->priv, &budget), RUN_OUT_OF_BUDGET);
	KUNIT_EXPECT_EQ(test, budget.ops, 0u);
	KUNIT_EXPECT_EQ(test, seen.fetched, fetched);
	KUNIT_EXPECT_EQ(test, seen.completed + seen.flushed, done);
}

/* They are gathered and sent, and no more of them. */
static void requester_gathers_test(struct kunit *test)
{
	expect_turn(test, OPS, 0);
	expect_turn(test, 2 * OPS, 0);
}

/* The state changes with the last one that the turn has room for: the window is not emptied. */
static void requester_error_at_end_test(struct kunit *test)
{
	seen.error_at = OPS;
	expect_turn(test, OPS, 1);
	expect_turn(test, OPS + 1, 1 + OPS);
}

/* In the error state the window is flushed first, and then what is in the ring. */
static void requester_flush_test(struct kunit *test)
{
	struct herald_qp *qp = test->priv;

	qp->state = IB_QPS_ERR;
	seen.in_window = OPS - 1;
	expect_turn(test, 1, OPS);
	expect_turn(test, 1 + OPS, 2 * OPS);
}

static struct kunit_case requester_cases[] = {
	KUNIT_CASE(requester_gathers_test),
	KUNIT_CASE(requester_error_at_end_test),
	KUNIT_CASE(requester_flush_test),
	{ }
};

static struct kunit_suite requester_suite = {
	.name = "herald_requester",
	.init = requester_init,
	.test_cases = requester_cases,
};

kunit_test_suite(requester_suite);

MODULE_DESCRIPTION("herald: KUnit tests of the requester's turns");
MODULE_LICENSE("Dual BSD/GPL");
