// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/*
 * Asynchronous events, and what runs when all locks are dropped: the only
 * caller of event_handler and of ib_dispatch_event.
 *
 * An object's events wait in its source.  The context that notes one while
 * nobody has claimed the source claims it and delivers later; so an object's
 * events come out one at a time and in order.  A QP is referenced while its
 * source is claimed; the destroy of a CQ or SRQ waits for the claim to end.
 *
 * A kernel consumer may hold a lock of its own, which its handler takes, while
 * it calls a verb: so its handler is never called from there, but from a work
 * item, to which the claim is handed over.  A process's is the core's, which
 * takes locks of its own only, and is called in place.
 */
#include <linux/wait_bit.h>

#include "counters.h"
#include "cq.h"
#include "cq_hold.h"
#include "device.h"
#include "event.h"
#include "qp.h"
#include "srq.h"
#include "trace.h"

static void source_work(struct work_struct *work);

void herald_event_source_init(struct herald_event_source *src, enum herald_object object,
			      bool user)
{
	spin_lock_init(&src->lock);
	src->count = 0;
	src->claimed = false;
	src->user = user;
	src->object = object;
	src->raised = 0;
	src->runner = NULL;
	INIT_WORK(&src->work, source_work);
}

static struct herald_qp *source_qp(struct herald_event_source *src)
{
	return container_of(src, struct herald_qp, events);
}

static struct herald_cq *source_cq(struct herald_event_source *src)
{
	return container_of(src, struct herald_cq, events);
}

static struct herald_srq *source_srq(struct herald_event_source *src)
{
	return container_of(src, struct herald_srq, events);
}

/* Whose events these are, as others call it. */
struct owner {
	struct herald_dev *dev;
	u32 number;
	pid_t pid;
};

static struct owner source_owner(struct herald_event_source *src)
{
	const struct herald_srq *srq;
	const struct herald_qp *qp;
	const struct herald_cq *cq;

	switch (src->object) {
	case HERALD_OBJECT_QP:
		qp = source_qp(src);
		return (struct owner){ qp->dev, qp->qpn, qp->pid };
	case HERALD_OBJECT_CQ:
		cq = source_cq(src);
		return (struct owner){ cq->dev, cq->ib.res.id, cq->pid };
	default:
		srq = source_srq(src);
		return (struct owner){ srq->dev, srq->ib.res.id, srq->pid };
	}
}

static void source_trace(struct herald_event_source *src, int type, bool provoked,
			 enum herald_trace_verdict verdict)
{
	struct owner o;

	if (!trace_herald_async_event_enabled())
		return;
	o = source_owner(src);
	trace_herald_async_event(o.dev, type, src->object, o.number, provoked, o.pid, verdict);
}

/* ---------------------------------------------------------------- noting -- */

static bool source_has(const struct herald_event_source *src, enum ib_event_type type)
{
	int i;

	for (i = 0; i < src->count; i++)
		if (src->queue[i].type == type)
			return true;
	return false;
}

/* Claim the source for this context; false if its QP is on its way out. */
static bool source_claim(struct herald_event_source *src, struct herald_deferred *d)
{
	if (src->claimed)
		return true;
	if (src->object == HERALD_OBJECT_QP && !herald_qp_get(source_qp(src)))
		return false;
	src->claimed = true;
	src->next = NULL;
	if (d->sources)
		d->sources_last->next = src;
	else
		d->sources = src;
	d->sources_last = src;
	return true;
}

static void source_note(struct herald_event_source *src, enum ib_event_type type, bool provoked,
			struct herald_deferred *d)
{
	bool coalesced = false;
	unsigned long flags;

	spin_lock_irqsave(&src->lock, flags);
	if (src->count == HERALD_EVENT_QUEUE || source_has(src, type)) {
		coalesced = true;
		source_trace(src, type, provoked, HERALD_TRACE_COALESCED);
	} else if (source_claim(src, d)) {
		src->queue[src->count].type = type;
		src->queue[src->count++].provoked = provoked;
		src->raised++;
		source_trace(src, type, provoked, HERALD_TRACE_RAISED);
	}
	spin_unlock_irqrestore(&src->lock, flags);
	if (coalesced)
		herald_count(source_owner(src).dev, HERALD_CTR_events_coalesced);
}

void herald_event_qp(struct herald_qp *qp, enum ib_event_type type, struct herald_deferred *d)
{
	source_note(&qp->events, type, d->provoked, d);
}

void herald_event_cq(struct herald_cq *cq, enum ib_event_type type, struct herald_deferred *d)
{
	source_note(&cq->events, type, d->provoked, d);
}

void herald_event_srq(struct herald_srq *srq, enum ib_event_type type, struct herald_deferred *d)
{
	source_note(&srq->events, type, d->provoked, d);
}

void herald_event_overrun(struct herald_cq *cq, struct herald_deferred *d)
{
	cq->overrun_next = NULL;
	if (d->overrun)
		d->overrun_last->overrun_next = cq;
	else
		d->overrun = cq;
	d->overrun_last = cq;
}

/* ------------------------------------------------------------ delivering -- */

static enum herald_object port_event_object(enum ib_event_type type)
{
	if (type == IB_EVENT_DEVICE_FATAL || type == HERALD_EVENT_SPEED_CHANGE)
		return HERALD_OBJECT_DEVICE;
	return HERALD_OBJECT_PORT;
}

