/* SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB */
/*
 * PSNs that wrap in the middle of a message, and packets that are lost on both sides of the wrap (IBTA vol. 1, 9.7.1,
 * 9.7.5): each operation, as requester and as responder. The first PSN is 0xfffff0, and 24 packets follow.
 */
#include "wire_requester.h"

#include <arpa/inet.h>

using namespace conformance;

namespace {

constexpr uint32_t kFirst = 0xfffff0;
constexpr uint32_t kPackets = 24;
constexpr uint32_t kWrap = 16; /* the packet with PSN 0 */
constexpr uint32_t kLength = kPackets * 256 - 3;
constexpr uint32_t kLastPsn = 7;

uint32_t psn_of(uint32_t packet)
{
	return (kFirst + packet) & HERALD_PSN_MASK;
}

Bytes piece(const Bytes &all, uint32_t packet)
{
	const auto from = all.begin() + packet * 256;

	return {from, packet + 1 < kPackets ? from + 256 : all.end()};
}

} // namespace

/* ------------------------------------------------------------ requester -- */

class WireWrapMessage : public WireRequester, public ::testing::WithParamInterface<ibv_wr_opcode> {
protected:
	static void post(WireConn &c)
	{
		Send s(GetParam(), 1);

		s.from(c.end.mem, 0, kLength);
		if (GetParam() == IBV_WR_RDMA_WRITE || GetParam() == IBV_WR_RDMA_WRITE_WITH_IMM)
			s.to(0x10000, 0x77);
		if (GetParam() == IBV_WR_SEND_WITH_INV)
			s.invalidate(0x1234);
		s.post(c.end);
	}
	/* The packets from this one on */
	static void expect_packets(const WireConn &c, uint32_t from)
	{
		for (uint32_t i = from; i < kPackets; i++) {
			const WirePacket p = c.next();
			const unsigned int flags = herald_pkt_row(p.h.opcode)->flags;

			EXPECT_EQ(p.h.psn, psn_of(i)) << p.text();
			EXPECT_EQ(!!(flags & HERALD_PKT_FIRST), i == 0) << p.text();
			EXPECT_EQ(!!(flags & HERALD_PKT_LAST), i + 1 == kPackets) << p.text();
			ASSERT_EQ(p.payload.size(), i + 1 < kPackets ? 256u : 253u) << p.text();
			EXPECT_EQ(differs(c.end.mem.data() + i * 256, p.payload.data(), p.payload.size()), -1);
		}
	}
};

INSTANTIATE_TEST_SUITE_P(Wire, WireWrapMessage,
			 ::testing::Values(IBV_WR_SEND, IBV_WR_SEND_WITH_IMM, IBV_WR_SEND_WITH_INV, IBV_WR_RDMA_WRITE,
					   IBV_WR_RDMA_WRITE_WITH_IMM),
			 [](const auto &info) {
				 switch (info.param) {
				 case IBV_WR_SEND:
					 return "Send";
				 case IBV_WR_SEND_WITH_IMM:
					 return "SendWithImm";
				 case IBV_WR_SEND_WITH_INV:
					 return "SendWithInv";
				 case IBV_WR_RDMA_WRITE:
					 return "Write";
				 default:
					 return "WriteWithImm";
				 }
			 });

/* 9.7.5.2: what was lost before the wrap, just behind it, and at the end, is sent again from there. */
TEST_P(WireWrapMessage, IsSentAgain)
{
	WireOptions o;
	o.sq_psn = kFirst;
	WireConn c = connect(o);

	c.end.mem.fill(3);
	post(c);
	expect_packets(c, 0);
	for (uint32_t lost : {kWrap - 2, kWrap, kPackets - 1}) {
		c.ack(psn_of(lost), HERALD_AETH_NAK_SEQUENCE);
		expect_packets(c, lost);
	}
	expect_empty(c.end.scq);
	c.ack(kLastPsn);
	expect_ok(c.end.scq, 1);
	expect_untouched(c, kLastPsn + 1);
}

