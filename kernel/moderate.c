// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/* Moderation of completion events (ibv_modify_cq, rdma_set_cq_moderation). */
#include "cq.h"
#include "device.h"
#include "event.h"
#include "moderate.h"
#include "notify.h"

static ktime_t deadline(const struct herald_moderation *m)
{
	return ktime_add_us(m->since, m->period);
}

static void start_timer(struct herald_moderation *m)
{
	hrtimer_start(&m->timer, deadline(m), HRTIMER_MODE_ABS_SOFT);
}

void herald_moderate_event(struct herald_cq *cq, struct herald_deferred *d)
{
	struct herald_moderation *m = &cq->moderation;

	lockdep_assert_held(&cq->lock);
	if (likely(!m->period)) {
		herald_notify_defer(cq, d);
		return;
	}
	if (cq->closing || m->waiting++)
		return;
	m->added = 0;
	m->since = ktime_get();
	start_timer(m);
}

void herald_moderation_release(struct herald_cq *cq, struct herald_deferred *d)
{
	struct herald_moderation *m = &cq->moderation;

	lockdep_assert_held(&cq->lock);
	for (; m->waiting; m->waiting--)
		herald_notify_defer(cq, d);
}

/* The timer may have been started anew since it expired: then it is not time yet. */
static enum hrtimer_restart period_over(struct hrtimer *timer)
{
	HERALD_DEFERRED(d);
	struct herald_cq *cq = container_of(timer, struct herald_cq, moderation.timer);
	struct herald_moderation *m = &cq->moderation;
	unsigned long flags;

	spin_lock_irqsave(&cq->lock, flags);
	if (m->waiting && ktime_compare(ktime_get(), deadline(m)) >= 0)
		herald_moderation_release(cq, &d);
	spin_unlock_irqrestore(&cq->lock, flags);
	herald_deferred_run(&d);
	return HRTIMER_NORESTART;
}

void herald_moderation_init(struct herald_cq *cq)
{
	hrtimer_setup(&cq->moderation.timer, period_over, CLOCK_MONOTONIC, HRTIMER_MODE_ABS_SOFT);
}

void herald_moderation_stop(struct herald_cq *cq)
{
	hrtimer_cancel(&cq->moderation.timer);
}

int herald_modify_cq(struct ib_cq *ibcq, u16 count, u16 period)
{
	HERALD_DEFERRED(d);
	struct herald_cq *cq = to_hcq(ibcq);
	struct herald_moderation *m = &cq->moderation;
	unsigned long flags;
	int ret = herald_dev_check(cq->dev);

	if (ret)
		return ret;
	if (count > 1 && !period)
		return -EINVAL;
	spin_lock_irqsave(&cq->lock, flags);
	m->count = count;
	m->period = count == 1 ? 0 : period;
	if (!m->period || (m->count && m->added >= m->count))
		herald_moderation_release(cq, &d);
	else if (m->waiting && !cq->closing)
		start_timer(m);
	spin_unlock_irqrestore(&cq->lock, flags);
	herald_deferred_run(&d);
	return 0;
}
