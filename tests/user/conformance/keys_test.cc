/* SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB */
/* Keys that are wrong, stale or somebody else's: IBTA 10.6.3; every one of them refused, nothing read or written. */
#include "process.h"

using namespace conformance;

class KeysTest : public RcTest {
protected:
	/* A remote access with this key fails, whichever operation; the bytes at addr stay. */
	void expect_refused(ibv_pd *qp_pd, uint64_t addr, uint32_t rkey, const uint8_t *watch = nullptr)
	{
		for (auto op : {IBV_WR_RDMA_WRITE, IBV_WR_RDMA_READ, IBV_WR_ATOMIC_FETCH_AND_ADD}) {
			Pair p(dev, qp_pd);
			uint8_t before[8];

			if (watch)
				memcpy(before, watch, 8);
			p.a.mem.fill(9);
			std::vector<uint8_t> own(p.a.mem.data(), p.a.mem.data() + 64);
			Send(op).from(p.a.mem, 0, 8).to(addr, rkey).operands(1).to(addr, rkey).post(p.a);
			expect_wc(p.a.scq, IBV_WC_REM_ACCESS_ERR, 1);
			if (watch) {
				EXPECT_EQ(memcmp(before, watch, 8), 0);
			}
			EXPECT_EQ(differs(own.data(), p.a.mem.data(), 64), -1) << "something was read";
		}
	}
	void expect_local_refused(ibv_pd *qp_pd, const ibv_sge &sge)
	{
		Pair p(dev, qp_pd);

		Send(IBV_WR_RDMA_WRITE).sge(sge).to(p.b.mem).post(p.a);
		expect_wc(p.a.scq, IBV_WC_LOC_PROT_ERR, 1);
		EXPECT_TRUE(all_bytes(p.b.mem.data(), 64, 0));
	}
};

/* A key of a region that is gone. */
TEST_F(KeysTest, Stale)
{
	Region r(pd, 4096);
	uint32_t lkey = r.mr->lkey, rkey = r.mr->rkey;

	r.mr.reset();
	expect_refused(pd, r.addr(), rkey, r.data());
	expect_local_refused(pd, {r.addr(), 8, lkey});
	/* and while the same place has a new one */
	r.mr = Mr(ibv_reg_mr(pd, r.data(), r.size(), kAllAccess));
	ASSERT_NE(r.mr->rkey, rkey);
	expect_refused(pd, r.addr(), rkey, r.data());
}

/* Every other value of the key's low byte, and neighbours of its index. */
TEST_F(KeysTest, Guessed)
{
	Region r(pd, 4096);

	for (uint32_t flip = 1; flip < 256; flip = flip * 3 + 1)
		expect_refused(pd, r.addr(), r.mr->rkey ^ flip, r.data());
	for (uint32_t key : {0u, 1u, ~0u, r.mr->rkey + 256, r.mr->rkey - 256, r.mr->rkey ^ 0x80000000u})
		expect_refused(pd, r.addr(), key, r.data());
	expect_local_refused(pd, {r.addr(), 8, 0});
	expect_local_refused(pd, {r.addr(), 8, ~0u});
}

/* A region of another PD, for both ends. */
TEST_F(KeysTest, OfAnotherPd)
{
	Pd other = make_pd(dev);
	Region r(other, 4096);

	expect_refused(pd, r.addr(), r.mr->rkey, r.data());
	expect_local_refused(pd, r.sge(0, 8));
	/* as a receive's memory */
	Pair p = make_pair();
	ASSERT_EQ(try_recv(p.b, {r.sge(0, 64)}, 5), 0);
	Send().from(p.a.mem, 0, 8).post(p.a);
	expect_wc(p.a.scq, IBV_WC_REM_OP_ERR, 1);
	expect_wc(p.b.rcq, IBV_WC_LOC_PROT_ERR, 5);
	EXPECT_TRUE(all_bytes(r.data(), 64, 0));
}

/* A region of another process: its keys are of no use here. */
TEST_F(KeysTest, OfAnotherProcess)
{
	struct {
		uint64_t addr;
		uint32_t rkey;
	} theirs{};

	Child child([](int in, int out) {
		Device mine;
		Pd p = make_pd(mine);
		Region r(p, 4096);
		decltype(theirs) answer{r.addr(), r.mr->rkey};
		char c;

		memset(r.data(), 0x77, r.size());
		Child::put(out, &answer, sizeof(answer));
		Child::get(in, &c, 1);
		return all_bytes(r.data(), r.size(), 0x77) ? 0 : 1;
	});
	ASSERT_TRUE(child.hear(&theirs, sizeof(theirs)));
	expect_refused(pd, theirs.addr, theirs.rkey);
	expect_local_refused(pd, {theirs.addr, 8, theirs.rkey});
	child.tell('x');
	EXPECT_EQ(child.wait(), 0) << "its memory was changed";
}

/* The other context of one process: PDs are not shared either. */
TEST_F(KeysTest, OfAnotherContext)
{
	Device second;
	Pd pd2 = make_pd(second);
	Region r(pd2, 4096);

	expect_refused(pd, r.addr(), r.mr->rkey, r.data());
	expect_local_refused(pd, r.sge(0, 8));
}

/* LOCAL_INV of keys that are nobody's, or cannot be invalidated. */
TEST_F(KeysTest, LocalInvalidate)
{
	if (!(dev.attr.device_cap_flags & IBV_DEVICE_MEM_MGT_EXTENSIONS))
		GTEST_SKIP() << "no memory management extensions";
	Region r(pd, 4096);
	Pd other = make_pd(dev);
	Region foreign(other, 4096);
	for (uint32_t key : {0u, ~0u, r.mr->rkey, r.mr->rkey ^ 1, foreign.mr->rkey}) {
		Pair p = make_pair();
		int rc = Send(IBV_WR_LOCAL_INV).invalidate(key).try_post(p.a);
		if (rc)
			continue;
		ibv_wc wc = poll_one(p.a.scq);
		EXPECT_NE(wc.status, IBV_WC_SUCCESS) << key;
		EXPECT_EQ(state_of(p.a), IBV_QPS_ERR);
	}
	/* what was named is still well */
	Pair p = make_pair();
	Send(IBV_WR_RDMA_WRITE).from(p.a.mem, 0, 8).to(r).post(p.a);
	expect_ok(p.a.scq, 1);
}
