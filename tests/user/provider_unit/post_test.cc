/* SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB */
/* Posting by the handles: what is refused, what bad_wr says, and which doorbells ring. */
#include <atomic>
#include <chrono>
#include <thread>

#include "objects_fixture.h"

namespace {

using Doorbells = std::vector<uint32_t>;
const Doorbells none, send_bell = {HERALD_DOORBELL_SEND}, recv_bell = {HERALD_DOORBELL_RECV};

class PostTest : public testing::Test {
protected:
	const herald_send_wqe &wqe(uint32_t index) { return *static_cast<herald_send_wqe *>(qp_.sq.slot(index)); }
	const herald_sge *data(uint32_t index) { return reinterpret_cast<const herald_sge *>(&wqe(index) + 1); }

	fake::Device device_;
	fake::UserCq cq_{device_, 16};
	fake::UserQp qp_{device_, cq_, cq_, 1};
	int error_ = -1;
};

/* ----------------------------------------------------- ibv_post_send -- */

TEST_F(PostTest, OneDoorbellPerCall)
{
	EXPECT_EQ(qp_.post(3), -1);
	EXPECT_EQ(device_.doorbells(), send_bell);
	EXPECT_EQ(qp_.sq.pending(), 3u);
}

TEST_F(PostTest, WhatPrecedesTheBadOneIsPosted)
{
	EXPECT_EQ(qp_.post(4, IBV_SEND_SIGNALED, 2, &error_), 2);
	EXPECT_EQ(error_, EINVAL);
	EXPECT_EQ(qp_.sq.pending(), 2u);
	EXPECT_EQ(device_.doorbells(), send_bell);
	EXPECT_EQ(qp_.post(1, IBV_SEND_SIGNALED, 0, &error_), 0);
	EXPECT_EQ(qp_.sq.pending(), 2u);
	EXPECT_EQ(device_.doorbells(), none);
}

TEST_F(PostTest, FullIsEnomem)
{
	EXPECT_EQ(qp_.post(6, IBV_SEND_SIGNALED, -1, &error_), 4);
	EXPECT_EQ(error_, ENOMEM);
	EXPECT_EQ(qp_.sq.pending(), 4u);
}

TEST_F(PostTest, StatesThatTakeNoSends)
{
	for (auto state : {IBV_QPS_RESET, IBV_QPS_INIT, IBV_QPS_RTR}) {
		qp_.set_state(state);
		EXPECT_EQ(qp_.post(2, 0, -1, &error_), 0);
		EXPECT_EQ(error_, EINVAL);
	}
	EXPECT_EQ(device_.doorbells(), none);
	for (auto state : {IBV_QPS_RTS, IBV_QPS_SQD, IBV_QPS_SQE, IBV_QPS_ERR}) {
		qp_.set_state(state);
		EXPECT_EQ(qp_.post(1), -1);
	}
	EXPECT_EQ(qp_.sq.pending(), 4u);
}

TEST_F(PostTest, ADeviceThatIsGone)
{
	device_.context()->cmd_fd = -1;
	EXPECT_EQ(qp_.post(2, 0, -1, &error_), 0);
	EXPECT_EQ(error_, EBADF);
}

TEST_F(PostTest, EmptyListIsNothing)
{
	ibv_send_wr *bad = nullptr;

	EXPECT_EQ(herald_post_send(qp_.ibv(), nullptr, &bad), 0);
	EXPECT_EQ(device_.doorbells(), none);
}

TEST_F(PostTest, BindMovesTheWindowsKey)
{
	ibv_mw mw = {};
	ibv_mw_bind bind = {};

	mw.rkey = 0x1ff;
	bind.wr_id = 8;
	bind.send_flags = IBV_SEND_SIGNALED;
	EXPECT_EQ(herald_bind_mw(qp_.ibv(), &mw, &bind), 0);
	EXPECT_EQ(mw.rkey, 0x100u);
	EXPECT_EQ(wqe(0).opcode, HERALD_WR_BIND_MW);
	EXPECT_EQ(wqe(0).bind.mw_rkey, 0x1ffu);
	EXPECT_EQ(wqe(0).bind.new_rkey, 0x100u);
	qp_.set_state(IBV_QPS_INIT);
	EXPECT_EQ(herald_bind_mw(qp_.ibv(), &mw, &bind), EINVAL);
	EXPECT_EQ(mw.rkey, 0x100u);
}

/* ------------------------------------------------------- ibv_wr_start -- */

TEST_F(PostTest, BuildsAndRingsOnce)
{
	const ibv_sge list[] = {{1, 2, 3}, {4, 5, 6}};
	char text[] = "abc";
	ibv_qp_ex *q = qp_.handle;

	ibv_wr_start(q);
	q->wr_id = 1;
	q->wr_flags = IBV_SEND_SIGNALED;
	ibv_wr_rdma_write_imm(q, 7, 0x100, 9);
	ibv_wr_set_sge_list(q, 2, list);
	q->wr_id = 2;
	q->wr_flags = 0;
	ibv_wr_send(q);
	ibv_wr_set_inline_data(q, text, 3);
	EXPECT_EQ(qp_.sq.pending(), 0u);
	EXPECT_EQ(ibv_wr_complete(q), 0);
	EXPECT_EQ(device_.doorbells(), send_bell);
	ASSERT_EQ(qp_.sq.pending(), 2u);
	EXPECT_EQ(wqe(0).wr_id, 1u);
	EXPECT_EQ(wqe(0).flags, HERALD_WR_SIGNALED);
	EXPECT_EQ(wqe(0).imm_or_rkey, 9u);
	EXPECT_EQ(wqe(0).rdma.rkey, 7u);
	EXPECT_EQ(wqe(0).num_sge, 2);
	EXPECT_EQ(data(0)[1].length, 5u);
	EXPECT_EQ(wqe(1).wr_id, 2u);
	EXPECT_EQ(wqe(1).flags, HERALD_WR_INLINE);
	EXPECT_EQ(wqe(1).inline_len, 3u);
	EXPECT_EQ(memcmp(data(1), "abc", 3), 0);
}

TEST_F(PostTest, AllOperations)
{
	fake::UserQp big(device_, cq_, cq_, 3, IBV_QPT_RC, {8, 1, 1, 1, 0});
	ibv_qp_ex *q = big.handle;
	const uint64_t value = 0x0102030405060708;
	ibv_mw mw = {};
	const ibv_mw_bind_info info = {nullptr, 1, 2, 3};
	auto at = [&](uint32_t i) -> herald_send_wqe & { return *static_cast<herald_send_wqe *>(big.sq.slot(i)); };

	mw.rkey = 0x10;
	ibv_wr_start(q);
	ibv_wr_atomic_cmp_swp(q, 1, 2, 3, 4);
	ibv_wr_atomic_fetch_add(q, 1, 2, 5);
	ibv_wr_atomic_write(q, 6, 8, &value);
	ibv_wr_flush(q, 9, 10, 11, IBV_FLUSH_PERSISTENT, IBV_FLUSH_MR);
	ibv_wr_local_inv(q, 12);
	ibv_wr_bind_mw(q, &mw, 0x11, &info);
	ibv_wr_send_inv(q, 13);
	ibv_wr_rdma_read(q, 14, 15);
	ASSERT_EQ(ibv_wr_complete(q), 0);
	EXPECT_EQ(at(0).atomic.swap, 4u);
	EXPECT_EQ(at(1).atomic.compare_add, 5u);
	EXPECT_EQ(at(2).inline_len, 8u);
	EXPECT_EQ(memcmp(&at(2) + 1, &value, 8), 0);
	EXPECT_EQ(at(3).flush.length, 11u);
	EXPECT_EQ(at(3).flush.placement, uint32_t(IBV_FLUSH_PERSISTENT));
	EXPECT_EQ(at(3).flush.selectivity, uint32_t(IBV_FLUSH_MR));
	EXPECT_EQ(at(4).imm_or_rkey, 12u);
	EXPECT_EQ(at(5).bind.new_rkey, 0x11u);
	EXPECT_EQ(at(6).imm_or_rkey, 13u);
	EXPECT_EQ(at(7).rdma.remote_addr, 15u);
}

TEST_F(PostTest, AnErrorUndoesAllOfIt)
{
	ibv_sge list[3] = {};
	ibv_qp_ex *q = qp_.handle;
	auto outcome = [&](auto &&build) {
		ibv_wr_start(q);
		q->wr_flags = 0;
		ibv_wr_send(q);
		build();
		ibv_wr_send(q); /* after an error builders and setters do nothing */
		ibv_wr_set_sge(q, 0, 0, 0);
		return ibv_wr_complete(q);
	};
	static char bytes[64];

	EXPECT_EQ(outcome([&] { ibv_wr_set_sge_list(q, 3, list); }), EINVAL);
	EXPECT_EQ(outcome([&] { ibv_wr_set_inline_data(q, bytes, 33); }), EINVAL);
	EXPECT_EQ(outcome([&] {
			  ibv_wr_rdma_read(q, 1, 1);
			  ibv_wr_set_inline_data(q, bytes, 1);
		  }),
		  EINVAL);
	EXPECT_EQ(outcome([&] { ibv_wr_flush(q, 1, 1, size_t(1) << 32, 0, 0); }), EINVAL);
	EXPECT_EQ(outcome([&] {
			  q->wr_flags = IBV_SEND_IP_CSUM;
			  ibv_wr_send(q);
		  }),
		  EINVAL);
	EXPECT_EQ(outcome([&] {
			  for (int i = 0; i < 4; i++)
				  ibv_wr_send(q);
		  }),
		  ENOMEM);
	qp_.set_state(IBV_QPS_RTR);
	EXPECT_EQ(outcome([] {}), EINVAL);
	EXPECT_EQ(qp_.sq.pending(), 0u);
	EXPECT_EQ(device_.doorbells(), none);
	qp_.set_state(IBV_QPS_RTS);
	EXPECT_EQ(outcome([] {}), 0); /* and nothing is left of it */
	EXPECT_EQ(qp_.sq.pending(), 2u);
}

TEST_F(PostTest, AbortLeavesNothing)
{
	ibv_wr_start(qp_.handle);
	ibv_wr_send(qp_.handle);
	ibv_wr_abort(qp_.handle);
	ibv_wr_start(qp_.handle);
	EXPECT_EQ(ibv_wr_complete(qp_.handle), 0);
	EXPECT_EQ(qp_.sq.pending(), 0u);
	EXPECT_EQ(device_.doorbells(), none);
	EXPECT_EQ(qp_.post(4), -1);
}

TEST_F(PostTest, OperationsByType)
{
	const uint64_t sends = IBV_QP_EX_WITH_SEND | IBV_QP_EX_WITH_SEND_WITH_IMM;

	EXPECT_EQ(herald_qp_ex_ops(IBV_QPT_UD), sends);
	EXPECT_EQ(herald_qp_ex_ops(IBV_QPT_UC), sends | IBV_QP_EX_WITH_RDMA_WRITE | IBV_QP_EX_WITH_RDMA_WRITE_WITH_IMM |
							IBV_QP_EX_WITH_LOCAL_INV | IBV_QP_EX_WITH_BIND_MW);
	EXPECT_EQ(herald_qp_ex_ops(IBV_QPT_RC),
		  uint64_t((IBV_QP_EX_WITH_ATOMIC_WRITE << 1) - 1) & ~uint64_t(IBV_QP_EX_WITH_TSO));
	EXPECT_EQ(herald_qp_ex_ops(IBV_QPT_RAW_PACKET), 0u);
}

TEST_F(PostTest, DatagramAddress)
{
	fake::UserQp ud(device_, cq_, cq_, 5, IBV_QPT_UD);
	herald_uah ah = {};

	ah.number = 3;
	ibv_wr_start(ud.handle);
	ibv_wr_send(ud.handle);
	ibv_wr_set_ud_addr(ud.handle, &ah.ibv, 8, 9);
	EXPECT_EQ(ibv_wr_complete(ud.handle), 0);
	EXPECT_EQ(static_cast<herald_send_wqe *>(ud.sq.slot(0))->ud.ah, 3u);
	ibv_wr_start(ud.handle);
	ibv_wr_send(ud.handle);
	ibv_wr_set_ud_addr(ud.handle, nullptr, 8, 9);
	EXPECT_EQ(ibv_wr_complete(ud.handle), EINVAL);
}

/* Posting while a completion is being read must find the slot that it freed. */
TEST_F(PostTest, SlotIsFreeWhileItsCompletionIsRead)
{
	ibv_poll_cq_attr attr = {};

	EXPECT_EQ(qp_.post(4), -1);
	for (int i = 0; i < 4; i++)
		qp_.sq.complete_send(cq_.kernel, 1);
	ASSERT_EQ(ibv_start_poll(cq_.handle, &attr), 0);
	EXPECT_EQ(qp_.post(1), -1);
	EXPECT_EQ(qp_.post(1, 0, -1, &error_), 0);
	EXPECT_EQ(error_, ENOMEM);
	ASSERT_EQ(ibv_next_poll(cq_.handle), 0);
	EXPECT_EQ(qp_.post(1), -1);
	ibv_end_poll(cq_.handle);
}

/* ----------------------------------------------------- ibv_post_recv -- */

TEST_F(PostTest, RecvRingsNoDoorbell)
{
	EXPECT_EQ(qp_.post_recv(3), -1);
	EXPECT_EQ(device_.doorbells(), none);
	EXPECT_EQ(qp_.rq.pending(), 3u);
	EXPECT_EQ(qp_.post_recv(2, 0, &error_), 0);
	EXPECT_EQ(error_, ENOMEM);
	EXPECT_EQ(qp_.rq.take_recv().wr_id, 0u);
	EXPECT_EQ(qp_.post_recv(2, 0, &error_), 1);
	EXPECT_EQ(error_, ENOMEM);
}

TEST_F(PostTest, RecvRingsWhenItIsWanted)
{
	qp_.rq.set_flags(HERALD_RING_NEED_DOORBELL);
	EXPECT_EQ(qp_.post_recv(2), -1);
	EXPECT_EQ(device_.doorbells(), recv_bell);
}

TEST_F(PostTest, RecvIsRefused)
{
	EXPECT_EQ(qp_.post_recv(1, 3, &error_), 0);
	EXPECT_EQ(error_, EINVAL);
	qp_.set_state(IBV_QPS_RESET);
	EXPECT_EQ(qp_.post_recv(1, 0, &error_), 0);
	EXPECT_EQ(error_, EINVAL);
	for (auto state : {IBV_QPS_INIT, IBV_QPS_RTR, IBV_QPS_ERR}) {
		qp_.set_state(state);
		EXPECT_EQ(qp_.post_recv(1), -1);
	}
}

/* While the ring says so, and only then, the kernel is asked before anything is posted; what it refuses leaves no trace. */
TEST_F(PostTest, AsksIfTheRingSaysSo)
{
	const int fd = device_.fd();
	auto post_ex = [&] {
		ibv_wr_start(qp_.handle);
		ibv_wr_send(qp_.handle);
		return ibv_wr_complete(qp_.handle);
	};
	auto expect_asked = [&](size_t times, uint32_t queue) {
		const auto posts = fake::take_posts(fd);

		ASSERT_EQ(posts.size(), times);
		for (const herald_posting &post : posts) {
			EXPECT_EQ(post.number, 1u);
			EXPECT_EQ(post.queue, queue);
		}
	};

	EXPECT_EQ(qp_.post(1), -1);
	EXPECT_EQ(qp_.post_recv(1), -1);
	EXPECT_TRUE(fake::take_posts(fd).empty());
	qp_.sq.set_ask(1);
	qp_.rq.set_ask(1);
	EXPECT_EQ(qp_.post(1), -1);
	EXPECT_EQ(post_ex(), 0);
	EXPECT_EQ(qp_.sq.pending(), 3u);
	expect_asked(2, HERALD_POSTING_SEND);
	EXPECT_EQ(qp_.post_recv(1), -1);
	EXPECT_EQ(qp_.rq.pending(), 2u);
	expect_asked(1, HERALD_POSTING_RECV);

	device_.doorbells();
	fake::refuse_posts(fd, EBUSY);
	EXPECT_EQ(qp_.post(1, IBV_SEND_SIGNALED, -1, &error_), 0);
	EXPECT_EQ(error_, EBUSY);
	EXPECT_EQ(post_ex(), EBUSY);
	EXPECT_EQ(qp_.post_recv(1, 0, &error_), 0);
	EXPECT_EQ(error_, EBUSY);
	EXPECT_EQ(qp_.sq.pending(), 3u);
	EXPECT_EQ(qp_.rq.pending(), 2u);
	EXPECT_EQ(device_.doorbells(), none);
	fake::refuse_posts(fd, 0);
	EXPECT_EQ(qp_.post(1), -1);
	EXPECT_EQ(qp_.sq.pending(), 4u);
}

TEST_F(PostTest, Srq)
{
	ibv_srq *srq = herald_srq_new(false);
	herald_ring_info info;
	fake::Ring kernel;
	ibv_recv_wr first = {}, second = {}, *bad = nullptr;

	kernel.attach(device_.alloc(info, 4, 32), 4, 32);
	ASSERT_EQ(herald_srq_map(srq, device_.fd(), &info, 3, 1), 0);
	kernel.set_flags(HERALD_RING_NEED_DOORBELL); /* has no meaning here */
	first.next = &second;
	EXPECT_EQ(herald_post_srq_recv(srq, &first, &bad), 0);
	EXPECT_EQ(herald_post_srq_recv(srq, &first, &bad), ENOMEM);
	EXPECT_EQ(bad, &second);
	EXPECT_EQ(kernel.pending(), 3u);
	kernel.take_recv();
	second.num_sge = 2;
	EXPECT_EQ(herald_post_srq_recv(srq, &second, &bad), EINVAL);
	EXPECT_EQ(device_.doorbells(), none);
	herald_srq_free(srq);
}

/* Posters, a kernel that completes, and a poller: every WR comes back once, in order. */
TEST_F(PostTest, ThreadsPostAndPoll)
{
	constexpr uint64_t total = 4000;
	std::atomic<uint64_t> posted = 0;

	auto poster = [&](std::stop_token stop) {
		while (!stop.stop_requested()) {
			const uint64_t id = posted.fetch_add(1);
			ibv_send_wr wr = {}, *bad;

			if (id >= total)
				return;
			wr.wr_id = id;
			wr.opcode = IBV_WR_SEND;
			wr.send_flags = IBV_SEND_SIGNALED;
			while (int error = herald_post_send(qp_.ibv(), &wr, &bad)) {
				ASSERT_EQ(error, ENOMEM);
				if (stop.stop_requested())
					return;
				std::this_thread::yield();
			}
		}
	};
	std::jthread one(poster), two(poster), kernel([&](std::stop_token stop) {
		while (!stop.stop_requested()) {
			while (qp_.sq.pending())
				qp_.sq.complete_send(cq_.kernel, 1);
			std::this_thread::yield();
		}
	});
	const auto deadline = std::chrono::steady_clock::now() + std::chrono::seconds(30);
	std::vector<bool> seen(total);

	for (uint64_t n = 0; n < total;) {
		ibv_wc wc[8];
		const int got = herald_poll_cq(cq_.ibv(), 8, wc);

		ASSERT_GE(got, 0);
		for (int i = 0; i < got; i++) {
			ASSERT_FALSE(seen[wc[i].wr_id]);
			seen[wc[i].wr_id] = true;
		}
		ASSERT_LT(std::chrono::steady_clock::now(), deadline) << n << " came back";
		n += uint64_t(got);
		if (!got)
			std::this_thread::yield();
	}
	one.join();
	two.join(); /* their last doorbells may be on the way */
	EXPECT_EQ(cq_.poll(), -1);
}

} // namespace
