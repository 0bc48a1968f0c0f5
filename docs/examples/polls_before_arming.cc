// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
//
// A bug on purpose: it polls before it arms, and not after.
//
//	polls_before_arming DEVICE [--fixed]
//
// One thread waits for messages: it polls until there is none, arms, and sleeps until the event. Another sends one for
// each line on the standard input, and a last one at its end. A message that arrives between the last poll and the arm
// finds nobody armed, so it raises no event; and it is there before the arm, so the arm waits for the next one. The
// program sleeps over it. The window is a few instructions wide: README.md says how to hit it every time.

#include <thread>

#include "loopback.h"

using namespace loopback;

namespace {

constexpr uint32_t kLast = ~0u;
constexpr int kReceives = 8;

struct Receiver {
	bool fixed;
	ibv_comp_channel *channel;
	ibv_cq *cq;
	ibv_qp *qp;
	bool done = false;
};

void poll_dry(Receiver &r)
{
	ibv_wc wc;

	while (ibv_poll_cq(r.cq, 1, &wc) > 0) {
		if (wc.status != IBV_WC_SUCCESS)
			die(ibv_wc_status_str(wc.status));
		if (wc.imm_data == kLast) {
			r.done = true;
			return;
		}
		std::printf("message %u\n", wc.imm_data);
		receive(r.qp);
	}
}

void wait_for_event(const Receiver &r)
{
	ibv_cq *cq;
	void *context;

	must(ibv_get_cq_event(r.channel, &cq, &context), "ibv_get_cq_event");
	ibv_ack_cq_events(cq, 1);
}

void receive_all(Receiver &r)
{
	for (;;) {
		poll_dry(r);
		if (r.done)
			return;
		must(ibv_req_notify_cq(r.cq, 0), "ibv_req_notify_cq");
		// What has come before the arm raises no event: look once more.
		if (r.fixed)
			poll_dry(r);
		if (r.done)
			return;
		wait_for_event(r);
	}
}

void send_all(ibv_qp *qp, ibv_cq *cq)
{
	uint32_t number = 0;
	ibv_wc wc;
	bool more;

	do {
		more = next_line();
		send(qp, more ? ++number : kLast);
		while (ibv_poll_cq(cq, 1, &wc) == 0)
			std::this_thread::yield();
		if (wc.status != IBV_WC_SUCCESS)
			die(ibv_wc_status_str(wc.status));
	} while (more);
}

} // namespace

int main(int argc, char **argv)
{
	Receiver receiver{};

	receiver.fixed = wants_fixed(argc, argv);
	ibv_context *context = open_device(argv[1]);
	ibv_pd *pd = made(ibv_alloc_pd(context), "ibv_alloc_pd");
	ibv_cq *send_cq = made(ibv_create_cq(context, 16, nullptr, nullptr, 0), "ibv_create_cq");
	ibv_qp *sender = create_qp(pd, send_cq, send_cq);

	receiver.channel = made(ibv_create_comp_channel(context), "ibv_create_comp_channel");
	receiver.cq = made(ibv_create_cq(context, 64, nullptr, receiver.channel, 0), "ibv_create_cq");
	receiver.qp = create_qp(pd, receiver.cq, receiver.cq);
	connect_both(sender, receiver.qp);
	for (int i = 0; i < kReceives; i++)
		receive(receiver.qp);
	std::printf("receives: a CQ of %d\n", receiver.cq->cqe);

	std::thread thread(send_all, sender, send_cq);
	receive_all(receiver);
	thread.join();
	std::printf("the last message\n");
	return 0; // what it has made goes with it
}
