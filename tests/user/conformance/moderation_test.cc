/* SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB */
/*
 * Moderation of completion events, rule C9, CASES 37: ibv_modify_cq(3). An event is decided as always; then it waits until
 * `count` completions (its own is the first) have come since, or `period` microseconds have passed.
 *
 * A slow machine may need longer than a period for anything. So "not before" is a time measured from before the first
 * completion, which holds on any machine, and "at once" must come true in one of several attempts: what waits for the
 * period never is sooner than it.
 */
#include "pair.h"

#include <functional>

using namespace conformance;

namespace {

using Micros = std::chrono::microseconds;

constexpr Micros longest(65535);

int try_moderate(ibv_cq *cq, unsigned int count, Micros period)
{
	ibv_modify_cq_attr attr{};

	attr.attr_mask = IBV_CQ_ATTR_MODERATE;
	attr.moderate.cq_count = static_cast<uint16_t>(count);
	attr.moderate.cq_period = static_cast<uint16_t>(period.count());
	return code(ibv_modify_cq(cq, &attr));
}

void moderate(ibv_cq *cq, unsigned int count, Micros period)
{
	require_ok(try_moderate(cq, count, period), "ibv_modify_cq");
}

} // namespace

class ModerationTest : public RcTest {
protected:
	/* Writes of one byte, as one list: one call, however slow calls are. */
	static void write(Pair &p, int n, uint64_t first = 0)
	{
		std::vector<ibv_send_wr> wrs(n);
		ibv_sge sge = p.a.mem.sge(0, 1);
		ibv_send_wr *bad;

		for (int i = 0; i < n; i++) {
			wrs[i].wr_id = first + i;
			wrs[i].next = i + 1 < n ? &wrs[i + 1] : nullptr;
			wrs[i].sg_list = &sge;
			wrs[i].num_sge = 1;
			wrs[i].opcode = IBV_WR_RDMA_WRITE;
			wrs[i].send_flags = IBV_SEND_SIGNALED;
			wrs[i].wr.rdma.remote_addr = p.b.mem.addr();
			wrs[i].wr.rdma.rkey = p.b.mem.mr->rkey;
		}
		require_ok(ibv_post_send(p.a, wrs.data(), &bad), "ibv_post_send");
	}
	Pair on_channel()
	{
		QpOptions o;

		o.channel = channel;
		return make_pair(o);
	}
	/* How long after `since` the event came. */
	Micros event_after(ibv_cq *cq, Clock::time_point since)
	{
		expect_event(channel, cq);
		return std::chrono::duration_cast<Micros>(Clock::now() - since);
	}
	/* Once in these attempts the event must be there before the longest period is over; each begins at `start`. */
	void expect_at_once(ibv_cq *cq, const std::function<void()> &start, const std::function<void()> &end = {})
	{
		for (int attempt = 0; attempt < 50 && !HasFailure(); attempt++) {
			const auto since = Clock::now();

			start();
			const bool soon = event_after(cq, since) < longest;
			if (end)
				end();
			if (soon)
				return;
		}
		ADD_FAILURE() << "the event always waited for the period";
	}
	Channel channel = make_channel(dev);
};

/* What ibv_query_device_ex says can be set. */
TEST_F(ModerationTest, Cases37_Limits)
{
	ibv_device_attr_ex attr{};

	ASSERT_EQ(ibv_query_device_ex(dev, nullptr, &attr), 0);
	EXPECT_EQ(attr.cq_mod_caps.max_cq_count, 65535);
	EXPECT_EQ(attr.cq_mod_caps.max_cq_period, 65535);
	Cq cq = make_cq(dev, 4);
	EXPECT_EQ(try_moderate(cq, 65535, longest), 0);
}

/* What cannot be done is refused, and changes nothing. */
TEST_F(ModerationTest, Cases37_ArgumentsThatAreRefused)
{
	Pair p = on_channel();
	ibv_modify_cq_attr attr{};

	/* fewer than that many completions would wait for ever */
	for (unsigned int count : {2u, 16u, 65535u})
		EXPECT_EQ(try_moderate(p.a.scq, count, Micros(0)), EINVAL) << count;
	EXPECT_EQ(code(ibv_modify_cq(p.a.scq, &attr)), EINVAL);
	attr.attr_mask = IBV_CQ_ATTR_MODERATE << 1;
	const int rc = code(ibv_modify_cq(p.a.scq, &attr));
	EXPECT_TRUE(rc == EINVAL || rc == EOPNOTSUPP) << rc;
	for (unsigned int count : {0u, 1u})
		EXPECT_EQ(try_moderate(p.a.scq, count, Micros(0)), 0) << count;
	expect_at_once(
		p.a.scq,
		[&] {
			arm(p.a.scq);
			write(p, 1);
		},
		[&] { poll_one(p.a.scq); });
}

