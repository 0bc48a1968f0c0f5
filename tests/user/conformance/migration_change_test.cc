/* SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB */
/*
 * A connection that is about to migrate, or has (docs/events.md: PATH_MIG, PATH_MIG_ERR, GID_CHANGE), while something
 * else about it changes: its alternate path, its state, what its paths stand on, its life.
 */
#include "migration_traffic.h"

#include <algorithm>
#include <tuple>

using namespace conformance;

namespace {

/* "fault message WHAT" for one sender. */
void fault_message(const Device &dev, const End &from, const std::string &what)
{
	require_ok(try_control(dev, "fault message " + what + " qpn " + std::to_string(from.num())), "fault");
}

void clear_faults(const Device &dev)
{
	require_ok(try_control(dev, "fault clear"), "fault clear");
}

} // namespace

/* ------------------------------------------------ the alternate path -- */

/* Armed it stays; it moves to the path that was loaded last, and misses neither of the others. */
TEST_F(MigrationTest, AnotherAlternatePathWhileArmed)
{
	Pair p = armed_pair();
	Address five(link.netdev(), "10.77.0.5"), six(link.netdev(), "10.77.0.6");
	const int gid5 = five.index(dev), gid6 = six.index(dev);
	{
		const BothWays traffic(p);

		traffic.wait_for(20);
		modify(p.a, alt_attr(dev, gid5, gid6, 9));
		modify(p.b, alt_attr(dev, gid6, gid5, 9));
		traffic.wait_for(20);
		expect_path(p.a, 1, 2, IBV_MIG_ARMED);
		expect_path(p.b, 2, 1, IBV_MIG_ARMED);
		EXPECT_EQ(query_path(p.a).alt_ah_attr.grh.sgid_index, gid5);
		EXPECT_EQ(events(), Counts()) << "loading a path is no reason to move";
		modify(p.a, mig_attr(IBV_MIG_MIGRATED));
		traffic.wait_for(20);
		remove(1);
		remove(4);
		traffic.wait_for(20);
	}
	EXPECT_EQ(events(), once_each(p, IBV_EVENT_PATH_MIG));
	for (const auto &[end, sgid, dgid] : {std::tuple(&p.a, gid5, 6), std::tuple(&p.b, gid6, 5)}) {
		const ibv_qp_attr a = query_path(*end);

		EXPECT_EQ(a.ah_attr.grh.sgid_index, sgid);
		EXPECT_EQ(a.ah_attr.grh.dgid.raw[15], dgid);
		EXPECT_EQ(a.timeout, 9);
		EXPECT_EQ(a.alt_port_num, 0);
	}
}

/* Too early to be ready again: the other end has not moved. It does by itself as soon as it has something to say. */
TEST_F(MigrationTest, ReadyBeforeThePeerHasMoved)
{
	Pair p = armed_pair();

	modify(p.a, mig_attr(IBV_MIG_MIGRATED));
	modify(p.a, rearm_attr(alt_attr(dev, gid[1], gid[2])));
	expect_path(p.b, 2, 1, IBV_MIG_ARMED);
	write(p.b, p.a, 1);
	expect_ok(p.b.scq, 1);
	EXPECT_EQ(events(), once_each(p, IBV_EVENT_PATH_MIG));
	expect_path(p.b, 4, 3);
	expect_path(p.a, 3, 4, IBV_MIG_REARM);
	modify(p.b, rearm_attr(alt_attr(dev, gid[2], gid[1])));
	exchange(p);
	expect_path(p.a, 3, 4, IBV_MIG_ARMED);
	expect_path(p.b, 4, 3, IBV_MIG_ARMED);
	EXPECT_EQ(events(), Counts());
}

