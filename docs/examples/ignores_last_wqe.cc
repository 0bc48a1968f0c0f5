// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
//
// A bug on purpose: a server with a shared receive queue ignores QP_LAST_WQE_REACHED.
//
//	ignores_last_wqe DEVICE [--fixed]
//
// Each line on the standard input is a message from a client (of the same process) to the server. When a queue pair fails,
// its own receives are flushed, and the completions tell. One with a shared receive queue has none of its own: the receives
// stay for the others, nothing completes, and all that tells is the event QP_LAST_WQE_REACHED. Who does not read
// it waits for ever for the next message. (It is also what says that the queue pair takes no more from the shared
// queue, so that polling once more finds the last completion: a queue pair destroyed earlier takes receives
// along.) README.md says how to make the queue pair fail.

#include <poll.h>

#include "loopback.h"

using namespace loopback;

namespace {

constexpr int kReceives = 8;

struct Program {
	bool fixed;
	ibv_context *context;
	ibv_pd *pd;
	ibv_comp_channel *channel;
	ibv_cq *client_cq, *server_cq;
	ibv_srq *srq;
	ibv_qp *client = nullptr, *server = nullptr;
	uint32_t sent = 0;
};

void connect_anew(Program &p)
{
	if (p.server) {
		must(ibv_destroy_qp(p.client), "ibv_destroy_qp");
		must(ibv_destroy_qp(p.server), "ibv_destroy_qp");
	}
	p.client = create_qp(p.pd, p.client_cq, p.client_cq);
	p.server = create_qp(p.pd, p.server_cq, p.server_cq, p.srq);
	connect_both(p.client, p.server);
	std::printf("connected: QP %u\n", p.server->qp_num);
}

void give_receive(const Program &p)
{
	ibv_recv_wr wr{}, *bad = nullptr;

	must(ibv_post_srq_recv(p.srq, &wr, &bad), "ibv_post_srq_recv");
}

void poll_dry(const Program &p)
{
	ibv_wc wc;

	while (ibv_poll_cq(p.server_cq, 1, &wc) > 0) {
		if (wc.status == IBV_WC_SUCCESS)
			std::printf("message %u\n", wc.imm_data);
		give_receive(p);
	}
}

void handle_completions(const Program &p)
{
	ibv_cq *cq;
	void *context;

	must(ibv_get_cq_event(p.channel, &cq, &context), "ibv_get_cq_event");
	ibv_ack_cq_events(cq, 1);
	must(ibv_req_notify_cq(cq, 0), "ibv_req_notify_cq");
	poll_dry(p);
}

// The queue pair takes nothing from the shared queue any more: what it took is in the CQ. Then it may go.
void handle_async(Program &p)
{
	ibv_async_event event;
	bool last;

	must(ibv_get_async_event(p.context, &event), "ibv_get_async_event");
	std::printf("event: %s\n", ibv_event_type_str(event.event_type));
	last = event.event_type == IBV_EVENT_QP_LAST_WQE_REACHED && event.element.qp == p.server;
	ibv_ack_async_event(&event); // before the destroy, which waits for it
	if (last) {
		poll_dry(p);
		connect_anew(p);
	}
}

bool handle_input(Program &p)
{
	if (!next_line())
		return false;
	send(p.client, ++p.sent);
	return true;
}

void run(Program &p)
{
	pollfd fds[3] = {{0, POLLIN, 0}, {p.channel->fd, POLLIN, 0}, {p.context->async_fd, POLLIN, 0}};
	const nfds_t listens_to = p.fixed ? 3 : 2;

	for (;;) {
		if (poll(fds, listens_to, -1) < 0)
			die("poll");
		if (fds[1].revents)
			handle_completions(p);
		else if (fds[2].revents)
			handle_async(p);
		else if (fds[0].revents && !handle_input(p))
			return;
	}
}

} // namespace

int main(int argc, char **argv)
{
	Program p{};
	ibv_srq_init_attr init{};

	p.fixed = wants_fixed(argc, argv);
	p.context = open_device(argv[1]);
	p.pd = made(ibv_alloc_pd(p.context), "ibv_alloc_pd");
	p.channel = made(ibv_create_comp_channel(p.context), "ibv_create_comp_channel");
	p.client_cq = made(ibv_create_cq(p.context, 256, nullptr, nullptr, 0), "ibv_create_cq");
	p.server_cq = made(ibv_create_cq(p.context, 64, nullptr, p.channel, 0), "ibv_create_cq");
	init.attr.max_wr = kReceives;
	init.attr.max_sge = 1;
	p.srq = made(ibv_create_srq(p.pd, &init), "ibv_create_srq");
	for (int i = 0; i < kReceives; i++)
		give_receive(p);
	must(ibv_req_notify_cq(p.server_cq, 0), "ibv_req_notify_cq");
	connect_anew(p);
	std::setvbuf(stdin, nullptr, _IONBF, 0);
	run(p);
	std::printf("end of input\n");
	return 0;
}
