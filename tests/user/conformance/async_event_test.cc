/* SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB */
/*
 * Asynchronous events that have a natural cause on one host (the table of docs/events.md: each once per cause, after the
 * completion that explains it, on the right object). CQ_ERR and QP_FATAL are in cq_test.cc, SRQ_LIMIT_REACHED and
 * LAST_WQE_REACHED in srq_test.cc, the causes of QP_ACCESS_ERR and QP_REQ_ERR in wc_status_test.cc.
 */
#include "pair.h"

#include <atomic>
#include <thread>

using namespace conformance;

class AsyncEvent : public RcTest {
protected:
	/* b in RTR, a in RTS */
	void half_connect(End &a, End &b)
	{
		to_init(a);
		to_init(b);
		to_rtr(dev, a, b.num());
		to_rtr(dev, b, a.num());
		to_rts(dev, a);
	}
};

/* COMM_EST: the first packet in RTR; once. */
TEST_F(AsyncEvent, CommunicationEstablished)
{
	QpOptions o;
	End a(dev, pd, o), b(dev, pd, o);

	half_connect(a, b);
	expect_no_async(dev, Millis(20));
	recv(b, b.mem, 0, 64, 1);
	recv(b, b.mem, 0, 64, 2);
	Send(IBV_WR_SEND, 1).from(a.mem, 0, 8).post(a);
	expect_async(dev, IBV_EVENT_COMM_EST, b.qp.get());
	Send(IBV_WR_SEND, 2).from(a.mem, 0, 8).post(a);
	expect_ok(b.rcq, 1);
	expect_ok(b.rcq, 2);
	expect_no_async(dev);
	/* the program may go on as usual */
	EXPECT_EQ(state_of(b), IBV_QPS_RTR);
	to_rts(dev, b);
	recv(a, a.mem, 0, 64, 3);
	Send(IBV_WR_SEND, 4).from(b.mem, 0, 8).post(b);
	expect_ok(a.rcq, 3);
	expect_no_async(dev);
}

/* Any request counts, a write that takes no receive WR too; and RTR once more means once more. */
TEST_F(AsyncEvent, CommunicationEstablishedByAWrite)
{
	QpOptions o;
	End a(dev, pd, o), b(dev, pd, o);

	for (int i = 0; i < 3; i++) {
		half_connect(a, b);
		for (int n = 0; n < 3; n++) {
			Send(IBV_WR_RDMA_WRITE, n).from(a.mem, 0, 8).to(b.mem).post(a);
			expect_ok(a.scq, n);
		}
		expect_async(dev, IBV_EVENT_COMM_EST, b.qp.get());
		expect_no_async(dev);
		modify(a, IBV_QPS_RESET);
		modify(b, IBV_QPS_RESET);
	}
}

/* In RTS there is nothing to establish. */
TEST_F(AsyncEvent, NoCommunicationEventInRts)
{
	Pair p = make_pair();

	Send(IBV_WR_RDMA_WRITE, 1).from(p.a.mem, 0, 8).to(p.b.mem).post(p.a);
	expect_ok(p.a.scq, 1);
	expect_no_async(dev);
}

/*
 * A write that may not be made takes no receive WR, though it carries immediate data: that WR is flushed with the rest,
 * and the event alone tells of the violation.
 */
TEST_F(AsyncEvent, AccessErrorTakesNoReceiveWr)
{
	Pair p = make_pair();
	uint32_t bad = p.b.mem.mr->rkey ^ 0x30;

	recv(p.b, p.b.mem, 0, 64, 1);
	Send(IBV_WR_RDMA_WRITE_WITH_IMM, 2).from(p.a.mem, 0, 8).to(p.b.mem.addr(), bad).post(p.a);
	expect_wc(p.a.scq, IBV_WC_REM_ACCESS_ERR, 2);
	expect_wc(p.b.rcq, IBV_WC_WR_FLUSH_ERR, 1);
	expect_async(dev, IBV_EVENT_QP_ACCESS_ERR, p.b.qp.get());
	expect_no_async(dev);
}

/* Once per transition to ERR, however many bad requests follow. */
TEST_F(AsyncEvent, OneAccessErrorPerTransition)
{
	Pair p = make_pair();
	uint32_t bad = p.b.mem.mr->rkey ^ 0x30;

	for (int i = 0; i < 5; i++)
		Send(IBV_WR_RDMA_WRITE, i).from(p.a.mem, 0, 8).to(p.b.mem.addr(), bad).post(p.a);
	poll_n(p.a.scq, 5);
	expect_async(dev, IBV_EVENT_QP_ACCESS_ERR, p.b.qp.get());
	to_error(p.b);
	expect_no_async(dev);
	/* reset, and again: again one */
	modify(p.a, IBV_QPS_RESET);
	modify(p.b, IBV_QPS_RESET);
	p.connect(dev, {});
	Send(IBV_WR_RDMA_WRITE, 9).from(p.a.mem, 0, 8).to(p.b.mem.addr(), bad).post(p.a);
	expect_wc(p.a.scq, IBV_WC_REM_ACCESS_ERR, 9);
	expect_async(dev, IBV_EVENT_QP_ACCESS_ERR, p.b.qp.get());
	expect_no_async(dev);
}

