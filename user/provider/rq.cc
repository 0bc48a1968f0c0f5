/* SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB */
/* Receive queues, a QP's own and shared ones: posting makes no system call while the QP works. */
#include "ioctl.h"
#include "objects.h"

using namespace herald;

/* Fill slots from the list up to the first bad WR, which goes to @bad; the caller holds the lock. */
static int fill(RecvRing &rq, uint32_t max_sge, ibv_recv_wr *wr, ibv_recv_wr **bad) noexcept
{
	for (; wr; wr = wr->next) {
		int error = rq.has_room() ? encode_recv(rq.next_slot(), *wr, max_sge) : ENOMEM;

		if (error) {
			*bad = wr;
			return error;
		}
		rq.push();
	}
	return 0;
}

int herald_post_recv(struct ibv_qp *handle, struct ibv_recv_wr *wr, struct ibv_recv_wr **bad_wr) noexcept
{
	Qp &qp = Qp::of(handle);
	bool wanted = false;
	int error;

	{
		Guard guard(qp.rq_lock);

		if (!qp.rq.attached() || !qp.may_post_recv()) [[unlikely]] {
			*bad_wr = wr;
			return EINVAL;
		}

		const uint32_t before = qp.rq.head();

		error = fill(qp.rq, qp.recv_max_sge, wr, bad_wr);
		if (qp.rq.head() == before)
			return error;
		if (qp.rq.asks()) [[unlikely]] {
			if (int refused = qp.may_post(HERALD_POSTING_RECV)) {
				qp.rq.rewind(before);
				*bad_wr = wr;
				return refused;
			}
		}
		wanted = qp.rq.publish_and_check();
	}
	if (wanted) {
		/* the QP is in the error state: nothing else would flush them */
		int refused = ring_doorbell(*handle, HERALD_DOORBELL_RECV);

		if (refused && !error) {
			*bad_wr = wr;
			error = refused;
		}
	}
	return error;
}

/* ----------------------------------------------------------------- SRQ -- */

struct ibv_srq *herald_srq_new(bool single_threaded) noexcept
{
	Srq *srq = make<Srq>(single_threaded);

	return srq ? &srq->verbs : nullptr;
}

int herald_srq_map(struct ibv_srq *handle, int fd, const struct herald_ring_info *info, uint32_t max_wr,
		   uint32_t max_sge) noexcept
{
	Srq &srq = Srq::of(handle);
	auto mapping = map_ring(fd, *info, HERALD_RING_DATA_OFFSET, HERALD_RECV_WQE_HDR + max_sge * sizeof(herald_sge),
				max_wr);

	if (!mapping)
		return mapping.error();
	srq.mapping = std::move(mapping).take();
	srq.rq.attach(srq.mapping.base(), info->depth, info->stride, max_wr);
	srq.max_sge = max_sge;
	return 0;
}

void herald_srq_set_number(struct ibv_srq *handle, uint32_t number) noexcept
{
	Srq::of(handle).number = number;
}

void herald_srq_free(struct ibv_srq *handle) noexcept
{
	discard(&Srq::of(handle));
}

int herald_post_srq_recv(struct ibv_srq *handle, struct ibv_recv_wr *wr, struct ibv_recv_wr **bad_wr) noexcept
{
	Srq &srq = Srq::of(handle);
	Guard guard(srq.lock);
	const uint32_t before = srq.rq.head();
	int error = fill(srq.rq, srq.max_sge, wr, bad_wr);

	if (srq.rq.head() == before)
		return error;
	if (srq.rq.asks()) [[unlikely]] {
		if (int refused = announce_post(handle->context->cmd_fd, srq.number, HERALD_POSTING_SRQ)) {
			srq.rq.rewind(before);
			*bad_wr = wr;
			return refused;
		}
	}
	srq.rq.publish();
	return error;
}
