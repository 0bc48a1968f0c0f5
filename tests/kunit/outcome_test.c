// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/* The outcome table: what each outcome means for both ends. */
#include <kunit/test.h>

#include "../../kernel/outcome.c"

struct outcome_case {
	const char *name;
	enum herald_outcome outcome;
	int req_status;
	int resp_status;
	int resp_event;
	int nak;
};

#define NONE	IB_WC_SUCCESS	/* no receive completion in error */

static const struct outcome_case outcome_cases[] = {
	{ "ok", HERALD_OK, IB_WC_SUCCESS, NONE, -1, HERALD_ACK },
	{ "local length", HERALD_LOC_LEN, IB_WC_LOC_LEN_ERR, NONE, -1, HERALD_NAK_NONE },
	{ "local operation", HERALD_LOC_QP_OP, IB_WC_LOC_QP_OP_ERR, NONE, -1, HERALD_NAK_NONE },
	{ "local protection", HERALD_LOC_PROT, IB_WC_LOC_PROT_ERR, NONE, -1, HERALD_NAK_NONE },
	{ "bind", HERALD_LOC_MW_BIND, IB_WC_MW_BIND_ERR, NONE, -1, HERALD_NAK_NONE },
	{ "not ready", HERALD_RNR, IB_WC_RNR_RETRY_EXC_ERR, NONE, -1, HERALD_NAK_KIND_RNR },
	{ "no answer", HERALD_NO_ANSWER, IB_WC_RETRY_EXC_ERR, NONE, -1, HERALD_NAK_NONE },
	{ "overtaken", HERALD_NAK_SEQUENCE, IB_WC_RETRY_EXC_ERR, NONE, -1,
	  HERALD_NAK_KIND_SEQUENCE },
	{ "invalid request", HERALD_NAK_INV_REQ, IB_WC_REM_INV_REQ_ERR, IB_WC_REM_INV_REQ_ERR,
	  IB_EVENT_QP_REQ_ERR, HERALD_NAK_KIND_INVALID_REQUEST },
	{ "too long", HERALD_NAK_TOO_LONG, IB_WC_REM_INV_REQ_ERR, IB_WC_LOC_LEN_ERR, -1,
	  HERALD_NAK_KIND_INVALID_REQUEST },
	{ "remote access", HERALD_NAK_ACCESS, IB_WC_REM_ACCESS_ERR, IB_WC_LOC_ACCESS_ERR,
	  IB_EVENT_QP_ACCESS_ERR, HERALD_NAK_KIND_REMOTE_ACCESS },
	{ "bad receive WR", HERALD_NAK_BAD_RECV, IB_WC_REM_OP_ERR, IB_WC_LOC_PROT_ERR, -1,
	  HERALD_NAK_KIND_REMOTE_OPERATION },
	{ "corrupt receive ring", HERALD_NAK_BAD_RQ, IB_WC_REM_OP_ERR, NONE, IB_EVENT_QP_FATAL,
	  HERALD_NAK_KIND_REMOTE_OPERATION },
	{ "bad invalidate", HERALD_NAK_INV_INVALIDATE, IB_WC_REM_ACCESS_ERR,
	  IB_WC_REM_INV_REQ_ERR, -1, HERALD_NAK_KIND_REMOTE_ACCESS },
	{ "retries exceeded", HERALD_RETRY_EXCEEDED, IB_WC_RETRY_EXC_ERR, NONE, -1,
	  HERALD_NAK_NONE },
	{ "RNR retries exceeded", HERALD_RNR_EXCEEDED, IB_WC_RNR_RETRY_EXC_ERR, NONE, -1,
	  HERALD_NAK_NONE },
	{ "flushed", HERALD_FLUSHED, IB_WC_WR_FLUSH_ERR, IB_WC_WR_FLUSH_ERR, -1,
	  HERALD_NAK_NONE },
	{ "corrupt send ring", HERALD_BAD_SQ, IB_WC_FATAL_ERR, NONE, -1, HERALD_NAK_NONE },
};

static void outcome_case_name(const struct outcome_case *c, char *desc)
{
	strscpy(desc, c->name, KUNIT_PARAM_DESC_SIZE);
}

KUNIT_ARRAY_PARAM(outcome, outcome_cases, outcome_case_name);

static void outcome_row_test(struct kunit *test)
{
	const struct outcome_case *c = test->param_value;
	const struct herald_outcome_row *row = herald_outcome_row(c->outcome);

	KUNIT_EXPECT_EQ(test, row->req_status, c->req_status);
	KUNIT_EXPECT_EQ(test, row->resp_status, c->resp_status);
	KUNIT_EXPECT_EQ(test, row->resp_event, c->resp_event);
	KUNIT_EXPECT_EQ(test, row->nak, c->nak);
}

/* What holds for every row, whatever it says. */
static void outcome_invariants_test(struct kunit *test)
{
	int i;

	KUNIT_EXPECT_EQ(test, ARRAY_SIZE(outcome_cases), HERALD_OUTCOMES);
	for (i = 0; i < HERALD_OUTCOMES; i++) {
		const struct herald_outcome_row *row = herald_outcome_row(i);

		KUNIT_ASSERT_NOT_NULL(test, row->name);
		/* success and nothing else completes successfully */
		KUNIT_EXPECT_EQ_MSG(test, row->req_status == IB_WC_SUCCESS, i == HERALD_OK,
				    "%s", row->name);
		/* an event and an error completion come of a QP in ERR only, or of a flush */
		if (row->resp_event >= 0)
			KUNIT_EXPECT_EQ_MSG(test, row->resp_action, HERALD_RESP_ERROR, "%s",
					    row->name);
		if (row->resp_status != IB_WC_SUCCESS && i != HERALD_FLUSHED)
			KUNIT_EXPECT_EQ_MSG(test, row->resp_action, HERALD_RESP_ERROR, "%s",
					    row->name);
		/* a responder in ERR has told the requester so, and both have stopped */
		if (row->resp_action == HERALD_RESP_ERROR) {
			KUNIT_EXPECT_GT_MSG(test, row->nak, HERALD_NAK_KIND_SEQUENCE, "%s",
					    row->name);
			KUNIT_EXPECT_EQ_MSG(test, row->req_action, HERALD_REQ_ERROR, "%s",
					    row->name);
		}
	}
}

static void outcome_bounds_test(struct kunit *test)
{
	KUNIT_EXPECT_PTR_EQ(test, herald_outcome_row(HERALD_OUTCOMES),
			    herald_outcome_row(HERALD_BAD_SQ));
	KUNIT_EXPECT_PTR_EQ(test, herald_outcome_row((enum herald_outcome)-1),
			    herald_outcome_row(HERALD_BAD_SQ));
}

static struct kunit_case outcome_kcases[] = {
	KUNIT_CASE_PARAM(outcome_row_test, outcome_gen_params),
	KUNIT_CASE(outcome_invariants_test),
	KUNIT_CASE(outcome_bounds_test),
	{}
};

static struct kunit_suite outcome_suite = {
	.name = "herald-outcome",
	.test_cases = outcome_kcases,
};

kunit_test_suite(outcome_suite);
