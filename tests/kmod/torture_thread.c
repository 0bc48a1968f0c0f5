// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/* What the threads do: random things, one after the other. */
#include <linux/delay.h>
#include <linux/kthread.h>

#include "torture.h"

#define KILL_ONE_IN	3000
#define RECREATE_ONE_IN	12000

static void post_randomly(struct torture_pair *pair, struct rnd_state *rnd)
{
	struct torture_end *end = &pair->end[torture_below(rnd, 2)];

	if (torture_one_in(rnd, 3))
		torture_post(&end->peer->rq, rnd, 4);
	torture_post(&end->sq, rnd, 1 + torture_below(rnd, 4));
}

static void use_cq(struct torture_cq *c, struct rnd_state *rnd)
{
	if (torture_one_in(rnd, 50))
		torture_moderate(c, rnd);
	if (c->kind == TORTURE_MIXED)
		torture_arm_mixed(c, rnd);
	if (torture_threads_poll(c))
		torture_poll(c, 1 + torture_below(rnd, 16));
	if (c->kind == TORTURE_MIXED && torture_one_in(rnd, 2))
		torture_arm_mixed(c, rnd);
}

static void use_pair(struct torture_pair *pair, struct rnd_state *rnd)
{
	if (torture_one_in(rnd, KILL_ONE_IN)) {
		torture_kill_pair(pair, rnd);
		return;
	}
	if (!down_read_trylock(&pair->lock))
		return;
	post_randomly(pair, rnd);
	up_read(&pair->lock);
}

static void use_group(struct torture_group *g, struct rnd_state *rnd)
{
	if (torture_one_in(rnd, RECREATE_ONE_IN)) {
		torture_group_recreate(g, rnd);
		return;
	}
	if (!down_read_trylock(&g->lock))
		return;
	if (torture_one_in(rnd, 2))
		use_pair(&g->pair[torture_below(rnd, TORTURE_PAIRS)], rnd);
	else
		use_cq(&g->cq[torture_below(rnd, TORTURE_CQS)], rnd);
	up_read(&g->lock);
}

/* Sometimes nothing happens, so that events are waited for. */
static void pause_randomly(struct rnd_state *rnd)
{
	u32 r = torture_below(rnd, 256);

	if (r == 0)
		usleep_range(50, 500);
	else if (r < 16)
		udelay(torture_below(rnd, 10));
	else
		cond_resched();
}

int torture_thread(void *seed)
{
	struct rnd_state rnd;

	prandom_seed_state(&rnd, (uintptr_t)seed);
	while (!READ_ONCE(torture.stop)) {
		use_group(&torture.group[torture_below(&rnd, TORTURE_GROUPS)], &rnd);
		pause_randomly(&rnd);
	}
	/* kthread_stop() wants the thread to be there */
	while (!kthread_should_stop())
		schedule_timeout_interruptible(HZ / 20);
	return 0;
}
