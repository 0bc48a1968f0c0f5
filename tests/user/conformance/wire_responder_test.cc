/* SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB */
/*
 * The responder on the wire, packet by packet (IBTA vol. 1, chapter 9). Each packet is answered with exactly what the
 * clause says, or not at all, and then a counter tells of it.
 */
#include "wire_test.h"

#include <arpa/inet.h>

#include <random>

using namespace conformance;

class WireResponder : public WireTest {
protected:
	/* What is dropped without an answer, and counted. */
	void expect_dropped(WireConn &c, const WirePacket &packet, const std::string &name)
	{
		const uint64_t before = counter(name);

		c.send(packet);
		expect_counted(name, before);
		c.expect_silence();
	}
	static void expect_bytes(const Region &r, size_t off, const Bytes &bytes)
	{
		EXPECT_EQ(differs(r.data() + off, bytes.data(), bytes.size()), -1);
	}
};

class WireResponderFamily : public WireResponder, public ::testing::WithParamInterface<Family> {
protected:
	static WireOptions options()
	{
		WireOptions o;

		o.family = GetParam();
		return o;
	}
};

INSTANTIATE_TEST_SUITE_P(Wire, WireResponderFamily, ::testing::Values(Family::v4, Family::v6),
			 [](const auto &info) { return info.param == Family::v4 ? "IPv4" : "IPv6"; });

/* 9.7.5.1: the ACK names the PSN; 9.7.7.1: the MSN counts the message; 9.7.7.2: no credits. */
TEST_P(WireResponderFamily, SendIsAcknowledged)
{
	WireConn c = connect(options());
	const Bytes data = some_bytes(61);

	recv(c.end, c.end.mem, 0, 4096, 1);
	c.send_next(c.request(HERALD_BTH_RC_SEND_ONLY).with(data).ask());
	c.expect_ack(1000, 1);
	EXPECT_EQ(expect_ok(c.end.rcq, 1).byte_len, 61u);
	expect_bytes(c.end.mem, 0, data);
	EXPECT_EQ(c.end.mem.data()[61], 0) << "the pad is no data";
	c.expect_silence();
}

/* 9.4.4, 9.7.5.1: FIRST, MIDDLE, LAST carry the data, an AETH is in all but MIDDLE. */
TEST_P(WireResponderFamily, ReadIsAnswered)
{
	WireConn c = connect(options());
	const std::array<uint8_t, 3> opcodes = {HERALD_BTH_RC_RDMA_READ_RESPONSE_FIRST,
						HERALD_BTH_RC_RDMA_READ_RESPONSE_MIDDLE,
						HERALD_BTH_RC_RDMA_READ_RESPONSE_LAST};

	c.end.mem.fill(7);
	c.send_next(c.request(HERALD_BTH_RC_RDMA_READ_REQUEST).at(c.end.mem, 3, 600), 3);
	for (uint32_t i = 0; i < 3; i++) {
		const WirePacket p = c.next(opcodes[i]);

		EXPECT_EQ(p.h.psn, 1000 + i);
		EXPECT_EQ(p.payload.size(), i < 2 ? 256u : 88u);
		expect_bytes(c.end.mem, 3 + i * 256, p.payload);
		if (i != 1) {
			EXPECT_EQ(p.h.msn, 1u) << p.text();
			EXPECT_EQ(p.h.syndrome, HERALD_AETH_NO_CREDITS);
		}
	}
	c.expect_silence();
}

