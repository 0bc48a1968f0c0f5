/* SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB */
/*
 * Several packets that arrive as one (docs/design.md): each of them is what it would be alone. Packets of one kind in a
 * row are taken together, but for those that are damaged or were taken before.
 */
#include "wire_test.h"

#include <set>

using namespace conformance;

class WireTrain : public WireTest, public ::testing::WithParamInterface<bool> {
protected:
	static constexpr uint32_t kPackets = 24;

	/* All packets of one SEND, the last of 100 bytes. */
	static std::vector<WirePacket> message(const WireConn &c, const Bytes &data)
	{
		std::vector<WirePacket> all;

		for (uint32_t i = 0; i < kPackets; i++) {
			const bool last = i + 1 == kPackets;
			const auto from = data.begin() + i * 256;
			const uint8_t opcode = last ? HERALD_BTH_RC_SEND_LAST
					       : i  ? HERALD_BTH_RC_SEND_MIDDLE
						    : HERALD_BTH_RC_SEND_FIRST;

			all.push_back(c.packet(opcode, 1000 + i).with({from, last ? data.end() : from + 256}));
			all.back().h.ack_req = last;
		}
		return all;
	}
	static Bytes contents() { return some_bytes((kPackets - 1) * 256 + 100); }
	void send(const std::vector<WirePacket> &all, uint32_t from, uint32_t to)
	{
		ground->peer->send_train({all.begin() + from, all.begin() + to}, GetParam());
	}
	void expect_whole(const WireConn &c, const Bytes &data)
	{
		EXPECT_EQ(expect_ok(c.end.rcq, 1).byte_len, data.size());
		EXPECT_EQ(differs(c.end.mem.data(), data.data(), data.size()), -1);
		expect_empty(c.end.rcq);
	}
};

INSTANTIATE_TEST_SUITE_P(Wire, WireTrain, ::testing::Bool(),
			 [](const auto &info) { return info.param ? "InPieces" : "InOnePiece"; });

TEST_P(WireTrain, Message)
{
	WireConn c = connect();
	const Bytes data = contents();
	const uint64_t trains = counter("wire_rx_trains"), packets = counter("wire_rx_packets");
	const uint64_t copied = counter("wire_rx_copied");

	recv(c.end, c.end.mem, 0, 16384, 1);
	send(message(c, data), 0, kPackets);
	c.expect_ack(1000 + kPackets - 1, 1);
	expect_whole(c, data);
	EXPECT_EQ(counter("wire_rx_trains") - trains, 1u) << "it does not come as one";
	EXPECT_EQ(counter("wire_rx_packets") - packets, kPackets);
	EXPECT_EQ(counter("wire_rx_copied") - copied, GetParam() ? 1u : 0u);
}

/* A17: what is damaged is as if lost: what is before it is taken, one NAK asks for it. */
TEST_P(WireTrain, DamagedInTheMiddle)
{
	WireConn c = connect();
	const Bytes data = contents();
	std::vector<WirePacket> all = message(c, data);
	const uint64_t before = counter("icrc_dropped");

	recv(c.end, c.end.mem, 0, 16384, 1);
	all[9].damage = 1;
	all[15].damage = 1;
	send(all, 0, kPackets);
	c.expect_aeth(HERALD_AETH_NAK_SEQUENCE, 1009, 0);
	expect_counted("icrc_dropped", before, 2);
	all[9].damage = 0;
	all[15].damage = 0;
	/* some that were taken, and all that were not */
	send(all, 4, kPackets);
	c.expect_ack(1000 + kPackets - 1, 1);
	expect_whole(c, data);
}

/* Damage at the beginning does not hide the rest; a train of duplicates alone is acknowledged. */
TEST_P(WireTrain, DamagedAtTheEnds)
{
	WireConn c = connect();
	const Bytes data = contents();
	std::vector<WirePacket> all = message(c, data);

	recv(c.end, c.end.mem, 0, 16384, 1);
	all[0].damage = 1;
	send(all, 0, kPackets);
	c.expect_aeth(HERALD_AETH_NAK_SEQUENCE, 1000, 0);
	all[0].damage = 0;
	all[kPackets - 1].damage = 1;
	send(all, 0, kPackets);
	all[kPackets - 1].damage = 0;
	send(all, 3, kPackets);
	c.expect_ack(1000 + kPackets - 1, 1);
	expect_whole(c, data);
	send(all, 0, kPackets);
	c.expect_ack(1000 + kPackets - 1, 1);
	expect_empty(c.end.rcq);
}

