/* SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB */
/* Datagrams: the 40 bytes before the payload, Q_Keys, MTU, silent loss; multicast. */
#include "pair.h"

#include <fstream>
#include <thread>

#include <arpa/inet.h>
#include <netinet/ip.h>
#include <netinet/ip6.h>

using namespace conformance;

namespace {
constexpr uint32_t kGrh = 40;
constexpr uint32_t kQkey = 0x11111111;
} // namespace

class UdTest : public Verbs {
protected:
	UdEnd make_end(const Path &path = {}) { return UdEnd(dev, pd, {}, path); }
	Send datagram(UdEnd &from, UdEnd &to, uint32_t len, uint64_t id = 1)
	{
		Send s(IBV_WR_SEND, id);

		s.from(from.mem, 0, len).ud(from.self, to.num(), kQkey);
		return s;
	}
	uint32_t mtu() const { return 128u << dev.port.active_mtu; }
	void expect_works(UdEnd &from, UdEnd &to)
	{
		recv(to, to.mem, 0, 256, 900);
		datagram(from, to, 16, 901).post(from);
		expect_ok(from.scq, 901);
		expect_ok(to.rcq, 900);
	}
};

/* ibv_poll_cq(3), IBTA 11.4.2.1: src_qp, GRH flag, byte_len with the 40 bytes. */
TEST_F(UdTest, CompletionFields)
{
	UdEnd a = make_end(), b = make_end();

	a.mem.fill(1);
	recv(b, b.mem, 0, 4096, 7);
	datagram(a, b, 100, 8).post(a);
	EXPECT_EQ(expect_ok(a.scq, 8).opcode, IBV_WC_SEND);
	ibv_wc wc = expect_ok(b.rcq, 7);
	EXPECT_EQ(wc.opcode, IBV_WC_RECV);
	EXPECT_EQ(wc.byte_len, 100 + kGrh);
	EXPECT_EQ(wc.src_qp, a.num());
	EXPECT_EQ(wc.qp_num, b.num());
	EXPECT_EQ(wc.wc_flags, (unsigned int)IBV_WC_GRH);
	EXPECT_EQ(wc.pkey_index, 0);
	EXPECT_EQ(differs(a.mem.data(), b.mem.data() + kGrh, 100), -1);
}

TEST_F(UdTest, Immediate)
{
	UdEnd a = make_end(), b = make_end();

	recv(b, b.mem, 0, 4096, 7);
	Send(IBV_WR_SEND_WITH_IMM, 8).from(a.mem, 0, 5).imm(0xabcdef01).ud(a.self, b.num(), kQkey).post(a);
	expect_ok(a.scq, 8);
	ibv_wc wc = expect_ok(b.rcq, 7);
	EXPECT_EQ(wc.wc_flags, (unsigned int)(IBV_WC_GRH | IBV_WC_WITH_IMM));
	EXPECT_EQ(ntohl(wc.imm_data), 0xabcdef01u);
}

/* RoCEv2 (IBTA annex A17.4.5.1): with IPv4 the header is in the last 20 of the 40 bytes. */
TEST_F(UdTest, HeaderOfIpv4)
{
	auto index = dev.find_gid(Family::v4);

	if (!index)
		GTEST_SKIP() << "no IPv4 GID";
	Path path;
	path.gid_index = *index;
	UdEnd a = make_end(path), b = make_end(path);
	recv(b, b.mem, 0, 4096, 1);
	datagram(a, b, 64).post(a);
	expect_ok(b.rcq, 1);
	iphdr ip{};
	memcpy(&ip, b.mem.data() + 20, sizeof(ip));
	EXPECT_EQ(ip.version, 4u);
	EXPECT_EQ(ip.ihl, 5u);
	EXPECT_EQ(ip.protocol, IPPROTO_UDP);
	EXPECT_EQ(memcmp(&ip.saddr, dev.gid(*index).raw + 12, 4), 0);
	EXPECT_EQ(memcmp(&ip.daddr, dev.gid(*index).raw + 12, 4), 0);
	EXPECT_GT(ntohs(ip.tot_len), 64u + 20u);
	poll_one(a.scq);
}