/* 9.7.1: PSNs have 24 bits, in requests, in acknowledgements and in the responses of one READ. */
TEST_P(WireResponderFamily, PsnWraps)
{
	WireOptions o = options();
	o.rq_psn = 0xfffffe;
	WireConn c = connect(o);
	const Bytes data = some_bytes(600);

	recv(c.end, c.end.mem, 0, 4096, 1);
	c.send_next(c.request(HERALD_BTH_RC_SEND_FIRST).with({data.begin(), data.begin() + 256}).ask());
	c.expect_ack(0xfffffe, 0);
	c.send_next(c.request(HERALD_BTH_RC_SEND_MIDDLE).with({data.begin() + 256, data.begin() + 512}).ask());
	c.expect_ack(0xffffff, 0);
	c.send_next(c.request(HERALD_BTH_RC_SEND_LAST).with({data.begin() + 512, data.end()}).ask());
	c.expect_ack(0, 1);
	expect_ok(c.end.rcq, 1);
	expect_bytes(c.end.mem, 0, data);
	/* a duplicate from before the wrap is one */
	c.send(c.packet(HERALD_BTH_RC_SEND_MIDDLE, 0xffffff).with(256).ask());
	c.expect_ack(0, 1);
	EXPECT_EQ(c.psn, 1u);

	o.rq_psn = 0xfffffe;
	WireConn r = connect(o);
	r.send_next(r.request(HERALD_BTH_RC_RDMA_READ_REQUEST).at(r.end.mem, 0, 1000), 4);
	for (uint32_t psn : {0xfffffeu, 0xffffffu, 0u, 1u})
		EXPECT_EQ(r.next().h.psn, psn);
	r.expect_silence();
}

/* ---------------------------------------------------- when to answer -- */

/* 9.7.5.1: only who asks is answered; one ACK stands for all before it. */
TEST_F(WireResponder, AckReqAsks)
{
	WireConn c = connect();

	for (int i = 0; i < 3; i++)
		recv(c.end, c.end.mem, 0, 4096, i);
	c.send_next(c.request(HERALD_BTH_RC_SEND_ONLY).with(8));
	c.send_next(c.request(HERALD_BTH_RC_SEND_ONLY).with(8));
	poll_n(c.end.rcq, 2);
	EXPECT_TRUE(c.drain().empty()) << "nobody asked";
	c.send_next(c.request(HERALD_BTH_RC_SEND_ONLY).with(8).ask());
	c.expect_ack(1002, 3);
	c.expect_silence();
}

/* 9.7.7.1: each message counts once, however many packets it has. */
TEST_F(WireResponder, MsnCountsMessages)
{
	WireConn c = connect();

	recv(c.end, c.end.mem, 0, 4096, 1);
	c.send_next(c.request(HERALD_BTH_RC_SEND_ONLY).with(8).ask());
	c.expect_ack(1000, 1);
	c.send_next(c.request(HERALD_BTH_RC_RDMA_WRITE_FIRST).at(c.end.mem, 0, 300).with(256).ask());
	c.expect_ack(1001, 1);
	c.send_next(c.request(HERALD_BTH_RC_RDMA_WRITE_LAST).with(44).ask());
	c.expect_ack(1002, 2);
	c.send_next(c.request(HERALD_BTH_RC_RDMA_READ_REQUEST).at(c.end.mem, 0, 8));
	EXPECT_EQ(c.next(HERALD_BTH_RC_RDMA_READ_RESPONSE_ONLY).h.msn, 3u);
	c.send_next(c.request(HERALD_BTH_RC_FETCH_ADD).at(c.end.mem, 0, 0).operands(1));
	EXPECT_EQ(c.next(HERALD_BTH_RC_ATOMIC_ACKNOWLEDGE).h.msn, 4u);
	c.expect_silence();
}

/* 9.2.3, 11.4.2.2: the SE bit of the last packet raises the solicited event, no other packet does. */
TEST_F(WireResponder, SolicitedEventBit)
{
	WireOptions o;
	Channel channel = make_channel(ground->dev);
	o.qp.channel = channel;
	WireConn c = connect(o);

	recv(c.end, c.end.mem, 0, 4096, 1);
	recv(c.end, c.end.mem, 0, 4096, 2);
	arm(c.end.rcq, true);
	c.send_next(c.request(HERALD_BTH_RC_SEND_ONLY).with(8));
	expect_ok(c.end.rcq, 1);
	expect_no_event(channel, Millis(0));
	c.send_next(c.request(HERALD_BTH_RC_SEND_ONLY).with(8).solicit());
	expect_event(channel, c.end.rcq);
	expect_ok(c.end.rcq, 2);
}