/* The state is changed before the event can be read. */
TEST_F(AsyncEvent, StateIsErrorWhenTheEventIsRead)
{
	for (int i = 0; i < 50; i++) {
		Pair p = make_pair();
		Send().from(p.a.mem, 0, 8).post(p.a);
		to_error(p.a);
		Pair q = make_pair();
		Send(IBV_WR_RDMA_WRITE).from(q.a.mem, 0, 8).to(q.b.mem.addr(), ~q.b.mem.mr->rkey).post(q.a);
		expect_async(dev, IBV_EVENT_QP_ACCESS_ERR, q.b.qp.get());
		EXPECT_EQ(state_of(q.b), IBV_QPS_ERR);
	}
}

/* A modify to ERR is the program's own doing: no event explains it. */
TEST_F(AsyncEvent, NoEventForAModifyToError)
{
	Pair p = make_pair();

	for (int i = 0; i < 10; i++)
		recv(p.a, p.a.mem, 0, 64, i);
	to_error(p.a);
	poll_n(p.a.rcq, 10);
	expect_no_async(dev);
}

/* A requester's own errors have a completion; no event (the responder is well). */
TEST_F(AsyncEvent, NoEventForLocalErrors)
{
	Pair p = make_pair();

	Send(IBV_WR_RDMA_WRITE).sge({p.a.mem.addr(), 8, ~p.a.mem.mr->lkey}).to(p.b.mem).post(p.a);
	expect_wc(p.a.scq, IBV_WC_LOC_PROT_ERR, 1);
	expect_no_async(dev);
}

/* ------------------------------------------------------------- SQ_DRAINED */

class SqDrained : public AsyncEvent {
protected:
	void drain(ibv_qp *qp, bool notify)
	{
		Attr at = state_attr(IBV_QPS_SQD);

		at.a.en_sqd_async_notify = notify;
		at.mask |= IBV_QP_EN_SQD_ASYNC_NOTIFY;
		modify(qp, at);
	}
};

/* CASES 53: idle: at once. */
TEST_F(SqDrained, Cases53_Idle)
{
	Pair p = make_pair();

	drain(p.a, true);
	expect_async(dev, IBV_EVENT_SQ_DRAINED, p.a.qp.get());
	expect_no_async(dev);
	modify(p.a, state_attr(IBV_QPS_RTS));
	expect_no_async(dev, Millis(20));
	drain(p.a, true);
	expect_async(dev, IBV_EVENT_SQ_DRAINED, p.a.qp.get());
}

/* CASES 53: without the flag: none. */
TEST_F(SqDrained, Cases53_NotAskedFor)
{
	Pair p = make_pair();

	drain(p.a, false);
	expect_no_async(dev);
	modify(p.a, state_attr(IBV_QPS_RTS));
	modify(p.a, state_attr(IBV_QPS_SQD));
	expect_no_async(dev);
}

/* CASES 53: with 32 in flight: one, after the last completion of what was started. */
TEST_F(SqDrained, Cases53_AfterTheLastCompletion)
{
	QpOptions o;
	o.memory = 4 << 20;

	for (int round = 0; round < 5; round++) {
		Pair p = make_pair(o);
		for (int i = 0; i < 32; i++)
			Send(IBV_WR_RDMA_WRITE, i).from(p.a.mem, 0, 4 << 20).to(p.b.mem).post(p.a);
		drain(p.a, true);
		expect_async(dev, IBV_EVENT_SQ_DRAINED, p.a.qp.get());
		/* what was started is done; nothing more comes in SQD */
		std::vector<ibv_wc> wcs(64);
		int n = ibv_poll_cq(p.a.scq, 64, wcs.data());
		ASSERT_GE(n, 0);
		expect_stays_empty(p.a.scq);
		expect_no_async(dev, Millis(0));
		modify(p.a, state_attr(IBV_QPS_RTS));
		if (n < 32) {
			auto rest = poll_n(p.a.scq, 32 - n);
			EXPECT_EQ(rest.back().wr_id, 31u);
		}
	}
}

/* A send that waits for its receiver was started: drained only once it is done. */
TEST_F(SqDrained, WaitsForAStartedSend)
{
	Path path;
	path.min_rnr_timer = 12; /* 0.64 ms */
	Pair p = make_pair({}, path);

	Send(IBV_WR_SEND, 1).from(p.a.mem, 0, 64).post(p.a);
	expect_empty(p.a.scq);
	drain(p.a, true);
	expect_no_async(dev);
	recv(p.b, p.b.mem, 0, 64, 2);
	expect_async(dev, IBV_EVENT_SQ_DRAINED, p.a.qp.get());
	ibv_wc wc{};
	ASSERT_EQ(ibv_poll_cq(p.a.scq, 1, &wc), 1) << "drained before the completion";
	EXPECT_EQ(wc.status, IBV_WC_SUCCESS);
	expect_ok(p.b.rcq, 2);
}

/* ------------------------------------------------------ acks and destroys */

