// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/* The two ends, how they are made, and how work is posted and waited for. */
#include <linux/slab.h>

#include "connect.h"
#include "krping.h"

#define WAIT_SECONDS	120

const char *const krping_poll_names[KRPING_POLLS] = {
	[KRPING_DIRECT] = "direct",
	[KRPING_SOFTIRQ] = "softirq",
	[KRPING_WORKQUEUE] = "workqueue",
	[KRPING_RAW] = "raw",
};

/* ------------------------------------------------------------ waiting -- */

static void wait_done(struct ib_cq *cq, struct ib_wc *wc)
{
	struct krping_wait *wait = container_of(wc->wr_cqe, struct krping_wait, cqe);

	wait->wc = *wc;
	atomic_inc(&wait->times);
	complete(&wait->done);
}

void krping_wait_init(struct krping_wait *wait)
{
	memset(wait, 0, sizeof(*wait));
	wait->cqe.done = wait_done;
	init_completion(&wait->done);
}

int krping_wait(struct krping_rig *rig, struct krping_wait *wait)
{
	unsigned long end = jiffies + WAIT_SECONDS * HZ;

	if (rig->poll != KRPING_DIRECT)
		return wait_for_completion_timeout(&wait->done, WAIT_SECONDS * HZ) ? 0 : -ETIMEDOUT;
	while (!completion_done(&wait->done)) {
		ib_process_cq_direct(rig->cq, -1);
		if (time_after(jiffies, end))
			return -ETIMEDOUT;
		cond_resched();
	}
	return 0;
}

int krping_wait_ok(struct krping_rig *rig, struct krping_wait *wait)
{
	int rc = krping_wait(rig, wait);

	if (rc)
		return rc;
	if (wait->wc.status == IB_WC_SUCCESS)
		return 0;
	return krping_fail("completed with %s", ib_wc_status_msg(wait->wc.status));
}

/* ----------------------------------------------------------------- CQ -- */

/*
 * What krping does: poll the CQ dry, arm it, and look again if something came
 * in between.
 */
static void raw_handler(struct ib_cq *cq, void *context)
{
	struct krping_rig *rig = context;
	struct ib_wc wc;

	if (atomic_inc_return(&rig->inside) != 1)
		atomic_inc(&rig->overlaps);
	atomic_inc(&rig->handled);
	do {
		while (ib_poll_cq(cq, 1, &wc) > 0)
			wc.wr_cqe->done(cq, &wc);
	} while (ib_req_notify_cq(cq, IB_CQ_NEXT_COMP | IB_CQ_REPORT_MISSED_EVENTS) > 0);
	atomic_dec(&rig->inside);
}

struct ib_cq *krping_raw_cq(struct krping_rig *rig)
{
	struct ib_cq_init_attr attr = { .cqe = KRPING_DEPTH * 32 };
	struct ib_cq *cq = ib_create_cq(rig->dev, raw_handler, NULL, rig, &attr);

	if (!IS_ERR(cq))
		ib_req_notify_cq(cq, IB_CQ_NEXT_COMP);
	return cq;
}

static struct ib_cq *make_cq(struct krping_rig *rig)
{
	static const enum ib_poll_context contexts[] = {
		[KRPING_DIRECT] = IB_POLL_DIRECT,
		[KRPING_SOFTIRQ] = IB_POLL_SOFTIRQ,
		[KRPING_WORKQUEUE] = IB_POLL_WORKQUEUE,
	};

	if (rig->poll == KRPING_RAW)
		return krping_raw_cq(rig);
	return ib_alloc_cq(rig->dev, rig, KRPING_DEPTH * 32, 0, contexts[rig->poll]);
}

static void free_cq(struct krping_rig *rig)
{
	if (rig->poll == KRPING_RAW)
		ib_destroy_cq(rig->cq);
	else
		ib_free_cq(rig->cq);
}

