/* SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB */
/* The local ACK timer on the wire (IBTA vol. 1, 9.7.6.1.3) when it becomes shorter than the wait that is under way. */
#include "wire_requester.h"

using namespace conformance;

class WireTimer : public WireRequester {
protected:
	/* Of the code of a local ACK timeout */
	static std::chrono::nanoseconds timeout_of(uint8_t code) { return std::chrono::nanoseconds(4096LL << code); }
};

/* 9.7.6.1.3: who has waited in vain waits longer the next time; an answer, be it to a part, makes the wait short again. */
TEST_F(WireTimer, ProgressMakesItShortAgain)
{
	const auto timeout = timeout_of(18);
	WireOptions o;
	o.path.timeout = 18;
	WireConn c = connect(o);

	post_send(c, 1);
	post_send(c, 2);
	for (int copy = 0; copy < 3; copy++)
		for (uint32_t psn : {5000u, 5001u})
			expect_next(c, HERALD_BTH_RC_SEND_ONLY, psn);
	/* it waits for four times the timeout now */
	const auto begin = Clock::now();
	c.ack(5000);
	expect_ok(c.end.scq, 1);
	expect_next(c, HERALD_BTH_RC_SEND_ONLY, 5001);
	const auto took = Clock::now() - begin;
	EXPECT_GE(took, timeout);
	EXPECT_LT(took, timeout * 3) << "it has waited as long as before";
	c.ack(5001);
	expect_ok(c.end.scq, 2);
}

/* 11.2.5.2: a timeout that is changed in SQD holds for what is sent next, though the timer was started for more. */
TEST_F(WireTimer, ShorterInSqd)
{
	WireOptions o;
	o.path.timeout = 21;
	WireConn c = connect(o);
	Attr shorter = state_attr(IBV_QPS_SQD);

	post_send(c, 1);
	expect_next(c, HERALD_BTH_RC_SEND_ONLY, 5000);
	c.ack(5000);
	expect_ok(c.end.scq, 1);
	modify(c.end, IBV_QPS_SQD);
	shorter.a.timeout = 16;
	shorter.mask |= IBV_QP_TIMEOUT;
	modify(c.end, shorter);
	modify(c.end, IBV_QPS_RTS);
	const auto begin = Clock::now();
	post_send(c, 2);
	for (int copy = 0; copy < 2; copy++)
		expect_next(c, HERALD_BTH_RC_SEND_ONLY, 5001);
	const auto took = Clock::now() - begin;
	EXPECT_GE(took, timeout_of(16));
	EXPECT_LT(took, timeout_of(21) / 2) << "it has waited for the timeout of before";
	c.ack(5001);
	expect_ok(c.end.scq, 2);
}
