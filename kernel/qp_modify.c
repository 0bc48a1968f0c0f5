// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/*
 * A QP's states: modify and query, and the changes that herald makes itself.
 *
 * qp->lock makes modifies atomic to each other; attributes are written before
 * the state that makes the engines look at them, and the engines are kicked
 * when the lock is dropped.  Only a reset waits for something: meanwhile
 * qp->resetting keeps other modifies out.
 */
#include <linux/wait_bit.h>
#include <rdma/herald-abi.h>
#include <rdma/ib_cache.h>
#include <rdma/uverbs_ioctl.h>

#include "cq.h"
#include "device.h"
#include "mr.h"
#include "path_migration.h"
#include "qp.h"
#include "requester.h"
#include "responder.h"
#include "srq.h"
#include "udata.h"
#include "wire_qp.h"

#define MAX_24BIT	0xffffffu
#define MAX_5BIT	31
#define MAX_3BIT	7

/* A modify as asked for. */
struct change {
	struct ib_qp_attr *attr;
	int mask;
	struct herald_av av;	/* with IB_QP_AV */
	struct herald_av alt_av;	/* with IB_QP_ALT_PATH */
	const struct ib_gid_attr *alt_gid;	/* to be put; or NULL */
	enum ib_qp_state from, to;
};

static bool is_datagram(const struct herald_qp *qp)
{
	return qp->type == IB_QPT_UD || qp->type == IB_QPT_GSI;
}

static void set_state(struct herald_qp *qp, enum ib_qp_state state)
{
	lockdep_assert_held(&qp->lock);
	/* after the attributes; pairs with the acquire in herald_qp_may() */
	smp_store_release(&qp->state, state);
}

void herald_qp_clear_attr(struct herald_qp *qp)
{
	herald_path_begin(qp);
	memset(&qp->attr, 0, sizeof(qp->attr));
	memset(&qp->av, 0, sizeof(qp->av));
	qp->has_alt = false;
	herald_path_end(qp);
	qp->attr.path_mig_state = IB_MIG_MIGRATED;
	qp->attr.port_num = qp->type == IB_QPT_GSI ? 1 : 0;
	qp->has_av = false;
	qp->dest_qpn = 0;
	qp->qkey = 0;
	qp->mtu = is_datagram(qp) ? herald_dev_mtu(qp->dev) : 0;
	qp->latch = 0;
	qp->provoked = 0;
	qp->sqd_notify = false;
}

/* --------------------------------------- changes that herald makes -- */

/*
 * In the error state a process must tell the kernel of the receive WRs that it
 * posts: nothing else would flush them.  Either it sees the flag, or the flush
 * that follows sees its WR (herald-abi.h).  A corrupt ring is marked as well.
 */
static void mark_rings_in_error(struct herald_qp *qp)
{
	u32 rq = HERALD_RING_NEED_DOORBELL;

	if (qp->user && qp->resp.ring.shm) {
		if (READ_ONCE(qp->resp.ring_dead))
			rq |= HERALD_RING_DEAD;
		WRITE_ONCE(qp->resp.ring.ctl->flags, rq);
	}
	if (qp->user && READ_ONCE(qp->sq.ring_dead))
		WRITE_ONCE(qp->sq.ring.ctl->flags, HERALD_RING_DEAD);
	/* pairs with the one in flush_late_recv(), and with the process's */
	smp_mb();
}

static void enter_error(struct herald_qp *qp, bool provoked)
{
	if (provoked)
		qp->provoked |= HERALD_LATCH_LAST_WQE;
	else
		qp->provoked &= ~HERALD_LATCH_LAST_WQE;
	set_state(qp, IB_QPS_ERR);
}

bool herald_qp_error(struct herald_qp *qp, int event, struct herald_deferred *d)
{
	bool entered = false, raised = false, fatal = event == IB_EVENT_QP_FATAL;
	unsigned long flags;

	spin_lock_irqsave(&qp->lock, flags);
	if (!qp->dying && !qp->resetting) {
		entered = qp->state != IB_QPS_ERR;
		if (entered)
			enter_error(qp, d->provoked);
		raised = (entered && event >= 0) || (fatal && !(qp->latch & HERALD_LATCH_FATAL));
		if (raised)
			herald_event_qp(qp, event, d);
		if (fatal)
			qp->latch |= HERALD_LATCH_FATAL;
	}
	spin_unlock_irqrestore(&qp->lock, flags);
	if (!entered)
		return raised;

	mark_rings_in_error(qp);
	herald_responder_kick(qp, d);
	herald_requester_kick_work(qp);
	return true;
}

