/* SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB */
/*
 * Automatic path migration (docs/events.md: PATH_MIG, PATH_MIG_ERR; CASES 54): two ends of a connection with a path and
 * an alternate path, each a pair of addresses of one interface. What is armed moves, once, by whatever causes it; the
 * work requests under way go on; who is asked to move to a path that is not there stays where it is.
 */
#include "control.h"
#include "migration.h"

#include <atomic>
#include <barrier>
#include <map>

using namespace conformance;

namespace {

/* QPs' events by element and kind; those of the port, which follow from its addresses, do not count. */
using Counts = std::map<std::pair<const void *, ibv_event_type>, int>;

/* Messages that carry their number, some at a time: each completes once, in order, with its own bytes. */
class Traffic {
public:
	Traffic(End &from, End &to, uint32_t size) : from_(from), to_(to), size_(size) {}

	void run(std::stop_token stop)
	{
		auto end = Clock::now() + patience();

		for (;;) {
			const bool going = !stop.stop_requested();

			if (!going && sent_ == posted_ && received == posted_)
				return;
			while (going && posted_ - std::min<uint64_t>(sent_, received) < kWindow)
				post();
			if (poll_sent() | poll_received())
				end = Clock::now() + patience();
			else
				std::this_thread::yield();
			if (Clock::now() > end)
				fail("nothing completes any more after " + std::to_string(received));
		}
	}

	std::atomic<uint64_t> received = 0;

private:
	static constexpr uint64_t kWindow = 4;

	size_t slot(uint64_t n) const { return n % kWindow * size_; }
	void post()
	{
		const size_t at = slot(posted_);

		from_.mem.fill(static_cast<uint32_t>(posted_), at, size_);
		recv(to_, to_.mem, to_.mem.size() / 2 + at, size_, posted_);
		Send(IBV_WR_SEND, posted_).from(from_.mem, at, size_).post(from_);
		posted_++;
	}
	bool poll_sent()
	{
		ibv_wc wc{};

		if (ibv_poll_cq(from_.scq, 1, &wc) <= 0)
			return false;
		require(wc.status == IBV_WC_SUCCESS, std::string("send: ") + ibv_wc_status_str(wc.status));
		EXPECT_EQ(wc.wr_id, sent_);
		sent_++;
		return true;
	}
	bool poll_received()
	{
		ibv_wc wc{};

		if (ibv_poll_cq(to_.rcq, 1, &wc) <= 0)
			return false;
		require(wc.status == IBV_WC_SUCCESS, std::string("receive: ") + ibv_wc_status_str(wc.status));
		EXPECT_EQ(wc.wr_id, received);
		EXPECT_EQ(wc.byte_len, size_);
		EXPECT_EQ(differs(from_.mem.data() + slot(received),
				  to_.mem.data() + to_.mem.size() / 2 + slot(received), size_),
			  -1);
		received++;
		return true;
	}

	End &from_, &to_;
	uint32_t size_;
	uint64_t posted_ = 0, sent_ = 0;
};

} // namespace

/*
 *	a ---- .1 ---- path ------- .2 ---- b
 *	   `-- .3 ---- alternate -- .4 --'
 */
class MigrationTest : public ::testing::Test {
protected:
	TempLink link;
	Device dev;
	Pd pd = make_pd(dev);
	std::vector<Address> addresses;
	int gid[5] = {};

	void SetUp() override
	{
		if (!CqControl::available(dev))
			GTEST_SKIP() << "not this device's";
		EXPECT_TRUE(dev.attr.device_cap_flags & IBV_DEVICE_AUTO_PATH_MIG);
		for (int i = 1; i <= 4; i++) {
			addresses.emplace_back(link.netdev(), "10.77.0." + std::to_string(i));
			gid[i] = addresses.back().index(dev);
		}
	}

	void remove(int number) { addresses[static_cast<size_t>(number) - 1].remove(dev); }