/* What has no answer in time is lost: 20 ms are too long for the path, and not for the alternate path. */
TEST_F(MigrationTest, TheTimeoutGoesWithThePath)
{
	Pair p(dev, pd, {}, quick());
	auto retries_of_a_late_message = [&] {
		const uint64_t before = device_counter(dev, "retries");

		fault_message(dev, p.a, "delay usec 20000");
		write(p.a, p.b, 1);
		expect_ok(p.a.scq, 1);
		clear_faults(dev);
		return device_counter(dev, "retries") - before;
	};

	for (End *end : {&p.a, &p.b})
		modify(*end, IBV_QPS_RESET);
	connect(p);
	modify(p.a, rearm_attr(alt_of_a(16)));
	modify(p.b, rearm_attr(alt_of_b(16)));
	exchange(p);
	EXPECT_EQ(retries_of_a_late_message(), 1u);
	expect_path(p.a, 1, 2, IBV_MIG_ARMED);
	modify(p.a, mig_attr(IBV_MIG_MIGRATED));
	exchange(p);
	expect_moved(p);
	EXPECT_EQ(retries_of_a_late_message(), 0u);
}

/* Retries are retries: those that NAKs use up, too. */
TEST_F(MigrationTest, RetriesUsedUpByNaks)
{
	Pair p = armed_pair();
	const uint64_t naks = device_counter(dev, "nak_sequence");

	fault_message(dev, p.a, "reorder times 3");
	write(p.a, p.b, 1);
	expect_ok(p.a.scq, 1);
	EXPECT_EQ(device_counter(dev, "nak_sequence") - naks, 3u);
	clear_faults(dev);
	EXPECT_EQ(events(), once_each(p, IBV_EVENT_PATH_MIG));
	expect_moved(p);
}

/* A peer that is not ready is an answer: no other path would help. */
TEST_F(MigrationTest, RnrIsNoReasonToMove)
{
	Pair p(dev, pd, {}, quick());
	Path path = quick();

	path.rnr_retry = 2;
	for (End *end : {&p.a, &p.b})
		modify(*end, IBV_QPS_RESET);
	connect(p, path);
	make_armed(p);
	Send(IBV_WR_SEND, 1).from(p.a.mem, 0, 8).post(p.a);
	expect_wc(p.a.scq, IBV_WC_RNR_RETRY_EXC_ERR, 1);
	EXPECT_EQ(events(), Counts());
	expect_path(p.b, 2, 1, IBV_MIG_ARMED);
}

/* ------------------------------------------------------------ partitions -- */

/* The alternate path's own partition: without it there is nothing to move to; with it, there is again. */
TEST_F(MigrationTest, TheAlternatePartitionGoesAndComesBack)
{
	Pair p(dev, pd, {}, quick());

	provoke(dev, "pkey-change");
	for (End *end : {&p.a, &p.b})
		modify(*end, IBV_QPS_RESET);
	connect(p);
	modify(p.a, rearm_attr(alt_attr(dev, gid[3], gid[4], 8, 1)));
	modify(p.b, rearm_attr(alt_attr(dev, gid[4], gid[3], 8, 1)));
	exchange(p);
	provoke(dev, "pkey-change");
	modify(p.a, mig_attr(IBV_MIG_MIGRATED));
	expect_qp_event(IBV_EVENT_PATH_MIG_ERR, p.a);
	expect_path(p.a, 1, 2);
	exchange(p);
	EXPECT_EQ(events(), Counts());

	modify(p.a, mig_attr(IBV_MIG_REARM));
	exchange(p);
	expect_path(p.a, 1, 2, IBV_MIG_ARMED);
	provoke(dev, "pkey-change");
	modify(p.a, mig_attr(IBV_MIG_MIGRATED));
	exchange(p);
	EXPECT_EQ(events(), once_each(p, IBV_EVENT_PATH_MIG));
	expect_moved(p);
	EXPECT_EQ(query_path(p.a).pkey_index, 1);
	EXPECT_EQ(query_path(p.b).pkey_index, 1);
}

/* ------------------------------------------------------------- in SQD -- */

