/* SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB */
/*
 * Automatic path migration (docs/events.md: PATH_MIG, PATH_MIG_ERR; CASES 54): two ends of a connection with a path and
 * an alternate path, each a pair of addresses of one interface. What is armed moves, once, by whatever causes it; the
 * work requests under way go on; who is asked to move to a path that is not there stays where it is.
 */
#include "control.h"
#include "migration_traffic.h"

#include <barrier>
#include <map>

using namespace conformance;

/* ------------------------------------------------------------- arming -- */

TEST_F(MigrationTest, ArmsWhenBothEndsAreReadyAndTalk)
{
	Pair p = armed_pair();

	modify(p.a, mig_attr(IBV_MIG_MIGRATED));
	exchange(p);
	expect_moved(p);
	EXPECT_EQ(events(), once_each(p, IBV_EVENT_PATH_MIG));

	/* one that is ready waits for the other; nothing but talking arms */
	modify(p.a, rearm_attr(alt_attr(dev, gid[1], gid[2])));
	exchange(p);
	expect_mig_state(p.a, IBV_MIG_REARM);
	expect_mig_state(p.b, IBV_MIG_MIGRATED);
	modify(p.b, rearm_attr(alt_attr(dev, gid[2], gid[1])));
	expect_mig_state(p.a, IBV_MIG_REARM);
	expect_mig_state(p.b, IBV_MIG_REARM);
	write(p.b, p.a, 1);
	expect_ok(p.b.scq, 1);
	expect_mig_state(p.a, IBV_MIG_ARMED);
	expect_mig_state(p.b, IBV_MIG_ARMED);
	EXPECT_EQ(events(), Counts());
}

/* There is no answer in UC: who hears the other is armed. */
TEST_F(MigrationTest, UnreliableArmsWhoHears)
{
	QpOptions o;

	o.type = IBV_QPT_UC;
	Pair p(dev, pd, o, quick());
	for (End *end : {&p.a, &p.b})
		modify(*end, IBV_QPS_RESET);
	connect(p);
	modify(p.a, rearm_attr(alt_of_a()));
	modify(p.b, rearm_attr(alt_of_b()));
	write(p.a, p.b, 1);
	expect_ok(p.a.scq, 1);
	expect_mig_state(p.a, IBV_MIG_REARM);
	expect_mig_state(p.b, IBV_MIG_ARMED);
	write(p.b, p.a, 2);
	expect_ok(p.b.scq, 2);
	expect_mig_state(p.a, IBV_MIG_ARMED);

	/* on request, and by the peer's MigReq */
	modify(p.b, mig_attr(IBV_MIG_MIGRATED));
	expect_qp_event(IBV_EVENT_PATH_MIG, p.b);
	recv(p.a, p.a.mem, 1024, 64, 3);
	Send(IBV_WR_SEND, 4).from(p.b.mem, 0, 8).post(p.b);
	expect_ok(p.b.scq, 4);
	expect_ok(p.a.rcq, 3);
	expect_qp_event(IBV_EVENT_PATH_MIG, p.a);
	expect_moved(p);
	EXPECT_EQ(events(), Counts());
}

/* Before the two are armed there is nothing to move to, however good the alternate path. */
TEST_F(MigrationTest, OnlyTheArmedMove)
{
	Pair p(dev, pd, {}, quick());

	for (End *end : {&p.a, &p.b})
		modify(*end, IBV_QPS_RESET);
	connect(p);
	modify(p.a, rearm_attr(alt_of_a()));
	remove(1);
	write(p.a, p.b, 1);
	expect_wc(p.a.scq, IBV_WC_RETRY_EXC_ERR, 1);
	EXPECT_EQ(state_of(p.a), IBV_QPS_ERR);
	EXPECT_EQ(events(), Counts());
}

