/* SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB */
/* Stands in for ioctl(2): takes doorbells and announced arms and posts, in the form that herald-ioctl.h and the uverbs describe, and nothing else. */
#include <cerrno>
#include <cstdarg>
#include <map>
#include <mutex>

#include <rdma/rdma_user_ioctl.h>

#include "fake_kernel.h"

namespace {

std::mutex lock;
std::map<int, std::vector<uint32_t>> rung;
std::map<int, std::vector<herald_arming>> announced;
std::map<int, std::vector<herald_posting>> posts;
std::map<int, int> refused;

struct Request {
	uint16_t length, object_id, method_id, num_attrs;
	uint64_t reserved1;
	uint32_t driver_id, reserved2;
	ib_uverbs_attr attr;
};
static_assert(sizeof(Request) == sizeof(ib_uverbs_ioctl_hdr) + sizeof(ib_uverbs_attr));

/* The attribute's value, or of another one than expected. */
template <class Value> Value value_of(const Request &request, uint16_t attribute)
{
	Value value;

	EXPECT_EQ(request.attr.attr_id, attribute);
	EXPECT_EQ(request.attr.len, sizeof(value));
	static_assert(sizeof(value) == sizeof(request.attr.data));
	memcpy(&value, &request.attr.data, sizeof(value));
	return value;
}

/* 0 or an errno */
int take(int fd, const Request &request)
{
	EXPECT_EQ(request.length, sizeof(request));
	EXPECT_EQ(request.object_id, UVERBS_OBJECT_DEVICE);
	EXPECT_EQ(request.num_attrs, 1);
	EXPECT_EQ(request.driver_id, uint32_t(RDMA_DRIVER_UNKNOWN));
	EXPECT_EQ(request.reserved1 + request.reserved2 + request.attr.attr_data.reserved, 0u);
	EXPECT_EQ(request.attr.flags, UVERBS_ATTR_F_MANDATORY);

	std::lock_guard guard(lock);

	if (request.method_id == HERALD_METHOD_ARMING) {
		announced[fd].push_back(value_of<herald_arming>(request, HERALD_ATTR_ARMING));
		return 0;
	}
	if (request.method_id == HERALD_METHOD_POSTING) {
		posts[fd].push_back(value_of<herald_posting>(request, HERALD_ATTR_POSTING));
		return refused[fd];
	}
	EXPECT_EQ(request.method_id, HERALD_METHOD_DOORBELL);
	const auto bell = value_of<herald_doorbell>(request, HERALD_ATTR_DOORBELL);
	EXPECT_NE(bell.qpn, 0u);
	rung[fd].push_back(bell.queues);
	return 0;
}

} // namespace

std::vector<uint32_t> fake::take_doorbells(int fd)
{
	std::lock_guard guard(lock);
	auto node = rung.extract(fd);

	return node ? std::move(node.mapped()) : std::vector<uint32_t>();
}

std::vector<herald_arming> fake::take_announced(int fd)
{
	std::lock_guard guard(lock);
	auto node = announced.extract(fd);

	return node ? std::move(node.mapped()) : std::vector<herald_arming>();
}

std::vector<herald_posting> fake::take_posts(int fd)
{
	std::lock_guard guard(lock);
	auto node = posts.extract(fd);

	return node ? std::move(node.mapped()) : std::vector<herald_posting>();
}

void fake::refuse_posts(int fd, int error)
{
	std::lock_guard guard(lock);

	refused[fd] = error;
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
	errno = take(fd, *request);
	return errno ? -1 : 0;
}
