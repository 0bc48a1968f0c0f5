/* SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB */
/*
 * Every status of a work completion that can arise, with the states afterwards and the events: IBTA 11.6.2, 9.9.
 * MW_BIND_ERR is in mw_test.cc, WR_FLUSH_ERR in flush_test.cc, datagrams' in ud_test.cc.
 */
#include "pair.h"

using namespace conformance;

class StatusTest : public RcTest {
protected:
	/* The requester failed: ERR, no event, the rest flushed. */
	void expect_requester_dead(Pair &p)
	{
		EXPECT_EQ(state_of(p.a), IBV_QPS_ERR);
		Send(IBV_WR_RDMA_WRITE, 99).from(p.a.mem, 0, 8).to(p.b.mem).post(p.a);
		expect_wc(p.a.scq, IBV_WC_WR_FLUSH_ERR, 99);
	}
	/* and the responder knows nothing of it */
	void expect_responder_well(Pair &p)
	{
		EXPECT_EQ(state_of(p.b), IBV_QPS_RTS);
		expect_no_async(p.at_b.dev);
	}
	void expect_responder_dead(Pair &p, std::optional<ibv_event_type> event)
	{
		expect_state(p.b, IBV_QPS_ERR);
		if (event)
			expect_async(p.at_b.dev, *event, p.b.qp.get());
		expect_no_async(p.at_b.dev);
	}
	uint32_t stale(Region &r) { return r.mr->rkey ^ 0x40; }
	Path quick()
	{
		Path path;

		path.timeout = 12; /* 16 ms */
		path.retry_cnt = 2;
		path.rnr_retry = 2;
		return path;
	}
};

/* ------------------------------------------------ the requester's own faults */

TEST_F(StatusTest, LocProtBadLkey)
{
	for (auto op : {IBV_WR_SEND, IBV_WR_RDMA_WRITE, IBV_WR_RDMA_READ, IBV_WR_ATOMIC_FETCH_AND_ADD}) {
		Pair p = make_pair();
		recv(p.b, p.b.mem, 0, 64, 1);
		Send(op, 2).sge({p.a.mem.addr(), 8, stale(p.a.mem)}).to(p.b.mem).operands(0).to(p.b.mem).post(p.a);
		expect_wc(p.a.scq, IBV_WC_LOC_PROT_ERR, 2);
		expect_requester_dead(p);
		expect_responder_well(p);
		expect_empty(p.b.rcq);
	}
}

TEST_F(StatusTest, LocProtRange)
{
	struct {
		int64_t off;
		uint32_t len;
	} rows[] = {{65536 - 7, 8}, {-1, 8}, {65536, 1}, {0, 65537}, {1ll << 40, 8}};

	for (auto &r : rows) {
		Pair p = make_pair();
		Send(IBV_WR_RDMA_WRITE, 1).sge({p.a.mem.addr() + r.off, r.len, p.a.mem.mr->lkey}).to(p.b.mem).post(p.a);
		expect_wc(p.a.scq, IBV_WC_LOC_PROT_ERR, 1);
		expect_requester_dead(p);
	}
	/* address and length that wrap round */
	Pair p = make_pair();
	Send(IBV_WR_RDMA_WRITE, 1).sge({~0ull - 3, 8, p.a.mem.mr->lkey}).to(p.b.mem).post(p.a);
	expect_wc(p.a.scq, IBV_WC_LOC_PROT_ERR, 1);
}

/* A read scatters: that wants local write. */
TEST_F(StatusTest, LocProtNoLocalWrite)
{
	Region readonly(pd, 4096, IBV_ACCESS_REMOTE_READ);

	for (auto op : {IBV_WR_RDMA_READ, IBV_WR_ATOMIC_CMP_AND_SWP}) {
		Pair p = make_pair();
		uint64_t before;
		memcpy(&before, p.b.mem.data(), 8);
		Send s(op, 1);
		s.from(readonly, 0, 8).to(p.b.mem);
		if (op == IBV_WR_ATOMIC_CMP_AND_SWP)
			s.operands(0, 55);
		s.post(p.a);
		expect_wc(p.a.scq, IBV_WC_LOC_PROT_ERR, 1);
		EXPECT_EQ(memcmp(&before, p.b.mem.data(), 8), 0) << "the remote side was changed all the same";
		expect_requester_dead(p);
	}
	Pair p = make_pair();
	Send(IBV_WR_RDMA_WRITE, 1).from(readonly, 0, 8).to(p.b.mem).post(p.a);
	expect_ok(p.a.scq, 1);
}

