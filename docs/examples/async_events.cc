// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
//
// Asynchronous events with their natural causes.
//
//	async_events DEVICE
//
// Two queue pairs of this process are connected to each other; the second receives through a shared
// receive queue (SRQ).
//
//  1. The SRQ has eight receives and a limit of four. The fifth message takes it below the limit:
//     "SRQ limit reached", once, and the limit reads zero from then on.
//  2. An RDMA write with an rkey that nobody gave out. The writer's completion says "remote access
//     error"; the queue pair that refused goes to the error state and its owner is told by an event,
//     and by a second one that it will take nothing from the SRQ any more.
//
// Ends with status 0 if exactly these events came, in this order.

#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <vector>

#include <infiniband/verbs.h>
#include <poll.h>

namespace {

constexpr int kReceives = 8;
constexpr int kLimit = 4;
constexpr int kPatienceMs = 10'000;
constexpr int kQuietMs = 300; // so long nothing more may come

[[noreturn]] void die(const char *what)
{
	std::perror(what);
	std::exit(1);
}

// What ibv_create_*() returned, given back at the end of its scope.
template <auto Destroy> struct Deleter {
	template <typename T> void operator()(T *object) const
	{
		if (Destroy(object))
			std::perror("destroy");
	}
};
template <typename T, auto Destroy> using Handle = std::unique_ptr<T, Deleter<Destroy>>;

using Context = Handle<ibv_context, ibv_close_device>;
using Pd = Handle<ibv_pd, ibv_dealloc_pd>;
using Cq = Handle<ibv_cq, ibv_destroy_cq>;
using Srq = Handle<ibv_srq, ibv_destroy_srq>;
using Qp = Handle<ibv_qp, ibv_destroy_qp>;
using Mr = Handle<ibv_mr, ibv_dereg_mr>;

template <typename H> H made(typename H::pointer object, const char *what)
{
	if (!object)
		die(what);
	return H(object);
}

Context open_device(const char *name)
{
	ibv_device **list = ibv_get_device_list(nullptr);
	ibv_context *context = nullptr;

	for (int i = 0; list && list[i]; i++) {
		if (!std::strcmp(ibv_get_device_name(list[i]), name))
			context = ibv_open_device(list[i]);
	}
	if (list)
		ibv_free_device_list(list);
	return made<Context>(context, name);
}

struct Address {
	int index = -1;
	ibv_gid gid{};
};

Address first_roce_v2_address(ibv_context *context)
{
	for (int i = 0;; i++) {
		ibv_gid_entry entry{};

		if (ibv_query_gid_ex(context, 1, i, &entry, 0))
			die("no RoCEv2 GID");
		if (entry.gid_type == IBV_GID_TYPE_ROCE_V2)
			return {i, entry.gid};
	}
}

Qp create_qp(ibv_pd *pd, ibv_cq *cq, ibv_srq *srq)
{
	ibv_qp_init_attr init{};

	init.qp_type = IBV_QPT_RC;
	init.send_cq = init.recv_cq = cq;
	init.srq = srq;
	init.cap.max_send_wr = init.cap.max_recv_wr = 16;
	init.cap.max_send_sge = init.cap.max_recv_sge = 1;
	init.sq_sig_all = 1;
	return made<Qp>(ibv_create_qp(pd, &init), "ibv_create_qp");
}

void modify(ibv_qp *qp, ibv_qp_attr attr, int mask)
{
	if (ibv_modify_qp(qp, &attr, mask))
		die("ibv_modify_qp");
}

// RESET to RTS, connected to `peer` on the same device.
void connect(ibv_qp *qp, const ibv_qp *peer, const Address &address)
{
	ibv_qp_attr attr{};

	attr.qp_state = IBV_QPS_INIT;
	attr.port_num = 1;
	attr.qp_access_flags = IBV_ACCESS_REMOTE_WRITE;
	modify(qp, attr, IBV_QP_STATE | IBV_QP_PKEY_INDEX | IBV_QP_PORT | IBV_QP_ACCESS_FLAGS);

	attr = {};
	attr.qp_state = IBV_QPS_RTR;
	attr.path_mtu = IBV_MTU_1024;
	attr.dest_qp_num = peer->qp_num;
	attr.max_dest_rd_atomic = 1;
	attr.min_rnr_timer = 12;
	attr.ah_attr.is_global = 1;
	attr.ah_attr.port_num = 1;
	attr.ah_attr.grh.dgid = address.gid;
	attr.ah_attr.grh.sgid_index = static_cast<uint8_t>(address.index);
	attr.ah_attr.grh.hop_limit = 1;
	modify(qp, attr,
	       IBV_QP_STATE | IBV_QP_AV | IBV_QP_PATH_MTU | IBV_QP_DEST_QPN | IBV_QP_RQ_PSN |
		       IBV_QP_MAX_DEST_RD_ATOMIC | IBV_QP_MIN_RNR_TIMER);

	attr = {};
	attr.qp_state = IBV_QPS_RTS;
	attr.timeout = 14;
	attr.retry_cnt = attr.rnr_retry = 7;
	attr.max_rd_atomic = 1;
	modify(qp, attr,
	       IBV_QP_STATE | IBV_QP_TIMEOUT | IBV_QP_RETRY_CNT | IBV_QP_RNR_RETRY | IBV_QP_SQ_PSN |
		       IBV_QP_MAX_QP_RD_ATOMIC);
}

void post_receive(ibv_srq *srq, const ibv_mr *mr)
{
	ibv_sge sge{reinterpret_cast<uint64_t>(mr->addr), static_cast<uint32_t>(mr->length), mr->lkey};
	ibv_recv_wr wr{}, *bad = nullptr;

	wr.sg_list = &sge;
	wr.num_sge = 1;
	if (ibv_post_srq_recv(srq, &wr, &bad))
		die("ibv_post_srq_recv");
}

void post_send(ibv_qp *qp, const ibv_mr *mr, ibv_wr_opcode opcode, uint32_t rkey = 0)
{
	ibv_sge sge{reinterpret_cast<uint64_t>(mr->addr), 8, mr->lkey};
	ibv_send_wr wr{}, *bad = nullptr;

	wr.sg_list = &sge;
	wr.num_sge = 1;
	wr.opcode = opcode;
	wr.wr.rdma.remote_addr = sge.addr;
	wr.wr.rdma.rkey = rkey;
	if (ibv_post_send(qp, &wr, &bad))
		die("ibv_post_send");
}

ibv_wc next_completion(ibv_cq *cq)
{
	const auto end = std::chrono::steady_clock::now() + std::chrono::milliseconds(kPatienceMs);
	ibv_wc wc{};
	int n;

	while (!(n = ibv_poll_cq(cq, 1, &wc))) {
		if (std::chrono::steady_clock::now() > end) {
			std::fprintf(stderr, "no completion\n");
			std::exit(1);
		}
	}
	if (n < 0)
		die("ibv_poll_cq");
	return wc;
}

bool event_within(ibv_context *context, int milliseconds)
{
	pollfd fd{context->async_fd, POLLIN, 0};

	return poll(&fd, 1, milliseconds) == 1;
}

// Waits for the next asynchronous event, which must be `type` and concern `element`.
void expect_event(ibv_context *context, ibv_event_type type, const void *element)
{
	ibv_async_event event{};

	if (!event_within(context, kPatienceMs) || ibv_get_async_event(context, &event)) {
		std::fprintf(stderr, "no event; \"%s\" was due\n", ibv_event_type_str(type));
		std::exit(1);
	}
	// the members of the union are pointers, whatever they point to
	const bool same = event.event_type == type && event.element.qp == element;

	std::printf("event: %s\n", ibv_event_type_str(event.event_type));
	ibv_ack_async_event(&event);
	if (!same) {
		std::fprintf(stderr, "\"%s\" was due, for another object\n", ibv_event_type_str(type));
		std::exit(1);
	}
}

void expect_silence(ibv_context *context)
{
	if (event_within(context, kQuietMs)) {
		std::fprintf(stderr, "one event too many\n");
		std::exit(1);
	}
}

ibv_srq_attr query(ibv_srq *srq)
{
	ibv_srq_attr attr{};

	if (ibv_query_srq(srq, &attr))
		die("ibv_query_srq");
	return attr;
}

void reach_the_limit(ibv_context *context, ibv_qp *sender, ibv_cq *cq, ibv_srq *srq, const ibv_mr *mr)
{
	ibv_srq_attr attr{};

	for (int i = 0; i < kReceives; i++)
		post_receive(srq, mr);
	attr.srq_limit = kLimit;
	if (ibv_modify_srq(srq, &attr, IBV_SRQ_LIMIT))
		die("ibv_modify_srq");
	std::printf("SRQ with %d receives, limit %u\n", kReceives, query(srq).srq_limit);

	for (int sent = 1; sent <= kReceives - kLimit + 1; sent++) {
		post_send(sender, mr, IBV_WR_SEND);
		for (int side = 0; side < 2; side++) {
			if (next_completion(cq).status != IBV_WC_SUCCESS)
				die("a message was not delivered");
		}
		std::printf("message %d received, %d receives left\n", sent, kReceives - sent);
		if (kReceives - sent >= kLimit)
			expect_silence(context);
	}
	expect_event(context, IBV_EVENT_SRQ_LIMIT_REACHED, srq);
	std::printf("limit now: %u\n", query(srq).srq_limit);
	expect_silence(context);
}

void break_in(ibv_context *context, ibv_qp *sender, ibv_qp *receiver, ibv_cq *cq, const ibv_mr *mr)
{
	post_send(sender, mr, IBV_WR_RDMA_WRITE, mr->rkey ^ 0x5a);
	const ibv_wc wc = next_completion(cq);

	std::printf("write with a wrong rkey: %s\n", ibv_wc_status_str(wc.status));
	if (wc.status != IBV_WC_REM_ACCESS_ERR)
		std::exit(1);
	expect_event(context, IBV_EVENT_QP_ACCESS_ERR, receiver);
	expect_event(context, IBV_EVENT_QP_LAST_WQE_REACHED, receiver);
	expect_silence(context);
}

} // namespace

