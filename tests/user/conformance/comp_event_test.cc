/* SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB */
/* Completion events, rules C1 to C8, from one thread; CASES 5, 6, 7, 13, 22, 29, 32, 33. */
#include "pair.h"

#include <fcntl.h>
#include <sys/epoll.h>
#include <unistd.h>

#include <atomic>
#include <thread>

using namespace conformance;

class CompEvent : public RcTest {
protected:
	QpOptions on_channel()
	{
		QpOptions o;

		o.channel = channel;
		return o;
	}
	void write(Pair &p, uint64_t id = 1) { Send(IBV_WR_RDMA_WRITE, id).from(p.a.mem, 0, 1).to(p.b.mem).post(p.a); }
	Channel channel = make_channel(dev);
};

/* C1: one arm, one event. */
TEST_F(CompEvent, OneShot)
{
	Pair p = make_pair(on_channel());

	write(p);
	expect_ok(p.a.scq, 1);
	expect_no_event(channel);
	for (int i = 0; i < 10; i++) {
		arm(p.a.scq);
		write(p);
		expect_event(channel, p.a.scq);
		write(p);
		poll_n(p.a.scq, 2);
		expect_no_event(channel, Millis(i == 0 ? quiet() : Millis(0)));
	}
	expect_no_event(channel);
}

/* C2: each completion that is armed for fires; none is lost over many rounds. */
TEST_F(CompEvent, NoneIsLost)
{
	Pair p = make_pair(on_channel());

	for (int i = 0; i < 5000; i++) {
		arm(p.a.scq);
		write(p, i);
		ASSERT_EQ(wait_event(channel, patience()), p.a.scq) << "round " << i;
		expect_ok(p.a.scq, i);
	}
	expect_no_event(channel);
}

/* C3, CASES 22: what is there already fires nothing; the next does, even into an empty CQ's wait. */
TEST_F(CompEvent, Cases22_WhatIsThereAlreadyFiresNothing)
{
	Pair p = make_pair(on_channel());

	write(p, 1);
	write(p, 2);
	/* both are in the CQ: a message after them has arrived */
	recv_empty(p.b, 1);
	Send(IBV_WR_SEND, 3).post(p.a);
	expect_ok(p.b.rcq, 1);
	while (wait_event(channel, Millis(0)))
		;
	arm(p.a.scq);
	expect_no_event(channel);
	write(p, 4);
	expect_event(channel, p.a.scq);
	poll_n(p.a.scq, 4);
	/* armed twice is armed once */
	arm(p.a.scq);
	arm(p.a.scq);
	write(p);
	expect_event(channel, p.a.scq);
	expect_no_event(channel);
	poll_one(p.a.scq);
}

/* C3: the event may meet an empty CQ. */
TEST_F(CompEvent, EventForAnEmptyCq)
{
	Pair p = make_pair(on_channel());

	arm(p.a.scq);
	write(p);
	expect_ok(p.a.scq, 1);
	expect_event(channel, p.a.scq);
	expect_empty(p.a.scq);
}

/* C4, CASES 7: plain: none for 200 ms; solicited: one. */
TEST_F(CompEvent, Cases7_SolicitedMessages)
{
	Pair p = make_pair(on_channel());

	arm(p.b.rcq, true);
	message(p, false);
	expect_no_event(channel);
	message(p, true);
	expect_event(channel, p.b.rcq);
	message(p, true);
	expect_no_event(channel);
	poll_n(p.b.rcq, 3);
}

/* C4: a write with immediate carries the bit as well. */
TEST_F(CompEvent, SolicitedWriteWithImmediate)
{
	Pair p = make_pair(on_channel());

	arm(p.b.rcq, true);
	recv_empty(p.b, 1);
	recv_empty(p.b, 2);
	Send(IBV_WR_RDMA_WRITE_WITH_IMM, 1).from(p.a.mem, 0, 8).to(p.b.mem).post(p.a);
	expect_ok(p.a.scq, 1);
	expect_no_event(channel);
	Send(IBV_WR_RDMA_WRITE_WITH_IMM, 2).from(p.a.mem, 0, 8).to(p.b.mem).add_flags(IBV_SEND_SOLICITED).post(p.a);
	expect_event(channel, p.b.rcq);
}

