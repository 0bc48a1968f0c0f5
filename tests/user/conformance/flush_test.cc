/* SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB */
/* Flushing: rule C13; CASES 9, 10, 19. IBTA 10.3.1, 10.8.6. */
#include "pair.h"

#include <atomic>
#include <thread>

using namespace conformance;

class FlushTest : public RcTest {
protected:
	void expect_flushed(ibv_cq *cq, int n, uint64_t first)
	{
		auto wcs = poll_n(cq, n);

		for (int i = 0; i < n; i++) {
			EXPECT_EQ(wcs[i].wr_id, first + i);
			EXPECT_EQ(wcs[i].status, IBV_WC_WR_FLUSH_ERR) << i;
		}
	}
};

/* Receives are flushed in order, each once; and nothing else. */
TEST_F(FlushTest, Receives)
{
	Pair p = make_pair();

	for (int i = 0; i < 100; i++)
		recv(p.b, p.b.mem, 0, 64, i);
	to_error(p.b);
	expect_flushed(p.b.rcq, 100, 0);
	expect_stays_empty(p.b.rcq);
	expect_empty(p.b.scq);
	expect_no_async(p.at_b.dev);
}

/* From INIT and RTR, too, and to ERR twice. */
TEST_F(FlushTest, ReceivesBeforeRts)
{
	QpOptions o;

	for (bool rtr : {false, true}) {
		End e(dev, pd, o), peer(dev, pd, o);
		to_init(e);
		if (rtr)
			to_rtr(dev, e, peer.num());
		for (int i = 0; i < 10; i++)
			recv(e, e.mem, 0, 64, i);
		to_error(e);
		to_error(e);
		expect_flushed(e.rcq, 10, 0);
		expect_stays_empty(e.rcq);
	}
}

/* CASES 10: in ERR, both queues take WRs, and flush them, last, in order. */
TEST_F(FlushTest, Cases10_Beacons)
{
	Channel channel = make_channel(dev);
	QpOptions o;
	o.channel = channel;
	Pair p = make_pair(o);

	for (int i = 0; i < 20; i++)
		recv(p.a, p.a.mem, 0, 64, i);
	to_error(p.a);
	Send(IBV_WR_SEND, 1000).from(p.a.mem, 0, 8).post(p.a);
	recv(p.a, p.a.mem, 0, 64, 20);
	expect_flushed(p.a.rcq, 21, 0);
	expect_flushed(p.a.scq, 1, 1000);
	/* with an event, if armed */
	for (int i = 0; i < 5; i++) {
		arm(p.a.scq);
		Send(IBV_WR_SEND, 2000 + i).unsignaled().post(p.a);
		expect_event(channel, p.a.scq);
		expect_flushed(p.a.scq, 1, 2000 + i);
		arm(p.a.rcq);
		recv_empty(p.a, 3000 + i);
		expect_event(channel, p.a.rcq);
		expect_flushed(p.a.rcq, 1, 3000 + i);
	}
}

/* A flushed WR needs no valid memory, and an unsignaled one completes as well (10.7.3.1). */
TEST_F(FlushTest, NothingIsLookedAt)
{
	Pair p = make_pair();

	to_error(p.a);
	Send(IBV_WR_RDMA_WRITE, 1).sge({0xdead, 77, 0x4242}).to(0x1234, 0x99).unsignaled().post(p.a);
	Send(IBV_WR_RDMA_READ, 2).sge({0xdead, 77, 0x4242}).to(0x1234, 0x99).post(p.a);
	Send(IBV_WR_SEND, 3).unsignaled().post(p.a);
	require_ok(try_recv(p.a, {{0xdead, 77, 0x4242}}, 4), "recv");
	expect_flushed(p.a.scq, 3, 1);
	expect_flushed(p.a.rcq, 1, 4);
}