void herald_qp_sq_error(struct herald_qp *qp, struct herald_deferred *d)
{
	unsigned long flags;
	bool entered = false;

	if (qp->type == IB_QPT_RC)
		return;
	spin_lock_irqsave(&qp->lock, flags);
	if (!qp->dying && (qp->state == IB_QPS_RTS || qp->state == IB_QPS_SQD)) {
		entered = true;
		set_state(qp, IB_QPS_SQE);
	}
	spin_unlock_irqrestore(&qp->lock, flags);
	if (entered)
		herald_requester_kick_work(qp);
}

/*
 * Raise an event once while the state lasts: the latch is cleared where the
 * state is entered.  The first look spares the lock on the data path.
 */
static void latch_event(struct herald_qp *qp, enum ib_qp_state state, u32 latch,
			enum ib_event_type event, struct herald_deferred *d)
{
	bool provoked = d->provoked;
	unsigned long flags;

	if (READ_ONCE(qp->state) != state || (READ_ONCE(qp->latch) & latch))
		return;
	spin_lock_irqsave(&qp->lock, flags);
	if (!qp->dying && qp->state == state && !(qp->latch & latch)) {
		qp->latch |= latch;
		/* a state that was provoked makes what comes of it so, too */
		d->provoked |= !!(qp->provoked & latch);
		if (latch != HERALD_LATCH_DRAINED || qp->sqd_notify)
			herald_event_qp(qp, event, d);
		d->provoked = provoked;
	}
	spin_unlock_irqrestore(&qp->lock, flags);
}

void herald_qp_comm_est(struct herald_qp *qp, struct herald_deferred *d)
{
	/* not for the GSI: it establishes nothing, and its consumer takes any event for fatal */
	if (qp->type != IB_QPT_GSI)
		latch_event(qp, IB_QPS_RTR, HERALD_LATCH_COMM_EST, IB_EVENT_COMM_EST, d);
}

void herald_qp_drained(struct herald_qp *qp, struct herald_deferred *d)
{
	latch_event(qp, IB_QPS_SQD, HERALD_LATCH_DRAINED, IB_EVENT_SQ_DRAINED, d);
}

/* As a modify to SQD that asks for the event; in SQD, as if it had been asked for. */
int herald_qp_drain(struct herald_qp *qp, struct herald_deferred *d)
{
	unsigned long flags;
	int ret = 0;

	spin_lock_irqsave(&qp->lock, flags);
	if (qp->dying || (qp->state != IB_QPS_RTS && qp->state != IB_QPS_SQD)) {
		ret = -EINVAL;
	} else {
		qp->latch &= ~HERALD_LATCH_DRAINED;
		qp->provoked |= HERALD_LATCH_DRAINED;
		qp->sqd_notify = true;
		qp->attr.en_sqd_async_notify = 1;
		set_state(qp, IB_QPS_SQD);
	}
	spin_unlock_irqrestore(&qp->lock, flags);
	if (!ret)
		herald_requester_kick_work(qp);
	return ret;
}

void herald_qp_last_wqe(struct herald_qp *qp, struct herald_deferred *d)
{
	if (qp->srq)
		latch_event(qp, IB_QPS_ERR, HERALD_LATCH_LAST_WQE,
			    IB_EVENT_QP_LAST_WQE_REACHED, d);
}

/* ----------------------------------------------------------- modify -- */

static bool mtu_is_ok(const struct herald_qp *qp, enum ib_mtu mtu)
{
	if (mtu < IB_MTU_256 || mtu > IB_MTU_4096)
		return false;
	return ib_mtu_enum_to_int(mtu) <= herald_dev_mtu(qp->dev);
}

