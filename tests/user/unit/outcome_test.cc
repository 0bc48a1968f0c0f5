// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
// The outcome table against rules that hold for whole groups of outcomes.
#include <gtest/gtest.h>

#include <set>
#include <string>

#include "pure.h"

namespace {

class Outcome : public testing::TestWithParam<int> {
protected:
	const struct herald_outcome_row &row() const
	{
		return *herald_outcome_row(static_cast<herald_outcome>(GetParam()));
	}
	bool is(herald_outcome outcome) const { return GetParam() == outcome; }
};

TEST_P(Outcome, HasName)
{
	ASSERT_NE(row().name, nullptr);
	EXPECT_STRNE(row().name, "");
}

TEST_P(Outcome, OnlyOkSucceeds)
{
	EXPECT_EQ(row().req_status == IB_WC_SUCCESS, is(HERALD_OK));
	EXPECT_EQ(row().nak == HERALD_ACK, is(HERALD_OK));
}

TEST_P(Outcome, EventMeansResponderInError)
{
	bool failed = row().resp_status != IB_WC_SUCCESS && !is(HERALD_FLUSHED);

	if (row().resp_event >= 0 || failed) {
		EXPECT_EQ(row().resp_action, HERALD_RESP_ERROR);
	}
}

TEST_P(Outcome, ResponderInErrorTellsTheRequester)
{
	if (row().resp_action != HERALD_RESP_ERROR)
		return;
	EXPECT_GE(row().nak, HERALD_NAK_KIND_INVALID_REQUEST);
	EXPECT_EQ(row().req_action, HERALD_REQ_ERROR);
}

// The status by which the requester learns it is the one of the NAK that travelled.
TEST_P(Outcome, StatusFitsNak)
{
	switch (row().nak) {
	case HERALD_NAK_KIND_RNR:
		EXPECT_EQ(row().req_status, IB_WC_RNR_RETRY_EXC_ERR);
		break;
	case HERALD_NAK_KIND_SEQUENCE:
		EXPECT_EQ(row().req_status, IB_WC_RETRY_EXC_ERR);
		break;
	case HERALD_NAK_KIND_INVALID_REQUEST:
		EXPECT_EQ(row().req_status, IB_WC_REM_INV_REQ_ERR);
		break;
	case HERALD_NAK_KIND_REMOTE_ACCESS:
		EXPECT_EQ(row().req_status, IB_WC_REM_ACCESS_ERR);
		break;
	case HERALD_NAK_KIND_REMOTE_OPERATION:
		EXPECT_EQ(row().req_status, IB_WC_REM_OP_ERR);
		break;
	}
}

// What was found on the requester's own side leaves the responder alone.
TEST_P(Outcome, LocalFaultsStayLocal)
{
	switch (GetParam()) {
	case HERALD_LOC_LEN:
	case HERALD_LOC_QP_OP:
	case HERALD_LOC_PROT:
	case HERALD_LOC_MW_BIND:
	case HERALD_BAD_SQ:
		EXPECT_EQ(row().nak, HERALD_NAK_NONE);
		EXPECT_EQ(row().resp_action, HERALD_RESP_NONE);
		EXPECT_EQ(row().req_action, HERALD_REQ_ERROR);
	}
}

INSTANTIATE_TEST_SUITE_P(All, Outcome, testing::Range(0, static_cast<int>(HERALD_OUTCOMES)), [](const auto &info) {
	return std::string(herald_outcome_row(static_cast<herald_outcome>(info.param))->name);
});

TEST(OutcomeTable, ImpossibleIsBadSq)
{
	auto bad = herald_outcome_row(HERALD_BAD_SQ);

	EXPECT_EQ(herald_outcome_row(HERALD_OUTCOMES), bad);
	EXPECT_EQ(herald_outcome_row(static_cast<herald_outcome>(HERALD_OUTCOMES + 1)), bad);
}

// A protection error on the receiver's side has exactly one way to be told: a WC, or an event.
TEST(OutcomeTable, EventOnlyWithoutCompletion)
{
	EXPECT_EQ(herald_outcome_row(HERALD_NAK_TOO_LONG)->resp_event, -1);
	EXPECT_EQ(herald_outcome_row(HERALD_NAK_BAD_RECV)->resp_event, -1);
	EXPECT_EQ(herald_outcome_row(HERALD_NAK_ACCESS)->resp_event, IB_EVENT_QP_ACCESS_ERR);
	EXPECT_EQ(herald_outcome_row(HERALD_NAK_INV_REQ)->resp_event, IB_EVENT_QP_REQ_ERR);
	EXPECT_EQ(herald_outcome_row(HERALD_NAK_BAD_RQ)->resp_event, IB_EVENT_QP_FATAL);
}

TEST(OutcomeTable, Waits)
{
	EXPECT_EQ(herald_outcome_row(HERALD_RNR)->req_action, HERALD_REQ_RNR_WAIT);
	EXPECT_EQ(herald_outcome_row(HERALD_NO_ANSWER)->req_action, HERALD_REQ_RETRY);
	EXPECT_EQ(herald_outcome_row(HERALD_NAK_SEQUENCE)->req_action, HERALD_REQ_RETRY_NOW);
	EXPECT_EQ(herald_outcome_row(HERALD_RNR_EXCEEDED)->req_action, HERALD_REQ_ERROR);
	EXPECT_EQ(herald_outcome_row(HERALD_RETRY_EXCEEDED)->req_action, HERALD_REQ_ERROR);
}

TEST(OutcomeTable, NamesAreDistinct)
{
	std::set<std::string> names;

	for (int i = 0; i < HERALD_OUTCOMES; i++)
		names.insert(herald_outcome_row(static_cast<herald_outcome>(i))->name);
	EXPECT_EQ(names.size(), static_cast<size_t>(HERALD_OUTCOMES));
}

} // namespace