/*
 * The core tells of GIDs that come and go itself, and for that reason keeps a
 * driver's GID_CHANGE to itself.
 */
static void dispatch_gid_change(struct herald_dev *dev, struct ib_event *event)
{
	struct ib_event_handler *handler;

	down_read(&dev->ib.event_handler_rwsem);
	list_for_each_entry(handler, &dev->ib.event_handler_list, list)
		handler->handler(handler, event);
	up_read(&dev->ib.event_handler_rwsem);
}

void herald_event_port(struct herald_dev *dev, enum ib_event_type type, bool provoked)
{
	enum herald_object object = port_event_object(type);
	/* the core does the same when a device is removed */
	u32 number = type == IB_EVENT_DEVICE_FATAL ? 0 : 1;
	struct ib_event event = {
		.device = &dev->ib,
		.element.port_num = number,
		.event = type,
	};

	herald_count(dev, HERALD_CTR_async_events);
	trace_herald_async_event(dev, type, object, number, provoked, 0, HERALD_TRACE_RAISED);
	trace_herald_async_event(dev, type, object, number, provoked, 0, HERALD_TRACE_DELIVERED);
	if (type == IB_EVENT_GID_CHANGE)
		dispatch_gid_change(dev, &event);
	else
		ib_dispatch_event(&event);
}

/* A kernel consumer need not have a handler. */
static void source_deliver(struct herald_event_source *src, enum ib_event_type type)
{
	struct herald_dev *dev = source_owner(src).dev;
	struct ib_event event = { .device = &dev->ib, .event = type };
	void (*handler)(struct ib_event *event, void *context);
	void *context;

	switch (src->object) {
	case HERALD_OBJECT_QP:
		event.element.qp = &source_qp(src)->ib;
		handler = event.element.qp->event_handler;
		context = event.element.qp->qp_context;
		break;
	case HERALD_OBJECT_CQ:
		event.element.cq = &source_cq(src)->ib;
		handler = event.element.cq->event_handler;
		context = event.element.cq->cq_context;
		break;
	default:
		event.element.srq = &source_srq(src)->ib;
		handler = event.element.srq->event_handler;
		context = event.element.srq->srq_context;
		break;
	}
	herald_count(dev, HERALD_CTR_async_events);
	if (handler)
		handler(&event, context);
}

/*
 * The next event to be delivered, or -1: then the claim was given up, and only
 * a QP, which is referenced, may still be touched.
 */
static int source_pop(struct herald_event_source *src)
{
	unsigned long flags;
	int type = -1;

	spin_lock_irqsave(&src->lock, flags);
	if (src->count) {
		type = src->queue[0].type;
		source_trace(src, type, src->queue[0].provoked, HERALD_TRACE_DELIVERED);
		src->count--;
		memmove(&src->queue[0], &src->queue[1], src->count * sizeof(src->queue[0]));
	} else {
		src->claimed = false;
		WRITE_ONCE(src->runner, NULL);
	}
	spin_unlock_irqrestore(&src->lock, flags);
	return type;
}

/* An asynchronous event comes after the completions that came before it. */
static void settle(const struct herald_qp *qp)
{
	if (unlikely(READ_ONCE(qp->scq->hold)))
		herald_hold_settle(qp->scq);
	if (unlikely(READ_ONCE(qp->rcq->hold)))
		herald_hold_settle(qp->rcq);
}

static void source_run(struct herald_event_source *src)
{
	struct herald_qp *qp = src->object == HERALD_OBJECT_QP ? source_qp(src) : NULL;
	int type;

	lockdep_assert_not_held(&src->lock);
	while ((type = source_pop(src)) >= 0) {
		if (qp)
			settle(qp);
		source_deliver(src, type);
	}
	smp_mb();	/* against the waiter's check, see wake_up_var() */
	wake_up_var(&src->claimed);
	if (qp)
		herald_qp_put(qp);
}

static void source_work(struct work_struct *work)
{
	struct herald_event_source *src = container_of(work, struct herald_event_source, work);

	WRITE_ONCE(src->runner, current);
	source_run(src);
}

static bool source_is_idle(struct herald_event_source *src)
{
	unsigned long flags;
	bool idle;

	spin_lock_irqsave(&src->lock, flags);
	idle = !src->claimed;
	spin_unlock_irqrestore(&src->lock, flags);
	return idle;
}

void herald_event_source_flush(struct herald_event_source *src)
{
	wait_var_event(&src->claimed, source_is_idle(src));
	/* only its last steps, which do not touch the source, may be left */
	flush_work(&src->work);
}

void herald_event_source_settle(struct herald_event_source *src)
{
	wait_var_event(&src->claimed, herald_event_source_is_caller(src) || source_is_idle(src));
}

/* ---------------------------------------------------------------- runner -- */

void herald_deferred_run(struct herald_deferred *d)
{
	struct herald_event_source *src;
	struct herald_cq *cq;

	for (;;) {
		if (d->cqs) {
			cq = d->cqs;
			d->cqs = cq->notify_next;
			herald_notify_run(cq);
		} else if (d->overrun) {
			cq = d->overrun;
			d->overrun = cq->overrun_next;
			herald_cq_overrun(cq);
		} else if (d->sources) {
			src = d->sources;
			d->sources = src->next;
			if (src->user)
				source_run(src);
			else
				queue_work(herald_wq, &src->work);
		} else {
			return;
		}
	}
}
