/* SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB */
/*
 * The account of a send or receive queue (rule C13): WRs are numbered as they are posted, and every completion must be of
 * the next one, but for successful unsignaled ones, which are passed over.
 */
#pragma once

#include <array>
#include <atomic>
#include <cstdint>

#include "common.h"

namespace torture {

class CompletionQueue;
struct End;

/* What a completion says, however it was polled. */
struct Completion {
	uint64_t wr_id;
	ibv_wc_status status;
	uint32_t flags;
	uint32_t imm; /* host order */
	uint32_t qp_num;
};

class Queue {
public:
	static constexpr uint32_t kDepth = 32;

	void init(End *end, bool send);
	/* Up to @n WRs, fewer if there is no room, none if somebody else posts. */
	void post(Random &random, uint32_t n);
	/* One more WR, to a QP in error. */
	void post_last();
	/* The QP is a new one, or as new: what was posted to the old one is not to come any more. */
	void restart();
	bool drained() const { return completed_.load() == posted_.load(); }
	/* From here on nobody posts until open(). */
	void close();
	void open() { busy_.store(false); }

	/* One of its completions. Return: whether it satisfies a solicited arm. */
	bool complete(const Completion &c);
	/* One tick of the watchdog; false if what must come does not. */
	bool look();
	void show() const;

	/* The queue of a completion, or the process ends. */
	static Queue &of(const Completion &c);

	CompletionQueue *cq = nullptr;

private:
	struct Slot {
		uint32_t number; /* of the message, if it is one */
		bool signaled, message, solicited;
	};

	/* the last WR of all may be one too many */
	static constexpr uint32_t kSlots = 2 * kDepth;

	Slot &slot(uint32_t seq) { return slots_[seq % kSlots]; }
	Slot &take_slot();
	uint64_t wr_id(uint32_t seq) const;
	uint32_t room() const { return kDepth - (posted_.load() - completed_.load()); }
	void pass_over(uint32_t end);
	void acknowledge(const Slot &slot);
	void check_status(uint32_t seq, ibv_wc_status status);
	bool receive(const Completion &c);
	void post_sends(Random &random, uint32_t n);
	void post_recvs(Random &random, uint32_t n);
	void make_send(ibv_send_wr &wr, ibv_sge &sge, Random &random);
	bool take_credit(Random &random);
	void make_message(Slot &slot, ibv_send_wr &wr, Random &random);
	bool waits() const;

	End *end_ = nullptr;
	bool send_ = false;
	uint32_t index_ = 0;
	std::atomic<uint32_t> generation_ = 0;
	std::atomic<bool> busy_ = true; /* somebody posts, or the QP is not to be used */
	std::array<Slot, kSlots> slots_{};
	/* who is busy */
	std::atomic<uint32_t> posted_ = 0;
	std::atomic<uint32_t> must_ = 0; /* WRs before this one complete */
	uint32_t messages_ = 0;
	/* who polls the CQ */
	std::atomic<uint32_t> completed_ = 0;
	std::atomic<uint32_t> acked_ = 0;           /* sends: messages that were successful; receives: that came */
	std::atomic<uint32_t> acked_solicited_ = 0; /* the last solicited one of them, plus one */
	bool failed_ = false;
	std::atomic<int> credits_ = 0; /* receives: WRs that no message is to take yet */
	/* the watchdog */
	uint32_t seen_ = 0, ticks_ = 0;
};

} // namespace torture