class WireWrap : public WireRequester {};

/* 9.7.3.1: a READ goes on at the PSN whose response was lost, on either side of the wrap. */
TEST_F(WireWrap, ReadIsAskedForAgain)
{
	WireOptions o;
	o.sq_psn = kFirst;
	WireConn c = connect(o);
	const Bytes data = some_bytes(kLength);
	uint32_t from = 0;

	post_read(c, 1, kLength);
	expect_next(c, HERALD_BTH_RC_RDMA_READ_REQUEST, kFirst);
	for (uint32_t lost : {kWrap - 2, kWrap, kPackets - 2}) {
		for (uint32_t i = from; i < lost; i++)
			c.send(response(c, psn_of(i), i - from, kPackets - from,
					{data.begin() + from * 256, data.end()}));
		c.send(response(c, psn_of(lost + 1), 1, 3, some_bytes(700, 9)));
		const WirePacket p = c.next(HERALD_BTH_RC_RDMA_READ_REQUEST);
		EXPECT_EQ(p.h.psn, psn_of(lost));
		EXPECT_EQ(p.h.va, 0x10000u + lost * 256);
		EXPECT_EQ(p.h.dmalen, kLength - lost * 256);
		from = lost;
	}
	answer_read(c, psn_of(from), {data.begin() + from * 256, data.end()});
	expect_ok(c.end.scq, 1);
	EXPECT_EQ(differs(c.end.mem.data(), data.data(), data.size()), -1);
	expect_untouched(c, kLastPsn + 1);
}

/* 9.7.5.2: atomics on both sides of the wrap, the first of which was lost. */
TEST_F(WireWrap, AtomicsAreSentAgain)
{
	WireOptions o;
	o.sq_psn = HERALD_PSN_MASK;
	WireConn c = connect(o);

	Send(IBV_WR_ATOMIC_FETCH_AND_ADD, 1).from(c.end.mem, 0, 8).to(0x2000, 0x78).operands(5).post(c.end);
	Send(IBV_WR_ATOMIC_CMP_AND_SWP, 2).from(c.end.mem, 8, 8).to(0x2000, 0x78).operands(6, 7).post(c.end);
	for (int round = 0; round < 2; round++) {
		WirePacket p = c.next(HERALD_BTH_RC_FETCH_ADD);
		EXPECT_EQ(p.h.psn, HERALD_PSN_MASK);
		EXPECT_EQ(p.h.swap_add, 5u);
		p = c.next(HERALD_BTH_RC_COMPARE_SWAP);
		EXPECT_EQ(p.h.psn, 0u);
		EXPECT_EQ(p.h.compare, 6u);
		EXPECT_EQ(p.h.swap_add, 7u);
		if (!round)
			c.ack(HERALD_PSN_MASK, HERALD_AETH_NAK_SEQUENCE);
	}
	for (uint32_t i = 0; i < 2; i++) {
		WirePacket p = c.packet(HERALD_BTH_RC_ATOMIC_ACKNOWLEDGE, (HERALD_PSN_MASK + i) & HERALD_PSN_MASK)
				       .aeth(HERALD_AETH_NO_CREDITS, i + 1);

		p.h.atomic_orig = 100 + i;
		c.send(p);
		expect_ok(c.end.scq, i + 1);
		EXPECT_EQ(reinterpret_cast<uint64_t *>(c.end.mem.data())[i], 100 + i);
	}
	expect_untouched(c, 1);
}

/*
 * A19, 9.7.5.2: FLUSH and ATOMIC_WRITE on both sides of the wrap. Their answer is more than an ACK: that of a later one only tells
 * that it was lost.
 */
class WireWrapExtension : public WireWrap {
protected:
	static constexpr uint32_t kFirstOfAll = 0xfffffe;
	static constexpr uint32_t kWrs = 4;