/* The second of three SGEs is bad: nothing is sent at all. */
TEST_F(StatusTest, LocProtInTheMiddle)
{
	Pair p = make_pair();

	p.a.mem.fill(1);
	Send(IBV_WR_RDMA_WRITE, 1)
		.from(p.a.mem, 0, 100)
		.sge({p.a.mem.addr(), 100, stale(p.a.mem)})
		.from(p.a.mem, 0, 100)
		.to(p.b.mem)
		.post(p.a);
	expect_wc(p.a.scq, IBV_WC_LOC_PROT_ERR, 1);
	EXPECT_TRUE(all_bytes(p.b.mem.data(), 300, 0));
	expect_responder_well(p);
}

/* 9.4.5: an atomic's answer is 8 bytes. */
TEST_F(StatusTest, LocLenAtomic)
{
	for (uint32_t len : {4u, 16u}) {
		Pair p = make_pair();
		int rc = Send(IBV_WR_ATOMIC_FETCH_AND_ADD, 1)
				 .from(p.a.mem, 0, len)
				 .to(p.b.mem)
				 .operands(1)
				 .try_post(p.a);
		if (rc) {
			EXPECT_EQ(rc, EINVAL);
			continue;
		}
		expect_wc(p.a.scq, IBV_WC_LOC_LEN_ERR, 1);
		EXPECT_TRUE(all_bytes(p.b.mem.data(), 8, 0));
	}
}

/* --------------------------------------------------- the responder's verdicts */

/* CASES 52: bad rkey: QP_ACCESS_ERR at the responder, whose QP is in ERR. */
TEST_F(StatusTest, Cases52_RemAccessBadRkey)
{
	for (auto op : {IBV_WR_RDMA_WRITE, IBV_WR_RDMA_READ, IBV_WR_ATOMIC_FETCH_AND_ADD}) {
		Pair p = make_pair();
		Send(op, 1).from(p.a.mem, 0, 8).to(p.b.mem.addr(), stale(p.b.mem)).post(p.a);
		expect_wc(p.a.scq, IBV_WC_REM_ACCESS_ERR, 1);
		expect_requester_dead(p);
		expect_responder_dead(p, IBV_EVENT_QP_ACCESS_ERR);
	}
}

TEST_F(StatusTest, RemAccessRange)
{
	struct {
		int64_t off;
		uint32_t len;
	} rows[] = {{65536 - 7, 8}, {-1, 8}, {65536, 1}, {1ll << 40, 8}, {-(1ll << 40), 8}};

	for (auto op : {IBV_WR_RDMA_WRITE, IBV_WR_RDMA_READ}) {
		for (auto &r : rows) {
			Pair p = make_pair();
			Send(op, 1).from(p.a.mem, 0, r.len).to(p.b.mem.addr() + r.off, p.b.mem.mr->rkey).post(p.a);
			expect_wc(p.a.scq, IBV_WC_REM_ACCESS_ERR, 1);
			expect_responder_dead(p, IBV_EVENT_QP_ACCESS_ERR);
		}
		Pair p = make_pair();
		Send(op, 1).from(p.a.mem, 0, 8).to(~0ull - 3, p.b.mem.mr->rkey).post(p.a);
		expect_wc(p.a.scq, IBV_WC_REM_ACCESS_ERR, 1);
		expect_responder_dead(p, IBV_EVENT_QP_ACCESS_ERR);
	}
}

