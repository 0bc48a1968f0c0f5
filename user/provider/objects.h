/* SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB */
/*
 * The objects behind the application's handles.  Each begins with libibverbs'
 * structure, so that a handle converts to it by address.
 */
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>

#include "cq_ring.h"
#include "herald_core.h"
#include "ioctl.h"
#include "lock.h"
#include "raii.h"
#include "ring.h"
#include "wqe_codec.h"

namespace herald {

struct Qp;

/*
 * The control page of a ring that was replaced: threads that poll an empty CQ
 * read it without the lock, so it stays mapped until the CQ goes.
 */
struct RetiredRing {
	Mapping mapping;
	RetiredRing *next = nullptr;
};

/*
 * @lock protects the ring's consumer side and arming, @current, @senders and
 * @users.
 * It may be held from start_poll to end_poll, while the application posts: so
 * it comes before the locks of QPs, and nothing may take it under one of them.
 */
struct Cq {
	explicit Cq(bool single_threaded) noexcept : lock(single_threaded) {}

	static Cq &of(ibv_cq *handle) noexcept { return *reinterpret_cast<Cq *>(handle); }
	static Cq &of(ibv_cq_ex *handle) noexcept { return *reinterpret_cast<Cq *>(handle); }

	/* Remove what a QP without a kernel's half left behind. */
	void purge(uint32_t qpn) noexcept;

	ibv_cq_ex verbs = {};
	alignas(HERALD_CACHE_LINE) CqRing ring;
	Lock lock;
	const herald_cqe *current = nullptr; /* between start_poll and end_poll */
	Qp *senders = nullptr;               /* QPs whose send CQ this is */
	uint32_t users = 0;                  /* QPs that complete here, once for each of their queues */
	uint32_t id = 0;                     /* what the kernel calls it */
	std::atomic<uint32_t> events_read = 0;
	std::atomic<uint32_t> async_read = 0;
	Mapping mapping;
	RetiredRing *retired = nullptr; /* the first one is spare while a resize is under way */
};

/*
 * @sq_lock protects @sq and the WR being built (from wr_start to wr_complete),
 * @rq_lock protects @rq.  @state is what modify_qp and query_qp last said; the
 * kernel may have gone to an error state since.
 */
struct Qp {
	explicit Qp(bool single_threaded) noexcept : sq_lock(single_threaded), rq_lock(single_threaded) {}

	static Qp &of(ibv_qp *handle) noexcept { return *reinterpret_cast<Qp *>(handle); }
	static Qp &of(ibv_qp_ex *handle) noexcept { return *reinterpret_cast<Qp *>(handle); }

	Cq &send_cq() noexcept { return Cq::of(verbs.ex.qp_base.send_cq); }
	Cq &recv_cq() noexcept { return Cq::of(verbs.ex.qp_base.recv_cq); }
	bool may_post_send() const noexcept { return state.load(std::memory_order_relaxed) >= IBV_QPS_RTS; }
	bool may_post_recv() const noexcept { return state.load(std::memory_order_relaxed) != IBV_QPS_RESET; }

	/* Posts may fail on purpose: do these (enum herald_posting_queue)?  0 or an errno. */
	int may_post(uint32_t queue) const noexcept
	{
		return announce_post(verbs.ex.qp_base.context->cmd_fd, verbs.ex.qp_base.qp_num, queue);
	}

	union {
		std::byte room[HERALD_VERBS_QP_ROOM];
		ibv_qp_ex ex;
	} verbs = {};
	std::atomic<int> state = IBV_QPS_RESET;
	std::atomic<uint32_t> async_read = 0;

	alignas(HERALD_CACHE_LINE) Lock sq_lock;
	SendRing sq;
	SendLimits limits;
	struct {
		uint32_t first;        /* head when wr_start was called */
		int error;             /* the first one since */
		herald_send_wqe *slot; /* the WR that setters apply to, or nullptr */
	} build = {};

	alignas(HERALD_CACHE_LINE) Lock rq_lock;
	RecvRing rq; /* not attached with an SRQ */
	uint32_t recv_max_sge = 0;

	Qp *next_sender = nullptr;  /* in send_cq().senders, by its lock */
	Qp **sender_link = nullptr; /* neighbours change it, too */
	bool linked = false;        /* to its CQs; only its own life's */
	Mapping sq_mapping;
	Mapping rq_mapping;
};

struct Srq {
	explicit Srq(bool single_threaded) noexcept : lock(single_threaded) {}

	static Srq &of(ibv_srq *handle) noexcept { return *reinterpret_cast<Srq *>(handle); }

	ibv_srq verbs = {};
	alignas(HERALD_CACHE_LINE) Lock lock;
	RecvRing rq;
	uint32_t max_sge = 0;
	uint32_t number = 0; /* what the kernel calls it */
	std::atomic<uint32_t> async_read = 0;
	Mapping mapping;
};

static_assert(offsetof(herald_uah, ibv) == 0);

/* Map a ring whose parameters make sense: EPROTO if they do not. */
inline Result<Mapping> map_ring(int fd, const herald_ring_info &info, size_t data_offset, size_t min_stride,
				uint32_t min_depth) noexcept
{
	if (!ring_info_ok(info, data_offset, min_stride, min_depth))
		return Errno{EPROTO};
	return Mapping::map(fd, info.mmap_length, static_cast<off_t>(info.mmap_offset));
}

} // namespace herald
