/* SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB */
/* The queues' lock: one at a time, whoever owns it and whoever comes by. */
#include <atomic>
#include <chrono>
#include <memory>
#include <thread>
#include <vector>

#include <gtest/gtest.h>

#include "herald_core.h"
#include "lock.h"
#include "rendezvous.h"

using namespace herald;

namespace {

using Clock = std::chrono::steady_clock;

/* What a lock protects: counting is not atomic, so that two at once are seen. */
struct Protected {
	Lock lock{false};
	volatile uint64_t count = 0;

	void add(bool visit = false)
	{
		if (visit)
			lock.visit();
		else
			lock.lock();
		count = count + 1;
		lock.unlock();
	}
};

class LockTest : public testing::Test {
protected:
	LockTest() { herald_locks_init(); }
};

TEST_F(LockTest, ManyThreadsAreInsideOneByOne)
{
	constexpr uint64_t times = 20000;
	Protected object;
	std::vector<std::jthread> threads;

	for (uint32_t i = 0; i < 4; i++)
		threads.emplace_back([&object, i] {
			for (uint64_t n = 0; n < times; n++)
				object.add(i == 3);
		});
	threads.clear();
	EXPECT_EQ(object.count, 4 * times);
}

/*
 * A lock is new each round and has an owner, who goes in and out; once, at any moment, the other one comes.  Its
 * argument: does that one come as a visitor?
 */
class EvictionTest : public LockTest, public testing::WithParamInterface<bool> {};

TEST_P(EvictionTest, OwnerAndNewcomerAreNeverInsideTogether)
{
	constexpr uint32_t entries = 64;
	const auto end = Clock::now() + std::chrono::seconds(2);
	std::unique_ptr<Protected> object;
	Rendezvous rendezvous(2);
	std::atomic_bool stop = false;
	uint64_t rounds = 0;

	std::jthread newcomer([&] {
		for (uint32_t round = 0;; round++) {
			rendezvous.meet();
			if (stop)
				return;
			for (uint32_t spin = round * 7 % 512; spin; spin--)
				std::atomic_signal_fence(std::memory_order_seq_cst);
			for (uint32_t i = 0; i < 3; i++)
				object->add(GetParam());
			rendezvous.meet();
		}
	});

	for (; Clock::now() < end && !HasFailure(); rounds++) {
		object = std::make_unique<Protected>();
		object->add();
		rendezvous.meet();
		for (uint32_t i = 0; i < entries; i++)
			object->add();
		rendezvous.meet();
		EXPECT_EQ(object->count, 1 + entries + 3) << "in round " << rounds;
	}
	stop = true;
	rendezvous.meet();
	EXPECT_GT(rounds, 0u);
}

INSTANTIATE_TEST_SUITE_P(As, EvictionTest, testing::Bool(),
			 [](const auto &info) { return info.param ? "Visitor" : "NextOwner"; });

/* It changes hands in order, and then is everybody's: nobody waits for an owner that has ended. */
TEST_F(LockTest, OwnersThatEndHoldNothing)
{
	Protected object;

	for (uint64_t i = 0; i < 32; i++) {
		std::thread([&] { object.add(); }).join();
		object.add();
	}
	EXPECT_EQ(object.count, 64u);
}

/* The thread that is made while the lock is held waits for it. */
TEST_F(LockTest, HeldByTheOwnerIsHeld)
{
	Protected object;
	std::atomic_bool inside = false, asked = false;

	object.add();
	object.lock.lock();
	std::jthread other([&] {
		asked = true;
		object.lock.lock();
		inside = true;
		object.lock.unlock();
	});
	while (!asked)
		std::this_thread::yield();
	std::this_thread::sleep_for(std::chrono::milliseconds(50));
	EXPECT_FALSE(inside);
	object.lock.unlock();
	other.join();
	EXPECT_TRUE(inside);
}

/* Who holds it must not get in again; another thread may let go, as in a program that ends a poll there. */
TEST_F(LockTest, TheOwnerWaitsForItselfToo)
{
	Protected object;
	std::atomic_bool unlocked = false;

	object.add();
	object.lock.lock();
	std::jthread other([&] {
		std::this_thread::sleep_for(std::chrono::milliseconds(50));
		unlocked = true;
		object.lock.unlock();
	});
	object.lock.lock();
	EXPECT_TRUE(unlocked);
	object.lock.unlock();
}

TEST_F(LockTest, AloneNeedsNone)
{
	Lock lock(true);

	lock.lock();
	lock.lock();
	lock.visit();
	lock.unlock();
}

} // namespace