	/* As short as that, and it fails only where nobody answers. */
	static Path quick()
	{
		Path path;

		path.timeout = 8;
		path.retry_cnt = 2;
		return path;
	}
	void connect(Pair &p, Path path = quick())
	{
		for (End *end : {&p.a, &p.b})
			to_init(*end, path);
		path.gid_index = gid[1];
		to_rtr(dev, p.a, p.b.num(), path, gid[2]);
		to_rts(dev, p.a, path);
		path.gid_index = gid[2];
		to_rtr(dev, p.b, p.a.num(), path, gid[1]);
		to_rts(dev, p.b, path);
	}
	/* Both ends made, connected and armed. */
	Pair armed_pair(const QpOptions &o = {})
	{
		Pair p(dev, pd, o, quick());

		for (End *end : {&p.a, &p.b})
			modify(*end, IBV_QPS_RESET);
		connect(p);
		make_armed(p);
		return p;
	}
	Attr alt_of_a(uint8_t timeout = 8) const { return alt_attr(dev, gid[3], gid[4], timeout); }
	Attr alt_of_b(uint8_t timeout = 8) const { return alt_attr(dev, gid[4], gid[3], timeout); }

	/* By what the two say to each other, no more. */
	void make_armed(Pair &p)
	{
		modify(p.a, rearm_attr(alt_of_a()));
		modify(p.b, rearm_attr(alt_of_b()));
		exchange(p);
		expect_mig_state(p.a, IBV_MIG_ARMED);
		expect_mig_state(p.b, IBV_MIG_ARMED);
	}
	static void write(End &from, End &to, uint64_t id)
	{
		Send(IBV_WR_RDMA_WRITE, id).from(from.mem, 0, 8).to(to.mem, 64).post(from);
	}
	static void exchange(Pair &p)
	{
		write(p.a, p.b, 71);
		expect_ok(p.a.scq, 71);
		write(p.b, p.a, 72);
		expect_ok(p.b.scq, 72);
	}

	/* All there are now, and none after that for a while. */
	Counts events(Millis limit = quiet())
	{
		Counts counts;

		while (auto got = next_async(dev, limit))
			if (got->element)
				counts[{got->element, got->type}]++;
		return counts;
	}
	/* The next one of a QP. */
	void expect_qp_event(ibv_event_type type, const End &end)
	{
		std::optional<Async> got;

		do
			got = next_async(dev, patience());
		while (got && !got->element);
		ASSERT_TRUE(got) << "no event came; expected " << ibv_event_type_str(type);
		EXPECT_STREQ(ibv_event_type_str(got->type), ibv_event_type_str(type));
		EXPECT_EQ(got->element, end.qp.get());
	}
	static Counts once_each(const Pair &p, ibv_event_type type)
	{
		return {{{p.a.qp.get(), type}, 1}, {{p.b.qp.get(), type}, 1}};
	}
	void expect_path(const End &end, int sgid, int dgid, ibv_mig_state state = IBV_MIG_MIGRATED)
	{
		const ibv_qp_attr a = query_path(end);

		EXPECT_STREQ(mig_name(a.path_mig_state), mig_name(state));
		EXPECT_EQ(a.ah_attr.grh.sgid_index, gid[sgid]);
		EXPECT_EQ(a.ah_attr.grh.dgid.raw[15], dgid);
		EXPECT_EQ(a.qp_state, IBV_QPS_RTS);
		if (state == IBV_MIG_MIGRATED && sgid > 2) {
			EXPECT_EQ(a.alt_port_num, 0) << "there is no alternate path any more";
			EXPECT_EQ(a.alt_ah_attr.grh.dgid.raw[15], 0);
		}
	}
	void expect_moved(const Pair &p)
	{
		expect_path(p.a, 3, 4);
		expect_path(p.b, 4, 3);
	}
	void expect_moves_of_both(const Pair &p)
	{
		Counts counts;

		while (counts.size() < 2) {
			auto got = next_async(dev, patience());

			ASSERT_TRUE(got) << "no event came";
			if (got->element)
				counts[{got->element, got->type}]++;
		}
		EXPECT_EQ(counts, once_each(p, IBV_EVENT_PATH_MIG));
	}
	void pull_path_under_traffic(const QpOptions &o, uint32_t size, bool both_ways);
};

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

	remove(1);
	remove(4);
	write(p.a, p.b, 1);
	expect_wc(p.a.scq, IBV_WC_RETRY_EXC_ERR, 1);
	/* before the error: it moved, in vain */
	EXPECT_EQ(events(), (Counts{{{p.a.qp.get(), IBV_EVENT_PATH_MIG}, 1}}));
	EXPECT_EQ(state_of(p.a), IBV_QPS_ERR);
	expect_path(p.b, 2, 1, IBV_MIG_ARMED);
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

