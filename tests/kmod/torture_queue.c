// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/*
 * The account of a queue: WRs are numbered as they are posted, and every
 * completion must be of the next one, but for successful unsignaled ones, which
 * are passed over.
 */
#include "torture.h"

#define CHAIN	4	/* WRs of one post */

static struct torture_wr *slot(struct torture_queue *q, u32 seq)
{
	return &q->wrs[q->bank][seq % TORTURE_SLOTS];
}

/* -------------------------------------------------------- completions -- */

static void pass_over(struct torture_queue *q, u32 end)
{
	u32 seq;

	for (seq = q->completed; seq != end; seq++) {
		struct torture_wr *wr = slot(q, seq);

		if (wr->signaled || q->failed)
			torture_fail(TORTURE_ONCE, "%s WR %u has not completed, %u has",
				     q->send ? "send" : "receive", seq, end);
		wr->live = false;
		if (!wr->message)
			continue;
		q->acked++;
		if (wr->solicited)
			q->acked_solicited = wr->number + 1;
	}
}

static void check_status(struct torture_queue *q, struct torture_wr *wr, const struct ib_wc *wc)
{
	if (wc->status == IB_WC_SUCCESS) {
		if (q->failed)
			torture_fail(TORTURE_ORDER, "success after an error");
		if (!wr->signaled)
			torture_fail(TORTURE_ORDER, "an unsignaled success completed");
		return;
	}
	if (!READ_ONCE(q->end->pair->dying))
		torture_fail(TORTURE_VERB, "completed with %s", ib_wc_status_msg(wc->status));
	if (q->failed && wc->status != IB_WC_WR_FLUSH_ERR)
		torture_fail(TORTURE_ORDER, "%s after an error", ib_wc_status_msg(wc->status));
	q->failed = true;
	atomic64_inc(&torture_totals.flushed);
}

/* A received message says which one it is, and whether it is solicited. */
static bool check_message(struct torture_queue *q, const struct ib_wc *wc)
{
	u32 imm = be32_to_cpu(wc->ex.imm_data);

	if (!(wc->wc_flags & IB_WC_WITH_IMM) || imm >> 1 != q->acked)
		torture_fail(TORTURE_ORDER, "message %u instead of %u", imm >> 1, q->acked);
	q->acked++;
	return imm & 1;
}

void torture_done(struct ib_cq *cq, struct ib_wc *wc)
{
	struct torture_wr *wr = container_of(wc->wr_cqe, struct torture_wr, cqe);
	struct torture_queue *q = wr->queue;
	bool success = wc->status == IB_WC_SUCCESS;
	bool matching = !success;

	q->cq->polled++;
	if (!wr->live || wr != slot(q, wr->seq)) {
		torture_fail(wr == slot(q, wr->seq) ? TORTURE_ONCE : TORTURE_GONE,
			     "WR %u completed again, or after its QP was destroyed", wr->seq);
		return;
	}
	if (wc->qp != q->end->qp || cq != q->cq->cq)
		torture_fail(TORTURE_ORDER, "the QP or the CQ is a wrong one");
	pass_over(q, wr->seq);
	check_status(q, wr, wc);
	if (success && !q->send)
		matching = check_message(q, wc);
	else if (success && wr->message)
		q->acked++;
	if (success && q->send && wr->solicited)
		q->acked_solicited = wr->number + 1;
	torture_note_cqe(q->cq, matching);
	wr->live = false;
	/* whoever sees the slot free may fill it */
	smp_store_release(&q->completed, wr->seq + 1);
	atomic64_inc(&torture_totals.completed);
}

/* ------------------------------------------------------------ posting -- */

static u32 room(const struct torture_queue *q)
{
	/* pairs with torture_done() */
	return TORTURE_DEPTH - (q->posted - smp_load_acquire(&q->completed));
}

static struct torture_wr *take_slot(struct torture_queue *q)
{
	struct torture_wr *wr = slot(q, q->posted);

	wr->cqe.done = torture_done;
	wr->queue = q;
	wr->seq = q->posted;
	wr->message = false;
	wr->solicited = false;
	wr->signaled = true;
	wr->live = true;
	return wr;
}

/* May a message be sent?  Rarely one for which there is no receive WR yet. */
static bool take_credit(struct torture_queue *q, struct rnd_state *rnd)
{
	struct torture_queue *to = &q->end->peer->rq;

	if (atomic_dec_if_positive(&to->credits) >= 0)
		return true;
	if (to->cq->kind == TORTURE_SOLICITED || atomic_read(&to->credits) < -2 ||
	    !torture_one_in(rnd, 16))
		return false;
	atomic_dec(&to->credits);
	return true;
}

static void make_message(struct torture_queue *q, struct torture_wr *wr, struct ib_rdma_wr *w,
			 struct rnd_state *rnd)
{
	wr->message = true;
	wr->number = q->messages++;
	/* the last ones that there is a receive WR for wake who waits for solicited ones */
	wr->solicited = atomic_read(&q->end->peer->rq.credits) < 3 || torture_one_in(rnd, 4);
	w->wr.opcode = torture_one_in(rnd, 4) ? IB_WR_RDMA_WRITE_WITH_IMM : IB_WR_SEND_WITH_IMM;
	w->wr.ex.imm_data = cpu_to_be32(wr->number << 1 | wr->solicited);
	if (wr->solicited)
		w->wr.send_flags |= IB_SEND_SOLICITED;
}

