/* SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB */
/*
 * Several packets that arrive as one (docs/design.md): each of them is what it would be alone. Packets of one kind in a
 * row are taken together, but for those that are damaged or were taken before.
 */
#include "wire_test.h"

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