/* Stopped, it moves as well, on request and after its peer; what is posted meanwhile goes the new way. */
TEST_F(MigrationTest, InSqd)
{
	for (const bool asked : {true, false}) {
		SCOPED_TRACE(asked ? "asked" : "after its peer");
		Pair p = armed_pair();

		modify(p.a, IBV_QPS_SQD);
		write(p.a, p.b, 1);
		if (asked) {
			modify(p.a, mig_attr(IBV_MIG_MIGRATED));
		} else {
			modify(p.b, mig_attr(IBV_MIG_MIGRATED));
			write(p.b, p.a, 2);
			expect_ok(p.b.scq, 2);
		}
		const ibv_qp_attr a = query_path(p.a);
		EXPECT_EQ(a.qp_state, IBV_QPS_SQD);
		EXPECT_STREQ(mig_name(a.path_mig_state), "MIGRATED");
		EXPECT_EQ(a.ah_attr.grh.sgid_index, gid[3]);
		expect_stays_empty(p.a.scq);
		modify(p.a, IBV_QPS_RTS);
		expect_ok(p.a.scq, 1);
		EXPECT_EQ(events(), once_each(p, IBV_EVENT_PATH_MIG));
		expect_moved(p);
		exchange(p);
	}
}

/* The same command may say both. */
TEST_F(MigrationTest, OnTheWayBackFromSqd)
{
	Pair p = armed_pair();
	Attr both = mig_attr(IBV_MIG_MIGRATED);

	modify(p.a, IBV_QPS_SQD);
	write(p.a, p.b, 1);
	both.mask |= IBV_QP_STATE;
	both.a.qp_state = IBV_QPS_RTS;
	modify(p.a, both);
	expect_ok(p.a.scq, 1);
	EXPECT_EQ(events(), once_each(p, IBV_EVENT_PATH_MIG));
	expect_moved(p);
}

/* What was under way when it was stopped goes on over the other path, and only then it has drained. */
TEST_F(MigrationTest, WhileItDrains)
{
	Pair p = armed_pair();
	Attr stop;

	fault_message(dev, p.a, "lose times 3");
	write(p.a, p.b, 1);
	stop.mask = IBV_QP_STATE | IBV_QP_EN_SQD_ASYNC_NOTIFY;
	stop.a.qp_state = IBV_QPS_SQD;
	stop.a.en_sqd_async_notify = 1;
	modify(p.a, stop);
	std::vector<std::pair<void *, ibv_event_type>> got;
	while (got.size() < 3) {
		const auto event = next_async(dev, patience());

		ASSERT_TRUE(event) << "only " << got.size() << " events";
		if (event->element)
			got.emplace_back(event->element, event->type);
	}
	clear_faults(dev);
	expect_ok(p.a.scq, 1);
	EXPECT_EQ(got.back(), (std::pair<void *, ibv_event_type>(p.a.qp.get(), IBV_EVENT_SQ_DRAINED)));
	got.pop_back();
	for (const End *end : {&p.a, &p.b})
		EXPECT_EQ(std::count(got.begin(), got.end(),
				     std::pair<void *, ibv_event_type>(end->qp.get(), IBV_EVENT_PATH_MIG)),
			  1);
	modify(p.a, IBV_QPS_RTS);
	expect_moved(p);
	exchange(p);
}

/* ------------------------------------------------------------ addresses -- */

/* Whoever waits for a path that has gone goes on when its address is there again: either end's. */
TEST_F(MigrationTest, AnAddressThatComesBack)
{
	Pair p(dev, pd, {}, quick());
	Path patient = quick();

	/* it asks again, for ever */
	patient.timeout = 0;
	for (End *end : {&p.a, &p.b})
		modify(*end, IBV_QPS_RESET);
	connect(p, patient);
	exchange(p);
	for (int number : {1, 2}) {
		SCOPED_TRACE(number);
		remove(number);
		write(p.a, p.b, 1);
		write(p.b, p.a, 2);
		expect_stays_empty(p.a.scq);
		expect_empty(p.b.scq);
		addresses[static_cast<size_t>(number) - 1].add();
		expect_ok(p.a.scq, 1);
		expect_ok(p.b.scq, 2);
		exchange(p);
	}
}

