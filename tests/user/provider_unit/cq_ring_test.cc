/* SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB */
/* Polling, arming and removal, against a kernel that follows the ABI. */
#include <atomic>
#include <chrono>
#include <thread>

#include "cq_ring.h"
#include "fake_kernel.h"
#include "rendezvous.h"

namespace {

class CqRingTest : public testing::TestWithParam<uint32_t> {
protected:
	CqRingTest() { make(8); }

	void make(uint32_t depth)
	{
		herald_ring_info info;
		void *base = device_.alloc(info, depth, sizeof(herald_cqe));

		kernel_.attach(base, depth);
		cq_.attach(base, depth);
	}

	bool publish(uint64_t id, bool solicited = false, ibv_wc_status status = IBV_WC_SUCCESS)
	{
		return kernel_.publish(fake::recv_cqe(id, 1, status), solicited);
	}

	/* wr_id of the next one, or -1 */
	int64_t poll()
	{
		const herald_cqe *cqe = cq_.take();
		const int64_t id = cqe ? int64_t(cqe->wr_id) : -1;

		cq_.publish();
		return id;
	}

	void purge(uint32_t qpn)
	{
		cq_.purge(qpn, [](const herald_cqe &, uint32_t) {});
	}

	fake::Device device_;
	fake::Cq kernel_;
	herald::CqRing cq_;
};

TEST_F(CqRingTest, PollsInOrderAcrossTheWrap)
{
	for (int64_t i = 0; i < 100; i++) {
		EXPECT_TRUE(cq_.looks_empty());
		publish(i);
		EXPECT_FALSE(cq_.looks_empty());
		EXPECT_EQ(poll(), i);
		EXPECT_EQ(poll(), -1);
	}
}

TEST_F(CqRingTest, RoomIsGivenBackWithPublish)
{
	for (int i = 0; i < 8; i++)
		publish(i);
	cq_.take();
	EXPECT_EQ(kernel_.room(), 0u);
	cq_.publish();
	EXPECT_EQ(kernel_.room(), 1u);
}

TEST_F(CqRingTest, DiesAfterTheGoodOnes)
{
	for (int i = 0; i < 9; i++)
		publish(i);
	EXPECT_FALSE(cq_.dead());
	for (int i = 0; i < 8; i++)
		EXPECT_EQ(poll(), i);
	EXPECT_TRUE(cq_.dead());
	EXPECT_TRUE(cq_.looks_empty());
}

TEST_F(CqRingTest, KilledIsDead)
{
	EXPECT_FALSE(cq_.dead());
	cq_.kill();
	EXPECT_TRUE(cq_.dead());
}

/* ------------------------------------------------------------ arming -- */

TEST_F(CqRingTest, UnarmedIsQuiet)
{
	EXPECT_FALSE(publish(0));
	EXPECT_FALSE(publish(1, true));
}

TEST_F(CqRingTest, ArmIsOneShot)
{
	cq_.arm(false);
	EXPECT_TRUE(publish(0));
	EXPECT_FALSE(publish(1));
	cq_.arm(false);
	EXPECT_TRUE(publish(2));
}

TEST_F(CqRingTest, SolicitedIgnoresTheRest)
{
	cq_.arm(true);
	EXPECT_FALSE(publish(0));
	EXPECT_TRUE(publish(1, true));
	EXPECT_FALSE(publish(2, true));
}

TEST_F(CqRingTest, AnErrorCountsAsSolicited)
{
	cq_.arm(true);
	EXPECT_TRUE(publish(0, false, IBV_WC_WR_FLUSH_ERR));
}

TEST_F(CqRingTest, NextIsNotWeakened)
{
	cq_.arm(false);
	cq_.arm(true);
	cq_.arm(true);
	EXPECT_TRUE(publish(0));
	EXPECT_FALSE(publish(1, true)); /* one arm came of it all */
}

TEST_F(CqRingTest, SolicitedIsStrengthened)
{
	cq_.arm(true);
	cq_.arm(false);
	cq_.arm(false);
	EXPECT_TRUE(publish(0));
	EXPECT_FALSE(publish(1));
}

TEST_F(CqRingTest, SolicitedAfterAConsumedNextIsSolicited)
{
	cq_.arm(false);
	EXPECT_TRUE(publish(0));
	cq_.arm(true);
	EXPECT_FALSE(publish(1));
	EXPECT_TRUE(publish(2, true));
}

TEST_F(CqRingTest, WhatWasThereRaisesNothing)
{
	publish(0);
	publish(1, true);
	cq_.arm(false);
	EXPECT_EQ(HERALD_ARM_SEEN(kernel_.ctl().arm), 2u);
	EXPECT_TRUE(publish(2));
}

TEST_F(CqRingTest, ReplacingLeavesThePendingArmItsChance)
{
	/* the kernel may have published 1 and not looked at the arm yet */
	cq_.arm(true);
	publish(0);
	publish(1);
	cq_.arm(false);
	EXPECT_EQ(kernel_.ctl().arm, HERALD_ARM(2, 2, HERALD_ARM_SOLICITED, HERALD_ARM_NEXT));
}

TEST_F(CqRingTest, ArmingAgainDoesNotTouchAPendingArm)
{
	cq_.arm(false);
	const uint64_t arm = kernel_.ctl().arm;
	cq_.arm(false);
	cq_.arm(true);
	EXPECT_EQ(kernel_.ctl().arm, arm);
}

TEST_F(CqRingTest, SequenceNumbersWrap)
{
	for (uint32_t i = 0; i < 3; i++) {
		cq_.arm(false);
		EXPECT_EQ(HERALD_ARM_SEQ(kernel_.ctl().arm), i + 1);
		EXPECT_TRUE(publish(i));
		poll();
	}
}

/*
 * Two threads race: one completion at a time is published; the other side arms, polls dry and, if there was nothing,
 * waits for the event.  It must never wait for ever, and no event comes twice for one arm.
 */
TEST_F(CqRingTest, NoWakeUpIsLost)
{
	const auto end = std::chrono::steady_clock::now() + std::chrono::seconds(2);
	std::atomic<uint64_t> events = 0, polled = 0;
	std::jthread kernel([&](std::stop_token stop) {
		for (uint64_t i = 0; !stop.stop_requested(); i++) {
			for (uint64_t spin = i % 7; spin--;)
				std::atomic_signal_fence(std::memory_order_seq_cst);
			if (publish(i, i & 1))
				events.fetch_add(1);
			while (polled.load() <= i && !stop.stop_requested())
				std::this_thread::yield();
		}
	});
	uint64_t taken = 0, arms = 0, next = 0;

	while (std::chrono::steady_clock::now() < end) {
		cq_.arm(arms % 3 == 2 && (next & 1));
		arms++;
		bool any = false;
		for (int64_t id; (id = poll()) >= 0; any = true) {
			ASSERT_EQ(uint64_t(id), next);
			polled.store(++next);
		}
		if (any)
			continue;
		const auto deadline = std::chrono::steady_clock::now() + std::chrono::seconds(30);
		while (events.load() == taken) {
			ASSERT_LT(std::chrono::steady_clock::now(), deadline) << "stuck at " << next;
			std::this_thread::yield();
		}
		/* that of a completion polled before is as good: it may meet an empty queue */
		taken++;
	}
	kernel.request_stop();
	kernel.join();
	EXPECT_LE(events.load(), arms);
	EXPECT_GT(next, 0u);
}

/*
 * Rule C2, CASES 8 as a litmus test of the barriers: one side arms and looks, the other publishes and decides, at the same
 * moment.  Never does the one see nothing and the other see no arm.  Before it arms, the one writes what the other has in
 * its cache: so that without a barrier the arm stays in the store buffer for long.
 */
TEST_F(CqRingTest, Cases8_EitherSideSeesTheOther)
{
	const auto end = std::chrono::steady_clock::now() + std::chrono::seconds(2);
	struct alignas(64) Line {
		std::atomic<uint64_t> word = 0;
	} lines[16];
	Rendezvous rendezvous(2);
	std::atomic_bool stop = false;
	bool fired = false;
	uint64_t rounds = 0, blind = 0;

	auto spin = [](uint32_t n) {
		while (n--)
			std::atomic_signal_fence(std::memory_order_seq_cst);
	};
	std::jthread kernel([&] {
		for (uint32_t round = 0;; round++) {
			rendezvous.meet();
			if (stop)
				return;
			spin(round % 61);
			fired = publish(1);
			for (Line &line : lines)
				line.word.store(round, std::memory_order_relaxed);
			rendezvous.meet();
		}
	});
	for (; std::chrono::steady_clock::now() < end; rounds++) {
		rendezvous.meet();
		spin(uint32_t(rounds % 127));
		for (Line &line : lines)
			line.word.store(rounds, std::memory_order_relaxed);
		cq_.arm(false);
		const bool empty = cq_.looks_empty();
		rendezvous.meet();
		blind += empty && !fired;
		EXPECT_EQ(poll(), 1);
	}
	stop = true;
	rendezvous.meet();
	EXPECT_EQ(blind, 0u) << "of " << rounds << " rounds";
}

/* ----------------------------------------------------------- removal -- */

TEST_F(CqRingTest, PurgeKeepsTheOthersInOrder)
{
	for (uint32_t i = 0; i < 7; i++)
		kernel_.publish(fake::recv_cqe(i, i % 3 ? 1 : 2));
	EXPECT_EQ(poll(), 0);
	purge(2); /* 3 and 6 go */
	EXPECT_EQ(kernel_.room(), 8u - 4u);
	for (int64_t id : {1, 2, 4, 5})
		EXPECT_EQ(poll(), id);
	EXPECT_EQ(poll(), -1);
	publish(9);
	EXPECT_EQ(poll(), 9);
}

TEST_F(CqRingTest, PurgeOfAllLeavesAnEmptyQueue)
{
	for (uint32_t i = 0; i < 8; i++)
		publish(i);
	purge(1);
	EXPECT_TRUE(cq_.looks_empty());
	EXPECT_EQ(kernel_.room(), 8u);
	EXPECT_EQ(poll(), -1);
}

TEST_F(CqRingTest, PurgeOfNoneChangesNothing)
{
	for (uint32_t i = 0; i < 5; i++)
		publish(i);
	purge(99);
	EXPECT_EQ(kernel_.room(), 3u);
	for (int64_t i = 0; i < 5; i++)
		EXPECT_EQ(poll(), i);
}

TEST_F(CqRingTest, PurgeWhileTheKernelPublishes)
{
	constexpr uint32_t total = 10000;
	std::thread kernel([&] {
		for (uint32_t i = 0; i < total; i++) {
			while (!kernel_.room())
				std::this_thread::yield();
			kernel_.publish(fake::recv_cqe(i, i % 5 ? 1 : 2));
		}
	});
	int64_t last = -1;
	uint32_t kept = 0;

	while (last < total - 1) {
		purge(2);
		const int64_t id = poll();
		if (id < 0)
			continue;
		ASSERT_GT(id, last);
		for (int64_t skipped = last + 1; skipped < id; skipped++)
			ASSERT_EQ(skipped % 5, 0) << "lost";
		last = id;
		kept++;
	}
	kernel.join();
	EXPECT_GE(kept, total - total / 5);
}

/* ---------------------------------------------------------- resizing -- */

TEST_F(CqRingTest, ResizeKeepsCompletionsAndTheArm)
{
	for (uint32_t i = 0; i < 11; i++) {
		publish(i);
		if (i < 7)
			poll();
	}
	cq_.arm(false);
	herald_ring_info info;
	void *base = device_.alloc(info, 4, sizeof(herald_cqe));
	kernel_.move_to(base, 4);
	cq_.attach(base, 4);
	EXPECT_EQ(kernel_.room(), 0u);
	EXPECT_EQ(poll(), 7);
	EXPECT_TRUE(publish(11));
	for (int64_t i = 8; i < 12; i++)
		EXPECT_EQ(poll(), i);
	EXPECT_EQ(poll(), -1);
}

} // namespace