static int check_alt_path(const struct herald_qp *qp, struct change *c)
{
	const struct ib_qp_attr *a = c->attr;

	if (a->alt_port_num != 1 || rdma_ah_get_port_num(&a->alt_ah_attr) != 1 ||
	    a->alt_timeout > MAX_5BIT || !herald_dev_pkey(qp->dev, a->alt_pkey_index))
		return -EINVAL;
	return herald_av_from_attr(&c->alt_av, &a->alt_ah_attr);
}

/* What is said about the peer and the path to it. */
static int check_path(const struct herald_qp *qp, struct change *c)
{
	const struct ib_qp_attr *a = c->attr;

	if ((c->mask & IB_QP_DEST_QPN) && a->dest_qp_num > MAX_24BIT)
		return -EINVAL;
	if ((c->mask & IB_QP_PATH_MTU) && !mtu_is_ok(qp, a->path_mtu))
		return -EINVAL;
	if ((c->mask & IB_QP_ALT_PATH) && check_alt_path(qp, c))
		return -EINVAL;
	if (!(c->mask & IB_QP_AV))
		return 0;
	if (rdma_ah_get_port_num(&a->ah_attr) != 1)
		return -EINVAL;
	return herald_av_from_attr(&c->av, &a->ah_attr);
}

static bool fits(int mask, int bit, u32 value, u32 max)
{
	return !(mask & bit) || value <= max;
}

/* Everything that can be judged without knowing the QP's state. */
static int check_attr(const struct herald_qp *qp, struct change *c)
{
	const struct ib_qp_attr *a = c->attr;
	int mask = c->mask;

	if (mask & ~IB_QP_ATTR_STANDARD_BITS)
		return -EOPNOTSUPP;
	if (!fits(mask, IB_QP_STATE, a->qp_state, IB_QPS_ERR) ||
	    !fits(mask, IB_QP_CUR_STATE, a->cur_qp_state, IB_QPS_ERR) ||
	    !fits(mask, IB_QP_PKEY_INDEX, a->pkey_index, HERALD_PKEY_TABLE_LEN - 1) ||
	    !fits(mask, IB_QP_RQ_PSN, a->rq_psn, MAX_24BIT) ||
	    !fits(mask, IB_QP_SQ_PSN, a->sq_psn, MAX_24BIT) ||
	    !fits(mask, IB_QP_MAX_QP_RD_ATOMIC, a->max_rd_atomic, HERALD_MAX_RD_ATOMIC) ||
	    !fits(mask, IB_QP_MAX_DEST_RD_ATOMIC, a->max_dest_rd_atomic,
		      HERALD_MAX_RD_ATOMIC) ||
	    !fits(mask, IB_QP_MIN_RNR_TIMER, a->min_rnr_timer, MAX_5BIT) ||
	    !fits(mask, IB_QP_TIMEOUT, a->timeout, MAX_5BIT) ||
	    !fits(mask, IB_QP_RETRY_CNT, a->retry_cnt, MAX_3BIT) ||
	    !fits(mask, IB_QP_RNR_RETRY, a->rnr_retry, MAX_3BIT))
		return -EINVAL;
	if ((mask & IB_QP_PKEY_INDEX) && !herald_dev_pkey(qp->dev, a->pkey_index))
		return -EINVAL;
	if ((mask & IB_QP_PORT) && a->port_num != 1)
		return -EINVAL;
	if ((mask & IB_QP_ACCESS_FLAGS) && (a->qp_access_flags & ~IB_ACCESS_SUPPORTED))
		return -EINVAL;
	return check_path(qp, c);
}

