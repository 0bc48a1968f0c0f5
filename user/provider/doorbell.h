/* SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB */
/*
 * The doorbell: a POST_SEND or POST_RECV write command without a work request.
 * For a QP of a process the kernel takes that as "look at the ring".
 */
#pragma once

#include <cerrno>
#include <cstdint>

#include <unistd.h>

#include <infiniband/verbs.h>
#include <rdma/ib_user_verbs.h>

namespace herald {

namespace detail {

template <class Command> int ring_doorbell(const ibv_qp &qp, uint32_t number, uint32_t wqe_size) noexcept
{
	struct {
		ib_uverbs_cmd_hdr header;
		Command command;
	} request = {};
	uint32_t answer; /* bad_wr, of which there is none */

	static_assert(sizeof(request) % 4 == 0 && sizeof(request) == sizeof(request.header) + sizeof(Command));
	request.header.command = number;
	request.header.in_words = sizeof(request) / 4;
	request.header.out_words = sizeof(answer) / 4;
	request.command.response = reinterpret_cast<uintptr_t>(&answer);
	request.command.qp_handle = qp.handle;
	request.command.wqe_size = wqe_size;
	return write(qp.context->cmd_fd, &request, sizeof(request)) == sizeof(request) ? 0 : errno;
}

} // namespace detail

inline int ring_send_doorbell(const ibv_qp &qp) noexcept
{
	return detail::ring_doorbell<ib_uverbs_post_send>(qp, IB_USER_VERBS_CMD_POST_SEND, sizeof(ib_uverbs_send_wr));
}

inline int ring_recv_doorbell(const ibv_qp &qp) noexcept
{
	return detail::ring_doorbell<ib_uverbs_post_recv>(qp, IB_USER_VERBS_CMD_POST_RECV, sizeof(ib_uverbs_recv_wr));
}

} // namespace herald
