// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/* Work completions: the only place that builds one. */
#include <linux/kernel.h>
#include <rdma/ib_verbs.h>
#include <rdma/herald-abi.h>

#include "completion.h"
#include "cq.h"
#include "device.h"
#include "opcode.h"
#include "qp.h"

/* enum ib_wc_flags to what the ring has */
static u8 cqe_flags(u8 wc_flags)
{
	u8 flags = wc_flags & (IB_WC_GRH | IB_WC_WITH_IMM);

	if (wc_flags & IB_WC_WITH_INVALIDATE)
		flags |= HERALD_CQE_FLAG_INVALIDATE;
	return flags;
}

static void count_completion(struct herald_qp *qp, int status, enum herald_counter kind)
{
	herald_count(qp->dev, status == IB_WC_WR_FLUSH_ERR ? HERALD_CTR_flushed : kind);
}

static void publish(struct herald_qp *qp, struct herald_cq *cq, struct herald_cqe *cqe,
		    bool solicited, const struct herald_sq_backref *ref, struct herald_deferred *d)
{
	cqe->qp_num = qp->qpn;
	/* only kernel consumers, whose CQ is mapped nowhere, get a pointer */
	if (!cq->user)
		herald_cqe_set_qp(cqe, &qp->ib);
	/*
	 * The QP came to this CQ after the overrun had put all of its QPs into
	 * the error state: no completion of its will ever be seen either.
	 */
	if (!herald_cq_publish(cq, cqe, solicited, ref, d))
		herald_qp_fatal(qp, d);
}

static bool wants_cqe(const struct herald_qp *qp, const struct herald_op *op, int status)
{
	return status != IB_WC_SUCCESS || qp->sq_sig_all || (op->flags & HERALD_WR_SIGNALED);
}

void herald_complete_send(struct herald_qp *qp, const struct herald_op *op, int status,
			  struct herald_deferred *d)
{
	struct herald_ring *ring = &qp->sq.ring;
	struct herald_send_wqe *slot = herald_ring_slot(ring, op->index);
	struct herald_sq_backref ref = {
		.made = &slot->cqe_made,
		.index = &slot->cqe_index,
		.consumer = &ring->ctl->consumer,
		.value = op->index + 1,
	};
	struct herald_cqe cqe = {
		.wr_id = op->wr_id,
		.byte_len = status == IB_WC_SUCCESS ? op->length : 0,
		.status = status,
		.opcode = herald_opcode(op->opcode)->wc_opcode,
		.port_num = 1,
		.queue = HERALD_CQE_SQ,
		.wqe_index = op->index,
	};

	count_completion(qp, status, HERALD_CTR_sends_completed);
	if (wants_cqe(qp, op, status)) {
		publish(qp, qp->scq, &cqe, false, &ref, d);
		return;
	}
	WRITE_ONCE(slot->cqe_made, 0);
	herald_ring_publish(ring, op->index + 1);
}

void herald_complete_recv(struct herald_qp *qp, const struct herald_recv *recv, int status,
			  const struct herald_recv_info *info, struct herald_deferred *d)
{
	struct herald_cqe cqe = {
		.wr_id = recv->wr_id,
		.status = status,
		.opcode = IB_WC_RECV,
		.port_num = 1,
		.queue = recv->queue,
		.wqe_index = recv->index,
	};

	if (info) {
		cqe.opcode = info->opcode;
		cqe.byte_len = info->byte_len;
		cqe.imm_or_rkey = info->imm_or_rkey;
		cqe.src_qp = info->src_qp;
		cqe.wc_flags = cqe_flags(info->wc_flags);
		cqe.sl = info->sl;
		cqe.pkey_index = info->pkey_index;
		/* not zero only if the completion has the flag, see herald_poll_cq() */
		if (info->wc_flags & IB_WC_WITH_NETWORK_HDR_TYPE)
			cqe.net_type = info->net_type;
	}
	count_completion(qp, status, HERALD_CTR_recvs_completed);
	publish(qp, qp->rcq, &cqe, info && info->solicited, NULL, d);
}
