/* SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB */
/*
 * Races on demand: completions held back and released when the test says so, before or after an arm, or in another legal
 * order; CASES 23 and 36. To the application nothing of this is visible but the timing.
 */
#include "control.h"
#include "pair.h"

#include <algorithm>
#include <map>

using namespace conformance;

class RaceTest : public RcTest {
protected:
	void SetUp() override
	{
		if (!CqControl::available(dev))
			GTEST_SKIP() << dev.name << " has no control file in debugfs";
	}
	Cq on_channel(int cqe) { return make_cq(dev, cqe, channel); }
	Pair pair_on(ibv_cq *cq, uint32_t send_wr = 128)
	{
		QpOptions a, b;

		a.send_cq = cq;
		a.send_wr = send_wr;
		return Pair(dev, pd, a, b, {});
	}
	void write(Pair &p, uint64_t id, int n = 1)
	{
		for (int i = 0; i < n; i++)
			Send(IBV_WR_RDMA_WRITE, id + i).from(p.a.mem, 0, 1).to(p.b.mem).post(p.a);
	}
	/* All that was posted to p.a has been carried out: a message after it has arrived. */
	void settled(Pair &p)
	{
		recv_empty(p.b, 1);
		Send(IBV_WR_SEND, 999).unsignaled().post(p.a);
		expect_ok(p.b.rcq, 1);
	}
	Channel channel = make_channel(dev);
};

/* A held completion has not happened; released, it is like any other: rules C1 to C3. */
TEST_F(RaceTest, HeldThenReleased)
{
	Cq cq = on_channel(33);
	Pair p = pair_on(cq);
	CqControl control(dev, cq);

	control.hold();
	arm(cq);
	write(p, 1, 3);
	settled(p);
	expect_empty(cq);
	expect_no_event(channel);
	EXPECT_EQ(control.number("held"), 3u);
	EXPECT_EQ(control.row().at("armed"), "next");

	control.release();
	expect_event(channel, cq);
	expect_ok(cq, 1);
	expect_empty(cq);
	/* the arm is used up */
	control.release();
	expect_ok(cq, 2);
	arm(cq);
	control.resume();
	expect_event(channel, cq);
	expect_ok(cq, 3);
	EXPECT_EQ(control.number("held"), 0u);
	/* and as always from now on */
	write(p, 4);
	expect_ok(cq, 4);
	expect_no_event(channel, Millis(0));
}

/*
 * CASES 23: the completion comes after the application has polled and before it has armed. Whoever polls again after
 * arming finds it; whoever does not sleeps for ever, because no event comes (rule C3).
 */
TEST_F(RaceTest, Cases23_ReleasedBeforeTheArm)
{
	Cq cq = on_channel(34);
	Pair p = pair_on(cq);
	CqControl control(dev, cq);

	for (int round = 0; round < 5; round++) {
		control.hold();
		write(p, round);
		settled(p);
		control.release_before_arm();
		expect_empty(cq);
		arm(cq);
		expect_no_event(channel, round ? Millis(20) : quiet());
		EXPECT_EQ(control.number("unpolled"), 1u);
		expect_ok(cq, round);
		/* the arm is still there for the next one */
		write(p, 100);
		settled(p);
		control.release();
		expect_event(channel, cq);
		expect_ok(cq, 100);
		control.resume();
	}
}

/* CASES 23: it comes just after the arm: one event, each time. */
TEST_F(RaceTest, Cases23_ReleasedAfterTheArm)
{
	Cq cq = on_channel(35);
	Pair p = pair_on(cq);
	CqControl control(dev, cq);

	control.hold();
	for (int round = 0; round < 5; round++) {
		write(p, round);
		settled(p);
		control.release_after_arm();
		expect_empty(cq);
		arm(cq);
		expect_event(channel, cq);
		expect_ok(cq, round);
		expect_no_event(channel, Millis(20));
	}
	/* an arm that finds nothing to release takes the order along */
	control.release_after_arm(3);
	arm(cq);
	write(p, 50);
	settled(p);
	arm(cq);
	expect_no_event(channel, Millis(20));
	control.release();
	expect_event(channel, cq);
}

/* One before and one after the same arm. */
TEST_F(RaceTest, BeforeAndAfterOneArm)
{
	Cq cq = on_channel(36);
	Pair p = pair_on(cq);
	CqControl control(dev, cq);

	control.hold();
	write(p, 1, 4);
	settled(p);
	control.release_before_arm(2);
	control.release_after_arm(1);
	arm(cq);
	expect_event(channel, cq);
	for (uint64_t id : {1, 2, 3})
		expect_ok(cq, id);
	expect_empty(cq);
	expect_no_event(channel, Millis(20));
}

