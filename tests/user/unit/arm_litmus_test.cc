// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
// The arm protocol between a process and the kernel, with real threads: the
// two sides as cq.c and herald-abi.h have them, over a control block in memory.
#include <gtest/gtest.h>

#include <atomic>
#include <chrono>
#include <thread>

#include "../../../user/provider/arm.h"
#include "pure.h"

namespace {

// A full barrier that ThreadSanitizer understands too.
void full_barrier()
{
	static std::atomic<int> word;

	word.fetch_add(0, std::memory_order_seq_cst);
}

struct Shared {
	alignas(64) std::atomic<__u32> producer{0};
	std::atomic<__u32> arm_fired{0};
	alignas(64) std::atomic<__u64> arm{0};
	alignas(64) std::atomic<__u32> events{0};
};

class Kernel {
public:
	explicit Kernel(Shared &shared) : s(shared) {}

	void publish(bool solicited)
	{
		__u32 index = producer++;

		s.producer.store(producer, std::memory_order_release);
		full_barrier();
		__u64 arm = s.arm.load(std::memory_order_relaxed);
		auto armed = herald_arm_word(arm, fired, index);
		auto state = static_cast<herald_arm_state>(armed.state);
		auto step = herald_arm_table(state, solicited ? HERALD_IN_PUBLISH_SOLICITED : HERALD_IN_PUBLISH);
		if (step->verdict != HERALD_FIRE)
			return;
		fired = armed.seq;
		s.arm_fired.store(fired, std::memory_order_relaxed);
		s.events.fetch_add(1, std::memory_order_release);
	}

private:
	Shared &s;
	__u32 producer = 0;
	__u32 fired = 0;
};

class Process {
public:
	explicit Process(Shared &shared) : s(shared) {}

	__u32 poll()
	{
		__u32 seen = s.producer.load(std::memory_order_acquire);
		__u32 n = seen - consumer;

		consumer = seen;
		return n;
	}

	void arm(__u32 kind)
	{
		__u32 seen = s.producer.load(std::memory_order_acquire);

		arms++;
		if (!word.ask(kind, seen, s.arm_fired.load(std::memory_order_acquire)))
			return;
		s.arm.store(word.word(), std::memory_order_relaxed);
		full_barrier();
	}

	__u32 consumer = 0;
	__u32 arms = 0;

private:
	Shared &s;
	herald::Arm word;
};

// One CQE a round: a consumer that polls, arms, polls and then waits for an
// event always gets one, and at most one for each arm.
TEST(ArmLitmus, NoLostWakeup)
{
	constexpr __u32 rounds = 200000;
	Shared shared;
	std::atomic<__u32> consumed{0};
	std::atomic<bool> stuck{false};

	std::thread kernel([&] {
		Kernel k(shared);

		for (__u32 i = 0; i < rounds && !stuck; i++) {
			k.publish(false);
			for (int spin = 0; consumed.load(std::memory_order_acquire) <= i && !stuck;)
				if (++spin % 256 == 0)
					std::this_thread::yield();
		}
	});

	Process p(shared);
	__u32 got = 0, events = 0;
	auto take = [&](__u32 n) {
		got += n;
		if (n)
			consumed.store(got, std::memory_order_release);
		return n;
	};

	while (got < rounds && !stuck) {
		if (take(p.poll()))
			continue;
		p.arm(HERALD_ARM_NEXT);
		if (take(p.poll()))
			continue;
		auto deadline = std::chrono::steady_clock::now() + std::chrono::seconds(20);
		for (int spin = 0; shared.events.load(std::memory_order_acquire) == events;) {
			if (++spin % 256 == 0)
				std::this_thread::yield();
			if (spin % 4096 == 0 && std::chrono::steady_clock::now() > deadline) {
				stuck = true;
				break;
			}
		}
		events = shared.events.load(std::memory_order_acquire);
	}
	kernel.join();
	EXPECT_FALSE(stuck) << "no event after " << got << " CQEs";
	EXPECT_EQ(got, rounds);
	EXPECT_LE(shared.events.load(), p.arms);
}

// One after the other there is no race, so the number of events is exact.
TEST(ArmLitmus, OneEventPerArm)
{
	Shared shared;
	Kernel k(shared);
	Process p(shared);

	for (__u32 i = 1; i <= 100; i++) {
		p.arm(HERALD_ARM_NEXT);
		k.publish(false);
		k.publish(true);
		ASSERT_EQ(shared.events.load(), i);
	}
}

TEST(ArmLitmus, PresentCqesDoNotFire)
{
	Shared shared;
	Kernel k(shared);
	Process p(shared);

	k.publish(true);
	k.publish(true);
	p.arm(HERALD_ARM_NEXT);
	EXPECT_EQ(shared.events.load(), 0u);
	k.publish(false);
	EXPECT_EQ(shared.events.load(), 1u);
}

TEST(ArmLitmus, SolicitedOnly)
{
	Shared shared;
	Kernel k(shared);
	Process p(shared);

	p.arm(HERALD_ARM_SOLICITED);
	k.publish(false);
	EXPECT_EQ(shared.events.load(), 0u);
	k.publish(true);
	k.publish(true);
	EXPECT_EQ(shared.events.load(), 1u);
}

} // namespace
