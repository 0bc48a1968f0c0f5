// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/* A connected QP on the wire: its life, and what arrives for it. */
#include <linux/cpumask.h>
#include <linux/slab.h>

#include "psn.h"
#include "responder.h"
#include "transport.h"
#include "wire_qp.h"

/*
 * More than this waits for no engine of a QP: the rest is lost, as in any queue of a
 * network.  Bytes of skbs, which the protocol's window and one part of a READ fit into.
 */
#define MAX_WAITING	(8u << 20)

/* A work item is woken for what takes longer than that. */
#define LONG_TRAIN	(16u << 10)

/* ----------------------------------------------------------------- life -- */

static enum hrtimer_restart answer_overdue(struct hrtimer *timer)
{
	struct herald_wire_qp *w = container_of(timer, struct herald_wire_qp, timer);

	herald_requester_kick_work(w->qp);
	return HRTIMER_NORESTART;
}

static enum hrtimer_restart waited_long(struct hrtimer *timer)
{
	struct herald_wire_qp *w = container_of(timer, struct herald_wire_qp, pace_timer);

	if (herald_pace_overdue(&w->pace))
		herald_requester_kick_work(w->qp);
	return HRTIMER_NORESTART;
}

bool herald_wire_may_ring(struct herald_qp *qp)
{
	struct herald_wire_qp *w = qp->wire;

	switch (herald_pace_ring(&w->pace)) {
	case HERALD_PACE_RUN:
		return true;
	case HERALD_PACE_WAIT_FIRST:
		hrtimer_start(&w->pace_timer, ns_to_ktime(herald_pace_delay_ns(&w->pace)),
			      HRTIMER_MODE_REL);
		break;
	case HERALD_PACE_WAIT:
		break;
	}
	return false;
}

int herald_wire_qp_init(struct herald_qp *qp)
{
	struct herald_wire_qp *w;

	if (herald_wire_mode() == HERALD_WIRE_OFF)
		return 0;
	w = kzalloc(sizeof(*w), GFP_KERNEL_ACCOUNT);
	if (!w)
		return -ENOMEM;
	w->qp = qp;
	skb_queue_head_init(&w->requests);
	skb_queue_head_init(&w->responses);
	hrtimer_setup(&w->timer, answer_overdue, CLOCK_MONOTONIC, HRTIMER_MODE_ABS);
	hrtimer_setup(&w->pace_timer, waited_long, CLOCK_MONOTONIC, HRTIMER_MODE_REL);
	herald_route_init(&w->req.route);
	herald_route_init(&w->resp.route);
	qp->wire = w;
	return 0;
}

/* Modifies may meet here: the first one's is kept.  Context: as @gfp says. */
static bool provide(void **where, size_t n, size_t size, gfp_t gfp)
{
	void *mem;

	if (READ_ONCE(*where))
		return true;
	mem = gfpflags_allow_blocking(gfp) ? kvcalloc(n, size, gfp) : kcalloc(n, size, gfp);
	if (mem && cmpxchg(where, NULL, mem))
		kvfree(mem);
	return mem;
}

int herald_wire_qp_connect(struct herald_qp *qp, const struct herald_av *av)
{
	gfp_t gfp = herald_may_run_here() ? GFP_KERNEL_ACCOUNT : GFP_ATOMIC | __GFP_NOWARN;
	struct herald_wire_qp *w = qp->wire;

	if (!w || (qp->type != IB_QPT_RC && qp->type != IB_QPT_UC) || !herald_wire_wanted(qp, av))
		return 0;
	if (!provide((void **)&w->req.ops, HERALD_WIRE_OPS, sizeof(*w->req.ops), gfp) ||
	    !provide((void **)&w->resp.done, HERALD_WIRE_READS, sizeof(*w->resp.done), gfp))
		return -ENOMEM;
	return 0;
}

static void cancel_timers(struct herald_wire_qp *w)
{
	hrtimer_cancel(&w->timer);
	hrtimer_cancel(&w->pace_timer);
}

void herald_wire_qp_stop(struct herald_qp *qp)
{
	if (qp->wire)
		cancel_timers(qp->wire);
}

void herald_wire_req_reset(struct herald_qp *qp)
{
	struct herald_wire_qp *w = qp->wire;

	if (!w)
		return;
	herald_wire_purge(w, &w->responses);
	w->req.head = w->req.tail;
	w->req.send = w->req.tail;
	w->req.reads = 0;
	w->req.timing = false;
	herald_pace_reset(&w->pace);
}

void herald_wire_resp_reset(struct herald_qp *qp)
{
	struct herald_wire_qp *w = qp->wire;

	if (!w)
		return;
	herald_wire_purge(w, &w->requests);
	if (w->resp.done)
		memset(w->resp.done, 0, HERALD_WIRE_READS * sizeof(*w->resp.done));
	w->resp.reading.active = false;
	w->resp.message = 0;
	w->resp.finish = false;
}

void herald_wire_qp_exit(struct herald_qp *qp)
{
	struct herald_wire_qp *w = qp->wire;

	if (!w)
		return;
	herald_wire_req_reset(qp);
	herald_wire_resp_reset(qp);
	herald_route_drop(qp->dev, &w->req.route);
	herald_route_drop(qp->dev, &w->resp.route);
	kvfree(w->req.ops);
	kvfree(w->resp.done);
	kfree(w);
	qp->wire = NULL;
}

