/* SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB */
/* The doorbell: one ioctl that says which of a QP's rings to look at. */
#pragma once

#include <cerrno>
#include <cstddef>
#include <cstdint>
#include <cstring>

#include <sys/ioctl.h>

#include <infiniband/verbs.h>
#include <rdma/herald-ioctl.h>
#include <rdma/rdma_user_ioctl.h>

namespace herald {

/* Look at these queues (enum herald_doorbell_queues) of the QP.  0 or an errno. */
inline int ring_doorbell(const ibv_qp &qp, uint32_t queues) noexcept
{
	constexpr size_t size = sizeof(ib_uverbs_ioctl_hdr) + sizeof(ib_uverbs_attr);
	const herald_doorbell bell = {qp.qp_num, queues};
	alignas(8) std::byte request[size] = {};
	ib_uverbs_ioctl_hdr header = {};
	ib_uverbs_attr attr = {};

	static_assert(sizeof(bell) == sizeof(attr.data));
	header.length = size;
	header.object_id = UVERBS_OBJECT_DEVICE;
	header.method_id = HERALD_METHOD_DOORBELL;
	header.num_attrs = 1;
	header.driver_id = RDMA_DRIVER_UNKNOWN;
	attr.attr_id = HERALD_ATTR_DOORBELL;
	attr.len = sizeof(bell);
	attr.flags = UVERBS_ATTR_F_MANDATORY;
	memcpy(&attr.data, &bell, sizeof(bell));
	memcpy(request, &header, sizeof(header));
	memcpy(request + sizeof(header), &attr, sizeof(attr));
	return ioctl(qp.context->cmd_fd, RDMA_VERBS_IOCTL, request) ? errno : 0;
}

} // namespace herald