/* Nobody says what was lost; what comes afterwards arrives. */
TEST_F(MigrationTest, AnAddressThatComesBackToUc)
{
	QpOptions o;

	o.type = IBV_QPT_UC;
	Pair p(dev, pd, o, quick());
	for (End *end : {&p.a, &p.b})
		modify(*end, IBV_QPS_RESET);
	connect(p);
	exchange(p);
	recv(p.b, p.b.mem, 0, 8, 10);
	remove(1);
	Send(IBV_WR_SEND, 1).from(p.a.mem, 0, 8).post(p.a);
	expect_ok(p.a.scq, 1);
	expect_stays_empty(p.b.rcq);
	addresses[0].add();
	addresses[0].index(dev);
	Send(IBV_WR_SEND, 2).from(p.a.mem, 0, 8).imm(7).post(p.a);
	expect_ok(p.a.scq, 2);
	expect_ok(p.b.rcq, 10);
	expect_empty(p.b.rcq);
}

/* A far address counts on the far device: it is of no use if another device has it. */
TEST_F(MigrationTest, BetweenTwoDevices)
{
	TempLink far_link;
	Device far;
	const Pd far_pd = make_pd(far);
	Address seven(far_link.netdev(), "10.77.0.7"), eight(far_link.netdev(), "10.77.0.8");
	const int gid7 = seven.index(far), gid8 = eight.index(far);
	End a(dev, pd), b(far, far_pd);
	Path path = quick();
	auto connect_one = [&](const Device &from, End &end, int sgid, const ibv_gid &dgid, uint32_t number) {
		to_init(end, path);
		path.gid_index = sgid;
		Attr rtr = rtr_attr(from, IBV_QPT_RC, path, number);
		rtr.a.ah_attr.grh.dgid = dgid;
		modify(end, rtr);
		to_rts(from, end, path);
	};
	auto rearm = [](const Device &from, End &end, int sgid, const ibv_gid &dgid) {
		Attr alt = alt_attr(from, sgid, sgid);

		alt.a.alt_ah_attr.grh.dgid = dgid;
		modify(end, rearm_attr(alt));
	};

	connect_one(dev, a, gid[1], far.gid(gid7), b.num());
	connect_one(far, b, gid7, dev.gid(gid[1]), a.num());
	rearm(dev, a, gid[3], far.gid(gid8));
	rearm(far, b, gid8, dev.gid(gid[3]));
	write(a, b, 1);
	expect_ok(a.scq, 1);
	expect_mig_state(a, IBV_MIG_ARMED);
	expect_mig_state(b, IBV_MIG_ARMED);

	seven.remove(far);
	const Address moved(link.netdev(), "10.77.0.7");
	moved.index(dev);
	write(a, b, 2);
	expect_ok(a.scq, 2);
	EXPECT_EQ(events(), (Counts{{{a.qp.get(), IBV_EVENT_PATH_MIG}, 1}}));
	for (;;) {
		const auto got = next_async(far, patience());

		ASSERT_TRUE(got) << "the far end says nothing";
		if (!got->element)
			continue;
		EXPECT_STREQ(ibv_event_type_str(got->type), "path migrated");
		EXPECT_EQ(got->element, b.qp.get());
		break;
	}
	EXPECT_EQ(query_path(a).ah_attr.grh.dgid.raw[15], 8);
	EXPECT_EQ(query_path(b).ah_attr.grh.dgid.raw[15], 3);
	write(b, a, 3);
	expect_ok(b.scq, 3);
}

/* ---------------------------------------------------------------- races -- */

namespace {

/*
 * Two that race, again and again, the second one a little later each time: it comes before the first one's end, at it, and
 * after it, however long that takes here. The first one is of two kinds, by turns.
 */
class Overlap {
public:
	explicit Overlap(int turn) : turn_(turn) {}

	template <class F> std::jthread first(F body)
	{
		return worker([this, body] {
			const auto begin = Clock::now();

			begun_ = true;
			body();
			took(turn_ % 2) = Clock::now() - begin;
		});
	}
	/* To be called by the second; returns when it is its time. */
	void second() const
	{
		constexpr int kSteps = 8;
		const int step = turn_ / 2 % kSteps;
		const auto after = took(turn_ % 2) * (step - 1) * 2 / kSteps;

		/* the thread has yet to start */
		if (!step)
			return;
		while (!begun_)
			std::this_thread::yield();
		const auto begin = Clock::now();
		while (Clock::now() < begin + after)
			;
	}

private:
	/* the last time */
	static Clock::duration &took(int kind)
	{
		static Clock::duration durations[2];
		return durations[kind];
	}