TEST_F(UdTest, HeaderOfIpv6)
{
	auto index = dev.find_gid(Family::v6);

	if (!index)
		GTEST_SKIP() << "no IPv6 GID";
	Path path;
	path.gid_index = *index;
	UdEnd a = make_end(path), b = make_end(path);
	recv(b, b.mem, 0, 4096, 1);
	datagram(a, b, 64).post(a);
	expect_ok(b.rcq, 1);
	ip6_hdr ip{};
	memcpy(&ip, b.mem.data(), sizeof(ip));
	EXPECT_EQ(ip.ip6_vfc >> 4, 6);
	EXPECT_EQ(ip.ip6_nxt, IPPROTO_UDP);
	EXPECT_EQ(memcmp(&ip.ip6_src, dev.gid(*index).raw, 16), 0);
	EXPECT_EQ(memcmp(&ip.ip6_dst, dev.gid(*index).raw, 16), 0);
	poll_one(a.scq);
}

/* ibv_init_ah_from_wc(3), ibv_create_ah_from_wc(3): the answer finds its way back. */
TEST_F(UdTest, AnswerByWc)
{
	for (Family family : {Family::v4, Family::v6}) {
		auto index = dev.find_gid(family);

		if (!index)
			continue;
		Path path;
		path.gid_index = *index;
		UdEnd a = make_end(path), b = make_end(path);
		recv(b, b.mem, 0, 4096, 1);
		recv(a, a.mem, 4096, 4096, 2);
		datagram(a, b, 64).post(a);
		ibv_wc wc = expect_ok(b.rcq, 1);
		ibv_grh grh;
		memcpy(&grh, b.mem.data(), sizeof(grh));
		Ah back(ibv_create_ah_from_wc(pd, &wc, &grh, 1));
		ASSERT_NE(back.get(), nullptr) << strerror(errno);
		Send(IBV_WR_SEND, 3).from(b.mem, 0, 20).ud(back, wc.src_qp, kQkey).post(b);
		expect_ok(b.scq, 3);
		EXPECT_EQ(expect_ok(a.rcq, 2).src_qp, b.num());
		poll_one(a.scq);
	}
}

TEST_F(UdTest, SizesUpToTheMtu)
{
	UdEnd a = make_end(), b = make_end();

	a.mem.fill(2);
	for (uint32_t len : {0u, 1u, 63u, 64u, 65u, 255u, 256u, mtu() - 1, mtu()}) {
		recv(b, b.mem, 0, mtu() + kGrh, 1);
		datagram(a, b, len).post(a);
		expect_ok(a.scq, 1);
		EXPECT_EQ(expect_ok(b.rcq, 1).byte_len, len + kGrh);
		EXPECT_EQ(differs(a.mem.data(), b.mem.data() + kGrh, len), -1) << len;
	}
}

/* IBTA 10.7.2.2: longer than the MTU is a local length error; the send queue is in SQE, and comes back. */
TEST_F(UdTest, LongerThanTheMtu)
{
	UdEnd a = make_end(), b = make_end();

	recv(b, b.mem, 0, 65536, 1);
	datagram(a, b, mtu() + 1).post(a);
	expect_wc(a.scq, IBV_WC_LOC_LEN_ERR, 1);
	EXPECT_EQ(state_of(a), IBV_QPS_SQE);
	datagram(a, b, 16, 2).post(a);
	expect_wc(a.scq, IBV_WC_WR_FLUSH_ERR, 2);
	modify(a, state_attr(IBV_QPS_RTS));
	datagram(a, b, 16, 3).post(a);
	expect_ok(a.scq, 3);
	expect_ok(b.rcq, 1);
}

/* IBTA 9.8.3.3 (issue: an oversized datagram is dropped and the QP lives on). */
TEST_F(UdTest, TooLongForTheReceiveWrIsDropped)
{
	UdEnd a = make_end(), b = make_end();

	recv(b, b.mem, 0, kGrh + 10, 1);
	datagram(a, b, 11, 2).post(a);
	expect_ok(a.scq, 2);
	expect_stays_empty(b.rcq);
	EXPECT_EQ(state_of(b), IBV_QPS_RTS);
	/* the receive WR is still there for one that fits */
	datagram(a, b, 10, 3).post(a);
	expect_ok(a.scq, 3);
	EXPECT_EQ(expect_ok(b.rcq, 1).byte_len, kGrh + 10);
	expect_no_async(dev, Millis(0));
}

