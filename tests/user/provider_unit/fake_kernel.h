/* SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB */
/*
 * The other end of the rings, as herald-abi.h describes it: memory in a memfd
 * that the provider maps like the device's, and a kernel that publishes,
 * decides about arms and completes WQEs when a test tells it to.
 */
#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <cstdint>
#include <cstring>
#include <vector>

#include <sys/mman.h>
#include <unistd.h>

#include <infiniband/verbs.h>
#include <rdma/herald-abi.h>
#include <rdma/herald-ioctl.h>

namespace fake {

inline constexpr size_t page = 4096;

/* What ioctl() got since the last call, for one file: the queues named by each doorbell.  See fake_ioctl.cc. */
std::vector<uint32_t> take_doorbells(int fd);
/* The same: the arms that were announced. */
std::vector<herald_arming> take_announced(int fd);
/* The same: the posts that were announced, and what those that follow are to fail with. */
std::vector<herald_posting> take_posts(int fd);
void refuse_posts(int fd, int error);

/* Stands for the uverbs file: mmap() gives rings, ioctl() is a doorbell. */
class Device {
public:
	Device() : fd_(memfd_create("herald", MFD_CLOEXEC))
	{
		EXPECT_GE(fd_, 0);
		context_.cmd_fd = fd_;
	}
	Device(const Device &) = delete;
	Device &operator=(const Device &) = delete;
	~Device()
	{
		for (auto [base, length] : mapped_)
			munmap(base, length);
		take_doorbells(fd_);
		take_announced(fd_);
		take_posts(fd_);
		refuse_posts(fd_, 0);
		close(fd_);
	}

	ibv_context *context() { return &context_; }
	int fd() const { return fd_; }

	/* Zeroed memory for a ring; its description, and the kernel's address of it. */
	void *alloc(herald_ring_info &info, uint32_t depth, uint32_t stride, size_t header = 128)
	{
		const size_t length = (header + size_t(depth) * stride + page - 1) / page * page;
		const off_t offset = lseek(fd_, 0, SEEK_END);

		EXPECT_EQ(ftruncate(fd_, offset + off_t(length)), 0);
		void *base = mmap(nullptr, length, PROT_READ | PROT_WRITE, MAP_SHARED, fd_, offset);
		EXPECT_NE(base, MAP_FAILED);
		mapped_.emplace_back(base, length);
		info = {uint64_t(offset), length, depth, stride};
		return base;
	}

	/* The queues (enum herald_doorbell_queues) of the doorbells since the last call. */
	std::vector<uint32_t> doorbells() { return take_doorbells(fd_); }

private:
	int fd_;
	ibv_context context_ = {};
	std::vector<std::pair<void *, size_t>> mapped_;
};

/* The kernel's end of a CQ.  One thread publishes. */
class Cq {
public:
	void attach(void *base, uint32_t depth)
	{
		ctl_ = static_cast<herald_cq_ctl *>(base);
		cqes_ = reinterpret_cast<herald_cqe *>(static_cast<char *>(base) + HERALD_CQ_DATA_OFFSET);
		depth_ = depth;
	}

	/* As a resize does it: what is unpolled keeps its index; so does the armed state. */
	void move_to(void *base, uint32_t depth)
	{
		Cq to;

		to.attach(base, depth);
		for (uint32_t i = load(ctl_->consumer); i != producer_; i++)
			to.cqes_[i & (depth - 1)] = cqes_[i & (depth_ - 1)];
		store(to.ctl_->consumer, load(ctl_->consumer));
		store(to.ctl_->arm_fired, load(ctl_->arm_fired));
		std::atomic_ref(to.ctl_->arm).store(std::atomic_ref(ctl_->arm).load());
		store(to.ctl_->producer, producer_);
		attach(base, depth);
	}

	/* True if it raised an event. */
	bool publish(const herald_cqe &cqe, bool solicited = false)
	{
		const uint32_t index = producer_;

		if (index - load(ctl_->consumer) >= depth_) {
			store(ctl_->flags, uint32_t(HERALD_CQ_DEAD));
			return false;
		}
		cqes_[index & (depth_ - 1)] = cqe;
		producer_++;
		std::atomic_ref(ctl_->producer).exchange(producer_, std::memory_order_seq_cst);
		return consume_arm(index, solicited || cqe.status != IBV_WC_SUCCESS);
	}