	int turn_;
	std::atomic<bool> begun_ = false;
};

} // namespace

/*
 * Asked to move, or taken along by its peer, while it is reset: it has moved, and said so, or it has not; in the next
 * life nothing is left of it.
 */
TEST_F(MigrationTest, ResetRacesAMove)
{
	Pair p(dev, pd, {}, quick());

	for (int i = 0; i < 60 / slowness() + 4; i++) {
		SCOPED_TRACE(i);
		for (End *end : {&p.a, &p.b})
			modify(*end, IBV_QPS_RESET);
		connect(p);
		make_armed(p);
		if (i % 2)
			modify(p.b, mig_attr(IBV_MIG_MIGRATED));
		Overlap race(i);
		int refused = -1;
		auto mover = race.first([&] {
			if (i % 2)
				write(p.b, p.a, 1);
			else
				refused = try_modify(p.a, mig_attr(IBV_MIG_MIGRATED));
		});
		race.second();
		modify(p.a, IBV_QPS_RESET);
		Counts before;
		while (auto got = next_async(dev, Millis(0)))
			if (got->element)
				before[{got->element, got->type}]++;
		mover.join();
		const int moves = before[{p.a.qp.get(), IBV_EVENT_PATH_MIG}];

		if (i % 2) {
			const bool arrived = poll_one(p.b.scq).status == IBV_WC_SUCCESS;

			EXPECT_LE(moves, 1);
			EXPECT_TRUE(!arrived || moves == 1);
		} else {
			EXPECT_TRUE(refused == 0 || refused == EINVAL) << strerror(refused);
			EXPECT_EQ(moves, refused ? 0 : 1);
		}
		const Counts after = events(Millis(1));
		EXPECT_FALSE(after.contains({p.a.qp.get(), IBV_EVENT_PATH_MIG})) << "it comes after the reset";
		EXPECT_FALSE(after.contains({p.a.qp.get(), IBV_EVENT_PATH_MIG_ERR}));
		const ibv_qp_attr a = query_path(p.a);
		EXPECT_EQ(a.qp_state, IBV_QPS_RESET);
		EXPECT_STREQ(mig_name(a.path_mig_state), "MIGRATED");
		EXPECT_EQ(a.alt_port_num, 0);
		EXPECT_EQ(a.ah_attr.grh.dgid.raw[15], 0);
	}
}

/* Destroyed while it is made to move: both calls end, and nothing is heard of it afterwards. */
TEST_F(MigrationTest, DestroyRacesAMove)
{
	for (int i = 0; i < 30 / slowness() + 4; i++) {
		SCOPED_TRACE(i);
		Pair p = armed_pair();
		const uint32_t number = p.a.num();
		const void *element = p.a.qp.get();
		Overlap race(i);
		int provoked = -1;

		if (i % 2)
			modify(p.b, mig_attr(IBV_MIG_MIGRATED));
		auto mover = race.first([&] {
			if (i % 2)
				write(p.b, p.a, 1);
			else
				provoked = try_provoke(dev, "path-mig", number);
		});
		race.second();
		EXPECT_EQ(p.a.qp.destroy(), 0);
		const Counts after = events(Millis(1));
		mover.join();
		for (const auto &[key, count] : after)
			EXPECT_NE(key.first, element) << ibv_event_type_str(key.second);
		if (i % 2) {
			const ibv_wc_status status = poll_one(p.b.scq).status;

			EXPECT_TRUE(status == IBV_WC_SUCCESS || status == IBV_WC_RETRY_EXC_ERR)
				<< ibv_wc_status_str(status);
		} else {
			/* EINVAL: it was there still, and had begun to go */
			EXPECT_TRUE(provoked == 0 || provoked == ENOENT || provoked == EINVAL) << strerror(provoked);
		}
		for (const auto &[key, count] : events(Millis(1)))
			EXPECT_NE(key.first, element) << ibv_event_type_str(key.second);
	}
}
