/* SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB */
/*
 * What every conformance test stands on: the device under test, objects that destroy themselves, and waiting that
 * ends. Nothing here knows a provider. Helpers that cannot do their work throw; GoogleTest reports that as a failure.
 */
#pragma once

#include <gtest/gtest.h>
#include <infiniband/verbs.h>

#include <cerrno>
#include <chrono>
#include <cstdint>
#include <cstring>
#include <optional>
#include <span>
#include <stdexcept>
#include <stop_token>
#include <string>
#include <thread>
#include <utility>
#include <vector>

namespace conformance {

using Clock = std::chrono::steady_clock;
using Millis = std::chrono::milliseconds;

/* Slow lanes set FACTOR: how much slower than the fastest they are. */
int slowness();
/* HERALD_LONG is set: there is time for all that a case asks for. */
bool long_form();
/* How long to wait for what must happen: far longer than it can take. */
Millis patience();
/* How long to watch for what must not happen (CASES say 200 ms). */
Millis quiet();

[[noreturn]] void fail(const std::string &what);
void require(bool ok, const std::string &what);
void require_ok(int rc, const std::string &what);

/* libibverbs answers with an errno, with -errno, or with -1 and errno. */
inline int code(int rc)
{
	return rc == -1 ? errno : rc < 0 ? -rc : rc;
}

/* ------------------------------------------------------------- objects -- */

/* A verbs object; destroying it must succeed, or the test fails. */
template <class T, int (*Destroy)(T *)> class Owned {
public:
	Owned() = default;
	explicit Owned(T *p) : p_(p) {}
	Owned(Owned &&o) noexcept : p_(std::exchange(o.p_, nullptr)) {}
	Owned &operator=(Owned &&o) noexcept
	{
		if (this != &o) {
			reset();
			p_ = std::exchange(o.p_, nullptr);
		}
		return *this;
	}
	~Owned() { reset(); }

	T *get() const { return p_; }
	operator T *() const { return p_; }
	T *operator->() const { return p_; }
	T *release() { return std::exchange(p_, nullptr); }

	/* 0 or an errno; the object stays if it is refused. */
	int destroy()
	{
		int rc = p_ ? code(Destroy(p_)) : 0;

		if (!rc)
			p_ = nullptr;
		return rc;
	}
	void reset() { EXPECT_EQ(destroy(), 0) << "destroy: " << strerror(errno); }

private:
	T *p_ = nullptr;
};

using Context = Owned<ibv_context, ibv_close_device>;
using Pd = Owned<ibv_pd, ibv_dealloc_pd>;
using Mr = Owned<ibv_mr, ibv_dereg_mr>;
using Mw = Owned<ibv_mw, ibv_dealloc_mw>;
using Cq = Owned<ibv_cq, ibv_destroy_cq>;
using Qp = Owned<ibv_qp, ibv_destroy_qp>;
using Srq = Owned<ibv_srq, ibv_destroy_srq>;
using Ah = Owned<ibv_ah, ibv_destroy_ah>;
using Channel = Owned<ibv_comp_channel, ibv_destroy_comp_channel>;

/* -------------------------------------------------------------- device -- */

enum class Family { v4, v6 };

/* The device named by HERALD_DEV, or the first one; opened. */
class Device {
public:
	Device();
	explicit Device(const std::string &wanted);

	ibv_context *get() const { return ctx; }
	operator ibv_context *() const { return ctx; }

	/* Index of a RoCEv2 GID of the family, if the port has one. */
	std::optional<int> find_gid(Family family) const;
	/* The GID that tests use unless they say otherwise: HERALD_GID_INDEX, an IPv4 one, an IPv6 one. */
	int gid_index() const;
	ibv_gid gid(int index) const;
	bool is_v4(int gid_index) const;

