/* SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB */
/* What must be given back: memory, mappings.  Needs nothing of the C++ runtime library. */
#pragma once

#include <cerrno>
#include <cstddef>
#include <cstdlib>
#include <new>
#include <utility>

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

} // namespace herald