/* C4: successful sends never fire a solicited arm, whatever their flags (CASES 13). */
TEST_F(CompEvent, Cases13_SendsAreNotSolicited)
{
	Pair p = make_pair(on_channel());

	arm(p.a.scq, true);
	for (int i = 0; i < 16; i++) {
		Send(IBV_WR_RDMA_WRITE, i)
			.from(p.a.mem, 0, 1)
			.to(p.b.mem)
			.flags((i % 8 == 7 ? IBV_SEND_SIGNALED : 0) | IBV_SEND_SOLICITED)
			.post(p.a);
	}
	recv(p.b, p.b.mem, 0, 64, 5);
	Send(IBV_WR_SEND, 6).from(p.a.mem, 0, 8).add_flags(IBV_SEND_SOLICITED).post(p.a);
	poll_n(p.a.scq, 3);
	expect_no_event(channel);
}

/* C4, CASES 6 (a): a write with a bad rkey. */
TEST_F(CompEvent, Cases6a_ErrorsAreSolicitedBadRkey)
{
	Pair p = make_pair(on_channel());

	arm(p.a.scq, true);
	Send(IBV_WR_RDMA_WRITE).from(p.a.mem, 0, 1).to(p.b.mem.addr(), p.b.mem.mr->rkey ^ 0x70).unsignaled().post(p.a);
	expect_event(channel, p.a.scq);
	expect_wc(p.a.scq, IBV_WC_REM_ACCESS_ERR, 1);
	expect_no_event(channel);
}

/* CASES 6 (b): QP to ERR with a posted receive. */
TEST_F(CompEvent, Cases6b_ErrorsAreSolicitedFlush)
{
	Pair p = make_pair(on_channel());

	recv(p.b, p.b.mem, 0, 8, 1);
	arm(p.b.rcq, true);
	to_error(p.b);
	expect_event(channel, p.b.rcq);
	expect_wc(p.b.rcq, IBV_WC_WR_FLUSH_ERR, 1);
	expect_no_event(channel);
}

/* CASES 6 (c): a too-long send into a short receive: both ends. */
TEST_F(CompEvent, Cases6c_ErrorsAreSolicitedTooLong)
{
	Pair p = make_pair(on_channel());

	recv(p.b, p.b.mem, 0, 8, 1);
	arm(p.b.rcq, true);
	arm(p.a.scq, true);
	Send(IBV_WR_SEND, 2).from(p.a.mem, 0, 9).unsignaled().post(p.a);
	ibv_cq *one = wait_event(channel, patience()), *two = wait_event(channel, patience());
	EXPECT_TRUE((one == p.b.rcq && two == p.a.scq) || (one == p.a.scq && two == p.b.rcq));
	expect_no_event(channel);
	expect_wc(p.b.rcq, IBV_WC_LOC_LEN_ERR, 1);
	expect_wc(p.a.scq, IBV_WC_REM_INV_REQ_ERR, 2);
}

/* C5, CASES 5: SOLICITED never weakens NEXT_COMP; in each order, each twice. */
TEST_F(CompEvent, Cases5_SolicitedAndNextInAnyOrder)
{
	Pair p = make_pair(on_channel());

	for (const char *order : {"sn", "ns", "ssnn", "nnss", "snsn", "nsns"}) {
		for (const char *c = order; *c; c++)
			arm(p.a.scq, *c == 's');
		write(p);
		ASSERT_EQ(wait_event(channel, patience()), p.a.scq) << order;
		write(p);
		poll_n(p.a.scq, 2);
		expect_no_event(channel, Millis(20));
	}
	/* and a solicited arm after the next one was used up is solicited */
	arm(p.a.scq);
	write(p);
	expect_event(channel, p.a.scq);
	arm(p.a.scq, true);
	write(p);
	expect_no_event(channel);
	poll_n(p.a.scq, 2);
}

