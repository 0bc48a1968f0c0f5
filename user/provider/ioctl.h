/* SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB */
/* herald's own ioctls: the doorbell says which of a QP's rings to look at; arms and posts are announced. */
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

/* Call a method of the device object with one small attribute.  0 or an errno. */
template <class Value> int call_device(int fd, uint16_t method, uint16_t attribute, const Value &value) noexcept
{
	constexpr size_t size = sizeof(ib_uverbs_ioctl_hdr) + sizeof(ib_uverbs_attr);
	alignas(8) std::byte request[size] = {};
	ib_uverbs_ioctl_hdr header = {};
	ib_uverbs_attr attr = {};

	static_assert(sizeof(value) == sizeof(attr.data));
	header.length = size;
	header.object_id = UVERBS_OBJECT_DEVICE;
	header.method_id = method;
	header.num_attrs = 1;
	header.driver_id = RDMA_DRIVER_UNKNOWN;
	attr.attr_id = attribute;
	attr.len = sizeof(value);
	attr.flags = UVERBS_ATTR_F_MANDATORY;
	memcpy(&attr.data, &value, sizeof(value));
	memcpy(request, &header, sizeof(header));
	memcpy(request + sizeof(header), &attr, sizeof(attr));
	return ioctl(fd, RDMA_VERBS_IOCTL, request) ? errno : 0;
}

/* Look at these queues (enum herald_doorbell_queues) of the QP.  0 or an errno. */
inline int ring_doorbell(const ibv_qp &qp, uint32_t queues) noexcept
{
	const herald_doorbell bell = {qp.qp_num, queues};

	return call_device(qp.context->cmd_fd, HERALD_METHOD_DOORBELL, HERALD_ATTR_DOORBELL, bell);
}

/* Say that a CQ is about to be armed, or was (enum herald_arming_moment).  0 or an errno. */
inline int announce_arm(int fd, uint32_t cq_id, uint32_t moment) noexcept
{
	const herald_arming arming = {cq_id, moment};

	return call_device(fd, HERALD_METHOD_ARMING, HERALD_ATTR_ARMING, arming);
}

/* Say that something is about to be posted (enum herald_posting_queue).  0, or the errno that it fails with. */
inline int announce_post(int fd, uint32_t number, uint32_t queue) noexcept
{
	const herald_posting posting = {number, queue};

	return call_device(fd, HERALD_METHOD_POSTING, HERALD_ATTR_POSTING, posting);
}

} // namespace herald
