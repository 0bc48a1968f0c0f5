/* SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB */
/*
 * The requester on the wire (IBTA vol. 1, 9.7.3 and 9.7.6): what it sends, and what it makes of the answers, which the
 * tests give by hand. There is no ACK timeout unless a test is about it, so nothing is sent that nobody asked for.
 */
#include "wire_requester.h"

#include <arpa/inet.h>

using namespace conformance;

class WireRequesterFamily : public WireRequester, public ::testing::WithParamInterface<Family> {
protected:
	static WireOptions options()
	{
		WireOptions o;

		o.family = GetParam();
		return o;
	}
};

INSTANTIATE_TEST_SUITE_P(Wire, WireRequesterFamily, ::testing::Values(Family::v4, Family::v6),
			 [](const auto &info) { return info.param == Family::v4 ? "IPv4" : "IPv6"; });

/* 9.2, 9.4.1: opcodes, PSNs, pad, the SE bit of the last packet, an ACK asked for at the end. */
TEST_P(WireRequesterFamily, SendLooksRight)
{
	WireConn c = connect(options());
	const std::array<uint8_t, 3> opcodes = {HERALD_BTH_RC_SEND_FIRST, HERALD_BTH_RC_SEND_MIDDLE,
						HERALD_BTH_RC_SEND_LAST};
	size_t off = 0;

	c.end.mem.fill(3);
	Send(IBV_WR_SEND, 1).from(c.end.mem, 0, 601).add_flags(IBV_SEND_SOLICITED).post(c.end);
	for (uint32_t i = 0; i < 3; i++) {
		const WirePacket p = c.next(opcodes[i]);

		EXPECT_EQ(p.h.psn, 5000 + i);
		EXPECT_EQ(p.h.pkey, 0xffff);
		EXPECT_TRUE(p.h.migreq) << "it is migrated (17.2.8)";
		EXPECT_EQ(p.h.solicited, i == 2);
		EXPECT_EQ(p.h.pad, i == 2 ? 3 : 0);
		ASSERT_EQ(p.payload.size(), i < 2 ? 256u : 89u);
		EXPECT_EQ(differs(p.payload.data(), c.end.mem.data() + off, p.payload.size()), -1);
		off += p.payload.size();
		EXPECT_TRUE(i < 2 || p.h.ack_req);
	}
	expect_empty(c.end.scq);
	c.ack(5002);
	expect_ok(c.end.scq, 1);
}

/* 9.3.3, 9.4.3: the RETH is that of the whole message and in its first packet. */
TEST_P(WireRequesterFamily, WriteLooksRight)
{
	WireConn c = connect(options());

	Send(IBV_WR_RDMA_WRITE_WITH_IMM, 1).from(c.end.mem, 0, 300).to(0x1234567890, 0x4242).imm(99).post(c.end);
	WirePacket p = c.next(HERALD_BTH_RC_RDMA_WRITE_FIRST);
	EXPECT_EQ(p.h.va, 0x1234567890u);
	EXPECT_EQ(p.h.rkey, 0x4242u);
	EXPECT_EQ(p.h.dmalen, 300u);
	p = c.next(HERALD_BTH_RC_RDMA_WRITE_LAST_WITH_IMM);
	EXPECT_EQ(ntohl(p.h.imm), 99u);
	EXPECT_EQ(p.payload.size(), 44u);
	c.ack(5001);
	expect_ok(c.end.scq, 1);
}

/* 9.4.4, 9.7.3: a READ takes a PSN for each response; 9.4.5: an atomic takes one. */
TEST_P(WireRequesterFamily, ReadAndAtomics)
{
	WireConn c = connect(options());
	const Bytes data = some_bytes(700);
	auto *result = reinterpret_cast<uint64_t *>(c.end.mem.data() + 4096);

	post_read(c, 1, 700);
	WirePacket p = c.next(HERALD_BTH_RC_RDMA_READ_REQUEST);
	EXPECT_EQ(p.h.psn, 5000u);
	EXPECT_EQ(p.h.va, 0x10000u);
	EXPECT_EQ(p.h.dmalen, 700u);
	answer_read(c, 5000, data);
	expect_ok(c.end.scq, 1);
	EXPECT_EQ(differs(c.end.mem.data(), data.data(), data.size()), -1);

	Send(IBV_WR_ATOMIC_CMP_AND_SWP, 2).from(c.end.mem, 4096, 8).to(0x2000, 0x78).operands(11, 22).post(c.end);
	p = c.next(HERALD_BTH_RC_COMPARE_SWAP);
	EXPECT_EQ(p.h.psn, 5003u);
	EXPECT_EQ(p.h.va, 0x2000u);
	EXPECT_EQ(p.h.compare, 11u);
	EXPECT_EQ(p.h.swap_add, 22u);
	p = c.packet(HERALD_BTH_RC_ATOMIC_ACKNOWLEDGE, 5003).aeth(HERALD_AETH_NO_CREDITS, 2);
	p.h.atomic_orig = 0x1122334455667788;
	c.send(p);
	expect_ok(c.end.scq, 2);
	EXPECT_EQ(*result, 0x1122334455667788u);
}