/* CASES 9: a good write, ten with a wrong rkey: one REM_ACCESS_ERR, nine flushes, and events. */
TEST_F(FlushTest, Cases9_FirstErrorThenFlushes)
{
	Channel channel = make_channel(dev);
	QpOptions o;
	o.channel = channel;
	Pair p = make_pair(o);

	/* as one list, so that all are there before the first fails */
	std::vector<ibv_send_wr> wrs(11);
	ibv_sge sge = p.a.mem.sge(0, 8);
	ibv_send_wr *bad;
	for (int i = 0; i < 11; i++) {
		wrs[i] = {};
		wrs[i].wr_id = i;
		wrs[i].next = i < 10 ? &wrs[i + 1] : nullptr;
		wrs[i].sg_list = &sge;
		wrs[i].num_sge = 1;
		wrs[i].opcode = IBV_WR_RDMA_WRITE;
		wrs[i].send_flags = i == 0 ? IBV_SEND_SIGNALED : 0;
		wrs[i].wr.rdma.remote_addr = p.b.mem.addr();
		wrs[i].wr.rdma.rkey = p.b.mem.mr->rkey ^ (i == 0 ? 0 : 0x80);
	}
	arm(p.a.scq, true);
	ASSERT_EQ(ibv_post_send(p.a, wrs.data(), &bad), 0);
	expect_event(channel, p.a.scq);
	expect_ok(p.a.scq, 0);
	expect_wc(p.a.scq, IBV_WC_REM_ACCESS_ERR, 1);
	expect_flushed(p.a.scq, 9, 2);
	expect_stays_empty(p.a.scq);
	expect_async(dev, IBV_EVENT_QP_ACCESS_ERR, p.b.qp.get());
}

/* CASES 19: 128 writes in flight, ERR half way: successes, then flushes, no gap, no repeat. */
TEST_F(FlushTest, Cases19_ErrorInTheMiddleOfTraffic)
{
	QpOptions o;
	o.send_wr = 256;
	o.memory = 1 << 20;
	int cut = 0;

	for (int round = 0; round < 20; round++) {
		Pair p = make_pair(o);
		std::atomic<int> posted = 0;
		auto killer = worker([&](std::stop_token stop) {
			while (posted < 64 + round && !stop.stop_requested())
				std::this_thread::yield();
			to_error(p.a);
		});
		for (int i = 0; i < 128; i++) {
			/* in every other round the last ones come when it is over */
			if (i == 120 && round % 2)
				killer.join();
			Send(IBV_WR_RDMA_WRITE, i).from(p.a.mem, 0, 1 << (i % 20)).to(p.b.mem).post(p.a);
			posted++;
		}
		if (killer.joinable())
			killer.join();
		auto wcs = poll_n(p.a.scq, 128);
		bool flushing = false;
		for (int i = 0; i < 128; i++) {
			EXPECT_EQ(wcs[i].wr_id, (uint64_t)i);
			if (wcs[i].status == IBV_WC_SUCCESS) {
				EXPECT_FALSE(flushing) << "a success after a flush, at " << i;
			} else {
				EXPECT_EQ(wcs[i].status, IBV_WC_WR_FLUSH_ERR);
				flushing = true;
			}
		}
		cut += flushing && wcs[0].status == IBV_WC_SUCCESS;
		expect_empty(p.a.scq);
	}
	EXPECT_GT(cut, 0) << "never half way";
}

