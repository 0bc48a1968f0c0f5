// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/* Making, killing and destroying pairs of QPs, CQs and groups of them. */
#include <linux/delay.h>
#include <linux/slab.h>

#include "connect.h"
#include "torture.h"

#define QP_TIMEOUT	8	/* 4.096 us * 2^8, about 1 ms: a peer in error is noticed soon */

static bool pair_has(const struct torture_pair *pair, bool (*what)(const struct torture_cq *c))
{
	return what(pair->end[0].sq.cq) || what(pair->end[0].rq.cq) ||
	       what(pair->end[1].sq.cq) || what(pair->end[1].rq.cq);
}

/* ------------------------------------------------------------- queues -- */

static struct torture_queue *pair_queue(struct torture_pair *pair, int i)
{
	struct torture_end *end = &pair->end[i / 2];

	return i % 2 ? &end->rq : &end->sq;
}

/* From here on nobody posts, not even a handler. */
static void take_queues(struct torture_pair *pair)
{
	int i;

	for (i = 0; i < 4; i++) {
		while (test_and_set_bit_lock(0, &pair_queue(pair, i)->busy))
			cond_resched();
	}
}

static void release_queues(struct torture_pair *pair)
{
	int i;

	for (i = 0; i < 4; i++)
		clear_bit_unlock(0, &pair_queue(pair, i)->busy);
}

/* -------------------------------------------------------------- making -- */

static void qp_event(struct ib_event *event, void *context)
{
	if (event->event == IB_EVENT_QP_FATAL)
		torture_fail(TORTURE_VERB, "asynchronous event of a QP: %s",
			     ib_event_msg(event->event));
}

static int create_qp(struct torture_end *end)
{
	struct ib_qp_init_attr attr = {
		.event_handler = qp_event,
		.send_cq = end->sq.cq->cq,
		.recv_cq = end->rq.cq->cq,
		.cap = {
			.max_send_wr = TORTURE_DEPTH + 2,	/* for those of a drain, too */
			.max_recv_wr = TORTURE_DEPTH + 2,
			.max_send_sge = 1,
			.max_recv_sge = 1,
		},
		.sq_sig_type = IB_SIGNAL_REQ_WR,
		.qp_type = IB_QPT_RC,
	};

	end->qp = ib_create_qp(torture.pd, &attr);
	return PTR_ERR_OR_ZERO(end->qp);
}

static void choose_cqs(struct torture_end *end, struct rnd_state *rnd)
{
	struct torture_group *g = end->pair->group;

	end->rq.cq = &g->cq[torture_below(rnd, TORTURE_CQS)];
	do {
		end->sq.cq = &g->cq[torture_below(rnd, TORTURE_CQS)];
	} while (end->sq.cq->kind == TORTURE_SOLICITED);
}

/* Nobody else has the pair, and its queues are busy. */
static int create_pair(struct torture_pair *pair, struct rnd_state *rnd)
{
	int i, rc;

	for (i = 0; i < 4; i++)
		torture_queue_restart(pair_queue(pair, i));
	choose_cqs(&pair->end[0], rnd);
	choose_cqs(&pair->end[1], rnd);
	WRITE_ONCE(pair->dying, false);
	rc = create_qp(&pair->end[0]);
	if (rc)
		return rc;
	rc = create_qp(&pair->end[1]);
	if (rc)
		goto err_first;
	rc = connect_qps(torture.dev, pair->end[0].qp, pair->end[1].qp, QP_TIMEOUT);
	if (rc)
		goto err_second;
	release_queues(pair);
	return 0;

err_second:
	ib_destroy_qp(pair->end[1].qp);
	pair->end[1].qp = NULL;
err_first:
	ib_destroy_qp(pair->end[0].qp);
	pair->end[0].qp = NULL;
	return rc;
}

/* ------------------------------------------------------------- killing -- */

static void to_error(struct torture_end *end)
{
	struct ib_qp_attr attr = { .qp_state = IB_QPS_ERR };
	int rc = ib_modify_qp(end->qp, &attr, IB_QP_STATE);

	if (rc)
		torture_fail(TORTURE_VERB, "modify to the error state: %d", rc);
}

static void poll_group(struct torture_group *g)
{
	int i;

	for (i = 0; i < TORTURE_CQS; i++) {
		if (torture_threads_poll(&g->cq[i]))
			torture_poll(&g->cq[i], 64);
	}
}

static bool drained(struct torture_pair *pair)
{
	int i;

	for (i = 0; i < 4; i++) {
		if (!torture_queue_drained(pair_queue(pair, i)))
			return false;
	}
	return true;
}

/* CASES 10: what is posted to a QP in error is flushed last; then all the rest is over. */
static void drain(struct torture_pair *pair)
{
	u32 naps = 0;
	int i;

	for (i = 0; i < 4; i++)
		torture_post_last(pair_queue(pair, i));
	while (!drained(pair)) {
		poll_group(pair->group);
		usleep_range(100, 200);
		if (naps++ > torture.patience * TORTURE_TICK * 5) {
			torture_fail(TORTURE_LOST, "a QP in error has completions outstanding");
			torture_dump_pair(pair);
			break;
		}
	}
	atomic64_inc(&torture_totals.drains);
}

