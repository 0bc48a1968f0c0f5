/* SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB */
#include "fixture.h"

#include <fcntl.h>
#include <poll.h>
#include <sys/mman.h>

#include <algorithm>
#include <cstdlib>
#include <thread>

namespace conformance {

static int env_int(const char *name, int fallback)
{
	const char *value = getenv(name);

	return value && *value ? atoi(value) : fallback;
}

int slowness()
{
	return std::max(1, env_int("FACTOR", 1));
}
Millis patience()
{
	return Millis(1000 * env_int("HERALD_PATIENCE", 30 * slowness()));
}
Millis quiet()
{
	return Millis(200 * std::min(slowness(), 2));
}
bool long_form()
{
	return env_int("HERALD_LONG", 0) != 0;
}

void fail(const std::string &what)
{
	throw std::runtime_error(what);
}

void require(bool ok, const std::string &what)
{
	if (!ok)
		fail(what + ": " + strerror(errno));
}

void require_ok(int rc, const std::string &what)
{
	if (rc)
		fail(what + ": " + strerror(code(rc)));
}

/* -------------------------------------------------------------- device -- */

Context open_device(const std::string &name)
{
	int n = 0;
	ibv_device **list = ibv_get_device_list(&n);
	ibv_context *ctx = nullptr;

	require(list, "ibv_get_device_list");
	errno = ENODEV;
	for (int i = 0; i < n && !ctx; i++) {
		if (name.empty() || name == ibv_get_device_name(list[i]))
			ctx = ibv_open_device(list[i]);
	}
	int saved = errno;
	ibv_free_device_list(list);
	errno = saved;
	require(ctx, "ibv_open_device " + name);
	return Context(ctx);
}

static std::string device_under_test()
{
	const char *wanted = getenv("HERALD_DEV");

	return wanted ? wanted : "";
}

Device::Device() : Device(device_under_test()) {}

Device::Device(const std::string &wanted) : ctx(open_device(wanted))
{
	name = ibv_get_device_name(ctx->device);
	require_ok(ibv_query_device(ctx, &attr), "ibv_query_device");
	require_ok(ibv_query_port(ctx, port_num, &port), "ibv_query_port");
	/* waiting is poll(2)'s; a spurious wake-up must not hang a test */
	require(fcntl(ctx->async_fd, F_SETFL, fcntl(ctx->async_fd, F_GETFL) | O_NONBLOCK) == 0, "async fd");
}

static bool is_v4(const ibv_gid &gid)
{
	static const uint8_t prefix[12] = {0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0xff, 0xff};

	return memcmp(gid.raw, prefix, sizeof(prefix)) == 0;
}

bool Device::is_v4(int gid_index) const
{
	return conformance::is_v4(gid(gid_index));
}

std::optional<int> Device::find_gid(Family family) const
{
	for (int i = 0; i < port.gid_tbl_len; i++) {
		ibv_gid_entry entry{};

		if (ibv_query_gid_ex(ctx, port_num, i, &entry, 0) || entry.gid_type != IBV_GID_TYPE_ROCE_V2)
			continue;
		/* a link-local one will not do: on lo nothing leads to it */
		if (conformance::is_v4(entry.gid) == (family == Family::v4) &&
		    !(entry.gid.raw[0] == 0xfe && entry.gid.raw[1] == 0x80))
			return i;
	}
	return {};
}

int Device::gid_index() const
{
	int wanted = env_int("HERALD_GID_INDEX", -1);

	if (wanted >= 0)
		return wanted;
	if (auto i = find_gid(Family::v4))
		return *i;
	if (auto i = find_gid(Family::v6))
		return *i;
	fail(name + " has no RoCEv2 GID");
}

ibv_gid Device::gid(int index) const
{
	ibv_gid gid{};

	require_ok(ibv_query_gid(ctx, port_num, index, &gid), "ibv_query_gid");
	return gid;
}

/* ------------------------------------------------------------- objects -- */

Pd make_pd(ibv_context *ctx)
{
	Pd pd(ibv_alloc_pd(ctx));

	require(pd, "ibv_alloc_pd");
	return pd;
}

Cq make_cq(ibv_context *ctx, int cqe, ibv_comp_channel *channel, void *cq_context, int vector)
{
	Cq cq(ibv_create_cq(ctx, cqe, cq_context, channel, vector));

	require(cq, "ibv_create_cq");
	return cq;
}

Channel make_channel(ibv_context *ctx)
{
	Channel channel(ibv_create_comp_channel(ctx));

	require(channel, "ibv_create_comp_channel");
	require(fcntl(channel->fd, F_SETFL, fcntl(channel->fd, F_GETFL) | O_NONBLOCK) == 0, "channel fd");
	return channel;
}

Srq make_srq(ibv_pd *pd, uint32_t max_wr, uint32_t max_sge, uint32_t limit)
{
	ibv_srq_init_attr init{};

	init.attr.max_wr = max_wr;
	init.attr.max_sge = max_sge;
	init.attr.srq_limit = limit;
	Srq srq(ibv_create_srq(pd, &init));
	require(srq, "ibv_create_srq");
	return srq;
}

Region::Region(ibv_pd *pd, size_t size, int access) : size_(size)
{
	void *p = mmap(nullptr, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	require(p != MAP_FAILED, "mmap");
	data_ = static_cast<uint8_t *>(p);
	mr = Mr(ibv_reg_mr(pd, data_, size, access));
	if (!mr) {
		int saved = errno;

		munmap(data_, size_);
		errno = saved;
		require(false, "ibv_reg_mr");
	}
}

Region::Region(Region &&o) noexcept
	: data_(std::exchange(o.data_, nullptr)), size_(std::exchange(o.size_, 0)), mr(std::move(o.mr))
{
}

Region::~Region()
{
	mr.reset();
	if (data_)
		munmap(data_, size_);
}

void Region::fill(uint32_t seed, size_t off, size_t len)
{
	uint64_t x = 0x9e3779b97f4a7c15ull * (seed + 1);
	uint8_t *p = data_ + off;

	for (size_t i = 0; i < len; i += 8) {
		x ^= x << 13;
		x ^= x >> 7;
		x ^= x << 17;
		memcpy(p + i, &x, std::min<size_t>(8, len - i));
	}
}

ssize_t differs(const uint8_t *a, const uint8_t *b, size_t len)
{
	if (memcmp(a, b, len) == 0)
		return -1;
	return std::mismatch(a, a + len, b).first - a;
}

bool all_bytes(const uint8_t *p, size_t len, uint8_t value)
{
	return len == 0 || (p[0] == value && memcmp(p, p + 1, len - 1) == 0);
}

/* ---------------------------------------------------------- completions -- */

std::vector<ibv_wc> poll_n(ibv_cq *cq, size_t n, Millis limit)
{
	std::vector<ibv_wc> got(n);
	auto end = Clock::now() + limit;
	size_t have = 0;

	while (have < n) {
		int rc = ibv_poll_cq(cq, static_cast<int>(n - have), &got[have]);

		if (rc < 0)
			fail("ibv_poll_cq: " + std::to_string(rc));
		have += rc;
		if (rc == 0) {
			if (Clock::now() > end)
				fail("only " + std::to_string(have) + " of " + std::to_string(n) + " completions came");
			std::this_thread::yield();
		}
	}
	return got;
}

ibv_wc poll_one(ibv_cq *cq, Millis limit)
{
	return poll_n(cq, 1, limit)[0];
}

ibv_wc expect_wc(ibv_cq *cq, ibv_wc_status status, uint64_t wr_id)
{
	ibv_wc wc = poll_one(cq);

	EXPECT_STREQ(ibv_wc_status_str(wc.status), ibv_wc_status_str(status)) << "wr_id " << wc.wr_id;
	EXPECT_EQ(wc.wr_id, wr_id);
	return wc;
}

ibv_wc expect_ok(ibv_cq *cq, uint64_t wr_id)
{
	return expect_wc(cq, IBV_WC_SUCCESS, wr_id);
}

void expect_empty(ibv_cq *cq)
{
	ibv_wc wc{};
	int n = ibv_poll_cq(cq, 1, &wc);

	EXPECT_EQ(n, 0) << "wr_id " << wc.wr_id << " opcode " << wc.opcode << ": " << ibv_wc_status_str(wc.status);
}

void expect_stays_empty(ibv_cq *cq, Millis limit)
{
	auto end = Clock::now() + limit;
	ibv_wc wc{};
	int n = 0;

	while (n == 0 && Clock::now() < end) {
		n = ibv_poll_cq(cq, 1, &wc);
		std::this_thread::yield();
	}
	EXPECT_EQ(n, 0) << "wr_id " << wc.wr_id << " opcode " << wc.opcode << ": " << ibv_wc_status_str(wc.status);
}

void arm(ibv_cq *cq, bool solicited_only)
{
	require_ok(ibv_req_notify_cq(cq, solicited_only), "ibv_req_notify_cq");
}

bool readable(int fd, Millis limit)
{
	pollfd p = {.fd = fd, .events = POLLIN, .revents = 0};
	int rc;

	do {
		rc = poll(&p, 1, static_cast<int>(limit.count()));
	} while (rc < 0 && errno == EINTR);
	require(rc >= 0, "poll");
	return rc > 0;
}

ibv_cq *wait_event(ibv_comp_channel *channel, Millis limit, void **cq_context)
{
	ibv_cq *cq = nullptr;
	void *context = nullptr;

	if (!readable(channel->fd, limit))
		return nullptr;
	require_ok(ibv_get_cq_event(channel, &cq, &context), "ibv_get_cq_event");
	ibv_ack_cq_events(cq, 1);
	if (cq_context)
		*cq_context = context;
	return cq;
}

void expect_event(ibv_comp_channel *channel, ibv_cq *cq)
{
	ibv_cq *got = wait_event(channel, patience());

	EXPECT_NE(got, nullptr) << "no completion event came";
	if (got) {
		EXPECT_EQ(got, cq) << "a completion event of another CQ";
	}
}

void expect_no_event(ibv_comp_channel *channel, Millis limit)
{
	EXPECT_EQ(wait_event(channel, limit), nullptr) << "a completion event that nothing asked for";
}

/* -------------------------------------------------- asynchronous events -- */

std::optional<Async> next_async(ibv_context *ctx, Millis limit)
{
	ibv_async_event event{};
	Async got;

	if (!readable(ctx->async_fd, limit))
		return {};
	require_ok(ibv_get_async_event(ctx, &event), "ibv_get_async_event");
	got.type = event.event_type;
	switch (event.event_type) {
	case IBV_EVENT_CQ_ERR:
		got.element = event.element.cq;
		break;
	case IBV_EVENT_SRQ_ERR:
	case IBV_EVENT_SRQ_LIMIT_REACHED:
		got.element = event.element.srq;
		break;
	case IBV_EVENT_QP_FATAL:
	case IBV_EVENT_QP_REQ_ERR:
	case IBV_EVENT_QP_ACCESS_ERR:
	case IBV_EVENT_COMM_EST:
	case IBV_EVENT_SQ_DRAINED:
	case IBV_EVENT_PATH_MIG:
	case IBV_EVENT_PATH_MIG_ERR:
	case IBV_EVENT_QP_LAST_WQE_REACHED:
		got.element = event.element.qp;
		break;
	case IBV_EVENT_WQ_FATAL:
		got.element = event.element.wq;
		break;
	default:
		got.port = event.element.port_num;
	}
	ibv_ack_async_event(&event);
	return got;
}

void expect_async(ibv_context *ctx, ibv_event_type type, const void *element)
{
	auto got = next_async(ctx, patience());

	ASSERT_TRUE(got) << "no event came; expected " << ibv_event_type_str(type);
	EXPECT_STREQ(ibv_event_type_str(got->type), ibv_event_type_str(type));
	EXPECT_EQ(got->element, element);
}

void expect_no_async(ibv_context *ctx, Millis limit)
{
	if (auto got = next_async(ctx, limit))
		ADD_FAILURE() << "unexpected event: " << ibv_event_type_str(got->type);
}

} // namespace conformance