/* A message's header comes before its completion: whoever has seen that is armed, and may ask to move. */
TEST_F(MigrationTest, ArmedWhenTheMessageIsSeen)
{
	for (int i = 0; i < 30 / slowness() + 2; i++) {
		Pair p(dev, pd, {}, quick());
		int refused = -1;

		for (End *end : {&p.a, &p.b})
			modify(*end, IBV_QPS_RESET);
		connect(p);
		modify(p.a, rearm_attr(alt_of_a()));
		modify(p.b, rearm_attr(alt_of_b()));
		recv(p.b, p.b.mem, 0, 8, 10);
		auto receiver = worker([&] {
			ibv_wc wc{};
			const auto end = Clock::now() + patience();

			while (!ibv_poll_cq(p.b.rcq, 1, &wc))
				require(Clock::now() < end, "nothing came");
			refused = try_modify(p.b, mig_attr(IBV_MIG_MIGRATED));
		});
		Send(IBV_WR_SEND, 1).from(p.a.mem, 0, 8).post(p.a);
		receiver.join();
		ASSERT_EQ(refused, 0) << i;
		expect_ok(p.a.scq, 1);
		expect_qp_event(IBV_EVENT_PATH_MIG, p.b);
		expect_path(p.b, 4, 3);
		/* nor does the sender miss it: the answer was under way */
		expect_mig_state(p.a, IBV_MIG_ARMED);
		exchange(p);
		expect_qp_event(IBV_EVENT_PATH_MIG, p.a);
		expect_path(p.a, 3, 4);
	}
}

/* ------------------------------------------------------ lost answers -- */

void MigrationTest::pull_path_under_traffic(const QpOptions &o, uint32_t size, bool both_ways)
{
	Pair p = armed_pair(o);
	Traffic there(p.a, p.b, size), back(p.b, p.a, size);
	std::vector<std::jthread> threads;
	auto wait_for = [&](uint64_t more) {
		const uint64_t n = there.received + more, m = back.received + more;
		const auto end = Clock::now() + patience();

		while (there.received < n || (both_ways && back.received < m)) {
			require(Clock::now() < end, "the traffic stands still");
			std::this_thread::yield();
		}
	};

	threads.push_back(worker([&](std::stop_token stop) { there.run(stop); }));
	if (both_ways)
		threads.push_back(worker([&](std::stop_token stop) { back.run(stop); }));
	wait_for(20);
	remove(1);
	wait_for(20);
	threads.clear();
	EXPECT_EQ(events(), once_each(p, IBV_EVENT_PATH_MIG));
	expect_moved(p);
}

/* The WR that had no answer goes on over the other path; so do all behind it. */
TEST_F(MigrationTest, RetriesExhaustedUnderTraffic)
{
	pull_path_under_traffic({}, 64, false);
}

/* Messages of many pieces, some of which went the old way. */
TEST_F(MigrationTest, RetriesExhaustedUnderLongMessages)
{
	QpOptions o;

	o.memory = size_t(4) << 20;
	pull_path_under_traffic(o, 300000, false);
}

/* Both find out by themselves, or one by the other: once each all the same. */
TEST_F(MigrationTest, BothEndsAtOnceUnderTraffic)
{
	pull_path_under_traffic({}, 64, true);
}

/* It is not a failure, and the new path has as many retries as the old one had. */
TEST_F(MigrationTest, RetriesStartAnew)
{
	Pair p = armed_pair();

	const uint64_t retries = device_counter(dev, "retries");

	remove(1);
	remove(4);
	write(p.a, p.b, 1);
	expect_wc(p.a.scq, IBV_WC_RETRY_EXC_ERR, 1);
	EXPECT_EQ(device_counter(dev, "retries") - retries, 4u) << "two on each path";
	/* before the error: it moved, in vain */
	EXPECT_EQ(events(), (Counts{{{p.a.qp.get(), IBV_EVENT_PATH_MIG}, 1}}));
	EXPECT_EQ(state_of(p.a), IBV_QPS_ERR);
	expect_path(p.b, 2, 1, IBV_MIG_ARMED);
}

/* A move on request starts no second set of retries later, for whatever reason they are needed. */
TEST_F(MigrationTest, RetriesAfterAMoveAreCountedOnce)
{
	Pair p = armed_pair();

	modify(p.a, mig_attr(IBV_MIG_MIGRATED));
	exchange(p);
	EXPECT_EQ(events(), once_each(p, IBV_EVENT_PATH_MIG));
	const uint64_t retries = device_counter(dev, "retries");
	require_ok(try_control(dev, "fault message reorder times 3 qpn " + std::to_string(p.a.num())), "fault");
	write(p.a, p.b, 1);
	expect_wc(p.a.scq, IBV_WC_RETRY_EXC_ERR, 1);
	EXPECT_EQ(device_counter(dev, "retries") - retries, 2u);
	require_ok(try_control(dev, "fault clear"), "fault clear");
}

/* ---------------------------------------------------------- on request -- */

