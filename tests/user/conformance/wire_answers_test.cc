/* SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB */
/* What the requester on the wire makes of answers that are lost, late, twice or wrong (IBTA vol. 1, 9.7.6, 9.9.2). */
#include "wire_requester.h"

#include <optional>
#include <ostream>

using namespace conformance;

class WireAnswers : public WireRequester {};

/* ------------------------------------------------------- lost answers -- */

/* 9.7.6.1, 9.7.3.1: what of a READ has not come is asked for again. */
TEST_F(WireAnswers, LostReadResponse)
{
	WireConn c = connect();
	const Bytes data = some_bytes(1200);
	const uint64_t before = counter("wire_responses_lost");

	post_read(c, 1, 1200);
	expect_next(c, HERALD_BTH_RC_RDMA_READ_REQUEST, 5000);
	for (uint32_t i : {0u, 1u, 3u, 4u})
		c.send(response(c, 5000 + i, i, 5, data));
	const WirePacket p = c.next(HERALD_BTH_RC_RDMA_READ_REQUEST);
	EXPECT_EQ(p.h.psn, 5002u);
	EXPECT_EQ(p.h.va, 0x10000u + 512);
	EXPECT_EQ(p.h.dmalen, 1200u - 512);
	EXPECT_EQ(p.h.rkey, 0x77u);
	expect_counted("wire_responses_lost", before);
	answer_read(c, 5002, {data.begin() + 512, data.end()});
	expect_ok(c.end.scq, 1);
	EXPECT_EQ(differs(c.end.mem.data(), data.data(), data.size()), -1);
	expect_untouched(c, 5005);
}

/* 9.7.6.1: an ACK of what follows a READ does not stand for its data. */
TEST_F(WireAnswers, AckBeyondAnUnansweredRead)
{
	WireConn c = connect();
	const Bytes data = some_bytes(8);

	post_send(c, 1);
	post_read(c, 2, 8);
	post_send(c, 3);
	for (uint32_t psn : {5000u, 5001u, 5002u})
		EXPECT_EQ(c.next().h.psn, psn);
	c.ack(5002);
	expect_ok(c.end.scq, 1);
	expect_next(c, HERALD_BTH_RC_RDMA_READ_REQUEST, 5001);
	expect_next(c, HERALD_BTH_RC_SEND_ONLY, 5002);
	expect_empty(c.end.scq);
	answer_read(c, 5001, data);
	c.ack(5002);
	expect_ok(c.end.scq, 2);
	expect_ok(c.end.scq, 3);
	EXPECT_EQ(differs(c.end.mem.data(), data.data(), data.size()), -1);
}

/* 10.8.3: a WR whose memory has gone when it is to be sent again fails, and what is behind it is flushed, done or not. */
TEST_F(WireAnswers, AckBeyondAWrThatFailed)
{
	WireConn c = connect();
	std::optional<Region> gone(std::in_place, pd, 4096);

	post_send(c, 1);
	Send(IBV_WR_SEND, 2).from(*gone, 0, 8).post(c.end);
	post_send(c, 3);
	for (uint32_t psn : {5000u, 5001u, 5002u})
		EXPECT_EQ(c.next().h.psn, psn);
	gone.reset();
	c.ack(5000, HERALD_AETH_NAK_SEQUENCE);
	expect_next(c, HERALD_BTH_RC_SEND_ONLY, 5000);
	c.ack(5002);
	expect_ok(c.end.scq, 1);
	expect_wc(c.end.scq, IBV_WC_LOC_PROT_ERR, 2);
	expect_wc(c.end.scq, IBV_WC_WR_FLUSH_ERR, 3);
	EXPECT_EQ(state_of(c.end), IBV_QPS_ERR);
}

