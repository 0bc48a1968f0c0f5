/* SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB */
/*
 * The process's end of a CQ (herald-abi.h): the kernel produces, the process
 * consumes and arms.  Needs no device: tests and benchmarks run it on plain
 * memory.
 *
 * Callers serialise with the CQ's lock all but looks_empty(), dead() and
 * polled().
 */
#pragma once

#include <algorithm>
#include <atomic>
#include <cstdint>

#include "arm.h"
#include "ring.h"

namespace herald {

class CqRing {
public:
	/* The ring's memory; after a resize, too: indices go on where they were. */
	void attach(void *memory, uint32_t depth) noexcept
	{
		auto *ctl = static_cast<herald_cq_ctl *>(memory);

		cqes_ = reinterpret_cast<herald_cqe *>(static_cast<char *>(memory) + HERALD_CQ_DATA_OFFSET);
		depth_.store(depth, std::memory_order_relaxed);
		producer_ = consumer();
		ctl_.store(ctl, std::memory_order_release);
		publish();
	}

	/* ------------------------------------------------------ polling -- */

	/* Nothing to poll right now.  Any context. */
	bool looks_empty() const noexcept { return consumer() == load_acquire(ctl()->producer); }

	/* Overrun, or the device has gone; and every good completion was polled.  Any context. */
	bool dead() const noexcept
	{
		herald_cq_ctl *ctl = this->ctl();

		/* flags first: completions were published before the queue died */
		return (load_acquire(ctl->flags) & HERALD_CQ_DEAD) && consumer() == load_acquire(ctl->producer);
	}

	/* Let polling fail from now on. */
	void kill() noexcept { store_release(ctl()->flags, static_cast<__u32>(HERALD_CQ_DEAD)); }

	/* The next completion, or nullptr.  It stays where it is until publish(). */
	const herald_cqe *take() noexcept
	{
		const uint32_t index = consumer();

		if (index == producer_) {
			producer_ = load_acquire(ctl()->producer);
			if (index == producer_)
				return nullptr;
		}
		consumer_.store(index + 1, std::memory_order_release);
		return &cqes_[index & (depth() - 1)];
	}

	/* Take at most @limit completions: @each(cqe, i) for each of them, then their room is free.  How many. */
	template <class Each> uint32_t consume(uint32_t limit, Each &&each) noexcept
	{
		const uint32_t index = consumer();
		const uint32_t mask = depth() - 1;

		if (producer_ - index < limit)
			producer_ = load_acquire(ctl()->producer);

		const uint32_t count = std::min(limit, producer_ - index);

		for (uint32_t i = 0; i < count; i++)
			each(cqes_[(index + i) & mask], i);
		if (count) {
			consumer_.store(index + count, std::memory_order_release);
			publish();
		}
		return count;
	}

	/* Let the kernel have the room of what was taken. */
	void publish() noexcept { store_release(ctl()->consumer, consumer()); }

	/*
	 * Has the application got the completion whose index the kernel wrote to
	 * @cqe_index?  The difference wraps with the index; only one that is less
	 * than the depth ahead of the consumer can still be in the queue.  purge()
	 * may be moving it.  Any context.
	 */
	bool polled(__u32 &cqe_index) const noexcept
	{
		for (;;) {
			const uint32_t index = load_acquire(cqe_index);
			const uint32_t taken = consumer_.load(std::memory_order_acquire);

			if (load_relaxed(cqe_index) == index)
				return index - taken >= depth();
		}
	}

	/* ------------------------------------------------------- arming -- */

	/* Ask for an event. */
	void arm(bool solicited_only) noexcept
	{
		herald_cq_ctl *ctl = this->ctl();
		const uint32_t seen = load_acquire(ctl->producer);
		const uint32_t fired = load_acquire(ctl->arm_fired);

		if (arm_.ask(solicited_only ? HERALD_ARM_SOLICITED : HERALD_ARM_NEXT, seen, fired))
			store_then_fence(ctl->arm, arm_.word());
	}

	/* Does the kernel want to know of each arm (HERALD_CQ_TELL_ARM)?  Any context. */
	bool announces_arms() const noexcept { return load_acquire(ctl()->flags) & HERALD_CQ_TELL_ARM; }

	/* Overrun, or the device has gone.  Any context. */
	bool gone() const noexcept { return load_acquire(ctl()->flags) & HERALD_CQ_DEAD; }

	/* For those who look from outside: events got, and how many of them are acked. */
	void account(uint32_t events_read, uint32_t events_acked) noexcept
	{
		store_release(ctl()->events_read, events_read);
		store_release(ctl()->events_acked, events_acked);
	}

	/* ------------------------------------------------------- removal -- */

	/*
	 * Remove the unpolled completions of a QP that makes no more, and free
	 * their room.  Those that stay move towards the producer, in order;
	 * @moved(cqe, index) is called for each, before its old place is free.
	 */
	template <class Moved> void purge(uint32_t qpn, Moved &&moved) noexcept
	{
		const uint32_t first = consumer();
		const uint32_t end = load_acquire(ctl()->producer);
		const uint32_t mask = depth() - 1;
		uint32_t to = end;

		for (uint32_t from = end; from-- != first;) {
			const herald_cqe &cqe = cqes_[from & mask];

			if (cqe.qp_num == qpn)
				continue;
			if (--to == from)
				continue;
			cqes_[to & mask] = cqe;
			moved(cqes_[to & mask], to);
		}
		producer_ = end;
		consumer_.store(to, std::memory_order_release);
		publish();
	}

private:
	herald_cq_ctl *ctl() const noexcept { return ctl_.load(std::memory_order_acquire); }
	uint32_t consumer() const noexcept { return consumer_.load(std::memory_order_relaxed); }
	uint32_t depth() const noexcept { return depth_.load(std::memory_order_relaxed); }

	std::atomic<herald_cq_ctl *> ctl_ = nullptr;
	herald_cqe *cqes_ = nullptr;
	std::atomic<uint32_t> depth_ = 0;
	std::atomic<uint32_t> consumer_ = 0; /* completions before it were taken */
	uint32_t producer_ = 0;              /* the kernel's index when last read */

	Arm arm_;
};

} // namespace herald
