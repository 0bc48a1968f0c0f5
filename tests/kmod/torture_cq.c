// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/* The kinds of CQs: how they are polled and armed, and by whom. */
#include "torture.h"

#define CQE	(TORTURE_PAIRS * 4 * (TORTURE_DEPTH + 2))
#define MISSED	IB_CQ_REPORT_MISSED_EVENTS

const char *const torture_kind_names[TORTURE_KINDS] = {
	[TORTURE_DIRECT] = "direct",
	[TORTURE_SOFTIRQ] = "softirq",
	[TORTURE_WORKQUEUE] = "workqueue",
	[TORTURE_MISSED] = "missed",
	[TORTURE_REPOLL] = "repoll",
	[TORTURE_MIXED] = "mixed",
	[TORTURE_SOLICITED] = "solicited",
};

/* ------------------------------------------------------------- polling -- */

/* The CQ's lock is held.  Return: how many there were. */
static int poll_some(struct torture_cq *c, int n)
{
	struct ib_wc wc[8];
	int got, i;

	got = ib_poll_cq(c->cq, min_t(int, n, ARRAY_SIZE(wc)), wc);
	if (got < 0)
		torture_fail(TORTURE_VERB, "poll: %d", got);
	for (i = 0; i < got; i++) {
		/* what the core posts to drain a QP is flushed */
		if (wc[i].wr_cqe->done != torture_done)
			torture_note_cqe(c, true);
		wc[i].wr_cqe->done(c->cq, &wc[i]);
	}
	return got;
}

static bool poll_dry(struct torture_cq *c)
{
	bool any = false;

	while (poll_some(c, 8) > 0)
		any = true;
	return any;
}

void torture_poll(struct torture_cq *c, int n)
{
	unsigned long flags;

	spin_lock_irqsave(&c->lock, flags);
	if (c->kind == TORTURE_DIRECT)
		ib_process_cq_direct(c->cq, n);
	else
		poll_some(c, n);
	spin_unlock_irqrestore(&c->lock, flags);
}

/* C3: 1 says that there is something to poll. */
static int arm_and_check(struct torture_cq *c, int flags)
{
	int ret = torture_arm(c, flags);

	if (ret == 1 && !poll_some(c, 1) && !c->fuzzy)
		torture_fail(TORTURE_FLAG, "arming %s returned 1, and there was nothing",
			     torture_kind_names[c->kind]);
	return ret;
}

void torture_arm_mixed(struct torture_cq *c, struct rnd_state *rnd)
{
	int how = torture_below(rnd, 4), n = torture_below(rnd, 3);
	unsigned long flags;
	int kind;

	spin_lock_irqsave(&c->lock, flags);
	while (n--) {
		/* an arm that is not known to be there may not be asked to stay as it is */
		kind = (c->armed && !c->sure) || torture_below(rnd, 3) ? IB_CQ_NEXT_COMP :
									  IB_CQ_SOLICITED;
		arm_and_check(c, kind | (how ? MISSED : 0));
	}
	spin_unlock_irqrestore(&c->lock, flags);
}

/* ------------------------------------------------------------ handlers -- */

static void arm_as_kind_says(struct torture_cq *c)
{
	switch (c->kind) {
	case TORTURE_MISSED:
		do {
			poll_dry(c);
		} while (arm_and_check(c, IB_CQ_NEXT_COMP | MISSED));
		break;
	case TORTURE_SOLICITED:
		do {
			poll_dry(c);
		} while (arm_and_check(c, IB_CQ_SOLICITED | MISSED));
		break;
	case TORTURE_REPOLL:
		do {
			poll_dry(c);
			torture_arm(c, IB_CQ_NEXT_COMP);
		} while (poll_dry(c));
		break;
	default:
		if (torture_one_in(&c->rnd, 8))
			poll_some(c, 4);
		if (torture_one_in(&c->rnd, 2))
			arm_and_check(c, IB_CQ_NEXT_COMP | MISSED);
	}
}

/* C6: a handler may post. */
static void post_from_handler(struct torture_cq *c)
{
	struct torture_pair *pair = &c->group->pair[torture_below(&c->rnd, TORTURE_PAIRS)];
	struct torture_end *end = &pair->end[torture_below(&c->rnd, 2)];

	torture_post(&end->rq, &c->rnd, 4);
	if (torture_one_in(&c->rnd, 2))
		torture_post(&end->sq, &c->rnd, 1 + torture_below(&c->rnd, 4));
}

