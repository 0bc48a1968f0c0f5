// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/*
 * A kernel consumer's CQ: arming, publishing, polling, the handler that runs
 * when no lock is held, its work item, resizing, a QP's purge, destruction.
 * What cq->lock protects is one step; between two critical sections everything
 * else may happen.  In every reachable state:
 *
 *	no wake-up is lost: else the consumer sleeps for ever, which is an
 *	"invalid end state";
 *	none is doubled: no more events are decided than arms were made, no more
 *	are delivered than decided, and a CQE that fires is not reported as
 *	missed as well;
 *	the handler is not entered while it runs;
 *	nothing touches the CQ once destroy has freed it;
 *	a producer's CQEs come out in order, none missing, none twice.
 *
 * Bounds: two producers of N CQEs each, one consumer, one work item, one resize
 * with two rounds of copying ahead, one purge, one moderation that stays as it
 * is, one kind of arm (all kinds are in the table, which the unit tests go
 * through).  No overrun: a producer waits for room.  The caller's part is
 * assumed: nobody publishes to or resizes a CQ that is being destroyed.
 */

// events: a thread that polls and arms, woken by the handler; destroyed early or late
// run events: -DN=2 -DOLD_DEPTH=4
// ... and all goes through the work item
// run work: -DN=3 -DOLD_DEPTH=2 -DBUDGET=1
// the handler itself polls and arms
// run handler: -DN=2 -DOLD_DEPTH=4 -DHANDLER_POLLS
// a timer or the second CQE lets events go
// run moderation: -DN=2 -DOLD_DEPTH=4 -DMODERATE=2
// everything at once
// run together: -DN=1 -DOLD_DEPTH=1 -DNEW_DEPTH=2 -DRESIZE
// a consumer that only polls: the rings
// run grow: -DN=3 -DOLD_DEPTH=2 -DNEW_DEPTH=4 -DRESIZE -DPOLLING
// run shrink: -DN=3 -DOLD_DEPTH=4 -DNEW_DEPTH=2 -DRESIZE -DPOLLING
//
// mutant no-claim of events: in_handler==1
// mutant claim-unlocked of events: invalid end state
// mutant claim-unlocked of handler: invalid end state
// mutant arm-kept of events: fires<=arms
// mutant arm-after-check of events: invalid end state
// mutant check-after-arm of events: missed==had
// mutant no-wait of events: !(freed)
// mutant no-wait of work: !(freed)
// mutant no-wake of events: invalid end state
// mutant early-closing of events: invalid end state
// mutant merged of moderation: fires==handled
// mutant no-timer-stop of moderation: !(freed)
// mutant switch-unlocked of grow: next[((slot[
// mutant purge-uncounted of grow: next[0]==3
// mutant purges-read-late of grow: next[0]==3

#ifndef N
#define N 2		/* CQEs of each producer */
#endif
#ifndef BUDGET
#define BUDGET 2	/* events that a context delivers before the work item takes over */
#endif
#ifndef OLD_DEPTH
#define OLD_DEPTH 2
#endif
#ifndef NEW_DEPTH
#define NEW_DEPTH 4
#endif

#define CQE(p, i)	((p) * N + (i) + 1)
#define PRODUCER(cqe)	(((cqe) - 1) / N)
#define CQE_OK(cqe)	((cqe) > 0 && next[PRODUCER(cqe)] == ((cqe) - 1) % N)
#define SLOT(r, i)	slot[(r) * OLD_DEPTH + ((i) & ((r -> NEW_DEPTH : OLD_DEPTH) - 1))]
#define USED		(producer - consumer)
#define CAPACITY	(ring -> NEW_DEPTH : OLD_DEPTH)

/* the CQ */
byte slot[OLD_DEPTH + NEW_DEPTH];
bit ring;
byte producer, consumer, purges;
bool armed, closing, claimed;
byte due;
#ifdef MODERATE
byte waiting_events, added;
bool timer_on, timer_running;
#define TIMER_IDLE	(!timer_on && !timer_running)
#else
#define TIMER_IDLE	true
#endif

/* around it: the work item, the destroyer's wait */
bool work_pending, work_running;
bool waiting, woken;

/* the consumer: woken by the handler */
bool wake;

/* what is checked */
bool freed;
byte in_handler, arms, fires, handled;
byte next[2];		/* of each producer, the CQE that has to come next */
byte published[2];
bool producer_done[2];
#ifdef RESIZE
bool resized, purged;
#define CHANGED		(resized && purged)
#define CHANGED_QPS	purged
#else
#define CHANGED		true
#define CHANGED_QPS	false
#endif

#define TOUCH	assert(!freed)

