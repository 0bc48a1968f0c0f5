/* SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB */
/*
 * A CQ, how it is polled and armed, and the account of its events.
 *
 * All polling and arming of one CQ is under its lock, so what is known about the arm is exact. If the CQ was found empty
 * right after it was armed, the arm is "sure": the next completion that matches must raise an event, after the arm
 * (owed_). If it is still empty when it is armed again, the first arm cannot have fired, and the second adds nothing.
 * Every other arm may raise one event (arms_).
 */
#pragma once

#include <array>
#include <deque>
#include <mutex>
#include <string>

#include "common.h"
#include "queue.h"

namespace torture {

class Channel;

enum class CqKind : uint8_t {
	loop,      /* who gets the event polls, arms, and polls */
	solicited, /* the same, for receive queues: arms for solicited ones */
	mixed,     /* everybody polls and arms */
	polled,    /* no channel */
	kinds
};

/* One life of a CQ: what its events carry. It is never freed. */
struct Life {
	CompletionQueue *owner;
	uint32_t number;
	ibv_cq *cq;
};

class CompletionQueue {
public:
	void create(CqKind kind, Channel *channel, std::string name, Random &random);
	/* With events that were not acked, and with unread ones. */
	void destroy();

	CqKind kind() const { return kind_; }
	ibv_cq *get() const { return cq_; }
	const std::string &name() const { return name_; }

	/* An event of this CQ was got; @acks of it may be put off. */
	void on_event(const Life &life, Random &random);

	/* By those who have its group: poll or arm, as the kind allows. */
	void poll(int n);
	void use(Random &random);
	bool threads_poll() const { return kind_ == CqKind::mixed || kind_ == CqKind::polled; }
	void resize(Random &random);
	void moderate(Random &random);

	/* Completions may vanish with their QP now; returns once nobody is polling any that did. */
	void set_fuzzy(bool fuzzy);

	/* One tick of the watchdog; false if an event that must come does not. */
	bool look();
	void show() const;

private:
	enum Armed : uint8_t { kUnarmed, kArmedSolicited, kArmedNext };

	int poll_some(int n);
	int poll_classic(int n);
	int poll_extended(int n);
	void account(const Completion &c);
	void arm(bool solicited);
	void note_arm(Armed kind, bool empty, uint64_t events);
	bool poll_dry();
	void arm_until_dry(bool solicited);
	void burst(Random &random);
	void ack_later(Random &random);

	std::string name_;
	CqKind kind_ = CqKind::loop;
	ibv_cq *cq_ = nullptr;
	ibv_cq_ex *ex_ = nullptr; /* the same CQ, if it can be polled by ibv_start_poll */
	std::deque<Life> lives_;
	std::atomic<uint32_t> life_ = 0;
	std::atomic<uint64_t> events_ = 0;
	std::atomic<uint64_t> arms_ = 0; /* at most so many events */
	std::atomic<uint64_t> owed_ = 0; /* at least so many, soon */

	mutable std::mutex lock_; /* what follows */
	Armed armed_ = kUnarmed;
	bool sure_ = false;
	bool mergeable_ = false;
	unsigned fuzzy_ = 0;
	bool closing_ = false;
	unsigned unacked_ = 0;
	uint64_t calls_ = 0, polled_ = 0, armed_at_ = 0;
	bool extended_now_ = false;

	uint64_t seen_ = 0; /* the watchdog's */
	unsigned ticks_ = 0;
};

} // namespace torture
