/* SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB */
/* A CQ whose handler only counts, and notes where it runs; one pair of QPs is on it. */
#ifndef HERALD_KRPING_COUNTED_H
#define HERALD_KRPING_COUNTED_H

#include "krping.h"

struct counted {
	struct krping_rig rig;
	atomic_t events;
	int expected;	/* how many of them the test has waited for, if it counts */
	int cpu;	/* where the handler ran last; -1 before that */
	int moves;	/* how often it was another one than before */
	atomic_t nested;	/* handlers that were called from somewhere else than a softirq */
};

/* Runs @test on a new one, of that completion vector. */
int with_counted(struct ib_device *dev, int vector, int (*test)(struct counted *c));

/* One message; its two completions are left in the CQ.  Nobody calls what @w[2] has. */
int counted_message(struct counted *c, bool solicited, struct krping_wait *w);

/* Polls @n completions.  0, -EIO if one is not a success, -ETIMEDOUT. */
int counted_poll(struct counted *c, int n);

/* Waits for that many events in all.  0, -ETIMEDOUT, or -EINVAL if there are more. */
int counted_wait(struct counted *c, int events);

#endif /* HERALD_KRPING_COUNTED_H */