/* ------------------------------------------------------------- consumer -- */

/* One CQE; cq->lock held.  None of its producer's was lost, none is repeated. */
inline take()
{
	assert(CQE_OK(SLOT(ring, consumer)));
	next[PRODUCER(SLOT(ring, consumer))]++;
	consumer++
}

/* Poll until nothing is there and the CQ is armed. */
inline poll_until_armed()
{
	do
	:: d_step {
		// kernel/cq.c: herald_poll_cq(): for (i = 0; i < n && cq_used(cq); i++)
		TOUCH;
		had = USED > 0;
		if
		:: had -> take()
		:: else
		fi };
		if
		:: had
		:: else ->
			// kernel/cq.c: cq_arm(): next = herald_arm_table(cq->arm_state, input)->next;
			// kernel/cq.c: cq_arm(): if (cq_used(cq))
			// kernel/cq.c: cq_arm(): spin_unlock_irqrestore(&cq->lock, flags);
#ifdef MUTANT_ARM_AFTER_CHECK
			d_step { TOUCH; missed = USED > 0 };
			d_step { arms = arms + !armed; armed = true };
#else
#ifdef MUTANT_CHECK_AFTER_ARM
			d_step { TOUCH; arms = arms + !armed; armed = true; had = USED > 0 };
			d_step { missed = USED > 0; assert(missed == had); had = false };
#else
			d_step { TOUCH; arms = arms + !armed; armed = true; missed = USED > 0 };
#endif
#endif
			if
			:: missed -> missed = false
			:: else -> break
			fi
		fi
	od
}

/* ------------------------------------------------------------- handlers -- */

/* cq->lock held; `mine` says that this context has to deliver. */
inline defer()
{
	// kernel/notify.c: herald_notify_defer(): if (cq->closing) return;
	// kernel/notify.c: herald_notify_defer(): cq->events_due++;
	// kernel/notify.c: herald_notify_defer(): if (cq->claimed) return;
	// kernel/notify.c: herald_notify_defer(): cq->claimed = true;
	if
	:: closing
	:: else ->
		due++;
		if
#ifndef MUTANT_NO_CLAIM
		:: claimed
#endif
		:: else ->
			claimed = true;
			mine = true
		fi
	fi
}

/* cq->lock held: an event is due. */
inline fire()
{
	fires++;
	// kernel/moderate.c: herald_moderate_event(): if (likely(!m->period)) { herald_notify_defer(cq, d);
#ifdef MODERATE
	// kernel/moderate.c: herald_moderate_event(): if (cq->closing || m->waiting++) return;
	// kernel/moderate.c: herald_moderate_event(): m->added = 0; m->since = ktime_get(); start_timer(m);
	if
	:: closing
	:: else ->
		waiting_events++;
		if
		:: waiting_events == 1 -> added = 0; timer_on = true
		:: else
		fi
	fi
#else
	defer()
#endif
}

/* cq->lock held: those that moderation delays go. */
inline release()
{
	// kernel/moderate.c: herald_moderation_release(): for (; m->waiting; m->waiting--) herald_notify_defer(cq, d);
	do
	:: waiting_events > 0 ->
		defer();
#ifdef MUTANT_MERGED
		waiting_events = 0
#else
		waiting_events--
#endif
	:: else -> break
	od
}

/* Let the application's thread go on, or do its work here. */
inline handler()
{
	d_step {
		TOUCH;
		in_handler++;
		assert(in_handler == 1);	// entered twice at once
		handled++;
		assert(handled <= fires)
	};
#ifdef HANDLER_POLLS
	poll_until_armed();
#endif
	skip;
	d_step { wake = true; in_handler-- }
}

inline notify_deliver()
{
	n = 0;
	do
	:: n < BUDGET ->
#ifdef MUTANT_EARLY_CLOSING
		notify = closing;
#endif
		// kernel/notify.c: notify_next_event(): closing = cq->closing;
		// kernel/notify.c: notify_next_event(): due = cq->events_due && !closing;
		// kernel/notify.c: notify_next_event(): if (due) { cq->events_due--; } else { cq->events_due = 0; cq->claimed = false; }
		d_step {
			TOUCH;
			go = due > 0 && !closing;
#ifndef MUTANT_EARLY_CLOSING
			notify = closing;
#endif
			if
			:: go -> due--
			:: else ->
#ifndef MUTANT_CLAIM_UNLOCKED
				due = 0;
				claimed = false
#endif
			fi
		};
		if
		:: go -> n++
		:: else ->
			n = 0;
#ifdef MUTANT_CLAIM_UNLOCKED
			d_step { TOUCH; claimed = false };
#endif
			// kernel/notify.c: notify_next_event(): if (!due && closing) {
			// kernel/notify.c: notify_next_event(): wake_up_var(&cq->claimed);
#ifndef MUTANT_NO_WAKE
			if
			:: notify && waiting -> woken = true
			:: else
			fi;
#endif
			break
		fi;
		// kernel/notify.c: notify_deliver(): cq->ib.comp_handler(&cq->ib, cq->ib.cq_context);
		handler()
	:: else ->
		// kernel/notify.c: notify_deliver(): notify_queue(cq);
		d_step { TOUCH; work_pending = true; n = 0 };
		break
	od;
	go = false;
	notify = false
}