	Context ctx;
	std::string name;
	ibv_device_attr attr{};
	ibv_port_attr port{};
	static constexpr uint8_t port_num = 1;
};

/* The list of all devices, opened by name. */
Context open_device(const std::string &name);

Pd make_pd(ibv_context *ctx);
Cq make_cq(ibv_context *ctx, int cqe, ibv_comp_channel *channel = nullptr, void *cq_context = nullptr, int vector = 0);
Channel make_channel(ibv_context *ctx);
Srq make_srq(ibv_pd *pd, uint32_t max_wr, uint32_t max_sge = 1, uint32_t limit = 0);

constexpr int kAllAccess =
	IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_READ | IBV_ACCESS_REMOTE_ATOMIC;

/* Zeroed pages, registered. */
class Region {
public:
	Region() = default;
	Region(ibv_pd *pd, size_t size, int access = kAllAccess);
	Region(Region &&o) noexcept;
	Region &operator=(Region &&) = delete;
	~Region();

	uint8_t *data() const { return data_; }
	size_t size() const { return size_; }
	std::span<uint8_t> bytes() const { return {data_, size_}; }
	uint64_t addr(size_t off = 0) const { return reinterpret_cast<uintptr_t>(data_) + off; }
	ibv_sge sge(size_t off, uint32_t len) const { return {addr(off), len, mr->lkey}; }

	/* Different bytes for every seed. */
	void fill(uint32_t seed) { fill(seed, 0, size_); }
	void fill(uint32_t seed, size_t off, size_t len);
	void clear() { memset(data_, 0, size_); }

private:
	uint8_t *data_ = nullptr;
	size_t size_ = 0;

public:
	Mr mr;
};

/* Where the first difference is, or -1. */
ssize_t differs(const uint8_t *a, const uint8_t *b, size_t len);
/* Is all of it this byte? */
bool all_bytes(const uint8_t *p, size_t len, uint8_t value);

/* ---------------------------------------------------------- completions -- */

/* Exactly n completions, or the test fails. */
std::vector<ibv_wc> poll_n(ibv_cq *cq, size_t n, Millis limit = patience());
ibv_wc poll_one(ibv_cq *cq, Millis limit = patience());
/* One completion with this status; the message names both. */
ibv_wc expect_wc(ibv_cq *cq, ibv_wc_status status, uint64_t wr_id);
ibv_wc expect_ok(ibv_cq *cq, uint64_t wr_id);
/* Nothing is in the CQ now. */
void expect_empty(ibv_cq *cq);
/* Nothing comes into the CQ for a while. */
void expect_stays_empty(ibv_cq *cq, Millis limit = quiet());

void arm(ibv_cq *cq, bool solicited_only = false);
/* The next completion event, acked; NULL if none comes in time. */
ibv_cq *wait_event(ibv_comp_channel *channel, Millis limit, void **cq_context = nullptr);
void expect_event(ibv_comp_channel *channel, ibv_cq *cq);
void expect_no_event(ibv_comp_channel *channel, Millis limit = quiet());
bool readable(int fd, Millis limit);

/* -------------------------------------------------- asynchronous events -- */

struct Async {
	ibv_event_type type{};
	void *element = nullptr;
	int port = 0;
};

/* The next one, acked. */
std::optional<Async> next_async(ibv_context *ctx, Millis limit);
void expect_async(ibv_context *ctx, ibv_event_type type, const void *element);
void expect_no_async(ibv_context *ctx, Millis limit = quiet());

/* -------------------------------------------------------------- threads -- */

/*
 * A thread that fails its test instead of ending the program, and that is joined (and asked to stop, if it takes a
 * std::stop_token) even when the test gives up early.
 */
template <class F> std::jthread worker(F body)
{
	return std::jthread([body](std::stop_token stop) {
		try {
			if constexpr (std::is_invocable_v<F, std::stop_token>)
				body(stop);
			else
				body();
		} catch (const std::exception &e) {
			ADD_FAILURE() << "in a thread: " << e.what();
		}
	});
}

/* ---------------------------------------------------------------- tests -- */

class Verbs : public ::testing::Test {
protected:
	Device dev;
	Pd pd = make_pd(dev);
};

} // namespace conformance
