/* SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB */
/* What the responder on the wire refuses, and with which NAK (IBTA vol. 1, 9.7.4.1 and 9.7.5.2). */
#include "wire_test.h"

#include <ostream>

using namespace conformance;

class WireRefusal : public WireTest {
protected:
	/* The request with the next PSN was refused, and the connection is over. */
	void expect_refused(const WireConn &c, uint8_t syndrome, ibv_event_type event)
	{
		c.expect_aeth(syndrome, c.psn, c.msn);
		expect_qp_event(event, c);
		expect_error_state(c);
	}
	void expect_invalid(const WireConn &c)
	{
		expect_refused(c, HERALD_AETH_NAK_INVALID_REQUEST, IBV_EVENT_QP_REQ_ERR);
	}
};

/* ------------------------------------------------- invalid requests -- */

/* 9.7.4.1: the opcode does not follow from the one before. */
class WireOpcodeOrder : public WireRefusal, public ::testing::WithParamInterface<std::pair<int, int>> {};

TEST_P(WireOpcodeOrder, IsInvalid)
{
	WireConn c = connect();
	const auto [before, opcode] = GetParam();

	recv(c.end, c.end.mem, 0, 4096, 1);
	if (before >= 0)
		c.send_next(c.request(static_cast<uint8_t>(before)).at(c.end.mem, 0, 512).with(256));
	WirePacket p = c.request(static_cast<uint8_t>(opcode)).at(c.end.mem, 0, 256).ask();
	if (herald_pkt_row(p.h.opcode)->flags & HERALD_PKT_HAS_PAYLOAD)
		p.with(256);
	c.send(p);
	expect_invalid(c);
}

INSTANTIATE_TEST_SUITE_P(Wire, WireOpcodeOrder,
			 ::testing::Values(std::pair(-1, HERALD_BTH_RC_SEND_MIDDLE),
					   std::pair(-1, HERALD_BTH_RC_SEND_LAST),
					   std::pair(-1, HERALD_BTH_RC_SEND_LAST_WITH_IMM),
					   std::pair(-1, HERALD_BTH_RC_RDMA_WRITE_MIDDLE),
					   std::pair(-1, HERALD_BTH_RC_RDMA_WRITE_LAST),
					   std::pair(HERALD_BTH_RC_SEND_FIRST, HERALD_BTH_RC_SEND_FIRST),
					   std::pair(HERALD_BTH_RC_SEND_FIRST, HERALD_BTH_RC_SEND_ONLY),
					   std::pair(HERALD_BTH_RC_SEND_FIRST, HERALD_BTH_RC_RDMA_WRITE_MIDDLE),
					   std::pair(HERALD_BTH_RC_SEND_FIRST, HERALD_BTH_RC_RDMA_WRITE_ONLY),
					   std::pair(HERALD_BTH_RC_SEND_FIRST, HERALD_BTH_RC_RDMA_READ_REQUEST),
					   std::pair(HERALD_BTH_RC_SEND_FIRST, HERALD_BTH_RC_FETCH_ADD),
					   std::pair(HERALD_BTH_RC_RDMA_WRITE_FIRST, HERALD_BTH_RC_SEND_LAST),
					   std::pair(HERALD_BTH_RC_RDMA_WRITE_FIRST, HERALD_BTH_RC_RDMA_WRITE_FIRST)));

/* 9.7.4.1: how long a packet of each kind is. */
struct Length {
	uint8_t opcode;
	uint32_t payload;
	uint32_t dmalen;
};

/* GoogleTest would print its bytes, of which not all are set */
void PrintTo(const Length &l, std::ostream *out)
{
	*out << static_cast<int>(l.opcode) << ", " << l.payload << " bytes, " << l.dmalen << " in its RETH";
}

class WireLength : public WireRefusal, public ::testing::WithParamInterface<Length> {};

TEST_P(WireLength, IsInvalid)
{
	WireConn c = connect();
	const Length &wrong = GetParam();
	const struct herald_pkt_row *row = herald_pkt_row(wrong.opcode);
	const bool write = wrong.opcode >= HERALD_BTH_RC_RDMA_WRITE_FIRST;

	recv(c.end, c.end.mem, 0, 4096, 1);
	if (!(row->flags & HERALD_PKT_FIRST))
		c.send_next(c.request(write ? HERALD_BTH_RC_RDMA_WRITE_FIRST : HERALD_BTH_RC_SEND_FIRST)
				    .at(c.end.mem, 0, wrong.dmalen)
				    .with(256));
	c.send(c.request(wrong.opcode).at(c.end.mem, 0, wrong.dmalen).with(wrong.payload).ask());
	expect_invalid(c);
}

