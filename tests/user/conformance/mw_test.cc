/* SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB */
/* Memory windows: ibv_alloc_mw(3), ibv_bind_mw(3), IBTA 10.6.7. */
#include "pair.h"

using namespace conformance;

namespace {
constexpr int kBindable = kAllAccess | IBV_ACCESS_MW_BIND;
constexpr int kRemote = IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_READ | IBV_ACCESS_REMOTE_ATOMIC;
} // namespace

class MwTest : public RcTest, public ::testing::WithParamInterface<ibv_mw_type> {
protected:
	void SetUp() override
	{
		unsigned int caps = dev.attr.device_cap_flags;

		if (GetParam() == IBV_MW_TYPE_1
			    ? !(caps & IBV_DEVICE_MEM_WINDOW)
			    : !(caps & (IBV_DEVICE_MEM_WINDOW_TYPE_2A | IBV_DEVICE_MEM_WINDOW_TYPE_2B)))
			GTEST_SKIP() << "windows of this type are not advertised";
	}
	Mw make_mw(ibv_pd *of = nullptr)
	{
		Mw mw(ibv_alloc_mw(of ? of : pd.get(), GetParam()));

		require(mw, "ibv_alloc_mw");
		return mw;
	}
	/* Bind, and wait for its completion. */
	ibv_wc bind(End &end, ibv_mw *mw, ibv_mr *mr, uint64_t addr, uint64_t len, int access, uint32_t *rkey)
	{
		ibv_mw_bind_info info{};

		info.mr = mr;
		info.addr = addr;
		info.length = len;
		info.mw_access_flags = access;
		if (GetParam() == IBV_MW_TYPE_1) {
			ibv_mw_bind b{};

			b.wr_id = 70;
			b.send_flags = IBV_SEND_SIGNALED;
			b.bind_info = info;
			require_ok(ibv_bind_mw(end, mw, &b), "ibv_bind_mw");
			*rkey = mw->rkey;
		} else {
			Send s(IBV_WR_BIND_MW, 70);

			s.wr.bind_mw.mw = mw;
			s.wr.bind_mw.rkey = *rkey = ibv_inc_rkey(mw->rkey);
			s.wr.bind_mw.bind_info = info;
			s.post(end);
			mw->rkey = *rkey;
		}
		return poll_one(end.scq);
	}
	uint32_t bind_ok(End &end, ibv_mw *mw, Region &r, size_t off, size_t len, int access)
	{
		uint32_t rkey = 0;
		ibv_wc wc = bind(end, mw, r.mr, r.addr(off), len, access, &rkey);

		EXPECT_STREQ(ibv_wc_status_str(wc.status), "success");
		EXPECT_EQ(wc.opcode, IBV_WC_BIND_MW);
		EXPECT_EQ(wc.wr_id, 70u);
		return rkey;
	}
	ibv_wc_status write(Pair &p, uint64_t addr, uint32_t rkey, uint32_t len = 8)
	{
		Send(IBV_WR_RDMA_WRITE).from(p.a.mem, 0, len).to(addr, rkey).post(p.a);
		return poll_one(p.a.scq).status;
	}
};

INSTANTIATE_TEST_SUITE_P(Types, MwTest, ::testing::Values(IBV_MW_TYPE_1, IBV_MW_TYPE_2),
			 [](const auto &i) { return i.param == IBV_MW_TYPE_1 ? "Type1" : "Type2"; });

TEST_P(MwTest, GivesAccessToItsRangeAlone)
{
	Region r(pd, 8192, kBindable);
	Mw mw = make_mw();

	{
		Pair p = make_pair();
		uint32_t key = bind_ok(p.b, mw, r, 1000, 64, kRemote);
		p.a.mem.fill(1);
		EXPECT_EQ(write(p, r.addr(1000), key, 64), IBV_WC_SUCCESS);
		EXPECT_EQ(differs(p.a.mem.data(), r.data() + 1000, 64), -1);
		EXPECT_EQ(r.data()[999], 0);
		EXPECT_EQ(r.data()[1064], 0);
		EXPECT_EQ(write(p, r.addr(1001), key, 64), IBV_WC_REM_ACCESS_ERR);
		p.b.qp.reset();
	}
}

