/* SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB */
#include "queue.h"

#include <arpa/inet.h>

#include <algorithm>
#include <cstdio>
#include <deque>
#include <mutex>

#include "cq.h"
#include "group.h"

namespace torture {

/* A wr_id is 16 bits of the queue's index, 16 of its generation, 32 of the WR's number. */
static std::deque<Queue *> queues;

uint64_t Queue::wr_id(uint32_t seq) const
{
	return static_cast<uint64_t>(index_) << 48 | static_cast<uint64_t>(generation_ & 0xffff) << 32 | seq;
}

Queue &Queue::of(const Completion &c)
{
	const uint64_t index = c.wr_id >> 48;

	if (index >= queues.size())
		fail("a completion of no queue: wr_id %#lx", c.wr_id);
	return *queues[index];
}

/* Before there are threads. */
void Queue::init(End *end, bool send)
{
	end_ = end;
	send_ = send;
	index_ = static_cast<uint32_t>(queues.size());
	queues.push_back(this);
}

void Queue::restart()
{
	generation_++;
	posted_ = 0;
	must_ = 0;
	messages_ = 0;
	completed_ = 0;
	acked_ = 0;
	acked_solicited_ = 0;
	failed_ = false;
	credits_ = 0;
	ticks_ = 0;
}

void Queue::close()
{
	while (busy_.exchange(true))
		nap(20);
}

/* ------------------------------------------------------------ completing -- */

void Queue::acknowledge(const Slot &slot)
{
	if (!slot.message)
		return;
	acked_++;
	if (slot.solicited)
		acked_solicited_ = slot.number + 1;
}

void Queue::pass_over(uint32_t end)
{
	for (uint32_t seq = completed_; seq != end; seq++) {
		if (slot(seq).signaled || failed_)
			fail("%s WR %u has not completed, and WR %u has", send_ ? "send" : "receive", seq, end);
		acknowledge(slot(seq));
	}
}

void Queue::check_status(uint32_t seq, ibv_wc_status status)
{
	if (status == IBV_WC_SUCCESS) {
		if (failed_)
			fail("success after an error");
		if (!slot(seq).signaled)
			fail("an unsignaled success completed");
		return;
	}
	if (!end_->pair->dying)
		fail("%s WR %u completed with %s", send_ ? "send" : "receive", seq, ibv_wc_status_str(status));
	if (failed_ && status != IBV_WC_WR_FLUSH_ERR)
		fail("%s after an error", ibv_wc_status_str(status));
	failed_ = true;
	totals.flushed++;
}

/* A message says which one it is, and whether it is solicited. */
bool Queue::receive(const Completion &c)
{
	if (!(c.flags & IBV_WC_WITH_IMM) || c.imm >> 1 != acked_)
		fail("message %u instead of %u", c.imm >> 1, acked_.load());
	acked_++;
	return c.imm & 1;
}

bool Queue::complete(const Completion &c)
{
	const uint32_t seq = static_cast<uint32_t>(c.wr_id);
	const bool success = c.status == IBV_WC_SUCCESS;
	bool matching = !success;

	if ((c.wr_id >> 32 & 0xffff) != (generation_ & 0xffff))
		fail("a completion of a QP that was destroyed or reset");
	if (seq - completed_ >= posted_ - completed_)
		fail("%s WR %u completed again, or was never posted: %u are complete of %u", send_ ? "send" : "receive",
		     seq, completed_.load(), posted_.load());
	if (c.qp_num != end_->qp->qp_num)
		fail("completion of QP %#x, posted to %#x", c.qp_num, end_->qp->qp_num);
	pass_over(seq);
	check_status(seq, c.status);
	if (success && !send_)
		matching = receive(c);
	else if (success)
		acknowledge(slot(seq));
	completed_ = seq + 1;
	totals.completions++;
	return matching;
}

/* --------------------------------------------------------------- posting -- */

Queue::Slot &Queue::take_slot()
{
	Slot &s = slot(posted_);

	s = {.number = 0, .signaled = true, .message = false, .solicited = false};
	return s;
}

/* May a message be sent? Rarely one for which there is no receive WR yet. */
bool Queue::take_credit(Random &random)
{
	Queue &to = end_->peer->rq;
	int credits = to.credits_;

	while (credits > 0 && !to.credits_.compare_exchange_weak(credits, credits - 1)) {
	}
	if (credits > 0)
		return true;
	if (to.cq->kind() == CqKind::solicited || credits < -2 || !random.one_in(16))
		return false;
	to.credits_--;
	return true;
}

void Queue::make_message(Slot &slot, ibv_send_wr &wr, Random &random)
{
	slot.message = true;
	slot.number = messages_++;
	/* the last ones that there is a receive WR for wake who waits for solicited ones */
	slot.solicited = end_->peer->rq.credits_ < 3 || random.one_in(4);
	wr.opcode = random.one_in(4) ? IBV_WR_RDMA_WRITE_WITH_IMM : IBV_WR_SEND_WITH_IMM;
	wr.imm_data = htonl(slot.number << 1 | slot.solicited);
	if (slot.solicited)
		wr.send_flags |= IBV_SEND_SOLICITED;
}

void Queue::make_send(ibv_send_wr &wr, ibv_sge &sge, Random &random)
{
	Slot &s = take_slot();

	sge = {reinterpret_cast<uintptr_t>(device.mem) + random.below(8192),
	       1 + (random.one_in(4) ? random.below(4096) : random.below(64)), device.mr->lkey};
	wr = {};
	wr.wr_id = wr_id(posted_);
	wr.sg_list = &sge;
	wr.num_sge = 1;
	wr.wr.rdma.remote_addr = reinterpret_cast<uintptr_t>(device.mem) + Device::kMemory / 2 + random.below(8192);
	wr.wr.rdma.rkey = device.mr->rkey;
	if (take_credit(random))
		make_message(s, wr, random);
	else
		wr.opcode = random.one_in(4) ? IBV_WR_RDMA_READ : IBV_WR_RDMA_WRITE;
	/* a WR is only known to have completed by a later one that is signaled */
	s.signaled = posted_ - must_ > kDepth / 4 || random.below(3);
	if (s.signaled)
		wr.send_flags |= IBV_SEND_SIGNALED;
	posted_++;
	if (s.signaled)
		must_ = posted_.load();
}

constexpr uint32_t kChain = 8;

void Queue::post_sends(Random &random, uint32_t n)
{
	std::array<ibv_send_wr, kChain> wr;
	std::array<ibv_sge, kChain> sge;
	ibv_send_wr *bad = nullptr;

	for (uint32_t i = 0; i < n; i++) {
		make_send(wr[i], sge[i], random);
		if (i)
			wr[i - 1].next = &wr[i];
	}
	must(ibv_post_send(end_->qp, wr.data(), &bad), "ibv_post_send");
}

void Queue::post_recvs(Random &random, uint32_t n)
{
	std::array<ibv_recv_wr, kChain> wr{};
	std::array<ibv_sge, kChain> sge;
	ibv_recv_wr *bad = nullptr;

	for (uint32_t i = 0; i < n; i++) {
		take_slot();
		sge[i] = {reinterpret_cast<uintptr_t>(device.mem) + Device::kMemory / 2 + random.below(8192), 16384,
			  device.mr->lkey};
		wr[i].wr_id = wr_id(posted_);
		wr[i].sg_list = &sge[i];
		wr[i].num_sge = 1;
		if (i)
			wr[i - 1].next = &wr[i];
		posted_++;
	}
	must(ibv_post_recv(end_->qp, wr.data(), &bad), "ibv_post_recv");
	credits_ += static_cast<int>(n);
}

void Queue::post(Random &random, uint32_t n)
{
	if (busy_.exchange(true))
		return;
	n = std::min({n, room(), kChain});
	if (n) {
		if (send_)
			post_sends(random, n);
		else
			post_recvs(random, n);
		totals.posted += n;
	}
	busy_ = false;
}

void Queue::post_last()
{
	ibv_recv_wr recv{}, *bad_recv = nullptr;
	ibv_send_wr send{}, *bad_send = nullptr;

	take_slot();
	recv.wr_id = send.wr_id = wr_id(posted_);
	send.opcode = IBV_WR_SEND;
	send.send_flags = IBV_SEND_SIGNALED;
	posted_++;
	must_ = posted_.load();
	if (send_)
		must(ibv_post_send(end_->qp, &send, &bad_send), "ibv_post_send to a QP in error");
	else
		must(ibv_post_recv(end_->qp, &recv, &bad_recv), "ibv_post_recv to a QP in error");
	totals.posted++;
}

/* -------------------------------------------------------------- watching -- */

/* Is there something that must come? */
bool Queue::waits() const
{
	const Queue &from = end_->peer->sq;

	if (send_)
		return static_cast<int32_t>(must_ - completed_) > 0;
	/* the peer's success says that the message is here; a plain one wakes nobody who waits for solicited ones */
	if (cq->kind() == CqKind::solicited)
		return static_cast<int32_t>(from.acked_solicited_ - acked_) > 0;
	return static_cast<int32_t>(from.acked_ - acked_) > 0;
}

bool Queue::look()
{
	const uint32_t completed = completed_;

	if (!waits() || completed != seen_)
		ticks_ = 0;
	else
		ticks_++;
	seen_ = completed;
	return note_wait(ticks_);
}

void Queue::show() const
{
	printf("   %s queue, %s: posted %u, completed %u, must complete %u, messages %u, acked %u (solicited %u), "
	       "credits %d%s%s\n",
	       send_ ? "send" : "receive", cq ? cq->name().c_str() : "-", posted_.load(), completed_.load(),
	       must_.load(), messages_, acked_.load(), acked_solicited_.load(), credits_.load(),
	       failed_ ? ", failed" : "", busy_ ? ", busy" : "");
}

} // namespace torture