/* At once at the end that is asked; at the other, when it hears of it. */
TEST_F(MigrationTest, OnRequest)
{
	Pair p = armed_pair();

	EXPECT_STREQ(ibv_event_type_str(IBV_EVENT_PATH_MIG), "path migrated");
	modify(p.a, mig_attr(IBV_MIG_MIGRATED));
	expect_qp_event(IBV_EVENT_PATH_MIG, p.a);
	expect_path(p.a, 3, 4);
	expect_path(p.b, 2, 1, IBV_MIG_ARMED);
	EXPECT_EQ(events(), Counts());
	write(p.a, p.b, 1);
	expect_ok(p.a.scq, 1);
	expect_qp_event(IBV_EVENT_PATH_MIG, p.b);
	expect_moved(p);
	/* the old path is not missed */
	remove(1);
	remove(2);
	exchange(p);
	EXPECT_EQ(events(), Counts());
}

/* Who has not heard of it finds nobody on the old path, and follows. */
TEST_F(MigrationTest, TheOtherEndSpeaksFirst)
{
	Pair p = armed_pair();

	modify(p.a, mig_attr(IBV_MIG_MIGRATED));
	write(p.b, p.a, 1);
	expect_ok(p.b.scq, 1);
	EXPECT_EQ(events(), once_each(p, IBV_EVENT_PATH_MIG));
	expect_moved(p);
	exchange(p);
}

/* To and fro: what is the alternate path of the next time is loaded after each. */
TEST_F(MigrationTest, ToAndFroUnderTraffic)
{
	Pair p = armed_pair();
	Traffic there(p.a, p.b, 64), back(p.b, p.a, 64);

	for (int i = 0; i < 20 / slowness() + 2; i++) {
		const int mine = i % 2 ? 1 : 3, theirs = mine + 1, mine_next = 4 - mine;
		{
			auto t1 = worker([&](std::stop_token stop) { there.run(stop); });
			auto t2 = worker([&](std::stop_token stop) { back.run(stop); });
			std::barrier start(2);
			auto other = worker([&] {
				start.arrive_and_wait();
				/* the request may come after this end has followed already: no change then */
				require_ok(try_modify(p.b, mig_attr(IBV_MIG_MIGRATED)), "b");
			});
			start.arrive_and_wait();
			require_ok(try_modify(p.a, mig_attr(IBV_MIG_MIGRATED)), "a");
			other.join();
			expect_moves_of_both(p);
		}
		ASSERT_EQ(query_path(p.a).ah_attr.grh.sgid_index, gid[mine]) << i;
		ASSERT_EQ(query_path(p.b).ah_attr.grh.sgid_index, gid[theirs]) << i;
		modify(p.a, rearm_attr(alt_attr(dev, gid[mine_next], gid[mine_next + 1])));
		modify(p.b, rearm_attr(alt_attr(dev, gid[mine_next + 1], gid[mine_next])));
		exchange(p);
		expect_mig_state(p.a, IBV_MIG_ARMED);
		expect_mig_state(p.b, IBV_MIG_ARMED);
	}
	EXPECT_EQ(events(), Counts());
}

/* As on request, if there is another path; else the event alone. */
TEST_F(MigrationTest, Provoked)
{
	Pair p = armed_pair();

	provoke(dev, "path-mig", p.b.num());
	expect_qp_event(IBV_EVENT_PATH_MIG, p.b);
	expect_path(p.b, 4, 3);
	exchange(p);
	expect_qp_event(IBV_EVENT_PATH_MIG, p.a);
	expect_moved(p);
	provoke(dev, "path-mig", p.b.num());
	expect_qp_event(IBV_EVENT_PATH_MIG, p.b);
	expect_moved(p);
	provoke(dev, "path-mig-err", p.b.num());
	expect_qp_event(IBV_EVENT_PATH_MIG_ERR, p.b);
	expect_moved(p);
	exchange(p);
	EXPECT_EQ(events(), Counts());
}

/* As if it could not move: the old path, MIGRATED, and the alternate path may be armed once more. */
TEST_F(MigrationTest, ProvokedInVain)
{
	Pair p = armed_pair();

	provoke(dev, "path-mig-err", p.b.num());
	expect_qp_event(IBV_EVENT_PATH_MIG_ERR, p.b);
	expect_path(p.b, 2, 1);
	exchange(p);
	modify(p.b, mig_attr(IBV_MIG_REARM));
	exchange(p);
	expect_mig_state(p.b, IBV_MIG_ARMED);
	EXPECT_EQ(events(), Counts());
}

