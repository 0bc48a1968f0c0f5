/* SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB */
#include "canary.h"

#include <algorithm>

#include <sched.h>

#include "common.h"

namespace torture {

static constexpr unsigned kEnd = ~0u;

static void keep_to(unsigned cpu)
{
	cpu_set_t set;

	CPU_ZERO(&set);
	CPU_SET(cpu, &set);
	sched_setaffinity(0, sizeof(set), &set);
}

void Canaries::live(Bird &bird, unsigned cpu)
{
	unsigned last = 0;

	keep_to(cpu);
	for (;;) {
		bird.asked.wait(last);
		last = bird.asked;
		if (last == kEnd)
			return;
		bird.sang = last;
	}
}

Canaries::Canaries() : birds_(std::max(1u, std::thread::hardware_concurrency()))
{
	for (unsigned cpu = 0; cpu < birds_.size(); cpu++)
		birds_[cpu].thread = std::thread(live, std::ref(birds_[cpu]), cpu);
}

Canaries::~Canaries()
{
	for (Bird &bird : birds_) {
		bird.asked = kEnd;
		bird.asked.notify_one();
		bird.thread.join();
	}
}

bool Canaries::sing()
{
	if (!std::ranges::all_of(birds_, [](const Bird &bird) { return bird.sang == bird.asked; })) {
		if (++silent_ == 50 * patience_ticks())
			fail("a CPU runs no thread");
		return false;
	}
	silent_ = 0;
	for (Bird &bird : birds_) {
		bird.asked++;
		bird.asked.notify_one();
	}
	return true;
}

} // namespace torture
