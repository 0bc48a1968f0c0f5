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
#include <linux/rcupdate.h>
#include <rdma/ib_user_verbs.h>
#include <net/netlink.h>
#include <rdma/ib_verbs.h>
#include <rdma/restrack.h>
#include <rdma/uverbs_ioctl.h>

#include "cq.h"
#include "cq_hold.h"
#include "cq_ring.h"
#include "cq_table.h"
#include "device.h"
#include "ring.h"
#include "trace.h"
#include "udata.h"

/* ---------------------------------------------------------- publishing -- */

static u32 cq_held(const struct herald_cq *cq)
{
	return unlikely(cq->hold) ? herald_hold_count(cq) : 0;
}

static bool cq_has_room(struct herald_cq *cq)
{
	u32 held = cq_held(cq);

	if (likely(cq_used(cq) + held < cq->capacity))
		return true;
	cq_refresh_consumer(cq);
	return cq_used(cq) + held < cq->capacity;
}

void herald_cq_write_ref(const struct herald_sq_backref *ref, bool made, u32 index)
{
	if (!ref)
		return;
	WRITE_ONCE(*ref->made, made);
	WRITE_ONCE(*ref->index, index);
	/* whoever sees the slot free also sees when it may be used again */
	smp_store_release(ref->consumer, ref->value);
}

void herald_cq_event(struct herald_cq *cq, struct herald_deferred *d)
{
	herald_cq_count(cq, &cq->stats.events, HERALD_CTR_cq_events);
	trace_herald_comp_event(cq, HERALD_TRACE_RAISED);
	herald_moderate_event(cq, d);
}

/* What is armed for the CQE @index, which @input (not an arm) is about.  cq->lock held. */
static struct herald_armed cq_armed(const struct herald_cq *cq, enum herald_arm_input input,
				    u32 index)
{
	u64 arm;

	if (!cq->user)
		return (struct herald_armed){ .state = cq->arm_state };
	arm = READ_ONCE(cq->ctl->arm);
	/* an overrun concerns every arm, whatever it had seen */
	if (input == HERALD_IN_OVERRUN)
		index = HERALD_ARM_SEEN(arm);
	return herald_arm_word(arm, cq->arm_fired, index);
}

/* Let @input, about the CQE @index, work on the armed state.  cq->lock held. */
static void cq_step(struct herald_cq *cq, enum herald_arm_input input, u32 index,
		    struct herald_deferred *d)
{
	struct herald_armed armed = cq_armed(cq, input, index);
	const struct herald_arm_step *step = herald_arm_table(armed.state, input);

	switch (step->verdict) {
	case HERALD_FIRE:
		if (cq->user) {
			cq->arm_fired = armed.seq;
			WRITE_ONCE(cq->ctl->arm_fired, cq->arm_fired);
		}
		herald_cq_event(cq, d);
		break;
	case HERALD_SUPPRESSED_UNARMED:
		herald_cq_count(cq, &cq->stats.unarmed, HERALD_CTR_cq_unarmed);
		trace_herald_comp_event(cq, HERALD_TRACE_UNARMED);
		break;
	case HERALD_SUPPRESSED_UNSOLICITED:
		herald_cq_count(cq, &cq->stats.unsolicited, HERALD_CTR_cq_unsolicited);
		trace_herald_comp_event(cq, HERALD_TRACE_UNSOLICITED);
		break;
	}
	cq->arm_state = step->next;
}

void herald_cq_add(struct herald_cq *cq, const struct herald_cqe *cqe, bool solicited,
		   struct herald_deferred *d)
{
	struct herald_cqe *slot = cq_slot(cq, cq->producer);
	u32 index = cq->producer++;

	*slot = *cqe;
	if (cq->timestamps)
		slot->timestamp = ktime_get_ns();
	/* pairs with the process's acquire: whoever sees the index sees the CQE */
	smp_store_release(&cq->ctl->producer, cq->producer);
	if (cq->user)
		smp_mb();	/* pairs with the one between the process's arm and its next look */
	herald_cq_count(cq, &cq->stats.posted, HERALD_CTR_cqes_posted);

	if (cqe->status != IB_WC_SUCCESS)
		solicited = true;
	cq_step(cq, solicited ? HERALD_IN_PUBLISH_SOLICITED : HERALD_IN_PUBLISH, index, d);
	herald_moderate_cqe(cq, &cq->moderation, d);
}

static void cq_set_flags(struct herald_cq *cq, u32 flags)
{
	cq->flags = flags;
	/* whoever sees that the CQ is dead also sees the last of its CQEs */
	smp_store_release(&cq->ctl->flags, flags);
}

