// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/*
 * Completion queues: the only place that touches a CQ ring.
 *
 * Barriers.  A process consumes and arms its CQ without a system call:
 *
 *	kernel				process
 *	fill the CQE			arm = HERALD_ARM(...)
 *	producer = p (release)		full barrier
 *	full barrier			poll: read producer
 *	read arm
 *
 * so either the kernel sees the arm, or the process, which has to poll after
 * arming, sees the CQE.  A kernel consumer's arm is a field under the CQ's lock.
 *
 * Nothing is read from a process's half of the ring but the arm word and the
 * consumer index; the latter counts only if it is possible.
 */
#include <linux/ktime.h>
#include <linux/log2.h>
#include <linux/sched.h>
#include <rdma/ib_user_verbs.h>
#include <rdma/ib_verbs.h>
#include <rdma/uverbs_ioctl.h>

#include "cq.h"
#include "device.h"
#include "ring.h"
#include "udata.h"

static atomic_t cq_ids;

static struct herald_cqe *cq_slot(const struct herald_cq *cq, u32 index)
{
	return &cq->cqes[index & (cq->depth - 1)];
}

static u32 cq_used(const struct herald_cq *cq)
{
	return cq->producer - cq->consumer;
}

/* ---------------------------------------------------------- publishing -- */

/* Take over the process's consumer index; an impossible one is counted and changes nothing. */
static void cq_refresh_consumer(struct herald_cq *cq)
{
	u32 consumer;

	if (!cq->user)
		return;
	/* pairs with the release that follows the process's last look at a CQE */
	consumer = smp_load_acquire(&cq->ctl->consumer);
	if (likely(consumer - cq->consumer <= cq_used(cq)))
		cq->consumer = consumer;
	else
		herald_count(cq->dev, HERALD_CTR_bad_ring_index);
}

static bool cq_has_room(struct herald_cq *cq)
{
	if (likely(cq_used(cq) < cq->capacity))
		return true;
	cq_refresh_consumer(cq);
	return cq_used(cq) < cq->capacity;
}

static void cq_write_ref(const struct herald_sq_backref *ref, bool made, u32 index)
{
	if (!ref)
		return;
	WRITE_ONCE(*ref->made, made);
	WRITE_ONCE(*ref->index, index);
	/* whoever sees the slot free also sees when it may be used again */
	smp_store_release(ref->consumer, ref->value);
}

/* Let @input, about the CQE @index, work on the armed state.  cq->lock held. */
static void cq_step(struct herald_cq *cq, enum herald_arm_input input, u32 index,
		    struct herald_deferred *d)
{
	enum herald_arm_state state = cq->arm_state;
	const struct herald_arm_step *step;
	u64 arm = 0;

	if (cq->user) {
		arm = READ_ONCE(cq->ctl->arm);
		/* an overrun concerns every arm, whatever it had seen */
		if (input == HERALD_IN_OVERRUN)
			index = HERALD_ARM_SEEN(arm);
		state = herald_arm_word_state(arm, cq->arm_fired, index);
	}
	step = herald_arm_table(state, input);
	switch (step->verdict) {
	case HERALD_FIRE:
		if (cq->user) {
			cq->arm_fired = HERALD_ARM_SEQ(arm);
			WRITE_ONCE(cq->ctl->arm_fired, cq->arm_fired);
		}
		herald_notify_defer(cq, d);
		break;
	case HERALD_SUPPRESSED_UNARMED:
		herald_count(cq->dev, HERALD_CTR_cq_unarmed);
		break;
	case HERALD_SUPPRESSED_UNSOLICITED:
		herald_count(cq->dev, HERALD_CTR_cq_unsolicited);
		break;
	}
	cq->arm_state = step->next;
}

static void cq_add(struct herald_cq *cq, const struct herald_cqe *cqe, bool solicited,
		   const struct herald_sq_backref *ref, struct herald_deferred *d)
{
	struct herald_cqe *slot = cq_slot(cq, cq->producer);
	u32 index = cq->producer++;

	*slot = *cqe;
	if (cq->timestamps)
		slot->timestamp = ktime_get_ns();
	cq_write_ref(ref, true, index);
	/* pairs with the process's acquire: whoever sees the index sees the CQE */
	smp_store_release(&cq->ctl->producer, cq->producer);
	if (cq->user)
		smp_mb();	/* pairs with the one between the process's arm and its next look */
	herald_count(cq->dev, HERALD_CTR_cqes_posted);

	if (cqe->status != IB_WC_SUCCESS)
		solicited = true;
	cq_step(cq, solicited ? HERALD_IN_PUBLISH_SOLICITED : HERALD_IN_PUBLISH, index, d);
}

/* The CQE is lost.  Return: true if somebody will see, or has just seen, to the consequences. */
static bool cq_drop(struct herald_cq *cq, const struct herald_sq_backref *ref,
		    struct herald_deferred *d)
{
	cq_write_ref(ref, false, 0);
	herald_count(cq->dev, HERALD_CTR_cq_dropped_cqes);
	if (cq->dead)
		return !cq->overrun_walked;