INSTANTIATE_TEST_SUITE_P(
	Wire, WireLength,
	::testing::Values(
		Length{HERALD_BTH_RC_SEND_FIRST, 252, 0}, Length{HERALD_BTH_RC_SEND_FIRST, 0, 0},
		Length{HERALD_BTH_RC_SEND_FIRST, 260, 0}, Length{HERALD_BTH_RC_SEND_MIDDLE, 255, 0},
		Length{HERALD_BTH_RC_SEND_MIDDLE, 512, 0}, Length{HERALD_BTH_RC_SEND_LAST, 0, 0},
		Length{HERALD_BTH_RC_SEND_LAST, 257, 0}, Length{HERALD_BTH_RC_SEND_ONLY, 257, 0},
		Length{HERALD_BTH_RC_RDMA_WRITE_FIRST, 252, 600}, Length{HERALD_BTH_RC_RDMA_WRITE_FIRST, 256, 256},
		Length{HERALD_BTH_RC_RDMA_WRITE_ONLY, 100, 101}, Length{HERALD_BTH_RC_RDMA_WRITE_ONLY, 100, 99},
		Length{HERALD_BTH_RC_RDMA_WRITE_ONLY, 0, 1}, Length{HERALD_BTH_RC_RDMA_WRITE_ONLY, 260, 260},
		Length{HERALD_BTH_RC_RDMA_WRITE_MIDDLE, 256, 512}, Length{HERALD_BTH_RC_RDMA_WRITE_LAST, 100, 355},
		Length{HERALD_BTH_RC_RDMA_WRITE_LAST, 100, 357}, Length{HERALD_BTH_RC_RDMA_WRITE_LAST, 0, 300},
		Length{HERALD_BTH_RC_RDMA_WRITE_FIRST, 256, 0x80000001},
		Length{HERALD_BTH_RC_RDMA_READ_REQUEST, 0, 0x80000001}));

/* 9.7.4.1, 9.9.3: the service has no such opcode. */
class WireReserved : public WireRefusal, public ::testing::WithParamInterface<int> {
protected:
	static WirePacket packet(const WireConn &c, uint32_t psn)
	{
		return c.packet(static_cast<uint8_t>(GetParam()), psn).with(8).ask();
	}
};

TEST_P(WireReserved, IsInvalid)
{
	WireConn c = connect();

	c.send(packet(c, c.psn));
	expect_invalid(c);
}

/* 9.7.1: the sequence comes first: too early, it is a sequence error; and what came before is no news. */
TEST_P(WireReserved, OutOfSequence)
{
	WireConn c = connect();
	const uint64_t before = counter("wire_rx_malformed");

	c.send(packet(c, c.psn - 1));
	c.send(packet(c, c.psn + 1));
	c.expect_aeth(HERALD_AETH_NAK_SEQUENCE, c.psn, c.msn);
	expect_counted("wire_rx_malformed", before, 2);
	c.expect_silence();
}

/* A17, 9.6.1: damaged, of another partition, or from somebody else, nobody is told. */
TEST_P(WireReserved, NotOfThisConnection)
{
	WireConn c = connect();
	WirePacket p = packet(c, c.psn);

	p.damage = 1;
	c.send(p);
	p = packet(c, c.psn);
	p.h.pkey = 0x8001;
	c.send(p);
	p = packet(c, c.psn);
	p.stray = true;
	c.send(p);
	c.expect_silence();
}

INSTANTIATE_TEST_SUITE_P(Wire, WireReserved, ::testing::Values(0x15, 0x18, 0x19, 0x1a, 0x1b, 0x1e, 0x1f));

/* 9.7.4.1, 9.9.3: a length that the opcode cannot have: no room for its headers, or a payload that it has not. */
class WireMalformed : public WireRefusal, public ::testing::WithParamInterface<int> {
protected:
	/* A request's headers, and what follows them. */
	static Bytes headers(const WireConn &c, uint8_t pad = 0)
	{
		WirePacket p = c.request(static_cast<uint8_t>(GetParam())).at(c.end.mem, 0, 8).operands(1).ask();
		Bytes bytes(HERALD_PKT_HDR_MAX);

		p.h.pad = pad;
		bytes.resize(herald_pkt_emit(&p.h, bytes.data()));
		return bytes;
	}
};

TEST_P(WireMalformed, NoRoomForItsHeaders)
{
	const size_t whole = herald_pkt_row(static_cast<uint8_t>(GetParam()))->hdr_len;

	for (size_t n = HERALD_BTH_LEN; n < whole; n += 4) {
		WireConn c = connect();
		Bytes bytes = headers(c);

		bytes.resize(n);
		ground->peer->send_bytes(Family::v4, bytes);
		expect_invalid(c);
		EXPECT_TRUE(all_bytes(c.end.mem.data(), 64, 0));
	}
}

