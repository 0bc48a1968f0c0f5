/* SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB */
/*
 * Races on demand: completions of a CQ are held back and released one at a
 * time, before or after its consumer's next arm; or they are reordered as far
 * as that is legal.  To the consumer, a held completion has not happened yet.
 */
#ifndef HERALD_CQ_HOLD_H
#define HERALD_CQ_HOLD_H

#include <linux/types.h>

struct herald_cq;
struct herald_cqe;
struct herald_deferred;
struct herald_sq_backref;

/* Completions that are held at most; the oldest are released beyond that. */
#define HERALD_MAX_HELD	4096

/* Completions that reordering keeps back at most. */
#define HERALD_REORDER_WINDOW	8

/* When a completion is released */
enum herald_hold_when {
	HERALD_HOLD_NOW,
	HERALD_HOLD_BEFORE_ARM,		/* found by whoever arms next: raises no event */
	HERALD_HOLD_AFTER_ARM,		/* the next arm is for it */
	HERALD_HOLD_WHENS
};

/**
 * herald_cq_hold - hold the completions of @cq from now on
 *
 * Return: 0 (also if they are held already), -ENOMEM, or -EBUSY if they are
 * being reordered.
 * Context: process, may sleep.
 */
int herald_cq_hold(struct herald_cq *cq);

/**
 * herald_cq_reorder - let completions of different queues overtake each other
 * @seed: the same seed and the same sequence of completions give the same
 *	order, unless pauses in between let some go early
 *
 * Those of one work queue stay in order.  None is kept back longer than a
 * millisecond after the last one came.
 * Return: 0, -ENOMEM, or -EBUSY if they are held.
 * Context: process, may sleep.
 */
int herald_cq_reorder(struct herald_cq *cq, u64 seed);

/**
 * herald_cq_release - release held completions, the oldest first
 * @when: now; or just before, or just after, the consumer's next arm
 * @n: how many; an arm that finds fewer takes what is there
 *
 * Return: how many were released, or are noted; -EINVAL if nothing is held here.
 * Context: process, may sleep.
 */
int herald_cq_release(struct herald_cq *cq, enum herald_hold_when when, u32 n);

/* Release everything, and hold or reorder nothing any more.  Context: process, may sleep. */
void herald_cq_resume(struct herald_cq *cq);

/* Raise @n completion events that no completion causes.  Context: process, may sleep. */
void herald_cq_extra_events(struct herald_cq *cq, u32 n);

/* The consumer is about to arm (@when: BEFORE_ARM), or has just armed.  Context: any. */
void herald_cq_arming(struct herald_cq *cq, enum herald_hold_when when);

/* -------------------------- for cq.c, with cq->lock held and cq->hold set -- */

/*
 * Take a completion.  False: it could not be held for want of memory; all that
 * was held is released, and the caller publishes it.
 */
bool herald_hold_cqe(struct herald_cq *cq, const struct herald_cqe *cqe, bool solicited,
		     const struct herald_sq_backref *ref, struct herald_deferred *d);

/* How many are held */
u32 herald_hold_count(const struct herald_cq *cq);

/* Release all, because something is coming that must come after them. */
void herald_hold_flush(struct herald_cq *cq, struct herald_deferred *d);

/* Forget those of a QP. */
void herald_hold_purge(struct herald_cq *cq, u32 qpn);

/* -------------------------------------------------------------------------- */

/*
 * An asynchronous event of a QP that completes on @cq comes next: what only
 * reordering keeps back goes first.  Context: any; no herald lock held.
 */
void herald_hold_settle(struct herald_cq *cq);

/* Forget everything; nothing is published any more (destroy).  Context: may sleep. */
void herald_hold_free(struct herald_cq *cq);

#endif /* HERALD_CQ_HOLD_H */
