/* SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB */
#include "litmus.h"

#include <pthread.h>

#include <array>
#include <cstdio>

namespace torture {

/* ------------------------------------------------------------------ lanes -- */

static ibv_qp *make_qp(ibv_cq *send, ibv_cq *recv)
{
	ibv_qp_init_attr attr{};

	attr.qp_type = IBV_QPT_RC;
	attr.send_cq = send;
	attr.recv_cq = recv;
	attr.cap.max_send_wr = 2 * Lane::kBurst;
	attr.cap.max_recv_wr = 1;
	attr.cap.max_send_sge = 1;
	attr.cap.max_recv_sge = 1;
	attr.sq_sig_all = 1;
	return must(ibv_create_qp(device.pd, &attr), "ibv_create_qp");
}

/* Only the consumer polls and arms; without a lock, nothing orders what it does but what arming itself does. */
static ibv_cq *make_cq(ibv_comp_channel *channel, void *context, bool locked)
{
	ibv_cq_init_attr_ex attr{};

	attr.cqe = 2 * Lane::kBurst;
	attr.cq_context = context;
	attr.channel = channel;
	attr.comp_mask = IBV_CQ_INIT_ATTR_MASK_FLAGS;
	attr.flags = locked ? 0 : IBV_CREATE_CQ_ATTR_SINGLE_THREADED;
	return ibv_cq_ex_to_cq(must(ibv_create_cq_ex(device.ctx, &attr), "ibv_create_cq_ex"));
}

Lane::Lane(ibv_comp_channel *channel, bool locked)
	: cq_(make_cq(channel, this, locked)), other_(make_cq(nullptr, nullptr, true)), sender_(make_qp(cq_, other_)),
	  target_(make_qp(other_, other_))
{
	device.connect(sender_, target_);
}

Lane::~Lane()
{
	totals.arms += arms_;
	totals.calls += arms_;
	totals.events += events_;
	ibv_ack_cq_events(cq_, unacked_);
	must(ibv_destroy_qp(sender_), "ibv_destroy_qp");
	must(ibv_destroy_qp(target_), "ibv_destroy_qp");
	must(ibv_destroy_cq(cq_), "ibv_destroy_cq");
	must(ibv_destroy_cq(other_), "ibv_destroy_cq");
}

void Lane::post()
{
	const uint32_t first = posted_, n = asked_ - first;
	std::array<ibv_send_wr, kBurst> wr{};
	ibv_sge sge = {reinterpret_cast<uintptr_t>(device.mem), 8, device.mr->lkey};
	ibv_send_wr *bad = nullptr;

	for (uint32_t i = 0; i < n; i++) {
		wr[i].wr_id = first + i;
		wr[i].sg_list = &sge;
		wr[i].num_sge = 1;
		wr[i].opcode = IBV_WR_RDMA_WRITE;
		wr[i].wr.rdma.remote_addr = reinterpret_cast<uintptr_t>(device.mem) + Device::kMemory / 2;
		wr[i].wr.rdma.rkey = device.mr->rkey;
		wr[i].next = i + 1 < n ? &wr[i + 1] : nullptr;
	}
	must(ibv_post_send(sender_, wr.data(), &bad), "ibv_post_send");
	posted_ = first + n;
}

bool Lane::poll()
{
	std::array<ibv_wc, kBurst> wc;
	bool any = false;
	int n;

	while ((n = ibv_poll_cq(cq_, wc.size(), wc.data())) > 0) {
		for (int i = 0; i < n; i++) {
			if (wc[i].status)
				fail("litmus: %s", ibv_wc_status_str(wc[i].status));
			if (wc[i].wr_id != got_)
				fail("litmus: completion %lu instead of %u", wc[i].wr_id, got_.load());
			got_++;
		}
		totals.completions += n;
		any = true;
	}
	if (n < 0)
		fail("ibv_poll_cq: %d", n);
	return any;
}

void Lane::arm()
{
	arms_++;
	must(ibv_req_notify_cq(cq_, 0), "ibv_req_notify_cq");
}

/* It is one WR more often than not: of several, a later one would wake whom the first one did not. */
void Lane::ask_for_more(Random &random)
{
	if (asked_ != got_)
		return;
	totals.rounds++;
	asked_ += random.below(4) ? 1 : 1 + random.below(kBurst);
}

void Lane::on_event(Random &random)
{
	if (++events_ > arms_)
		fail("litmus: event %lu, and no more than %lu arms", events_.load(), arms_.load());
	if (++unacked_ <= random.below(64))
		return;
	ibv_ack_cq_events(cq_, unacked_);
	unacked_ = 0;
}

bool Lane::look()
{
	const uint32_t got = got_;

	if (posted_ == got || got != seen_)
		ticks_ = 0;
	else
		ticks_++;
	seen_ = got;
	return note_wait(ticks_);
}

void Lane::show() const
{
	printf("   asked for %u, posted %u, got %u, arms %lu, events %lu%s\n", asked_.load(), posted_.load(),
	       got_.load(), arms_.load(), events_.load(), ticks_ ? ", waits" : "");
}

/* ----------------------------------------------------------------- litmus -- */

Litmus::Litmus(unsigned number, Wait how, int lanes)
	: number_(number), how_(how), channel_(must(ibv_create_comp_channel(device.ctx), "ibv_create_comp_channel")),
	  random_(2000 + number), waiter_(channel_, how)
{
	for (int i = 0; i < lanes; i++)
		lanes_.emplace_back(channel_, i % 4 == 1);
}

Litmus::~Litmus()
{
	lanes_.clear();
	must(ibv_destroy_comp_channel(channel_), "ibv_destroy_comp_channel");
}

/* The two of them on CPUs of their own, or one would often run only when the other sleeps. */
static void pin(std::thread &thread, unsigned number)
{
	const unsigned cpus = std::thread::hardware_concurrency();
	cpu_set_t set;

	CPU_ZERO(&set);
	CPU_SET(number % (cpus ? cpus : 1), &set);
	pthread_setaffinity_np(thread.native_handle(), sizeof(set), &set);
}

void Litmus::start()
{
	consumer_ = std::thread(&Litmus::consume, this);
	producer_ = std::thread(&Litmus::produce, this);
	if (number_ % 4 == 2)
		return;
	pin(consumer_, number_);
	pin(producer_, number_ + 1);
}

void Litmus::stop()
{
	stop_ = true;
	while (!ended_) {
		interrupt(consumer_);
		nap(1000);
	}
	producer_.join();
	consumer_.join();
}

/* Reading the clock is a system call in some kernels, and takes longer than this. */
static void spin(uint32_t n)
{
	for (; n; n--)
		asm volatile("" ::: "memory");
}

constexpr uint32_t kFiveUs = 10000; /* of spin(), about */

void Litmus::produce()
{
	Random random(3000 + number_);
	unsigned idle = 0;

	while (!stop_ && await_phase(phase())) {
		idle++;
		for (Lane &lane : lanes_) {
			if (!lane.wants())
				continue;
			spin(random.below(kFiveUs)); /* CASES 8: 0 to 5 us */
			lane.post();
			idle = 0;
		}
		if (idle > 200)
			std::this_thread::yield();
	}
}

/* Nothing but an event ends it: who looked at a CQ again would not notice that an event was lost. */
Lane *Litmus::wait_event()
{
	ibv_cq *cq = nullptr;
	void *context;

	while (!(context = waiter_.next(&cq))) {
		if (stop_ || (how_ == Wait::spin && !await_phase(phase())))
			return nullptr;
	}
	return static_cast<Lane *>(context);
}

/* Asks before it arms, or after; between the two it takes about as long as the other's doorbell. */
void Litmus::serve(Lane &lane)
{
	do {
		lane.poll();
		if (random_.one_in(2)) {
			lane.ask_for_more(random_);
			spin(random_.below(random_.one_in(2) ? kFiveUs : 20 * kFiveUs));
		}
		lane.poll();
		lane.arm();
	} while (lane.poll());
	lane.ask_for_more(random_);
}

void Litmus::consume()
{
	for (Lane &lane : lanes_)
		serve(lane);
	while (Lane *lane = wait_event()) {
		lane->on_event(random_);
		serve(*lane);
	}
	ended_ = true;
}

void Litmus::look()
{
	for (Lane &lane : lanes_) {
		if (!lane.look())
			fail("litmus %u: who polled empty, armed, polled empty and blocked is not woken", number_);
	}
}

void Litmus::show() const
{
	static const char *const how[] = {"blocking", "poll", "level", "edge", "spin"};

	printf(" litmus %u (%s)\n", number_, how[static_cast<int>(how_)]);
	for (const Lane &lane : lanes_)
		lane.show();
}

} // namespace torture