/* Is it allowed in the state that the QP is in? */
static int check_transition(const struct herald_qp *qp, struct change *c)
{
	lockdep_assert_held(&qp->lock);
	c->from = qp->state;
	if ((c->mask & IB_QP_CUR_STATE) && c->attr->cur_qp_state != c->from)
		return -EINVAL;
	c->to = c->mask & IB_QP_STATE ? c->attr->qp_state : c->from;
	/* after a fatal error every QP is in the error state; whoever drains asks for it again */
	if (herald_dev_check(qp->dev) && (c->mask != IB_QP_STATE || c->to != IB_QPS_ERR))
		return -EIO;
	if (!ib_modify_qp_is_ok(c->from, c->to, qp->type, c->mask))
		return -EINVAL;

	if ((c->mask & IB_QP_PATH_MIG_STATE) &&
	    !herald_mig_may_set(qp, c->attr->path_mig_state,
				qp->has_alt || (c->mask & IB_QP_ALT_PATH)))
		return -EINVAL;

	/* what is still being sent must not change its destination on the way */
	if (c->from == IB_QPS_SQD && (c->mask & IB_QP_AV) && !(qp->latch & HERALD_LATCH_DRAINED))
		return -EBUSY;
	return 0;
}

#define TAKE(bit, field)					\
	do {							\
		if (c->mask & (bit))				\
			qp->attr.field = c->attr->field;	\
	} while (0)

static void apply_paths(struct herald_qp *qp, const struct change *c)
{
	if (!(c->mask & (IB_QP_AV | IB_QP_ALT_PATH | IB_QP_PKEY_INDEX)))
		return;
	herald_path_begin(qp);
	TAKE(IB_QP_PKEY_INDEX, pkey_index);
	TAKE(IB_QP_ALT_PATH, alt_pkey_index);
	TAKE(IB_QP_ALT_PATH, alt_port_num);
	TAKE(IB_QP_ALT_PATH, alt_timeout);
	if (c->mask & IB_QP_AV) {
		/* inside, so that nobody sees the new path with the old number */
		herald_paths_changed();
		qp->av = c->av;
		qp->has_av = true;
	}
	if (c->mask & IB_QP_ALT_PATH) {
		qp->alt_av = c->alt_av;
		qp->has_alt = true;
	}
	herald_path_end(qp);
}

static void apply(struct herald_qp *qp, const struct change *c)
{
	lockdep_assert_held(&qp->lock);
	apply_paths(qp, c);
	TAKE(IB_QP_PORT, port_num);
	TAKE(IB_QP_ACCESS_FLAGS, qp_access_flags);
	TAKE(IB_QP_QKEY, qkey);
	TAKE(IB_QP_PATH_MTU, path_mtu);
	TAKE(IB_QP_DEST_QPN, dest_qp_num);
	TAKE(IB_QP_RQ_PSN, rq_psn);
	TAKE(IB_QP_SQ_PSN, sq_psn);
	TAKE(IB_QP_MAX_QP_RD_ATOMIC, max_rd_atomic);
	TAKE(IB_QP_MAX_DEST_RD_ATOMIC, max_dest_rd_atomic);
	TAKE(IB_QP_MIN_RNR_TIMER, min_rnr_timer);
	TAKE(IB_QP_TIMEOUT, timeout);
	TAKE(IB_QP_RETRY_CNT, retry_cnt);
	TAKE(IB_QP_RNR_RETRY, rnr_retry);
	TAKE(IB_QP_EN_SQD_ASYNC_NOTIFY, en_sqd_async_notify);

	qp->qkey = qp->attr.qkey;
	qp->dest_qpn = qp->attr.dest_qp_num;
	if (c->mask & IB_QP_PATH_MTU)
		qp->mtu = ib_mtu_enum_to_int(qp->attr.path_mtu);
	else if (is_datagram(qp) && c->to == IB_QPS_RTR)
		qp->mtu = herald_dev_mtu(qp->dev);
}

#undef TAKE

static void enter(struct herald_qp *qp, const struct change *c)
{
	if (c->to == c->from)
		return;

	switch (c->to) {
	case IB_QPS_RTR:
		qp->latch &= ~HERALD_LATCH_COMM_EST;
		herald_wire_qp_rtr(qp);
		break;
	case IB_QPS_RTS:
		if (c->from == IB_QPS_RTR)
			herald_wire_qp_rts(qp);
		break;
	case IB_QPS_ERR:
		qp->provoked &= ~HERALD_LATCH_LAST_WQE;
		break;
	case IB_QPS_SQD:
		qp->latch &= ~HERALD_LATCH_DRAINED;
		qp->provoked &= ~HERALD_LATCH_DRAINED;
		qp->sqd_notify = (c->mask & IB_QP_EN_SQD_ASYNC_NOTIFY) &&
				 c->attr->en_sqd_async_notify;
		break;
	default:
		break;
	}
	set_state(qp, c->to);
}

