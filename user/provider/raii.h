/* SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB */
/* What must be given back: memory, mappings, locks.  Needs nothing of the C++ runtime library. */
#pragma once

#include <cerrno>
#include <cstddef>
#include <cstdlib>
#include <new>
#include <utility>

#include <pthread.h>
#include <sys/mman.h>
#include <unistd.h>

#include "result.h"

namespace herald {

/* An object in memory of its own, or nullptr. */
template <class T, class... Args> T *make(Args &&...args) noexcept
{
	constexpr size_t size = (sizeof(T) + alignof(T) - 1) / alignof(T) * alignof(T);
	void *memory = std::aligned_alloc(alignof(T), size);

	return memory ? new (memory) T(std::forward<Args>(args)...) : nullptr;
}

template <class T> void discard(T *object) noexcept
{
	object->~T();
	std::free(object);
}

/* A mapping of the device's memory. */
class Mapping {
public:
	Mapping() noexcept = default;
	Mapping(Mapping &&other) noexcept
		: base_(std::exchange(other.base_, nullptr)), length_(std::exchange(other.length_, 0))
	{
	}
	Mapping &operator=(Mapping &&other) noexcept
	{
		if (this != &other) {
			reset();
			base_ = std::exchange(other.base_, nullptr);
			length_ = std::exchange(other.length_, 0);
		}
		return *this;
	}
	~Mapping() { reset(); }

	static Result<Mapping> map(int fd, size_t length, off_t offset) noexcept
	{
		void *base = mmap(nullptr, length, PROT_READ | PROT_WRITE, MAP_SHARED, fd, offset);

		if (base == MAP_FAILED)
			return Errno{errno};
		return Mapping(base, length);
	}

	void *base() const noexcept { return base_; }

	/* Give back all but the first page. */
	void trim() noexcept
	{
		const size_t page = static_cast<size_t>(sysconf(_SC_PAGESIZE));

		if (length_ > page) {
			munmap(static_cast<std::byte *>(base_) + page, length_ - page);
			length_ = page;
		}
	}

private:
	Mapping(void *base, size_t length) noexcept : base_(base), length_(length) {}

	void reset() noexcept
	{
		if (base_)
			munmap(base_, length_);
		base_ = nullptr;
	}

	void *base_ = nullptr;
	size_t length_ = 0;
};

/* A spinlock, or nothing if the application promised to be alone. */
class Lock {
public:
	explicit Lock(bool single_threaded) noexcept : needed_(!single_threaded)
	{
		pthread_spin_init(&spin_, PTHREAD_PROCESS_PRIVATE);
	}
	Lock(const Lock &) = delete;
	Lock &operator=(const Lock &) = delete;
	~Lock() { pthread_spin_destroy(&spin_); }

	void lock() noexcept
	{
		if (needed_)
			pthread_spin_lock(&spin_);
	}
	void unlock() noexcept
	{
		if (needed_)
			pthread_spin_unlock(&spin_);
	}

private:
	pthread_spinlock_t spin_;
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

} // namespace herald
