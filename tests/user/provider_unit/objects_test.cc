/* SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB */
/* CQs by their handles: both ways to poll, resizing, and what is left of a QP that goes. */
#include <atomic>
#include <mutex>
#include <thread>

#include "objects_fixture.h"

namespace {

using fake::recv_cqe;

class CqTest : public testing::Test {
protected:
	fake::Device device_;
	fake::UserCq cq_{device_, 8};
};

TEST_F(CqTest, PollsManyAtOnce)
{
	ibv_wc wc[16];

	EXPECT_EQ(herald_poll_cq(cq_.ibv(), 16, wc), 0);
	for (int i = 0; i < 5; i++)
		cq_.kernel.publish(recv_cqe(i));
	EXPECT_EQ(herald_poll_cq(cq_.ibv(), 0, wc), 0);
	EXPECT_EQ(herald_poll_cq(cq_.ibv(), 3, wc), 3);
	EXPECT_EQ(wc[2].wr_id, 2u);
	EXPECT_EQ(herald_poll_cq(cq_.ibv(), 16, wc), 2);
	EXPECT_EQ(wc[1].wr_id, 4u);
	EXPECT_EQ(cq_.kernel.room(), 8u);
}

TEST_F(CqTest, AnOverrunFailsAfterTheGoodOnes)
{
	ibv_wc wc[16];
	ibv_poll_cq_attr attr = {};

	for (int i = 0; i < 9; i++)
		cq_.kernel.publish(recv_cqe(i));
	EXPECT_EQ(herald_poll_cq(cq_.ibv(), 16, wc), 8);
	EXPECT_EQ(herald_poll_cq(cq_.ibv(), 16, wc), -EIO);
	EXPECT_EQ(ibv_start_poll(cq_.handle, &attr), EIO);
}

/* HERALD_CQ_TELL_ARM: one call before the arm, which is not there yet, and one after it; without the flag none. */
TEST_F(CqTest, AnnouncesArmsIfAsked)
{
	herald_cq_ctl &ctl = cq_.kernel.ctl();

	herald_cq_set_id(cq_.handle, 77);
	EXPECT_EQ(herald_req_notify_cq(cq_.ibv(), 1), 0);
	EXPECT_TRUE(fake::take_announced(device_.fd()).empty());
	EXPECT_EQ(HERALD_ARM_SEQ(ctl.arm), 1u);

	ctl.flags = HERALD_CQ_TELL_ARM;
	EXPECT_EQ(herald_req_notify_cq(cq_.ibv(), 0), 0);
	const auto announced = fake::take_announced(device_.fd());
	ASSERT_EQ(announced.size(), 2u);
	for (uint32_t i = 0; i < 2; i++) {
		EXPECT_EQ(announced[i].cq_id, 77u);
		EXPECT_EQ(announced[i].moment, i ? HERALD_ARMING_AFTER : HERALD_ARMING_BEFORE);
	}
	EXPECT_EQ(HERALD_ARM_KIND(ctl.arm), HERALD_ARM_NEXT);
	EXPECT_EQ(cq_.poll(), -1) << "the flag says nothing about an overrun";

	ctl.flags = 0;
	EXPECT_EQ(herald_req_notify_cq(cq_.ibv(), 0), 0);
	EXPECT_TRUE(fake::take_announced(device_.fd()).empty());
}

/* For those who look from outside: the events that were got, and the acks that libibverbs has counted by then. */
TEST_F(CqTest, AccountsForEvents)
{
	herald_cq_ctl &ctl = cq_.kernel.ctl();

	herald_cq_event(cq_.ibv());
	herald_cq_event(cq_.ibv());
	EXPECT_EQ(ctl.events_read, 2u);
	EXPECT_EQ(ctl.events_acked, 0u);
	cq_.ibv()->comp_events_completed = 2;
	herald_cq_event(cq_.ibv());
	EXPECT_EQ(ctl.events_read, 3u);
	EXPECT_EQ(ctl.events_acked, 2u);
}

/* Without a device nobody but the provider knows what there is to wait for: C8, CASES 43, 49. */
TEST_F(CqTest, AwaitsTheAcksOfWhatWasGot)
{
	ibv_cq *cq = cq_.ibv();
	ibv_async_event event = {};

	herald_cq_await_acks(cq); /* of none */
	herald_cq_event(cq);
	event.event_type = IBV_EVENT_CQ_ERR;
	event.element.cq = cq;
	herald_async_event(device_.context(), &event);

	std::atomic<bool> over = false;
	std::thread waiter([&] {
		herald_cq_await_acks(cq);
		over = true;
	});
	auto ack = [&](uint32_t &completed) {
		EXPECT_FALSE(over);
		pthread_mutex_lock(&cq->mutex);
		completed++;
		pthread_cond_signal(&cq->cond);
		pthread_mutex_unlock(&cq->mutex);
	};
	ack(cq->async_events_completed);
	ack(cq->comp_events_completed);
	waiter.join();
	EXPECT_TRUE(over);
}

TEST_F(CqTest, StartNextEnd)
{
	ibv_poll_cq_attr attr = {};

	EXPECT_EQ(ibv_start_poll(cq_.handle, &attr), ENOENT);
	for (int i = 0; i < 3; i++)
		cq_.kernel.publish(recv_cqe(10 + i, 3));
	ASSERT_EQ(ibv_start_poll(cq_.handle, &attr), 0);
	EXPECT_EQ(cq_.handle->wr_id, 10u);
	EXPECT_EQ(cq_.handle->status, IBV_WC_SUCCESS);
	EXPECT_EQ(ibv_wc_read_opcode(cq_.handle), IBV_WC_RECV);
	EXPECT_EQ(ibv_wc_read_qp_num(cq_.handle), 3u);
	ASSERT_EQ(ibv_next_poll(cq_.handle), 0);
	EXPECT_EQ(cq_.handle->wr_id, 11u);
	EXPECT_EQ(cq_.kernel.room(), 5u); /* what is being read is not overwritten */
	ibv_end_poll(cq_.handle);
	EXPECT_EQ(cq_.kernel.room(), 7u);
	ASSERT_EQ(ibv_start_poll(cq_.handle, &attr), 0);
	EXPECT_EQ(cq_.handle->wr_id, 12u);
	EXPECT_EQ(ibv_next_poll(cq_.handle), ENOENT);
	ibv_end_poll(cq_.handle);
	EXPECT_EQ(cq_.poll(), -1);
	attr.comp_mask = 1;
	EXPECT_EQ(ibv_start_poll(cq_.handle, &attr), EINVAL);
}

TEST_F(CqTest, FlagsThatCanBeAskedFor)
{
	EXPECT_TRUE(herald_cq_ex_supports(0));
	EXPECT_TRUE(herald_cq_ex_supports(uint64_t(IBV_WC_STANDARD_FLAGS) | IBV_WC_EX_WITH_COMPLETION_TIMESTAMP |
					  IBV_WC_EX_WITH_COMPLETION_TIMESTAMP_WALLCLOCK));
	EXPECT_FALSE(herald_cq_ex_supports(IBV_WC_EX_WITH_CVLAN));
	EXPECT_FALSE(herald_cq_ex_supports(IBV_WC_EX_WITH_TM_INFO));
	EXPECT_FALSE(herald_cq_ex_supports(1ull << 40));
}

TEST_F(CqTest, WallClockIsCloseToNow)
{
	fake::UserCq cq(device_, 4, IBV_WC_EX_WITH_COMPLETION_TIMESTAMP_WALLCLOCK);
	herald_cqe cqe = recv_cqe(0);
	ibv_poll_cq_attr attr = {};
	timespec ts;

	clock_gettime(CLOCK_MONOTONIC, &ts);
	cqe.timestamp = uint64_t(ts.tv_sec) * 1000000000u + uint64_t(ts.tv_nsec);
	cq.kernel.publish(cqe);
	ASSERT_EQ(ibv_start_poll(cq.handle, &attr), 0);
	const uint64_t stamp = ibv_wc_read_completion_wallclock_ns(cq.handle);
	ibv_end_poll(cq.handle);
	clock_gettime(CLOCK_REALTIME, &ts);
	const uint64_t now = uint64_t(ts.tv_sec) * 1000000000u + uint64_t(ts.tv_nsec);
	EXPECT_LT(now - stamp, 10000000000u);
}

TEST_F(CqTest, Resize)
{
	herald_ring_info info;

	for (int i = 0; i < 3; i++)
		cq_.kernel.publish(recv_cqe(i));
	EXPECT_EQ(cq_.poll(), 0);
	for (uint32_t depth : {4u, 1024u, 2u}) {
		ASSERT_EQ(herald_cq_resize_begin(cq_.ibv()), 0);
		cq_.kernel.move_to(device_.alloc(info, depth, sizeof(herald_cqe)), depth);
		ASSERT_EQ(herald_cq_resize_end(cq_.ibv(), device_.fd(), &info), 0);
		EXPECT_EQ(cq_.kernel.room(), depth - 2);
	}
	EXPECT_EQ(cq_.poll(), 1);
	EXPECT_EQ(cq_.poll(), 2);
	EXPECT_EQ(cq_.poll(), -1);
}

TEST_F(CqTest, RefusedResizeChangesNothing)
{
	cq_.kernel.publish(recv_cqe(5));
	ASSERT_EQ(herald_cq_resize_begin(cq_.ibv()), 0);
	EXPECT_EQ(herald_cq_resize_end(cq_.ibv(), device_.fd(), nullptr), 0);
	EXPECT_EQ(cq_.poll(), 5);
	EXPECT_EQ(cq_.poll(), -1);
}

TEST_F(CqTest, AResizeThatCannotBeMappedIsTheEnd)
{
	herald_ring_info nonsense = {0, 4096, 3, 64};

	ASSERT_EQ(herald_cq_resize_begin(cq_.ibv()), 0);
	EXPECT_EQ(herald_cq_resize_end(cq_.ibv(), device_.fd(), &nonsense), EPROTO);
	EXPECT_EQ(cq_.poll(), -2 - EIO);
}

TEST_F(CqTest, ThreadsShareAndResizeUnderTraffic)
{
	constexpr uint32_t total = 10000;
	std::atomic<uint32_t> got = 0;
	std::atomic<uint64_t> sum = 0;
	std::mutex kernel_lock;
	auto poller = [&] {
		while (got.load() < total) {
			ibv_wc wc[4];
			const int n = herald_poll_cq(cq_.ibv(), 4, wc);

			ASSERT_GE(n, 0);
			for (int i = 0; i < n; i++)
				sum.fetch_add(wc[i].wr_id);
			got.fetch_add(uint32_t(n));
			if (!n)
				std::this_thread::yield();
		}
	};
	std::thread kernel([&] {
		for (uint32_t i = 0; i < total;) {
			std::lock_guard guard(kernel_lock);
			if (cq_.kernel.room())
				cq_.kernel.publish(recv_cqe(i++));
		}
	});
	std::thread one(poller), two(poller);
	for (uint32_t round = 0; round < 40; round++) {
		const uint32_t depth = 8u << (round % 4);
		herald_ring_info info;

		ASSERT_EQ(herald_cq_resize_begin(cq_.ibv()), 0);
		std::lock_guard guard(kernel_lock);
		if (cq_.kernel.used() > depth) {
			herald_cq_resize_end(cq_.ibv(), device_.fd(), nullptr);
			continue;
		}
		cq_.kernel.move_to(device_.alloc(info, depth, sizeof(herald_cqe)), depth);
		ASSERT_EQ(herald_cq_resize_end(cq_.ibv(), device_.fd(), &info), 0);
	}
	kernel.join();
	one.join();
	two.join();
	EXPECT_EQ(sum.load(), uint64_t(total) * (total - 1) / 2);
}

/*
 * CASES 34: sixteen threads create, arm, use and destroy CQs and QPs at once, some on CQs that all of them share; run
 * under ThreadSanitizer, too.
 */
TEST(Cases34, SixteenThreadsCreateArmAndDestroy)
{
	constexpr uint32_t threads = 16, rounds = 30;
	fake::Device shared_device;
	fake::UserCq shared(shared_device, 64);
	std::vector<std::jthread> all;

	for (uint32_t t = 0; t < threads; t++)
		all.emplace_back([&shared, t] {
			fake::Device device;

			for (uint32_t i = 0; i < rounds; i++) {
				fake::UserCq own(device, 8, IBV_WC_STANDARD_FLAGS, i % 3 == 0);
				fake::UserQp qp(device, i % 2 ? shared : own, own, 1 + t * rounds + i);

				EXPECT_EQ(herald_req_notify_cq(own.ibv(), t % 2), 0);
				EXPECT_EQ(herald_req_notify_cq(shared.ibv(), t % 3 == 0), 0);
				EXPECT_EQ(qp.post(2), -1);
				EXPECT_EQ(qp.post_recv(2), -1);
				/* on the shared CQ nothing completes here: its kernel would be one for all */
				if (i % 2 == 0) {
					EXPECT_FALSE(qp.sq.complete_send(own.kernel, qp.handle->qp_base.qp_num) &&
						     t % 2);
					EXPECT_EQ(own.poll(), 0);
				}
				EXPECT_EQ(shared.poll(), -1);
				EXPECT_TRUE(herald_cq_in_use(own.ibv()));
			}
		});
	all.clear();
	EXPECT_FALSE(herald_cq_in_use(shared.ibv()));
}

/* ------------------------------------------------- what a QP leaves -- */

class QpEndTest : public testing::Test {
protected:
	fake::Device device_;
	fake::UserCq cq_{device_, 16}, other_{device_, 16};
};

TEST_F(QpEndTest, DestroyRemovesItsCompletionsFromBothCqs)
{
	fake::UserQp a(device_, cq_, other_, 1), b(device_, cq_, other_, 2);

	for (int i = 0; i < 3; i++) {
		a.post(1);
		b.post(1);
		a.sq.complete_send(cq_.kernel, 1);
		b.sq.complete_send(cq_.kernel, 2);
		other_.kernel.publish(recv_cqe(100 + i, 1 + i % 2));
	}
	a.destroy();
	for (int64_t id : {0, 1, 2})
		EXPECT_EQ(cq_.poll(), id);
	EXPECT_EQ(cq_.poll(), -1);
	EXPECT_EQ(other_.poll(), 101);
	EXPECT_EQ(other_.poll(), -1);
	EXPECT_EQ(cq_.kernel.room(), 16u);
}

TEST_F(QpEndTest, ResetEmptiesQueuesAndRemovesCompletions)
{
	fake::UserQp a(device_, cq_, cq_, 1);

	EXPECT_EQ(a.post(4), -1);
	EXPECT_EQ(a.post_recv(3), -1);
	a.sq.complete_send(cq_.kernel, 1);
	herald_qp_reset_begin(a.ibv());
	a.sq.reset();
	a.rq.reset();
	herald_qp_reset_end(a.ibv(), true);
	EXPECT_EQ(cq_.poll(), -1);
	int error;
	EXPECT_EQ(a.post(1, 0, -1, &error), 0);
	EXPECT_EQ(error, EINVAL);
	a.set_state(IBV_QPS_RTS);
	EXPECT_EQ(a.post(4), -1);
	EXPECT_EQ(a.post_recv(3), -1);
	EXPECT_EQ(a.sq.pending(), 4u);
	EXPECT_EQ(a.rq.pending(), 3u);
}

TEST_F(QpEndTest, RefusedResetChangesNothing)
{
	fake::UserQp a(device_, cq_, cq_, 1);

	EXPECT_EQ(a.post(2), -1);
	a.sq.complete_send(cq_.kernel, 1);
	herald_qp_reset_begin(a.ibv());
	herald_qp_reset_end(a.ibv(), false);
	EXPECT_EQ(a.post(2), -1);
	EXPECT_EQ(cq_.poll(), 0);
}

TEST_F(QpEndTest, ANeighboursEndFreesNoSlots)
{
	fake::UserQp a(device_, cq_, cq_, 1), b(device_, cq_, cq_, 2);
	int error;

	EXPECT_EQ(b.post(4), -1);
	for (int i = 0; i < 2; i++)
		b.sq.complete_send(cq_.kernel, 2);
	EXPECT_EQ(a.post(4), -1);
	for (int i = 0; i < 4; i++)
		a.sq.complete_send(cq_.kernel, 1);
	a.destroy(); /* the CQ's consumer index passes those of b's completions */
	EXPECT_EQ(b.post(1, 0, -1, &error), 0);
	EXPECT_EQ(error, ENOMEM);
	EXPECT_EQ(cq_.poll(), 0);
	EXPECT_EQ(b.post(1), -1);
	EXPECT_EQ(b.post(1, 0, -1, &error), 0);
	EXPECT_EQ(error, ENOMEM);
}

TEST_F(QpEndTest, CqsKnowWhetherTheyAreInUse)
{
	{
		fake::UserQp a(device_, cq_, other_, 1), b(device_, cq_, cq_, 2);

		EXPECT_TRUE(herald_cq_in_use(other_.ibv()));
		a.destroy();
		EXPECT_FALSE(herald_cq_in_use(other_.ibv()));
		EXPECT_TRUE(herald_cq_in_use(cq_.ibv()));
	}
	EXPECT_FALSE(herald_cq_in_use(cq_.ibv()));
}

TEST_F(QpEndTest, MapRefusesNonsense)
{
	ibv_qp_ex *qp = herald_qp_new(false);
	herald_create_qp_resp resp = {};
	const ibv_qp_cap cap = {4, 4, 2, 2, 0};

	qp->qp_base.context = device_.context();
	qp->qp_base.send_cq = qp->qp_base.recv_cq = cq_.ibv();
	EXPECT_EQ(herald_qp_map(qp, &resp, &cap), EPROTO);
	device_.alloc(resp.sq, 2, 128); /* shallower than what was granted */
	EXPECT_EQ(herald_qp_map(qp, &resp, &cap), EPROTO);
	herald_qp_free(&qp->qp_base);
}

} // namespace
