/* SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB */
/* When a slot of a work queue is free. */
#include <memory>

#include "cq_ring.h"
#include "fake_kernel.h"
#include "ring.h"

namespace {

constexpr uint32_t qpn = 7;

class SendRingTest : public testing::Test {
protected:
	static constexpr uint32_t depth = 8, limit = 6;

	SendRingTest()
	{
		herald_ring_info info;
		void *cq = device_.alloc(info, 16, sizeof(herald_cqe));
		void *sq = device_.alloc(info, depth, 128);

		kernel_cq_.attach(cq, 16);
		cq_.attach(cq, 16);
		kernel_sq_.attach(sq, depth, 128);
		sq_.attach(sq, depth, 128, limit);
	}

	bool post(bool signaled = true)
	{
		if (!sq_.has_room(cq_))
			return false;
		auto *wqe = static_cast<herald_send_wqe *>(sq_.next_slot());
		*wqe = {};
		wqe->wr_id = sq_.head();
		wqe->flags = signaled ? HERALD_WR_SIGNALED : 0;
		sq_.push();
		sq_.publish();
		return true;
	}

	void complete(uint32_t count)
	{
		while (count--)
			kernel_sq_.complete_send(kernel_cq_, qpn);
	}

	void poll(uint32_t count)
	{
		while (count--)
			ASSERT_TRUE(cq_.take());
		cq_.publish();
	}

	fake::Device device_;
	fake::Cq kernel_cq_;
	fake::Ring kernel_sq_;
	herald::CqRing cq_;
	herald::SendRing sq_;
};

TEST_F(SendRingTest, HoldsWhatWasGrantedNotWhatFits)
{
	for (uint32_t i = 0; i < limit; i++)
		EXPECT_TRUE(post());
	EXPECT_FALSE(post());
	EXPECT_EQ(kernel_sq_.pending(), limit);
}

TEST_F(SendRingTest, SlotIsFreeOncePolledNotOnceCompleted)
{
	for (uint32_t i = 0; i < limit; i++)
		post();
	complete(3);
	EXPECT_FALSE(post());
	poll(2);
	EXPECT_TRUE(post());
	EXPECT_TRUE(post());
	EXPECT_FALSE(post());
}

TEST_F(SendRingTest, UnsignaledSlotsGoWithTheNextSignaledOne)
{
	for (uint32_t i = 0; i < 3; i++)
		post(false);
	post(true);
	for (uint32_t i = 0; i < 2; i++)
		post(false);
	complete(limit);
	EXPECT_FALSE(post());
	poll(1);
	for (uint32_t i = 0; i < 4; i++)
		EXPECT_TRUE(post()) << i;
	EXPECT_FALSE(post());
}

TEST_F(SendRingTest, GoesRoundManyTimes)
{
	for (uint32_t i = 0; i < 1000; i++) {
		for (uint32_t k = 0; k < limit; k++)
			ASSERT_TRUE(post(k == limit - 1)) << i;
		ASSERT_FALSE(post());
		complete(limit);
		poll(1);
	}
}

TEST_F(SendRingTest, RewindForgetsWhatWasNotPublished)
{
	const uint32_t head = sq_.head();

	sq_.push();
	sq_.push();
	sq_.rewind(head);
	sq_.publish();
	EXPECT_EQ(kernel_sq_.pending(), 0u);
}

TEST_F(SendRingTest, RemovalOfAnotherQpsCompletionsFreesNothing)
{
	/* CQ: one of QP 9, then ours: ours moves from index 1 to 1 + 0, or to 2 if a later one goes */
	kernel_cq_.publish(fake::recv_cqe(0, 9));
	for (uint32_t i = 0; i < limit; i++)
		post();
	complete(1);
	kernel_cq_.publish(fake::recv_cqe(1, 9));
	cq_.purge(9, [this](const herald_cqe &cqe, uint32_t index) {
		EXPECT_EQ(cqe.qp_num, qpn);
		sq_.completion_moved(cqe.wqe_index, index);
	});
	EXPECT_FALSE(post());
	poll(1);
	EXPECT_TRUE(post());
	EXPECT_FALSE(post());
}

TEST(SendRing, WithoutSlotsNeverHasRoom)
{
	herald::SendRing sq;
	herald::CqRing cq;

	EXPECT_FALSE(sq.has_room(cq));
	EXPECT_FALSE(sq.attached());
}

class RecvRingTest : public testing::Test {
protected:
	RecvRingTest()
	{
		herald_ring_info info;
		void *base = device_.alloc(info, 4, 32);

		kernel_.attach(base, 4, 32);
		rq_.attach(base, 4, 32, 3);
	}

	fake::Device device_;
	fake::Ring kernel_;
	herald::RecvRing rq_;
};

TEST_F(RecvRingTest, SlotIsFreeOnceTaken)
{
	for (int i = 0; i < 3; i++) {
		ASSERT_TRUE(rq_.has_room());
		rq_.push();
	}
	rq_.publish();
	EXPECT_FALSE(rq_.has_room());
	kernel_.take_recv();
	EXPECT_TRUE(rq_.has_room());
	rq_.push();
	EXPECT_FALSE(rq_.has_room());
}

TEST_F(RecvRingTest, SaysWhenTheKernelWantsADoorbell)
{
	rq_.push();
	EXPECT_FALSE(rq_.publish_and_check());
	kernel_.set_flags(HERALD_RING_NEED_DOORBELL);
	rq_.push();
	EXPECT_TRUE(rq_.publish_and_check());
	kernel_.set_flags(HERALD_RING_DEAD);
	EXPECT_FALSE(rq_.publish_and_check());
}

TEST(RingInfo, MustBeConsistent)
{
	const herald_ring_info good = {0, 4096, 16, 128};
	auto ok = [](herald_ring_info info, size_t stride = 128, uint32_t depth = 16) {
		return herald::ring_info_ok(info, 128, stride, depth);
	};
	herald_ring_info bad = good;

	EXPECT_TRUE(ok(good));
	EXPECT_FALSE(ok(good, 129));
	EXPECT_FALSE(ok(good, 128, 17));
	bad.depth = 12;
	EXPECT_FALSE(ok(bad, 128, 12));
	bad = good;
	bad.mmap_length = 128 + 16 * 128 - 1;
	EXPECT_FALSE(ok(bad));
	bad = good;
	bad.depth = 0;
	EXPECT_FALSE(ok(bad, 128, 0));
	bad = {0, ~0ull, 1u << 31, 1u << 31};
	EXPECT_TRUE(ok(bad)); /* no overflow hides that */
	bad.mmap_length = 4096;
	EXPECT_FALSE(ok(bad));
}

} // namespace
