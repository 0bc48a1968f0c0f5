// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/* The QPs of a CQ, and how an overrun takes them along. */
#include <linux/list.h>
#include <linux/wait_bit.h>

#include "cq.h"
#include "device.h"
#include "qp.h"

void herald_cq_attach_qp(struct herald_cq *cq, struct list_head *node, bool send)
{
	unsigned long flags;

	spin_lock_irqsave(&cq->qps_lock, flags);
	list_add_tail(node, &cq->qps[send ? 0 : 1]);
	spin_unlock_irqrestore(&cq->qps_lock, flags);
}

void herald_cq_detach_qp(struct herald_cq *cq, struct list_head *node)
{
	unsigned long flags;

	spin_lock_irqsave(&cq->qps_lock, flags);
	list_del_init(node);
	spin_unlock_irqrestore(&cq->qps_lock, flags);
}

#define CQ_QP_BATCH	16

/* Up to CQ_QP_BATCH QPs after @cursor, referenced; moves the cursor.  cq->qps_lock held. */
static unsigned int next_qps(struct herald_cq *cq, int which, struct list_head *cursor,
			     struct herald_qp **batch)
{
	unsigned int n = 0;

	while (n < CQ_QP_BATCH && cursor->next != &cq->qps[which]) {
		struct list_head *node = cursor->next;
		struct herald_qp *qp = container_of(node - which, struct herald_qp, cq_node[0]);

		list_move(cursor, node);
		if (herald_qp_get(qp))
			batch[n++] = qp;
	}
	return n;
}

/*
 * Only one context walks a list, so the cursor in it, which keeps the place
 * while the lock is dropped, is the only one.
 */
static void fail_qps(struct herald_cq *cq, int which, struct herald_deferred *d)
{
	struct herald_qp *batch[CQ_QP_BATCH];
	struct list_head cursor;
	unsigned long flags;
	unsigned int i, n;

	spin_lock_irqsave(&cq->qps_lock, flags);
	list_add(&cursor, &cq->qps[which]);
	while ((n = next_qps(cq, which, &cursor, batch))) {
		spin_unlock_irqrestore(&cq->qps_lock, flags);
		for (i = 0; i < n; i++) {
			herald_qp_fatal(batch[i], d);
			herald_qp_put(batch[i]);
		}
		cond_resched();
		spin_lock_irqsave(&cq->qps_lock, flags);
	}
	list_del(&cursor);
	spin_unlock_irqrestore(&cq->qps_lock, flags);
}

static void overrun(struct herald_cq *cq, struct herald_deferred *d)
{
	unsigned long flags;

	lockdep_assert_not_held(&cq->lock);
	lockdep_assert_not_held(&cq->qps_lock);
	herald_event_cq(cq, IB_EVENT_CQ_ERR, d);
	fail_qps(cq, 0, d);
	fail_qps(cq, 1, d);

	/* from here on a QP whose completion is dropped fails by that */
	spin_lock_irqsave(&cq->lock, flags);
	cq->overrun_walked = true;
	spin_unlock_irqrestore(&cq->lock, flags);
	/* those that came while the lists were walked, and whose completion was dropped before */
	fail_qps(cq, 0, d);
	fail_qps(cq, 1, d);

	spin_lock_irqsave(&cq->lock, flags);
	cq->overrun_pending = false;
	spin_unlock_irqrestore(&cq->lock, flags);
	/* from here on only the address of @cq is used */
	smp_mb();	/* against the waiter's check, see wake_up_var() */
	wake_up_var(&cq->overrun_pending);
}

/* Any number of QPs flush here: not in the context of whoever overran the CQ. */
static void overrun_work(struct work_struct *work)
{
	struct herald_cq *cq = container_of(work, struct herald_cq, overrun_work);
	/* written before the work was queued */
	struct herald_deferred d = { .provoked = cq->overrun_provoked };

	overrun(cq, &d);
	herald_deferred_run(&d);
}

void herald_cq_overrun_init(struct herald_cq *cq)
{
	INIT_WORK(&cq->overrun_work, overrun_work);
}

void herald_cq_overrun(struct herald_cq *cq)
{
	queue_work(herald_wq, &cq->overrun_work);
}

static bool overrun_is_over(struct herald_cq *cq)
{
	unsigned long flags;
	bool over;

	spin_lock_irqsave(&cq->lock, flags);
	over = !cq->overrun_pending;
	spin_unlock_irqrestore(&cq->lock, flags);
	return over;
}

void herald_cq_overrun_flush(struct herald_cq *cq)
{
	wait_var_event(&cq->overrun_pending, overrun_is_over(cq));
	flush_work(&cq->overrun_work);
	WARN_ON(!list_empty(&cq->qps[0]) || !list_empty(&cq->qps[1]));
}