/* The receiver goes to ERR while messages arrive: each receive WR completes once. */
TEST_F(FlushTest, ReceiverErrorInTheMiddleOfTraffic)
{
	Path path;
	path.timeout = 12;
	path.retry_cnt = 1;

	for (int round = 0; round < 10; round++) {
		Pair p = make_pair({}, path);
		for (int i = 0; i < 100; i++)
			recv(p.b, p.b.mem, 0, 4096, i);
		auto killer = worker([&] {
			for (int spin = 0; spin < round * 3000; spin++)
				asm volatile("" ::: "memory");
			to_error(p.b);
		});
		for (int i = 0; i < 100; i++)
			Send(IBV_WR_SEND, i).from(p.a.mem, 0, 4000).post(p.a);
		killer.join();
		auto r = poll_n(p.b.rcq, 100), s = poll_n(p.a.scq, 100);
		int received = 0, sent = 0;
		for (int i = 0; i < 100; i++) {
			EXPECT_EQ(r[i].wr_id, (uint64_t)i);
			EXPECT_EQ(s[i].wr_id, (uint64_t)i);
			received += r[i].status == IBV_WC_SUCCESS;
			sent += s[i].status == IBV_WC_SUCCESS;
		}
		/* an acknowledged send has been received; one more may have been, unacknowledged */
		EXPECT_LE(sent, received);
		EXPECT_LE(received, sent + 1);
		expect_empty(p.b.rcq);
		expect_empty(p.a.scq);
	}
}

/* A long message is cut off by ERR; its WR completes once, flushed or well. */
TEST_F(FlushTest, InTheMiddleOfALongMessage)
{
	QpOptions o;
	o.memory = 64 << 20;
	Pair p = make_pair(o);
	Send(IBV_WR_RDMA_WRITE, 1).from(p.a.mem, 0, 64 << 20).to(p.b.mem).post(p.a);
	Send(IBV_WR_RDMA_WRITE, 2).from(p.a.mem, 0, 64 << 20).to(p.b.mem).post(p.a);
	to_error(p.a);
	auto wcs = poll_n(p.a.scq, 2);
	EXPECT_EQ(wcs[0].wr_id, 1u);
	EXPECT_EQ(wcs[1].wr_id, 2u);
	for (auto &wc : wcs)
		EXPECT_TRUE(wc.status == IBV_WC_SUCCESS || wc.status == IBV_WC_WR_FLUSH_ERR);
	expect_empty(p.a.scq);
}

/* Waiting for a receiver that does not come, or an answer: flushed as well. */
TEST_F(FlushTest, WhileWaitingForRnrOrRetry)
{
	Pair rnr = make_pair(), retry = make_pair();

	modify(retry.b, IBV_QPS_RESET);
	for (Pair *p : {&rnr, &retry}) {
		for (int i = 0; i < 5; i++)
			Send(IBV_WR_SEND, i).from(p->a.mem, 0, 8).post(p->a);
		to_error(p->a);
		expect_flushed(p->a.scq, 5, 0);
		expect_empty(p->a.scq);
	}
}

/* ------------------------------------------------------------------ SQD */

/* CASES 53, IBTA 10.3.1.5: in SQD nothing new starts; back in RTS it does, in order. */
TEST_F(FlushTest, SendQueueDrain)
{
	Pair p = make_pair();

	modify(p.a, IBV_QPS_SQD);
	for (int i = 0; i < 20; i++)
		Send(IBV_WR_RDMA_WRITE, i).from(p.a.mem, 0, 8).to(p.b.mem).post(p.a);
	expect_stays_empty(p.a.scq);
	/* it still receives */
	recv(p.a, p.a.mem, 0, 64, 7);
	Send(IBV_WR_SEND, 8).from(p.b.mem, 0, 8).post(p.b);
	expect_ok(p.b.scq, 8);
	expect_ok(p.a.rcq, 7);
	modify(p.a, state_attr(IBV_QPS_RTS));
	for (int i = 0; i < 20; i++)
		expect_ok(p.a.scq, i);
}

TEST_F(FlushTest, FromSqdToError)
{
	Pair p = make_pair();

	modify(p.a, IBV_QPS_SQD);
	for (int i = 0; i < 20; i++)
		Send(IBV_WR_RDMA_WRITE, i).from(p.a.mem, 0, 8).to(p.b.mem).post(p.a);
	to_error(p.a);
	expect_flushed(p.a.scq, 20, 0);
	expect_stays_empty(p.a.scq);
}