/* 9.4.5: what was there before, and the new value; 9.4.1, 9.4.3: immediate data as it was sent. */
TEST_F(WireResponder, AtomicsAndImmediates)
{
	WireConn c = connect();
	auto *word = reinterpret_cast<uint64_t *>(c.end.mem.data());

	*word = 40;
	c.send_next(c.request(HERALD_BTH_RC_FETCH_ADD).at(c.end.mem, 0, 0).operands(2));
	EXPECT_EQ(c.next(HERALD_BTH_RC_ATOMIC_ACKNOWLEDGE).h.atomic_orig, 40u);
	EXPECT_EQ(*word, 42u);
	c.send_next(c.request(HERALD_BTH_RC_COMPARE_SWAP).at(c.end.mem, 0, 0).operands(7, 42));
	EXPECT_EQ(c.next(HERALD_BTH_RC_ATOMIC_ACKNOWLEDGE).h.atomic_orig, 42u);
	EXPECT_EQ(*word, 7u);

	recv(c.end, c.end.mem, 64, 64, 1);
	recv(c.end, c.end.mem, 64, 64, 2);
	WirePacket p = c.request(HERALD_BTH_RC_SEND_ONLY_WITH_IMM).with(5);
	p.h.imm = htonl(0x12345678);
	c.send_next(p);
	EXPECT_EQ(ntohl(expect_ok(c.end.rcq, 1).imm_data), 0x12345678u);
	p = c.request(HERALD_BTH_RC_RDMA_WRITE_ONLY_WITH_IMM).at(c.end.mem, 512, 5).with(5);
	p.h.imm = htonl(9);
	c.send_next(p.ask());
	const ibv_wc wc = expect_ok(c.end.rcq, 2);
	EXPECT_EQ(ntohl(wc.imm_data), 9u);
	EXPECT_EQ(wc.opcode, IBV_WC_RECV_RDMA_WITH_IMM);
	c.expect_ack(1003, 4);
}

/* ------------------------------------------- packets that are nobody's -- */

/* A17: a packet whose iCRC is wrong is dropped; 9.6.1: as is one that fails any check of its headers. */
TEST_F(WireResponder, BadIcrc)
{
	WireConn c = connect();

	recv(c.end, c.end.mem, 0, 4096, 1);
	for (uint32_t damage : {1u, 0x80000000u, 0xffffffffu}) {
		WirePacket p = c.request(HERALD_BTH_RC_SEND_ONLY).with(64).ask();

		p.damage = damage;
		expect_dropped(c, p, "icrc_dropped");
	}
	expect_empty(c.end.rcq);
}

/* 9.6.1: another partition's, and a limited member's to a full one, which is heard (10.9.3). */
TEST_F(WireResponder, Partition)
{
	WireConn c = connect();
	WirePacket p = c.request(HERALD_BTH_RC_RDMA_WRITE_ONLY).ask();

	for (uint16_t pkey : {0x0000, 0x8000, 0x8001, 0x7ffe, 0xfffe}) {
		p = c.request(HERALD_BTH_RC_RDMA_WRITE_ONLY).ask();
		p.h.pkey = pkey;
		expect_dropped(c, p, "wire_wrong_path");
	}
	p = c.request(HERALD_BTH_RC_RDMA_WRITE_ONLY).ask();
	p.h.pkey = 0x7fff;
	c.send_next(p);
	c.expect_ack(p.h.psn, c.msn);
}

/* 9.6.1: the destination QP; A17: the addresses of the connection. */
TEST_F(WireResponder, WrongQpAndWrongSource)
{
	WireConn c = connect();

	for (uint32_t qpn : {0u, 0xfffffeu, c.end.num() ^ 0x800000}) {
		WirePacket p = c.request(HERALD_BTH_RC_RDMA_WRITE_ONLY).ask();

		p.h.dest_qpn = qpn;
		expect_dropped(c, p, "wire_rx_no_qp");
	}
	WirePacket p = c.request(HERALD_BTH_RC_RDMA_WRITE_ONLY).ask();
	p.stray = true;
	expect_dropped(c, p, "wire_wrong_path");
}