/* 9.7.6.1: an answer that comes twice changes nothing. */
TEST_F(WireAnswers, DuplicateReadResponse)
{
	WireConn c = connect();
	const Bytes data = some_bytes(1200);

	post_read(c, 1, 1200);
	expect_next(c, HERALD_BTH_RC_RDMA_READ_REQUEST, 5000);
	for (uint32_t i : {0u, 1u, 2u, 2u, 1u, 0u})
		c.send(response(c, 5000 + i, i, 5, data));
	c.ack(5002);
	for (uint32_t i : {3u, 4u})
		c.send(response(c, 5000 + i, i, 5, data));
	expect_ok(c.end.scq, 1);
	EXPECT_EQ(differs(c.end.mem.data(), data.data(), data.size()), -1);
	expect_untouched(c, 5005);
}

/* 9.7.6.1: a train may begin with answers that were taken, and end with others that were not. */
TEST_F(WireAnswers, SomeOfATrainCameBefore)
{
	WireConn c = connect();
	constexpr uint32_t kResponses = 8;
	const Bytes data = some_bytes(kResponses * 256);
	const uint64_t ghosts = counter("wire_ghosts");
	std::vector<WirePacket> all;

	post_read(c, 1, kResponses * 256);
	expect_next(c, HERALD_BTH_RC_RDMA_READ_REQUEST, 5000);
	for (uint32_t i = 0; i < kResponses; i++)
		all.push_back(response(c, 5000 + i, i, kResponses, data));
	for (uint32_t i = 0; i < 4; i++)
		c.send(all[i]);
	ground->peer->send_train({all.begin() + 1, all.end() - 1});
	c.send(all.back());
	expect_ok(c.end.scq, 1);
	EXPECT_EQ(differs(c.end.mem.data(), data.data(), data.size()), -1);
	expect_counted("wire_ghosts", ghosts, 3);
	expect_untouched(c, 5000 + kResponses);
}

/* 9.7.6.1: the data that one READ gets tells that what another was to get has been lost. */
TEST_F(WireAnswers, AnswerToTheNextRead)
{
	WireConn c = connect();
	const Bytes data = some_bytes(300);

	post_read(c, 1, 300);
	post_read(c, 2, 8);
	expect_next(c, HERALD_BTH_RC_RDMA_READ_REQUEST, 5000);
	expect_next(c, HERALD_BTH_RC_RDMA_READ_REQUEST, 5002);
	answer_read(c, 5002, some_bytes(8));
	expect_next(c, HERALD_BTH_RC_RDMA_READ_REQUEST, 5000);
	expect_next(c, HERALD_BTH_RC_RDMA_READ_REQUEST, 5002);
	expect_empty(c.end.scq);
	answer_read(c, 5000, data);
	expect_ok(c.end.scq, 1);
	EXPECT_EQ(differs(c.end.mem.data(), data.data(), data.size()), -1);
	answer_read(c, 5002, some_bytes(8, 2));
	expect_ok(c.end.scq, 2);
}

/* 9.7.6.1, 9.4.5: an atomic whose answer was lost is sent again as it was, for the responder knows its PSN. */
TEST_F(WireAnswers, LostAtomicAnswer)
{
	WireConn c = connect();

	Send(IBV_WR_ATOMIC_FETCH_AND_ADD, 1).from(c.end.mem, 0, 8).to(0x2000, 0x78).operands(3).post(c.end);
	post_send(c, 2);
	const WirePacket first = c.next(HERALD_BTH_RC_FETCH_ADD);
	expect_next(c, HERALD_BTH_RC_SEND_ONLY, 5001);
	c.ack(5001);
	const WirePacket second = c.next(HERALD_BTH_RC_FETCH_ADD);
	EXPECT_EQ(second.h.psn, first.h.psn);
	EXPECT_EQ(second.h.va, first.h.va);
	EXPECT_EQ(second.h.swap_add, 3u);
	expect_next(c, HERALD_BTH_RC_SEND_ONLY, 5001);
	WirePacket p = c.packet(HERALD_BTH_RC_ATOMIC_ACKNOWLEDGE, 5000).aeth(HERALD_AETH_NO_CREDITS, 1);
	p.h.atomic_orig = 77;
	c.send(p);
	c.ack(5001);
	expect_ok(c.end.scq, 1);
	expect_ok(c.end.scq, 2);
	EXPECT_EQ(*reinterpret_cast<uint64_t *>(c.end.mem.data()), 77u);
}

