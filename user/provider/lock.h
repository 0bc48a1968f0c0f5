/* SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB */
/*
 * The lock of a queue.  Nearly every queue is used by one thread, and an
 * atomic instruction costs more than a poll or a post does: so the lock leans
 * towards the thread that uses it.  That owner enters by a plain store and a
 * look whether it is the owner still:
 *
 *	owner				another thread, holding @shared_
 *	inside = 1			owner_ = nobody
 *	owner_ still me?		membarrier(2)
 *					inside?  wait
 *
 * The system call makes the owner's two steps as good as divided by a full
 * barrier: either the owner sees that it was evicted, or the other sees it
 * inside.  Everybody else, and everybody if there is no such system call, uses
 * @shared_ as an ordinary spinlock.
 */
#pragma once

#include <atomic>
#include <cstdint>

namespace herald {

class Lock {
public:
	/* Nothing is locked if the application promised to be alone. */
	explicit Lock(bool single_threaded) noexcept : needed_(!single_threaded) {}
	Lock(const Lock &) = delete;
	Lock &operator=(const Lock &) = delete;

	void lock() noexcept
	{
		if (needed_ && !enter_as_owner()) [[unlikely]]
			acquire(__builtin_thread_pointer());
	}

	/* For who comes by rarely, to create or destroy: does not become the owner. */
	void visit() noexcept
	{
		if (needed_ && !enter_as_owner())
			acquire(nullptr);
	}

	/* What never was locked is unlocked by a store of what is there, which is cheaper than to ask. */
	void unlock() noexcept
	{
		if (holder_) [[likely]]
			holder_->inside.store(0, std::memory_order_release);
		else
			shared_.store(0, std::memory_order_release);
	}

private:
	/*
	 * A thread that is or was the owner; never another's, for its late
	 * stores.  A thread that is made where one has ended may inherit it.
	 */
	struct Owner {
		std::atomic<void *> thread = nullptr;
		std::atomic<uint32_t> inside = 0;
	};

	static constexpr uint32_t max_owners = 2; /* one made the queue ready, one uses it */
	static constexpr uint32_t max_evictions = 8;

	bool enter_as_owner() noexcept
	{
		Owner *owner = owner_.load(std::memory_order_acquire);

		if (owner->thread.load(std::memory_order_relaxed) != __builtin_thread_pointer())
			return false;
		/* locked already, and perhaps to be unlocked by another thread: wait like anybody */
		if (owner->inside.load(std::memory_order_relaxed)) [[unlikely]]
			return false;
		owner->inside.store(1, std::memory_order_relaxed);
		std::atomic_signal_fence(std::memory_order_seq_cst);
		if (owner_.load(std::memory_order_relaxed) == owner) [[likely]]
			return true;
		owner->inside.store(0, std::memory_order_release);
		return false;
	}

	/* @self: nullptr for a visitor */
	void acquire(void *self) noexcept;
	void evict(Owner &owner) noexcept;
	bool own(void *self) noexcept;

	static Owner nobody_;

	std::atomic<Owner *> owner_ = &nobody_; /* written with shared_ held */
	Owner *holder_ = nullptr;               /* who is inside as the owner; of those inside */
	std::atomic<uint32_t> shared_ = 0;
	uint32_t evictions_ = 0; /* by those who wanted to own it themselves */
	Owner owners_[max_owners];
	const bool needed_;
};

class Guard {
public:
	explicit Guard(Lock &lock) noexcept : lock_(lock) { lock_.lock(); }
	Guard(const Guard &) = delete;
	Guard &operator=(const Guard &) = delete;
	~Guard() { lock_.unlock(); }

private:
	Lock &lock_;
};

class Visit {
public:
	explicit Visit(Lock &lock) noexcept : lock_(lock) { lock_.visit(); }
	Visit(const Visit &) = delete;
	Visit &operator=(const Visit &) = delete;
	~Visit() { lock_.unlock(); }

private:
	Lock &lock_;
};

} // namespace herald
