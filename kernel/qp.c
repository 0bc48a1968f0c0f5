// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/* Queue pairs: their numbers, their references, their beginning and their end. */
#include <linux/random.h>
#include <linux/slab.h>
#include <linux/xarray.h>
#include <rdma/uverbs_ioctl.h>

#include "cq.h"
#include "device.h"
#include "mcast.h"
#include "mr.h"
#include "qp.h"
#include "requester.h"
#include "responder.h"
#include "srq.h"
#include "transport.h"
#include "udata.h"
#include "wire_qp.h"

#define QPN_GSI		1
#define QPN_FIRST	0x000010
#define QPN_LAST	0xfffffe	/* 0xffffff means multicast */

/*
 * QP number to struct herald_qp_ref, for all devices of the host.  Numbers are
 * given out in turn, so that one that was freed is not soon used again; they
 * start somewhere, so that they say nothing about the last boot's.
 */
static DEFINE_XARRAY_ALLOC(qp_numbers);
static struct herald_hints qp_hints;
static u32 next_qpn;

int herald_qp_module_init(void)
{
	next_qpn = QPN_FIRST + get_random_u32_below(QPN_LAST - QPN_FIRST + 1);
	return 0;
}

void herald_qp_module_exit(void)
{
	WARN_ON(!xa_empty(&qp_numbers));
	xa_destroy(&qp_numbers);
}

/* ------------------------------------------------------- references -- */

bool herald_qp_get(struct herald_qp *qp)
{
	return refcount_inc_not_zero(&qp->ref->refs);
}

void herald_qp_put(struct herald_qp *qp)
{
	if (refcount_dec_and_test(&qp->ref->refs))
		complete(&qp->gone);
}

struct herald_qp *herald_qp_find(u32 qpn)
{
	struct herald_qp *qp = NULL;
	struct herald_qp_ref *ref;

	rcu_read_lock();
	ref = herald_hint(&qp_hints, qpn);
	if (unlikely(!ref || ref->qpn != qpn))
		ref = xa_load(&qp_numbers, qpn);
	if (ref && refcount_inc_not_zero(&ref->refs))
		qp = ref->qp;
	rcu_read_unlock();
	return qp;
}

struct herald_qp *herald_qp_find_gsi(struct herald_dev *dev)
{
	struct herald_qp *qp;
	unsigned long flags;

	spin_lock_irqsave(&dev->gsi_lock, flags);
	qp = rcu_dereference_protected(dev->gsi, lockdep_is_held(&dev->gsi_lock));
	if (qp && !herald_qp_get(qp))
		qp = NULL;
	spin_unlock_irqrestore(&dev->gsi_lock, flags);
	return qp;
}

int herald_qps_each(struct herald_dev *dev, int (*fn)(struct herald_qp *qp, void *arg), void *arg)
{
	struct herald_qp *qp = herald_qp_find_gsi(dev);
	struct herald_qp_ref *ref;
	unsigned long qpn;
	int ret = 0;

	if (qp) {
		ret = fn(qp, arg);
		herald_qp_put(qp);
	}
	xa_for_each(&qp_numbers, qpn, ref) {
		if (ret)
			break;
		qp = herald_qp_find(qpn);
		if (!qp)
			continue;
		if (qp->dev == dev)
			ret = fn(qp, arg);
		herald_qp_put(qp);
		cond_resched();
	}
	return ret;
}

static struct herald_qp_ref *new_ref(struct herald_qp *qp)
{
	struct herald_qp_ref *ref = kzalloc(sizeof(*ref), GFP_KERNEL);

	if (ref) {
		refcount_set(&ref->refs, 1);
		ref->qp = qp;
	}
	return ref;
}

/* ---------------------------------------------------------- numbers -- */

/* The number is taken, but nobody can find the QP by it yet. */
static int reserve_number(struct herald_qp *qp)
{
	int ret;

	if (qp->type == IB_QPT_GSI) {
		qp->qpn = QPN_GSI;
		return 0;
	}
	ret = xa_alloc_cyclic(&qp_numbers, &qp->qpn, NULL, XA_LIMIT(QPN_FIRST, QPN_LAST),
			      &next_qpn, GFP_KERNEL);
	return ret < 0 ? -ENOMEM : 0;
}

