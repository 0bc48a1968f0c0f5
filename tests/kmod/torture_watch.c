// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/*
 * What takes too long, in ticks of the watchdog itself, which counts only those
 * in which every CPU got somewhere (torture_canary.c): on a machine that stands
 * still, it stands still, too.
 */
#include "torture.h"

/* ---------------------------------------------------------------- dumps -- */

void torture_dump_cq(const struct torture_cq *c)
{
	static const char *const armed[] = { "not armed", "armed solicited", "armed" };

	pr_info("herald_torture: # CQ %s, vector %u: %s%s%s, arm calls %llu (last %#x returned %d, %llu of them 1), events %lld, between %llu and %llu; polled %llu\n",
		torture_kind_names[c->kind], c->vector, armed[c->armed], c->sure ? " surely" : "",
		c->fuzzy ? " fuzzy" : "", c->calls, c->last_flags, c->last_ret, c->hints,
		atomic64_read(&c->events), c->fired, c->arms, c->polled);
}

static void dump_queue(const struct torture_queue *q)
{
	pr_info("herald_torture: #  %s queue, CQ %td: posted %u, completed %u, must complete %u, messages %u, acked %u (solicited %u), credits %d%s%s\n",
		q->send ? "send" : "receive", q->cq - q->end->pair->group->cq, q->posted,
		q->completed, q->must, q->messages, q->acked, q->acked_solicited,
		atomic_read(&q->credits), q->failed ? ", failed" : "", q->busy ? ", busy" : "");
}

void torture_dump_pair(const struct torture_pair *pair)
{
	int i;

	for (i = 0; i < TORTURE_CQS; i++)
		torture_dump_cq(&pair->group->cq[i]);
	for (i = 0; i < 2; i++) {
		const struct torture_end *end = &pair->end[i];

		pr_info("herald_torture: # QP %#x%s\n", end->qp ? end->qp->qp_num : 0,
			pair->dying ? ", dying" : "");
		dump_queue(&end->sq);
		dump_queue(&end->rq);
	}
}

static void stalled(struct torture_pair *pair, const struct torture_queue *q, const char *what)
{
	torture_fail(TORTURE_LOST, "%s queue on a CQ of kind %s: %s", q->send ? "send" : "receive",
		     torture_kind_names[q->cq->kind], what);
	torture_dump_pair(pair);
	WRITE_ONCE(torture.stop, true);
}

/* --------------------------------------------------------------- looks -- */

/* Is there something that must come? */
static bool sends_wait(const struct torture_queue *q)
{
	return (s32)(READ_ONCE(q->must) - READ_ONCE(q->completed)) > 0;
}

/*
 * The peer's success says that the message is here; a plain one wakes nobody who
 * waits for solicited ones.
 */
static bool receives_wait(const struct torture_queue *q)
{
	const struct torture_queue *from = &q->end->peer->sq;

	if (q->cq->kind == TORTURE_SOLICITED)
		return (s32)(READ_ONCE(from->acked_solicited) - READ_ONCE(q->acked)) > 0;
	return (s32)(READ_ONCE(from->acked) - READ_ONCE(q->acked)) > 0;
}

static void look_at_queue(struct torture_pair *pair, struct torture_queue *q)
{
	u32 completed = READ_ONCE(q->completed);
	bool waits = q->send ? sends_wait(q) : receives_wait(q);

	if (!waits || completed != q->seen)
		q->ticks = 0;
	else if (++q->ticks == torture.patience)
		stalled(pair, q, "a completion that must come does not");
	q->seen = completed;
}

static void look_at_pair(struct torture_pair *pair)
{
	int i;

	if (!down_read_trylock(&pair->lock)) {
		if (++pair->ticks == 20 * torture.patience)
			stalled(pair, &pair->end[0].sq, "killing the QPs does not end");
		return;
	}
	pair->ticks = 0;
	for (i = 0; i < 2; i++) {
		look_at_queue(pair, &pair->end[i].sq);
		look_at_queue(pair, &pair->end[i].rq);
	}
	up_read(&pair->lock);
}

/* C2: what was surely armed, and polled something that matches, must fire soon. */
static void look_at_cq(struct torture_cq *c)
{
	u64 fired = READ_ONCE(c->fired), events = atomic64_read(&c->events);

	if (events >= c->owed) {
		c->owed = fired;
		c->ticks = 0;
		return;
	}
	if (++c->ticks != torture.patience)
		return;
	torture_fail(TORTURE_LOST, "CQ of kind %s: %llu events, at least %llu arms have fired",
		     torture_kind_names[c->kind], events, c->owed);
	torture_dump_cq(c);
	WRITE_ONCE(torture.stop, true);
}

static void look_at_group(struct torture_group *g)
{
	int i;

	if (!down_read_trylock(&g->lock)) {
		if (++g->ticks == 50 * torture.patience)
			stalled(&g->pair[0], &g->pair[0].end[0].sq,
				"destroying the CQs does not end");
		return;
	}
	g->ticks = 0;
	for (i = 0; i < TORTURE_CQS; i++)
		look_at_cq(&g->cq[i]);
	for (i = 0; i < TORTURE_PAIRS; i++)
		look_at_pair(&g->pair[i]);
	up_read(&g->lock);
}

void torture_watch(void)
{
	int i;

	for (i = 0; i < TORTURE_GROUPS; i++)
		look_at_group(&torture.group[i]);
}
