/* SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB */
/* Queue pairs: life, state, ibv_post_send, ibv_bind_mw. */
#include "ioctl.h"
#include "objects.h"

using namespace herald;

/* ---------------------------------------------------------------- life -- */

struct ibv_qp_ex *herald_qp_new(bool single_threaded) noexcept
{
	Qp *qp = make<Qp>(single_threaded);

	return qp ? &qp->verbs.ex : nullptr;
}

static size_t send_stride(const ibv_qp_cap &cap) noexcept
{
	const size_t sges = cap.max_send_sge * sizeof(herald_sge);

	return HERALD_SEND_WQE_HDR + (sges > cap.max_inline_data ? sges : cap.max_inline_data);
}

static int map_sq(Qp &qp, int fd, const herald_ring_info &info, const ibv_qp_cap &cap) noexcept
{
	auto mapping = map_ring(fd, info, HERALD_RING_DATA_OFFSET, send_stride(cap), cap.max_send_wr);

	if (!mapping)
		return mapping.error();
	qp.sq_mapping = std::move(mapping).take();
	qp.sq.attach(qp.sq_mapping.base(), info.depth, info.stride, cap.max_send_wr);
	return 0;
}

static int map_rq(Qp &qp, int fd, const herald_ring_info &info, const ibv_qp_cap &cap) noexcept
{
	auto mapping = map_ring(fd, info, HERALD_RING_DATA_OFFSET,
				HERALD_RECV_WQE_HDR + cap.max_recv_sge * sizeof(herald_sge), cap.max_recv_wr);

	if (!mapping)
		return mapping.error();
	qp.rq_mapping = std::move(mapping).take();
	qp.rq.attach(qp.rq_mapping.base(), info.depth, info.stride, cap.max_recv_wr);
	qp.recv_max_sge = cap.max_recv_sge;
	return 0;
}

static void link_cqs(Qp &qp) noexcept
{
	qp.linked = true;
	{
		Cq &cq = qp.send_cq();
		Visit visit(cq.lock);

		qp.next_sender = cq.senders;
		qp.sender_link = &cq.senders;
		if (cq.senders)
			cq.senders->sender_link = &qp.next_sender;
		cq.senders = &qp;
		cq.users++;
	}
	Cq &cq = qp.recv_cq();
	Visit visit(cq.lock);

	cq.users++;
}

static void unlink_cqs(Qp &qp) noexcept
{
	{
		Cq &cq = qp.send_cq();
		Visit visit(cq.lock);

		*qp.sender_link = qp.next_sender;
		if (qp.next_sender)
			qp.next_sender->sender_link = qp.sender_link;
		cq.users--;
	}
	Cq &cq = qp.recv_cq();
	Visit visit(cq.lock);

	cq.users--;
}

int herald_qp_map(struct ibv_qp_ex *handle, const struct herald_create_qp_resp *resp,
		  const struct ibv_qp_cap *cap) noexcept
{
	Qp &qp = Qp::of(handle);
	const ibv_qp &ibv = handle->qp_base;
	const int fd = ibv.context->cmd_fd;
	int error = 0;

	qp.limits = {static_cast<uint32_t>(ibv.qp_type), cap->max_send_sge, cap->max_inline_data};
	if (resp->sq.depth || cap->max_send_wr)
		error = map_sq(qp, fd, resp->sq, *cap);
	if (!error && !ibv.srq && (resp->rq.depth || cap->max_recv_wr))
		error = map_rq(qp, fd, resp->rq, *cap);
	if (!error)
		link_cqs(qp);
	return error;
}

/* The QP makes no completions any more: remove those that are left. */
static void purge_cqs(Qp &qp) noexcept
{
	const uint32_t qpn = qp.verbs.ex.qp_base.qp_num;
	Cq &send_cq = qp.send_cq(), &recv_cq = qp.recv_cq();

	send_cq.purge(qpn);
	if (&recv_cq != &send_cq)
		recv_cq.purge(qpn);
}

void herald_qp_free(struct ibv_qp *handle) noexcept
{
	Qp &qp = Qp::of(handle);

	if (qp.linked) {
		purge_cqs(qp);
		unlink_cqs(qp);
	}
	discard(&qp);
}

/* --------------------------------------------------------------- state -- */

void herald_qp_set_state(struct ibv_qp *handle, enum ibv_qp_state state) noexcept
{
	Qp::of(handle).state.store(state, std::memory_order_relaxed);
}

void herald_qp_reset_begin(struct ibv_qp *handle) noexcept
{
	Qp &qp = Qp::of(handle);

	qp.sq_lock.visit();
	qp.rq_lock.visit();
}

void herald_qp_reset_end(struct ibv_qp *handle, bool done) noexcept
{
	Qp &qp = Qp::of(handle);

	if (done) {
		qp.state.store(IBV_QPS_RESET, std::memory_order_relaxed);
		qp.sq.reset();
		qp.rq.reset();
	}
	qp.rq_lock.unlock();
	qp.sq_lock.unlock();
	if (done)
		purge_cqs(qp);
}

/* ------------------------------------------------------------- posting -- */

/* Fill slots from the list up to the first bad WR, which goes to @bad; the caller holds the lock. */
static int fill(Qp &qp, ibv_send_wr *wr, ibv_send_wr **bad) noexcept
{
	const CqRing &cq = qp.send_cq().ring;
	int error = 0;

	if (!qp.may_post_send()) [[unlikely]]
		error = EINVAL;
	for (; wr && !error; wr = wr->next) {
		error = qp.sq.has_room(cq) ? encode_send(qp.sq.next_slot(), *wr, qp.limits) : ENOMEM;
		if (error)
			break;
		qp.sq.push();
	}
	if (error)
		*bad = wr;
	return error;
}

int herald_post_send(struct ibv_qp *handle, struct ibv_send_wr *wr, struct ibv_send_wr **bad_wr) noexcept
{
	Qp &qp = Qp::of(handle);
	int error;
	bool any;

	{
		Guard guard(qp.sq_lock);
		const uint32_t before = qp.sq.head();

		error = fill(qp, wr, bad_wr);
		any = qp.sq.head() != before;
		if (any && qp.sq.asks()) [[unlikely]] {
			if (int refused = qp.may_post(HERALD_POSTING_SEND)) {
				qp.sq.rewind(before);
				*bad_wr = wr;
				return refused;
			}
		}
		if (any)
			qp.sq.publish();
	}
	/* without the lock: the doorbell does the work, and others may post meanwhile */
	if (any) {
		/* only a device that is gone refuses it; the WRs then stay where they are */
		int refused = ring_doorbell(*handle, HERALD_DOORBELL_SEND);

		if (refused && !error) {
			*bad_wr = wr;
			error = refused;
		}
	}
	return error;
}

int herald_bind_mw(struct ibv_qp *handle, struct ibv_mw *mw, struct ibv_mw_bind *bind) noexcept
{
	ibv_send_wr wr = {};
	ibv_send_wr *bad;

	wr.opcode = IBV_WR_BIND_MW;
	wr.wr_id = bind->wr_id;
	wr.send_flags = bind->send_flags;
	wr.bind_mw.mw = mw;
	wr.bind_mw.rkey = ibv_inc_rkey(mw->rkey);
	wr.bind_mw.bind_info = bind->bind_info;

	int error = herald_post_send(handle, &wr, &bad);

	if (!error)
		mw->rkey = wr.bind_mw.rkey;
	return error;
}