static void release_number(struct herald_qp *qp)
{
	struct herald_dev *dev = qp->dev;
	unsigned long flags;

	if (qp->type != IB_QPT_GSI) {
		herald_hint_clear(&qp_hints, qp->qpn, qp->ref);
		xa_erase(&qp_numbers, qp->qpn);
		return;
	}
	spin_lock_irqsave(&dev->gsi_lock, flags);
	if (rcu_access_pointer(dev->gsi) == qp)
		RCU_INIT_POINTER(dev->gsi, NULL);
	spin_unlock_irqrestore(&dev->gsi_lock, flags);
}

/* From now on it can be found. */
static int publish_number(struct herald_qp *qp)
{
	struct herald_dev *dev = qp->dev;
	unsigned long flags;
	int ret = 0;

	if (qp->type != IB_QPT_GSI) {
		qp->ref->qpn = qp->qpn;
		ret = xa_err(xa_store(&qp_numbers, qp->qpn, qp->ref, GFP_KERNEL));
		if (!ret)
			herald_hint_set(&qp_hints, qp->qpn, qp->ref);
		return ret;
	}

	spin_lock_irqsave(&dev->gsi_lock, flags);
	if (rcu_access_pointer(dev->gsi))
		ret = -EBUSY;
	else
		rcu_assign_pointer(dev->gsi, qp);
	spin_unlock_irqrestore(&dev->gsi_lock, flags);
	return ret;
}

/* ----------------------------------------------------------- create -- */

static int check_type(const struct ib_qp_init_attr *init, bool user)
{
	switch (init->qp_type) {
	case IB_QPT_RC:
	case IB_QPT_UC:
	case IB_QPT_UD:
		return 0;
	case IB_QPT_GSI:
		if (user)
			return -EOPNOTSUPP;
		return init->port_num == 1 ? 0 : -EINVAL;
	default:
		return -EOPNOTSUPP;
	}
}

static int check_caps(const struct ib_qp_init_attr *init)
{
	const struct ib_qp_cap *cap = &init->cap;

	if (cap->max_send_wr > HERALD_MAX_QP_WR || cap->max_send_sge > HERALD_MAX_SGE ||
	    cap->max_inline_data > HERALD_MAX_INLINE)
		return -EINVAL;
	if (init->srq)
		return 0;
	if (cap->max_recv_wr > HERALD_MAX_QP_WR || cap->max_recv_sge > HERALD_MAX_SGE)
		return -EINVAL;
	return 0;
}

static int check_init(const struct herald_dev *dev, const struct ib_qp_init_attr *init, bool user)
{
	int ret;

	if (READ_ONCE(dev->dead))
		return -ENODEV;
	if (init->create_flags || init->rwq_ind_tbl)
		return -EOPNOTSUPP;
	ret = check_type(init, user);
	if (ret)
		return ret;
	if (!init->send_cq || !init->recv_cq)
		return -EINVAL;
	if (init->srq && init->srq->srq_type != IB_SRQT_BASIC)
		return -EINVAL;
	return check_caps(init);
}

static void setup(struct herald_qp *qp, struct herald_dev *dev, const struct ib_qp_init_attr *init,
		  struct ib_ucontext *uctx)
{
	qp->dev = dev;
	qp->type = init->qp_type;
	qp->user = uctx;
	qp->uctx = uctx;
	qp->pid = uctx ? task_tgid_nr(current) : 0;
	qp->sq_sig_all = init->sq_sig_type == IB_SIGNAL_ALL_WR;
	qp->scq = to_hcq(init->send_cq);
	qp->rcq = to_hcq(init->recv_cq);
	qp->srq = init->srq ? to_hsrq(init->srq) : NULL;
	qp->transport = &herald_transport_local;
	init_completion(&qp->gone);
	INIT_LIST_HEAD(&qp->cq_node[0]);
	INIT_LIST_HEAD(&qp->cq_node[1]);
	INIT_LIST_HEAD(&qp->mcast);

	spin_lock_init(&qp->lock);
	seqcount_spinlock_init(&qp->path_seq, &qp->lock);
	qp->state = IB_QPS_RESET;
	spin_lock_irq(&qp->lock);
	herald_qp_clear_attr(qp);
	spin_unlock_irq(&qp->lock);
	herald_event_source_init(&qp->events, HERALD_OBJECT_QP, uctx);