/* 9.7.5.2: the NAK names the packet that is too much for the message; those before it are executed. */
TEST_P(WireTrain, MoreThanTheWriteIsLong)
{
	WireConn c = connect();
	std::vector<WirePacket> all;

	c.end.mem.clear();
	/* one FIRST and nine MIDDLEs leave 100 bytes for the LAST */
	all.push_back(c.packet(HERALD_BTH_RC_RDMA_WRITE_FIRST, 1000).at(c.end.mem, 0, 2660).with(some_bytes(256, 0)));
	for (uint32_t i = 1; i < kPackets; i++)
		all.push_back(c.packet(HERALD_BTH_RC_RDMA_WRITE_MIDDLE, 1000 + i).with(some_bytes(256, i)));
	c.send(all[0]);
	send(all, 1, kPackets);
	c.expect_aeth(HERALD_AETH_NAK_INVALID_REQUEST, 1010, 0);
	expect_qp_event(IBV_EVENT_QP_REQ_ERR, c);
	expect_error_state(c);
	for (uint32_t i = 0; i < 10; i++)
		EXPECT_EQ(differs(c.end.mem.data() + i * 256, all[i].payload.data(), 256), -1) << "packet " << i;
	EXPECT_TRUE(all_bytes(c.end.mem.data() + 2560, 4096, 0)) << "beyond the message";
}

/* 9.7.4.1: as does the one that is too much for the receive WR. */
TEST_P(WireTrain, MoreThanTheReceiveTakes)
{
	WireConn c = connect();
	const Bytes data = contents();
	const std::vector<WirePacket> all = message(c, data);

	c.end.mem.clear();
	recv(c.end, c.end.mem, 0, 2560, 1);
	send(all, 0, kPackets);
	/* ten packets would fill it, and one more has to follow */
	c.expect_aeth(HERALD_AETH_NAK_INVALID_REQUEST, 1009, 0);
	expect_wc(c.end.rcq, IBV_WC_LOC_LEN_ERR, 1);
	expect_error_state(c);
	EXPECT_EQ(differs(c.end.mem.data(), data.data(), 9 * 256), -1);
	EXPECT_TRUE(all_bytes(c.end.mem.data() + 2560, 4096, 0)) << "beyond the receive WR";
}

/* One that makes no sense ends the connection, and does not hide behind the others. */
TEST_P(WireTrain, ReservedOpcodeInTheMiddle)
{
	WireConn c = connect();
	const Bytes data = contents();
	std::vector<WirePacket> all = message(c, data);

	recv(c.end, c.end.mem, 0, 16384, 1);
	all[9].h.opcode = 0x1f;
	send(all, 0, kPackets);
	c.expect_aeth(HERALD_AETH_NAK_INVALID_REQUEST, 1009, 0);
	expect_qp_event(IBV_EVENT_QP_REQ_ERR, c);
	expect_wc(c.end.rcq, IBV_WC_REM_INV_REQ_ERR, 1);
	EXPECT_EQ(differs(c.end.mem.data(), data.data(), 9 * 256), -1);
}

/* ---------------------------------------------- READs and atomics in a train -- */

/* 9.9.3: no more of them than the responder has resources for may wait for their answers. */
TEST_P(WireTrain, TooManyAtomics)
{
	WireOptions o;
	o.path.rd_atomic = 3;
	WireConn c = connect(o);
	auto *word = reinterpret_cast<uint64_t *>(c.end.mem.data());
	std::vector<WirePacket> all;

	*word = 0;
	for (uint32_t i = 0; i < 7; i++)
		all.push_back(c.packet(HERALD_BTH_RC_FETCH_ADD, 1000 + i).at(c.end.mem, 0, 0).operands(1));
	/* three at a time are as many as agreed upon */
	send(all, 0, 3);
	for (uint64_t i = 0; i < 3; i++)
		EXPECT_EQ(c.next(HERALD_BTH_RC_ATOMIC_ACKNOWLEDGE).h.atomic_orig, i);
	send(all, 3, 7);
	for (uint64_t i = 3; i < 6; i++)
		EXPECT_EQ(c.next(HERALD_BTH_RC_ATOMIC_ACKNOWLEDGE).h.atomic_orig, i);
	c.expect_aeth(HERALD_AETH_NAK_INVALID_REQUEST, 1006, 6);
	expect_qp_event(IBV_EVENT_QP_REQ_ERR, c);
	expect_error_state(c);
	EXPECT_EQ(*word, 6u);
}

TEST_P(WireTrain, TooManyReads)
{
	WireOptions o;
	o.path.rd_atomic = 2;
	WireConn c = connect(o);
	std::vector<WirePacket> all;

	for (uint32_t i = 0; i < 3; i++)
		all.push_back(c.packet(HERALD_BTH_RC_RDMA_READ_REQUEST, 1000 + 3 * i).at(c.end.mem, 0, 600));
	send(all, 0, 3);
	for (uint32_t i = 0; i < 6; i++)
		EXPECT_EQ(c.next().h.psn, 1000 + i);
	c.expect_aeth(HERALD_AETH_NAK_INVALID_REQUEST, 1006, 2);
	expect_qp_event(IBV_EVENT_QP_REQ_ERR, c);
	expect_error_state(c);
}