void herald_cq_tell_arm(struct herald_cq *cq, enum herald_tell_arm why, bool tell)
{
	if (!cq->user)
		return;
	cq->tell_arm = tell ? cq->tell_arm | why : cq->tell_arm & ~why;
	cq_set_flags(cq, cq->tell_arm ? cq->flags | HERALD_CQ_TELL_ARM :
					cq->flags & ~HERALD_CQ_TELL_ARM);
}

void herald_cq_ask(struct herald_cq *cq)
{
	spin_lock_irq(&cq->lock);
	herald_cq_tell_arm(cq, HERALD_TELL_ARM_FAULT,
			   herald_fault_armed(&cq->dev->faults, HERALD_FAULT_REQ_NOTIFY));
	spin_unlock_irq(&cq->lock);
}

/* The first CQE that there is no room for: the queue dies. */
static void cq_die(struct herald_cq *cq, struct herald_deferred *d)
{
	if (cq->hold)
		herald_hold_flush(cq, d);	/* they were in time */
	cq->dead = true;
	cq->overrun_pending = true;
	cq_set_flags(cq, cq->flags | HERALD_CQ_DEAD);
	if (cq->user)
		smp_mb();	/* as in herald_cq_add() */
	herald_count(cq->dev, HERALD_CTR_cq_overruns);
	cq_step(cq, HERALD_IN_OVERRUN, cq->producer, d);
	herald_moderation_release(cq, d);
	herald_event_overrun(cq, d);
}

int herald_cq_kill(struct herald_cq *cq, struct herald_deferred *d)
{
	unsigned long flags;
	int ret = -EINVAL;

	spin_lock_irqsave(&cq->lock, flags);
	if (!cq->dead) {
		cq->overrun_provoked = d->provoked;
		cq_die(cq, d);
		ret = 0;
	}
	spin_unlock_irqrestore(&cq->lock, flags);
	return ret;
}

/* The CQE is lost.  Return: true if somebody will see, or has just seen, to the consequences. */
static bool cq_drop(struct herald_cq *cq, const struct herald_sq_backref *ref,
		    struct herald_deferred *d)
{
	herald_cq_write_ref(ref, false, 0);
	herald_cq_count(cq, &cq->stats.dropped, HERALD_CTR_cq_dropped_cqes);
	if (cq->dead)
		return !cq->overrun_walked;
	cq_die(cq, d);
	return true;
}

bool herald_cq_publish(struct herald_cq *cq, const struct herald_cqe *cqe, bool solicited,
		       const struct herald_sq_backref *ref, struct herald_deferred *d)
{
	unsigned long flags;
	bool ret = true;

	spin_lock_irqsave(&cq->lock, flags);
	if (unlikely(cq->dead || !cq_has_room(cq))) {
		ret = cq_drop(cq, ref, d);
	} else if (likely(!cq->hold) || !herald_hold_cqe(cq, cqe, solicited, ref, d)) {
		herald_cq_write_ref(ref, true, cq->producer);
		herald_cq_add(cq, cqe, solicited, d);
	}
	spin_unlock_irqrestore(&cq->lock, flags);
	return ret;
}

/* ---------------------------------------------------------------- purging -- */

/* Close the gaps towards the producer, so that indices stay what they were.  cq->lock held. */
static void cq_purge_ring(struct herald_cq *cq, u32 qpn)
{
	u32 from, to;

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
}

