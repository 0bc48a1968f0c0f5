// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/* What a QP may do in each state. */
#include <kunit/test.h>

#include "../../kernel/qp_state.c"

#define POST_S	HERALD_MAY_POST_SEND
#define POST_R	HERALD_MAY_POST_RECV
#define SEND	HERALD_MAY_SEND
#define CONT	HERALD_MAY_CONTINUE
#define RECV	HERALD_MAY_RECEIVE
#define FLUSH_S	HERALD_FLUSH_SEND
#define FLUSH_R	HERALD_FLUSH_RECV

struct state_case {
	const char *name;
	int state;
	unsigned int may;
};

static const struct state_case state_cases[] = {
	{ "RESET", IB_QPS_RESET, 0 },
	{ "INIT", IB_QPS_INIT, POST_R },
	{ "RTR", IB_QPS_RTR, POST_R | RECV },
	{ "RTS", IB_QPS_RTS, POST_S | POST_R | SEND | CONT | RECV },
	{ "SQD", IB_QPS_SQD, POST_S | POST_R | CONT | RECV },
	{ "SQE", IB_QPS_SQE, POST_S | POST_R | RECV | FLUSH_S },
	{ "ERR", IB_QPS_ERR, POST_S | POST_R | FLUSH_S | FLUSH_R },
	{ "below", -1, 0 },
	{ "above", IB_QPS_ERR + 1, 0 },
};

static void state_case_name(const struct state_case *c, char *desc)
{
	strscpy(desc, c->name, KUNIT_PARAM_DESC_SIZE);
}

KUNIT_ARRAY_PARAM(state, state_cases, state_case_name);

static void qp_activity_test(struct kunit *test)
{
	const struct state_case *c = test->param_value;

	KUNIT_EXPECT_EQ(test, herald_qp_activity(c->state), c->may);
}

static void qp_invariants_test(struct kunit *test)
{
	int state;

	for (state = IB_QPS_RESET; state <= IB_QPS_ERR; state++) {
		unsigned int may = herald_qp_activity(state);

		/* a queue is either worked off or flushed */
		KUNIT_EXPECT_FALSE(test, (may & FLUSH_S) && (may & (SEND | CONT)));
		KUNIT_EXPECT_FALSE(test, (may & FLUSH_R) && (may & RECV));
		/* what is accepted will complete: in this state or, RESET apart, in the next */
		if (may & (FLUSH_S | SEND))
			KUNIT_EXPECT_TRUE(test, may & POST_S);
		if (may & (FLUSH_R | RECV))
			KUNIT_EXPECT_TRUE(test, may & POST_R);
		/* who may start may go on */
		if (may & SEND)
			KUNIT_EXPECT_TRUE(test, may & CONT);
	}
}

static struct kunit_case qp_state_kcases[] = {
	KUNIT_CASE_PARAM(qp_activity_test, state_gen_params),
	KUNIT_CASE(qp_invariants_test),
	{}
};

static struct kunit_suite qp_state_suite = {
	.name = "herald-qp-state",
	.test_cases = qp_state_kcases,
};

kunit_test_suite(qp_state_suite);
