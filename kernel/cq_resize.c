// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/* A CQ's ring is made, and replaced while the CQ is in use. */
#include <linux/log2.h>
#include <linux/sched.h>
#include <rdma/ib_verbs.h>
#include <rdma/uverbs_ioctl.h>

#include "cq.h"
#include "cq_hold.h"
#include "cq_ring.h"
#include "device.h"
#include "ring.h"
#include "udata.h"

int herald_cq_ring_alloc(struct cq_ring *ring, struct ib_udata *udata, u32 cqe)
{
	struct herald_ucontext *uctx = NULL;

	if (udata)
		uctx = rdma_udata_to_drv_context(udata, struct herald_ucontext, ib);
	ring->capacity = cqe;
	ring->depth = roundup_pow_of_two(cqe);
	ring->shm = herald_shm_alloc(uctx ? &uctx->ib : NULL,
				     HERALD_CQ_DATA_OFFSET +
				     (size_t)ring->depth * sizeof(struct herald_cqe));
	if (IS_ERR(ring->shm))
		return PTR_ERR(ring->shm);
	ring->ctl = ring->shm->va;
	ring->cqes = ring->shm->va + HERALD_CQ_DATA_OFFSET;
	return 0;
}

#define CQ_COPY_ROUNDS	4	/* without the lock, before the rest is copied under it */
#define CQ_COPY_CHUNK	1024	/* CQEs between two chances to be preempted */

/* What of the old ring has been copied into the new one. */
struct cq_copy {
	bool any;
	u32 end;	/* up to here */
	u32 purges;	/* ... if cq->purges is still this */
};

static u32 cq_copy_start(const struct herald_cq *cq, const struct cq_copy *copy)
{
	if (!copy->any || copy->purges != cq->purges)
		return cq->consumer;
	if ((s32)(cq->consumer - copy->end) > 0)
		return cq->consumer;
	return copy->end;
}

/*
 * CQE i lives in slot i & (depth - 1) of either ring.  The content is the
 * process's own business: it is moved, not looked at.
 */
static void cq_copy_range(const struct herald_cq *cq, const struct cq_ring *ring, u32 from, u32 to)
{
	for (; from != to; from++)
		ring->cqes[from & (ring->depth - 1)] = *cq_slot(cq, from);
}

/*
 * Copy most of what is unpolled while the CQ is in use, so that little is left
 * to be done under the lock.  The old ring stays: cq->resize_mutex is held.
 */
static int cq_copy_ahead(struct herald_cq *cq, const struct cq_ring *ring, struct cq_copy *copy)
{
	u32 from, to, n, purges;
	int round;

	for (round = 0; round < CQ_COPY_ROUNDS; round++) {
		spin_lock_irq(&cq->lock);
		cq_refresh_consumer(cq);
		from = cq_copy_start(cq, copy);
		to = cq->producer;
		purges = cq->purges;
		n = cq_used(cq);
		spin_unlock_irq(&cq->lock);

		if (n > ring->capacity)
			return -EINVAL;
		if (to - from <= CQ_COPY_CHUNK && round)
			break;
		for (; from != to; from += n) {
			n = min_t(u32, to - from, CQ_COPY_CHUNK);
			cq_copy_range(cq, ring, from, from + n);
			cond_resched();
		}
		*copy = (struct cq_copy){ .any = true, .end = to, .purges = purges };
	}
	return 0;
}

/* Copy the rest and change rings; @ring becomes the old one. */
static int cq_switch(struct herald_cq *cq, struct cq_ring *ring, const struct cq_copy *copy)
{
	struct herald_shm *old = cq->shm;
	int ret = 0;

	spin_lock_irq(&cq->lock);
	cq_refresh_consumer(cq);
	if (cq_used(cq) + (cq->hold ? herald_hold_count(cq) : 0) > ring->capacity) {
		ret = -EINVAL;
		goto out;
	}
	cq_copy_range(cq, ring, cq_copy_start(cq, copy), cq->producer);
	ring->ctl->producer = cq->producer;
	ring->ctl->consumer = cq->consumer;
	ring->ctl->flags = cq->flags;
	ring->ctl->arm_fired = cq->arm_fired;
	ring->ctl->arm = READ_ONCE(cq->ctl->arm);
	ring->ctl->events_read = READ_ONCE(cq->ctl->events_read);
	ring->ctl->events_acked = READ_ONCE(cq->ctl->events_acked);
	cq_ring_use(cq, ring);
	ring->shm = old;
out:
	spin_unlock_irq(&cq->lock);
	return ret;
}

int herald_resize_cq(struct ib_cq *ibcq, unsigned int cqe, struct ib_udata *udata)
{
	struct herald_cq *cq = to_hcq(ibcq);
	struct herald_resize_cq_resp resp = {};
	struct cq_copy copy = {};
	struct cq_ring ring;
	int ret;

	if (!cqe || cqe > HERALD_MAX_CQE || cq->user != !!udata)
		return -EINVAL;
	ret = herald_fault_verb(&cq->dev->faults, HERALD_FAULT_RESIZE_CQ) ?:
	      herald_udata_zero(udata) ?: herald_dev_check(cq->dev);
	if (ret)
		return ret;
	ret = herald_cq_ring_alloc(&ring, udata, cqe);
	if (ret)
		return ret;

	mutex_lock(&cq->resize_mutex);
	ret = cq_copy_ahead(cq, &ring, &copy);
	if (!ret && udata) {
		/* before the switch, which cannot be taken back */
		herald_shm_info(ring.shm, ring.depth, sizeof(struct herald_cqe), &resp.ring);
		ret = ib_copy_to_udata(udata, &resp, min(sizeof(resp), udata->outlen));
	}
	if (!ret)
		ret = cq_switch(cq, &ring, &copy);
	mutex_unlock(&cq->resize_mutex);

	herald_shm_free(ring.shm);
	return ret;
}
