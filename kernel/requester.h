/* SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB */
/* The requester: works off a QP's send queue, in order, one WR at a time. */
#ifndef HERALD_REQUESTER_H
#define HERALD_REQUESTER_H

#include <linux/types.h>

struct herald_qp;

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

/* The same, always by the work item.  Context: any, hard interrupts too; locks may be held. */
void herald_requester_kick_work(struct herald_qp *qp);

void herald_requester_init(struct herald_qp *qp);	/* work, timer, engine */

/* Stop: cancel timer and work, wait until idle.  The QP's state must forbid work.  May sleep. */
void herald_requester_stop(struct herald_qp *qp);

/* Forget all (reset); after stop. */
void herald_requester_reset(struct herald_qp *qp);

#endif /* HERALD_REQUESTER_H */