/* 17.2.8: where the sender has migrated to is no reason to drop what it sends over the path that there is. */
TEST_F(WireResponder, MigReqAndCongestion)
{
	WireConn c = connect();

	for (int i = 0; i < 8; i++) {
		WirePacket p = c.request(HERALD_BTH_RC_RDMA_WRITE_ONLY).ask();

		p.h.migreq = i & 1;
		p.h.fecn = i & 2;
		p.h.becn = i & 4;
		p.tos = static_cast<uint8_t>(i & 3);
		c.send_next(p);
		c.expect_ack(p.h.psn, c.msn);
	}
}

/* 9.6.1: the opcode's class is another service's than the QP's. */
TEST_F(WireResponder, OtherService)
{
	WireConn c = connect();

	recv(c.end, c.end.mem, 0, 4096, 1);
	for (uint8_t opcode : {HERALD_BTH_UC_SEND_ONLY, HERALD_BTH_UC_RDMA_WRITE_ONLY, HERALD_BTH_UD_SEND_ONLY})
		expect_dropped(c, c.request(opcode).with(8).ask(), "wire_wrong_service");
	expect_empty(c.end.rcq);
}

/* 9.2: what has no room for a BTH, is no multiple of four bytes, or has another version, is no packet. */
TEST_F(WireResponder, NoPacket)
{
	WireConn c = connect();
	WirePacket whole = c.request(HERALD_BTH_RC_FETCH_ADD).at(c.end.mem, 0, 0).operands(1);
	Bytes bytes(HERALD_PKT_HDR_MAX);

	bytes.resize(herald_pkt_emit(&whole.h, bytes.data()));
	const uint64_t before = counter("wire_rx_malformed");
	uint64_t sent = 0;
	for (size_t n = 0; n < bytes.size(); n++) {
		if (n >= HERALD_BTH_LEN && n % 4 == 0)
			continue;
		ground->peer->send_bytes(Family::v4, {bytes.begin(), bytes.begin() + static_cast<ssize_t>(n)});
		sent++;
	}
	for (size_t n = 0; n < HERALD_BTH_LEN + HERALD_ICRC_LEN; n++, sent++)
		ground->peer->send_bare(Family::v4, {bytes.begin(), bytes.begin() + static_cast<ssize_t>(n)});
	bytes[1] |= 1; /* TVer */
	ground->peer->send_bytes(Family::v4, bytes);
	expect_counted("wire_rx_malformed", before, sent + 1);
	EXPECT_EQ(*c.end.mem.data(), 0);
	c.expect_silence();
}

/* Anything at all, with a good iCRC: whatever becomes of the QP, the device and the other connections go on. */
TEST_F(WireResponder, RandomPackets)
{
	WireConn c = connect(), victim = connect();
	std::mt19937 random(4791);

	for (int i = 0; i < 3000; i++) {
		Bytes bytes = some_bytes(random() % 80, random());

		if (bytes.size() >= HERALD_BTH_LEN && random() % 4) {
			bytes[0] = static_cast<uint8_t>(random() % 32);
			bytes[1] &= 0xf0;
			bytes[2] = bytes[3] = 0xff;
			for (int b = 0; b < 3; b++)
				bytes[5 + b] = static_cast<uint8_t>(victim.end.num() >> (16 - 8 * b));
			/* near the PSN that it expects */
			bytes[9] = 0;
			bytes[10] = 3;
		}
		ground->peer->send_bytes(Family::v4, bytes);
	}
	c.expect_silence();
	modify(victim.end, IBV_QPS_RESET);
}

/* ---------------------------------------------------------- sequence -- */

