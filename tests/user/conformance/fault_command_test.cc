/* SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB */
/* The commands of faults on purpose and the table of what is armed (docs/faults.md). */
#include "fault.h"

using namespace conformance;

TEST_F(FaultTest, WhatIsNotUnderstood)
{
	Pair p = make_pair();
	const std::string n = qpn(p.a);
	const std::vector<std::string> nonsense = {
		"",
		"message",
		"message lose nth 0",
		"message lose nth 1 nth 2",
		"message lose nth 1 every 2",
		"message lose nth",
		"message lose  nth 1",
		"message lose permille 1001",
		"message lose every 1000000001",
		"message lose usec 5",
		"message delay",
		"message delay usec 0",
		"message delay usec 10000001",
		"message lose times 0",
		"message lose qpn 0",
		"message lose qpn 16777216",
		"message lose seed -1",
		"message overtakes",
		"message pass",
		"rnr " + n,
		"rnr " + n + " 0",
		"rnr " + n + " 1 1",
		"rnr 0 1",
		"verb create-qp 1",
		"verb create-qp 1 0",
		"verb create-qp 1 134",
		"verb create-qp 1 EWHAT",
		"verb create-qp 0 EIO",
		"verb destroy-qp 1 EIO",
		"verb create-qp 1 EIO seed 1",
		"wr " + n + " 1 success",
		"wr " + n + " 1 wr-flush-err",
		"wr " + n + " 1",
		"wr " + n + " 1 general-err 1",
		"recv " + n + " 1 retry-exc-err",
		"clear some",
		"clear 0",
		"clear 1 2",
	};

	for (const std::string &line : nonsense)
		EXPECT_EQ(try_fault(line), EINVAL) << line;
	EXPECT_EQ(try_control(dev, "fault"), EINVAL);
	EXPECT_TRUE(faults().empty());
	EXPECT_EQ(try_fault("wr 16777215 1 general-err"), ENOENT);
	EXPECT_EQ(try_fault("message lose qpn 16777215"), ENOENT);
	EXPECT_EQ(try_fault("clear 4294967295"), ENOENT);
	/* unreliable ones drop what they cannot take */
	UdEnd ud(dev, pd);
	EXPECT_EQ(try_fault("recv " + qpn(ud) + " 1 loc-len-err"), EINVAL);
	EXPECT_EQ(try_fault("recv " + qpn(ud) + " 1 loc-prot-err"), 0);
}

/* The list says what was asked for, by numbers of its own; clearing takes one, or all. */
TEST_F(FaultTest, List)
{
	Pair p = make_pair();

	fault("message delay permille 5 times 3 seed 18446744073709551615 qpn " + qpn(p.a) + " usec 10000000");
	fault("verb create-cq 2 ENOMEM");
	fault("message corrupt every 1000000000");
	auto rows = faults();
	ASSERT_EQ(rows.size(), 3u);
	EXPECT_EQ(rows[0].at("kind") + rows[0].at("what") + rows[0].at("value"), "messagedelay10000000");
	EXPECT_EQ(rows[0].at("when") + rows[0].at("number"), "permille5");
	EXPECT_EQ(rows[0].at("seed"), "18446744073709551615");
	EXPECT_EQ(rows[0].at("qpn"), qpn(p.a));
	EXPECT_EQ(rows[0].at("left"), "3");
	EXPECT_EQ(rows[1].at("what") + rows[1].at("value") + rows[1].at("qpn"), "create-cq12-");
	EXPECT_EQ(rows[1].at("when") + rows[1].at("number") + rows[1].at("left"), "nth21");
	EXPECT_EQ(rows[2].at("left"), "-");
	fault("clear " + rows[1].at("id"));
	EXPECT_EQ(try_fault("clear " + rows[1].at("id")), ENOENT);
	ASSERT_EQ(faults().size(), 2u);
	EXPECT_EQ(faults()[1].at("id"), rows[2].at("id"));
	fault("clear all");
	EXPECT_TRUE(faults().empty());
	fault("clear all");
}

/* So many, and no more; one that is over makes room. */
TEST_F(FaultTest, SoManyAtMost)
{
	fault("verb alloc-pd 1 EIO");
	EXPECT_EQ(make<Pd>([&] { return ibv_alloc_pd(dev); }), EIO);
	for (int i = 1; i < 64; i++)
		fault("verb create-cq 1000 EIO");
	EXPECT_EQ(faults().size(), 64u);
	fault("verb create-cq 1000 EIO");
	EXPECT_EQ(faults().size(), 64u);
	EXPECT_EQ(faults()[0].at("what"), "create-cq");
	EXPECT_EQ(try_fault("verb create-cq 1000 EIO"), ENOSPC);
}

/* What is armed for a QP goes with it; what is armed for a device goes with that. */
TEST_F(FaultTest, GoesWithItsObject)
{
	{
		Pair p = make_pair();

		fault("wr " + qpn(p.a) + " 5 general-err");
		fault("rnr " + qpn(p.b) + " 5");
		fault("message lose nth 100");
		EXPECT_EQ(faults().size(), 3u);
	}
	EXPECT_EQ(faults().size(), 1u);
	TempLink link;
	{
		Device other;

		EXPECT_EQ(try_control(other, "fault verb create-cq 1 EIO times 1000"), 0);
	}
}

/* As all of control, only with leave. */
TEST_F(FaultTest, NeedsLeave)
{
	fault("verb alloc-pd 1 EIO");
	require_ok(write_line(control_dir(dev) + "/allow", "0"), "allow");
	EXPECT_TRUE(faults().empty()) << "nobody could clear it";
	EXPECT_EQ(try_fault("verb alloc-pd 1 EIO"), EPERM);
	require_ok(write_line(control_dir(dev) + "/allow", "1"), "allow");
	EXPECT_EQ(make<Pd>([&] { return ibv_alloc_pd(dev); }), 0);
}