	static WireOptions options()
	{
		WireOptions o;

		o.sq_psn = kFirstOfAll;
		o.qp.ops = IBV_QP_EX_WITH_FLUSH | IBV_QP_EX_WITH_ATOMIC_WRITE;
		return o;
	}
	static uint32_t psn_of_wr(uint32_t i) { return (kFirstOfAll + i) & HERALD_PSN_MASK; }
	static Bytes value_of_wr(uint32_t i) { return some_bytes(8, 100 + i); }

	/* A FLUSH, an ATOMIC_WRITE, and both again, with their number */
	static void post_all(const WireConn &c)
	{
		ibv_qp_ex *qp = ibv_qp_to_qp_ex(c.end);

		ibv_wr_start(qp);
		for (uint32_t i = 0; i < kWrs; i++) {
			qp->wr_id = i;
			qp->wr_flags = IBV_SEND_SIGNALED;
			if (i % 2)
				ibv_wr_atomic_write(qp, 0x78, 0x2000 + 8 * i, value_of_wr(i).data());
			else
				ibv_wr_flush(qp, 0x77, 0x10000 + i, 4000 + i, IBV_FLUSH_GLOBAL, IBV_FLUSH_RANGE);
		}
		require_ok(code(ibv_wr_complete(qp)), "ibv_wr_complete");
	}
	static void expect_wrs(const WireConn &c, uint32_t from)
	{
		for (uint32_t i = from; i < kWrs; i++) {
			const WirePacket p = c.next(i % 2 ? HERALD_BTH_RC_ATOMIC_WRITE : HERALD_BTH_RC_FLUSH);

			EXPECT_EQ(p.h.psn, psn_of_wr(i)) << p.text();
			if (i % 2) {
				EXPECT_EQ(p.h.va, 0x2000u + 8 * i);
				EXPECT_EQ(p.h.rkey, 0x78u);
				EXPECT_EQ(p.payload, value_of_wr(i));
			} else {
				EXPECT_EQ(p.h.va, 0x10000u + i);
				EXPECT_EQ(p.h.rkey, 0x77u);
				EXPECT_EQ(p.h.dmalen, 4000u + i);
				EXPECT_EQ(p.h.flush_placement, IBV_FLUSH_GLOBAL);
				EXPECT_EQ(p.h.flush_selectivity, IBV_FLUSH_RANGE);
				EXPECT_TRUE(p.payload.empty());
			}
		}
	}
	static void answer(const WireConn &c, uint32_t i)
	{
		c.send(c.packet(HERALD_BTH_RC_RDMA_READ_RESPONSE_ONLY, psn_of_wr(i))
			       .aeth(HERALD_AETH_NO_CREDITS, i + 1));
	}
};

TEST_F(WireWrapExtension, IsSentAgain)
{
	WireConn c = connect(options());

	post_all(c);
	expect_wrs(c, 0);
	answer(c, 0);
	expect_ok(c.end.scq, 0);
	c.ack(psn_of_wr(1), HERALD_AETH_NAK_SEQUENCE);
	expect_wrs(c, 1);
	answer(c, 1);
	expect_ok(c.end.scq, 1);
	/* an ACK is not enough, nor is the answer to the next one */
	c.ack(psn_of_wr(2));
	expect_wrs(c, 2);
	EXPECT_TRUE(c.drain().empty());
	expect_empty(c.end.scq);
	c.ack(psn_of_wr(2), HERALD_AETH_NAK_SEQUENCE);
	expect_wrs(c, 2);
	answer(c, 2);
	expect_ok(c.end.scq, 2);
	expect_empty(c.end.scq);
	answer(c, 3);
	expect_ok(c.end.scq, 3);
	expect_untouched(c, psn_of_wr(kWrs));
}