/* 9.7.1: PSNs wrap, and an ACK from behind the wrap is about packets before it. */
TEST_P(WireRequesterFamily, PsnWraps)
{
	WireOptions o = options();
	o.sq_psn = 0xfffffe;
	WireConn c = connect(o);

	post_send(c, 1, 1024);
	for (uint32_t psn : {0xfffffeu, 0xffffffu, 0u, 1u})
		EXPECT_EQ(c.next().h.psn, psn);
	c.ack(0xffffff);
	c.ack(1);
	expect_ok(c.end.scq, 1);
	expect_untouched(c, 2);
}

/* ------------------------------------------------- acknowledgements -- */

/* 9.7.6.1: one ACK acknowledges all before it. */
TEST_F(WireRequester, CoalescedAck)
{
	WireConn c = connect();

	for (uint32_t i = 0; i < 4; i++) {
		post_send(c, i);
		expect_next(c, HERALD_BTH_RC_SEND_ONLY, 5000 + i);
	}
	c.ack(5002);
	for (uint64_t i = 0; i < 3; i++)
		expect_ok(c.end.scq, i);
	expect_empty(c.end.scq);
	c.ack(5003);
	expect_ok(c.end.scq, 3);
}

/* 9.7.7.2: a responder may offer credits to one that does not count them. */
TEST_F(WireRequester, CreditsAreAccepted)
{
	WireConn c = connect();
	uint32_t psn = 5000;

	for (uint8_t credits : {0, 1, 15, 30}) {
		post_send(c, credits);
		expect_next(c, HERALD_BTH_RC_SEND_ONLY, psn);
		c.ack(psn++, credits);
		expect_ok(c.end.scq, credits);
	}
}

/* 9.7.6.1: an ACK of what was acknowledged before, or never sent, changes nothing. */
TEST_F(WireRequester, GhostAcks)
{
	WireConn c = connect();

	post_send(c, 1);
	expect_next(c, HERALD_BTH_RC_SEND_ONLY, 5000);
	c.ack(5000);
	expect_ok(c.end.scq, 1);
	const uint64_t before = counter("wire_ghosts");
	post_send(c, 2);
	expect_next(c, HERALD_BTH_RC_SEND_ONLY, 5001);
	for (uint32_t psn : {5000u, 4999u, 5002u, 6000u, 5001u + 0x7fffff, 5001u + 0x800000})
		c.ack(psn);
	c.ack(4990, HERALD_AETH_NAK_REMOTE_ACCESS);
	c.ack(5002, HERALD_AETH_NAK_INVALID_REQUEST);
	c.ack(5002, HERALD_AETH_RNR | 1);
	c.ack(4990, HERALD_AETH_NAK_SEQUENCE);
	expect_counted("wire_ghosts", before, 10);
	expect_empty(c.end.scq);
	EXPECT_TRUE(c.drain().empty());
	c.ack(5001);
	expect_ok(c.end.scq, 2);
}

/* 9.6.1, A17: answers are checked as requests are: iCRC, partition, where they come from. */
TEST_F(WireRequester, AnswersOfOthers)
{
	WireConn c = connect();
	WirePacket p;

	post_send(c, 1);
	expect_next(c, HERALD_BTH_RC_SEND_ONLY, 5000);
	uint64_t before = counter("icrc_dropped");
	p = c.packet(HERALD_BTH_RC_ACKNOWLEDGE, 5000).aeth(HERALD_AETH_NO_CREDITS, 1);
	p.damage = 4;
	c.send(p);
	expect_counted("icrc_dropped", before);
	before = counter("wire_wrong_path");
	p.damage = 0;
	p.h.pkey = 0x8001;
	c.send(p);
	p.h.pkey = 0xffff;
	p.stray = true;
	c.send(p);
	expect_counted("wire_wrong_path", before, 2);
	expect_empty(c.end.scq);
	c.ack(5000);
	expect_ok(c.end.scq, 1);
}

