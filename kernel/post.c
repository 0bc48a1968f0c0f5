// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/*
 * Posting: what is accepted, what is refused, and who does the work.
 *
 * A process fills its ring itself and only rings the doorbell (wr is NULL).  A
 * kernel consumer's WRs are written into a ring of the same kind here; those
 * before the first bad one are accepted, *bad_wr names that one.
 */
#include <linux/preempt.h>
#include <linux/workqueue.h>

#include "device.h"
#include "ioctl.h"
#include "qp.h"
#include "requester.h"
#include "responder.h"
#include "wqe.h"

/* ------------------------------------------------------------- whom -- */

bool herald_may_run_here(void)
{
	return in_task() && !softirq_count() && !irqs_disabled();
}

void herald_qp_kick_requester(struct herald_qp *qp)
{
	if (herald_may_run_here())
		herald_requester_kick(qp, qp->user ? HERALD_RUN_USER : HERALD_RUN_KERNEL);
	else
		herald_requester_kick_work(qp);
}

static void kick_responder_here(struct herald_qp *qp)
{
	HERALD_DEFERRED(d);

	herald_responder_kick(qp, &d);
	herald_deferred_run(&d);
}

void herald_qp_responder_work(struct work_struct *work)
{
	struct herald_qp *qp = container_of(work, struct herald_qp, resp.work);

	kick_responder_here(qp);
	herald_qp_put(qp);
}

void herald_qp_kick_responder(struct herald_qp *qp)
{
	if (herald_may_run_here())
		kick_responder_here(qp);
	else
		herald_qp_queue_responder(qp);
}

void herald_qp_queue_responder(struct herald_qp *qp)
{
	/* queued, it holds a reference; a QP that goes away has nothing to flush */
	if (herald_qp_get(qp) && !queue_work(herald_wq, &qp->resp.work))
		herald_qp_put(qp);
}

void herald_qp_ask(struct herald_qp *qp)
{
	struct herald_faults *faults = &qp->dev->faults;

	if (qp->sq.ring.user)
		herald_fault_ask(faults, HERALD_FAULT_POST_SEND, &qp->sq.ring.ctl->ask);
	if (qp->resp.ring.user)
		herald_fault_ask(faults, HERALD_FAULT_POST_RECV, &qp->resp.ring.ctl->ask);
}

/* ------------------------------------------------------------- send -- */

int herald_ring_send_doorbell(struct herald_qp *qp)
{
	if (!(herald_qp_may(qp) & HERALD_MAY_POST_SEND))
		return -EINVAL;
	herald_requester_doorbell(qp);
	return 0;
}

static int post_one_send(struct herald_qp *qp, const struct ib_send_wr *wr)
{
	unsigned long flags;
	int ret = -EINVAL;

	spin_lock_irqsave(&qp->sq.post_lock, flags);
	if (herald_qp_may(qp) & HERALD_MAY_POST_SEND)
		ret = herald_wqe_post_send(qp, wr);
	spin_unlock_irqrestore(&qp->sq.post_lock, flags);
	return ret;
}

int herald_post_send(struct ib_qp *ibqp, const struct ib_send_wr *wr,
		     const struct ib_send_wr **bad_wr)
{
	struct herald_qp *qp = to_hqp(ibqp);
	const struct ib_send_wr *first = wr, *next;
	int ret = -EINVAL;

	if (wr && !qp->user)
		ret = herald_fault_verb(&qp->dev->faults, HERALD_FAULT_POST_SEND);
	if (ret) {
		*bad_wr = wr;
		return ret;
	}
	for (; wr; wr = next) {
		next = wr->next;	/* once posted, it may complete and be freed */
		ret = post_one_send(qp, wr);
		if (ret)
			break;
	}
	if (ret)
		*bad_wr = wr;
	if (wr != first)
		herald_qp_kick_requester(qp);
	return ret;
}

/* ---------------------------------------------------------- receive -- */

/* In the error state nothing but this looks at the receive queue. */
static void flush_late_recv(struct herald_qp *qp)
{
	/*
	 * Pairs with the barrier after the state was set: either that flush
	 * sees the WR, or this sees the state.
	 */
	smp_mb();
	if (herald_qp_may(qp) & HERALD_FLUSH_RECV)
		herald_qp_kick_responder(qp);
}

int herald_ring_recv_doorbell(struct herald_qp *qp)
{
	if (qp->srq || !(herald_qp_may(qp) & HERALD_MAY_POST_RECV))
		return -EINVAL;
	flush_late_recv(qp);
	return 0;
}

static int post_one_recv(struct herald_qp *qp, const struct ib_recv_wr *wr)
{
	unsigned long flags;
	int ret = -EINVAL;

	spin_lock_irqsave(&qp->resp.post_lock, flags);
	if (herald_qp_may(qp) & HERALD_MAY_POST_RECV)
		ret = herald_wqe_post_recv(&qp->resp.ring, qp->cap.max_recv_sge, wr);
	spin_unlock_irqrestore(&qp->resp.post_lock, flags);
	return ret;
}

int herald_post_recv(struct ib_qp *ibqp, const struct ib_recv_wr *wr,
		     const struct ib_recv_wr **bad_wr)
{
	struct herald_qp *qp = to_hqp(ibqp);
	const struct ib_recv_wr *first = wr, *next;
	int ret = -EINVAL;

	if (wr && !qp->user)
		ret = herald_fault_verb(&qp->dev->faults, HERALD_FAULT_POST_RECV);
	if (ret) {
		*bad_wr = wr;
		return ret;
	}
	for (; wr; wr = next) {
		next = wr->next;	/* once posted, it may complete and be freed */
		ret = post_one_recv(qp, wr);
		if (ret)
			break;
	}
	if (ret)
		*bad_wr = wr;
	if (wr != first)
		flush_late_recv(qp);
	return ret;
}