/* The region's own permissions. */
TEST_F(StatusTest, RemAccessPermission)
{
	struct {
		ibv_wr_opcode op;
		int lacks;
	} rows[] = {{IBV_WR_RDMA_WRITE, IBV_ACCESS_REMOTE_WRITE},
		    {IBV_WR_RDMA_READ, IBV_ACCESS_REMOTE_READ},
		    {IBV_WR_ATOMIC_CMP_AND_SWP, IBV_ACCESS_REMOTE_ATOMIC}};

	for (auto &row : rows) {
		Pair p = make_pair();
		Region target(p.at_b.pd, 4096, kAllAccess & ~row.lacks);
		Send(row.op, 1).from(p.a.mem, 0, 8).to(target).operands(0, 1).to(target).post(p.a);
		ibv_wc wc = poll_one(p.a.scq);
		EXPECT_STREQ(ibv_wc_status_str(wc.status), ibv_wc_status_str(IBV_WC_REM_ACCESS_ERR)) << row.op;
		EXPECT_TRUE(all_bytes(target.data(), 16, 0));
		expect_responder_dead(p, IBV_EVENT_QP_ACCESS_ERR);
	}
}

/* CASES 52, 9.7.5.2.3: the QP has not the operation: invalid request, QP_REQ_ERR. */
TEST_F(StatusTest, Cases52_RemInvReqQpHasNotTheOperation)
{
	struct {
		ibv_wr_opcode op;
		int lacks;
	} rows[] = {{IBV_WR_RDMA_WRITE, IBV_ACCESS_REMOTE_WRITE},
		    {IBV_WR_RDMA_READ, IBV_ACCESS_REMOTE_READ},
		    {IBV_WR_ATOMIC_CMP_AND_SWP, IBV_ACCESS_REMOTE_ATOMIC}};

	for (auto &row : rows) {
		Path path;
		path.access &= ~row.lacks;
		Pair p = make_pair({}, path);
		Send(row.op, 1).from(p.a.mem, 0, 8).to(p.b.mem).post(p.a);
		ibv_wc wc = poll_one(p.a.scq);
		EXPECT_TRUE(wc.status == IBV_WC_REM_INV_REQ_ERR) << ibv_wc_status_str(wc.status);
		expect_requester_dead(p);
		expect_responder_dead(p, IBV_EVENT_QP_REQ_ERR);
	}
}

/* 9.7.4.1.?: no responder resources, no reads. */
TEST_F(StatusTest, RemInvReqNoReadResources)
{
	QpOptions o;
	End a(dev, pd, o), b(dev, pd, o);
	Path none, some;

	none.rd_atomic = 0;
	to_init(a);
	to_init(b);
	to_rtr(dev, a, b.num(), some);
	to_rtr(dev, b, a.num(), none);
	to_rts(dev, a, some);
	to_rts(dev, b, some);
	Send(IBV_WR_RDMA_READ, 1).from(a.mem, 0, 8).to(b.mem).post(a);
	expect_wc(a.scq, IBV_WC_REM_INV_REQ_ERR, 1);
	expect_state(b, IBV_QPS_ERR);
	expect_async(dev, IBV_EVENT_QP_REQ_ERR, b.qp.get());
	expect_no_async(dev);
}

/* 9.4.5: an atomic's address is a multiple of 8. */
TEST_F(StatusTest, RemInvReqAtomicAlignment)
{
	for (int off : {1, 4, 7}) {
		Pair p = make_pair();
		Send(IBV_WR_ATOMIC_FETCH_AND_ADD, 1).from(p.a.mem, 0, 8).to(p.b.mem, off).operands(1).post(p.a);
		expect_wc(p.a.scq, IBV_WC_REM_INV_REQ_ERR, 1);
		EXPECT_TRUE(all_bytes(p.b.mem.data(), 32, 0));
		expect_responder_dead(p, IBV_EVENT_QP_REQ_ERR);
	}
}