/* The new state is visible: let the engines see it. */
static void follow_up(struct herald_qp *qp, const struct change *c)
{
	switch (c->to) {
	case IB_QPS_RTS:
	case IB_QPS_SQD:
		herald_qp_kick_requester(qp);
		break;
	case IB_QPS_ERR:
		mark_rings_in_error(qp);
		herald_qp_kick_responder(qp);
		herald_qp_kick_requester(qp);
		break;
	default:
		break;
	}
}

/* qp->resetting is set and the state is RESET. */
static void finish_reset(struct herald_qp *qp)
{
	unsigned long flags;

	herald_qp_quiesce(qp, false);
	herald_event_source_settle(&qp->events);
	herald_mw_forget_qp(qp);
	herald_cq_purge(qp->scq, qp->qpn);
	if (qp->rcq != qp->scq)
		herald_cq_purge(qp->rcq, qp->qpn);

	spin_lock_irqsave(&qp->lock, flags);
	herald_qp_clear_attr(qp);
	qp->resetting = false;
	spin_unlock_irqrestore(&qp->lock, flags);
	smp_mb();	/* the waiter's look or our wake-up: one sees the other */
	wake_up_var(&qp->resetting);
}

/* Takes qp->lock.  -EBUSY: a reset is under way, and its end cannot be awaited here. */
static int lock_for_modify(struct herald_qp *qp, unsigned long *flags)
	__acquires(&qp->lock)
{
	/* a reset waits for the handler of an event, in turn */
	bool may_wait = herald_may_run_here() && !herald_event_source_is_caller(&qp->events);

	spin_lock_irqsave(&qp->lock, *flags);
	while (qp->resetting) {
		if (!may_wait)
			return -EBUSY;
		spin_unlock_irqrestore(&qp->lock, *flags);
		wait_var_event(&qp->resetting, !READ_ONCE(qp->resetting));
		spin_lock_irqsave(&qp->lock, *flags);
	}
	return 0;
}

/* The attributes are the core's copy of what a process asked for.  0 or -EINVAL. */
static int fill_alt_path(struct herald_qp *qp, struct change *c,
			 const struct herald_modify_qp_req *req)
{
	struct ib_qp_attr *attr = c->attr;
	struct rdma_ah_attr *ah = &attr->alt_ah_attr;
	const struct ib_gid_attr *gid;
	union ib_gid dgid;

	if (!req->is_global)
		return -EINVAL;
	gid = rdma_get_gid_attr(&qp->dev->ib, 1, req->sgid_index);
	if (IS_ERR(gid))
		return -EINVAL;
	attr->alt_pkey_index = req->pkey_index;
	attr->alt_port_num = req->port_num;
	attr->alt_timeout = req->timeout;
	memcpy(dgid.raw, req->dgid, sizeof(dgid.raw));
	memset(ah, 0, sizeof(*ah));
	ah->type = RDMA_AH_ATTR_TYPE_ROCE;
	rdma_ah_set_port_num(ah, req->av_port_num);
	rdma_ah_set_sl(ah, req->sl);
	rdma_ah_set_grh(ah, &dgid, req->flow_label, req->sgid_index, req->hop_limit,
			req->traffic_class);
	rdma_ah_retrieve_grh(ah)->sgid_attr = gid;
	c->alt_gid = gid;
	c->mask |= IB_QP_ALT_PATH;
	return 0;
}

/*
 * The core refuses every alternate path on a RoCE port, because its own
 * connection manager cannot ask for one there.  So a process's comes in the
 * driver's part of the command, and joins the other attributes here; then
 * put_alt_path() must follow.
 */
static int take_alt_path(struct herald_qp *qp, struct change *c, const struct ib_udata *udata)
{
	struct herald_modify_qp_req req;

	if (!udata || udata->inlen != sizeof(req))
		return herald_udata_zero(udata);
	if (copy_from_user(&req, udata->inbuf, sizeof(req)))
		return -EFAULT;
	if (!memchr_inv(&req, 0, sizeof(req)))
		return 0;
	if (req.flags != HERALD_MODIFY_ALT_PATH ||
	    memchr_inv(req.reserved, 0, sizeof(req.reserved)))
		return -EOPNOTSUPP;
	return fill_alt_path(qp, c, &req);
}

