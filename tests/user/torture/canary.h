/* SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB */
/*
 * Does every CPU of the machine get anywhere? One that the host has taken away for seconds, or that is loaded beyond
 * measure, delays completions as a fault of the device would. So on each of them a thread is woken again and again, as
 * consumers are: only a time in which all of them answered counts as time.
 */
#pragma once

#include <atomic>
#include <deque>
#include <thread>

namespace torture {

class Canaries {
public:
	Canaries();
	~Canaries();
	Canaries(const Canaries &) = delete;
	Canaries &operator=(const Canaries &) = delete;

	/* Have all of them answered since the last time that this was true? Fails if they are silent for ever. */
	bool sing();

private:
	struct Bird {
		std::atomic<unsigned> asked = 0, sang = 0;
		std::thread thread;
	};

	static void live(Bird &bird, unsigned cpu);

	std::deque<Bird> birds_;
	unsigned silent_ = 0;
};

} // namespace torture