	cq->dead = true;
	cq->overrun_pending = true;
	/* whoever sees that the CQ is dead also sees the last of its CQEs */
	smp_store_release(&cq->ctl->flags, HERALD_CQ_DEAD);
	if (cq->user)
		smp_mb();	/* as in cq_add() */
	herald_count(cq->dev, HERALD_CTR_cq_overruns);
	cq_step(cq, HERALD_IN_OVERRUN, cq->producer, d);
	herald_event_overrun(cq, d);
	return true;
}

bool herald_cq_publish(struct herald_cq *cq, const struct herald_cqe *cqe, bool solicited,
		       const struct herald_sq_backref *ref, struct herald_deferred *d)
{
	unsigned long flags;
	bool ret = true;

	spin_lock_irqsave(&cq->lock, flags);
	if (likely(!cq->dead && cq_has_room(cq)))
		cq_add(cq, cqe, solicited, ref, d);
	else
		ret = cq_drop(cq, ref, d);
	spin_unlock_irqrestore(&cq->lock, flags);
	return ret;
}

void herald_cq_purge(struct herald_cq *cq, u32 qpn)
{
	unsigned long flags;
	u32 from, to;

	if (cq->user)
		return;
	spin_lock_irqsave(&cq->lock, flags);
	/* close the gaps towards the producer, so that indices stay what they were */
	for (from = to = cq->producer; from != cq->consumer;) {
		const struct herald_cqe *cqe = cq_slot(cq, --from);

		if (cqe->qp_num == qpn)
			continue;
		if (--to != from)
			*cq_slot(cq, to) = *cqe;
	}
	if (to != cq->consumer) {
		cq->consumer = to;
		cq->purges++;
	}
	spin_unlock_irqrestore(&cq->lock, flags);
}

/* ------------------------------------------------------ kernel consumers -- */

static void cqe_to_wc(const struct herald_cqe *cqe, struct ib_wc *wc)
{
	memset(wc, 0, sizeof(*wc));
	wc->wr_id = cqe->wr_id;
	wc->status = cqe->status;
	wc->opcode = cqe->opcode;
	wc->vendor_err = cqe->vendor_err;
	wc->byte_len = cqe->byte_len;
	wc->qp = herald_cqe_qp(cqe);
	wc->ex.invalidate_rkey = cqe->imm_or_rkey;	/* or the immediate, as it came */
	wc->src_qp = cqe->src_qp;
	wc->slid = cqe->slid;
	wc->pkey_index = cqe->pkey_index;
	wc->sl = cqe->sl;
	wc->dlid_path_bits = cqe->dlid_path_bits;
	wc->port_num = cqe->port_num;
	wc->vlan_id = 0xffff;
	/* the ring has the flags of enum ibv_wc_flags */
	wc->wc_flags = cqe->wc_flags & (IB_WC_GRH | IB_WC_WITH_IMM);
	if (cqe->wc_flags & HERALD_CQE_FLAG_INVALIDATE)
		wc->wc_flags |= IB_WC_WITH_INVALIDATE;
	if (cqe->net_type) {
		wc->wc_flags |= IB_WC_WITH_NETWORK_HDR_TYPE;
		wc->network_hdr_type = cqe->net_type;
	}
}

int herald_poll_cq(struct ib_cq *ibcq, int n, struct ib_wc *wc)
{
	struct herald_cq *cq = to_hcq(ibcq);
	unsigned long flags;
	int i;

	if (cq->user)
		return -EOPNOTSUPP;
	spin_lock_irqsave(&cq->lock, flags);
	for (i = 0; i < n && cq_used(cq); i++)
		cqe_to_wc(cq_slot(cq, cq->consumer++), &wc[i]);
	if (i == 0 && n > 0 && cq->dead)
		i = -EIO;
	spin_unlock_irqrestore(&cq->lock, flags);
	return i;
}

int herald_req_notify_cq(struct ib_cq *ibcq, enum ib_cq_notify_flags flags)
{
	struct herald_cq *cq = to_hcq(ibcq);
	enum herald_arm_input input;
	unsigned long irq;
	int ret = 0;

	if (cq->user)
		return -EOPNOTSUPP;
	switch (flags & IB_CQ_SOLICITED_MASK) {
	case IB_CQ_SOLICITED:
		input = HERALD_IN_ARM_SOLICITED;
		break;
	case IB_CQ_NEXT_COMP:
		input = HERALD_IN_ARM_NEXT;
		break;
	default:
		return -EINVAL;
	}
	herald_count(cq->dev, HERALD_CTR_cq_arms);

	/* one critical section: a CQE is either missed or fires, never neither */
	spin_lock_irqsave(&cq->lock, irq);
	cq->arm_state = herald_arm_table(cq->arm_state, input)->next;
	if (cq_used(cq))
		ret = !!(flags & IB_CQ_REPORT_MISSED_EVENTS);
	else if (cq->dead)
		ret = -EIO;
	spin_unlock_irqrestore(&cq->lock, irq);
	if (ret > 0)
		herald_count(cq->dev, HERALD_CTR_cq_missed_hints);
	return ret;
}