/* 9.7.4.1, 9.7.5.2: one NAK with the expected PSN, then silence until that has come. */
TEST_F(WireResponder, SequenceErrorIsToldOnce)
{
	WireConn c = connect();
	const uint64_t before = counter("nak_sequence");
	const uint64_t early = counter("wire_out_of_sequence");

	for (int i = 0; i < 4; i++)
		recv(c.end, c.end.mem, 0, 4096, i);
	c.send(c.packet(HERALD_BTH_RC_SEND_ONLY, 1001).with(8).ask());
	c.expect_aeth(HERALD_AETH_NAK_SEQUENCE, 1000, 0);
	c.send(c.packet(HERALD_BTH_RC_SEND_ONLY, 1002).with(8).ask());
	c.send(c.packet(HERALD_BTH_RC_SEND_ONLY, 1001).with(8).ask());
	c.send(c.packet(HERALD_BTH_RC_RDMA_READ_REQUEST, 1003).at(c.end.mem, 0, 8));
	expect_counted("wire_out_of_sequence", early, 4);
	expect_empty(c.end.rcq);
	c.send_next(c.request(HERALD_BTH_RC_SEND_ONLY).with(8).ask());
	c.expect_ack(1000, 1);
	EXPECT_EQ(counter("nak_sequence") - before, 1u);
	/* and another gap is another error */
	c.send(c.packet(HERALD_BTH_RC_SEND_ONLY, 1002).with(8).ask());
	c.expect_aeth(HERALD_AETH_NAK_SEQUENCE, 1001, 1);
	c.send_next(c.request(HERALD_BTH_RC_SEND_ONLY).with(8).ask());
	c.expect_ack(1001, 2);
	expect_ok(c.end.rcq, 0);
	expect_ok(c.end.rcq, 1);
	expect_empty(c.end.rcq);
}

/* 9.7.5.2: duplicates are answered while the expected packet is waited for. */
TEST_F(WireResponder, DuplicatesDuringASequenceError)
{
	WireConn c = connect();
	const WirePacket write = c.request(HERALD_BTH_RC_RDMA_WRITE_ONLY).at(c.end.mem, 0, 8).with(8).ask();

	c.send_next(write);
	c.expect_ack(1000, 1);
	c.send(c.packet(HERALD_BTH_RC_RDMA_WRITE_ONLY, 1002).ask());
	c.expect_aeth(HERALD_AETH_NAK_SEQUENCE, 1001, 1);
	c.send(write);
	c.expect_ack(1000, 1);
	c.send(c.packet(HERALD_BTH_RC_RDMA_WRITE_ONLY, 1002).ask());
	c.expect_silence();
}

/* 9.7.5.1: a duplicate is acknowledged, with the latest PSN, and not executed. */
TEST_F(WireResponder, DuplicateSendAndWrite)
{
	WireConn c = connect();
	const uint64_t before = counter("duplicates");

	recv(c.end, c.end.mem, 1024, 1024, 1);
	recv(c.end, c.end.mem, 1024, 1024, 2);
	const WirePacket send = c.request(HERALD_BTH_RC_SEND_ONLY).with(some_bytes(8, 1)).ask();
	c.send_next(send);
	c.expect_ack(1000, 1);
	const WirePacket write = c.request(HERALD_BTH_RC_RDMA_WRITE_ONLY).at(c.end.mem, 0, 16).with(16).ask();
	c.send_next(write);
	c.expect_ack(1001, 2);
	c.end.mem.clear();
	c.send(send);
	c.expect_ack(1001, 2);
	c.send(write);
	c.expect_ack(1001, 2);
	expect_counted("duplicates", before, 2);
	EXPECT_TRUE(all_bytes(c.end.mem.data(), 4096, 0));
	expect_ok(c.end.rcq, 1);
	expect_empty(c.end.rcq);
	/* half a circle back is the oldest that is a duplicate; one more is ahead */
	c.send(c.packet(HERALD_BTH_RC_SEND_ONLY, c.psn - 0x800000).with(8).ask());
	c.expect_ack(1001, 2);
	c.expect_silence();
}