TEST_F(WireWrapExtension, AnswersThatWereLost)
{
	WireConn c = connect(options());

	post_all(c);
	expect_wrs(c, 0);
	for (uint32_t done = 0; done < 2; done++) {
		answer(c, done + 1);
		expect_wrs(c, done);
		expect_empty(c.end.scq);
		answer(c, done);
		expect_ok(c.end.scq, done);
	}
	answer(c, 2);
	answer(c, 3);
	expect_ok(c.end.scq, 2);
	expect_ok(c.end.scq, 3);
	expect_untouched(c, psn_of_wr(kWrs));
}

/* ------------------------------------------------------------ responder -- */

class WireWrapRequest : public WireTest, public ::testing::WithParamInterface<bool> {
protected:
	static WirePacket packet(const WireConn &c, const Bytes &data, uint32_t i)
	{
		const bool first = i == 0, last = i + 1 == kPackets;
		const uint8_t opcode = GetParam() ? first  ? HERALD_BTH_RC_RDMA_WRITE_FIRST
						    : last ? HERALD_BTH_RC_RDMA_WRITE_LAST
							   : HERALD_BTH_RC_RDMA_WRITE_MIDDLE
				       : first    ? HERALD_BTH_RC_SEND_FIRST
				       : last     ? HERALD_BTH_RC_SEND_LAST
						  : HERALD_BTH_RC_SEND_MIDDLE;
		WirePacket p = c.packet(opcode, psn_of(i)).with(piece(data, i));

		return last ? p.ask() : p.at(c.end.mem, 0, kLength);
	}
};

INSTANTIATE_TEST_SUITE_P(Wire, WireWrapRequest, ::testing::Bool(),
			 [](const auto &info) { return info.param ? "Write" : "Send"; });

/* 9.7.5.2: a loss on either side of the wrap is told with its PSN; what comes twice is executed once. */
TEST_P(WireWrapRequest, LossesAreTold)
{
	WireOptions o;
	o.rq_psn = kFirst;
	WireConn c = connect(o);
	const Bytes data = some_bytes(kLength);

	recv(c.end, c.end.mem, 0, 8192, 1);
	recv(c.end, c.end.mem, 16384, 8192, 2);
	uint32_t next = 0;
	for (uint32_t lost : {kWrap - 2, kWrap, kPackets - 2}) {
		for (; next < lost; next++)
			c.send(packet(c, data, next));
		c.send(packet(c, data, lost + 1));
		c.expect_aeth(HERALD_AETH_NAK_SEQUENCE, psn_of(lost), 0);
		next -= 3; /* more than was lost */
	}
	for (; next < kPackets; next++)
		c.send(packet(c, data, next));
	c.expect_ack(kLastPsn, 1);
	EXPECT_EQ(differs(c.end.mem.data(), data.data(), data.size()), -1);
	/* all of it once more, from before the wrap */
	c.end.mem.clear();
	for (uint32_t i = 0; i < kPackets; i++)
		c.send(packet(c, data, i));
	c.expect_ack(kLastPsn, 1);
	EXPECT_TRUE(all_bytes(c.end.mem.data(), 16384, 0));
	if (!GetParam())
		expect_ok(c.end.rcq, 1);
	expect_empty(c.end.rcq);
	c.psn = kLastPsn + 1;
	c.msn = 1;
	c.expect_silence();
}

/* 9.7.5.1: a READ is repeated from before, at and behind the wrap. */
TEST_F(WireWrap, DuplicateRead)
{
	WireOptions o;
	o.rq_psn = kFirst;
	WireConn c = connect(o);

	c.end.mem.fill(1);
	c.send_next(c.request(HERALD_BTH_RC_RDMA_READ_REQUEST).at(c.end.mem, 0, kLength), kPackets);
	for (uint32_t i = 0; i < kPackets; i++)
		EXPECT_EQ(c.next().h.psn, psn_of(i));
	for (uint32_t from : {0u, kWrap - 1, kWrap, kPackets - 1}) {
		c.send(c.packet(HERALD_BTH_RC_RDMA_READ_REQUEST, psn_of(from))
			       .at(c.end.mem, from * 256, kLength - from * 256));
		for (uint32_t i = from; i < kPackets; i++) {
			const WirePacket p = c.next();

			EXPECT_EQ(p.h.psn, psn_of(i)) << p.text();
			EXPECT_EQ(differs(c.end.mem.data() + i * 256, p.payload.data(), p.payload.size()), -1);
		}
	}
	c.expect_silence();
}