static void handler(struct ib_cq *cq, void *context)
{
	struct torture_cq *c = context;
	unsigned long flags;

	if (atomic_inc_return(&c->inside) != 1)
		torture_fail(TORTURE_ALONE, "two handlers at once");
	torture_note_event(c);
	spin_lock_irqsave(&c->lock, flags);
	arm_as_kind_says(c);
	spin_unlock_irqrestore(&c->lock, flags);
	post_from_handler(c);
	atomic_dec(&c->inside);
}

static void cq_event(struct ib_event *event, void *context)
{
	torture_fail(TORTURE_VERB, "asynchronous event of a CQ: %s", ib_event_msg(event->event));
}

/* ---------------------------------------------------------------- life -- */

static struct ib_cq *create(struct torture_cq *c)
{
	static const enum ib_poll_context contexts[] = {
		[TORTURE_DIRECT] = IB_POLL_DIRECT,
		[TORTURE_SOFTIRQ] = IB_POLL_SOFTIRQ,
		[TORTURE_WORKQUEUE] = IB_POLL_WORKQUEUE,
	};
	struct ib_cq_init_attr attr = { .cqe = CQE, .comp_vector = c->vector };

	if (c->kind < ARRAY_SIZE(contexts))
		return ib_alloc_cq(torture.dev, c, CQE, c->vector, contexts[c->kind]);
	return ib_create_cq(torture.dev, handler, cq_event, c, &attr);
}

static void first_arm(struct torture_cq *c)
{
	unsigned long flags;

	spin_lock_irqsave(&c->lock, flags);
	torture_arm(c, c->kind == TORTURE_SOLICITED ? IB_CQ_SOLICITED : IB_CQ_NEXT_COMP);
	spin_unlock_irqrestore(&c->lock, flags);
}

int torture_cq_create(struct torture_cq *c, enum torture_kind kind, struct rnd_state *rnd)
{
	c->kind = kind;
	c->vector = torture_below(rnd, torture.dev->num_comp_vectors);
	prandom_seed_state(&c->rnd, prandom_u32_state(rnd));
	c->armed = TORTURE_UNARMED;
	c->sure = false;
	c->arms = 0;
	c->fired = 0;
	c->calls = 0;
	c->hints = 0;
	c->polled = 0;
	c->owed = 0;
	c->ticks = 0;
	atomic64_set(&c->events, 0);
	c->cq = create(c);
	if (IS_ERR(c->cq))
		return PTR_ERR(c->cq);
	atomic64_inc(&torture_totals.kinds[kind]);
	if (kind > TORTURE_WORKQUEUE)
		first_arm(c);
	return 0;
}

void torture_cq_destroy(struct torture_cq *c)
{
	if (c->kind <= TORTURE_WORKQUEUE)
		ib_free_cq(c->cq);
	else
		ib_destroy_cq(c->cq);
	if (atomic_read(&c->inside))
		torture_fail(TORTURE_ALONE, "a handler runs after its CQ was destroyed");
	atomic64_add(c->calls, &torture_totals.calls);
	atomic64_add(c->arms, &torture_totals.arms);
	atomic64_add(c->hints, &torture_totals.hints);
	atomic64_add(c->fired, &torture_totals.fired);
	atomic64_add(atomic64_read(&c->events), &torture_totals.events);
	c->cq = NULL;
}

void torture_moderate(struct torture_cq *c, struct rnd_state *rnd)
{
	static const struct { u16 count, period; } choices[] = {
		{ 0, 0 }, { 1, 0 }, { 0, 500 }, { 16, 1000 }, { 3, 200 },
	};
	u32 i = torture_below(rnd, ARRAY_SIZE(choices));
	int rc = rdma_set_cq_moderation(c->cq, choices[i].count, choices[i].period);

	if (rc == -EOPNOTSUPP)
		atomic64_inc(&torture_totals.unmoderated);
	else if (rc)
		torture_fail(TORTURE_VERB, "moderation %u, %u: %d", choices[i].count,
			     choices[i].period, rc);
	else
		atomic64_inc(&torture_totals.moderated);
}