/* 9.7.5.1: a duplicate takes none of the resources. */
TEST_P(WireTrain, DuplicatesAreNotTooMany)
{
	WireOptions o;
	o.path.rd_atomic = 1;
	WireConn c = connect(o);
	const WirePacket add = c.request(HERALD_BTH_RC_FETCH_ADD).at(c.end.mem, 0, 0).operands(1);

	c.send_next(add);
	EXPECT_EQ(c.next(HERALD_BTH_RC_ATOMIC_ACKNOWLEDGE).h.psn, 1000u);
	send({add, add, add, add}, 0, 4);
	for (int i = 0; i < 4; i++)
		EXPECT_EQ(c.next(HERALD_BTH_RC_ATOMIC_ACKNOWLEDGE).h.psn, 1000u);
	c.send_next(c.request(HERALD_BTH_RC_RDMA_READ_REQUEST).at(c.end.mem, 0, 8));
	c.next(HERALD_BTH_RC_RDMA_READ_RESPONSE_ONLY);
	c.expect_silence();
}

/*
 * docs/design.md: a peer that asks for much does not keep the CPU that it arrives at: what comes while the rest of a turn
 * waits for the work item waits for it, too. All of it is answered, once. (A response in between makes runs of the requests.)
 */
TEST_P(WireTrain, MuchIsLeftToTheWorkItem)
{
	constexpr uint32_t kLength = 300000, kResponses = (kLength + 1023) / 1024;
	const uint64_t before = counter("wire_deferred");
	WireOptions o;
	o.path.mtu = IBV_MTU_1024;
	WireConn c = connect(o);
	const Region much(pd, kLength);
	const auto end = Clock::now() + patience();

	/* somewhere else the work item may have begun already */
	while (counter("wire_deferred") == before && Clock::now() < end) {
		const WirePacket ghost = c.packet(HERALD_BTH_RC_RDMA_READ_RESPONSE_ONLY, 5000).with(12);
		std::vector<WirePacket> all;

		for (int i = 0; i < 3; i++) {
			all.push_back(c.request(HERALD_BTH_RC_RDMA_READ_REQUEST).at(much, 0, kLength));
			all.push_back(ghost);
			c.psn += kResponses;
			c.msn++;
		}
		const uint32_t first = all[0].h.psn;
		send(all, 0, 6);
		/* what two CPUs send one after the other may arrive the other way round */
		std::set<uint32_t> places;
		for (uint32_t i = 0; i < 3 * kResponses; i++)
			places.insert((c.next().h.psn - first) & HERALD_PSN_MASK);
		EXPECT_EQ(places.size(), 3 * kResponses);
		EXPECT_EQ(*places.rbegin(), 3 * kResponses - 1);
	}
	EXPECT_GT(counter("wire_deferred"), before);
	c.expect_silence();
}

/* Messages of one packet each, of more than there are receive WRs: RNR NAK, once. */
TEST_P(WireTrain, ReceiverNotReadyHalfWay)
{
	WireConn c = connect();
	std::vector<WirePacket> all;

	for (uint32_t i = 0; i < kPackets; i++)
		all.push_back(c.packet(HERALD_BTH_RC_SEND_ONLY, 1000 + i).with(some_bytes(200, i)).ask());
	for (uint64_t i = 0; i < 5; i++)
		recv(c.end, c.end.mem, i * 256, 256, i);
	send(all, 0, kPackets);
	WirePacket p = c.next(HERALD_BTH_RC_ACKNOWLEDGE);
	/* those before may be acknowledged, or the NAK says it */
	if (p.h.syndrome == HERALD_AETH_NO_CREDITS)
		p = c.next(HERALD_BTH_RC_ACKNOWLEDGE);
	EXPECT_EQ(p.h.syndrome, HERALD_AETH_RNR | 1) << p.text();
	EXPECT_EQ(p.h.psn, 1005u);
	EXPECT_EQ(p.h.msn, 5u);
	EXPECT_TRUE(c.drain().empty());
	for (uint64_t i = 5; i < kPackets; i++)
		recv(c.end, c.end.mem, i * 256, 256, i);
	send(all, 5, kPackets);
	c.expect_ack(1000 + kPackets - 1, kPackets);
	for (uint64_t i = 0; i < kPackets; i++) {
		expect_ok(c.end.rcq, i);
		EXPECT_EQ(differs(c.end.mem.data() + i * 256, all[i].payload.data(), 200), -1);
	}
}