/* The send queue's room is free when the completion was polled, not when it was held. */
TEST_F(RaceTest, HeldCompletionsKeepTheirRoomInTheSendQueue)
{
	Cq cq = on_channel(37);
	Pair p = pair_on(cq, 4);
	CqControl control(dev, cq);
	auto full = [&] { return Send(IBV_WR_RDMA_WRITE, 77).from(p.a.mem, 0, 1).to(p.b.mem).try_post(p.a); };

	control.hold();
	write(p, 0, 4);
	EXPECT_EQ(full(), ENOMEM);
	control.release();
	EXPECT_EQ(full(), ENOMEM);
	for (uint64_t id = 0; id < 40; id++) {
		expect_ok(cq, id);
		write(p, id + 4);
		EXPECT_EQ(full(), ENOMEM) << id;
		control.release();
	}
	control.resume();
	for (uint64_t id = 40; id < 44; id++)
		expect_ok(cq, id);
}

/* Rule C14: those of a destroyed QP go with it, held or not, and leave the others in order. */
TEST_F(RaceTest, HeldCompletionsGoWithTheirQp)
{
	Cq cq = on_channel(38);
	Pair keep = pair_on(cq, 16);
	CqControl control(dev, cq);

	for (int round = 0; round < 3; round++) {
		{
			Pair gone = pair_on(cq, 16);

			control.hold();
			for (int i = 0; i < 8; i++) {
				write(gone, 1000 + i);
				write(keep, i);
			}
			settled(keep);
			control.release(5);
		}
		EXPECT_EQ(control.number("held"), 6u);
		control.resume();
		for (int i = 0; i < 8; i++)
			expect_ok(cq, i);
		expect_empty(cq);
	}
	/* the send queue knows where its completions went: all of its room comes back, once settled()'s is covered */
	write(keep, 0);
	expect_ok(cq, 0);
	for (int i = 0; i < 3; i++) {
		write(keep, 0, 16);
		for (int id = 0; id < 16; id++)
			expect_ok(cq, id);
	}
}

/* Rule C11: held completions need room like any other, and come before the overrun that they were in time for. */
TEST_F(RaceTest, HeldCompletionsOverrun)
{
	Cq cq = on_channel(3);
	Pair p = pair_on(cq);
	CqControl control(dev, cq);
	const int good = cq->cqe;
	ibv_wc wc{};

	control.hold();
	write(p, 0, good);
	settled(p);
	expect_no_async(dev, Millis(20));
	write(p, good);
	expect_async(dev, IBV_EVENT_CQ_ERR, cq.get());
	expect_async(dev, IBV_EVENT_QP_FATAL, p.a.qp.get());
	for (int i = 0; i < good; i++)
		expect_ok(cq, i);
	EXPECT_LT(ibv_poll_cq(cq, 1, &wc), 0);
}

/* Rule C10: a resize counts them, and keeps them. */
TEST_F(RaceTest, HeldCompletionsSurviveAResize)
{
	Cq cq = on_channel(39);
	Pair p = pair_on(cq);
	CqControl control(dev, cq);

	control.hold();
	write(p, 0, 10);
	settled(p);
	control.release(3);
	EXPECT_EQ(ibv_resize_cq(cq, 9), EINVAL);
	ASSERT_EQ(ibv_resize_cq(cq, 10), 0);
	ASSERT_EQ(ibv_resize_cq(cq, 500), 0);
	control.release(3);
	for (int i = 0; i < 6; i++)
		expect_ok(cq, i);
	expect_empty(cq);
	/* what asks for announcements is in the new ring, too */
	control.release_after_arm(1);
	arm(cq);
	expect_event(channel, cq);
	control.resume();
	for (int i = 6; i < 10; i++)
		expect_ok(cq, i);
}

/* A CQ can go while its completions are held: first its QPs, then it. */
TEST_F(RaceTest, DestroyedWhileHeld)
{
	for (bool reorder : {false, true}) {
		Cq cq = on_channel(40);
		Pair p = pair_on(cq);
		CqControl control(dev, cq);

		if (reorder)
			control.reorder(1);
		else
			control.hold();
		write(p, 1, 6);
		settled(p);
	}
	expect_no_event(channel, Millis(0));
}