/* 9.7.6.1: the end of an answer does not come: what is missing is asked for when the time is over. */
TEST_F(WireAnswers, LastReadResponseIsLost)
{
	WireOptions o;
	o.path.timeout = 14;
	WireConn c = connect(o);
	const Bytes data = some_bytes(1200);

	post_read(c, 1, 1200);
	WirePacket p = c.next(HERALD_BTH_RC_RDMA_READ_REQUEST);
	for (uint32_t i = 0; i < 4; i++)
		c.send(response(c, 5000 + i, i, 5, data));
	/* a slow machine may have asked before */
	while (p.h.psn != 5004)
		p = c.next(HERALD_BTH_RC_RDMA_READ_REQUEST);
	EXPECT_EQ(p.h.va, 0x10000u + 1024);
	EXPECT_EQ(p.h.dmalen, 1200u - 1024);
	answer_read(c, 5004, {data.begin() + 1024, data.end()});
	expect_ok(c.end.scq, 1);
	EXPECT_EQ(differs(c.end.mem.data(), data.data(), data.size()), -1);
}

/* 9.7.5.2: a READ may be refused half way: with the PSN of the response that is not given. */
TEST_F(WireAnswers, ReadRefusedHalfWay)
{
	WireConn c = connect();
	const Bytes data = some_bytes(1200);

	post_read(c, 1, 1200);
	expect_next(c, HERALD_BTH_RC_RDMA_READ_REQUEST, 5000);
	for (uint32_t i = 0; i < 2; i++)
		c.send(response(c, 5000 + i, i, 5, data));
	c.ack(5002, HERALD_AETH_NAK_REMOTE_ACCESS);
	expect_wc(c.end.scq, IBV_WC_REM_ACCESS_ERR, 1);
	expect_error_state(c);
}

/* 9.9.2: no answer: the packet is sent retry_cnt times more. */
TEST_F(WireAnswers, NobodyAnswers)
{
	for (int retries : {0, 1, 3}) {
		WireOptions o;
		o.path.timeout = 8; /* about 1 ms */
		o.path.retry_cnt = static_cast<uint8_t>(retries);
		WireConn c = connect(o);

		post_send(c, 1);
		post_send(c, 2);
		expect_wc(c.end.scq, IBV_WC_RETRY_EXC_ERR, 1);
		expect_wc(c.end.scq, IBV_WC_WR_FLUSH_ERR, 2);
		expect_error_state(c);
		int first = 0;
		for (const WirePacket &p : c.drain())
			first += p.h.psn == 5000;
		EXPECT_EQ(first, retries + 1);
	}
}

/* 9.7.6.1: an ACK of a part is an answer: the rest is waited for anew, and sent from there. */
TEST_F(WireAnswers, PartOfAMessageIsAcknowledged)
{
	WireOptions o;
	o.path.timeout = 14;
	WireConn c = connect(o);

	post_send(c, 1, 1000);
	for (uint32_t i = 0; i < 4; i++)
		EXPECT_EQ(c.next().h.psn, 5000 + i);
	c.ack(5001);
	WirePacket p = c.next();
	/* it may have been sent again before */
	while (p.h.psn < 5002)
		p = c.next();
	while (p.h.opcode != HERALD_BTH_RC_SEND_LAST)
		p = c.next();
	c.ack(5003);
	expect_ok(c.end.scq, 1);
}

/* --------------------------------------------------- wrong answers -- */

/* 9.9.2: an answer of a kind or length that was not asked for: bad response. */
struct Answer {
	const char *name;
	ibv_wr_opcode request;
	uint32_t length;
	uint8_t opcode;
	uint32_t payload;
};