/* 17.2.8: the answer's MigReq is the peer's business; A17: congestion marks and CNPs do no harm. */
TEST_F(WireRequester, MigReqAndCongestion)
{
	WireConn c = connect();
	const uint64_t before = counter("wire_rx_cnp");

	for (uint32_t i = 0; i < 8; i++) {
		WirePacket p = c.packet(HERALD_BTH_RC_ACKNOWLEDGE, 5000 + i).aeth(HERALD_AETH_NO_CREDITS, i);

		post_send(c, i);
		expect_next(c, HERALD_BTH_RC_SEND_ONLY, 5000 + i);
		WirePacket cnp = c.packet(HERALD_BTH_CNP, 0);
		cnp.h.becn = true;
		c.send(cnp);
		p.h.migreq = i & 1;
		p.h.fecn = i & 2;
		p.h.becn = i & 4;
		p.tos = static_cast<uint8_t>(i & 3);
		c.send(p);
		expect_ok(c.end.scq, i);
	}
	expect_counted("wire_rx_cnp", before, 8);
}

/* ------------------------------------------------------------- NAKs -- */

/* 9.7.5.2: NAK sequence error: all before it has come, it and what follows is sent again. */
TEST_F(WireRequester, SequenceNakResends)
{
	WireConn c = connect();

	post_send(c, 1);
	post_send(c, 2, 600);
	post_send(c, 3);
	for (uint32_t i = 0; i < 5; i++)
		EXPECT_EQ(c.next().h.psn, 5000 + i);
	c.ack(5002, HERALD_AETH_NAK_SEQUENCE);
	expect_ok(c.end.scq, 1);
	expect_next(c, HERALD_BTH_RC_SEND_MIDDLE, 5002);
	expect_next(c, HERALD_BTH_RC_SEND_LAST, 5003);
	expect_next(c, HERALD_BTH_RC_SEND_ONLY, 5004);
	expect_empty(c.end.scq);
	c.ack(5004);
	expect_ok(c.end.scq, 2);
	expect_ok(c.end.scq, 3);
}

/* 9.9.2: each of them is a retry; what gets through makes the count start anew. */
TEST_F(WireRequester, SequenceNaksAreCounted)
{
	WireOptions o;
	o.path.retry_cnt = 2;
	WireConn c = connect(o);

	for (int round = 0; round < 2; round++) {
		post_send(c, 1);
		const uint32_t psn = 5000 + static_cast<uint32_t>(round);
		expect_next(c, HERALD_BTH_RC_SEND_ONLY, psn);
		for (int i = 0; i < 2; i++) {
			c.ack(psn, HERALD_AETH_NAK_SEQUENCE);
			expect_next(c, HERALD_BTH_RC_SEND_ONLY, psn);
		}
		if (!round) {
			c.ack(psn);
			expect_ok(c.end.scq, 1);
		}
	}
	c.ack(5001, HERALD_AETH_NAK_SEQUENCE);
	expect_wc(c.end.scq, IBV_WC_RETRY_EXC_ERR, 1);
	expect_error_state(c);
	EXPECT_TRUE(c.drain().empty());
}

/* 9.7.5.2.8: not before the timer's time is over. */
TEST_F(WireRequester, RnrNakWaits)
{
	WireConn c = connect();
	const std::array<std::pair<uint8_t, int>, 3> timers = {{{1, 10}, {14, 1280}, {21, 15360}}}; /* us */

	uint32_t psn = 5000;
	for (const auto &[code, usec] : timers) {
		post_send(c, code);
		expect_next(c, HERALD_BTH_RC_SEND_ONLY, psn);
		const auto begin = Clock::now();
		c.ack(psn, static_cast<uint8_t>(HERALD_AETH_RNR | code));
		expect_next(c, HERALD_BTH_RC_SEND_ONLY, psn);
		EXPECT_GE(Clock::now() - begin, std::chrono::microseconds(usec)) << "timer " << int(code);
		c.ack(psn++);
		expect_ok(c.end.scq, code);
	}
}