/* IBTA 10.6.7.2.1: the region must allow binding. */
TEST_P(MwTest, RegionMustAllowBinding)
{
	Region r(pd, 4096, kAllAccess);
	Mw mw = make_mw();
	Pair p = make_pair();
	uint32_t key;

	ibv_mw_bind b{};
	b.wr_id = 70;
	b.send_flags = IBV_SEND_SIGNALED;
	b.bind_info = {r.mr, r.addr(), 64, (unsigned int)kRemote};
	if (GetParam() == IBV_MW_TYPE_1) {
		int rc = code(ibv_bind_mw(p.b, mw, &b));
		if (rc) {
			EXPECT_TRUE(rc == EINVAL || rc == EPERM) << rc;
			return;
		}
		expect_wc(p.b.scq, IBV_WC_MW_BIND_ERR, 70);
	} else {
		EXPECT_EQ(bind(p.b, mw, r.mr, r.addr(), 64, kRemote, &key).status, IBV_WC_MW_BIND_ERR);
	}
	EXPECT_EQ(state_of(p.b), IBV_QPS_ERR);
}

/* Beyond the region's ends. */
TEST_P(MwTest, RangeMustBeInsideTheRegion)
{
	Region r(pd, 4096, kBindable);

	struct {
		uint64_t addr, len;
	} rows[] = {{r.addr(4000), 97}, {r.addr() - 1, 64}, {r.addr(64), ~0ull - 32}, {~0ull - 10, 64}};
	for (auto &row : rows) {
		Mw mw = make_mw();
		Pair p = make_pair();
		uint32_t key;
		ibv_wc wc{};
		try {
			wc = bind(p.b, mw, r.mr, row.addr, row.len, kRemote, &key);
		} catch (const std::exception &) {
			continue; /* refused at once: as good */
		}
		EXPECT_EQ(wc.status, IBV_WC_MW_BIND_ERR);
		EXPECT_EQ(state_of(p.b), IBV_QPS_ERR);
	}
}

/* IBTA 10.6.7.2: remote write through a window wants a region with local write. */
TEST_P(MwTest, WriteNeedsLocalWrite)
{
	Region r(pd, 4096, IBV_ACCESS_MW_BIND | IBV_ACCESS_REMOTE_READ);
	Mw mw = make_mw();
	Pair p = make_pair();
	uint32_t key;
	ibv_wc wc{};

	try {
		wc = bind(p.b, mw, r.mr, r.addr(), 64, IBV_ACCESS_REMOTE_WRITE, &key);
	} catch (const std::exception &) {
		return;
	}
	EXPECT_EQ(wc.status, IBV_WC_MW_BIND_ERR);
}

TEST_P(MwTest, AccessIsTheWindows)
{
	Region r(pd, 4096, kBindable);
	Mw mw = make_mw();
	{
		Pair p = make_pair();
		uint32_t key = bind_ok(p.b, mw, r, 0, 64, IBV_ACCESS_REMOTE_READ);
		Send(IBV_WR_RDMA_READ, 1).from(p.a.mem, 0, 8).to(r.addr(), key).post(p.a);
		expect_ok(p.a.scq, 1);
		EXPECT_EQ(write(p, r.addr(), key), IBV_WC_REM_ACCESS_ERR);
		p.b.qp.reset();
	}
}

/* The key of before the bind, and of the binding before, are dead. */
TEST_P(MwTest, OldKeysAreDead)
{
	Region r(pd, 4096, kBindable);
	Mw mw = make_mw();
	uint32_t unbound = mw->rkey;
	{
		Pair p = make_pair();
		EXPECT_EQ(write(p, r.addr(), unbound), IBV_WC_REM_ACCESS_ERR);
	}
	if (GetParam() == IBV_MW_TYPE_1) {
		Pair p = make_pair();
		uint32_t first = bind_ok(p.b, mw, r, 0, 64, kRemote);
		uint32_t second = bind_ok(p.b, mw, r, 0, 128, kRemote);
		EXPECT_NE(first, second);
		EXPECT_EQ(write(p, r.addr(), second), IBV_WC_SUCCESS);
		EXPECT_EQ(write(p, r.addr(), first), IBV_WC_REM_ACCESS_ERR);
		p.b.qp.reset();
	}
}

