/* SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB */
/* A destroy that may have to wait for an ack. */
#pragma once

#include "link.h"

#include <unistd.h>

#include <atomic>

namespace conformance {

/* Runs a destroy in a thread of its own. */
class Destroying {
public:
	template <class Destroy>
	explicit Destroying(Destroy destroy)
		: thread(worker([this, destroy] {
			  tid = gettid();
			  rc = destroy();
			  done = true;
		  }))
	{
		while (!tid)
			std::this_thread::yield();
	}
	void expect_waits()
	{
		wait_until_asleep(tid);
		std::this_thread::sleep_for(quiet());
		EXPECT_FALSE(done) << "an event is in somebody's hands";
	}
	void expect_done()
	{
		thread.join();
		EXPECT_EQ(rc, 0);
	}

private:
	std::atomic<pid_t> tid = 0;
	std::atomic<bool> done = false;
	int rc = -1;
	std::jthread thread;
};

} // namespace conformance
