/* SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB */
/* What the owner of a lock never sees: taking it from others. */
#include "lock.h"

#include <cerrno>
#include <cstdlib>

#include <linux/membarrier.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "herald_core.h"
#include "ring.h"

using namespace herald;

constinit Lock::Owner Lock::nobody_;

/* ------------------------------------------------------------ barriers -- */

static std::atomic_bool owners_allowed = false;

static bool membarrier(int command) noexcept
{
	return syscall(SYS_membarrier, command, 0, 0) == 0;
}

void herald_locks_init() noexcept
{
#ifndef HERALD_TSAN
	/* it would take what is ordered by the system call for a race */
	if (!owners_allowed.load(std::memory_order_relaxed) && membarrier(MEMBARRIER_CMD_REGISTER_PRIVATE_EXPEDITED))
		owners_allowed.store(true, std::memory_order_relaxed);
#endif
}

/*
 * A full barrier in every thread of the process.  It was registered, so it
 * works once there is memory for it, unless a system call filter that came
 * later forbids it: then there is no safe way on, and to go on unsafely would
 * be worse than to stop.
 */
static void barrier_in_all_threads() noexcept
{
	static constexpr char complaint[] = "libherald: membarrier(2) worked when the device was opened and fails now: "
					    "allow it, or forbid it before the device is opened\n";

	do {
		if (membarrier(MEMBARRIER_CMD_PRIVATE_EXPEDITED))
			return;
	} while (errno == ENOMEM);
	(void)!write(STDERR_FILENO, complaint, sizeof(complaint) - 1);
	abort();
}

/* -------------------------------------------------------------- locking -- */

static void spin() noexcept
{
#if defined(__x86_64__) || defined(__i386__)
	__builtin_ia32_pause();
#endif
}

void Lock::evict(Owner &owner) noexcept
{
	owner_.store(&nobody_, std::memory_order_relaxed);
	barrier_in_all_threads();
	while (owner.inside.load(std::memory_order_acquire))
		spin();
	holder_ = nullptr;
}

/* Become the owner, inside. */
bool Lock::own(void *self) noexcept
{
	if (!owners_allowed.load(std::memory_order_relaxed) || evictions_ >= max_evictions)
		return false;
	for (Owner &owner : owners_) {
		void *thread = owner.thread.load(std::memory_order_relaxed);

		if (thread && thread != self)
			continue;
		owner.thread.store(self, std::memory_order_relaxed);
		owner.inside.store(1, std::memory_order_relaxed);
		holder_ = &owner;
		owner_.store(&owner, std::memory_order_release);
		return true;
	}
	return false;
}

void Lock::acquire(void *self) noexcept
{
	while (shared_.exchange(1, std::memory_order_acquire))
		while (shared_.load(std::memory_order_relaxed))
			spin();

	Owner *owner = owner_.load(std::memory_order_relaxed);

	if (owner != &nobody_) {
		evict(*owner);
		if (self)
			evictions_++;
	}
	if (self && own(self))
		shared_.store(0, std::memory_order_release);
}
