/* SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB */
/* CQs and QPs as the glue makes them, with the fake kernel at their other end. */
#pragma once

#include "fake_kernel.h"
#include "objects.h"

namespace fake {

/* A CQ of the provider and its kernel's half. */
struct UserCq {
	UserCq(Device &device, uint32_t depth, uint64_t wc_flags = IBV_WC_STANDARD_FLAGS, bool alone = false)
		: handle(herald_cq_new(alone))
	{
		herald_ring_info info;

		kernel.attach(device.alloc(info, depth, sizeof(herald_cqe)), depth);
		handle->context = device.context();
		EXPECT_EQ(herald_cq_map(handle, device.fd(), &info), 0);
		herald_cq_set_ex(handle, wc_flags);
	}
	UserCq(const UserCq &) = delete;
	UserCq &operator=(const UserCq &) = delete;
	~UserCq() { herald_cq_free(handle); }

	ibv_cq *ibv() { return ibv_cq_ex_to_cq(handle); }

	/* wr_id of the next one, or -1 if there is none, or -2 - errno */
	int64_t poll()
	{
		ibv_wc wc;
		const int n = herald_poll_cq(ibv(), 1, &wc);

		return n > 0 ? int64_t(wc.wr_id) : n < 0 ? -2 + n : -1;
	}

	ibv_cq_ex *handle;
	Cq kernel;
};

/* A QP in RTS. */
struct UserQp {
	static constexpr uint32_t depth = 8;

	UserQp(Device &device, UserCq &send_cq, UserCq &recv_cq, uint32_t qpn, ibv_qp_type type = IBV_QPT_RC,
	       ibv_qp_cap cap = {4, 3, 2, 2, 32})
		: cap(cap), handle(herald_qp_new(false))
	{
		const uint32_t send_stride = 128, recv_stride = 48;
		herald_create_qp_resp resp = {};
		ibv_qp &qp = handle->qp_base;

		sq.attach(device.alloc(resp.sq, depth, send_stride), depth, send_stride);
		rq.attach(device.alloc(resp.rq, depth, recv_stride), depth, recv_stride);
		qp.context = device.context();
		qp.send_cq = send_cq.ibv();
		qp.recv_cq = recv_cq.ibv();
		qp.qp_num = qpn;
		qp.handle = qpn;
		qp.qp_type = type;
		EXPECT_EQ(herald_qp_map(handle, &resp, &cap), 0);
		herald_qp_set_ex(handle, herald_qp_ex_ops(type));
		set_state(IBV_QPS_RTS);
	}
	UserQp(const UserQp &) = delete;
	UserQp &operator=(const UserQp &) = delete;
	~UserQp()
	{
		if (handle)
			destroy();
	}

	ibv_qp *ibv() { return &handle->qp_base; }
	void set_state(ibv_qp_state state) { herald_qp_set_state(ibv(), state); }
	void destroy() { herald_qp_free(&std::exchange(handle, nullptr)->qp_base); }

	/* Post a chain of SENDs; the index of the bad one, or -1. */
	int post(int count, unsigned int flags = IBV_SEND_SIGNALED, int bad_at = -1, int *error = nullptr)
	{
		std::vector<ibv_send_wr> chain(size_t(count), ibv_send_wr{});
		ibv_send_wr *bad = nullptr;

		for (int i = 0; i < count; i++) {
			chain[i].wr_id = next_id++;
			chain[i].opcode = i == bad_at ? IBV_WR_TSO : IBV_WR_SEND;
			chain[i].send_flags = flags;
			chain[i].next = i + 1 < count ? &chain[i + 1] : nullptr;
		}
		const int rc = herald_post_send(ibv(), chain.data(), &bad);

		if (error)
			*error = rc;
		EXPECT_EQ(rc != 0, bad != nullptr);
		return bad ? int(bad - chain.data()) : -1;
	}

	int post_recv(int count, int num_sge = 0, int *error = nullptr)
	{
		std::vector<ibv_recv_wr> chain(size_t(count), ibv_recv_wr{});
		ibv_sge list[8] = {};
		ibv_recv_wr *bad = nullptr;

		for (int i = 0; i < count; i++) {
			chain[i].wr_id = next_id++;
			chain[i].sg_list = list;
			chain[i].num_sge = num_sge;
			chain[i].next = i + 1 < count ? &chain[i + 1] : nullptr;
		}
		const int rc = herald_post_recv(ibv(), chain.data(), &bad);

		if (error)
			*error = rc;
		EXPECT_EQ(rc != 0, bad != nullptr);
		return bad ? int(bad - chain.data()) : -1;
	}

	uint64_t next_id = 0;
	ibv_qp_cap cap;
	ibv_qp_ex *handle;
	Ring sq, rq;
};

} // namespace fake