/* A message longer than the receive WR: both ends' completions say so, so no event does. */
TEST_F(StatusTest, LocLenAtTheResponder)
{
	Pair p = make_pair();

	recv(p.b, p.b.mem, 0, 100, 5);
	recv(p.b, p.b.mem, 0, 100, 6);
	Send(IBV_WR_SEND, 1).from(p.a.mem, 0, 101).post(p.a);
	expect_wc(p.a.scq, IBV_WC_REM_INV_REQ_ERR, 1);
	expect_wc(p.b.rcq, IBV_WC_LOC_LEN_ERR, 5);
	expect_wc(p.b.rcq, IBV_WC_WR_FLUSH_ERR, 6);
	EXPECT_EQ(p.b.mem.data()[100], 0);
	expect_requester_dead(p);
	expect_responder_dead(p, {});
}

/* The receive WR's own memory is bad: the requester hears of an operation error. */
TEST_F(StatusTest, LocProtAtTheResponder)
{
	for (int kind = 0; kind < 3; kind++) {
		Pair p = make_pair();
		Region readonly(p.at_b.pd, 4096, IBV_ACCESS_REMOTE_READ);
		ibv_sge bad = kind == 0   ? ibv_sge{p.b.mem.addr(), 100, stale(p.b.mem)}
			      : kind == 1 ? ibv_sge{p.b.mem.addr(65000), 1000, p.b.mem.mr->lkey}
					  : readonly.sge(0, 100);
		ASSERT_EQ(try_recv(p.b, {bad}, 5), 0);
		Send(IBV_WR_SEND, 1).from(p.a.mem, 0, kind == 1 ? 800 : 50).post(p.a);
		expect_wc(p.a.scq, IBV_WC_REM_OP_ERR, 1);
		expect_wc(p.b.rcq, IBV_WC_LOC_PROT_ERR, 5);
		expect_requester_dead(p);
		expect_responder_dead(p, {});
	}
}

/* SEND_WITH_INV of what cannot be invalidated. */
TEST_F(StatusTest, InvalidateOfAnOrdinaryRegion)
{
	if (!(dev.attr.device_cap_flags & IBV_DEVICE_MEM_MGT_EXTENSIONS))
		GTEST_SKIP() << "no memory management extensions";
	for (uint32_t flip : {0u, 0x40u}) {
		Pair p = make_pair();
		recv(p.b, p.b.mem, 0, 64, 5);
		Send(IBV_WR_SEND_WITH_INV, 1).from(p.a.mem, 0, 8).invalidate(p.b.mem.mr->rkey ^ flip).post(p.a);
		expect_wc(p.a.scq, IBV_WC_REM_ACCESS_ERR, 1);
		expect_wc(p.b.rcq, IBV_WC_REM_INV_REQ_ERR, 5);
		expect_responder_dead(p, {});
	}
}

/* ------------------------------------------------------------- the timers */

/* 9.9.2.1.1: nobody answers. */
TEST_F(StatusTest, RetryExceeded)
{
	Pair reset = make_pair({}, quick()), gone = make_pair({}, quick()), error = make_pair({}, quick());

	modify(reset.b, IBV_QPS_RESET);
	gone.b.qp.reset();
	to_error(error.b);
	for (Pair *p : {&reset, &gone, &error}) {
		Send(IBV_WR_RDMA_WRITE, 1).from(p->a.mem, 0, 8).to(p->b.mem).post(p->a);
		Send(IBV_WR_RDMA_WRITE, 2).from(p->a.mem, 0, 8).to(p->b.mem).post(p->a);
	}
	for (Pair *p : {&reset, &gone, &error}) {
		expect_wc(p->a.scq, IBV_WC_RETRY_EXC_ERR, 1);
		expect_wc(p->a.scq, IBV_WC_WR_FLUSH_ERR, 2);
		EXPECT_EQ(state_of(p->a), IBV_QPS_ERR);
	}
	expect_no_async(dev);
	expect_no_async(error.at_b.dev);
}