/* Length 0 unbinds (type 1); LOCAL_INV and a remote invalidate do (type 2). */
TEST_P(MwTest, Unbinding)
{
	Region r(pd, 4096, kBindable);
	Mw mw = make_mw();

	if (GetParam() == IBV_MW_TYPE_1) {
		Pair p = make_pair();
		uint32_t key = bind_ok(p.b, mw, r, 0, 64, kRemote);
		EXPECT_EQ(write(p, r.addr(), key), IBV_WC_SUCCESS);
		ibv_mw_bind b{};
		b.wr_id = 71;
		b.send_flags = IBV_SEND_SIGNALED;
		ASSERT_EQ(ibv_bind_mw(p.b, mw, &b), 0);
		expect_ok(p.b.scq, 71);
		EXPECT_EQ(write(p, r.addr(), key), IBV_WC_REM_ACCESS_ERR);
		return;
	}
	for (bool remote : {false, true}) {
		Pair p = make_pair();
		uint32_t key = bind_ok(p.b, mw, r, 0, 64, kRemote);
		EXPECT_EQ(write(p, r.addr(), key), IBV_WC_SUCCESS);
		if (remote) {
			recv(p.b, p.b.mem, 0, 64, 5);
			Send(IBV_WR_SEND_WITH_INV, 6).from(p.a.mem, 0, 4).invalidate(key).post(p.a);
			expect_ok(p.a.scq, 6);
			ibv_wc wc = expect_ok(p.b.rcq, 5);
			EXPECT_TRUE(wc.wc_flags & IBV_WC_WITH_INV);
			EXPECT_EQ(wc.invalidated_rkey, key);
		} else {
			Send(IBV_WR_LOCAL_INV, 6).invalidate(key).post(p.b);
			EXPECT_EQ(expect_ok(p.b.scq, 6).opcode, IBV_WC_LOCAL_INV);
		}
		EXPECT_EQ(write(p, r.addr(), key), IBV_WC_REM_ACCESS_ERR);
	}
}

/* Type 2 windows belong to the QP that bound them (10.6.7.2.3); type 1 windows to the PD. */
TEST_P(MwTest, WhoseItIs)
{
	Region r(pd, 4096, kBindable);
	Mw mw = make_mw();
	Pair p = make_pair(), q = make_pair();
	uint32_t key = bind_ok(p.b, mw, r, 0, 64, kRemote);

	EXPECT_EQ(write(q, r.addr(), key), GetParam() == IBV_MW_TYPE_1 ? IBV_WC_SUCCESS : IBV_WC_REM_ACCESS_ERR);
	EXPECT_EQ(write(p, r.addr(), key), IBV_WC_SUCCESS);
	EXPECT_EQ(mw.destroy(), 0);
	EXPECT_EQ(write(p, r.addr(), key), IBV_WC_REM_ACCESS_ERR);
}

/* 11.2.8.? : a region with windows bound to it stays. */
TEST_P(MwTest, RegionWithAWindowIsBusy)
{
	Region r(pd, 4096, kBindable);
	Mw mw = make_mw();
	{
		Pair p = make_pair();
		bind_ok(p.b, mw, r, 0, 64, kRemote);
		EXPECT_EQ(r.mr.destroy(), EBUSY);
		/* the key still works */
		EXPECT_EQ(mw.destroy(), 0);
		EXPECT_EQ(r.mr.destroy(), 0);
	}
}

TEST_P(MwTest, LeavesWithItsPd)
{
	Pd other = make_pd(dev);
	Mw mw = make_mw(other);

	EXPECT_EQ(other.destroy(), EBUSY);
	EXPECT_EQ(mw.destroy(), 0);
	EXPECT_EQ(other.destroy(), 0);
}