/* C7, CASES 32: 64 CQs on one channel: the right CQ and context, in the order they fired. */
TEST_F(CompEvent, Cases32_ManyCqsOnOneChannel)
{
	std::vector<Cq> cqs;
	std::vector<Pair> pairs;

	for (int i = 0; i < 64; i++) {
		cqs.push_back(make_cq(dev, 4, channel, reinterpret_cast<void *>(static_cast<uintptr_t>(1000 + i))));
		QpOptions o;
		o.send_cq = cqs.back();
		o.send_wr = o.recv_wr = 4;
		o.memory = 4096;
		pairs.push_back(make_pair(o));
	}
	for (int round = 0; round < 3; round++) {
		for (auto &cq : cqs)
			arm(cq);
		for (int i = 0; i < 64; i++) {
			write(pairs[(i * 7 + round) % 64]);
			expect_ok(cqs[(i * 7 + round) % 64], 1);
		}
		for (int i = 0; i < 64; i++) {
			int which = (i * 7 + round) % 64;
			void *context = nullptr;
			ASSERT_EQ(wait_event(channel, patience(), &context), cqs[which].get()) << i;
			EXPECT_EQ(context, reinterpret_cast<void *>(static_cast<uintptr_t>(1000 + which)));
		}
		expect_no_event(channel, Millis(0));
	}
	pairs.clear();
}

/* C7: a channel that has nothing gives EAGAIN when it may not block. */
TEST_F(CompEvent, NonBlockingGet)
{
	ibv_cq *cq;
	void *context;

	errno = 0;
	EXPECT_NE(ibv_get_cq_event(channel, &cq, &context), 0);
	EXPECT_EQ(errno, EAGAIN);
}

/* C7: level- and edge-triggered epoll. */
TEST_F(CompEvent, Epoll)
{
	Pair p = make_pair(on_channel()), q = make_pair(on_channel());

	for (bool edge : {false, true}) {
		int ep = epoll_create1(0);
		epoll_event want = {}, got = {};
		want.events = EPOLLIN | (edge ? static_cast<uint32_t>(EPOLLET) : 0u);
		ASSERT_EQ(epoll_ctl(ep, EPOLL_CTL_ADD, channel->fd, &want), 0);
		EXPECT_EQ(epoll_wait(ep, &got, 1, 0), 0);
		arm(p.a.scq);
		write(p);
		EXPECT_EQ(epoll_wait(ep, &got, 1, (int)patience().count()), 1);
		EXPECT_EQ(epoll_wait(ep, &got, 1, 20), edge ? 0 : 1);
		arm(q.a.scq);
		write(q);
		EXPECT_EQ(epoll_wait(ep, &got, 1, (int)patience().count()), 1);
		expect_event(channel, p.a.scq);
		expect_event(channel, q.a.scq);
		EXPECT_EQ(epoll_wait(ep, &got, 1, 0), 0);
		poll_one(p.a.scq);
		poll_one(q.a.scq);
		close(ep);
	}
}

/* C8, CASES 29: destroy waits for the acks of its own CQ. */
TEST_F(CompEvent, Cases29_DestroyWaitsForAcks)
{
	Cq busy = make_cq(dev, 8, channel), other = make_cq(dev, 8, channel);
	ibv_cq *got = nullptr;
	void *context;

	{
		QpOptions o;
		o.send_cq = busy;
		Pair p = make_pair(o);
		arm(busy);
		write(p);
		ASSERT_TRUE(readable(channel->fd, patience()));
		ASSERT_EQ(ibv_get_cq_event(channel, &got, &context), 0);
		ASSERT_EQ(got, busy.get());
	}
	/* another CQ's destroy is not held up */
	EXPECT_EQ(other.destroy(), 0);
	std::atomic<bool> done{false};
	ibv_cq *raw = busy.release();
	auto t = worker([&] {
		EXPECT_EQ(ibv_destroy_cq(raw), 0);
		done = true;
	});
	std::this_thread::sleep_for(quiet());
	EXPECT_FALSE(done) << "destroy did not wait for the ack";
	const auto acked = Clock::now();
	ibv_ack_cq_events(got, 1);
	t.join();
	EXPECT_TRUE(done);
	/* 100 ms on an idle machine: it is woken, it does not look now and then */
	EXPECT_LT(Clock::now() - acked, Millis(1000) * slowness());
}