/* An event may meet an empty CQ (rule C3): as many as asked for, armed or not. */
TEST_F(RaceTest, ExtraEvents)
{
	Cq cq = on_channel(41);
	Pair p = pair_on(cq);
	CqControl control(dev, cq);

	control.extra_events(3);
	for (int i = 0; i < 3; i++) {
		expect_event(channel, cq);
		expect_empty(cq);
	}
	expect_no_event(channel, Millis(20));
	/* they use up no arm */
	arm(cq);
	control.extra_events(1);
	expect_event(channel, cq);
	write(p, 1);
	expect_event(channel, cq);
	expect_ok(cq, 1);
}

/* ---------------------------------------------------------- reordering -- */

class ReorderTest : public RaceTest {
protected:
	using Key = std::pair<uint32_t, bool>; /* QP, receives */

	static constexpr int messages = 12;

	/* Messages both ways over two QPs that complete on one CQ; the order in which they completed. */
	std::vector<std::pair<Key, uint64_t>> exchange(Pair &p, ibv_cq *cq)
	{
		std::vector<std::pair<Key, uint64_t>> order;

		for (uint64_t i = 0; i < messages; i++) {
			recv(p.a, p.a.mem, 0, 64, i);
			recv(p.b, p.b.mem, 0, 64, i);
		}
		for (uint64_t i = 0; i < messages; i++) {
			Send(IBV_WR_SEND, i).from(p.a.mem, 0, 8).post(p.a);
			Send(IBV_WR_SEND, i).from(p.b.mem, 0, 8).post(p.b);
		}
		for (const ibv_wc &wc : poll_n(cq, 4 * messages)) {
			EXPECT_EQ(wc.status, IBV_WC_SUCCESS);
			order.push_back({{wc.qp_num, wc.opcode & IBV_WC_RECV}, wc.wr_id});
		}
		expect_empty(cq);
		return order;
	}
	/* The order by itself, without the numbers of the QPs. */
	static std::vector<std::pair<int, uint64_t>> shape(const std::vector<std::pair<Key, uint64_t>> &order,
							   const Pair &p)
	{
		std::vector<std::pair<int, uint64_t>> out;

		for (const auto &[key, id] : order)
			out.push_back({(key.first == p.a.num() ? 0 : 2) + key.second, id});
		return out;
	}
	static void expect_each_queue_in_order(const std::vector<std::pair<Key, uint64_t>> &order)
	{
		std::map<Key, uint64_t> next;

		for (const auto &[key, id] : order)
			EXPECT_EQ(id, next[key]++);
		EXPECT_EQ(next.size(), 4u);
	}
};

/* CASES 36: completions of different queues overtake each other, those of one queue never (rule C13). */
TEST_F(ReorderTest, Cases36_OnlyBetweenQueues)
{
	Cq cq = on_channel(201);
	QpOptions o;
	o.send_cq = o.recv_cq = cq;
	Pair p = make_pair(o);
	CqControl control(dev, cq);
	const auto plain = shape(exchange(p, cq), p);
	int changed = 0;

	for (uint64_t seed = 0; seed < 20; seed++) {
		control.reorder(seed);
		auto order = exchange(p, cq);
		expect_each_queue_in_order(order);
		changed += shape(order, p) != plain;
	}
	EXPECT_GT(changed, 15);
	control.resume();
	EXPECT_EQ(shape(exchange(p, cq), p), plain);
}

/* The seed decides: the same order again, unless a pause let the rest go early; another seed, another order. */
TEST_F(ReorderTest, TheSeedDecides)
{
	Cq cq = on_channel(202);
	QpOptions o;
	o.send_cq = o.recv_cq = cq;
	Pair p = make_pair(o);
	CqControl control(dev, cq);
	std::map<std::vector<std::pair<int, uint64_t>>, int> orders;
	const auto end = Clock::now() + patience();
	int most = 0;

	while (most < 2 && Clock::now() < end) {
		control.reorder(12345);
		most = std::max(most, ++orders[shape(exchange(p, cq), p)]);
	}
	EXPECT_GT(most, 1) << "no order came twice";
}

/* Nothing is kept back for long: a lone completion comes, with its event. */
TEST_F(ReorderTest, NothingIsKeptBackForLong)
{
	Cq cq = on_channel(203);
	Pair p = pair_on(cq);
	CqControl control(dev, cq);

	control.reorder(7);
	for (int i = 0; i < 20; i++) {
		arm(cq);
		write(p, i);
		expect_event(channel, cq);
		expect_ok(cq, i);
	}
}