	uint32_t producer() const { return producer_; }
	uint32_t used() { return producer_ - load(ctl_->consumer); }
	uint32_t room() { return depth_ - (producer_ - load(ctl_->consumer)); }
	herald_cq_ctl &ctl() { return *ctl_; }

private:
	static uint32_t load(uint32_t &word) { return std::atomic_ref(word).load(std::memory_order_acquire); }
	static void store(uint32_t &word, uint32_t value)
	{
		std::atomic_ref(word).store(value, std::memory_order_release);
	}

	bool consume_arm(uint32_t index, bool solicited)
	{
		const uint64_t arm = std::atomic_ref(ctl_->arm).load(std::memory_order_seq_cst);
		const uint32_t before = (HERALD_ARM_SEQ(arm) - 1) & HERALD_ARM_SEQ_MASK;
		const uint32_t prev = fired_ == before ? 0 : HERALD_ARM_PREV(arm);
		const int32_t ahead = int32_t(index - HERALD_ARM_SEEN(arm));
		const uint32_t kind = ahead < 0 ? prev : std::max<uint32_t>(prev, HERALD_ARM_KIND(arm));

		if (HERALD_ARM_SEQ(arm) == fired_ || ahead < -1 || !kind ||
		    (kind == HERALD_ARM_SOLICITED && !solicited))
			return false;
		fired_ = ahead < 0 ? before : HERALD_ARM_SEQ(arm);
		store(ctl_->arm_fired, fired_);
		return true;
	}

	herald_cq_ctl *ctl_ = nullptr;
	herald_cqe *cqes_ = nullptr;
	uint32_t depth_ = 0;
	uint32_t producer_ = 0;
	uint32_t fired_ = 0;
};

/* The kernel's end of a work queue. */
class Ring {
public:
	void attach(void *base, uint32_t depth, uint32_t stride)
	{
		ctl_ = static_cast<herald_ring_ctl *>(base);
		slots_ = static_cast<char *>(base) + HERALD_RING_DATA_OFFSET;
		depth_ = depth;
		stride_ = stride;
	}

	uint32_t pending() { return std::atomic_ref(ctl_->producer).load(std::memory_order_acquire) - head_; }
	void *slot(uint32_t index) { return slots_ + size_t(index & (depth_ - 1)) * stride_; }
	void set_ask(uint32_t ask) { std::atomic_ref(ctl_->ask).store(ask); }
	void set_flags(uint32_t flags) { std::atomic_ref(ctl_->flags).store(flags); }

	/* Take the next receive WQE; its slot is free at once. */
	const herald_recv_wqe &take_recv()
	{
		auto *wqe = static_cast<herald_recv_wqe *>(slot(head_++));

		std::atomic_ref(ctl_->consumer).store(head_, std::memory_order_release);
		return *wqe;
	}

	/* Complete the next send WQE, with a CQE in @cq if it is signaled or fails.  True if that raised an event. */
	bool complete_send(Cq &cq, uint32_t qpn, ibv_wc_status status = IBV_WC_SUCCESS)
	{
		auto *wqe = static_cast<herald_send_wqe *>(slot(head_));
		const bool signaled = (wqe->flags & HERALD_WR_SIGNALED) || status != IBV_WC_SUCCESS;
		herald_cqe cqe = {};

		cqe.wr_id = wqe->wr_id;
		cqe.qp_num = qpn;
		cqe.status = status;
		cqe.queue = HERALD_CQE_SQ;
		cqe.wqe_index = head_;
		if (signaled) {
			std::atomic_ref(wqe->cqe_index).store(cq.producer(), std::memory_order_relaxed);
			std::atomic_ref(wqe->cqe_made).store(1, std::memory_order_relaxed);
		}
		head_++;
		std::atomic_ref(ctl_->consumer).store(head_, std::memory_order_release);
		return signaled && cq.publish(cqe);
	}

	void reset()
	{
		memset(ctl_, 0, sizeof(*ctl_));
		head_ = 0;
	}

private:
	herald_ring_ctl *ctl_ = nullptr;
	char *slots_ = nullptr;
	uint32_t depth_ = 0;
	uint32_t stride_ = 0;
	uint32_t head_ = 0;
};

inline herald_cqe recv_cqe(uint64_t wr_id, uint32_t qpn = 1, ibv_wc_status status = IBV_WC_SUCCESS)
{
	herald_cqe cqe = {};

	cqe.wr_id = wr_id;
	cqe.qp_num = qpn;
	cqe.status = status;
	cqe.opcode = IBV_WC_RECV;
	cqe.queue = HERALD_CQE_RQ;
	return cqe;
}

} // namespace fake
