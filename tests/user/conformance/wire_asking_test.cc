/* SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB */
/* Which packets of the requester on the wire ask for an answer (IBTA vol. 1, 9.2, AckReq): few, for each costs a packet. */
#include "wire_requester.h"

using namespace conformance;

namespace {

/* In packets of 256 bytes: a long message asks for an answer each time that so many were sent (docs/design.md, the wire). */
constexpr uint32_t kAnswered = (1 << 20) / 256 / 8;
constexpr uint32_t kLong = 2 * kAnswered + 100;

/* Meanwhile packets travel alone. */
class WithoutTrains {
public:
	explicit WithoutTrains(const std::string &netdev) : netdev_(netdev) { set(1); }
	~WithoutTrains() { set(65535); }
	WithoutTrains(const WithoutTrains &) = delete;

private:
	void set(int most) const
	{
		const std::string command = "ip link set " + netdev_ + " gso_max_segs " + std::to_string(most);

		EXPECT_EQ(system(command.c_str()), 0) << command;
	}

	std::string netdev_;
};

} // namespace

/* The packets of a message that is posted, of which all but some do not ask. */
class WireAsking : public WireRequester {
protected:
	static WireOptions options()
	{
		WireOptions o;

		o.qp.memory = kLong * 256;
		return o;
	}
	/* Which of them ask, counted from 1 */
	static std::vector<uint32_t> asking(WireConn &c, ibv_wr_opcode opcode, uint32_t first, uint32_t length)
	{
		const uint32_t n = (length + 255) / 256;
		std::vector<uint32_t> all;

		Send(opcode, 1).from(c.end.mem, 0, length).to(0x1000, 1).post(c.end);
		for (uint32_t i = 1; i <= n; i++) {
			const WirePacket p = c.next();

			EXPECT_EQ(p.h.psn, first + i - 1);
			if (p.h.ack_req)
				all.push_back(i);
		}
		c.ack(first + n - 1);
		expect_ok(c.end.scq, 1);
		return all;
	}
};

/* 9.2, AckReq: the end of a message asks, and not its first packet, though a WRITE's is not in one train with all others. */
TEST_F(WireAsking, AtTheEnd)
{
	WireConn c = connect(options());

	EXPECT_EQ(asking(c, IBV_WR_RDMA_WRITE, 5000, 700), std::vector<uint32_t>{3});
	EXPECT_EQ(asking(c, IBV_WR_SEND, 5003, 700), std::vector<uint32_t>{3});
	EXPECT_EQ(asking(c, IBV_WR_RDMA_WRITE, 5006, 300), std::vector<uint32_t>{2});
	EXPECT_EQ(asking(c, IBV_WR_RDMA_WRITE, 5008, 8), std::vector<uint32_t>{1});
}

/* 9.2, AckReq: a long one asks several times in a window, at the ends of trains, lest that is full before there is an answer. */
TEST_F(WireAsking, SeveralTimesInAWindow)
{
	WireConn c = connect(options());
	uint32_t psn = 5000;

	for (ibv_wr_opcode opcode : {IBV_WR_RDMA_WRITE, IBV_WR_SEND}) {
		const std::vector<uint32_t> all = asking(c, opcode, psn, kLong * 256);

		ASSERT_EQ(all.size(), 3u);
		EXPECT_GE(all[0], kAnswered);
		EXPECT_LT(all[0], 2 * kAnswered);
		EXPECT_GE(all[1], 2 * kAnswered);
		EXPECT_EQ(all[2], kLong);
		psn += kLong;
	}
}

/* ... and an interface that takes no trains does not make it more often. */
TEST_F(WireAsking, PacketsThatTravelAlone)
{
	const WithoutTrains alone(ground->peer->netdev());
	WireConn c = connect(options());
	const uint64_t before = counter("wire_tx_trains");
	const std::vector<uint32_t> some = {kAnswered, 2 * kAnswered, kLong};

	EXPECT_EQ(asking(c, IBV_WR_RDMA_WRITE, 5000, kLong * 256), some);
	EXPECT_EQ(asking(c, IBV_WR_SEND, 5000 + kLong, kLong * 256), some);
	EXPECT_EQ(counter("wire_tx_trains") - before, 2 * kLong);
}

/* ... and what is sent again asks with each train: 9.7.6.1.3 counts retries until there is an answer, to whatever part. */
TEST_F(WireAsking, WhatIsSentAgain)
{
	WireOptions o = options();

	o.path.timeout = 17;
	WireConn c = connect(o);
	Send(IBV_WR_RDMA_WRITE, 1).from(c.end.mem, 0, 700).to(0x1000, 1).post(c.end);
	for (const std::array<bool, 3> &asks : {std::array<bool, 3>{false, false, true}, {false, true, true}})
		for (uint32_t i = 0; i < 3; i++) {
			const WirePacket p = c.next();

			EXPECT_EQ(p.h.psn, 5000 + i);
			EXPECT_EQ(p.h.ack_req, asks[i]) << "packet " << i;
		}
	c.ack(5002);
	expect_ok(c.end.scq, 1);
}