/* There has to be room for the 40 bytes, even if nothing follows. */
TEST_F(UdTest, NoRoomForTheHeader)
{
	UdEnd a = make_end(), b = make_end();

	recv(b, b.mem, 0, kGrh - 1, 1);
	datagram(a, b, 0, 2).post(a);
	expect_ok(a.scq, 2);
	expect_stays_empty(b.rcq);
	EXPECT_EQ(state_of(b), IBV_QPS_RTS);
}

/* IBTA 10.2.5: a wrong Q_Key is dropped; with the high bit set, the QP's own is sent. */
TEST_F(UdTest, Qkeys)
{
	UdEnd a = make_end(), b = make_end();

	recv(b, b.mem, 0, 4096, 1);
	for (uint32_t wrong : {0u, kQkey + 1, kQkey ^ 0x80}) {
		Send(IBV_WR_SEND, 2).from(a.mem, 0, 8).ud(a.self, b.num(), wrong).post(a);
		expect_ok(a.scq, 2);
	}
	expect_stays_empty(b.rcq);
	Send(IBV_WR_SEND, 3).from(a.mem, 0, 8).ud(a.self, b.num(), 0x80000000u).post(a);
	expect_ok(a.scq, 3);
	expect_ok(b.rcq, 1);
	/* the receiver's changes at once */
	Attr at = state_attr(IBV_QPS_RTS);
	at.mask |= IBV_QP_QKEY;
	at.a.qkey = 0x2222;
	modify(b, at);
	recv(b, b.mem, 0, 4096, 4);
	datagram(a, b, 8, 5).post(a);
	expect_ok(a.scq, 5);
	expect_stays_empty(b.rcq);
	Send(IBV_WR_SEND, 6).from(a.mem, 0, 8).ud(a.self, b.num(), 0x2222).post(a);
	expect_ok(a.scq, 6);
	expect_ok(b.rcq, 4);
}

/* The kernel's QP1 has a Q_Key that no process may send (IBTA 10.2.5): its datagrams stop there, and are counted. */
TEST_F(UdTest, NotToTheKernelsQp)
{
	const std::string name = "/sys/class/infiniband/" + dev.name + "/ports/1/hw_counters/ud_dropped_qkey";
	auto dropped = [&] {
		std::ifstream file(name);
		uint64_t n = 0;

		file >> n;
		return n;
	};
	UdEnd a = make_end();

	if (!std::ifstream(name))
		GTEST_SKIP() << "no counter " << name;
	const uint64_t before = dropped();
	const uint32_t keys[] = {0u, kQkey, 0x10000u, 0x80000000u, 0x80010000u};

	for (uint32_t qkey : keys) {
		Send(IBV_WR_SEND, 1).from(a.mem, 0, 256).ud(a.self, 1, qkey).post(a);
		expect_ok(a.scq, 1);
	}
	/* the core shows what is up to a tick old */
	for (auto end = Clock::now() + patience(); dropped() - before < std::size(keys) && Clock::now() < end;)
		std::this_thread::yield();
	EXPECT_EQ(dropped() - before, std::size(keys));
	EXPECT_EQ(state_of(a), IBV_QPS_RTS);
}