/* 9.7.5.1: such an ACK is no answer to a READ that came in between. */
TEST_F(WireResponder, DuplicateSendBeforeARead)
{
	WireConn c = connect();
	const WirePacket write = c.request(HERALD_BTH_RC_RDMA_WRITE_ONLY).at(c.end.mem, 0, 16).with(16).ask();

	c.send_next(write);
	c.expect_ack(1000, 1);
	c.send_next(c.request(HERALD_BTH_RC_RDMA_READ_REQUEST).at(c.end.mem, 0, 512), 2);
	c.next();
	c.next();
	c.send(write);
	c.expect_ack(1000, 2);
	c.expect_silence();
}

/* 9.7.5.1: a duplicate READ is executed again, all of it or a part. */
TEST_F(WireResponder, DuplicateRead)
{
	WireConn c = connect();
	const WirePacket read = c.request(HERALD_BTH_RC_RDMA_READ_REQUEST).at(c.end.mem, 0, 1000);

	c.end.mem.fill(1);
	c.send_next(read, 4);
	for (int i = 0; i < 4; i++)
		c.next();
	c.end.mem.fill(2);
	c.send(read);
	for (uint32_t i = 0; i < 4; i++) {
		const WirePacket p = c.next();

		EXPECT_EQ(p.h.psn, 1000 + i);
		expect_bytes(c.end.mem, i * 256, p.payload);
	}
	c.send(c.packet(HERALD_BTH_RC_RDMA_READ_REQUEST, 1002).at(c.end.mem, 512, 488));
	WirePacket p = c.next(HERALD_BTH_RC_RDMA_READ_RESPONSE_FIRST);
	EXPECT_EQ(p.h.psn, 1002u);
	expect_bytes(c.end.mem, 512, p.payload);
	p = c.next(HERALD_BTH_RC_RDMA_READ_RESPONSE_LAST);
	EXPECT_EQ(p.h.psn, 1003u);
	expect_bytes(c.end.mem, 768, p.payload);
	/* a part from the middle that stops early */
	c.send(c.packet(HERALD_BTH_RC_RDMA_READ_REQUEST, 1001).at(c.end.mem, 256, 256));
	EXPECT_EQ(c.next(HERALD_BTH_RC_RDMA_READ_RESPONSE_ONLY).h.psn, 1001u);
	c.expect_silence();
}

/* 9.7.5.1: what only looks like a duplicate, because it reads something else, is dropped. */
TEST_F(WireResponder, DuplicateReadOfSomethingElse)
{
	WireConn c = connect();
	const Mr other(ibv_reg_mr(pd, c.end.mem.data(), 4096, kAllAccess));

	ASSERT_TRUE(other);
	c.send_next(c.request(HERALD_BTH_RC_RDMA_READ_REQUEST).at(c.end.mem, 0, 600), 3);
	for (int i = 0; i < 3; i++)
		c.next();
	c.send(c.packet(HERALD_BTH_RC_RDMA_READ_REQUEST, 1000).at(c.end.mem, 0, 601));
	c.send(c.packet(HERALD_BTH_RC_RDMA_READ_REQUEST, 1000).at(c.end.mem, 1, 600));
	c.send(c.packet(HERALD_BTH_RC_RDMA_READ_REQUEST, 1001).at(c.end.mem, 0, 256));
	c.send(c.packet(HERALD_BTH_RC_RDMA_READ_REQUEST, 1001).at(c.end.mem, 256, 600));
	c.send(c.packet(HERALD_BTH_RC_RDMA_READ_REQUEST, 1000).at(c.end.mem.addr(), other->rkey, 600));
	c.send(c.packet(HERALD_BTH_RC_RDMA_READ_REQUEST, 999).at(c.end.mem, 0, 600));
	c.expect_silence();
}