/* 15 of 16: no event before the period is over, and one then. */
TEST_F(ModerationTest, Cases37_FifteenWaitForThePeriod)
{
	Pair p = on_channel();
	const Micros period(50000);

	moderate(p.a.scq, 16, period);
	for (int round = 0; round < 3; round++) {
		arm(p.a.scq);
		const auto since = Clock::now();
		write(p, 15);
		EXPECT_GE(event_after(p.a.scq, since), period);
		poll_n(p.a.scq, 15);
		expect_no_event(channel, round ? Millis(0) : quiet());
	}
}

/* The shortest that makes a difference: all rounds together. */
TEST_F(ModerationTest, Cases37_OneMillisecond)
{
	Pair p = on_channel();
	const Micros period(1000);

	moderate(p.a.scq, 16, period);
	for (int round = 0; round < 20; round++) {
		arm(p.a.scq);
		const auto since = Clock::now();
		write(p, 15);
		EXPECT_GE(event_after(p.a.scq, since), period);
		poll_n(p.a.scq, 15);
	}
	expect_no_event(channel);
}

/* 16 of 16: at once. */
TEST_F(ModerationTest, Cases37_SixteenGoAtOnce)
{
	Pair p = on_channel();

	moderate(p.a.scq, 16, longest);
	expect_at_once(
		p.a.scq,
		[&] {
			arm(p.a.scq);
			write(p, 16);
		},
		[&] { poll_n(p.a.scq, 16); });
	expect_no_event(channel);
}

/* Completions that came before the event was decided do not count. */
TEST_F(ModerationTest, Cases37_CountsFromTheEventOn)
{
	Pair p = on_channel();
	const Micros period(20000);

	moderate(p.a.scq, 4, period);
	write(p, 10);
	poll_n(p.a.scq, 10);
	arm(p.a.scq);
	const auto since = Clock::now();
	write(p, 3);
	EXPECT_GE(event_after(p.a.scq, since), period);
	/* and after it, each event begins at one again */
	arm(p.a.scq);
	const auto again = Clock::now();
	write(p, 3);
	EXPECT_GE(event_after(p.a.scq, again), period);
	expect_no_event(channel);
}

/* Without a count, the period alone decides; with a count of one there is nothing to wait for. */
TEST_F(ModerationTest, Cases37_PeriodAlone)
{
	Pair p = on_channel();
	const Micros period(30000);

	moderate(p.a.scq, 0, period);
	arm(p.a.scq);
	const auto since = Clock::now();
	write(p, 100);
	EXPECT_GE(event_after(p.a.scq, since), period);
	poll_n(p.a.scq, 100);
	moderate(p.a.scq, 1, longest);
	expect_at_once(
		p.a.scq,
		[&] {
			arm(p.a.scq);
			write(p, 1);
		},
		[&] { poll_one(p.a.scq); });
	expect_no_event(channel);
}

/* Rules C1, C2: arms are consumed as ever, and each has its event, be they waiting together. */
TEST_F(ModerationTest, Cases37_NoneIsMerged)
{
	Pair p = on_channel();

	moderate(p.a.scq, 100, longest);
	const auto since = Clock::now();
	for (int i = 0; i < 5; i++) {
		arm(p.a.scq);
		write(p, 1);
		poll_one(p.a.scq);
	}
	/* an event that waits needs no completion to be there */
	EXPECT_GE(event_after(p.a.scq, since), longest);
	for (int i = 1; i < 5; i++)
		expect_event(channel, p.a.scq);
	expect_no_event(channel);
}