static bool needs_poller(const struct torture_cq *c)
{
	return torture_threads_poll(c);
}

/* Completions are polled under a lock of ours, so that it is known when that is over. */
static bool poll_is_foreign(const struct torture_cq *c)
{
	return torture_core_polls(c);
}

static void set_fuzzy(struct torture_pair *pair, bool fuzzy)
{
	int i;

	for (i = 0; i < 4; i++)
		torture_set_fuzzy(pair_queue(pair, i)->cq, fuzzy);
}

/* C14: with completions left in the CQs, and WRs that never complete. */
static void purge(struct torture_pair *pair)
{
	set_fuzzy(pair, true);
	ib_destroy_qp(pair->end[0].qp);
	ib_destroy_qp(pair->end[1].qp);
	set_fuzzy(pair, false);
	atomic64_inc(&torture_totals.purges);
}

static void destroy_drained(struct torture_pair *pair, struct rnd_state *rnd)
{
	to_error(&pair->end[0]);
	to_error(&pair->end[1]);
	drain(pair);
	if (!pair_has(pair, needs_poller) && torture_one_in(rnd, 3)) {
		ib_drain_qp(pair->end[0].qp);
		ib_drain_qp(pair->end[1].qp);
	}
	ib_destroy_qp(pair->end[0].qp);
	ib_destroy_qp(pair->end[1].qp);
}

/* Nobody else has the pair, and its queues are busy. */
static void destroy_pair(struct torture_pair *pair, struct rnd_state *rnd)
{
	WRITE_ONCE(pair->dying, true);
	if (!pair_has(pair, poll_is_foreign) && torture_one_in(rnd, 3))
		purge(pair);
	else
		destroy_drained(pair, rnd);
	pair->end[0].qp = NULL;
	pair->end[1].qp = NULL;
}

void torture_kill_pair(struct torture_pair *pair, struct rnd_state *rnd)
{
	int rc;

	/* often one or both are in error already while others post */
	down_read(&pair->lock);
	if (torture_one_in(rnd, 2)) {
		WRITE_ONCE(pair->dying, true);
		to_error(&pair->end[torture_below(rnd, 2)]);
		if (torture_one_in(rnd, 2))
			usleep_range(10, 2000);
	}
	up_read(&pair->lock);

	down_write(&pair->lock);
	take_queues(pair);
	destroy_pair(pair, rnd);
	atomic64_inc(&torture_totals.kills);	/* under load: the end destroys, too */
	rc = create_pair(pair, rnd);
	if (rc) {
		torture_fail(TORTURE_VERB, "a pair of QPs could not be made: %d", rc);
		WRITE_ONCE(torture.stop, true);
	}
	up_write(&pair->lock);
}

/* -------------------------------------------------------------- groups -- */

static void init_pair(struct torture_pair *pair, struct torture_group *g)
{
	int i;

	pair->group = g;
	init_rwsem(&pair->lock);
	for (i = 0; i < 2; i++) {
		pair->end[i].pair = pair;
		pair->end[i].peer = &pair->end[!i];
		torture_queue_init(&pair->end[i].sq, &pair->end[i], true);
		torture_queue_init(&pair->end[i].rq, &pair->end[i], false);
	}
}

void torture_group_init(struct torture_group *g)
{
	int i;

	init_rwsem(&g->lock);
	for (i = 0; i < TORTURE_CQS; i++) {
		g->cq[i].group = g;
		spin_lock_init(&g->cq[i].lock);
	}
	for (i = 0; i < TORTURE_PAIRS; i++)
		init_pair(&g->pair[i], g);
}

static int create_cqs(struct torture_group *g, struct rnd_state *rnd)
{
	int i, rc;

	for (i = 0; i < TORTURE_CQS; i++) {
		/* the first one is there for send queues */
		enum torture_kind kind = torture_below(rnd, i ? TORTURE_KINDS : TORTURE_SOLICITED);

		rc = torture_cq_create(&g->cq[i], kind, rnd);
		if (rc) {
			while (i--)
				torture_cq_destroy(&g->cq[i]);
			return rc;
		}
	}
	return 0;
}

int torture_group_create(struct torture_group *g, struct rnd_state *rnd)
{
	int i, rc;

	rc = create_cqs(g, rnd);
	for (i = 0; i < TORTURE_PAIRS && !rc; i++)
		rc = create_pair(&g->pair[i], rnd);
	if (rc)
		torture_group_destroy(g, rnd);
	return rc;
}

