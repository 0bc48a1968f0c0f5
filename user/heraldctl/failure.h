/* SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB */
/* What ends a command: one line for the user, and the exit status (heraldctl.8 lists them). */
#ifndef HERALDCTL_FAILURE_H
#define HERALDCTL_FAILURE_H

#include <cstdint>
#include <stdexcept>
#include <string>

namespace heraldctl {

enum class Exit : uint8_t {
	Ok = 0,
	Failed = 1, /* or: doctor has findings */
	Usage = 2,
	Denied = 3,
	NotFound = 4,
	Busy = 5,
	Unsupported = 6,
};

class Failure : public std::runtime_error {
public:
	Failure(Exit exit, const std::string &text) : std::runtime_error(text), exit_(exit) {}
	Exit exit() const { return exit_; }

private:
	Exit exit_;
};

} // namespace heraldctl

#endif