/* Switched off: what waits goes. */
TEST_F(ModerationTest, Cases37_OffReleasesWhatWaits)
{
	Pair p = on_channel();

	for (unsigned int count : {0u, 1u})
		expect_at_once(
			p.a.scq,
			[&] {
				moderate(p.a.scq, 100, longest);
				arm(p.a.scq);
				write(p, 1);
				moderate(p.a.scq, count, Micros(0));
			},
			[&] { poll_one(p.a.scq); });
	/* and it is off */
	expect_at_once(
		p.a.scq,
		[&] {
			arm(p.a.scq);
			write(p, 1);
		},
		[&] { poll_one(p.a.scq); });
	expect_no_event(channel);
}

/* A solicited arm is not consumed by what is not solicited; what comes after the one that is counts all the same. */
TEST_F(ModerationTest, Cases37_SolicitedArm)
{
	Pair p = on_channel();
	const Micros period(30000);

	moderate(p.b.rcq, 4, period);
	arm(p.b.rcq, true);
	for (int i = 0; i < 8; i++)
		message(p, false);
	expect_no_event(channel);
	const auto since = Clock::now();
	message(p, true);
	EXPECT_GE(event_after(p.b.rcq, since), period);
	poll_n(p.b.rcq, 9);

	moderate(p.b.rcq, 4, longest);
	for (int i = 0; i < 4; i++)
		recv(p.b, p.b.mem, 0, 64, i);
	expect_at_once(
		p.b.rcq,
		[&] {
			arm(p.b.rcq, true);
			message(p, true);
			for (int i = 0; i < 3; i++)
				message(p, false);
		},
		[&] { poll_n(p.b.rcq, 4); });
	expect_no_event(channel);
}

/* Rule C11: an overrun is no time to wait. */
TEST_F(ModerationTest, Cases37_OverrunReleasesWhatWaits)
{
	for (int attempt = 0; attempt < 50; attempt++) {
		Cq cq = make_cq(dev, 4, channel);
		QpOptions o;
		o.send_cq = cq;
		Pair p(dev, pd, o, QpOptions(), {});
		moderate(cq, 100, longest);
		arm(cq);
		const auto since = Clock::now();
		write(p, cq->cqe + 1);
		const bool soon = event_after(cq, since) < longest;
		expect_async(dev, IBV_EVENT_CQ_ERR, cq.get());
		expect_async(dev, IBV_EVENT_QP_FATAL, p.a.qp.get());
		expect_no_event(channel, Millis(0));
		if (soon)
			return;
	}
	ADD_FAILURE() << "the event always waited for the period";
}

/* Rule C8: destroyed while an event waits: no event, no waiting for its ack, and nothing comes later. */
TEST_F(ModerationTest, Cases37_DestroyedWhileAnEventWaits)
{
	Cq keep = make_cq(dev, 8, channel);

	for (int i = 0; i < 20; i++) {
		Cq cq = make_cq(dev, 8, channel);
		QpOptions o;
		o.send_cq = cq;
		Pair p = make_pair(o);
		moderate(cq, 100, i % 2 ? longest : Micros(500));
		arm(cq);
		write(p, 1);
		/* a short period may be over before the CQ goes: then the event vanishes unread */
	}
	expect_no_event(channel);
}

/* Rule C10: resized while an event waits: it comes, when it would have, and once; the settings stay. */
TEST_F(ModerationTest, Cases37_ResizedWhileAnEventWaits)
{
	Cq cq = make_cq(dev, 16, channel);
	QpOptions o;
	o.send_cq = cq;
	Pair p = make_pair(o);
	const Micros period(40000);

	moderate(cq, 100, period);
	for (int size : {300, 16, 64}) {
		arm(cq);
		const auto since = Clock::now();
		write(p, 3);
		ASSERT_EQ(ibv_resize_cq(cq, size), 0);
		EXPECT_GE(event_after(cq, since), period);
		poll_n(cq, 3);
	}
	expect_no_event(channel);
}

/* New settings hold for what waits already: counted from where it is. */
TEST_F(ModerationTest, Cases37_ChangedWhileAnEventWaits)
{
	Pair p = on_channel();

	expect_at_once(
		p.a.scq,
		[&] {
			moderate(p.a.scq, 100, longest);
			arm(p.a.scq);
			write(p, 5);
			moderate(p.a.scq, 5, longest);
		},
		[&] { poll_n(p.a.scq, 5); });
	expect_no_event(channel);
}
