/* SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB */
/*
 * Moderation: a completion event, decided as always, waits until enough CQEs
 * have been added or enough time has passed.  It is delayed, never lost, and
 * never merged with another.
 */
#ifndef HERALD_MODERATE_H
#define HERALD_MODERATE_H

#include <linux/hrtimer.h>
#include <linux/types.h>
#include <rdma/ib_verbs.h>

struct herald_cq;
struct herald_deferred;

/**
 * struct herald_moderation - a CQ's moderation; protected by herald_cq.lock
 * @count: CQEs that let the waiting events go, the one that caused the first
 *	of them included; 0: only time does
 * @period: microseconds after the first of them; 0: there is no moderation
 * @waiting: events that wait
 * @added: CQEs since the first of them was decided
 * @since: when the first of them was decided
 * @timer: runs while events wait
 */
struct herald_moderation {
	u16 count;
	u16 period;
	u32 waiting;
	u32 added;
	ktime_t since;
	struct hrtimer timer;
};

void herald_moderation_init(struct herald_cq *cq);

/* An event of @cq is due: let it go, or let it wait.  Context: any; cq->lock held. */
void herald_moderate_event(struct herald_cq *cq, struct herald_deferred *d);

/* Let all that wait go.  Context: any; cq->lock held. */
void herald_moderation_release(struct herald_cq *cq, struct herald_deferred *d);

/* A CQE was added, and what it causes was decided.  Context: any; cq->lock held. */
static inline void herald_moderate_cqe(struct herald_cq *cq, struct herald_moderation *m,
				       struct herald_deferred *d)
{
	if (unlikely(m->waiting) && ++m->added >= m->count && m->count)
		herald_moderation_release(cq, d);
}

/* The timer is and stays off; cq->closing is set (destroy).  Context: may sleep. */
void herald_moderation_stop(struct herald_cq *cq);

/**
 * herald_modify_cq - ib_device_ops: set the moderation
 * @count: CQEs; 0 for any number, 1 for no moderation
 * @period: microseconds; 0 for no moderation
 *
 * Return: -EINVAL if a count is given without a period: fewer CQEs than that
 * would wait for ever.  Else 0; events that wait go by the new values, both
 * counted from the first of them.
 * Context: any; no herald lock held.
 */
int herald_modify_cq(struct ib_cq *ibcq, u16 count, u16 period);

#endif /* HERALD_MODERATE_H */
