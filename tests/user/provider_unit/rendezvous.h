/* SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB */
#pragma once

#include <atomic>
#include <cstdint>
#include <thread>

/* Threads that start each round together. */
class Rendezvous {
public:
	explicit Rendezvous(uint32_t threads) : threads_(threads) {}

	void meet()
	{
		const uint32_t round = round_.load();

		if (arrived_.fetch_add(1) + 1 == threads_) {
			arrived_.store(0);
			round_.fetch_add(1);
			return;
		}
		for (uint32_t spin = 0; round_.load() == round;)
			if (++spin % 128 == 0)
				std::this_thread::yield();
	}

private:
	const uint32_t threads_;
	std::atomic<uint32_t> arrived_ = 0, round_ = 0;
};