/* 9.7.5.1: what may not be read any more is not read again, and the connection goes on. */
TEST_F(WireResponder, DuplicateReadWithoutRight)
{
	WireConn c = connect();
	const WirePacket read = c.request(HERALD_BTH_RC_RDMA_READ_REQUEST).at(c.end.mem, 0, 600);
	ibv_qp_attr attr{};

	c.send_next(read, 3);
	for (int i = 0; i < 3; i++)
		c.next();
	attr.qp_access_flags = IBV_ACCESS_REMOTE_WRITE;
	ASSERT_EQ(ibv_modify_qp(c.end.qp, &attr, IBV_QP_ACCESS_FLAGS), 0);
	c.send(read);
	c.expect_silence();
	expect_state(c.end, IBV_QPS_RTS);
}

/* 9.7.5.1: the same for a key that was withdrawn */
TEST_F(WireResponder, DuplicateReadWithoutKey)
{
	WireConn c = connect();
	Mr other(ibv_reg_mr(pd, c.end.mem.data(), 4096, kAllAccess));

	ASSERT_TRUE(other);
	const WirePacket read = c.request(HERALD_BTH_RC_RDMA_READ_REQUEST).at(c.end.mem.addr(), other->rkey, 600);
	c.send_next(read, 3);
	for (int i = 0; i < 3; i++)
		c.next();
	other.reset();
	c.send(read);
	c.expect_silence();
	expect_state(c.end, IBV_QPS_RTS);
}

/* 9.4.5, 9.7.5.1: a duplicate atomic is answered with the value that was saved, and not executed. */
TEST_F(WireResponder, DuplicateAtomic)
{
	WireConn c = connect();
	auto *word = reinterpret_cast<uint64_t *>(c.end.mem.data());
	const WirePacket add = c.request(HERALD_BTH_RC_FETCH_ADD).at(c.end.mem, 0, 0).operands(5);

	*word = 100;
	c.send_next(add);
	EXPECT_EQ(c.next(HERALD_BTH_RC_ATOMIC_ACKNOWLEDGE).h.atomic_orig, 100u);
	const WirePacket swap = c.request(HERALD_BTH_RC_COMPARE_SWAP).at(c.end.mem, 0, 0).operands(1, 105);
	c.send_next(swap);
	EXPECT_EQ(c.next(HERALD_BTH_RC_ATOMIC_ACKNOWLEDGE).h.atomic_orig, 105u);
	for (int i = 0; i < 2; i++) {
		c.send(add);
		WirePacket p = c.next(HERALD_BTH_RC_ATOMIC_ACKNOWLEDGE);
		EXPECT_EQ(p.h.atomic_orig, 100u);
		EXPECT_EQ(p.h.psn, 1000u);
		c.send(swap);
		p = c.next(HERALD_BTH_RC_ATOMIC_ACKNOWLEDGE);
		EXPECT_EQ(p.h.atomic_orig, 105u);
		EXPECT_EQ(p.h.psn, 1001u);
	}
	EXPECT_EQ(*word, 1u);
	/* no such one was ever executed */
	c.send(c.packet(HERALD_BTH_RC_COMPARE_SWAP, 1000).at(c.end.mem, 0, 0).operands(9, 1));
	c.expect_silence();
	EXPECT_EQ(*word, 1u);
}

/* 10.3.1, 11.6.3: INIT hears nothing, in RTR the first packet raises COMM_EST, ERR hears nothing. */
TEST_F(WireResponder, StatesOfTheQp)
{
	WireConn c = connect();
	const WirePacket write = c.request(HERALD_BTH_RC_RDMA_WRITE_ONLY).ask();

	modify(c.end, IBV_QPS_RESET);
	to_init(c.end, c.options.path);
	uint64_t before = counter("peer_not_ready");
	c.send(write);
	expect_counted("peer_not_ready", before);
	modify(c.end, c.rtr());
	c.send_next(write);
	c.expect_ack(1000, 1);
	expect_qp_event(IBV_EVENT_COMM_EST, c);
	c.expect_silence();
	expect_no_async(ground->dev, Millis(0));
	to_error(c.end);
	before = counter("peer_not_ready");
	c.send(c.request(HERALD_BTH_RC_RDMA_WRITE_ONLY).ask());
	expect_counted("peer_not_ready", before);
	EXPECT_TRUE(c.drain().empty());
}
