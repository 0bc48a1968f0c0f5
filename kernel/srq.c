// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/* Shared receive queues. */
#include <rdma/ib_verbs.h>
#include <rdma/uverbs_ioctl.h>

#include "device.h"
#include "event.h"
#include "limits.h"
#include "srq.h"
#include "udata.h"

static atomic_t srq_numbers;

/* -------------------------------------------------------- the data path -- */

/* Nothing is taken from this ring again, and that is said once. */
static void srq_die(struct herald_srq *srq, struct herald_deferred *d)
{
	srq->dead = true;
	WRITE_ONCE(srq->ring.ctl->flags, HERALD_RING_DEAD);
	herald_event_srq(srq, IB_EVENT_SRQ_ERR, d);
}

/* The limit is armed once: the event disarms it. */
static void srq_check_limit(struct herald_srq *srq, struct herald_deferred *d)
{
	int left;

	if (!srq->limit)
		return;
	left = herald_ring_pending(&srq->ring);
	/* if the index has become impossible, the next take finds out */
	if (left < 0 || left >= srq->limit)
		return;
	srq->limit = 0;
	herald_event_srq(srq, IB_EVENT_SRQ_LIMIT_REACHED, d);
}

int herald_srq_take(struct herald_srq *srq, struct herald_recv *recv, struct herald_deferred *d)
{
	unsigned long flags;
	int ret = -EINVAL;

	spin_lock_irqsave(&srq->lock, flags);
	if (!srq->dead) {
		ret = herald_recv_copy(&srq->ring, srq->max_sge, recv);
		if (ret == -EINVAL) {	/* an impossible index */
			herald_count(srq->dev, HERALD_CTR_bad_ring_index);
			srq_die(srq, d);
		} else if (ret) {
			srq_check_limit(srq, d);
		}
	}
	spin_unlock_irqrestore(&srq->lock, flags);
	recv->queue = HERALD_CQE_SRQ;
	return ret;
}

int herald_post_srq_recv(struct ib_srq *ibsrq, const struct ib_recv_wr *wr,
			 const struct ib_recv_wr **bad_wr)
{
	struct herald_srq *srq = to_hsrq(ibsrq);
	unsigned long flags;
	int ret = 0;

	/* a process posts by a store; with no WRs the command does nothing */
	if (srq->ring.user) {
		*bad_wr = wr;
		return wr ? -EOPNOTSUPP : 0;
	}
	ret = herald_fault_verb(&srq->dev->faults, HERALD_FAULT_POST_SRQ_RECV);
	if (ret) {
		*bad_wr = wr;
		return ret;
	}
	spin_lock_irqsave(&srq->post_lock, flags);
	for (; wr; wr = wr->next) {
		ret = herald_wqe_post_recv(&srq->ring, srq->max_sge, wr);
		if (ret) {
			*bad_wr = wr;
			break;
		}
	}
	spin_unlock_irqrestore(&srq->post_lock, flags);
	return ret;
}

/* --------------------------------------------------------------- on purpose -- */

int herald_srq_kill(struct herald_srq *srq, struct herald_deferred *d)
{
	int ret = -EINVAL;

	spin_lock_irq(&srq->lock);
	if (!srq->dead) {
		srq_die(srq, d);
		ret = 0;
	}
	spin_unlock_irq(&srq->lock);
	return ret;
}

void herald_srq_fire_limit(struct herald_srq *srq, struct herald_deferred *d)
{
	spin_lock_irq(&srq->lock);
	srq->limit = 0;
	herald_event_srq(srq, IB_EVENT_SRQ_LIMIT_REACHED, d);
	spin_unlock_irq(&srq->lock);
}

void herald_srq_ask(struct herald_srq *srq)
{
	if (srq->ring.user)
		herald_fault_ask(&srq->dev->faults, HERALD_FAULT_POST_SRQ_RECV,
				 &srq->ring.ctl->ask);
}

void herald_srq_look(struct herald_srq *srq, struct herald_srq_info *info)
{
	spin_lock_irq(&srq->lock);
	info->limit = srq->limit;
	info->dead = srq->dead;
	info->posted = herald_ring_pending(&srq->ring);
	info->events = READ_ONCE(srq->events.raised);
	spin_unlock_irq(&srq->lock);
}

/* ------------------------------------------------------ those of a device -- */

void herald_srqs_init(struct herald_dev *dev)
{
	INIT_LIST_HEAD(&dev->srqs);
	mutex_init(&dev->srqs_mutex);
}

void herald_srqs_exit(struct herald_dev *dev)
{
	WARN_ON(!list_empty(&dev->srqs));
	mutex_destroy(&dev->srqs_mutex);
}

static void srqs_add(struct herald_srq *srq)
{
	mutex_lock(&srq->dev->srqs_mutex);
	list_add_tail(&srq->node, &srq->dev->srqs);
	mutex_unlock(&srq->dev->srqs_mutex);
}

