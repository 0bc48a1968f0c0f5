/* SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB */
/* Completion queues: life, polling by ibv_poll_cq, arming, resizing. */
#include "ioctl.h"
#include "objects.h"

using namespace herald;

/* ---------------------------------------------------------------- life -- */

struct ibv_cq_ex *herald_cq_new(bool single_threaded) noexcept
{
	Cq *cq = make<Cq>(single_threaded);

	return cq ? &cq->verbs : nullptr;
}

static Result<Mapping> map_cq(int fd, const herald_ring_info &info) noexcept
{
	return map_ring(fd, info, HERALD_CQ_DATA_OFFSET, sizeof(herald_cqe), 1);
}

int herald_cq_map(struct ibv_cq_ex *handle, int fd, const struct herald_ring_info *info) noexcept
{
	Cq &cq = Cq::of(handle);
	auto mapping = map_cq(fd, *info);

	if (!mapping)
		return mapping.error();
	cq.mapping = std::move(mapping).take();
	cq.ring.attach(cq.mapping.base(), info->depth);
	return 0;
}

void herald_cq_set_id(struct ibv_cq_ex *handle, uint32_t id) noexcept
{
	Cq::of(handle).id = id;
}

static void drop_retired(Cq &cq) noexcept
{
	RetiredRing *first = cq.retired;

	cq.retired = first->next;
	discard(first);
}

void herald_cq_free(struct ibv_cq_ex *handle) noexcept
{
	Cq &cq = Cq::of(handle);

	while (cq.retired)
		drop_retired(cq);
	discard(&cq);
}

bool herald_cq_in_use(struct ibv_cq *handle) noexcept
{
	Cq &cq = Cq::of(handle);
	Visit visit(cq.lock);

	return cq.users;
}

/* ------------------------------------------------------------ resizing -- */

int herald_cq_resize_begin(struct ibv_cq *handle) noexcept
{
	Cq &cq = Cq::of(handle);
	RetiredRing *spare = make<RetiredRing>();

	if (!spare)
		return ENOMEM;
	cq.lock.visit();
	spare->next = cq.retired;
	cq.retired = spare;
	return 0;
}

int herald_cq_resize_end(struct ibv_cq *handle, int fd, const struct herald_ring_info *info) noexcept
{
	Cq &cq = Cq::of(handle);
	auto mapping = info ? map_cq(fd, *info) : Result<Mapping>(Errno{ECANCELED});
	const int error = info ? mapping.error() : 0;

	if (mapping) {
		cq.mapping.trim();
		cq.retired->mapping = std::move(cq.mapping);
		cq.mapping = std::move(mapping).take();
		cq.ring.attach(cq.mapping.base(), info->depth);
	} else {
		drop_retired(cq);
		/* the kernel uses a ring that we cannot see */
		if (info)
			cq.ring.kill();
	}
	cq.lock.unlock();
	return error;
}

/* ----------------------------------------------------- polling, arming -- */

/* Apart, so that polling an empty CQ saves no registers. */
[[gnu::noinline]] static int poll_some(Cq &cq, int num_entries, ibv_wc *wc) noexcept
{
	Guard guard(cq.lock);

	if (num_entries <= 0)
		return 0;
	return static_cast<int>(
		cq.ring.consume(static_cast<uint32_t>(num_entries),
				[wc](const herald_cqe &cqe, uint32_t i) noexcept { decode_cqe(cqe, wc[i]); }));
}

int herald_poll_cq(struct ibv_cq *handle, int num_entries, struct ibv_wc *wc) noexcept
{
	Cq &cq = Cq::of(handle);

	if (cq.ring.looks_empty())
		return cq.ring.dead() ? -EIO : 0;
	return poll_some(cq, num_entries, wc);
}

static void arm(Cq &cq, bool solicited_only) noexcept
{
	Guard guard(cq.lock);

	cq.ring.arm(solicited_only);
}

/*
 * The kernel holds completions back, and may release some of them now; or the arm is to fail.  If the device goes
 * meanwhile, there is nothing to fail any more.
 */
[[gnu::noinline]] static int arm_announced(Cq &cq, bool solicited_only) noexcept
{
	const int fd = cq.verbs.context->cmd_fd;

	if (int refused = announce_arm(fd, cq.id, HERALD_ARMING_BEFORE)) {
		if (!cq.ring.gone())
			return refused;
	}
	arm(cq, solicited_only);
	(void)announce_arm(fd, cq.id, HERALD_ARMING_AFTER);
	return 0;
}

int herald_req_notify_cq(struct ibv_cq *handle, int solicited_only) noexcept
{
	Cq &cq = Cq::of(handle);

	if (cq.ring.announces_arms()) [[unlikely]]
		return arm_announced(cq, solicited_only);
	arm(cq, solicited_only);
	return 0;
}

/* libibverbs counts the acks, under a mutex of its own: what is read here may be about to change. */
void herald_cq_event(struct ibv_cq *handle) noexcept
{
	Cq &cq = Cq::of(handle);

	cq.events_read.fetch_add(1, std::memory_order_relaxed);
	cq.ring.account(cq.events_read.load(std::memory_order_relaxed), load_relaxed(handle->comp_events_completed));
}

/* ------------------------------------------------------------- removal -- */

void Cq::purge(uint32_t qpn) noexcept
{
	Visit visit(lock);

	ring.purge(qpn, [this](const herald_cqe &cqe, uint32_t index) noexcept {
		if (cqe.queue != HERALD_CQE_SQ)
			return;
		for (Qp *qp = senders; qp; qp = qp->next_sender) {
			if (qp->verbs.ex.qp_base.qp_num == cqe.qp_num) {
				qp->sq.completion_moved(cqe.wqe_index, index);
				return;
			}
		}
	});
}
