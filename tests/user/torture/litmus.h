/* SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB */
/*
 * CASES 8: one polls empty, arms, polls empty and blocks; the other posts about then, and what it posts completes at
 * once. Whoever blocks must be woken.
 */
#pragma once

#include <deque>
#include <thread>

#include "channel.h"
#include "common.h"

namespace torture {

/* A CQ with its traffic. */
struct Lane {
	static constexpr uint32_t kBurst = 4;

	Lane(ibv_comp_channel *channel, bool locked);
	~Lane();
	Lane(const Lane &) = delete;
	Lane &operator=(const Lane &) = delete;

	/* By the producer: what was asked for. */
	void post();
	/* By the consumer: all that is there; false if there was nothing. */
	bool poll();
	void arm();
	void ask_for_more(Random &random);
	void on_event(Random &random);
	/* One tick of the watchdog; false if it has waited too long. */
	bool look();
	void show() const;

	bool wants() const { return asked_ != posted_; }

private:
	ibv_cq *cq_, *other_;
	ibv_qp *sender_, *target_;
	alignas(64) std::atomic<uint32_t> asked_ = 0; /* the consumer's */
	alignas(64) std::atomic<uint32_t> posted_ = 0;
	alignas(64) std::atomic<uint32_t> got_ = 0;
	std::atomic<uint64_t> arms_ = 0, events_ = 0;
	unsigned unacked_ = 0;
	uint32_t seen_ = 0; /* the watchdog's */
	unsigned ticks_ = 0;
};

/*
 * One producer and one consumer, with CQs on one channel. With one CQ, the two often meet; with many, much gets done: while
 * one CQ's event is on its way, others are at it.
 */
class Litmus : public Shown {
public:
	Litmus(unsigned number, Wait how, int lanes);
	~Litmus() override;

	void start();
	/* Ends both threads. */
	void stop();
	/* One tick of the watchdog, in the litmus test's phase. */
	void look();
	void show() const override;
	int phase() const { return kLitmus + static_cast<int>(number_); }

private:
	void produce();
	void consume();
	void serve(Lane &lane);
	Lane *wait_event();

	unsigned number_;
	Wait how_;
	ibv_comp_channel *channel_;
	std::deque<Lane> lanes_;
	std::thread producer_, consumer_;
	std::atomic<bool> stop_ = false, ended_ = false;
	Random random_; /* the consumer's */
	Waiter waiter_;
};

} // namespace torture