/* ------------------------------------------------------------ producers -- */

inline publish(p, i)
{
	// kernel/cq.c: herald_cq_publish(): spin_lock_irqsave(&cq->lock, flags);
	// kernel/cq.c: herald_cq_publish(): herald_cq_add(cq, cqe, solicited, d);
	// kernel/cq.c: herald_cq_publish(): spin_unlock_irqrestore(&cq->lock, flags);
	atomic {
		USED < CAPACITY;
		TOUCH;
		SLOT(ring, producer) = CQE(p, i);
		producer++;
		published[p]++;
		// kernel/cq.c: cq_step(): herald_cq_event(cq, d);
		// kernel/cq.c: cq_step(): cq->arm_state = step->next;
		if
		:: armed ->
#ifndef MUTANT_ARM_KEPT
			armed = false;
#endif
			fire()
		:: else
		fi;
#ifdef MODERATE
		// kernel/cq.c: herald_cq_add(): herald_moderate_cqe(cq, &cq->moderation, d);
		// kernel/moderate.h: herald_moderate_cqe(): if (unlikely(m->waiting) && ++m->added >= m->count && m->count)
		if
		:: waiting_events > 0 ->
			added++;
			if
			:: added >= MODERATE -> release()
			:: else
			fi
		:: else
		fi;
#endif
		assert(fires <= arms)
	}
}

/* kernel/cq.c, cq_purge_ring(): the CQEs of the second producer's QP go. */
inline purge()
{
	// kernel/cq.c: cq_purge_ring(): for (from = to = cq->producer; from != cq->consumer;) {
	// kernel/cq.c: cq_purge_ring(): if (to != cq->consumer) { cq->consumer = to; cq->purges++; }
	d_step {
		TOUCH;
		from = producer;
		to = producer;
		do
		:: from == consumer -> break
		:: else ->
			from--;
			if
			:: SLOT(ring, from) > N
			:: else ->
				to--;
				SLOT(ring, to) = SLOT(ring, from)
			fi
		od;
		if
		:: to != consumer ->
			consumer = to;
#ifndef MUTANT_PURGE_UNCOUNTED
			purges++
#endif
		:: else
		fi;
		purged = true;
		from = 0;
		to = 0
	}
}

active [2] proctype Producer()
{
	bool mine, go, notify;
	byte n, i;
#ifdef HANDLER_POLLS
	bool missed, had;
#endif

	do
	:: i < N ->
		publish(_pid, i);
		i++;
		if
		:: mine -> mine = false; notify_deliver()
		// kernel/notify.c: herald_notify_run(): if (cq->user) notify_deliver(cq);
		// kernel/notify.c: herald_notify_run(): else notify_queue(cq);
		:: mine -> mine = false; d_step { TOUCH; work_pending = true }
		:: else
		fi
	:: else -> break
	od;
	producer_done[_pid] = true
}

#ifdef MODERATE
active proctype Timer()
{
	bool mine, go, notify;
	byte n;
#ifdef HANDLER_POLLS
	bool missed, had;
#endif

	// kernel/moderate.c: period_over(): if (m->waiting
	// kernel/moderate.c: period_over(): herald_moderation_release(cq, &d);
	// kernel/moderate.c: period_over(): herald_deferred_run(&d);
end:	do
	:: atomic { timer_on -> timer_on = false; timer_running = true };
		d_step { TOUCH; release() };
		if
		:: mine -> mine = false; notify_deliver()
		:: mine -> mine = false; d_step { TOUCH; work_pending = true }
		:: else
		fi;
		timer_running = false
	od
}
#endif

/* Once the second QP makes no CQE any more it may be destroyed. */
#ifdef RESIZE
active proctype Purger()
{
	byte from, to;

	published[1] == N;
	purge()
}

#endif

active proctype Worker()
{
	bool go, notify;
	byte n;
#ifdef HANDLER_POLLS
	bool missed, had;
#endif

	// kernel/notify.c: notify_work(): notify_deliver(
end:	do
	:: atomic { work_pending -> work_pending = false; work_running = true };
		notify_deliver();
		work_running = false
	od
}

