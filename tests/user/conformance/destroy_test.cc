/* SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB */
/* Destroying what is in use: refused with EBUSY, and nothing has changed. The ibv_destroy_*, dealloc, dereg pages. */
#include "pair.h"

#include <thread>

using namespace conformance;

class DestroyTest : public RcTest {
protected:
	void expect_works(Pair &p)
	{
		Send(IBV_WR_RDMA_WRITE, 1).from(p.a.mem, 0, 8).to(p.b.mem).post(p.a);
		expect_ok(p.a.scq, 1);
	}
};

TEST_F(DestroyTest, PdWithAnything)
{
	Pd own = make_pd(dev);

	{
		Region r(own, 4096);
		EXPECT_EQ(own.destroy(), EBUSY);
	}
	{
		Ah ah = make_ah(dev, own, dev.gid_index(), dev.gid(dev.gid_index()));
		EXPECT_EQ(own.destroy(), EBUSY);
	}
	{
		Srq srq = make_srq(own, 4);
		EXPECT_EQ(own.destroy(), EBUSY);
	}
	{
		Pair p(dev, own);
		p.a.mem.mr.reset();
		p.b.mem.mr.reset();
		EXPECT_EQ(own.destroy(), EBUSY);
	}
	EXPECT_EQ(own.destroy(), 0);
}

TEST_F(DestroyTest, CqWithAQp)
{
	Cq scq = make_cq(dev, 16), rcq = make_cq(dev, 16);

	{
		QpOptions o;
		o.send_cq = scq;
		o.recv_cq = rcq;
		Pair p = make_pair(o);
		EXPECT_EQ(scq.destroy(), EBUSY);
		EXPECT_EQ(rcq.destroy(), EBUSY);
		expect_works(p);
	}
	EXPECT_EQ(scq.destroy(), 0);
	EXPECT_EQ(rcq.destroy(), 0);
}

TEST_F(DestroyTest, SrqWithAQp)
{
	Srq srq = make_srq(pd, 8);

	{
		QpOptions o;
		o.srq = srq;
		Pair p(dev, pd, QpOptions(), o, Path());
		EXPECT_EQ(srq.destroy(), EBUSY);
		srq_recv(srq, p.b.mem, 0, 64, 3);
		Send().from(p.a.mem, 0, 8).post(p.a);
		expect_ok(p.b.rcq, 3);
	}
	EXPECT_EQ(srq.destroy(), 0);
}

/* ibv_destroy_comp_channel(3). */
TEST_F(DestroyTest, ChannelWithACq)
{
	Channel channel = make_channel(dev);
	Cq cq = make_cq(dev, 4, channel);

	EXPECT_EQ(channel.destroy(), EBUSY);
	EXPECT_EQ(cq.destroy(), 0);
	EXPECT_EQ(channel.destroy(), 0);
}

/* A QP may be destroyed in any state, with work in its queues; its completions are gone. */
TEST_F(DestroyTest, QpInEveryState)
{
	for (int state = 0; state < 6; state++) {
		QpOptions o;
		End a(dev, pd, o), b(dev, pd, o);
		if (state > 0)
			to_init(a);
		if (state > 0)
			recv(a, a.mem, 0, 8, 1);
		if (state > 1)
			to_rtr(dev, a, b.num());
		if (state > 2) {
			to_rts(dev, a);
			/* nobody answers: it is waiting when it goes */
			Send().from(a.mem, 0, 8).post(a);
		}
		if (state == 4)
			modify(a, IBV_QPS_SQD);
		if (state == 5)
			to_error(a);
		EXPECT_EQ(a.qp.destroy(), 0) << state;
		expect_empty(a.scq);
		expect_empty(a.rcq);
	}
}