/* The peer is connected to somebody else. */
TEST_F(StatusTest, RetryExceededNotConnectedToUs)
{
	QpOptions o;
	Pair p = make_pair();
	End third(dev, pd, o);

	to_init(third);
	to_rtr(dev, third, p.b.num(), quick());
	to_rts(dev, third, quick());
	Send(IBV_WR_RDMA_WRITE, 1).from(third.mem, 0, 8).to(p.b.mem).post(third);
	expect_wc(third.scq, IBV_WC_RETRY_EXC_ERR, 1);
	EXPECT_EQ(state_of(p.b), IBV_QPS_RTS);
}

/* The retries take as long as the timeout and the count say, at least (9.9.2.1.2: 4.096 us x 2^timeout). */
TEST_F(StatusTest, RetriesTakeTheirTime)
{
	Path path = quick();
	path.timeout = 15; /* 134 ms */
	path.retry_cnt = 3;
	Pair p = make_pair({}, path);

	modify(p.b, IBV_QPS_RESET);
	auto start = Clock::now();
	Send(IBV_WR_RDMA_WRITE, 1).from(p.a.mem, 0, 8).to(p.b.mem).post(p.a);
	expect_wc(p.a.scq, IBV_WC_RETRY_EXC_ERR, 1);
	EXPECT_GE(Clock::now() - start, Millis(3 * 134));
}

/* A peer that comes in time is no error. */
TEST_F(StatusTest, PeerThatIsLate)
{
	Path path;
	path.timeout = 20; /* 4 s */
	path.retry_cnt = 7;
	QpOptions o;
	End a(dev, pd, o), b(dev, pd, o);

	to_init(a);
	to_init(b);
	to_rtr(dev, a, b.num(), path);
	to_rts(dev, a, path);
	Send(IBV_WR_RDMA_WRITE, 1).from(a.mem, 0, 8).to(b.mem).post(a);
	expect_empty(a.scq);
	to_rtr(dev, b, a.num(), path);
	expect_ok(a.scq, 1);
}

/* 9.7.5.2.8: RNR retries used up; the responder is well. */
TEST_F(StatusTest, RnrRetryExceeded)
{
	for (uint8_t retries : {0, 1, 6}) {
		Path path;
		path.rnr_retry = retries;
		path.min_rnr_timer = 10; /* 0.48 ms */
		Pair p = make_pair({}, path);
		Send(IBV_WR_SEND, 1).from(p.a.mem, 0, 8).post(p.a);
		Send(IBV_WR_SEND, 2).from(p.a.mem, 0, 8).post(p.a);
		expect_wc(p.a.scq, IBV_WC_RNR_RETRY_EXC_ERR, 1);
		expect_wc(p.a.scq, IBV_WC_WR_FLUSH_ERR, 2);
		expect_requester_dead(p);
		expect_responder_well(p);
	}
	expect_no_async(dev);
}

/* The responder's timer is the one that counts: at least that long between tries. */
TEST_F(StatusTest, RnrTimerIsTheResponders)
{
	Path path;
	path.rnr_retry = 2;
	path.min_rnr_timer = 26; /* 81.92 ms */
	Pair p = make_pair({}, path);
	auto start = Clock::now();

	Send(IBV_WR_SEND, 1).from(p.a.mem, 0, 8).post(p.a);
	expect_wc(p.a.scq, IBV_WC_RNR_RETRY_EXC_ERR, 1);
	EXPECT_GE(Clock::now() - start, Millis(2 * 81));
}

/* Each message has its own count. */
TEST_F(StatusTest, RnrCountStartsAnew)
{
	Path path;
	path.rnr_retry = 6;
	path.min_rnr_timer = 31; /* 491 ms: six of them are time enough on the slowest machine */
	Pair p = make_pair({}, path);

	for (int i = 0; i < 4; i++) {
		Send(IBV_WR_SEND, i).from(p.a.mem, 0, 8).post(p.a);
		expect_stays_empty(p.a.scq, Millis(1000));
		recv(p.b, p.b.mem, 0, 64, 50 + i);
		expect_ok(p.a.scq, i);
		expect_ok(p.b.rcq, 50 + i);
	}
}