class AsyncAck : public AsyncEvent {
protected:
	/* An event on b of the pair, got and not acked. */
	ibv_async_event provoke(Pair &p)
	{
		ibv_async_event event{};

		Send(IBV_WR_RDMA_WRITE).from(p.a.mem, 0, 8).to(p.b.mem.addr(), ~p.b.mem.mr->rkey).post(p.a);
		require(readable(dev.ctx->async_fd, patience()), "no event");
		require_ok(ibv_get_async_event(dev, &event), "ibv_get_async_event");
		EXPECT_EQ(event.element.qp, p.b.qp.get());
		return event;
	}
};

/* CASES 43: destroy waits for the ack of this object's events, and of no other's. */
TEST_F(AsyncAck, Cases43_DestroyWaitsForItsOwnAcks)
{
	Pair p = make_pair(), other = make_pair();
	ibv_async_event mine = provoke(p), others = provoke(other);
	std::atomic<bool> done{false};
	ibv_qp *raw = p.b.qp.release();
	auto t = worker([&] {
		EXPECT_EQ(ibv_destroy_qp(raw), 0);
		done = true;
	});

	std::this_thread::sleep_for(quiet());
	EXPECT_FALSE(done);
	ibv_ack_async_event(&others);
	std::this_thread::sleep_for(quiet());
	EXPECT_FALSE(done) << "another object's ack let it go";
	ibv_ack_async_event(&mine);
	t.join();
}

/* Unread events vanish when their object goes (ibv_get_async_event(3)). */
TEST_F(AsyncAck, UnreadEventsVanish)
{
	{
		Pair p = make_pair();
		Send(IBV_WR_RDMA_WRITE).from(p.a.mem, 0, 8).to(p.b.mem.addr(), ~p.b.mem.mr->rkey).post(p.a);
		ASSERT_TRUE(readable(dev.ctx->async_fd, patience()));
	}
	expect_no_async(dev, Millis(0));
	{
		Srq srq = make_srq(pd, 4);
		QpOptions o;
		o.srq = srq;
		Pair p(dev, pd, QpOptions(), o, Path());
		to_error(p.b);
		ASSERT_TRUE(readable(dev.ctx->async_fd, patience()));
	}
	expect_no_async(dev, Millis(0));
}

/* CASES 42, in small (all of it is in async_crowd_test.cc): what a peer breaks is alive when its event is read. */
TEST_F(AsyncAck, Cases42_ElementsAreAlwaysAlive)
{
	std::atomic<int> got{0};
	auto reader = worker([&](std::stop_token stop) {
		while (!stop.stop_requested()) {
			ibv_async_event event{};

			if (!readable(dev.ctx->async_fd, Millis(20)))
				continue;
			if (ibv_get_async_event(dev, &event))
				continue; /* it vanished between poll and get */
			EXPECT_EQ(event.element.qp->context, dev.ctx.get());
			EXPECT_GT(event.element.qp->qp_num, 1u);
			got++;
			ibv_ack_async_event(&event);
		}
	});
	for (int i = 0; i < 200; i++) {
		Pair p = make_pair();
		Send(IBV_WR_RDMA_WRITE).from(p.a.mem, 0, 8).to(p.b.mem.addr(), ~p.b.mem.mr->rkey).post(p.a);
		expect_wc(p.a.scq, IBV_WC_REM_ACCESS_ERR, 1);
	}
	reader.request_stop();
	reader.join();
	EXPECT_LE(got, 200);
}

/* Several threads wait; each event goes to one of them. */
TEST_F(AsyncAck, EachEventToOneReader)
{
	std::atomic<int> got{0};
	std::vector<Pair> pairs;
	std::vector<std::jthread> readers;
	const int n = 50;

	for (int i = 0; i < 4; i++) {
		readers.push_back(worker([&](std::stop_token stop) {
			while (!stop.stop_requested()) {
				ibv_async_event event{};

				if (!readable(dev.ctx->async_fd, Millis(20)) || ibv_get_async_event(dev, &event))
					continue;
				EXPECT_EQ(event.event_type, IBV_EVENT_QP_ACCESS_ERR);
				got++;
				ibv_ack_async_event(&event);
			}
		}));
	}
	for (int i = 0; i < n; i++) {
		pairs.push_back(make_pair());
		Pair &p = pairs.back();
		Send(IBV_WR_RDMA_WRITE).from(p.a.mem, 0, 8).to(p.b.mem.addr(), ~p.b.mem.mr->rkey).post(p.a);
	}
	auto end = Clock::now() + patience();
	while (got < n && Clock::now() < end)
		std::this_thread::yield();
	std::this_thread::sleep_for(quiet());
	readers.clear();
	EXPECT_EQ(got, n);
}

/* Every context hears of its own objects only. */
TEST_F(AsyncAck, ContextsAreSeparate)
{
	Device second;
	Pd pd2 = make_pd(second);
	Pair p(second, pd2);

	Send(IBV_WR_RDMA_WRITE).from(p.a.mem, 0, 8).to(p.b.mem.addr(), ~p.b.mem.mr->rkey).post(p.a);
	expect_async(second, IBV_EVENT_QP_ACCESS_ERR, p.b.qp.get());
	expect_no_async(dev);
}
