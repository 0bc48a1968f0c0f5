/* SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB */
/*
 * Decide under a lock, deliver after it.
 *
 * Whatever finds out under a lock that somebody must be told (a completion
 * handler, an asynchronous event) notes it on a struct herald_deferred on its
 * own stack, and runs that when it holds no herald lock any more.  Only
 * event.c calls event handlers; only notify.c calls completion handlers.
 */
#ifndef HERALD_EVENT_H
#define HERALD_EVENT_H

#include <linux/sched.h>
#include <linux/spinlock.h>
#include <linux/workqueue.h>
#include <rdma/ib_verbs.h>

struct herald_cq;
struct herald_qp;
struct herald_srq;
struct herald_dev;

/*
 * An object that events can be raised on embeds one of these.  The queue keeps
 * the order; an event that does not fit, or equals one that waits, is counted
 * (events_coalesced) and dropped: each kind is raised at most once per cause
 * by its callers, so that needs a caller's bug.
 */
#define HERALD_EVENT_QUEUE	8

enum herald_object {
	HERALD_OBJECT_QP,
	HERALD_OBJECT_CQ,
	HERALD_OBJECT_SRQ,
	HERALD_OBJECT_PORT,
	HERALD_OBJECT_DEVICE,
};

struct herald_event_source {
	spinlock_t lock;
	struct {
		u8 type;		/* enum ib_event_type */
		bool provoked;		/* on purpose, see provoke.h */
	} queue[HERALD_EVENT_QUEUE];
	u8 count;
	bool claimed;			/* some context will deliver what is queued */
	bool user;			/* a process's: delivered where it is noted */
	u8 object;			/* enum herald_object: QP, CQ or SRQ */
	u32 raised;			/* how many ever */
	struct herald_event_source *next;	/* on that context's herald_deferred */
	struct work_struct work;	/* delivers to a kernel consumer */
	struct task_struct *runner;	/* who does so now */
};

void herald_event_source_init(struct herald_event_source *src, enum herald_object object,
			      bool user);

/**
 * struct herald_deferred - callbacks to be run when no lock is held
 * @cqs: CQs with completion events to deliver (chained by herald_cq.notify_next)
 * @sources: objects with asynchronous events to deliver
 * @overrun: CQs that have just overrun (chained by herald_cq.overrun_next):
 *	their QPs must be put into the error state
 * @provoked: what happens now happens on purpose, and so do its consequences
 * @cqs_last, @sources_last, @overrun_last: the ends of the chains, which keep
 *	the order in which things happened; valid while the chain is not empty
 */
struct herald_deferred {
	struct herald_cq *cqs;
	struct herald_event_source *sources;
	struct herald_cq *overrun;
	struct herald_cq *cqs_last;
	struct herald_event_source *sources_last;
	struct herald_cq *overrun_last;
	bool provoked;
};

#define HERALD_DEFERRED(name) struct herald_deferred name = {}

static inline bool herald_deferred_empty(const struct herald_deferred *d)
{
	return !d->cqs && !d->sources && !d->overrun;
}

/**
 * herald_event_qp, _cq, _srq - note an asynchronous event
 * @type: the event
 * @d: where it is noted; a reference to the object is taken until it is run
 *
 * Context: any, any lock of the object may be held.
 */
void herald_event_qp(struct herald_qp *qp, enum ib_event_type type, struct herald_deferred *d);
void herald_event_cq(struct herald_cq *cq, enum ib_event_type type, struct herald_deferred *d);
void herald_event_srq(struct herald_srq *srq, enum ib_event_type type, struct herald_deferred *d);

/* Note that @cq has overrun.  Context: any; cq->lock may be held. */
void herald_event_overrun(struct herald_cq *cq, struct herald_deferred *d);

/*
 * Raise an event of the port (or of the device, as the event has it).
 * Context: any, may sleep for GID_CHANGE; no herald lock held.
 */
void herald_event_port(struct herald_dev *dev, enum ib_event_type type, bool provoked);

/**
 * herald_deferred_run - deliver all that was noted
 * @d: empty afterwards
 *
 * Order: completion events, then overruns (a work item sees to each: CQ_ERR,
 * then the CQ's QPs to the error state), then asynchronous events, until
 * nothing is left: an asynchronous event comes after the completion that
 * explains it.
 * Context: any; no herald lock held.
 */
void herald_deferred_run(struct herald_deferred *d);

/*
 * Wait until no context will call a handler for this source any more; the
 * caller has made sure that none is noted from now on.  Context: may sleep.
 */
void herald_event_source_flush(struct herald_event_source *src);

/* Does a handler of this source call us?  Context: any. */
static inline bool herald_event_source_is_caller(const struct herald_event_source *src)
{
	return READ_ONCE(src->runner) == current;
}

/*
 * The same as herald_event_source_flush() for a source that will be used again,
 * but that a handler of its own is not waited for.  Context: may sleep.
 */
void herald_event_source_settle(struct herald_event_source *src);

#endif /* HERALD_EVENT_H */