TEST_P(WireMalformed, PayloadThatItHasNot)
{
	const struct herald_pkt_row *row = herald_pkt_row(static_cast<uint8_t>(GetParam()));
	WireConn c = connect();
	/* that of an operation without data; of one with data, more pad than there is */
	Bytes bytes = headers(c, row->flags & HERALD_PKT_HAS_PAYLOAD ? 3 : 0);

	if (!(row->flags & HERALD_PKT_HAS_PAYLOAD))
		bytes.resize(bytes.size() + 4);
	ground->peer->send_bytes(Family::v4, bytes);
	expect_invalid(c);
	EXPECT_TRUE(all_bytes(c.end.mem.data(), 64, 0));
}

INSTANTIATE_TEST_SUITE_P(Wire, WireMalformed,
			 ::testing::Values(HERALD_BTH_RC_RDMA_WRITE_ONLY, HERALD_BTH_RC_RDMA_READ_REQUEST,
					   HERALD_BTH_RC_COMPARE_SWAP, HERALD_BTH_RC_SEND_ONLY_WITH_IMM,
					   HERALD_BTH_RC_SEND_ONLY_WITH_INV, HERALD_BTH_RC_ATOMIC_WRITE));

/* 9.7.4.1: a SEND that is longer than the receive WR; that ends with a length error. */
TEST_F(WireRefusal, SendTooLong)
{
	WireConn c = connect();

	recv(c.end, c.end.mem, 0, 300, 1);
	c.send_next(c.request(HERALD_BTH_RC_SEND_FIRST).with(256));
	c.send(c.request(HERALD_BTH_RC_SEND_LAST).with(45).ask());
	c.expect_aeth(HERALD_AETH_NAK_INVALID_REQUEST, 1001, 0);
	expect_wc(c.end.rcq, IBV_WC_LOC_LEN_ERR, 1);
	expect_error_state(c);
}

/* ------------------------------------------------------------- rights -- */

/* 9.7.4.1: key, range and rights; the message does not count, and an event tells the responder (11.6.3). */
class WireAccess : public WireRefusal, public ::testing::WithParamInterface<uint8_t> {
protected:
	static WirePacket ask_for(const WireConn &c, uint64_t va, uint32_t rkey, uint32_t len)
	{
		WirePacket p = c.request(GetParam()).at(va, rkey, len).ask();

		if (GetParam() == HERALD_BTH_RC_RDMA_WRITE_ONLY)
			p.with(len);
		if (GetParam() == HERALD_BTH_RC_FETCH_ADD)
			p.h.dmalen = 0;
		return p;
	}
	void expect_no_access(const WireConn &c, const WirePacket &p)
	{
		c.send(p);
		expect_refused(c, HERALD_AETH_NAK_REMOTE_ACCESS, IBV_EVENT_QP_ACCESS_ERR);
	}
};

INSTANTIATE_TEST_SUITE_P(Wire, WireAccess,
			 ::testing::Values(HERALD_BTH_RC_RDMA_WRITE_ONLY, HERALD_BTH_RC_RDMA_READ_REQUEST,
					   HERALD_BTH_RC_FETCH_ADD),
			 [](const auto &info) {
				 return info.param == HERALD_BTH_RC_FETCH_ADD         ? "Atomic"
					: info.param == HERALD_BTH_RC_RDMA_WRITE_ONLY ? "Write"
										      : "Read";
			 });

TEST_P(WireAccess, BadKey)
{
	WireConn c = connect();

	c.expect_silence();
	expect_no_access(c, ask_for(c, c.end.mem.addr(), c.end.mem.mr->rkey ^ 1, 8));
}

TEST_P(WireAccess, BeyondTheEnd)
{
	WireConn c = connect();

	expect_no_access(c, ask_for(c, c.end.mem.addr(c.end.mem.size()), c.end.mem.mr->rkey, 8));
}

TEST_P(WireAccess, RegionWithoutRights)
{
	WireConn c = connect();
	const Region own(pd, 4096, IBV_ACCESS_LOCAL_WRITE);

	expect_no_access(c, ask_for(c, own.addr(), own.mr->rkey, 8));
}

/* 9.7.4.1: what the QP does not offer is an invalid request, whatever the key. */
TEST_P(WireAccess, QpWithoutRights)
{
	WireOptions o;
	o.path.access = 0;
	WireConn c = connect(o);

	c.send(ask_for(c, c.end.mem.addr(), c.end.mem.mr->rkey, 8));
	expect_invalid(c);
}

