/* SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB */
/* Multicast: ibv_attach_mcast(3); delivered to the members on this host. */
#include "pair.h"

#include <arpa/inet.h>

using namespace conformance;

namespace {
constexpr uint32_t kGrh = 40;
constexpr uint32_t kQkey = 0x11111111;
constexpr uint32_t kMulticastQpn = 0xffffff;
} // namespace

class McastTest : public Verbs {
protected:
	static ibv_gid group(const char *text)
	{
		ibv_gid gid{};

		EXPECT_EQ(inet_pton(AF_INET6, text, gid.raw), 1);
		return gid;
	}
	UdEnd make_end() { return UdEnd(dev, pd); }
	Ah to(const ibv_gid &gid) { return make_ah(dev, pd, dev.gid_index(), gid); }
	void cast(UdEnd &from, ibv_ah *ah, uint64_t id = 1)
	{
		Send(IBV_WR_SEND, id).from(from.mem, 0, 64).ud(ah, kMulticastQpn, kQkey).post(from);
		expect_ok(from.scq, id);
	}
	/* of the family of the GID that is used */
	ibv_gid some_group() { return group(dev.find_gid(Family::v4) ? "::ffff:239.1.2.3" : "ff0e::1234"); }
};

TEST_F(McastTest, EveryMemberGetsACopy)
{
	UdEnd from = make_end(), one = make_end(), two = make_end(), stranger = make_end();
	ibv_gid gid = some_group();
	Ah ah = to(gid);

	ASSERT_EQ(ibv_attach_mcast(one.qp, &gid, 0), 0);
	ASSERT_EQ(ibv_attach_mcast(two.qp, &gid, 0), 0);
	from.mem.fill(1);
	for (UdEnd *e : {&one, &two, &stranger})
		recv(*e, e->mem, 0, 4096, 5);
	cast(from, ah);
	for (UdEnd *e : {&one, &two}) {
		ibv_wc wc = expect_ok(e->rcq, 5);
		EXPECT_EQ(wc.byte_len, 64 + kGrh);
		EXPECT_EQ(wc.src_qp, from.num());
		EXPECT_TRUE(wc.wc_flags & IBV_WC_GRH);
		EXPECT_EQ(differs(from.mem.data(), e->mem.data() + kGrh, 64), -1);
	}
	expect_stays_empty(stranger.rcq);
	EXPECT_EQ(ibv_detach_mcast(one.qp, &gid, 0), 0);
	recv(one, one.mem, 0, 4096, 6);
	recv(two, two.mem, 0, 4096, 6);
	cast(from, ah);
	expect_ok(two.rcq, 6);
	expect_stays_empty(one.rcq);
	EXPECT_EQ(ibv_detach_mcast(two.qp, &gid, 0), 0);
	cast(from, ah);
}

TEST_F(McastTest, GroupsAreSeparate)
{
	UdEnd from = make_end(), member = make_end();
	bool v4 = dev.find_gid(Family::v4).has_value();
	ibv_gid one = group(v4 ? "::ffff:239.1.1.1" : "ff0e::1"), two = group(v4 ? "::ffff:239.1.1.2" : "ff0e::2");
	Ah to_two = to(two);

	ASSERT_EQ(ibv_attach_mcast(member.qp, &one, 0), 0);
	recv(member, member.mem, 0, 4096, 1);
	cast(from, to_two);
	expect_stays_empty(member.rcq);
	EXPECT_EQ(ibv_detach_mcast(member.qp, &one, 0), 0);
}

/* One member without a receive WR loses its copy alone. */
TEST_F(McastTest, OneMembersLossIsItsOwn)
{
	UdEnd from = make_end(), deaf = make_end(), member = make_end();
	ibv_gid gid = some_group();
	Ah ah = to(gid);

	ASSERT_EQ(ibv_attach_mcast(deaf.qp, &gid, 0), 0);
	ASSERT_EQ(ibv_attach_mcast(member.qp, &gid, 0), 0);
	recv(member, member.mem, 0, 4096, 1);
	cast(from, ah);
	expect_ok(member.rcq, 1);
	expect_empty(deaf.rcq);
	ibv_detach_mcast(deaf.qp, &gid, 0);
	ibv_detach_mcast(member.qp, &gid, 0);
}

TEST_F(McastTest, AttachRules)
{
	UdEnd member = make_end();
	ibv_gid gid = some_group(), unicast = dev.gid(dev.gid_index());
	Pair p(dev, pd);

	EXPECT_EQ(code(ibv_attach_mcast(p.a.qp, &gid, 0)), EINVAL) << "only datagrams";
	EXPECT_EQ(code(ibv_attach_mcast(member.qp, &unicast, 0)), EINVAL) << "not a group";
	EXPECT_NE(ibv_detach_mcast(member.qp, &gid, 0), 0) << "is no member";
	EXPECT_EQ(ibv_attach_mcast(member.qp, &gid, 0), 0);
	/* a second attach is harmless, and gives no second copy */
	EXPECT_EQ(ibv_attach_mcast(member.qp, &gid, 0), 0);
	UdEnd from = make_end();
	Ah ah = to(gid);
	recv(member, member.mem, 0, 4096, 1);
	recv(member, member.mem, 0, 4096, 2);
	cast(from, ah);
	expect_ok(member.rcq, 1);
	expect_stays_empty(member.rcq);
	EXPECT_EQ(ibv_detach_mcast(member.qp, &gid, 0), 0);
}

/* ibv_destroy_qp(3): refused while the QP is attached to a group. */
TEST_F(McastTest, DestroyOfAMemberIsRefused)
{
	UdEnd member = make_end();
	ibv_gid gid = some_group();

	ASSERT_EQ(ibv_attach_mcast(member.qp, &gid, 0), 0);
	EXPECT_EQ(code(ibv_destroy_qp(member.qp)), EBUSY);
	EXPECT_EQ(ibv_detach_mcast(member.qp, &gid, 0), 0);
}