/* 9.7.6.1.3, 9.9.2: sent again retry_cnt times; each time it waits longer, up to four times the timeout. */
TEST_F(WireRequester, TimeoutsGrow)
{
	const auto timeout = std::chrono::microseconds(16777);
	WireOptions o;
	o.path.timeout = 12;
	o.path.retry_cnt = 4;
	WireConn c = connect(o);

	for (int round = 0; round < 2; round++) {
		const uint32_t psn = 5000 + static_cast<uint32_t>(round);
		const auto begin = Clock::now();
		post_send(c, 1);
		expect_next(c, HERALD_BTH_RC_SEND_ONLY, psn);
		for (int timeouts : {1, 3, 7, 11}) {
			expect_next(c, HERALD_BTH_RC_SEND_ONLY, psn);
			EXPECT_GE(Clock::now() - begin, timeout * timeouts) << "round " << round;
		}
		if (!round) {
			c.ack(psn);
			expect_ok(c.end.scq, 1);
		}
	}
	expect_wc(c.end.scq, IBV_WC_RETRY_EXC_ERR, 1);
	expect_error_state(c);
	EXPECT_TRUE(c.drain().empty());
}

/* 9.7.5.2.8, 9.9.2: rnr_retry times, and no more; 7 is for ever. */
TEST_F(WireRequester, RnrRetriesAreCounted)
{
	for (int limit : {0, 1, 3, 7}) {
		WireOptions o;
		o.path.rnr_retry = static_cast<uint8_t>(limit);
		WireConn c = connect(o);

		post_send(c, 1);
		post_send(c, 2);
		expect_next(c, HERALD_BTH_RC_SEND_ONLY, 5000);
		expect_next(c, HERALD_BTH_RC_SEND_ONLY, 5001);
		for (int i = 0; i < (limit == 7 ? 20 : limit); i++) {
			c.ack(5000, HERALD_AETH_RNR | 1);
			expect_next(c, HERALD_BTH_RC_SEND_ONLY, 5000);
			expect_next(c, HERALD_BTH_RC_SEND_ONLY, 5001);
		}
		if (limit == 7) {
			c.ack(5001);
			expect_ok(c.end.scq, 1);
			continue;
		}
		c.ack(5000, HERALD_AETH_RNR | 1);
		expect_wc(c.end.scq, IBV_WC_RNR_RETRY_EXC_ERR, 1);
		expect_wc(c.end.scq, IBV_WC_WR_FLUSH_ERR, 2);
		expect_error_state(c);
		EXPECT_TRUE(c.drain().empty());
	}
}

/* 9.9.2, 10.10.2: each NAK's status; what came before is done, what follows is flushed. */
TEST_F(WireRequester, RefusalsEndTheConnection)
{
	const std::array<std::pair<uint8_t, ibv_wc_status>, 3> kinds = {
		{{HERALD_AETH_NAK_INVALID_REQUEST, IBV_WC_REM_INV_REQ_ERR},
		 {HERALD_AETH_NAK_REMOTE_ACCESS, IBV_WC_REM_ACCESS_ERR},
		 {HERALD_AETH_NAK_REMOTE_OPERATION, IBV_WC_REM_OP_ERR}}};

	for (const auto &[syndrome, status] : kinds) {
		WireConn c = connect();

		recv(c.end, c.end.mem, 0, 64, 10);
		for (uint32_t i = 0; i < 4; i++) {
			post_send(c, i);
			expect_next(c, HERALD_BTH_RC_SEND_ONLY, 5000 + i);
		}
		c.ack(5001, syndrome);
		expect_ok(c.end.scq, 0);
		expect_wc(c.end.scq, status, 1);
		expect_wc(c.end.scq, IBV_WC_WR_FLUSH_ERR, 2);
		expect_wc(c.end.scq, IBV_WC_WR_FLUSH_ERR, 3);
		expect_wc(c.end.rcq, IBV_WC_WR_FLUSH_ERR, 10);
		expect_error_state(c);
		EXPECT_TRUE(c.drain().empty());
	}
}

/* ----------------------------------------------------- READs and others -- */

/* 9.7.6.1: the answer to a READ acknowledges what was sent before it. */
TEST_F(WireRequester, ReadResponseAcknowledges)
{
	WireConn c = connect();

	post_send(c, 1);
	post_send(c, 2);
	post_read(c, 3, 8);
	for (uint32_t psn : {5000u, 5001u, 5002u})
		EXPECT_EQ(c.next().h.psn, psn);
	answer_read(c, 5002, some_bytes(8));
	for (uint64_t id : {1, 2, 3})
		expect_ok(c.end.scq, id);
}