/* An asynchronous event still comes after the completions that came before it. */
TEST_F(ReorderTest, AsynchronousEventsComeAfter)
{
	Cq cq = on_channel(204);
	Srq srq = make_srq(pd, 32);
	QpOptions a, b;
	b.recv_cq = cq;
	b.srq = srq;
	CqControl control(dev, cq);

	control.reorder(3);
	for (int round = 0; round < 10; round++) {
		Pair p(dev, pd, a, b, {});

		for (int i = 0; i < 8; i++) {
			srq_recv(srq, p.b.mem, 0, 64, i);
			Send(IBV_WR_SEND, i).from(p.a.mem, 0, 8).post(p.a);
		}
		poll_n(p.a.scq, 8);
		to_error(p.b);
		expect_async(dev, IBV_EVENT_QP_LAST_WQE_REACHED, p.b.qp.get());
		ibv_wc wcs[9];
		ASSERT_EQ(ibv_poll_cq(cq, 9, wcs), 8) << "round " << round;
	}
}

/* ------------------------------------------------------------- refusals -- */

TEST_F(RaceTest, CommandsThatMakeNoSense)
{
	Cq cq = on_channel(42);
	CqControl control(dev, cq);
	const std::string file = control_dir(dev) + "/control", cqn = std::to_string(control.cqn());

	EXPECT_EQ(control.try_do("release"), EINVAL) << "nothing is held";
	EXPECT_EQ(control.try_do("resume"), 0) << "nothing to resume";
	control.hold();
	EXPECT_EQ(control.try_do("hold"), 0);
	EXPECT_EQ(control.try_do("reorder", "1"), EBUSY);
	control.resume();
	control.reorder(1);
	EXPECT_EQ(control.try_do("hold"), EBUSY);
	EXPECT_EQ(control.try_do("release"), EINVAL);
	for (const char *line : {" ", "hold", "hold x", "hold -1", "hold 99999999999", "nonsense 1"})
		EXPECT_EQ(write_line(file, line), EINVAL) << "'" << line << "'";
	for (const char *tail : {" 1 2", " x", " -1"})
		EXPECT_EQ(write_line(file, "release " + cqn + tail), EINVAL) << tail;
	EXPECT_EQ(write_line(file, "event " + cqn + " 1001"), EINVAL);
	EXPECT_EQ(write_line(file, std::string(200, 'x')), EINVAL);
	EXPECT_EQ(write_line(file, "hold 4294967290"), ENOENT);
}

/* ------------------------------------------------------------- counters -- */

/* CASES 99: what a CQ has done, exactly. */
TEST_F(RaceTest, Cases99_CountersOfACq)
{
	Cq cq = on_channel(43);
	QpOptions o;
	o.recv_cq = cq;
	Pair p(dev, pd, QpOptions(), o, {});
	CqControl control(dev, cq);
	auto expect = [&](std::map<std::string, uint64_t> wanted) {
		auto row = control.row();

		for (const auto &[name, value] : wanted)
			EXPECT_EQ(std::stoull(row.at(name)), value) << name;
	};

	message(p, false);
	expect({{"posted", 1}, {"arms", 0}, {"events", 0}, {"unarmed", 1}, {"unsolicited", 0}, {"unpolled", 1}});
	arm(cq, true);
	message(p, false);
	expect({{"posted", 2}, {"arms", 1}, {"events", 0}, {"unarmed", 1}, {"unsolicited", 1}, {"unpolled", 2}});
	EXPECT_EQ(control.row().at("armed"), "solicited");
	arm(cq, true);
	arm(cq, true); /* asks for nothing new */
	message(p, true);
	expect({{"posted", 3}, {"arms", 2}, {"events", 1}, {"events_read", 0}, {"unpolled", 3}});
	EXPECT_EQ(control.row().at("armed"), "no");
	expect_event(channel, cq);
	expect({{"events_read", 1}, {"events_acked", 0}});
	poll_n(cq, 3);
	arm(cq);
	EXPECT_EQ(control.row().at("armed"), "next");
	message(p, false);
	expect_event(channel, cq);
	/* the first one was acked when the second was got */
	expect({{"posted", 4}, {"arms", 3}, {"events", 2}, {"events_read", 2}, {"events_acked", 1}, {"unpolled", 1}});
	EXPECT_EQ(control.row().at("state"), "ok");
}
