/* SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB */
/* A value, or the errno that says why there is none. */
#pragma once

#include <utility>

namespace herald {

/* The way to say "this errno" where a Result is to be returned. */
struct Errno {
	int code;
};

template <class T> class [[nodiscard]] Result {
public:
	Result(T &&value) noexcept : value_(std::move(value)) {}
	Result(Errno error) noexcept : error_(error.code) {}

	explicit operator bool() const noexcept { return error_ == 0; }
	int error() const noexcept { return error_; }
	T take() && noexcept { return std::move(value_); }

private:
	T value_{};
	int error_ = 0;
};

} // namespace herald