static void put_alt_path(struct change *c)
{
	if (!c->alt_gid)
		return;
	rdma_put_gid_attr(c->alt_gid);
	c->attr->alt_ah_attr.grh.sgid_attr = NULL;
}

/*
 * All changes but a reset may be made by a completion handler, or with bottom
 * halves off; a reset waits for the engines, and for handlers of events: those of
 * the QP's life so far come before the next one.
 */
int herald_modify_qp(struct ib_qp *ibqp, struct ib_qp_attr *attr, int mask, struct ib_udata *udata)
{
	struct herald_qp *qp = to_hqp(ibqp);
	struct change c = { .attr = attr, .mask = mask };
	struct herald_deferred d = {};
	unsigned long flags;
	bool reset;
	int ret;

	ret = herald_fault_verb(&qp->dev->faults, HERALD_FAULT_MODIFY_QP);
	if (ret)
		return ret;
	reset = (mask & IB_QP_STATE) && attr->qp_state == IB_QPS_RESET;
	if (reset && !herald_may_run_here())
		return -EBUSY;
	ret = take_alt_path(qp, &c, udata);
	if (ret)
		return ret;
	ret = check_attr(qp, &c);
	put_alt_path(&c);
	if (!ret && (mask & IB_QP_STATE) && (mask & IB_QP_AV) && attr->qp_state == IB_QPS_RTR)
		ret = herald_wire_qp_connect(qp, &c.av);
	if (ret)
		return ret;

	ret = lock_for_modify(qp, &flags) ?: check_transition(qp, &c);
	if (!ret && reset) {
		qp->resetting = true;
		set_state(qp, IB_QPS_RESET);
	} else if (!ret) {
		apply(qp, &c);
		enter(qp, &c);
		if (c.mask & IB_QP_PATH_MIG_STATE)
			herald_mig_set(qp, attr->path_mig_state, &d);
	}
	spin_unlock_irqrestore(&qp->lock, flags);
	if (ret)
		return ret;

	herald_deferred_run(&d);
	if (reset)
		finish_reset(qp);
	else
		follow_up(qp, &c);
	return 0;
}

/* ------------------------------------------------------------ query -- */

int herald_query_qp(struct ib_qp *ibqp, struct ib_qp_attr *attr, int mask,
		    struct ib_qp_init_attr *init)
{
	struct herald_qp *qp = to_hqp(ibqp);
	struct herald_av av, alt_av;
	bool has_av, has_alt;
	unsigned long flags;

	spin_lock_irqsave(&qp->lock, flags);
	*attr = qp->attr;
	attr->qp_state = qp->state;
	herald_wire_qp_query(qp, attr);
	attr->sq_draining = qp->state == IB_QPS_SQD && !(qp->latch & HERALD_LATCH_DRAINED);
	has_av = qp->has_av;
	av = qp->av;
	has_alt = qp->has_alt;
	alt_av = qp->alt_av;
	spin_unlock_irqrestore(&qp->lock, flags);

	attr->cur_qp_state = attr->qp_state;
	attr->cap = qp->cap;
	if (has_av)
		herald_av_to_attr(qp->dev, &av, &attr->ah_attr);
	if (has_alt)
		herald_av_to_attr(qp->dev, &alt_av, &attr->alt_ah_attr);

	*init = (struct ib_qp_init_attr){
		.event_handler = ibqp->registered_event_handler,
		.qp_context = ibqp->qp_context,
		.send_cq = ibqp->send_cq,
		.recv_cq = ibqp->recv_cq,
		.srq = ibqp->srq,
		.cap = qp->cap,
		.sq_sig_type = qp->sq_sig_all ? IB_SIGNAL_ALL_WR : IB_SIGNAL_REQ_WR,
		.qp_type = ibqp->qp_type,
		.port_num = ibqp->port,
	};
	return 0;
}