#define ALL_PUBLISHED	(published[0] == N && published[1] == N && CHANGED)
#define COMPLETE	(next[0] == N && (next[1] == N || CHANGED_QPS))
#define QUIET		(producer_done[0] && producer_done[1] && !work_pending && !work_running && TIMER_IDLE)

active proctype Consumer()
{
	bool missed, had, patient;

	if
	:: patient = true
	:: patient = false
	fi;
#ifdef POLLING
	do
	:: atomic { USED > 0 -> take() }
	:: ALL_PUBLISHED && USED == 0 -> break
	od;
	assert(COMPLETE);
#endif
	poll_until_armed();
	do
	:: wake ->
		wake = false;
#ifndef HANDLER_POLLS
		poll_until_armed()
#endif
	// asleep, and there is nothing to wake up for
	:: ALL_PUBLISHED && QUIET && !wake && USED == 0 ->
		assert(COMPLETE && fires == handled);
		break
	// it has had enough of it
	:: !patient && ALL_PUBLISHED -> break
	od;

	skip;
	// kernel/cq.c: herald_pre_destroy_cq(): cq->closing = true;
	d_step { closing = true; armed = false };
#ifdef MODERATE
#ifndef MUTANT_NO_TIMER_STOP
	// kernel/cq.c: herald_pre_destroy_cq(): herald_moderation_stop(cq);
	// kernel/moderate.c: herald_moderation_stop(): hrtimer_cancel(&cq->moderation.timer);
	atomic { !timer_running -> timer_on = false };
#endif
#endif
	// kernel/cq.c: herald_pre_destroy_cq(): herald_notify_flush(cq);
#ifndef MUTANT_NO_WAIT
	// kernel/notify.c: herald_notify_flush(): wait_var_event(&cq->claimed, notify_is_over(cq));
	do
	:: waiting = true;
		d_step { had = claimed };
		if
		:: had -> woken; woken = false
		:: else -> break
		fi
	od;
#endif
	// kernel/notify.c: herald_notify_flush(): cancel_work_sync(&cq->notify_work);
	!work_pending && !work_running;
	// kernel/cq.c: herald_destroy_cq(): herald_shm_free(cq->shm);
	freed = true
}

/* --------------------------------------------------------------- resize -- */

inline copy_start()
{
	// kernel/cq_resize.c: cq_copy_start(): if (!copy->any || copy->purges != cq->purges) return cq->consumer;
	// kernel/cq_resize.c: cq_copy_start(): if ((s32)(cq->consumer - copy->end) > 0) return cq->consumer;
	if
	:: !any || seen_purges != purges || consumer > end_ -> from = consumer
	:: else -> from = end_
	fi
}

#ifdef RESIZE
active proctype Resizer()
{
	bool any;
	byte from, to, end_, seen_purges, new_purges, round;

	// kernel/cq_resize.c: cq_copy_ahead(): for (round = 0; round < CQ_COPY_ROUNDS; round++) {
	do
	:: round < 2 ->
		d_step {
			TOUCH;
			copy_start();
			to = producer;
			new_purges = purges
		};
		if
		:: USED > NEW_DEPTH -> goto out
		:: from == to && round -> break
		:: else
		fi;
		// kernel/cq_resize.c: cq_copy_ahead(): cq_copy_range(cq, ring, from, from + n);
		do
		:: from != to -> d_step { SLOT(1, from) = SLOT(0, from); from++ }
		:: else -> break
		od;
		any = true;
		end_ = to;
#ifdef MUTANT_PURGES_READ_LATE
		seen_purges = purges;
#else
		seen_purges = new_purges;
#endif
		round++
	:: else -> break
	od;
	skip;
	// kernel/cq_resize.c: cq_switch(): > ring->capacity) {
	// kernel/cq_resize.c: cq_switch(): cq_copy_range(cq, ring, cq_copy_start(cq, copy), cq->producer);
	// kernel/cq_resize.c: cq_switch(): cq_ring_use(cq, ring);
#ifdef MUTANT_SWITCH_UNLOCKED
	d_step { copy_start(); to = producer };
#endif
	d_step {
		TOUCH;
		if
		:: USED > NEW_DEPTH
		:: else ->
#ifndef MUTANT_SWITCH_UNLOCKED
			copy_start();
			to = producer;
#endif
			do
			:: from != to -> SLOT(1, from) = SLOT(0, from); from++
			:: else -> break
			od;
			ring = 1
		fi;
		from = 0;
		to = 0
	};
out:	resized = true
}
#endif