/* ---------------------------------------------------- nowhere to move to -- */

/* The error is there when the event is; nothing is left but what there would be without an alternate path. */
TEST_F(MigrationTest, NoAnswerAndNoAlternateAddress)
{
	Pair p = armed_pair();

	EXPECT_STREQ(ibv_event_type_str(IBV_EVENT_PATH_MIG_ERR), "path migration request error");
	remove(3);
	remove(1);
	write(p.a, p.b, 1);
	expect_qp_event(IBV_EVENT_PATH_MIG_ERR, p.a);
	ibv_wc wc{};
	ASSERT_EQ(ibv_poll_cq(p.a.scq, 1, &wc), 1) << "the event came before its completion";
	EXPECT_EQ(wc.status, IBV_WC_RETRY_EXC_ERR);
	EXPECT_EQ(state_of(p.a), IBV_QPS_ERR);
	EXPECT_EQ(query_path(p.a).ah_attr.grh.dgid.raw[15], 2) << "it stays on its path";
	EXPECT_EQ(events(), Counts());
}

TEST_F(MigrationTest, NoAnswerOnAPortThatIsDown)
{
	Pair p = armed_pair();

	provoke(dev, "port-err");
	write(p.a, p.b, 1);
	expect_qp_event(IBV_EVENT_PATH_MIG_ERR, p.a);
	expect_wc(p.a.scq, IBV_WC_RETRY_EXC_ERR, 1);
	EXPECT_EQ(events(), Counts());
	EXPECT_EQ(query_path(p.a).ah_attr.grh.dgid.raw[15], 2);
}

/* Asked to move, it cannot, and goes on as before; another alternate path can be loaded. */
TEST_F(MigrationTest, OnRequestWithoutTheAddress)
{
	Pair p = armed_pair();

	remove(3);
	modify(p.a, mig_attr(IBV_MIG_MIGRATED));
	expect_qp_event(IBV_EVENT_PATH_MIG_ERR, p.a);
	expect_path(p.a, 1, 2);
	exchange(p);
	EXPECT_EQ(events(), Counts());

	addresses[2].add();
	gid[3] = addresses[2].index(dev);
	modify(p.a, rearm_attr(alt_of_a()));
	exchange(p);
	expect_mig_state(p.a, IBV_MIG_ARMED);
	modify(p.a, mig_attr(IBV_MIG_MIGRATED));
	exchange(p);
	EXPECT_EQ(events(), once_each(p, IBV_EVENT_PATH_MIG));
	expect_moved(p);
}

/* The peer moves, but to another partition than that of this end's alternate path. */
TEST_F(MigrationTest, ThePeerIsInAnotherPartition)
{
	Pair p(dev, pd, {}, quick());

	provoke(dev, "pkey-change");
	for (End *end : {&p.a, &p.b})
		modify(*end, IBV_QPS_RESET);
	connect(p);
	modify(p.a, rearm_attr(alt_of_a()));
	modify(p.b, rearm_attr(alt_attr(dev, gid[4], gid[3], 8, 1)));
	exchange(p);
	modify(p.a, mig_attr(IBV_MIG_MIGRATED));
	expect_qp_event(IBV_EVENT_PATH_MIG, p.a);
	write(p.a, p.b, 1);
	expect_qp_event(IBV_EVENT_PATH_MIG_ERR, p.b);
	expect_wc(p.a.scq, IBV_WC_RETRY_EXC_ERR, 1);
	EXPECT_EQ(events(), Counts()) << "once, however often it is asked";
	expect_path(p.b, 2, 1);
}

/* Each path has its own partition, and loses its own only. */
TEST_F(MigrationTest, ThePartitionGoesWithThePath)
{
	Path second = quick();
	Pair p(dev, pd, {}, quick());

	provoke(dev, "pkey-change");
	second.pkey_index = 1;
	for (End *end : {&p.a, &p.b})
		modify(*end, IBV_QPS_RESET);
	connect(p, second);
	make_armed(p);
	EXPECT_EQ(query_path(p.a).pkey_index, 1);
	provoke(dev, "pkey-change");
	write(p.a, p.b, 1);
	expect_ok(p.a.scq, 1);
	EXPECT_EQ(events(), once_each(p, IBV_EVENT_PATH_MIG));
	expect_moved(p);
	EXPECT_EQ(query_path(p.a).pkey_index, 0);
	EXPECT_EQ(query_path(p.b).pkey_index, 0);
}