/* ---------------------------------------------------------------- ends -- */

static struct ib_qp *make_qp(struct krping_rig *rig, struct ib_cq *cq)
{
	struct ib_qp_init_attr attr = {
		.send_cq = cq,
		.recv_cq = cq,
		.cap = {
			.max_send_wr = KRPING_DEPTH + 1,	/* one for the drain */
			.max_recv_wr = KRPING_DEPTH + 1,
			.max_send_sge = 1,
			.max_recv_sge = 1,
		},
		.sq_sig_type = IB_SIGNAL_REQ_WR,
		.qp_type = IB_QPT_RC,
	};

	return ib_create_qp(rig->pd, &attr);
}

static int end_init(struct krping_rig *rig, struct krping_end *end, struct ib_cq *cq)
{
	memset(end, 0, sizeof(*end));
	end->buf = kzalloc(KRPING_BUF, GFP_KERNEL);
	if (!end->buf)
		return -ENOMEM;
	sg_init_one(&end->sg, end->buf, KRPING_BUF);
	end->dma = ib_dma_map_single(rig->dev, end->buf, KRPING_BUF, DMA_BIDIRECTIONAL);
	if (ib_dma_mapping_error(rig->dev, end->dma))
		return -EIO;
	if (ib_dma_map_sg(rig->dev, &end->sg, 1, DMA_BIDIRECTIONAL) != 1)
		return -EIO;
	end->mr = ib_alloc_mr(rig->pd, IB_MR_TYPE_MEM_REG, KRPING_BUF / PAGE_SIZE + 1);
	if (IS_ERR(end->mr))
		return PTR_ERR(end->mr);
	end->qp = make_qp(rig, cq);
	return PTR_ERR_OR_ZERO(end->qp);
}

static void end_exit(struct krping_rig *rig, struct krping_end *end)
{
	if (!IS_ERR_OR_NULL(end->qp))
		ib_destroy_qp(end->qp);
	if (!IS_ERR_OR_NULL(end->mr))
		ib_dereg_mr(end->mr);
	if (end->buf) {
		ib_dma_unmap_sg(rig->dev, &end->sg, 1, DMA_BIDIRECTIONAL);
		ib_dma_unmap_single(rig->dev, end->dma, KRPING_BUF, DMA_BIDIRECTIONAL);
	}
	kfree(end->buf);
	memset(end, 0, sizeof(*end));
}

int krping_connect(struct krping_rig *rig, struct krping_end end[2])
{
	int rc;

	memset(end, 0, 2 * sizeof(*end));
	rc = end_init(rig, &end[0], rig->cq) ?: end_init(rig, &end[1], rig->peer_cq ?: rig->cq) ?:
	     connect_qps(rig->dev, end[0].qp, end[1].qp, 14);
	if (rc)
		krping_disconnect(rig, end);
	return rc;
}

int krping_reconnect(struct krping_rig *rig, struct krping_end end[2])
{
	struct ib_qp_attr a = { .qp_state = IB_QPS_RESET };

	return ib_modify_qp(end[0].qp, &a, IB_QP_STATE) ?:
	       ib_modify_qp(end[1].qp, &a, IB_QP_STATE) ?:
	       connect_qps(rig->dev, end[0].qp, end[1].qp, 14);
}

void krping_disconnect(struct krping_rig *rig, struct krping_end end[2])
{
	end_exit(rig, &end[0]);
	end_exit(rig, &end[1]);
}

int krping_rig_init(struct krping_rig *rig, struct ib_device *dev, enum krping_poll poll)
{
	int rc;

	memset(rig, 0, sizeof(*rig));
	rig->dev = dev;
	rig->poll = poll;
	rig->pd = ib_alloc_pd(dev, 0);
	if (IS_ERR(rig->pd))
		return PTR_ERR(rig->pd);
	rig->cq = make_cq(rig);
	if (IS_ERR(rig->cq)) {
		rc = PTR_ERR(rig->cq);
		ib_dealloc_pd(rig->pd);
		return rc;
	}
	rc = krping_connect(rig, rig->end);
	if (rc) {
		free_cq(rig);
		ib_dealloc_pd(rig->pd);
	}
	return rc;
}