/* ------------------------------------------------------------- attributes -- */

/* ibv_query_qp(3) answers what was loaded, and then what became of it. */
TEST_F(MigrationTest, QueryAnswersWhatWasLoaded)
{
	Pair p(dev, pd, {}, quick());
	Attr alt = alt_of_a(11);

	for (End *end : {&p.a, &p.b})
		modify(*end, IBV_QPS_RESET);
	connect(p);
	alt.a.alt_ah_attr.sl = 3;
	alt.a.alt_ah_attr.grh.flow_label = 0x12345;
	alt.a.alt_ah_attr.grh.traffic_class = 8;
	modify(p.a, alt);
	expect_mig_state(p.a, IBV_MIG_MIGRATED);
	modify(p.a, mig_attr(IBV_MIG_REARM));
	ibv_qp_attr a = query_path(p.a);
	EXPECT_STREQ(mig_name(a.path_mig_state), "REARM");
	EXPECT_EQ(a.alt_port_num, 1);
	EXPECT_EQ(a.alt_timeout, 11);
	EXPECT_EQ(a.alt_pkey_index, 0);
	EXPECT_EQ(a.alt_ah_attr.is_global, 1);
	EXPECT_EQ(a.alt_ah_attr.port_num, 1);
	EXPECT_EQ(a.alt_ah_attr.sl, 3);
	EXPECT_EQ(a.alt_ah_attr.grh.flow_label, 0x12345u);
	EXPECT_EQ(a.alt_ah_attr.grh.traffic_class, 8);
	EXPECT_EQ(a.alt_ah_attr.grh.hop_limit, 64);
	EXPECT_EQ(a.alt_ah_attr.grh.sgid_index, gid[3]);
	EXPECT_EQ(memcmp(&a.alt_ah_attr.grh.dgid, &alt.a.alt_ah_attr.grh.dgid, 16), 0);
	EXPECT_EQ(a.timeout, 8);
	EXPECT_EQ(a.ah_attr.grh.dgid.raw[15], 2);

	modify(p.b, rearm_attr(alt_of_b()));
	exchange(p);
	modify(p.a, mig_attr(IBV_MIG_MIGRATED));
	a = query_path(p.a);
	EXPECT_EQ(a.timeout, 11);
	EXPECT_EQ(a.ah_attr.sl, 3);
	EXPECT_EQ(a.ah_attr.grh.flow_label, 0x12345u);
	EXPECT_EQ(a.ah_attr.grh.dgid.raw[15], 4);
}

/* A reset forgets the alternate path, and whether it was armed. */
TEST_F(MigrationTest, ResetForgets)
{
	Pair p = armed_pair();

	for (End *end : {&p.a, &p.b})
		modify(*end, IBV_QPS_RESET);
	connect(p);
	expect_path(p.a, 1, 2);
	EXPECT_EQ(query_path(p.a).alt_port_num, 0);
	EXPECT_EQ(try_modify(p.a, mig_attr(IBV_MIG_REARM)), EINVAL);
	EXPECT_EQ(events(), Counts());
}