TEST_F(UdTest, NobodyThere)
{
	UdEnd a = make_end();

	Send(IBV_WR_SEND, 1).from(a.mem, 0, 8).ud(a.self, 0xfffff0, kQkey).post(a);
	expect_ok(a.scq, 1);
	/* a connected QP takes no datagrams */
	Pair p(dev, pd);
	recv(p.a, p.a.mem, 0, 4096, 9);
	Send(IBV_WR_SEND, 2).from(a.mem, 0, 8).ud(a.self, p.a.num(), kQkey).post(a);
	expect_ok(a.scq, 2);
	expect_stays_empty(p.a.rcq);
	/* an address that is nobody's */
	ibv_gid gid = dev.gid(dev.gid_index());
	if (dev.find_gid(Family::v4)) {
		gid = dev.gid(*dev.find_gid(Family::v4));
		gid.raw[15] ^= 0x55;
		ibv_ah_attr attr{};
		attr.is_global = 1;
		attr.port_num = 1;
		attr.grh.dgid = gid;
		attr.grh.sgid_index = static_cast<uint8_t>(*dev.find_gid(Family::v4));
		attr.grh.hop_limit = 64;
		Ah nobody(ibv_create_ah(pd, &attr));
		if (nobody) {
			Send(IBV_WR_SEND, 3).from(a.mem, 0, 8).ud(nobody, a.num(), kQkey).post(a);
			expect_ok(a.scq, 3);
		}
	}
	EXPECT_EQ(state_of(a), IBV_QPS_RTS);
}

TEST_F(UdTest, ReceiverInEveryState)
{
	UdEnd a = make_end();
	QpOptions o;
	o.type = IBV_QPT_UD;
	End b(dev, pd, o);
	auto knock = [&] {
		Send(IBV_WR_SEND, 1).from(a.mem, 0, 8).ud(a.self, b.num(), kQkey).post(a);
		expect_ok(a.scq, 1);
	};
	knock();
	to_init(b);
	recv(b, b.mem, 0, 4096, 1);
	recv(b, b.mem, 0, 4096, 2);
	knock();
	expect_stays_empty(b.rcq);
	to_rtr(dev, b, 0);
	knock();
	expect_ok(b.rcq, 1);
	to_error(b);
	expect_wc(b.rcq, IBV_WC_WR_FLUSH_ERR, 2);
	knock();
	expect_stays_empty(b.rcq);
}

/* Without a receive WR a datagram is lost; the next one is not. */
TEST_F(UdTest, NoReceiveWr)
{
	UdEnd a = make_end(), b = make_end();

	for (int i = 0; i < 10; i++)
		datagram(a, b, 8, i).post(a);
	for (int i = 0; i < 10; i++)
		expect_ok(a.scq, i);
	expect_works(a, b);
	expect_empty(b.rcq);
}

TEST_F(UdTest, OperationsItHasNot)
{
	UdEnd a = make_end();

	for (auto op : {IBV_WR_RDMA_WRITE, IBV_WR_RDMA_WRITE_WITH_IMM, IBV_WR_RDMA_READ, IBV_WR_ATOMIC_CMP_AND_SWP,
			IBV_WR_SEND_WITH_INV}) {
		EXPECT_EQ(Send(op).from(a.mem, 0, 8).ud(a.self, a.num(), kQkey).try_post(a), EINVAL) << op;
	}
	EXPECT_EQ(Send().from(a.mem, 0, 8).ud(nullptr, a.num(), kQkey).try_post(a), EINVAL);
	EXPECT_EQ(state_of(a), IBV_QPS_RTS);
}

/* 11.4.1.1: the address handle has to be of the QP's PD. */
TEST_F(UdTest, AddressHandleOfAnotherPd)
{
	UdEnd a = make_end(), b = make_end();
	Pd other = make_pd(dev);
	Ah ah = make_ah(dev, other, dev.gid_index(), dev.gid(dev.gid_index()));

	recv(b, b.mem, 0, 4096, 1);
	int rc = Send(IBV_WR_SEND, 2).from(a.mem, 0, 8).ud(ah, b.num(), kQkey).try_post(a);
	if (rc) {
		EXPECT_EQ(rc, EINVAL);
	} else {
		expect_wc(a.scq, IBV_WC_LOC_QP_OP_ERR, 2);
		EXPECT_EQ(state_of(a), IBV_QPS_SQE);
	}
	expect_stays_empty(b.rcq);
}

TEST_F(UdTest, SendToItself)
{
	UdEnd a = make_end();

	a.mem.fill(5, 0, 100);
	recv(a, a.mem, 8192, 4096, 1);
	datagram(a, a, 100, 2).post(a);
	expect_ok(a.scq, 2);
	expect_ok(a.rcq, 1);
	EXPECT_EQ(differs(a.mem.data(), a.mem.data() + 8192 + kGrh, 100), -1);
}