void torture_group_destroy(struct torture_group *g, struct rnd_state *rnd)
{
	int i;

	for (i = 0; i < TORTURE_PAIRS; i++) {
		if (IS_ERR_OR_NULL(g->pair[i].end[0].qp) || IS_ERR_OR_NULL(g->pair[i].end[1].qp))
			continue;
		take_queues(&g->pair[i]);
		destroy_pair(&g->pair[i], rnd);
	}
	for (i = 0; i < TORTURE_CQS; i++) {
		if (!IS_ERR_OR_NULL(g->cq[i].cq))
			torture_cq_destroy(&g->cq[i]);
	}
}

void torture_group_recreate(struct torture_group *g, struct rnd_state *rnd)
{
	int rc;

	down_write(&g->lock);
	torture_group_destroy(g, rnd);
	rc = torture_group_create(g, rnd);
	if (rc) {
		torture_fail(TORTURE_VERB, "a group of CQs could not be made: %d", rc);
		WRITE_ONCE(torture.stop, true);
	}
	up_write(&g->lock);
	atomic64_inc(&torture_totals.recreated);
}

/* -------------------------------------------------------------- memory -- */

static void registered(struct ib_cq *cq, struct ib_wc *wc)
{
	if (wc->status)
		torture_fail(TORTURE_VERB, "registration: %s", ib_wc_status_msg(wc->status));
}

static int register_by(struct ib_qp *qp, struct ib_cq *cq)
{
	struct ib_cqe cqe = { .done = registered };
	struct ib_reg_wr wr = {
		.wr = {
			.wr_cqe = &cqe,
			.opcode = IB_WR_REG_MR,
			.send_flags = IB_SEND_SIGNALED,
		},
		.mr = torture.mr,
		.access = IB_ACCESS_LOCAL_WRITE | IB_ACCESS_REMOTE_WRITE | IB_ACCESS_REMOTE_READ,
	};
	int n = ib_map_mr_sg(torture.mr, &torture.sg, 1, NULL, PAGE_SIZE);
	u32 naps = 0;
	int rc;

	if (n != 1)
		return -EINVAL;
	wr.key = torture.mr->rkey;
	rc = ib_post_send(qp, &wr.wr, NULL);
	while (!rc && !ib_process_cq_direct(cq, 1)) {
		usleep_range(100, 200);
		if (naps++ > torture.patience * TORTURE_TICK * 5)
			return -ETIMEDOUT;
	}
	return rc;
}

/* Two QPs for the time of one registration. */
static int register_memory(void)
{
	struct ib_cq *cq = ib_alloc_cq(torture.dev, NULL, 8, 0, IB_POLL_DIRECT);
	struct ib_qp_init_attr attr = {
		.cap = { .max_send_wr = 1, .max_recv_wr = 1, .max_send_sge = 1, .max_recv_sge = 1 },
		.sq_sig_type = IB_SIGNAL_REQ_WR,
		.qp_type = IB_QPT_RC,
	};
	struct ib_qp *a, *b;
	int rc = PTR_ERR_OR_ZERO(cq);

	if (rc)
		return rc;
	attr.send_cq = cq;
	attr.recv_cq = cq;
	a = ib_create_qp(torture.pd, &attr);
	b = ib_create_qp(torture.pd, &attr);
	rc = PTR_ERR_OR_ZERO(a) ?: PTR_ERR_OR_ZERO(b);
	if (!rc)
		rc = connect_qps(torture.dev, a, b, QP_TIMEOUT) ?: register_by(a, cq);
	if (!IS_ERR(a))
		ib_destroy_qp(a);
	if (!IS_ERR(b))
		ib_destroy_qp(b);
	ib_free_cq(cq);
	return rc;
}

int torture_memory_init(void)
{
	torture.buf = kzalloc(TORTURE_BUF, GFP_KERNEL);
	if (!torture.buf)
		return -ENOMEM;
	sg_init_one(&torture.sg, torture.buf, TORTURE_BUF);
	torture.dma = ib_dma_map_single(torture.dev, torture.buf, TORTURE_BUF, DMA_BIDIRECTIONAL);
	if (ib_dma_mapping_error(torture.dev, torture.dma) ||
	    ib_dma_map_sg(torture.dev, &torture.sg, 1, DMA_BIDIRECTIONAL) != 1)
		return -EIO;
	torture.mr = ib_alloc_mr(torture.pd, IB_MR_TYPE_MEM_REG, TORTURE_BUF / PAGE_SIZE + 1);
	if (IS_ERR(torture.mr))
		return PTR_ERR(torture.mr);
	return register_memory();
}

void torture_memory_exit(void)
{
	if (!IS_ERR_OR_NULL(torture.mr))
		ib_dereg_mr(torture.mr);
	if (torture.buf) {
		ib_dma_unmap_sg(torture.dev, &torture.sg, 1, DMA_BIDIRECTIONAL);
		ib_dma_unmap_single(torture.dev, torture.dma, TORTURE_BUF, DMA_BIDIRECTIONAL);
	}
	kfree(torture.buf);
}