void herald_cq_purge(struct herald_cq *cq, u32 qpn)
{
	unsigned long flags;

	spin_lock_irqsave(&cq->lock, flags);
	if (unlikely(cq->hold))
		herald_hold_purge(cq, qpn);
	if (!cq->user)
		cq_purge_ring(cq, qpn);
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

/* One critical section: a CQE is either missed or fires, never neither. */
static int cq_arm(struct herald_cq *cq, enum herald_arm_input input, bool report)
{
	enum herald_arm_state next;
	unsigned long flags;
	int ret = 0;

	spin_lock_irqsave(&cq->lock, flags);
	next = herald_arm_table(cq->arm_state, input)->next;
	if (next != cq->arm_state)
		herald_cq_count(cq, &cq->stats.arms, HERALD_CTR_cq_arms);
	cq->arm_state = next;
	if (cq_used(cq))
		ret = report;
	else if (cq->dead)
		ret = -EIO;
	if (ret > 0)
		herald_cq_count(cq, &cq->stats.missed_hints, HERALD_CTR_cq_missed_hints);
	spin_unlock_irqrestore(&cq->lock, flags);
	return ret;
}

/* Kernel CQs of consumers that leave polling to the core; IB_POLL_SOFTIRQ is 0. */
static bool core_polls(const struct herald_cq *cq)
{
	return cq->ib.wc && cq->ib.poll_ctx != IB_POLL_DIRECT;
}

int herald_req_notify_cq(struct ib_cq *ibcq, enum ib_cq_notify_flags flags)
{
	bool report = flags & IB_CQ_REPORT_MISSED_EVENTS;
	struct herald_cq *cq = to_hcq(ibcq);
	enum herald_arm_input input;
	int ret;

	if (cq->user)
		return -EOPNOTSUPP;
	/* the core takes an error for "nothing missed", and would never poll its CQ again */
	ret = core_polls(cq) ? 0 : herald_fault_verb(&cq->dev->faults, HERALD_FAULT_REQ_NOTIFY);
	if (ret)
		return ret;
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
	if (likely(!READ_ONCE(cq->hold)))
		return cq_arm(cq, input, report);

	herald_cq_arming(cq, HERALD_HOLD_BEFORE_ARM);
	ret = cq_arm(cq, input, report);
	herald_cq_arming(cq, HERALD_HOLD_AFTER_ARM);
	return ret;
}

/* ---------------------------------------------------------------- looking -- */

/* A process's own account of what it did; no more events than there were. */
static void look_at_process(const struct herald_cq *cq, struct herald_cq_info *info)
{
	u64 arm = READ_ONCE(cq->ctl->arm);

	info->unpolled = min(cq->producer - READ_ONCE(cq->ctl->consumer), cq->capacity);
	info->armed = herald_arm_word(arm, cq->arm_fired, cq->producer).state;
	info->stats.arms = HERALD_ARM_SEQ(arm);
	info->stats.events_read = min_t(u64, READ_ONCE(cq->ctl->events_read), cq->stats.events);
	info->stats.events_acked = min_t(u64, READ_ONCE(cq->ctl->events_acked),
					 info->stats.events_read);
}

void herald_cq_look(struct herald_cq *cq, struct herald_cq_info *info)
{
	unsigned long flags;

	spin_lock_irqsave(&cq->lock, flags);
	*info = (struct herald_cq_info){
		.stats = cq->stats,
		.unpolled = cq_used(cq),
		.held = cq_held(cq),
		.waiting = cq->moderation.waiting,
		.armed = cq->arm_state,
		.dead = cq->dead,
	};
	if (cq->user)
		look_at_process(cq, info);
	spin_unlock_irqrestore(&cq->lock, flags);
}

int herald_fill_res_cq_entry(struct sk_buff *msg, struct ib_cq *ibcq)
{
	struct herald_cq_info info;
	struct nlattr *table;

	herald_cq_look(to_hcq(ibcq), &info);
	table = nla_nest_start(msg, RDMA_NLDEV_ATTR_DRIVER);
	if (!table)
		return -EMSGSIZE;
	if (rdma_nl_put_driver_u32(msg, "unpolled", info.unpolled) ||
	    rdma_nl_put_driver_string(msg, "armed", herald_arm_state_name(info.armed)) ||
#define HERALD_CQ_STAT(name) rdma_nl_put_driver_u64(msg, #name, info.stats.name) ||
	    HERALD_CQ_STATS(HERALD_CQ_STAT)
#undef HERALD_CQ_STAT
	    rdma_nl_put_driver_u32(msg, "dead", info.dead)) {
		nla_nest_cancel(msg, table);
		return -EMSGSIZE;
	}
	nla_nest_end(msg, table);
	return 0;
}

/* ------------------------------------------------------- create, destroy -- */

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

static void cq_init(struct herald_cq *cq, const struct ib_cq_init_attr *attr,
		    struct ib_ucontext *uctx)
{
	cq->user = uctx;
	cq->timestamps = attr->flags & IB_UVERBS_CQ_FLAGS_TIMESTAMP_COMPLETION;
	cq->pid = uctx ? task_tgid_nr(current) : 0;
	cq->uctx = uctx;
	cq->cpu = herald_vector_cpu(cq->dev, attr->comp_vector);
	spin_lock_init(&cq->lock);
	mutex_init(&cq->resize_mutex);
	spin_lock_init(&cq->qps_lock);
	INIT_LIST_HEAD(&cq->qps[0]);
	INIT_LIST_HEAD(&cq->qps[1]);
	herald_notify_init(cq);
	herald_moderation_init(cq);
	herald_cq_overrun_init(cq);
	herald_event_source_init(&cq->events, HERALD_OBJECT_CQ, cq->user);
}

static int cq_respond(const struct herald_cq *cq, struct ib_udata *udata)
{
	struct herald_create_cq_resp resp = { .cq_id = cq->id };

	if (!udata)
		return 0;
	herald_shm_info(cq->shm, cq->depth, sizeof(struct herald_cqe), &resp.ring);
	return ib_copy_to_udata(udata, &resp, min(sizeof(resp), udata->outlen));
}

int herald_create_cq(struct ib_cq *ibcq, const struct ib_cq_init_attr *attr,
		     struct uverbs_attr_bundle *attrs)
{
	struct ib_udata *udata = attrs ? &attrs->driver_udata : NULL;
	struct herald_dev *dev = to_hdev(ibcq->device);
	struct herald_cq *cq = to_hcq(ibcq);
	struct cq_ring ring;
	int ret;

	ret = herald_fault_verb(&dev->faults, HERALD_FAULT_CREATE_CQ) ?:
	      cq_check_attr(dev, attr) ?: herald_udata_zero(udata);
	if (ret)
		return ret;
	ret = herald_object_count(dev, &dev->num_cq, HERALD_MAX_CQ);
	if (ret)
		return ret;

	cq->dev = dev;
	ret = herald_cq_ring_alloc(&ring, udata, attr->cqe);
	if (ret)
		goto err_count;
	cq_init(cq, attr, udata ? &rdma_udata_to_drv_context(udata, struct herald_ucontext,
							     ib)->ib : NULL);
	cq_ring_use(cq, &ring);
	ret = herald_cqs_reserve(cq) ?: cq_respond(cq, udata);
	if (ret)
		goto err_ring;
	herald_cqs_add(cq);
	/* either we see what is being armed, or who arms it sees this CQ */
	smp_mb();
	herald_cq_ask(cq);
	return 0;

err_ring:
	herald_cqs_remove(cq);
	herald_shm_free(cq->shm);
err_count:
	atomic_dec(&dev->num_cq);
	return ret;
}

/*
 * The first half of destroying, by itself if the core has work of its own to
 * wait for between the two (ib_free_cq), which no handler may start again:
 *
 * 1. Nobody looks at it, or holds or releases its completions, any more.
 * 2. No event is noted from now on, and those that are due are dropped.
 * 3. An overrun's consequences, which walk the QPs' lists, are over.
 * 4. No timer and no handler runs, and none will.
 */
int herald_pre_destroy_cq(struct ib_cq *ibcq)
{
	struct herald_cq *cq = to_hcq(ibcq);
	unsigned long flags;

	herald_cqs_remove(cq);

	spin_lock_irqsave(&cq->lock, flags);
	cq->closing = true;
	cq->arm_state = herald_arm_table(cq->arm_state, HERALD_IN_DESTROY)->next;
	spin_unlock_irqrestore(&cq->lock, flags);

	herald_cq_overrun_flush(cq);
	herald_moderation_stop(cq);
	herald_hold_free(cq);
	herald_notify_flush(cq);
	herald_event_source_flush(&cq->events);
	return 0;
}

/*
 * The core's poller of an IB_POLL_SOFTIRQ CQ gives up its hold on the CQ before
 * it arms it, so ib_free_cq(), which frees the CQ next, has not waited for that.
 * A softirq is a reader of RCU.
 */
static void cq_wait_for_softirq(const struct ib_cq *ibcq)
{
	/* @wc: only a CQ that the core polls has one */
	if (ibcq->wc && ibcq->poll_ctx == IB_POLL_SOFTIRQ)
		synchronize_rcu();
}

/*
 * A process keeps what it has mapped.  If the device was taken from it, and it
 * still polls, it must hear that no more will come.
 */
static void cq_say_goodbye(struct herald_cq *cq)
{
	if (cq->user)
		cq_set_flags(cq, HERALD_CQ_DEAD);
}

/* The ring goes.  Twice is not too often: see herald_pre_destroy_cq(). */
int herald_destroy_cq(struct ib_cq *ibcq, struct ib_udata *udata)
{
	struct herald_cq *cq = to_hcq(ibcq);

	herald_pre_destroy_cq(ibcq);
	cq_wait_for_softirq(ibcq);
	cq_say_goodbye(cq);
	herald_shm_free(cq->shm);
	mutex_destroy(&cq->resize_mutex);
	atomic_dec(&cq->dev->num_cq);
	return 0;
}