	herald_requester_init(qp);
	herald_responder_init(qp);
	INIT_WORK(&qp->resp.work, herald_qp_responder_work);
}

/*
 * The send ring has at least one slot.  A receive ring there is only if
 * somebody may post to it.  What is granted is what the rings hold.
 */
static int make_rings(struct herald_qp *qp, const struct ib_qp_init_attr *init,
		      struct ib_ucontext *uctx)
{
	const struct ib_qp_cap *want = &init->cap;
	struct ib_qp_cap *cap = &qp->cap;
	u32 stride = herald_send_stride(want->max_send_sge, want->max_inline_data);
	int ret;

	cap->max_send_sge = want->max_send_sge;
	/* programs are used to a little more than they asked for, and the slot has the room */
	cap->max_inline_data = stride - HERALD_SEND_WQE_HDR;
	ret = herald_ring_init(&qp->sq.ring, uctx, max(want->max_send_wr, 1u), stride);
	if (ret)
		return ret;
	cap->max_send_wr = qp->sq.ring.depth;

	if (qp->srq || !want->max_recv_wr)
		return 0;
	cap->max_recv_sge = want->max_recv_sge;
	ret = herald_ring_init(&qp->resp.ring, uctx, want->max_recv_wr,
			       herald_recv_stride(cap->max_recv_sge));
	if (ret)
		return ret;
	cap->max_recv_wr = qp->resp.ring.depth;
	return 0;
}

static void free_rings(struct herald_qp *qp)
{
	herald_wire_qp_exit(qp);
	herald_ring_destroy(&qp->sq.ring);
	herald_ring_destroy(&qp->resp.ring);
}

static int respond(const struct herald_qp *qp, struct ib_udata *udata)
{
	const struct herald_ring *sq = &qp->sq.ring, *rq = &qp->resp.ring;
	struct herald_create_qp_resp resp = {};

	if (!udata)
		return 0;
	herald_shm_info(sq->shm, sq->depth, sq->stride, &resp.sq);
	if (rq->shm)
		herald_shm_info(rq->shm, rq->depth, rq->stride, &resp.rq);
	return ib_copy_to_udata(udata, &resp, min(udata->outlen, sizeof(resp)));
}

static void attach_cqs(struct herald_qp *qp)
{
	herald_cq_attach_qp(qp->scq, &qp->cq_node[0], true);
	herald_cq_attach_qp(qp->rcq, &qp->cq_node[1], false);
}

static void detach_cqs(struct herald_qp *qp)
{
	herald_cq_detach_qp(qp->scq, &qp->cq_node[0]);
	herald_cq_detach_qp(qp->rcq, &qp->cq_node[1]);
}

/*
 * Whoever holds a reference lets go, and no handler is or will be called.  The
 * last thing done with a reference may have been to kick the requester, whose
 * work item has none of its own: only after the last one is gone is it quiet.
 */
static void wait_until_gone(struct herald_qp *qp)
{
	herald_qp_put(qp);
	wait_for_completion(&qp->gone);
	herald_requester_stop(qp);
	flush_work(&qp->resp.work);
	herald_event_source_flush(&qp->events);
}

/* Either whoever flushes all QPs of a device finds this one, or this sees why. */
static void check_fatal(struct herald_qp *qp)
{
	HERALD_DEFERRED(d);

	smp_mb();	/* pairs with those in device_fatal() and, see below, ask_rings() */
	if (!herald_dev_check(qp->dev))
		return;
	herald_qp_error(qp, -1, &d);
	herald_deferred_run(&d);
}

/* The object is complete; give it its number and let it be known. */
static int introduce(struct herald_qp *qp, struct ib_udata *udata)
{
	int ret;

	ret = reserve_number(qp);
	if (ret)
		return ret;
	ret = respond(qp, udata);
	if (ret)
		goto err_number;
	qp->ib.qp_num = qp->qpn;
	attach_cqs(qp);
	ret = publish_number(qp);
	if (!ret) {
		check_fatal(qp);
		herald_qp_ask(qp);	/* after a full barrier */
		return 0;
	}

	/* a CQ that overran may hold a reference already: it goes as destroy's does */
	herald_qp_quiesce(qp, true);
	detach_cqs(qp);
	wait_until_gone(qp);
	herald_fault_forget_qp(qp);
err_number:
	release_number(qp);
	return ret;
}

