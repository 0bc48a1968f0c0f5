// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
//
// A bug on purpose: it acks the events of two CQs on one of them.
//
//	acks_wrong_cq DEVICE [--fixed]
//
// Two CQs share a completion channel: one has the completions of sends, the other those of receives. Each line on the
// standard input is a message that the program sends to itself; at the end of the input it destroys all that it has
// made, and says so. Or it never gets that far: ibv_destroy_cq waits until every event that was got of this CQ is
// acked, and the acks went to another. Nothing else shows, as long as the program runs. README.md says how to see it.

#include <poll.h>

#include "loopback.h"

using namespace loopback;

namespace {

struct Program {
	bool fixed;
	ibv_comp_channel *channel;
	ibv_cq *send_cq, *recv_cq;
	ibv_qp *sender, *receiver;
	uint32_t sent = 0;
};

void arm(ibv_cq *cq)
{
	must(ibv_req_notify_cq(cq, 0), "ibv_req_notify_cq");
}

void poll_dry(const Program &program, ibv_cq *cq)
{
	ibv_wc wc;

	while (ibv_poll_cq(cq, 1, &wc) > 0) {
		if (wc.status != IBV_WC_SUCCESS)
			die(ibv_wc_status_str(wc.status));
		if (cq == program.recv_cq)
			std::printf("message %u\n", wc.imm_data);
	}
}

void handle_event(const Program &program)
{
	ibv_cq *cq;
	void *context;

	must(ibv_get_cq_event(program.channel, &cq, &context), "ibv_get_cq_event");
	// The event says whose it is, and that is who gets the ack.
	ibv_ack_cq_events(program.fixed ? cq : program.recv_cq, 1);
	arm(cq);
	poll_dry(program, cq); // after arming: see polls_before_arming.cc
}

bool handle_input(Program &program)
{
	if (!next_line())
		return false;
	receive(program.receiver);
	send(program.sender, ++program.sent);
	return true;
}

void run(Program &program)
{
	pollfd fds[2] = {{0, POLLIN, 0}, {program.channel->fd, POLLIN, 0}};

	for (;;) {
		if (poll(fds, 2, -1) < 0)
			die("poll");
		if (fds[1].revents)
			handle_event(program);
		else if (fds[0].revents && !handle_input(program))
			return;
	}
}

} // namespace

int main(int argc, char **argv)
{
	Program program{};

	program.fixed = wants_fixed(argc, argv);
	ibv_context *context = open_device(argv[1]);
	ibv_pd *pd = made(ibv_alloc_pd(context), "ibv_alloc_pd");

	program.channel = made(ibv_create_comp_channel(context), "ibv_create_comp_channel");
	program.send_cq = made(ibv_create_cq(context, 16, nullptr, program.channel, 0), "ibv_create_cq");
	program.recv_cq = made(ibv_create_cq(context, 64, nullptr, program.channel, 0), "ibv_create_cq");
	program.sender = create_qp(pd, program.send_cq, program.send_cq);
	program.receiver = create_qp(pd, program.recv_cq, program.recv_cq);
	connect_both(program.sender, program.receiver);
	arm(program.send_cq);
	arm(program.recv_cq);
	std::printf("sends: a CQ of %d; receives: a CQ of %d\n", program.send_cq->cqe, program.recv_cq->cqe);

	// one line at a time: what poll() does not see must not be in stdio's buffer
	std::setvbuf(stdin, nullptr, _IONBF, 0);
	run(program);

	must(ibv_destroy_qp(program.sender), "ibv_destroy_qp");
	must(ibv_destroy_qp(program.receiver), "ibv_destroy_qp");
	must(ibv_destroy_cq(program.send_cq), "ibv_destroy_cq");
	must(ibv_destroy_cq(program.recv_cq), "ibv_destroy_cq");
	must(ibv_destroy_comp_channel(program.channel), "ibv_destroy_comp_channel");
	must(ibv_dealloc_pd(pd), "ibv_dealloc_pd");
	must(ibv_close_device(context), "ibv_close_device");
	std::printf("all is destroyed\n");
	return 0;
}