/* On the way to RTR and to RTS, too. */
TEST_F(MigrationTest, LoadedOnTheWay)
{
	Pair p(dev, pd, {}, quick());
	Path path = quick();

	for (End *end : {&p.a, &p.b})
		modify(*end, IBV_QPS_RESET);
	to_init(p.a, path);
	path.gid_index = gid[1];
	Attr rtr = rtr_attr(dev, IBV_QPT_RC, path, p.b.num(), gid[2]), alt = alt_of_a();
	alt.a.qp_state = IBV_QPS_RTR;
	rtr.a.alt_ah_attr = alt.a.alt_ah_attr;
	rtr.a.alt_port_num = 1;
	rtr.a.alt_timeout = 9;
	rtr.mask |= IBV_QP_ALT_PATH;
	modify(p.a, rtr);
	EXPECT_EQ(query_path(p.a).alt_timeout, 9);
	Attr rts = rts_attr(dev, IBV_QPT_RC, path);
	rts.a.path_mig_state = IBV_MIG_REARM;
	rts.mask |= IBV_QP_PATH_MIG_STATE;
	modify(p.a, rts);
	expect_mig_state(p.a, IBV_MIG_REARM);
	EXPECT_EQ(state_of(p.a), IBV_QPS_RTS);
}

/* What is wrong is refused, and leaves the QP as it was. */
TEST_F(MigrationTest, RefusesBadAlternatePaths)
{
	const struct {
		const char *name;
		void (*spoil)(ibv_qp_attr &);
	} rows[] = {
		{"port 0", [](auto &a) { a.alt_port_num = 0; }},
		{"port 2", [](auto &a) { a.alt_port_num = 2; }},
		{"port 255", [](auto &a) { a.alt_port_num = 255; }},
		{"AV port 0", [](auto &a) { a.alt_ah_attr.port_num = 0; }},
		{"AV port 2", [](auto &a) { a.alt_ah_attr.port_num = 2; }},
		{"timeout", [](auto &a) { a.alt_timeout = 32; }},
		{"largest timeout", [](auto &a) { a.alt_timeout = 255; }},
		{"empty P_Key", [](auto &a) { a.alt_pkey_index = 1; }},
		{"P_Key index", [](auto &a) { a.alt_pkey_index = 0xffff; }},
		{"empty GID", [](auto &a) { a.alt_ah_attr.grh.sgid_index = 200; }},
		{"GID index", [](auto &a) { a.alt_ah_attr.grh.sgid_index = 255; }},
		{"no GRH", [](auto &a) { a.alt_ah_attr.is_global = 0; }},
	};
	Pair p(dev, pd, {}, quick());

	for (End *end : {&p.a, &p.b})
		modify(*end, IBV_QPS_RESET);
	connect(p);
	for (const auto &row : rows) {
		SCOPED_TRACE(row.name);
		Attr at = rearm_attr(alt_of_a());

		row.spoil(at.a);
		EXPECT_EQ(try_modify(p.a, at), EINVAL);
		expect_path(p.a, 1, 2);
		EXPECT_EQ(query_path(p.a).alt_port_num, 0);
	}
	UdEnd ud(dev, pd);
	EXPECT_EQ(try_modify(ud, alt_of_a()), EINVAL) << "a datagram QP has no path";
	Attr with_state = alt_of_a();
	with_state.a.qp_state = IBV_QPS_ERR;
	with_state.mask |= IBV_QP_STATE;
	EXPECT_EQ(try_modify(p.a, with_state), EINVAL) << "not on the way to ERR";
	exchange(p);
}

TEST_F(MigrationTest, RefusesBadStates)
{
	Pair p(dev, pd, {}, quick());
	auto refused = [&](int state) {
		EXPECT_EQ(try_modify(p.a, mig_attr(static_cast<ibv_mig_state>(state))), EINVAL) << state;
	};

	for (End *end : {&p.a, &p.b})
		modify(*end, IBV_QPS_RESET);
	connect(p);
	EXPECT_EQ(try_modify(p.a, mig_attr(IBV_MIG_MIGRATED)), 0) << "what it is already";
	for (int state : {IBV_MIG_REARM, IBV_MIG_ARMED, static_cast<ibv_mig_state>(3), static_cast<ibv_mig_state>(255)})
		refused(state);
	modify(p.a, rearm_attr(alt_of_a()));
	for (int state : {0, 1, 2, 3, 255})
		refused(state);
	expect_mig_state(p.a, IBV_MIG_REARM);
	modify(p.b, rearm_attr(alt_of_b()));
	exchange(p);
	for (int state : {1, 2, 3, 255})
		refused(state);
	expect_path(p.a, 1, 2, IBV_MIG_ARMED);
	EXPECT_EQ(events(), Counts());
}