/* 9.4.5, A19: what was executed before the wrap is not executed again behind it, and answered as before. */
TEST_F(WireWrap, DuplicateAtomicWriteAndFlush)
{
	WireOptions o;
	o.rq_psn = 0xfffffd;
	o.path.access |= IBV_ACCESS_FLUSH_GLOBAL;
	WireConn c = connect(o);
	const Mr mr(ibv_reg_mr(pd, c.end.mem.data(), 4096, kAllAccess | IBV_ACCESS_FLUSH_GLOBAL));
	auto *word = reinterpret_cast<uint64_t *>(c.end.mem.data());

	ASSERT_TRUE(mr);
	*word = 1;
	const WirePacket add = c.request(HERALD_BTH_RC_FETCH_ADD).at(c.end.mem, 0, 0).operands(5);
	c.send_next(add);
	EXPECT_EQ(c.next(HERALD_BTH_RC_ATOMIC_ACKNOWLEDGE).h.atomic_orig, 1u);
	const WirePacket write = c.request(HERALD_BTH_RC_ATOMIC_WRITE).at(c.end.mem, 8, 8).with(some_bytes(8));
	c.send_next(write);
	EXPECT_EQ(c.next(HERALD_BTH_RC_RDMA_READ_RESPONSE_ONLY).h.psn, 0xfffffeu);
	WirePacket flush = c.request(HERALD_BTH_RC_FLUSH).at(c.end.mem.addr(), mr->rkey, 4096);
	flush.h.flush_placement = 1;
	c.send_next(flush);
	WirePacket p = c.next(HERALD_BTH_RC_RDMA_READ_RESPONSE_ONLY);
	EXPECT_EQ(p.h.psn, 0xffffffu);
	EXPECT_EQ(p.h.msn, 3u);
	EXPECT_TRUE(p.payload.empty());
	c.send_next(c.request(HERALD_BTH_RC_RDMA_WRITE_ONLY).ask());
	c.expect_ack(0, 4);

	word[0] = word[1] = 99;
	c.send(add);
	EXPECT_EQ(c.next(HERALD_BTH_RC_ATOMIC_ACKNOWLEDGE).h.atomic_orig, 1u);
	c.send(write);
	EXPECT_EQ(c.next(HERALD_BTH_RC_RDMA_READ_RESPONSE_ONLY).h.psn, 0xfffffeu);
	c.send(flush);
	EXPECT_EQ(c.next(HERALD_BTH_RC_RDMA_READ_RESPONSE_ONLY).h.psn, 0xffffffu);
	EXPECT_EQ(word[0], 99u);
	EXPECT_EQ(word[1], 99u);
	c.expect_silence();
}

/* ------------------------------------------------- memory extensions -- */