void krping_rig_exit(struct krping_rig *rig)
{
	krping_disconnect(rig, rig->end);
	free_cq(rig);
	ib_dealloc_pd(rig->pd);
}

/* ------------------------------------------------------------- posting -- */

static struct ib_sge end_sge(struct krping_rig *rig, struct krping_end *end, u32 off, u32 len)
{
	return (struct ib_sge){
		.addr = end->dma + off, .length = len, .lkey = rig->pd->local_dma_lkey,
	};
}

int krping_post_recv(struct krping_rig *rig, struct krping_end *end, u32 off, u32 len,
		     struct krping_wait *wait)
{
	struct ib_sge sge = end_sge(rig, end, off, len);
	struct ib_recv_wr wr = { .wr_cqe = &wait->cqe, .sg_list = &sge, .num_sge = 1 };

	return ib_post_recv(end->qp, &wr, NULL);
}

int krping_post_send(struct krping_rig *rig, struct krping_end *end, u32 off, u32 len, u32 inv,
		     struct krping_wait *wait)
{
	struct ib_sge sge = end_sge(rig, end, off, len);
	struct ib_send_wr wr = {
		.wr_cqe = wait ? &wait->cqe : NULL,
		.sg_list = &sge,
		.num_sge = 1,
		.opcode = inv ? IB_WR_SEND_WITH_INV : IB_WR_SEND,
		.send_flags = wait ? IB_SEND_SIGNALED : 0,
	};

	if (inv)
		wr.ex.invalidate_rkey = inv;
	return ib_post_send(end->qp, &wr, NULL);
}

int krping_post_rdma(struct krping_rig *rig, struct krping_end *end, enum ib_wr_opcode opcode,
		     u32 off, u32 len, u64 remote, u32 rkey, struct krping_wait *wait)
{
	struct ib_sge sge = end_sge(rig, end, off, len);
	struct ib_rdma_wr wr = {
		.wr = {
			.wr_cqe = wait ? &wait->cqe : NULL,
			.sg_list = &sge,
			.num_sge = 1,
			.opcode = opcode,
			.send_flags = wait ? IB_SEND_SIGNALED : 0,
		},
		.remote_addr = remote,
		.rkey = rkey,
	};

	return ib_post_send(end->qp, &wr.wr, NULL);
}

int krping_post_reg(struct krping_end *end, struct krping_wait *wait)
{
	struct ib_reg_wr wr = {
		.wr = {
			.wr_cqe = &wait->cqe,
			.opcode = IB_WR_REG_MR,
			.send_flags = IB_SEND_SIGNALED,
		},
		.mr = end->mr,
		.access = IB_ACCESS_LOCAL_WRITE | IB_ACCESS_REMOTE_WRITE | IB_ACCESS_REMOTE_READ,
	};
	int n;

	ib_update_fast_reg_key(end->mr, ib_inc_rkey(end->mr->rkey));
	n = ib_map_mr_sg(end->mr, &end->sg, 1, NULL, PAGE_SIZE);
	if (n != 1)
		return n < 0 ? n : -EINVAL;
	wr.key = end->mr->rkey;
	return ib_post_send(end->qp, &wr.wr, NULL);
}

int krping_post_local_inv(struct krping_end *end, u32 rkey, struct krping_wait *wait)
{
	struct ib_send_wr wr = {
		.wr_cqe = &wait->cqe,
		.opcode = IB_WR_LOCAL_INV,
		.send_flags = IB_SEND_SIGNALED,
		.ex.invalidate_rkey = rkey,
	};

	return ib_post_send(end->qp, &wr, NULL);
}