/* C8: events nobody read vanish with their CQ; those of another stay. */
TEST_F(CompEvent, UnreadEventsVanishAtDestroy)
{
	Cq keep = make_cq(dev, 8, channel);
	QpOptions o;
	o.send_cq = keep;
	Pair k = make_pair(o);
	{
		Cq gone = make_cq(dev, 8, channel);
		QpOptions og;
		og.send_cq = gone;
		Pair g = make_pair(og);
		for (int i = 0; i < 3; i++) {
			arm(gone);
			write(g, i);
			expect_ok(gone, i);
		}
		arm(keep);
		write(k);
		expect_ok(keep, 1);
	}
	expect_event(channel, keep);
	expect_no_event(channel, Millis(0));
}

/* CASES 33: poll k of n, then arm, at depths round a power of two and across the ring's end: only new ones fire. */
TEST_F(CompEvent, Cases33_PollSomeThenArm)
{
	for (int depth : {1, 2, 7, 8, 31, 32}) {
		Cq cq = make_cq(dev, depth, channel);
		QpOptions o;
		o.send_cq = cq;
		Pair p = make_pair(o);
		uint64_t next = 0, seen = 0;
		auto post = [&](int n) {
			for (int i = 0; i < n; i++)
				write(p, next++);
		};
		auto poll = [&](int n) {
			for (auto &wc : poll_n(cq, n))
				EXPECT_EQ(wc.wr_id, seen++);
		};
		for (int round = 0; round < 3 * depth + 3; round++) {
			int n = 1 + round % depth, k = round % (n + 1);

			if (k == 0 && n == depth)
				k = 1; /* room for the one that fires */
			post(n);
			poll(k);
			/* what is not polled may still be under way to the CQ; an exchange ends that */
			recv_empty(p.b, 1);
			Send(IBV_WR_SEND).unsignaled().post(p.a);
			expect_ok(p.b.rcq, 1);
			arm(cq);
			ASSERT_EQ(wait_event(channel, Millis(2)), nullptr) << depth << " " << round;
			post(1);
			ASSERT_EQ(wait_event(channel, patience()), cq.get()) << depth << " " << round;
			poll(n - k + 1);
		}
	}
}

/* Both queues on one CQ: an arm is for the CQ, whichever queue completes. */
TEST_F(CompEvent, OneCqForBothQueues)
{
	Cq cq = make_cq(dev, 64, channel);
	QpOptions o;
	o.send_cq = o.recv_cq = cq;
	Pair p(dev, pd, QpOptions(), o, Path());

	arm(cq);
	recv(p.b, p.b.mem, 0, 8, 1);
	Send().from(p.a.mem, 0, 8).post(p.a);
	expect_event(channel, cq);
	arm(cq);
	Send(IBV_WR_RDMA_WRITE, 2).from(p.b.mem, 0, 8).to(p.a.mem).post(p.b);
	expect_event(channel, cq);
	poll_n(cq, 2);
	poll_one(p.a.scq);
}

/* Without a channel an arm does nothing. */
TEST_F(CompEvent, CqWithoutAChannel)
{
	Pair p = make_pair();

	arm(p.a.scq);
	write(p);
	expect_ok(p.a.scq, 1);
	expect_no_event(channel, Millis(0));
}

/* The classic loop of a waiter against a sender that never waits for it; litmus_test.cc has more of the kind. */
TEST_F(CompEvent, WaiterAgainstSender)
{
	QpOptions ob = on_channel();
	Pair p(dev, pd, QpOptions(), ob, Path());
	const int n = 3000;

	for (int i = 0; i < 64; i++)
		recv(p.b, p.b.mem, 0, 16, i);
	auto sender = worker([&] {
		for (int i = 0; i < n; i++) {
			for (int spin = 0; spin < (i * 37) % 500; spin++)
				asm volatile("" ::: "memory");
			Send(IBV_WR_SEND, i).from(p.a.mem, 0, 8).post(p.a);
			expect_ok(p.a.scq, i);
		}
	});
	int got = 0;
	while (got < n) {
		ibv_wc wc{};
		int rc;

		arm(p.b.rcq);
		while ((rc = ibv_poll_cq(p.b.rcq, 1, &wc)) == 1) {
			got++;
			recv(p.b, p.b.mem, 0, 16, got);
		}
		ASSERT_EQ(rc, 0);
		if (got < n && !wait_event(channel, patience())) {
			ADD_FAILURE() << "stalled after " << got;
			break;
		}
	}
	sender.join();
}
