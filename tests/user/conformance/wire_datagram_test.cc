/* SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB */
/* Datagrams on the wire (IBTA vol. 1, 9.8.3, annex A17): what is heard, what is not, and what they look like. */
#include "wire_test.h"

#include <arpa/inet.h>
#include <netinet/ip.h>

using namespace conformance;

class WireDatagram : public WireTest, public ::testing::WithParamInterface<Family> {
protected:
	static constexpr uint32_t kQkey = 0x11223344;
	static constexpr size_t kGrh = 40;

	void SetUp() override
	{
		WireTest::SetUp();
		if (IsSkipped())
			return;
		path.gid_index = WireConn::gid_index(ground->dev, GetParam());
		path.qkey = kQkey;
		options.type = IBV_QPT_UD;
	}
	void send(const UdEnd &end, const WirePacket &packet)
	{
		WirePacket p = packet;

		p.h.dest_qpn = end.num();
		ground->peer->send(GetParam(), p);
	}
	static WirePacket datagram(size_t n)
	{
		WirePacket p;

		p.h.opcode = HERALD_BTH_UD_SEND_ONLY;
		p.h.pkey = 0xffff;
		p.h.qkey = kQkey;
		p.h.src_qpn = 0x4567;
		p.h.psn = 99;
		return p.with(n);
	}

	Path path;
	QpOptions options;
};

INSTANTIATE_TEST_SUITE_P(Wire, WireDatagram, ::testing::Values(Family::v4, Family::v6),
			 [](const auto &info) { return info.param == Family::v4 ? "IPv4" : "IPv6"; });

/* 9.8.3, A17.4.5.2: the data is behind 40 bytes, of which the last are IPv4's header. */
TEST_P(WireDatagram, Arrives)
{
	UdEnd end(ground->dev, pd, options, path);
	const Bytes data = some_bytes(61);

	recv(end, end.mem, 0, 4096, 1);
	send(end, datagram(61));
	const ibv_wc wc = expect_ok(end.rcq, 1);
	EXPECT_EQ(wc.byte_len, 61 + kGrh);
	EXPECT_EQ(wc.src_qp, 0x4567u);
	EXPECT_TRUE(wc.wc_flags & IBV_WC_GRH);
	EXPECT_EQ(differs(end.mem.data() + kGrh, data.data(), data.size()), -1);
	const ibv_gid peer = WirePeer::own_gid(GetParam()), own = WirePeer::device_gid(GetParam());
	if (GetParam() == Family::v4) {
		EXPECT_EQ(end.mem.data()[20], 0x45);
		EXPECT_EQ(memcmp(end.mem.data() + 20 + 12, peer.raw + 12, 4), 0);
		EXPECT_EQ(memcmp(end.mem.data() + 20 + 16, own.raw + 12, 4), 0);
	} else {
		EXPECT_EQ(end.mem.data()[0] >> 4, 6);
		EXPECT_EQ(memcmp(end.mem.data() + 8, peer.raw, 16), 0);
		EXPECT_EQ(memcmp(end.mem.data() + 24, own.raw, 16), 0);
	}
}

/* 9.6.1, 9.8.3: another key or partition, another service, no receive WR, one that is too short: silence. */
TEST_P(WireDatagram, Dropped)
{
	UdEnd end(ground->dev, pd, options, path);
	const auto expect_dropped = [&](const WirePacket &p, const std::string &name) {
		const uint64_t before = counter(name);

		send(end, p);
		expect_counted(name, before);
	};
	WirePacket p = datagram(8);

	expect_dropped(p, "ud_dropped_no_recv");
	recv(end, end.mem, 0, kGrh + 100, 1);
	p.h.qkey ^= 1;
	expect_dropped(p, "ud_dropped_qkey");
	p = datagram(8);
	p.h.pkey = 0x8001;
	expect_dropped(p, "ud_dropped_pkey");
	p = datagram(8);
	p.h.opcode = HERALD_BTH_RC_SEND_ONLY;
	expect_dropped(p, "wire_wrong_service");
	p = datagram(8);
	p.damage = 1;
	expect_dropped(p, "icrc_dropped");
	expect_dropped(datagram(101), "ud_dropped_too_long");
	expect_empty(end.rcq);
	/* the receive WR is there still, for whoever fits */
	send(end, datagram(100));
	EXPECT_EQ(expect_ok(end.rcq, 1).byte_len, 100 + kGrh);
}

/* 9.8.3: DETH and all: the Q_Key of the WR (10.2.5), the own QPN, a PSN that goes up. */
TEST_P(WireDatagram, LooksRight)
{
	UdEnd end(ground->dev, pd, options, path);
	const Ah ah = make_ah(ground->dev, pd, path.gid_index, WirePeer::own_gid(GetParam()));

	end.mem.fill(5);
	for (uint32_t i = 0; i < 2; i++) {
		Send(IBV_WR_SEND_WITH_IMM, i).from(end.mem, 0, 33).imm(7).ud(ah, 0x123455, 0x777).post(end);
		expect_ok(end.scq, i);
		auto p = ground->peer->receive(GetParam(), 0x123455, patience());
		ASSERT_TRUE(p);
		EXPECT_EQ(p->h.opcode, HERALD_BTH_UD_SEND_ONLY_WITH_IMM);
		EXPECT_EQ(p->h.qkey, 0x777u);
		EXPECT_EQ(p->h.src_qpn, end.num());
		EXPECT_EQ(ntohl(p->h.imm), 7u);
		EXPECT_EQ(p->h.pkey, 0xffff);
		EXPECT_EQ(p->h.psn, i);
		ASSERT_EQ(p->payload.size(), 33u);
		EXPECT_EQ(differs(p->payload.data(), end.mem.data(), 33), -1);
	}
}