/* GoogleTest would print its bytes, of which not all are set */
void PrintTo(const Answer &a, std::ostream *out)
{
	*out << a.name;
}

class WireBadResponse : public WireRequester, public ::testing::WithParamInterface<Answer> {};

TEST_P(WireBadResponse, EndsTheConnection)
{
	WireConn c = connect();
	const Answer &wrong = GetParam();
	const uint64_t before = counter("wire_bad_response");
	Send wr(wrong.request, 1);

	wr.from(c.end.mem, 0, wrong.length);
	if (wrong.request != IBV_WR_SEND)
		wr.to(0x10000, 0x77);
	wr.post(c.end);
	post_send(c, 2);
	c.next();
	c.send(c.packet(wrong.opcode, 5000).aeth(HERALD_AETH_NO_CREDITS, 1).with(wrong.payload));
	expect_wc(c.end.scq, IBV_WC_BAD_RESP_ERR, 1);
	expect_wc(c.end.scq, IBV_WC_WR_FLUSH_ERR, 2);
	expect_error_state(c);
	expect_counted("wire_bad_response", before);
	EXPECT_TRUE(all_bytes(c.end.mem.data(), 4096, 0));
}

INSTANTIATE_TEST_SUITE_P(
	Wire, WireBadResponse,
	::testing::Values(Answer{"ReadTooShort", IBV_WR_RDMA_READ, 100, HERALD_BTH_RC_RDMA_READ_RESPONSE_ONLY, 99},
			  Answer{"ReadTooLong", IBV_WR_RDMA_READ, 100, HERALD_BTH_RC_RDMA_READ_RESPONSE_ONLY, 101},
			  Answer{"ReadEmpty", IBV_WR_RDMA_READ, 100, HERALD_BTH_RC_RDMA_READ_RESPONSE_ONLY, 0},
			  Answer{"FirstNotFull", IBV_WR_RDMA_READ, 600, HERALD_BTH_RC_RDMA_READ_RESPONSE_FIRST, 252},
			  Answer{"FirstOfOne", IBV_WR_RDMA_READ, 256, HERALD_BTH_RC_RDMA_READ_RESPONSE_FIRST, 256},
			  Answer{"OnlyOfSeveral", IBV_WR_RDMA_READ, 600, HERALD_BTH_RC_RDMA_READ_RESPONSE_ONLY, 256},
			  Answer{"MiddleAtFirst", IBV_WR_RDMA_READ, 600, HERALD_BTH_RC_RDMA_READ_RESPONSE_MIDDLE, 256},
			  Answer{"LastAtFirst", IBV_WR_RDMA_READ, 600, HERALD_BTH_RC_RDMA_READ_RESPONSE_LAST, 256},
			  Answer{"AtomicOfRead", IBV_WR_RDMA_READ, 8, HERALD_BTH_RC_ATOMIC_ACKNOWLEDGE, 0},
			  Answer{"ReadOfAtomic", IBV_WR_ATOMIC_FETCH_AND_ADD, 8, HERALD_BTH_RC_RDMA_READ_RESPONSE_ONLY,
				 8},
			  Answer{"ReadOfSend", IBV_WR_SEND, 8, HERALD_BTH_RC_RDMA_READ_RESPONSE_ONLY, 8}),
	[](const auto &info) { return info.param.name; });

/* 9.9.2: a NAK whose code means nothing is a bad response. */
TEST_F(WireAnswers, NakOfNoKind)
{
	for (uint8_t syndrome : {0x64, 0x65, 0x7f}) {
		WireConn c = connect();

		post_send(c, 1);
		expect_next(c, HERALD_BTH_RC_SEND_ONLY, 5000);
		c.ack(5000, syndrome);
		expect_wc(c.end.scq, IBV_WC_BAD_RESP_ERR, 1);
		expect_error_state(c);
	}
}