static void make_send(struct torture_queue *q, struct torture_wr *wr, struct ib_rdma_wr *w,
		      struct ib_sge *sge, struct rnd_state *rnd)
{
	u32 len = torture_one_in(rnd, 4) ? torture_below(rnd, 8192) : torture_below(rnd, 64);

	*sge = (struct ib_sge){
		.addr = torture.dma + torture_below(rnd, 8192),
		.length = len + 1,
		.lkey = torture.pd->local_dma_lkey,
	};
	*w = (struct ib_rdma_wr){
		.wr = { .wr_cqe = &wr->cqe, .sg_list = sge, .num_sge = 1 },
		.remote_addr = torture.mr->iova + TORTURE_BUF / 2 + torture_below(rnd, 8192),
		.rkey = torture.mr->rkey,
	};
	if (take_credit(q, rnd))
		make_message(q, wr, w, rnd);
	else
		w->wr.opcode = torture_one_in(rnd, 4) ? IB_WR_RDMA_READ : IB_WR_RDMA_WRITE;
	/* a WR is only known to have completed by a later one that is signaled */
	wr->signaled = q->posted - q->must > TORTURE_DEPTH / 4 || torture_below(rnd, 3);
	if (wr->signaled)
		w->wr.send_flags |= IB_SEND_SIGNALED;
}

static int post_sends(struct torture_queue *q, struct rnd_state *rnd, u32 n)
{
	struct ib_rdma_wr w[CHAIN];
	struct ib_sge sge[CHAIN];
	u32 i;

	for (i = 0; i < n; i++) {
		struct torture_wr *wr = take_slot(q);

		make_send(q, wr, &w[i], &sge[i], rnd);
		if (i)
			w[i - 1].wr.next = &w[i].wr;
		q->posted++;
		if (wr->signaled)
			WRITE_ONCE(q->must, q->posted);
	}
	return ib_post_send(q->end->qp, &w[0].wr, NULL);
}

static int post_recvs(struct torture_queue *q, struct rnd_state *rnd, u32 n)
{
	struct ib_recv_wr w[CHAIN] = {};
	struct ib_sge sge[CHAIN];
	u32 i;
	int rc;

	for (i = 0; i < n; i++) {
		struct torture_wr *wr = take_slot(q);

		sge[i] = (struct ib_sge){
			.addr = torture.dma + TORTURE_BUF / 2 + torture_below(rnd, 8192),
			.length = 16384,
			.lkey = torture.pd->local_dma_lkey,
		};
		w[i].wr_cqe = &wr->cqe;
		w[i].sg_list = &sge[i];
		w[i].num_sge = 1;
		if (i)
			w[i - 1].next = &w[i];
		q->posted++;
	}
	rc = ib_post_recv(q->end->qp, w, NULL);
	atomic_add(n, &q->credits);
	return rc;
}

static void post_some(struct torture_queue *q, struct rnd_state *rnd, u32 n)
{
	int rc;

	n = min3(n, room(q), (u32)CHAIN);
	if (!n)
		return;
	rc = q->send ? post_sends(q, rnd, n) : post_recvs(q, rnd, n);
	if (rc)
		torture_fail(TORTURE_VERB, "post to the %s queue: %d", q->send ? "send" : "receive",
			     rc);
	atomic64_add(n, &torture_totals.posted);
}

void torture_post(struct torture_queue *q, struct rnd_state *rnd, u32 n)
{
	if (test_and_set_bit_lock(0, &q->busy))
		return;
	post_some(q, rnd, n);
	clear_bit_unlock(0, &q->busy);
}

void torture_post_last(struct torture_queue *q)
{
	struct ib_recv_wr recv = {};
	struct ib_send_wr send = { .opcode = IB_WR_SEND, .send_flags = IB_SEND_SIGNALED };
	struct torture_wr *wr = take_slot(q);
	int rc;

	recv.wr_cqe = &wr->cqe;
	send.wr_cqe = &wr->cqe;
	q->posted++;
	WRITE_ONCE(q->must, q->posted);
	rc = q->send ? ib_post_send(q->end->qp, &send, NULL) :
		       ib_post_recv(q->end->qp, &recv, NULL);
	if (rc)
		torture_fail(TORTURE_VERB, "post to a QP in error: %d", rc);
	atomic64_inc(&torture_totals.posted);
}

/* --------------------------------------------------------------- life -- */

void torture_queue_init(struct torture_queue *q, struct torture_end *end, bool send)
{
	q->end = end;
	q->send = send;
	q->busy = 1;	/* there is no QP yet */
}

/* The QP is a new one: what was posted to the old one is not to come any more. */
void torture_queue_restart(struct torture_queue *q)
{
	u32 seq;

	for (seq = 0; seq < TORTURE_SLOTS; seq++)
		slot(q, seq)->live = false;
	q->bank = !q->bank;
	q->posted = 0;
	q->must = 0;
	q->messages = 0;
	q->completed = 0;
	q->acked = 0;
	q->acked_solicited = 0;
	q->failed = false;
	q->ticks = 0;
	atomic_set(&q->credits, 0);
}

bool torture_queue_drained(const struct torture_queue *q)
{
	/* pairs with torture_done() */
	return smp_load_acquire(&q->completed) == q->posted;
}