static void srqs_remove(struct herald_srq *srq)
{
	mutex_lock(&srq->dev->srqs_mutex);
	list_del(&srq->node);
	mutex_unlock(&srq->dev->srqs_mutex);
}

int herald_srqs_each(struct herald_dev *dev, int (*fn)(struct herald_srq *srq, void *arg),
		     void *arg)
{
	struct herald_srq *srq;
	int ret = 0;

	mutex_lock(&dev->srqs_mutex);
	list_for_each_entry(srq, &dev->srqs, node) {
		ret = fn(srq, arg);
		if (ret)
			break;
	}
	mutex_unlock(&dev->srqs_mutex);
	return ret;
}

/* ------------------------------------------------------------- the object -- */

static int srq_check_init(const struct ib_srq_init_attr *init)
{
	if (init->srq_type != IB_SRQT_BASIC)
		return -EOPNOTSUPP;
	if (!init->attr.max_wr || init->attr.max_wr > HERALD_MAX_SRQ_WR)
		return -EINVAL;
	if (init->attr.max_sge > HERALD_MAX_SGE)
		return -EINVAL;
	return 0;
}

static int srq_respond(struct herald_srq *srq, struct ib_udata *udata)
{
	struct herald_create_srq_resp resp = { .srq_num = srq->srq_num };

	herald_shm_info(srq->ring.shm, srq->ring.depth, srq->ring.stride, &resp.rq);
	return ib_copy_to_udata(udata, &resp, min(sizeof(resp), udata->outlen));
}

int herald_create_srq(struct ib_srq *ibsrq, struct ib_srq_init_attr *init, struct ib_udata *udata)
{
	struct herald_dev *dev = to_hdev(ibsrq->device);
	struct herald_srq *srq = to_hsrq(ibsrq);
	struct herald_ucontext *uctx = NULL;
	int ret;

	ret = herald_fault_verb(&dev->faults, HERALD_FAULT_CREATE_SRQ) ?:
	      srq_check_init(init) ?: herald_udata_zero(udata);
	if (ret)
		return ret;
	ret = herald_object_count(dev, &dev->num_srq, HERALD_MAX_SRQ);
	if (ret)
		return ret;

	if (udata)
		uctx = rdma_udata_to_drv_context(udata, struct herald_ucontext, ib);
	srq->dev = dev;
	srq->srq_num = atomic_inc_return(&srq_numbers);
	srq->uctx = uctx ? &uctx->ib : NULL;
	srq->pid = uctx ? task_tgid_nr(current) : 0;
	srq->max_sge = init->attr.max_sge;
	spin_lock_init(&srq->lock);
	spin_lock_init(&srq->post_lock);
	herald_event_source_init(&srq->events, HERALD_OBJECT_SRQ, uctx);
	ret = herald_ring_init(&srq->ring, uctx ? &uctx->ib : NULL, init->attr.max_wr,
			       herald_recv_stride(srq->max_sge));
	if (ret)
		goto err_count;
	srq->max_wr = srq->ring.depth;

	if (udata) {
		ret = srq_respond(srq, udata);
		if (ret)
			goto err_ring;
	}
	init->attr.max_wr = srq->max_wr;
	init->attr.max_sge = srq->max_sge;
	srqs_add(srq);
	herald_srq_ask(srq);
	return 0;

err_ring:
	herald_ring_destroy(&srq->ring);
err_count:
	atomic_dec(&dev->num_srq);
	return ret;
}

int herald_modify_srq(struct ib_srq *ibsrq, struct ib_srq_attr *attr, enum ib_srq_attr_mask mask,
		      struct ib_udata *udata)
{
	struct herald_srq *srq = to_hsrq(ibsrq);
	int ret = herald_udata_zero(udata);

	if (ret)
		return ret;
	ret = herald_dev_check(srq->dev);
	if (ret)
		return ret;
	if (mask & ~(IB_SRQ_MAX_WR | IB_SRQ_LIMIT))
		return -EINVAL;
	/* IB_DEVICE_SRQ_RESIZE is not offered */
	if (mask & IB_SRQ_MAX_WR)
		return -EOPNOTSUPP;
	if (mask & IB_SRQ_LIMIT) {
		if (attr->srq_limit > srq->max_wr)
			return -EINVAL;
		spin_lock_irq(&srq->lock);
		srq->limit = attr->srq_limit;
		spin_unlock_irq(&srq->lock);
	}
	return 0;
}

int herald_query_srq(struct ib_srq *ibsrq, struct ib_srq_attr *attr)
{
	struct herald_srq *srq = to_hsrq(ibsrq);

	attr->max_wr = srq->max_wr;
	attr->max_sge = srq->max_sge;
	attr->srq_limit = READ_ONCE(srq->limit);
	return 0;
}

int herald_destroy_srq(struct ib_srq *ibsrq, struct ib_udata *udata)
{
	struct herald_srq *srq = to_hsrq(ibsrq);

	srqs_remove(srq);
	herald_event_source_flush(&srq->events);
	herald_ring_destroy(&srq->ring);
	atomic_dec(&srq->dev->num_srq);
	return 0;
}