/* ------------------------------------------------------- create, destroy -- */

struct cq_ring {
	struct herald_shm *shm;
	struct herald_cq_ctl *ctl;
	struct herald_cqe *cqes;
	u32 depth;
	u32 capacity;
};

static int cq_ring_alloc(struct cq_ring *ring, struct ib_udata *udata, u32 cqe)
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

static void cq_ring_use(struct herald_cq *cq, const struct cq_ring *ring)
{
	cq->shm = ring->shm;
	cq->ctl = ring->ctl;
	cq->cqes = ring->cqes;
	cq->depth = ring->depth;
	cq->capacity = ring->capacity;
	cq->ib.cqe = ring->capacity;
}

static int cq_check_attr(const struct herald_dev *dev, const struct ib_cq_init_attr *attr)
{
	if (!attr->cqe || attr->cqe > HERALD_MAX_CQE)
		return -EINVAL;
	if (attr->comp_vector >= dev->ib.num_comp_vectors)
		return -EINVAL;
	if (attr->flags & ~IB_UVERBS_CQ_FLAGS_TIMESTAMP_COMPLETION)
		return -EOPNOTSUPP;
	return 0;
}

static void cq_init(struct herald_cq *cq, const struct ib_cq_init_attr *attr, bool user)
{
	cq->user = user;
	cq->timestamps = attr->flags & IB_UVERBS_CQ_FLAGS_TIMESTAMP_COMPLETION;
	cq->id = atomic_inc_return(&cq_ids);
	spin_lock_init(&cq->lock);
	mutex_init(&cq->resize_mutex);
	spin_lock_init(&cq->qps_lock);
	INIT_LIST_HEAD(&cq->qps[0]);
	INIT_LIST_HEAD(&cq->qps[1]);
	herald_notify_init(cq);
	herald_event_source_init(&cq->events, HERALD_SOURCE_CQ);
}

int herald_create_cq(struct ib_cq *ibcq, const struct ib_cq_init_attr *attr,
		     struct uverbs_attr_bundle *attrs)
{
	struct ib_udata *udata = attrs ? &attrs->driver_udata : NULL;
	struct herald_dev *dev = to_hdev(ibcq->device);
	struct herald_create_cq_resp resp = {};
	struct herald_cq *cq = to_hcq(ibcq);
	struct cq_ring ring;
	int ret;

	ret = cq_check_attr(dev, attr);
	if (!ret)
		ret = herald_udata_zero(udata);
	if (ret)
		return ret;
	if (!herald_object_count(&dev->num_cq, HERALD_MAX_CQ))
		return -ENOMEM;

	cq->dev = dev;
	ret = cq_ring_alloc(&ring, udata, attr->cqe);
	if (ret)
		goto err_count;
	cq_init(cq, attr, udata);
	cq_ring_use(cq, &ring);

	if (udata) {
		herald_shm_info(cq->shm, cq->depth, sizeof(struct herald_cqe), &resp.ring);
		resp.cq_id = cq->id;
		ret = ib_copy_to_udata(udata, &resp, min(sizeof(resp), udata->outlen));
		if (ret)
			goto err_ring;
	}
	return 0;

err_ring:
	herald_shm_free(cq->shm);
err_count:
	atomic_dec(&dev->num_cq);
	return ret;
}

/*
 * 1. No event is noted from now on, and those that are due are dropped.
 * 2. An overrun's consequences, which walk the QPs' lists, are over.
 * 3. No handler runs, and none will.
 * 4. The ring goes.
 */
int herald_destroy_cq(struct ib_cq *ibcq, struct ib_udata *udata)
{
	struct herald_cq *cq = to_hcq(ibcq);
	unsigned long flags;

	spin_lock_irqsave(&cq->lock, flags);
	cq->closing = true;
	cq->arm_state = herald_arm_table(cq->arm_state, HERALD_IN_DESTROY)->next;
	spin_unlock_irqrestore(&cq->lock, flags);

	herald_cq_overrun_flush(cq);
	herald_notify_flush(cq);
	herald_event_source_flush(&cq->events);

	herald_shm_free(cq->shm);
	mutex_destroy(&cq->resize_mutex);
	atomic_dec(&cq->dev->num_cq);
	return 0;
}

/* ---------------------------------------------------------------- resize -- */

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
	if (cq_used(cq) > ring->capacity) {
		ret = -EINVAL;
		goto out;
	}
	cq_copy_range(cq, ring, cq_copy_start(cq, copy), cq->producer);
	ring->ctl->producer = cq->producer;
	ring->ctl->consumer = cq->consumer;
	ring->ctl->flags = cq->dead ? HERALD_CQ_DEAD : 0;
	ring->ctl->arm_fired = cq->arm_fired;
	ring->ctl->arm = READ_ONCE(cq->ctl->arm);
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
	ret = herald_udata_zero(udata);
	if (ret)
		return ret;
	ret = cq_ring_alloc(&ring, udata, cqe);
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