int herald_create_qp(struct ib_qp *ibqp, struct ib_qp_init_attr *init, struct ib_udata *udata)
{
	struct ib_ucontext *uctx = NULL;
	struct herald_dev *dev = to_hdev(ibqp->device);
	struct herald_qp *qp = to_hqp(ibqp);
	int ret;

	ret = herald_fault_verb(&dev->faults, HERALD_FAULT_CREATE_QP) ?:
	      check_init(dev, init, udata) ?: herald_udata_zero(udata);
	if (ret)
		return ret;
	if (udata)
		uctx = &rdma_udata_to_drv_context(udata, struct herald_ucontext, ib)->ib;
	ret = herald_object_count(dev, &dev->num_qp, HERALD_MAX_QP);
	if (ret)
		return ret;

	ret = -ENOMEM;
	qp->ref = new_ref(qp);
	if (!qp->ref)
		goto err_count;
	setup(qp, dev, init, uctx);
	ret = make_rings(qp, init, uctx) ?: herald_wire_qp_init(qp);
	if (ret)
		goto err_rings;
	ret = introduce(qp, udata);
	if (ret)
		goto err_rings;

	init->cap.max_send_wr = qp->cap.max_send_wr;
	init->cap.max_recv_wr = qp->cap.max_recv_wr;
	init->cap.max_send_sge = qp->cap.max_send_sge;
	init->cap.max_recv_sge = qp->cap.max_recv_sge;
	init->cap.max_inline_data = qp->cap.max_inline_data;
	return 0;

err_rings:
	free_rings(qp);
	kfree_rcu(qp->ref, rcu);
err_count:
	atomic_dec(&dev->num_qp);
	return ret;
}

/* ---------------------------------------------------------- destroy -- */

void herald_qp_quiesce(struct herald_qp *qp, bool dying)
{
	unsigned long flags;

	spin_lock_irqsave(&qp->lock, flags);
	if (dying)
		qp->dying = true;
	/* pairs with the acquire in herald_qp_may() */
	smp_store_release(&qp->state, IB_QPS_RESET);
	spin_unlock_irqrestore(&qp->lock, flags);

	/* posters look at the state under these locks: none is under way after this */
	spin_lock_irqsave(&qp->sq.post_lock, flags);
	spin_unlock_irqrestore(&qp->sq.post_lock, flags);
	spin_lock_irqsave(&qp->resp.post_lock, flags);
	spin_unlock_irqrestore(&qp->resp.post_lock, flags);

	herald_requester_stop(qp);
	herald_responder_stop(qp);
	herald_wqe_drop_sends(qp);
	herald_requester_reset(qp);
	herald_responder_reset(qp);
}

int herald_destroy_qp(struct ib_qp *ibqp, struct ib_udata *udata)
{
	struct herald_qp *qp = to_hqp(ibqp);

	/* 1. nobody finds it any more; who has found it has a reference */
	release_number(qp);

	/*
	 * 2. the state forbids all work, and no event is raised from now on;
	 * 3. the engines come to rest: each looks at the state between two
	 *    pieces, and nothing can make one start work again
	 */
	herald_qp_quiesce(qp, true);

	/* 4. what was bound to it is so no longer */
	herald_mcast_forget(qp);
	herald_mw_forget_qp(qp);

	/* 5. no CQ knows it; CQEs of it that nobody has polled go (a process's: by its provider) */
	detach_cqs(qp);
	herald_cq_purge(qp->scq, qp->qpn);
	if (qp->rcq != qp->scq)
		herald_cq_purge(qp->rcq, qp->qpn);

	/* 6. who still holds a reference lets go, and no handler is or will be called */
	wait_until_gone(qp);
	herald_fault_forget_qp(qp);

	/* 7. nothing points here any more */
	free_rings(qp);
	kfree_rcu(qp->ref, rcu);
	atomic_dec(&qp->dev->num_qp);
	return 0;
}
