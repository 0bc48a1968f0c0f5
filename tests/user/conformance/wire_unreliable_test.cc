/* SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB */
/* Unreliable connections on the wire (IBTA vol. 1, 9.8.2): nothing is answered, and what has a gap is dropped whole. */
#include "wire_test.h"

using namespace conformance;

class WireUnreliable : public WireTest {
protected:
	static WireOptions uc()
	{
		WireOptions o;

		o.qp.type = IBV_QPT_UC;
		return o;
	}
	/* The next message arrives, which shows that what was sent before has not. */
	void expect_arrives(WireConn &c, uint32_t psn, uint64_t id)
	{
		c.send(c.packet(HERALD_BTH_UC_SEND_ONLY, psn).with(24).ask());
		EXPECT_EQ(expect_ok(c.end.rcq, id).byte_len, 24u);
		expect_empty(c.end.rcq);
		EXPECT_EQ(state_of(c.end), IBV_QPS_RTS);
		EXPECT_TRUE(c.drain().empty()) << "nothing is answered";
	}
};

/* 9.8.2.2: whole messages, and the first PSN may be any. */
TEST_F(WireUnreliable, WholeMessages)
{
	WireConn c = connect(uc());
	const Bytes data = some_bytes(600);

	recv(c.end, c.end.mem, 0, 4096, 1);
	c.send(c.packet(HERALD_BTH_UC_SEND_FIRST, 77777).with({data.begin(), data.begin() + 256}));
	c.send(c.packet(HERALD_BTH_UC_SEND_MIDDLE, 77778).with({data.begin() + 256, data.begin() + 512}));
	c.send(c.packet(HERALD_BTH_UC_SEND_LAST, 77779).with({data.begin() + 512, data.end()}).ask());
	EXPECT_EQ(expect_ok(c.end.rcq, 1).byte_len, 600u);
	EXPECT_EQ(differs(c.end.mem.data(), data.data(), data.size()), -1);
	c.send(c.packet(HERALD_BTH_UC_RDMA_WRITE_FIRST, 0xffffff).at(c.end.mem, 1024, 300).with(some_bytes(256, 5)));
	c.send(c.packet(HERALD_BTH_UC_RDMA_WRITE_LAST, 0).with(44));
	recv(c.end, c.end.mem, 0, 64, 2);
	expect_arrives(c, 1, 2);
	EXPECT_EQ(differs(c.end.mem.data() + 1024, some_bytes(256, 5).data(), 256), -1);
}

/* 9.8.2.2: the rest of a message of which a packet is missing is dropped, and its receive WR serves the next. */
TEST_F(WireUnreliable, GapDropsTheMessage)
{
	WireConn c = connect(uc());
	uint64_t before = counter("uc_dropped");

	recv(c.end, c.end.mem, 0, 4096, 1);
	c.send(c.packet(HERALD_BTH_UC_SEND_FIRST, 1).with(256));
	c.send(c.packet(HERALD_BTH_UC_SEND_LAST, 3).with(8));
	expect_counted("uc_dropped", before, 1);
	expect_arrives(c, 4, 1);

	/* without its beginning, and without its end */
	recv(c.end, c.end.mem, 0, 4096, 2);
	before = counter("uc_dropped");
	c.send(c.packet(HERALD_BTH_UC_SEND_MIDDLE, 5).with(256));
	c.send(c.packet(HERALD_BTH_UC_SEND_LAST, 6).with(8));
	expect_counted("uc_dropped", before, 1);
	c.send(c.packet(HERALD_BTH_UC_SEND_FIRST, 7).with(256));
	expect_arrives(c, 8, 2);
	expect_counted("uc_dropped", before, 2);
}

/* 9.8.2.2, 9.9.3: what a reliable connection would refuse is dropped: no rights, no such memory, no receive WR. */
TEST_F(WireUnreliable, RefusalsAreSilent)
{
	WireConn c = connect(uc());
	const uint64_t before = counter("uc_dropped");

	c.send(c.packet(HERALD_BTH_UC_SEND_ONLY, 1).with(8));
	c.send(c.packet(HERALD_BTH_UC_RDMA_WRITE_ONLY, 2).at(c.end.mem.addr(), 0x99, 8).with(8));
	c.send(c.packet(HERALD_BTH_UC_RDMA_WRITE_ONLY, 3).at(c.end.mem, 0, 9).with(8));
	c.send(c.packet(HERALD_BTH_UC_SEND_FIRST, 4).with(8));
	expect_counted("uc_dropped", before, 4);
	EXPECT_TRUE(all_bytes(c.end.mem.data(), 64, 0));
	recv(c.end, c.end.mem, 0, 64, 1);
	expect_arrives(c, 5, 1);
}

/* 9.8.2.2, 9.9.3: so is what makes no sense at all: an opcode that there is not, a length that it cannot have. */
TEST_F(WireUnreliable, MalformedIsSilent)
{
	WireConn c = connect(uc());
	const uint64_t before = counter("wire_rx_malformed");
	WirePacket p = c.packet(HERALD_BTH_UC_RDMA_WRITE_ONLY, 2).at(c.end.mem, 0, 8);
	Bytes bytes(HERALD_PKT_HDR_MAX);

	recv(c.end, c.end.mem, 0, 64, 1);
	for (int opcode : {0x2c, 0x31, 0x35, 0x36, 0x3f})
		c.send(c.packet(static_cast<uint8_t>(opcode), 1).with(8));
	herald_pkt_emit(&p.h, bytes.data());
	bytes.resize(HERALD_BTH_LEN + 4);
	ground->peer->send_bytes(Family::v4, bytes);
	expect_counted("wire_rx_malformed", before, 6);
	expect_arrives(c, 3, 1);
}

/* 9.8.2: the requester is done when it has sent; it asks for no answer, and hears none. */
TEST_F(WireUnreliable, RequesterHearsNothing)
{
	WireConn c = connect(uc());
	const uint64_t before = counter("wire_ghosts");

	Send(IBV_WR_SEND, 1).from(c.end.mem, 0, 300).post(c.end);
	expect_ok(c.end.scq, 1);
	EXPECT_FALSE(c.next(HERALD_BTH_UC_SEND_FIRST).h.ack_req);
	const WirePacket last = c.next(HERALD_BTH_UC_SEND_LAST);
	EXPECT_FALSE(last.h.ack_req);
	EXPECT_EQ(last.h.psn, 5001u);
	for (uint8_t syndrome : {HERALD_AETH_NO_CREDITS, HERALD_AETH_NAK_SEQUENCE, HERALD_AETH_NAK_REMOTE_ACCESS})
		c.ack(5001, static_cast<uint8_t>(syndrome));
	expect_counted("wire_ghosts", before, 3);
	Send(IBV_WR_SEND, 2).from(c.end.mem, 0, 8).post(c.end);
	expect_ok(c.end.scq, 2);
	EXPECT_EQ(c.next(HERALD_BTH_UC_SEND_ONLY).h.psn, 5002u);
}
