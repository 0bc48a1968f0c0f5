/* SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB */
/* Stands in for ioctl(2): takes doorbells, in the form that herald-ioctl.h and the uverbs describe, and nothing else. */
#include <cerrno>
#include <cstdarg>
#include <map>
#include <mutex>

#include <rdma/rdma_user_ioctl.h>

#include "fake_kernel.h"

namespace {

std::mutex lock;
std::map<int, std::vector<uint32_t>> rung;

struct Request {
	uint16_t length, object_id, method_id, num_attrs;
	uint64_t reserved1;
	uint32_t driver_id, reserved2;
	ib_uverbs_attr attr;
};
static_assert(sizeof(Request) == sizeof(ib_uverbs_ioctl_hdr) + sizeof(ib_uverbs_attr));

void take(int fd, const Request &request)
{
	herald_doorbell bell;

	EXPECT_EQ(request.length, sizeof(request));
	EXPECT_EQ(request.object_id, UVERBS_OBJECT_DEVICE);
	EXPECT_EQ(request.method_id, HERALD_METHOD_DOORBELL);
	EXPECT_EQ(request.num_attrs, 1);
	EXPECT_EQ(request.driver_id, uint32_t(RDMA_DRIVER_UNKNOWN));
	EXPECT_EQ(request.reserved1 + request.reserved2 + request.attr.attr_data.reserved, 0u);
	EXPECT_EQ(request.attr.attr_id, HERALD_ATTR_DOORBELL);
	EXPECT_EQ(request.attr.flags, UVERBS_ATTR_F_MANDATORY);
	EXPECT_EQ(request.attr.len, sizeof(bell));
	memcpy(&bell, &request.attr.data, sizeof(bell));
	EXPECT_NE(bell.qpn, 0u);

	std::lock_guard guard(lock);

	rung[fd].push_back(bell.queues);
}

} // namespace

std::vector<uint32_t> fake::take_doorbells(int fd)
{
	std::lock_guard guard(lock);
	auto node = rung.extract(fd);

	return node ? std::move(node.mapped()) : std::vector<uint32_t>();
}

extern "C" int ioctl(int fd, unsigned long number, ...) noexcept
{
	va_list args;

	va_start(args, number);
	const auto *request = va_arg(args, const Request *);
	va_end(args);
	EXPECT_EQ(number, RDMA_VERBS_IOCTL);
	if (fd < 0) {
		errno = EBADF;
		return -1;
	}
	take(fd, *request);
	return 0;
}
