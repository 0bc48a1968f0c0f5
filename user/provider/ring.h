/* SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB */
/*
 * The process's end of the work queue rings (herald-abi.h): it produces, the
 * kernel consumes.  Both ends keep their own index and only publish it.  Needs
 * no device: tests and benchmarks run it on plain memory.
 *
 * Callers serialise: each ring has one lock, which is its owner's.
 */
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>

#include <rdma/herald-abi.h>

namespace herald {

/* --------------------------------------------------- shared words -- */

template <class T> inline T load_acquire(T &word) noexcept
{
	return std::atomic_ref<T>(word).load(std::memory_order_acquire);
}

template <class T> inline T load_relaxed(T &word) noexcept
{
	return std::atomic_ref<T>(word).load(std::memory_order_relaxed);
}

template <class T> inline void store_release(T &word, T value) noexcept
{
	std::atomic_ref<T>(word).store(value, std::memory_order_release);
}

#if defined(__SANITIZE_THREAD__)
#define HERALD_TSAN 1
#elif defined(__has_feature)
#if __has_feature(thread_sanitizer)
#define HERALD_TSAN 1
#endif
#endif

/* Store-release, then a full barrier: what is read afterwards is no older than the store. */
template <class T> inline void store_then_fence(T &word, T value) noexcept
{
#if defined(HERALD_TSAN) || defined(__x86_64__)
	/* one instruction is both; and ThreadSanitizer knows no fences */
	(void)std::atomic_ref<T>(word).exchange(value, std::memory_order_seq_cst);
#else
	std::atomic_ref<T>(word).store(value, std::memory_order_release);
	std::atomic_thread_fence(std::memory_order_seq_cst);
#endif
}

/* ------------------------------------------------------------ layout -- */

/* Is what the kernel says of a ring consistent with itself, and large enough for what is put into it? */
inline bool ring_info_ok(const herald_ring_info &info, size_t data_offset, size_t min_stride,
			 uint32_t min_depth) noexcept
{
	const bool power_of_two = info.depth && !(info.depth & (info.depth - 1));

	return power_of_two && info.depth >= min_depth && info.stride >= min_stride && info.stride % 8 == 0 &&
	       info.mmap_length >= data_offset + static_cast<uint64_t>(info.depth) * info.stride;
}

/* What send and receive rings share: the slots, and the private producer index. */
class WorkRing {
public:
	/* @limit: how many WRs may be outstanding; the ring may be deeper */
	void attach(void *memory, uint32_t depth, uint32_t stride, uint32_t limit) noexcept
	{
		ctl_ = static_cast<herald_ring_ctl *>(memory);
		slots_ = static_cast<std::byte *>(memory) + HERALD_RING_DATA_OFFSET;
		mask_ = depth - 1;
		stride_ = stride;
		limit_ = limit;
		head_ = 0;
	}

	bool attached() const noexcept { return ctl_ != nullptr; }
	uint32_t head() const noexcept { return head_; }
	void *next_slot() const noexcept { return slot(head_); }
	void push() noexcept { head_++; }

	/*
	 * Must the kernel be asked before publish()?  The word is in the line that
	 * publish() writes to.
	 */
	bool asks() const noexcept { return load_relaxed(ctl_->ask); }

	/* Forget the slots that were filled since head was @head and not published. */
	void rewind(uint32_t head) noexcept { head_ = head; }

protected:
	void *slot(uint32_t index) const noexcept { return slots_ + static_cast<size_t>(index & mask_) * stride_; }

	herald_ring_ctl *ctl_ = nullptr;
	std::byte *slots_ = nullptr;
	uint32_t mask_ = 0;
	uint32_t stride_ = 0;
	uint32_t limit_ = 0;
	uint32_t head_ = 0;
};

/*
 * A send queue.  A slot is in use until the completion that covers it was
 * polled: its own, or that of a later WR if it is unsignaled.
 */
class SendRing : public WorkRing {
public:
	/* Room for one more?  @cq: the send CQ, a CqRing. */
	template <class Cq> bool has_room(const Cq &cq) noexcept
	{
		if (head_ - tail_ < limit_) [[likely]]
			return true;
		if (attached())
			reclaim(cq);
		return head_ - tail_ < limit_;
	}

	void publish() noexcept { store_release(ctl_->producer, head_); }

	/* The kernel has emptied the ring. */
	void reset() noexcept { head_ = tail_ = scanned_ = 0; }

	/* The completion of WQE @index has moved to @cqe_index in the send CQ.  Any context. */
	void completion_moved(uint32_t index, uint32_t cqe_index) noexcept
	{
		store_release(static_cast<herald_send_wqe *>(slot(index))->cqe_index, cqe_index);
	}

private:
	template <class Cq> void reclaim(const Cq &cq) noexcept
	{
		const uint32_t completed = load_acquire(ctl_->consumer);

		for (; scanned_ != completed && scanned_ != head_; scanned_++) {
			auto *wqe = static_cast<herald_send_wqe *>(slot(scanned_));

			if (!load_relaxed(wqe->cqe_made))
				continue;
			if (!cq.polled(wqe->cqe_index))
				break; /* and so are those behind it */
			tail_ = scanned_ + 1;
		}
	}

	uint32_t tail_ = 0;    /* slots before it are free */
	uint32_t scanned_ = 0; /* slots from tail_ to here have completed without a CQE */
};

/* A receive queue, of a QP or shared.  A slot is free once the kernel has taken it. */
class RecvRing : public WorkRing {
public:
	bool has_room() noexcept
	{
		if (head_ - taken_ < limit_) [[likely]]
			return true;
		if (!attached())
			return false;
		taken_ = load_acquire(ctl_->consumer);
		return head_ - taken_ < limit_;
	}

	void publish() noexcept { store_release(ctl_->producer, head_); }

	/* Publish; true if the kernel wants to be told (HERALD_RING_NEED_DOORBELL). */
	bool publish_and_check() noexcept
	{
		store_then_fence(ctl_->producer, head_);
		return std::atomic_ref(ctl_->flags).load(std::memory_order_seq_cst) & HERALD_RING_NEED_DOORBELL;
	}

	/* The kernel has emptied the ring. */
	void reset() noexcept { head_ = taken_ = 0; }

private:
	uint32_t taken_ = 0; /* the kernel's index when last read */
};

} // namespace herald
