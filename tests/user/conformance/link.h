/* SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB */
/* A device of a test's own, on an interface of its own, for tests that take it away. */
#pragma once

#include "fixture.h"

namespace conformance {

/* All of it takes root and the tools ip and rdma; what fails throws. */
class Link {
public:
	Link();
	~Link();
	Link(const Link &) = delete;

	/* The device: made, and taken away by its own name or with its interface.  How long that took. */
	void add();
	Millis del();
	Millis unplug();
	/* So long taking it away may take. */
	static Millis limit() { return Millis(5000) * slowness(); }
	bool exists() const;

	/* The interface, by a call rather than by a program: it is quick. */
	void set_up(bool up);
	/* One more IPv4 address, or one less. */
	void address(bool add, int number);

	const std::string &name() const { return name_; }
	const std::string &netdev() const { return netdev_; }

private:
	void make_interface();
	Millis took(const std::string &command);

	std::string name_, netdev_;
};

/* Waits until this thread of the process sleeps in the kernel; it has said which one it is by gettid(). */
void wait_until_asleep(pid_t tid);

} // namespace conformance
