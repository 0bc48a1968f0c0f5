// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/*
 * Completions that are held back, in the order in which they happened.  They
 * have room in the ring (cq_has_room() counts them), and the send queue already
 * knows which index each of them will have.
 */
#include <linux/list.h>
#include <linux/prandom.h>
#include <linux/slab.h>

#include "cq.h"
#include "cq_hold.h"
#include "cq_ring.h"
#include "device.h"
#include "event.h"

#define REORDER_NS	NSEC_PER_MSEC

struct held {
	struct list_head node;
	struct herald_cqe cqe;
	bool solicited;
	u32 *index;	/* where its CQE's index is written, or NULL; its QP is alive */
};

/**
 * struct herald_cq_hold - exists once completions of the CQ were held
 * @list: of struct held
 * @n: its length
 * @on: what comes is held
 * @reorder: what comes is reordered
 * @due: to be released when the consumer arms, by enum herald_hold_when
 * @random: decides the order
 * @cq: whose it is
 * @timer: releases what reordering keeps back when nothing more comes
 *
 * Protected by herald_cq.lock.
 */
struct herald_cq_hold {
	struct list_head list;
	u32 n;
	bool on;
	bool reorder;
	u32 due[HERALD_HOLD_WHENS];
	struct rnd_state random;
	struct hrtimer timer;
	struct herald_cq *cq;
};

u32 herald_hold_count(const struct herald_cq *cq)
{
	return cq->hold->n;
}

/* Tell the send queue which index each held completion will have. */
static void renumber(struct herald_cq *cq)
{
	u32 index = cq->producer;
	struct held *h;

	list_for_each_entry(h, &cq->hold->list, node) {
		if (h->index)
			WRITE_ONCE(*h->index, index);
		index++;
	}
}

/* The oldest one comes to be. */
static void release_first(struct herald_cq *cq, struct herald_deferred *d)
{
	struct herald_cq_hold *hold = cq->hold;
	struct held *h = list_first_entry(&hold->list, struct held, node);

	list_del(&h->node);
	hold->n--;
	herald_cq_add(cq, &h->cqe, h->solicited, d);
	kfree(h);
}

static u32 release(struct herald_cq *cq, u32 n, struct herald_deferred *d)
{
	u32 i;

	lockdep_assert_held(&cq->lock);
	n = min(n, cq->hold->n);
	for (i = 0; i < n; i++)
		release_first(cq, d);
	return n;
}

#define RELEASE_CHUNK	64	/* that many with interrupts off */

/* Release @n of those that are held, or what there is.  Context: any; no herald lock held. */
static u32 release_in_chunks(struct herald_cq *cq, u32 n)
{
	HERALD_DEFERRED(d);
	u32 done = 0, some;
	unsigned long flags;

	do {
		spin_lock_irqsave(&cq->lock, flags);
		some = cq->hold && cq->hold->on ?
			       release(cq, min(n - done, (u32)RELEASE_CHUNK), &d) : 0;
		spin_unlock_irqrestore(&cq->lock, flags);
		herald_deferred_run(&d);
		done += some;
	} while (some == RELEASE_CHUNK);
	return done;
}

/* ------------------------------------------------------------- reordering -- */

static bool same_queue(const struct held *a, const struct held *b)
{
	bool a_sends = a->cqe.queue == HERALD_CQE_SQ, b_sends = b->cqe.queue == HERALD_CQE_SQ;

	return a->cqe.qp_num == b->cqe.qp_num && a_sends == b_sends;
}

/* Any of them, or rather the oldest one of its queue, becomes the first. */
static void shuffle(struct herald_cq *cq)
{
	struct herald_cq_hold *hold = cq->hold;
	u32 skip = prandom_u32_state(&hold->random) % hold->n;
	struct held *h, *pick;

	list_for_each_entry(pick, &hold->list, node)
		if (!skip--)
			break;
	list_for_each_entry(h, &hold->list, node)
		if (same_queue(h, pick))
			break;
	list_move(&h->node, &hold->list);
	renumber(cq);
}

/* Keep some of them back, for what comes to overtake. */
static void reorder_some(struct herald_cq *cq, struct herald_deferred *d)
{
	struct herald_cq_hold *hold = cq->hold;

	while (hold->n > prandom_u32_state(&hold->random) % HERALD_REORDER_WINDOW) {
		shuffle(cq);
		release_first(cq, d);
	}
}

void herald_hold_flush(struct herald_cq *cq, struct herald_deferred *d)
{
	struct herald_cq_hold *hold = cq->hold;

	while (hold->n) {
		if (hold->reorder)
			shuffle(cq);
		release_first(cq, d);
	}
}

static enum hrtimer_restart reorder_timer(struct hrtimer *timer)
{
	HERALD_DEFERRED(d);
	struct herald_cq_hold *hold = container_of(timer, struct herald_cq_hold, timer);
	struct herald_cq *cq = hold->cq;
	unsigned long flags;

	spin_lock_irqsave(&cq->lock, flags);
	if (cq->hold == hold && hold->reorder)
		herald_hold_flush(cq, &d);
	spin_unlock_irqrestore(&cq->lock, flags);
	herald_deferred_run(&d);
	return HRTIMER_NORESTART;
}

void herald_hold_settle(struct herald_cq *cq)
{
	HERALD_DEFERRED(d);
	unsigned long flags;

	spin_lock_irqsave(&cq->lock, flags);
	if (cq->hold && cq->hold->reorder)
		herald_hold_flush(cq, &d);
	spin_unlock_irqrestore(&cq->lock, flags);
	herald_deferred_run(&d);
}