/* 9.7.3.2, 11.2.5.2: no more READs and atomics are out than the peer can answer, and what follows waits behind them. */
TEST_F(WireRequester, ReadsAreLimited)
{
	WireOptions o;
	o.path.rd_atomic = 2;
	WireConn c = connect(o);

	for (uint32_t i = 0; i < 4; i++)
		post_read(c, i, 8);
	post_send(c, 4);
	expect_next(c, HERALD_BTH_RC_RDMA_READ_REQUEST, 5000);
	expect_next(c, HERALD_BTH_RC_RDMA_READ_REQUEST, 5001);
	EXPECT_TRUE(c.drain().empty());
	answer_read(c, 5000, some_bytes(8));
	expect_next(c, HERALD_BTH_RC_RDMA_READ_REQUEST, 5002);
	EXPECT_TRUE(c.drain().empty());
	answer_read(c, 5001, some_bytes(8));
	expect_next(c, HERALD_BTH_RC_RDMA_READ_REQUEST, 5003);
	expect_next(c, HERALD_BTH_RC_SEND_ONLY, 5004);
	answer_read(c, 5002, some_bytes(8));
	answer_read(c, 5003, some_bytes(8));
	c.ack(5004);
	for (uint64_t id = 0; id < 5; id++)
		expect_ok(c.end.scq, id);
}

/* 10.8.3.3: behind a fence nothing is sent while a READ before it has no answer. */
TEST_F(WireRequester, FenceWaitsForReads)
{
	WireConn c = connect();

	post_read(c, 1, 8);
	Send(IBV_WR_SEND, 2).from(c.end.mem, 0, 8).add_flags(IBV_SEND_FENCE).post(c.end);
	expect_next(c, HERALD_BTH_RC_RDMA_READ_REQUEST, 5000);
	EXPECT_TRUE(c.drain().empty());
	answer_read(c, 5000, some_bytes(8));
	expect_next(c, HERALD_BTH_RC_SEND_ONLY, 5001);
	c.ack(5001);
	expect_ok(c.end.scq, 1);
	expect_ok(c.end.scq, 2);
}

/* 10.8.3.3: ... and no window is bound: the peer is refused what it will have only afterwards. */
TEST_F(WireRequester, FencedBind)
{
	for (bool answered : {true, false}) {
		WireConn c = connect();
		const Region r(pd, 4096, IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_MW_BIND);
		const Mw mw(ibv_alloc_mw(pd, IBV_MW_TYPE_2));
		require(mw, "ibv_alloc_mw");
		Send bind(IBV_WR_BIND_MW, 2);
		bind.wr.bind_mw.mw = mw;
		bind.wr.bind_mw.rkey = ibv_inc_rkey(mw->rkey);
		bind.wr.bind_mw.bind_info = {r.mr, r.addr(0), 4096, IBV_ACCESS_REMOTE_WRITE};
		const WirePacket write = c.request(HERALD_BTH_RC_RDMA_WRITE_ONLY)
						 .at(r.addr(0), bind.wr.bind_mw.rkey, 8)
						 .with(some_bytes(8))
						 .ask();

		post_read(c, 1, 8);
		c.next(HERALD_BTH_RC_RDMA_READ_REQUEST);
		bind.add_flags(IBV_SEND_FENCE).post(c.end);
		if (answered) {
			answer_read(c, 5000, some_bytes(8));
			expect_ok(c.end.scq, 1);
			expect_ok(c.end.scq, 2);
			c.send(write);
			c.expect_ack(1000, 1);
		} else {
			c.send(write);
			c.expect_aeth(HERALD_AETH_NAK_REMOTE_ACCESS, 1000, 0);
			expect_wc(c.end.scq, IBV_WC_WR_FLUSH_ERR, 1);
			expect_wc(c.end.scq, IBV_WC_WR_FLUSH_ERR, 2);
		}
	}
}

/* 9.7.5.2.8: an RNR NAK in the middle: what came before it is done, and the rest begins there. */
TEST_F(WireRequester, RnrNakInTheMiddle)
{
	WireConn c = connect();

	Send(IBV_WR_RDMA_WRITE_WITH_IMM, 1).from(c.end.mem, 0, 600).to(0x1000, 1).imm(1).post(c.end);
	for (uint32_t psn : {5000u, 5001u, 5002u})
		EXPECT_EQ(c.next().h.psn, psn);
	c.ack(5002, HERALD_AETH_RNR | 1);
	expect_next(c, HERALD_BTH_RC_RDMA_WRITE_LAST_WITH_IMM, 5002);
	c.ack(5002);
	expect_ok(c.end.scq, 1);
}