void herald_wire_qp_rtr(struct herald_qp *qp)
{
	struct herald_wire_qp *w = qp->wire;

	if (!w || qp->type == IB_QPT_UD || qp->type == IB_QPT_GSI)
		return;
	/* it holds until the next reset: one end would not follow the other to the wire */
	if (w->resp.done && herald_wire_wanted(qp, &qp->av))
		qp->transport = &herald_transport_wire;
	else
		qp->transport = &herald_transport_local;
	w->resp.psn = qp->attr.rq_psn;
	w->resp.acked = herald_psn_add(w->resp.psn, -1);
	w->resp.msn = 0;
	w->resp.message = 0;
	w->resp.skipping = false;
	w->resp.nak_sent = false;
	w->resp.ack_due = false;
	w->resp.asked = 0;
	w->resp.answered = 0;
}

void herald_wire_qp_rts(struct herald_qp *qp)
{
	struct herald_wire_qp *w = qp->wire;

	if (!w)
		return;
	/* nothing was sent yet: what was still on its way when the last connection was reset */
	herald_wire_purge(w, &w->responses);
	w->req.psn = qp->attr.sq_psn;
	w->req.una = w->req.psn;
	w->req.next = w->req.psn;
	w->req.end = w->req.psn;
	w->req.gap_seen = false;
}

void herald_wire_qp_query(struct herald_qp *qp, struct ib_qp_attr *attr)
{
	struct herald_wire_qp *w = qp->wire;

	if (qp->transport != &herald_transport_wire || qp->state < IB_QPS_RTR)
		return;
	attr->rq_psn = READ_ONCE(w->resp.psn);
	if (qp->state >= IB_QPS_RTS)
		attr->sq_psn = READ_ONCE(w->req.next);
}

/* -------------------------------------------------------------- arrival -- */

static bool enqueue(struct herald_wire_qp *w, struct sk_buff_head *queue, struct sk_buff *skb)
{
	if (atomic_add_return(skb->truesize, &w->waiting) > MAX_WAITING) {
		atomic_sub(skb->truesize, &w->waiting);
		return false;
	}
	skb_queue_tail(queue, skb);
	return true;
}

struct sk_buff *herald_wire_dequeue(struct herald_wire_qp *w, struct sk_buff_head *queue)
{
	struct sk_buff *skb = skb_dequeue(queue);

	if (skb)
		atomic_sub(skb->truesize, &w->waiting);
	return skb;
}

void herald_wire_put_back(struct herald_wire_qp *w, struct sk_buff_head *queue, struct sk_buff *skb)
{
	atomic_add(skb->truesize, &w->waiting);
	skb_queue_head(queue, skb);
}

void herald_wire_purge(struct herald_wire_qp *w, struct sk_buff_head *queue)
{
	struct sk_buff *skb;

	while ((skb = herald_wire_dequeue(w, queue)))
		dev_kfree_skb_any(skb);
}

/* Is there anybody who waits for a response?  Others would be kept for ever. */
static bool takes_responses(const struct herald_qp *qp)
{
	return qp->type == IB_QPT_RC && READ_ONCE(qp->transport) == &herald_transport_wire &&
	       (herald_qp_may(qp) & HERALD_MAY_CONTINUE);
}

/*
 * A long train is copied elsewhere than where it arrives, which over veth or lo is the CPU
 * that the sender is busy on; and no interrupt is held up by it.
 */
static bool is_long(u32 len)
{
	return len >= LONG_TRAIN && num_online_cpus() > 1;
}

/*
 * A turn that was not enough goes on in the work item, and what arrives until that runs
 * waits for it: who sends much, or asks for much, does not keep the CPU that it arrives at.
 */
static void take_request_in(struct herald_qp *qp, u32 len)
{
	HERALD_DEFERRED(d);

	/* in the queue before the work item looks there, or it is not pending any more */
	smp_mb();
	if (work_pending(&qp->resp.work)) {
		herald_count(qp->dev, HERALD_CTR_wire_deferred);
		return;
	}
	if (is_long(len)) {
		herald_qp_queue_responder(qp);
		return;
	}
	herald_responder_kick(qp, &d);
	herald_deferred_run(&d);
}

static void take_response_in(struct herald_qp *qp, u32 len)
{
	if (is_long(len))
		herald_requester_kick_work(qp);
	else
		herald_requester_kick(qp, HERALD_RUN_KERNEL);
}

void herald_wire_arrived(struct herald_qp *qp, struct sk_buff *skb, bool response)
{
	struct herald_wire_qp *w = qp->wire;
	u32 len = skb->len;

	if (response && !(w && takes_responses(qp))) {
		herald_count(qp->dev, HERALD_CTR_wire_ghosts);
		kfree_skb(skb);
		return;
	}
	if (w && !response)
		herald_wire_cb(skb)->answered = READ_ONCE(w->resp.answered);
	if (!w || !enqueue(w, response ? &w->responses : &w->requests, skb)) {
		herald_count(qp->dev, w ? HERALD_CTR_wire_queue_full : HERALD_CTR_peer_not_ready);
		kfree_skb(skb);
		return;
	}
	if (response)
		take_response_in(qp, len);
	else
		take_request_in(qp, len);
}