/* A19: what comes behind a FLUSH, which takes its time elsewhere, is executed and answered behind it. */
TEST_F(WireWrap, WhatFollowsAFlushWaitsForIt)
{
	WireOptions o;
	o.path.access |= IBV_ACCESS_FLUSH_GLOBAL;
	WireConn c = connect(o);
	const Mr mr(ibv_reg_mr(pd, c.end.mem.data(), c.end.mem.size(), kAllAccess | IBV_ACCESS_FLUSH_GLOBAL));

	ASSERT_TRUE(mr);
	recv(c.end, c.end.mem, 0, 4096, 1);
	for (int round = 0; round < 20; round++) {
		WirePacket flush = c.request(HERALD_BTH_RC_FLUSH).at(c.end.mem.addr(), mr->rkey, 65536);
		const uint32_t psn = c.psn, msn = c.msn;

		flush.h.flush_placement = 1;
		c.send_next(flush);
		c.send_next(c.request(HERALD_BTH_RC_RDMA_WRITE_ONLY).at(c.end.mem, 0, 8).with(8).ask());
		c.send_next(c.request(HERALD_BTH_RC_RDMA_READ_REQUEST).at(c.end.mem, 0, 8));
		WirePacket p = c.next(HERALD_BTH_RC_RDMA_READ_RESPONSE_ONLY);
		EXPECT_EQ(p.h.psn, psn);
		EXPECT_EQ(p.h.msn, msn + 1);
		EXPECT_TRUE(p.payload.empty());
		/* the WRITE's acknowledgement may be in the READ's response */
		p = c.next();
		if (p.h.opcode == HERALD_BTH_RC_ACKNOWLEDGE) {
			EXPECT_EQ(p.h.psn, herald_psn_add(psn, 1));
			p = c.next(HERALD_BTH_RC_RDMA_READ_RESPONSE_ONLY);
		}
		EXPECT_EQ(p.h.psn, herald_psn_add(psn, 2));
		EXPECT_EQ(p.h.msn, msn + 3);
		EXPECT_EQ(p.payload.size(), 8u);
	}
	c.expect_silence();
}

/* 9.4.1.1.1, 10.6.5: a SEND's key is dead when its completion is there, and a duplicate of the SEND is acknowledged. */
TEST_F(WireWrap, SendWithInvalidate)
{
	WireConn c = connect();
	const Mr mr(ibv_reg_mr(pd, c.end.mem.data(), 4096, kAllAccess | IBV_ACCESS_MW_BIND));
	const Mw mw(ibv_alloc_mw(pd, IBV_MW_TYPE_2));
	Send bind(IBV_WR_BIND_MW, 70);

	ASSERT_TRUE(mr);
	require(mw, "ibv_alloc_mw");
	const uint32_t rkey = ibv_inc_rkey(mw->rkey);
	bind.wr.bind_mw.mw = mw;
	bind.wr.bind_mw.rkey = rkey;
	bind.wr.bind_mw.bind_info = {mr, c.end.mem.addr(), 4096, IBV_ACCESS_REMOTE_WRITE};
	bind.post(c.end);
	expect_ok(c.end.scq, 70);
	const WirePacket write = c.request(HERALD_BTH_RC_RDMA_WRITE_ONLY).at(c.end.mem.addr(), rkey, 8).with(8).ask();
	c.send_next(write);
	c.expect_ack(1000, 1);

	recv(c.end, c.end.mem, 8192, 4096, 1);
	recv(c.end, c.end.mem, 8192, 4096, 2);
	c.send_next(c.request(HERALD_BTH_RC_SEND_FIRST).with(256));
	WirePacket send = c.request(HERALD_BTH_RC_SEND_LAST_WITH_INV).with(8).ask();
	send.h.ieth = rkey;
	c.send_next(send);
	c.expect_ack(1002, 2);
	const ibv_wc wc = expect_ok(c.end.rcq, 1);
	EXPECT_TRUE(wc.wc_flags & IBV_WC_WITH_INV);
	EXPECT_EQ(wc.invalidated_rkey, rkey);
	EXPECT_EQ(wc.byte_len, 264u);
	/* the key is dead, which is no fault of a duplicate */
	c.send(send);
	c.expect_ack(1002, 2);
	c.expect_silence();
	c.send(c.request(HERALD_BTH_RC_RDMA_WRITE_ONLY).at(c.end.mem.addr(), rkey, 8).with(8).ask());
	c.expect_aeth(HERALD_AETH_NAK_REMOTE_ACCESS, c.psn, c.msn);
	expect_error_state(c);
}
