/* SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB */
/*
 * Rule C2 under load: no event is lost, whatever the timing; CASES 1 and 8. The numbers fit a test run; HERALD_COMPLETIONS
 * and HERALD_ROUNDS (10000000 each in those cases) make it a long one.
 */
#include "pair.h"

#include <algorithm>
#include <atomic>
#include <cstdlib>
#include <memory>

using namespace conformance;

namespace {

/* How often: by the variable, else as often as such a machine can in seconds. */
uint64_t times(const char *variable, uint64_t fast, uint64_t least)
{
	const char *value = getenv(variable);

	return value ? strtoull(value, nullptr, 10) : std::max(least, fast / static_cast<uint64_t>(slowness()));
}

/* CASES ask for 2 seconds; for as many as the machine is slower. A stall is for ever. */
Millis watchdog()
{
	return std::max(Millis(2000) * slowness(), patience() / 3);
}

void spin_for(std::chrono::nanoseconds time)
{
	for (const auto end = Clock::now() + time; Clock::now() < end;)
		;
}

} // namespace

class LitmusTest : public RcTest {
protected:
	/* One byte from p.a to p.b, whose completion goes to p.a's send CQ. */
	static void write(Pair &p, uint64_t id)
	{
		Send(IBV_WR_RDMA_WRITE, id).from(p.a.mem, 0, 1).to(p.b.mem).post(p.a);
	}
	Pair pair_on(ibv_cq *cq)
	{
		QpOptions a, b;

		a.send_cq = cq;
		a.memory = b.memory = 4096;
		return Pair(dev, pd, a, b, {});
	}
	void rounds(ibv_cq *cq);

	Channel channel = make_channel(dev);
};

/* ------------------------------------------------- many against one -- */

namespace {

/* A thread that posts, never more at a time than its window; the reader counts what has come back. */
struct Poster {
	static constexpr uint64_t window = 64;

	explicit Poster(Pair &&p) : pair(std::move(p)) {}

	void run(uint64_t n, const std::stop_token &stop)
	{
		for (uint64_t i = 0; i < n && !stop.stop_requested(); i++) {
			while (i - back.load(std::memory_order_acquire) >= window && !stop.stop_requested())
				std::this_thread::yield();
			Send(IBV_WR_RDMA_WRITE, i).from(pair.a.mem, 0, 1).to(pair.b.mem).post(pair.a);
		}
	}

	Pair pair;
	std::atomic<uint64_t> back = 0;
};

} // namespace

/*
 * CASES 1: several threads post writes of one byte that complete on one CQ; one thread gets the event, acks it, arms and
 * polls until the CQ is empty. It never stands still, and misses nothing.
 */
TEST_F(LitmusTest, Cases1_ManyPostersOneReader)
{
	constexpr uint64_t posters = 4;
	const uint64_t each = times("HERALD_COMPLETIONS", 60000, 4000) / posters;
	Cq cq = make_cq(dev, posters * Poster::window, channel);
	std::vector<std::unique_ptr<Poster>> all;
	std::vector<std::jthread> threads;
	uint64_t got = 0, events = 0;

	for (uint64_t i = 0; i < posters; i++)
		all.push_back(std::make_unique<Poster>(pair_on(cq)));
	arm(cq);
	for (auto &poster : all)
		threads.push_back(worker([&poster, each](std::stop_token stop) { poster->run(each, stop); }));
	while (got < each * posters) {
		ibv_wc wc[16];
		int n;

		ASSERT_EQ(wait_event(channel, watchdog()), cq.get()) << "stalled after " << got << " completions";
		events++;
		arm(cq);
		while ((n = ibv_poll_cq(cq, 16, wc)) > 0) {
			for (int i = 0; i < n; i++) {
				auto poster = std::find_if(all.begin(), all.end(),
							   [&](auto &p) { return p->pair.a.num() == wc[i].qp_num; });
				ASSERT_NE(poster, all.end());
				ASSERT_EQ(wc[i].status, IBV_WC_SUCCESS);
				/* each once, in the order of its queue (C13) */
				ASSERT_EQ(wc[i].wr_id, (*poster)->back.fetch_add(1, std::memory_order_release));
			}
			got += n;
		}
		ASSERT_EQ(n, 0);
	}
	threads.clear();
	EXPECT_LE(events, got);
	expect_empty(cq);
	/* at most the one of the last arm's time */
	while (wait_event(channel, Millis(0)))
		events++;
	EXPECT_LE(events, got + 1);
}

/* ---------------------------------------------------- one against one -- */

/*
 * The waiter polls empty, arms, polls empty, blocks; the other one completes a write 0 to 5 us after the waiter has begun.
 * Either may be late, so the waiter takes its time, too.  As often as asked for, else for some seconds.
 */
void LitmusTest::rounds(ibv_cq *cq)
{
	const bool asked = getenv("HERALD_ROUNDS");
	const uint64_t n = times("HERALD_ROUNDS", 200000, 20000);
	const auto end = Clock::now() + Millis(long_form() ? 10000 : 4000);
	Pair p = pair_on(cq);
	std::atomic<uint64_t> begun = 0;
	uint64_t events = 0;

	auto other = worker([&](std::stop_token stop) {
		for (uint64_t round = 1; round <= n && !stop.stop_requested(); round++) {
			while (begun.load(std::memory_order_acquire) < round && !stop.stop_requested())
				std::this_thread::yield();
			spin_for(std::chrono::nanoseconds(round * 7919 % 5000));
			write(p, round);
		}
	});
	uint64_t round = 1;
	for (; round <= n && (asked || Clock::now() < end); round++) {
		ibv_wc wc{};
		int rc;

		ASSERT_EQ(ibv_poll_cq(cq, 1, &wc), 0) << "round " << round;
		begun.store(round, std::memory_order_release);
		if (round % 2)
			spin_for(std::chrono::nanoseconds(round * 104729 % 50000));
		for (;;) {
			arm(cq);
			rc = ibv_poll_cq(cq, 1, &wc);
			if (rc)
				break;
			/* that of an earlier round, for a completion that was found without it, is as good as any */
			ASSERT_EQ(wait_event(channel, watchdog()), cq) << "stuck in round " << round;
			events++;
			rc = ibv_poll_cq(cq, 1, &wc);
			if (rc)
				break;
		}
		ASSERT_EQ(rc, 1);
		ASSERT_EQ(wc.status, IBV_WC_SUCCESS);
		ASSERT_EQ(wc.wr_id, round);
	}
	other.request_stop();
	other.join();
	while (wait_event(channel, Millis(0)))
		events++;
	EXPECT_LT(events, round) << "more events than completions";
	RecordProperty("rounds", std::to_string(round - 1));
}

/* CASES 8. */
TEST_F(LitmusTest, Cases8_PollArmPollBlock)
{
	Cq cq = make_cq(dev, 4, channel);

	rounds(cq);
}

/* CASES 8 with moderated events (rule C9): later, but not never. */
TEST_F(LitmusTest, Cases8_Moderated)
{
	Cq cq = make_cq(dev, 4, channel);
	ibv_modify_cq_attr attr{};

	attr.attr_mask = IBV_CQ_ATTR_MODERATE;
	attr.moderate = {2, 100};
	ASSERT_EQ(ibv_modify_cq(cq, &attr), 0);
	rounds(cq);
}