/* 9.7.4.1: without data there is nothing to have a right to. */
TEST_F(WireRefusal, NothingNeedsNoKey)
{
	WireConn c = connect();

	c.send_next(c.request(HERALD_BTH_RC_RDMA_WRITE_ONLY).at(1, 2, 0).ask());
	c.expect_ack(1000, 1);
	c.send_next(c.request(HERALD_BTH_RC_RDMA_READ_REQUEST).at(1, 2, 0));
	EXPECT_EQ(c.next(HERALD_BTH_RC_RDMA_READ_RESPONSE_ONLY).payload.size(), 0u);
	c.expect_silence();
}

/* 9.4.5: an atomic's address is a multiple of 8. */
TEST_F(WireRefusal, UnalignedAtomic)
{
	for (size_t off : {1, 4, 7}) {
		WireConn c = connect();

		c.send(c.request(HERALD_BTH_RC_FETCH_ADD).at(c.end.mem, off, 0).operands(1));
		expect_invalid(c);
		EXPECT_TRUE(all_bytes(c.end.mem.data(), 64, 0));
	}
}

/* --------------------------------------------------------- RNR NAKs -- */

/* 9.7.5.2.8: no receive WR: RNR NAK with the QP's timer, silence, and then the same packet is good. */
TEST_F(WireRefusal, ReceiverNotReady)
{
	WireOptions o;
	o.path.min_rnr_timer = 19;
	WireConn c = connect(o);
	const uint64_t early = counter("wire_out_of_sequence");

	c.send(c.request(HERALD_BTH_RC_SEND_ONLY).with(8).ask());
	c.expect_aeth(HERALD_AETH_RNR | 19, 1000, 0);
	c.send(c.packet(HERALD_BTH_RC_SEND_ONLY, 1001).with(8).ask());
	c.send(c.packet(HERALD_BTH_RC_RDMA_WRITE_ONLY, 1002).ask());
	expect_counted("wire_out_of_sequence", early, 2);
	/* still none: asked again, told again */
	c.send(c.request(HERALD_BTH_RC_SEND_ONLY).with(8).ask());
	c.expect_aeth(HERALD_AETH_RNR | 19, 1000, 0);
	recv(c.end, c.end.mem, 0, 64, 1);
	c.send_next(c.request(HERALD_BTH_RC_SEND_ONLY).with(8).ask());
	c.expect_ack(1000, 1);
	expect_ok(c.end.rcq, 1);
	c.expect_silence();
}

/* 9.7.5.2.8: the first of several packets: what follows it is silently dropped, and all of it is good later. */
TEST_F(WireRefusal, LongMessageNotReady)
{
	WireConn c = connect();
	const Bytes data = some_bytes(500);
	const WirePacket first = c.request(HERALD_BTH_RC_SEND_FIRST).with({data.begin(), data.begin() + 256});
	const uint64_t early = counter("wire_out_of_sequence");

	c.send(first);
	c.expect_aeth(HERALD_AETH_RNR | 1, 1000, 0);
	const WirePacket last = c.packet(HERALD_BTH_RC_SEND_LAST, 1001).with({data.begin() + 256, data.end()}).ask();
	c.send(last);
	expect_counted("wire_out_of_sequence", early);
	recv(c.end, c.end.mem, 0, 4096, 1);
	c.send_next(first);
	c.send_next(last);
	c.expect_ack(1001, 1);
	EXPECT_EQ(expect_ok(c.end.rcq, 1).byte_len, 500u);
	EXPECT_EQ(differs(c.end.mem.data(), data.data(), data.size()), -1);
}

/* 9.7.5.2.8: it is the last packet of a WRITE with immediate data that needs one. */
TEST_F(WireRefusal, WriteWithImmediateNotReady)
{
	WireConn c = connect();

	c.send_next(c.request(HERALD_BTH_RC_RDMA_WRITE_FIRST).at(c.end.mem, 0, 300).with(256).ask());
	c.expect_ack(1000, 0);
	c.send(c.request(HERALD_BTH_RC_RDMA_WRITE_LAST_WITH_IMM).with(44).ask());
	c.expect_aeth(HERALD_AETH_RNR | 1, 1001, 0);
	recv_empty(c.end, 1);
	c.send_next(c.request(HERALD_BTH_RC_RDMA_WRITE_LAST_WITH_IMM).with(44).ask());
	c.expect_ack(1001, 1);
	EXPECT_EQ(expect_ok(c.end.rcq, 1).byte_len, 300u);
	c.expect_silence();
}
