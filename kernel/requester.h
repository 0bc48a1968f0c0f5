/* SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB */
/* The requester: works off a QP's send queue, in order, one WR at a time. */
#ifndef HERALD_REQUESTER_H
#define HERALD_REQUESTER_H

#include <linux/types.h>

#include "completion.h"

struct herald_qp;
struct herald_op;
struct herald_deferred;

/* What the timer of a QP is running for */
enum herald_wait {
	HERALD_WAIT_NONE,
	HERALD_WAIT_RNR,
	HERALD_WAIT_ACK,
	HERALD_WAIT_NOTHING,	/* a NAK asked for another try at once */
};

/* How much may be done before the work item takes over, and may the caller be preempted? */
enum herald_run_context {
	HERALD_RUN_USER,	/* a process's doorbell: HERALD_BUDGET_BYTES, may sleep */
	HERALD_RUN_KERNEL,	/* a kernel consumer's post: HERALD_BUDGET_BYTES_INLINE, must not */
	HERALD_RUN_WORK,	/* the work item: requeues itself after the budget, may sleep */
};

/**
 * herald_requester_kick - see to it that the send queue is worked off
 * @qp: the QP
 * @ctx: HERALD_RUN_USER or HERALD_RUN_KERNEL: in this context, within its budget
 *
 * Context: as @ctx says; no herald lock held.
 */
void herald_requester_kick(struct herald_qp *qp, enum herald_run_context ctx);

/*
 * A process has rung the send queue's doorbell: as herald_requester_kick(), at once or with
 * the next ones.  Context: process, may sleep; the caller has a reference.
 */
void herald_requester_doorbell(struct herald_qp *qp);

/* The same, always by the work item.  Context: any, hard interrupts too; locks may be held. */
void herald_requester_kick_work(struct herald_qp *qp);

void herald_requester_init(struct herald_qp *qp);	/* work, timer, engine */

/* Stop: cancel timer and work, wait until idle.  The QP's state must forbid work.  May sleep. */
void herald_requester_stop(struct herald_qp *qp);

/* Forget all (reset); after stop. */
void herald_requester_reset(struct herald_qp *qp);

/* ------------------------------------ for its owner, who is a transport -- */

/* A WR of the QP completes, in success or flushed; or in error, with what follows from that. */
void herald_requester_complete(struct herald_qp *qp, struct herald_op *op, int status,
			       struct herald_deferred *d);
void herald_requester_fail(struct herald_qp *qp, struct herald_op *op, int status,
			   struct herald_deferred *d);

/* Retries are counted for each answer, and for each path, anew. */
void herald_requester_start_retries(struct herald_qp *qp);

/*
 * After a NAK, or a wait for an answer that did not come: is there a retry left?
 * *mig_failed: there was another path to try, in vain: herald_mig_gave_up() must
 * follow the WR's completion.
 */
bool herald_requester_may_retry(struct herald_qp *qp, enum herald_wait why, bool *mig_failed,
				struct herald_deferred *d);

/* Wait for the peer's receive WR: HERALD_RNR; or HERALD_RNR_EXCEEDED. */
enum herald_outcome herald_requester_wait_rnr(struct herald_qp *qp);

/* How long an answer may take. */
u64 herald_requester_patience_ns(const struct herald_qp *qp);

#endif /* HERALD_REQUESTER_H */