/* The peer goes in the middle of traffic: the other end gets its error, and all can be destroyed. */
TEST_F(DestroyTest, PeerInTheMiddleOfTraffic)
{
	Path path;
	path.timeout = 12;
	path.retry_cnt = 1;
	QpOptions o;
	o.memory = 1 << 20;

	for (int round = 0; round < 20; round++) {
		Pair p = make_pair(o, path);
		auto killer = worker([&] {
			for (int spin = 0; spin < round * 2000; spin++)
				asm volatile("" ::: "memory");
			EXPECT_EQ(p.b.qp.destroy(), 0);
		});
		for (int i = 0; i < 100; i++)
			Send(IBV_WR_RDMA_WRITE, i).from(p.a.mem, 0, 1 << (i % 20)).to(p.b.mem).post(p.a);
		killer.join();
		bool failed = false;
		for (auto &wc : poll_n(p.a.scq, 100)) {
			if (wc.status == IBV_WC_SUCCESS)
				EXPECT_FALSE(failed);
			else
				EXPECT_EQ(wc.status, failed ? IBV_WC_WR_FLUSH_ERR : IBV_WC_RETRY_EXC_ERR);
			failed |= wc.status != IBV_WC_SUCCESS;
		}
	}
}

/* A region may go at any time: what uses it gets an error, not somebody else's memory. */
TEST_F(DestroyTest, RegionInTheMiddleOfTraffic)
{
	for (int round = 0; round < 20; round++) {
		Pair p = make_pair();
		Region target(pd, 1 << 20);
		uint64_t addr = target.addr();
		uint32_t rkey = target.mr->rkey;
		Region source(pd, 1 << 20);
		auto killer = worker([&] {
			for (int spin = 0; spin < round * 2000; spin++)
				asm volatile("" ::: "memory");
			target.mr.reset();
		});
		for (int i = 0; i < 50; i++)
			Send(IBV_WR_RDMA_WRITE, i).from(source, 0, 1 << 20).to(addr, rkey).post(p.a);
		killer.join();
		bool failed = false;
		for (auto &wc : poll_n(p.a.scq, 50)) {
			if (wc.status == IBV_WC_SUCCESS)
				EXPECT_FALSE(failed);
			else
				EXPECT_EQ(wc.status, failed ? IBV_WC_WR_FLUSH_ERR : IBV_WC_REM_ACCESS_ERR);
			failed |= wc.status != IBV_WC_SUCCESS;
		}
		p.b.qp.reset();
		while (next_async(dev, Millis(0)))
			;
	}
}

/* An address handle may go as soon as post_send has returned. */
TEST_F(DestroyTest, AddressHandleAfterPost)
{
	UdEnd a(dev, pd), b(dev, pd);

	for (int i = 0; i < 100; i++) {
		Ah ah = make_ah(dev, pd, dev.gid_index(), dev.gid(dev.gid_index()));
		recv(b, b.mem, 0, 4096, i);
		Send(IBV_WR_SEND, i).from(a.mem, 0, 16).ud(ah, b.num(), b.qkey).post(a);
		expect_ok(a.scq, i);
		EXPECT_EQ(ah.destroy(), 0);
		expect_ok(b.rcq, i);
	}
}

/* Many threads make and destroy objects of one context at once (CASES 34; under ThreadSanitizer: tests/user/provider_unit). */
TEST_F(DestroyTest, Cases34_ThreadsThatMakeAndDestroy)
{
	std::vector<std::jthread> threads;

	for (int t = 0; t < 16; t++) {
		threads.push_back(worker([&] {
			for (int i = 0; i < 10; i++) {
				Channel channel = make_channel(dev);
				QpOptions o;
				o.channel = channel;
				o.memory = 8192;
				Pair p(dev, pd, o);
				arm(p.a.scq);
				Send(IBV_WR_RDMA_WRITE, i).from(p.a.mem, 0, 8).to(p.b.mem).post(p.a);
				expect_event(channel, p.a.scq);
				expect_ok(p.a.scq, i);
			}
		}));
	}
}
