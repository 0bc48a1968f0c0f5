/* SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB */
/* A completion channel and those who wait at it (rule C7). */
#pragma once

#include <thread>
#include <vector>

#include "common.h"

namespace torture {

/* spin: asks again and again, and never sleeps; not for the waiters of a Channel */
enum class Wait : uint8_t { blocking, poll, level, edge, kinds, spin = kinds };

/* What waits for the readable end of a channel; non-blocking but for Wait::blocking. */
class Waiter {
public:
	Waiter(ibv_comp_channel *channel, Wait how);
	~Waiter();
	Waiter(const Waiter &) = delete;
	Waiter &operator=(const Waiter &) = delete;

	/* The context of the next event, or nullptr: a signal came, or it was in vain for a while. */
	void *next(ibv_cq **cq);

private:
	void *get(ibv_cq **cq);
	bool wait_poll();
	bool wait_epoll();

	ibv_comp_channel *channel_;
	Wait how_;
	int epoll_ = -1;
	bool drained_ = true; /* edge: nothing was left when last looked */
};

class Channel {
public:
	Channel(Wait how, unsigned waiters);
	~Channel();
	Channel(const Channel &) = delete;
	Channel &operator=(const Channel &) = delete;

	ibv_comp_channel *get() const { return channel_; }

private:
	void serve(unsigned stream);
	void stop();

	Wait how_;
	ibv_comp_channel *channel_;
	std::vector<std::thread> threads_;
	std::atomic<unsigned> running_ = 0;
	std::atomic<bool> stopping_ = false;
};

/* A signal that only interrupts. */
void prepare_interrupts();
void interrupt(std::thread &thread);

} // namespace torture
