// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
// What a QP may do in each state.
#include <gtest/gtest.h>

#include <climits>

#include "pure.h"

namespace {

bool may(int state, unsigned int activity)
{
	return (herald_qp_activity(state) & activity) == activity;
}

TEST(QpState, Reset)
{
	EXPECT_EQ(herald_qp_activity(IB_QPS_RESET), 0u);
}

TEST(QpState, ReceivesFromInitOn)
{
	for (int state = IB_QPS_INIT; state <= IB_QPS_ERR; state++)
		EXPECT_TRUE(may(state, HERALD_MAY_POST_RECV)) << state;
}

TEST(QpState, SendsFromRtsOn)
{
	EXPECT_FALSE(may(IB_QPS_INIT, HERALD_MAY_POST_SEND));
	EXPECT_FALSE(may(IB_QPS_RTR, HERALD_MAY_POST_SEND));
	for (int state = IB_QPS_RTS; state <= IB_QPS_ERR; state++)
		EXPECT_TRUE(may(state, HERALD_MAY_POST_SEND)) << state;
}

TEST(QpState, AnswersInRtrRtsSqdSqe)
{
	for (int state = IB_QPS_RESET; state <= IB_QPS_ERR; state++)
		EXPECT_EQ(may(state, HERALD_MAY_RECEIVE), state >= IB_QPS_RTR && state <= IB_QPS_SQE) << state;
}

TEST(QpState, StartsSendsInRtsOnly)
{
	for (int state = IB_QPS_RESET; state <= IB_QPS_ERR; state++)
		EXPECT_EQ(may(state, HERALD_MAY_SEND), state == IB_QPS_RTS) << state;
	EXPECT_TRUE(may(IB_QPS_SQD, HERALD_MAY_CONTINUE));
}

TEST(QpState, Flushes)
{
	for (int state = IB_QPS_RESET; state <= IB_QPS_ERR; state++) {
		EXPECT_EQ(may(state, HERALD_FLUSH_SEND), state == IB_QPS_SQE || state == IB_QPS_ERR) << state;
		EXPECT_EQ(may(state, HERALD_FLUSH_RECV), state == IB_QPS_ERR) << state;
	}
}

TEST(QpState, WorkOrFlushNeverBoth)
{
	for (int state = IB_QPS_RESET; state <= IB_QPS_ERR; state++) {
		auto activity = herald_qp_activity(state);

		EXPECT_FALSE((activity & HERALD_FLUSH_SEND) && (activity & (HERALD_MAY_SEND | HERALD_MAY_CONTINUE)))
			<< state;
		EXPECT_FALSE((activity & HERALD_FLUSH_RECV) && (activity & HERALD_MAY_RECEIVE)) << state;
	}
}

TEST(QpState, ImpossibleStates)
{
	for (int state : {-1, IB_QPS_ERR + 1, INT_MAX, INT_MIN})
		EXPECT_EQ(herald_qp_activity(state), 0u) << state;
}

} // namespace