int main(int argc, char **argv)
{
	if (argc != 2) {
		std::fprintf(stderr, "usage: %s DEVICE\n", argv[0]);
		return 2;
	}
	std::setvbuf(stdout, nullptr, _IOLBF, 0);
	const Context context = open_device(argv[1]);
	const Address address = first_roce_v2_address(context.get());
	const Pd pd = made<Pd>(ibv_alloc_pd(context.get()), "ibv_alloc_pd");
	const Cq cq = made<Cq>(ibv_create_cq(context.get(), 64, nullptr, nullptr, 0), "ibv_create_cq");
	std::vector<char> memory(64);
	const Mr mr = made<Mr>(
		ibv_reg_mr(pd.get(), memory.data(), memory.size(), IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE),
		"ibv_reg_mr");
	ibv_srq_init_attr init{};

	init.attr.max_wr = 16;
	init.attr.max_sge = 1;
	const Srq srq = made<Srq>(ibv_create_srq(pd.get(), &init), "ibv_create_srq");
	const Qp sender = create_qp(pd.get(), cq.get(), nullptr);
	const Qp receiver = create_qp(pd.get(), cq.get(), srq.get());

	connect(receiver.get(), sender.get(), address);
	connect(sender.get(), receiver.get(), address);
	// "communication established" is for a receiver in RTR only; both are past it
	reach_the_limit(context.get(), sender.get(), cq.get(), srq.get(), mr.get());
	break_in(context.get(), sender.get(), receiver.get(), cq.get(), mr.get());
	return 0;
}
