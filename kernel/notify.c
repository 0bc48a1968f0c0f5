// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/*
 * Completion events: the only caller of comp_handler.
 *
 * cq.c decides, under the CQ's lock, that an event is due.  The first context
 * to find the CQ unclaimed claims it and delivers when it holds no lock any
 * more; what becomes due meanwhile is delivered by the same context, so that a
 * handler is never entered twice at once for one CQ and events keep their order.
 *
 * A kernel consumer may hold a lock of its own, which its handler takes, while
 * it calls a verb: so its handler is never called from there, but from a bottom
 * half on the CPU of the CQ's completion vector.  A process's is the core's,
 * which takes locks of its own only, and is called in place.
 */
#include <linux/bottom_half.h>
#include <linux/cpumask.h>
#include <linux/irqflags.h>
#include <linux/smp.h>
#include <linux/wait_bit.h>
#include <linux/workqueue.h>

#include "cq.h"
#include "device.h"
#include "notify.h"
#include "trace.h"

/* Events that one context delivers for one CQ before the work item takes over. */
#define NOTIFY_BUDGET	64

unsigned int herald_vector_cpu(const struct herald_dev *dev, u32 vector)
{
	return cpumask_nth(vector, &dev->vector_cpus);
}

void herald_notify_defer(struct herald_cq *cq, struct herald_deferred *d)
{
	lockdep_assert_held(&cq->lock);
	if (cq->closing)
		return;
	cq->events_due++;
	if (cq->claimed)
		return;
	cq->claimed = true;
	cq->notify_next = NULL;
	if (d->cqs)
		d->cqs_last->notify_next = cq;
	else
		d->cqs = cq;
	d->cqs_last = cq;
}

/*
 * One event of @cq, which this context has claimed, is to be delivered; else
 * the claim is given up, and @cq must not be touched any more.
 */
static bool notify_next_event(struct herald_cq *cq)
{
	unsigned long flags;
	bool due, closing;

	spin_lock_irqsave(&cq->lock, flags);
	closing = cq->closing;
	due = cq->events_due && !closing;
	if (due) {
		cq->events_due--;
	} else {
		cq->events_due = 0;
		cq->claimed = false;
	}
	spin_unlock_irqrestore(&cq->lock, flags);

	if (!due && closing) {
		smp_mb();	/* against the waiter's check, see wake_up_var() */
		wake_up_var(&cq->claimed);
	}
	return due;
}

/*
 * Have the work item deliver; it keeps the claim.  A CPU that has gone would
 * never run it.  Bottom halves are off.
 */
static void notify_queue(struct herald_cq *cq)
{
	unsigned int cpu = cpu_online(cq->cpu) ? cq->cpu : smp_processor_id();

	if (cq->user)
		queue_work(herald_wq, &cq->notify_work);
	else
		queue_work_on(cpu, system_bh_wq, &cq->notify_work);
}

static void notify_deliver(struct herald_cq *cq)
{
	int n;

	for (n = 0; n < NOTIFY_BUDGET; n++) {
		if (!notify_next_event(cq))
			return;
		trace_herald_comp_event(cq, HERALD_TRACE_DELIVERED);
		if (cq->ib.comp_handler)
			cq->ib.comp_handler(&cq->ib, cq->ib.cq_context);
	}
	notify_queue(cq);
}

void herald_notify_run(struct herald_cq *cq)
{
	/* with interrupts off, bottom halves are too, and must not be "enabled" */
	bool bh = !irqs_disabled();

	lockdep_assert_not_held(&cq->lock);
	if (bh)
		local_bh_disable();
	if (cq->user)
		notify_deliver(cq);
	else
		notify_queue(cq);
	if (bh)
		local_bh_enable();
}

static void notify_work(struct work_struct *work)
{
	local_bh_disable();
	notify_deliver(container_of(work, struct herald_cq, notify_work));
	local_bh_enable();
}

void herald_notify_init(struct herald_cq *cq)
{
	/* two places, because the one runs in a bottom half: lockdep tells them apart by that */
	if (cq->user)
		INIT_WORK(&cq->notify_work, notify_work);
	else
		INIT_WORK(&cq->notify_work, notify_work);
}

static bool notify_is_over(struct herald_cq *cq)
{
	unsigned long flags;
	bool over;

	spin_lock_irqsave(&cq->lock, flags);
	over = !cq->claimed;
	spin_unlock_irqrestore(&cq->lock, flags);
	return over;
}

void herald_notify_flush(struct herald_cq *cq)
{
	/* whoever has the claim sees cq->closing before the next event, and gives up */
	wait_var_event(&cq->claimed, notify_is_over(cq));
	/* nothing is queued any more; its last run may not be quite over */
	cancel_work_sync(&cq->notify_work);
}