/* ---------------------------------------------------------------- holding -- */

bool herald_hold_cqe(struct herald_cq *cq, const struct herald_cqe *cqe, bool solicited,
		     const struct herald_sq_backref *ref, struct herald_deferred *d)
{
	struct herald_cq_hold *hold = cq->hold;
	struct held *h;

	if (!hold->on && !hold->reorder)
		return false;
	h = kmalloc(sizeof(*h), GFP_ATOMIC | __GFP_NOWARN);
	if (!h) {
		herald_count(cq->dev, HERALD_CTR_cq_hold_failed);
		herald_hold_flush(cq, d);
		return false;
	}
	herald_count(cq->dev, HERALD_CTR_cq_held);
	h->cqe = *cqe;
	h->solicited = solicited;
	h->index = ref ? ref->index : NULL;
	list_add_tail(&h->node, &hold->list);
	herald_cq_write_ref(ref, true, cq->producer + hold->n++);
	if (hold->n > HERALD_MAX_HELD) {
		herald_count(cq->dev, HERALD_CTR_cq_hold_failed);
		release_first(cq, d);
	}
	if (hold->reorder) {
		reorder_some(cq, d);
		hrtimer_start(&hold->timer, ns_to_ktime(REORDER_NS), HRTIMER_MODE_REL_SOFT);
	}
	return true;
}

void herald_hold_purge(struct herald_cq *cq, u32 qpn)
{
	struct held *h, *next;

	list_for_each_entry_safe(h, next, &cq->hold->list, node) {
		if (h->cqe.qp_num != qpn)
			continue;
		list_del(&h->node);
		kfree(h);
		cq->hold->n--;
	}
	renumber(cq);
}

/* Make what holds completions, if it is not there yet, and switch it on. */
static int begin(struct herald_cq *cq, bool reorder, u64 seed)
{
	struct herald_cq_hold *hold = kzalloc_obj(*hold, GFP_KERNEL);
	int ret = 0;

	if (!hold)
		return -ENOMEM;
	INIT_LIST_HEAD(&hold->list);
	hold->cq = cq;
	hrtimer_setup(&hold->timer, reorder_timer, CLOCK_MONOTONIC, HRTIMER_MODE_REL_SOFT);

	spin_lock_irq(&cq->lock);
	if (!cq->hold)
		swap(cq->hold, hold);
	if (reorder ? cq->hold->on : cq->hold->reorder) {
		ret = -EBUSY;
	} else {
		cq->hold->on = !reorder;
		cq->hold->reorder = reorder;
		prandom_seed_state(&cq->hold->random, seed);
		herald_cq_tell_arm(cq, HERALD_TELL_ARM_HOLD, !reorder);
	}
	spin_unlock_irq(&cq->lock);
	kfree(hold);
	return ret;
}

int herald_cq_hold(struct herald_cq *cq)
{
	return begin(cq, false, 0);
}

int herald_cq_reorder(struct herald_cq *cq, u64 seed)
{
	return begin(cq, true, seed);
}

int herald_cq_release(struct herald_cq *cq, enum herald_hold_when when, u32 n)
{
	bool on;

	n = min_t(u32, n, HERALD_MAX_CQE);
	spin_lock_irq(&cq->lock);
	on = cq->hold && cq->hold->on;
	if (on && when != HERALD_HOLD_NOW)
		cq->hold->due[when] = n;
	spin_unlock_irq(&cq->lock);
	if (!on)
		return -EINVAL;
	return when == HERALD_HOLD_NOW ? release_in_chunks(cq, n) : n;
}

void herald_cq_resume(struct herald_cq *cq)
{
	HERALD_DEFERRED(d);

	release_in_chunks(cq, HERALD_MAX_CQE);
	spin_lock_irq(&cq->lock);
	if (cq->hold) {
		herald_hold_flush(cq, &d);
		cq->hold->on = false;
		cq->hold->reorder = false;
		memset(cq->hold->due, 0, sizeof(cq->hold->due));
		herald_cq_tell_arm(cq, HERALD_TELL_ARM_HOLD, false);
	}
	spin_unlock_irq(&cq->lock);
	herald_deferred_run(&d);
}

void herald_cq_extra_events(struct herald_cq *cq, u32 n)
{
	HERALD_DEFERRED(d);

	spin_lock_irq(&cq->lock);
	while (n--)
		herald_cq_event(cq, &d);
	spin_unlock_irq(&cq->lock);
	herald_deferred_run(&d);
}

void herald_cq_arming(struct herald_cq *cq, enum herald_hold_when when)
{
	unsigned long flags;
	u32 n = 0;

	spin_lock_irqsave(&cq->lock, flags);
	if (cq->hold)
		swap(n, cq->hold->due[when]);
	spin_unlock_irqrestore(&cq->lock, flags);
	if (n)
		release_in_chunks(cq, n);
}

void herald_hold_free(struct herald_cq *cq)
{
	struct herald_cq_hold *hold;
	struct held *h, *next;

	spin_lock_irq(&cq->lock);
	hold = cq->hold;
	cq->hold = NULL;
	spin_unlock_irq(&cq->lock);
	if (!hold)
		return;
	hrtimer_cancel(&hold->timer);
	list_for_each_entry_safe(h, next, &hold->list, node)
		kfree(h);
	kfree(hold);
}
