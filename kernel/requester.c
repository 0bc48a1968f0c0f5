// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/*
 * The requester: works off a QP's send queue, in order, one WR at a time.
 *
 * Whoever kicks it while nobody owns it runs it, within a budget; what is left
 * goes to the QP's work item, which takes the ownership over.  Every
 * queue_work() is preceded by taking ownership, so the work item always owns
 * the engine when it starts.
 */
#include <linux/kernel.h>
#include <linux/sched/signal.h>

#include <linux/hrtimer.h>
#include "cq.h"
#include "device.h"
#include "late.h"
#include "mr.h"
#include "opcode.h"
#include "path_migration.h"
#include "qp.h"
#include "requester.h"
#include "responder.h"
#include "timer.h"
#include "transport.h"
#include "wire_qp.h"

/* Without a local ACK timeout nothing ever counts as lost; look again this often. */
#define PATIENCE_NS	(100 * NSEC_PER_MSEC)

/* How long somebody else's piece may take. */
#define MOMENT_NS	(20 * NSEC_PER_USEC)

struct budget {
	enum herald_run_context ctx;
	u32 ops;
	s64 bytes;
};

enum run_result {
	RUN_IDLE,		/* nothing to do, or waiting for a timer, a peer, a state */
	RUN_OUT_OF_BUDGET,
};

/* ----------------------------------------------------------- waiting -- */

static enum hrtimer_restart timer_fired(struct hrtimer *timer)
{
	struct herald_qp *qp = container_of(timer, struct herald_qp, sq.timer);

	WRITE_ONCE(qp->sq.waiting, false);
	herald_requester_kick_work(qp);
	return HRTIMER_NORESTART;
}

static void wait_for_timer(struct herald_qp *qp, enum herald_wait kind, u64 ns)
{
	qp->sq.wait_kind = kind;
	WRITE_ONCE(qp->sq.waiting, true);
	hrtimer_start(&qp->sq.timer, ns_to_ktime(ns), HRTIMER_MODE_REL);
}

/* -------------------------------------------------------- completing -- */

void herald_requester_complete(struct herald_qp *qp, struct herald_op *op, int status,
			       struct herald_deferred *d)
{
	herald_complete_send(qp, op, status, d);
	herald_op_put(op);
}

static void complete_op(struct herald_qp *qp, int status, struct herald_deferred *d)
{
	qp->sq.busy = false;
	herald_requester_complete(qp, &qp->sq.op, status, d);
}

/*
 * The state changes before the completion is seen: who polls the first error
 * finds the QP in the state that the error put it in.  Holding the responder
 * meanwhile, if it is free, puts the error before the receive queue's flushes.
 */
void herald_requester_fail(struct herald_qp *qp, struct herald_op *op, int status,
			   struct herald_deferred *d)
{
	bool own = herald_responder_own(qp, NULL);

	if (qp->type == IB_QPT_RC)
		herald_qp_error(qp, -1, d);
	else
		herald_qp_sq_error(qp, d);
	herald_requester_complete(qp, op, status, d);
	if (own)
		herald_responder_release(qp, d);
}

static void complete_in_error(struct herald_qp *qp, int status, struct herald_deferred *d)
{
	qp->sq.busy = false;
	herald_requester_fail(qp, &qp->sq.op, status, d);
}

void herald_requester_start_retries(struct herald_qp *qp)
{
	qp->sq.path_moves = READ_ONCE(qp->path_moves);
	qp->sq.retry_left = qp->attr.retry_cnt;
	qp->sq.rnr_left = qp->attr.rnr_retry;
}

u64 herald_requester_patience_ns(const struct herald_qp *qp)
{
	return herald_ack_timeout_ns(READ_ONCE(qp->attr.timeout)) ?: PATIENCE_NS;
}

static void retry_later(struct herald_qp *qp)
{
	if (unlikely(READ_ONCE(qp->path_moves) != qp->sq.path_moves))
		herald_requester_start_retries(qp);
	wait_for_timer(qp, HERALD_WAIT_ACK, herald_requester_patience_ns(qp));
}

static void wait_a_moment(struct herald_qp *qp)
{
	u64 pause = (u64)qp->sq.pause_usec * NSEC_PER_USEC;

	qp->sq.pause_usec = 0;
	wait_for_timer(qp, HERALD_WAIT_NONE, pause ?: MOMENT_NS);
}

enum herald_outcome herald_requester_wait_rnr(struct herald_qp *qp)
{
	/* 7 means for ever: IBTA, RNR retry counter */
	if (qp->sq.rnr_left != 7) {
		if (!qp->sq.rnr_left) {
			herald_count(qp->dev, HERALD_CTR_rnr_exceeded);
			return HERALD_RNR_EXCEEDED;
		}
		qp->sq.rnr_left--;
	}
	wait_for_timer(qp, HERALD_WAIT_RNR, herald_rnr_timer_ns(qp->sq.rnr_timer));
	return HERALD_RNR;
}

/* The op has an outcome: do what the table says. */
static void settle(struct herald_qp *qp, enum herald_outcome out, struct herald_deferred *d)
{
	const struct herald_outcome_row *row = herald_outcome_row(out);

	if (row->req_action == HERALD_REQ_RNR_WAIT) {
		out = herald_requester_wait_rnr(qp);
		if (out == HERALD_RNR)
			return;
		row = herald_outcome_row(out);
	}
	switch (row->req_action) {
	case HERALD_REQ_COMPLETE:
		complete_op(qp, row->req_status, d);
		break;
	case HERALD_REQ_RETRY:
		if (qp->type == IB_QPT_RC)
			retry_later(qp);
		else
			complete_op(qp, IB_WC_SUCCESS, d);
		break;
	case HERALD_REQ_RETRY_NOW:
		qp->sq.wait_kind = HERALD_WAIT_NOTHING;
		break;
	default:
		complete_in_error(qp, row->req_status, d);
		break;
	}
}

/* ------------------------------------------------------------ one WR -- */

/* Once it has completed, nobody uses the key's memory any more. */
static enum herald_progress invalidate(struct herald_qp *qp, const struct herald_op *op,
				       enum herald_outcome *out)
{
	if (!qp->sq.invalidated) {
		*out = herald_key_invalidate_local(qp, op->imm_or_rkey);
		if (*out != HERALD_OK)
			return HERALD_DONE;
		qp->sq.invalidated = true;
	}
	return herald_key_quiet(qp, op->imm_or_rkey) ? HERALD_DONE : HERALD_AGAIN;
}

static enum herald_progress run_local(struct herald_qp *qp, const struct herald_op *op,
				      enum herald_outcome *out)
{
	switch (op->opcode) {
	case HERALD_WR_LOCAL_INV:
		return invalidate(qp, op, out);
	case HERALD_WR_BIND_MW:
		*out = herald_mw_bind(qp, op);
		return HERALD_DONE;
	case HERALD_WR_REG_MR:
		*out = herald_mr_register(qp, op);
		return HERALD_DONE;
	default:
		*out = HERALD_LOC_QP_OP;
		return HERALD_DONE;
	}
}

/*
 * The last retry was lost: is there another path, or has somebody else found it
 * already?  *failed: there was one to try, in vain.
 */
static bool has_new_path(struct herald_qp *qp, bool *failed, struct herald_deferred *d)
{
	if (READ_ONCE(qp->path_moves) == qp->sq.path_moves)
		*failed = herald_mig_move(qp, HERALD_MIG_NO_ANSWER, d) == HERALD_MIG_FAILED;
	if (READ_ONCE(qp->path_moves) == qp->sq.path_moves)
		return false;
	herald_requester_start_retries(qp);
	return true;
}

bool herald_requester_may_retry(struct herald_qp *qp, enum herald_wait why, bool *mig_failed,
				struct herald_deferred *d)
{
	if (why != HERALD_WAIT_ACK && why != HERALD_WAIT_NOTHING)
		return true;
	if (why == HERALD_WAIT_ACK && !READ_ONCE(qp->attr.timeout))
		return true;
	if (!qp->sq.retry_left) {
		if (has_new_path(qp, mig_failed, d))
			return true;
		herald_count(qp->dev, HERALD_CTR_retries_exceeded);
		return false;
	}
	qp->sq.retry_left--;
	herald_count(qp->dev, HERALD_CTR_retries);
	return true;
}

static bool is_local(const struct herald_op *op)
{
	return herald_opcode(op->opcode)->kind == HERALD_KIND_LOCAL;
}

static bool on_wire(const struct herald_qp *qp)
{
	return qp->transport == &herald_transport_wire;
}

/* Move the current op on by one step. */
static enum herald_progress step(struct herald_qp *qp, struct budget *budget,
				 struct herald_deferred *d)
{
	struct herald_op *op = &qp->sq.op;
	enum herald_outcome out = HERALD_OK;
	enum herald_progress progress = HERALD_DONE;
	/* a datagram's steps are members of its group, each of which gets all of it */
	bool connected = qp->type == IB_QPT_RC || qp->type == IB_QPT_UC;
	u64 before = qp->sq.done;
	bool mig_failed = false;

	if (on_wire(qp) && !herald_wire_may_take(qp))
		return HERALD_BUSY;
	if (!herald_requester_may_retry(qp, qp->sq.wait_kind, &mig_failed, d))
		out = HERALD_RETRY_EXCEEDED;
	else if (is_local(op))
		progress = run_local(qp, op, &out);
	else
		progress = qp->transport->push(qp, op, &out, d);
	qp->sq.wait_kind = HERALD_WAIT_NONE;

	if (progress == HERALD_MORE) {
		budget->bytes -= connected ? qp->sq.done - before : op->length;
		herald_requester_start_retries(qp);
	} else if (progress == HERALD_DONE && on_wire(qp)) {
		herald_wire_take(qp, out, IB_WC_SUCCESS);
	} else if (progress == HERALD_DONE) {
		budget->bytes -= connected ? op->length - before : op->length;
		settle(qp, out, d);
	} else if (progress == HERALD_AGAIN) {
		wait_a_moment(qp);
	}
	if (unlikely(mig_failed))
		herald_mig_gave_up(qp, d);
	return progress;
}

/*
 * The WR is to end with a status that is not its own.  What a responder finds
 * wrong, it is to find; the rest is the requester's own affair.
 */
static void doom(struct herald_qp *qp, int status, struct herald_deferred *d)
{
	bool sent = herald_opcode(qp->sq.op.opcode)->kind != HERALD_KIND_LOCAL;
	enum herald_outcome out = herald_responder_verdict(status);

	if (out != HERALD_OK && sent && qp->type == IB_QPT_RC)
		qp->sq.verdict = out;
	else
		complete_in_error(qp, status, d);
}

/* A WR was taken that will be worked on, if it is good. */
static void start(struct herald_qp *qp, enum herald_outcome out, struct herald_deferred *d)
{
	u8 status = 0;

	if (herald_fault_armed(&qp->dev->faults, HERALD_FAULT_WR))
		status = herald_fault_wr(qp);
	if (on_wire(qp)) {
		if (status || out != HERALD_OK)
			herald_wire_take(qp, status ? HERALD_OK : out, status);
		return;
	}
	if (status)
		doom(qp, status, d);
	else if (out != HERALD_OK)
		settle(qp, out, d);
}

/* A new WR becomes the current one: true; else there is none to be had. */
static bool take_next(struct herald_qp *qp, struct herald_deferred *d)
{
	enum herald_outcome out = HERALD_OK;
	int ret;

	if (qp->sq.ring_dead || !qp->sq.ring.shm)
		return false;
	ret = herald_op_fetch(qp, &qp->sq.op, &out);
	if (!ret)
		return false;
	if (ret < 0) {
		herald_count(qp->dev, HERALD_CTR_bad_ring_index);
		qp->sq.ring_dead = true;
		herald_qp_error(qp, IB_EVENT_QP_FATAL, d);
		return false;
	}
	qp->sq.busy = true;
	qp->sq.done = 0;
	qp->sq.finish = false;
	qp->sq.invalidated = false;
	if (!herald_wire_busy(qp))
		herald_requester_start_retries(qp);
	qp->sq.wait_kind = HERALD_WAIT_NONE;
	qp->sq.fate = HERALD_FATE_UNKNOWN;
	qp->sq.verdict = HERALD_OK;
	herald_count(qp->dev, HERALD_CTR_sends_posted);
	if (!(herald_qp_may(qp) & HERALD_FLUSH_SEND))
		start(qp, out, d);
	return true;
}

/* ------------------------------------------------------------ running -- */

static bool out_of_budget(struct budget *budget)
{
	if (budget->ctx == HERALD_RUN_USER && fatal_signal_pending(current))
		return true;
	return !budget->ops || budget->bytes <= 0;
}

/* What is under way over the wire: true if something was done. */
static bool advance_wire(struct herald_qp *qp, unsigned int may, struct budget *budget,
			 struct herald_deferred *d)
{
	enum herald_progress progress;
	u32 bytes = 0;

	if (may & HERALD_FLUSH_SEND) {
		herald_wire_purge(qp->wire, &qp->wire->responses);
		if (!herald_wire_flush(qp, d))
			return false;
		/* gather() may have used them up */
		if (budget->ops)
			budget->ops--;
		return true;
	}
	progress = herald_wire_advance(qp, may, &bytes, d);
	budget->bytes -= bytes;
	if (progress == HERALD_AGAIN)
		wait_a_moment(qp);
	return progress == HERALD_MORE;
}

/*
 * On the wire, WRs that wait together travel together: take them all, as far as the window has
 * room, before any of them is sent.
 */
static void gather(struct herald_qp *qp, struct budget *budget, struct herald_deferred *d)
{
	const unsigned int needed = HERALD_MAY_SEND | HERALD_MAY_CONTINUE;

	while ((herald_qp_may(qp) & (needed | HERALD_FLUSH_SEND)) == needed && budget->ops &&
	       !READ_ONCE(qp->sq.waiting)) {
		if (!qp->sq.busy && (!herald_wire_may_take(qp) || !take_next(qp, d)))
			return;
		budget->ops--;
		if (qp->sq.busy && step(qp, budget, d) == HERALD_BUSY)
			return;
	}
}

/*
 * One look at what there is to do: false if there is nothing now.  The
 * activities are read anew each time: the state may change between two pieces.
 */
static bool advance(struct herald_qp *qp, struct budget *budget, struct herald_deferred *d)
{
	unsigned int may;

	if (on_wire(qp)) {
		gather(qp, budget, d);
		if (advance_wire(qp, herald_qp_may(qp), budget, d) || out_of_budget(budget))
			return true;
	}
	may = herald_qp_may(qp);
	if (may & HERALD_FLUSH_SEND) {
		if (!qp->sq.busy && !take_next(qp, d))
			return false;
		if (qp->sq.busy)
			complete_op(qp, IB_WC_WR_FLUSH_ERR, d);
		budget->ops--;
		return true;
	}
	if (READ_ONCE(qp->sq.waiting))
		return false;
	if (!qp->sq.busy) {
		if (!(may & HERALD_MAY_SEND)) {
			if (!herald_wire_busy(qp))
				herald_qp_drained(qp, d);
			return false;
		}
		if (on_wire(qp) && !herald_wire_may_take(qp))
			return false;
		if (!take_next(qp, d))
			return false;
		budget->ops--;
		if (!qp->sq.busy)
			return true;
	}
	if (!(may & HERALD_MAY_CONTINUE))
		return false;
	return step(qp, budget, d) != HERALD_BUSY;
}

static enum run_result work_off(struct herald_qp *qp, struct budget *budget)
{
	HERALD_DEFERRED(d);
	bool more = true;

	while (more && !out_of_budget(budget)) {
		more = advance(qp, budget, &d);
		if (!herald_deferred_empty(&d))
			herald_deferred_run(&d);
		if (budget->ctx != HERALD_RUN_KERNEL)
			cond_resched();
	}
	return more ? RUN_OUT_OF_BUDGET : RUN_IDLE;
}

/* The caller owns the engine; afterwards it does not. */
static void run(struct herald_qp *qp, enum herald_run_context ctx)
{
	struct budget budget = {
		.ctx = ctx,
		.ops = HERALD_BUDGET_OPS,
		.bytes = ctx == HERALD_RUN_KERNEL ? HERALD_BUDGET_BYTES_INLINE :
						    HERALD_BUDGET_BYTES,
	};

	do {
		if (work_off(qp, &budget) == RUN_OUT_OF_BUDGET) {
			queue_work(herald_wq, &qp->sq.work);
			return;
		}
	} while (!herald_engine_release(&qp->sq.engine));
}

static void work_fn(struct work_struct *work)
{
	run(container_of(work, struct herald_qp, sq.work), HERALD_RUN_WORK);
}

void herald_requester_doorbell(struct herald_qp *qp)
{
	if (!on_wire(qp)) {
		herald_requester_kick(qp, HERALD_RUN_USER);
		return;
	}
	if (herald_wire_may_ring(qp))
		herald_requester_kick(qp, HERALD_RUN_USER);
	herald_pace_rung(&qp->wire->pace);
}

void herald_requester_kick(struct herald_qp *qp, enum herald_run_context ctx)
{
	if (herald_engine_kick(&qp->sq.engine))
		run(qp, ctx);
}

void herald_requester_kick_work(struct herald_qp *qp)
{
	if (herald_engine_kick(&qp->sq.engine))
		queue_work(herald_wq, &qp->sq.work);
}

/* --------------------------------------------------------------- life -- */

void herald_requester_init(struct herald_qp *qp)
{
	herald_engine_init(&qp->sq.engine);
	spin_lock_init(&qp->sq.post_lock);
	INIT_WORK(&qp->sq.work, work_fn);
	hrtimer_setup(&qp->sq.timer, timer_fired, CLOCK_MONOTONIC, HRTIMER_MODE_REL);
}

void herald_requester_stop(struct herald_qp *qp)
{
	/*
	 * An owner that had not yet seen the state may start the timer once
	 * more before it goes idle; a timer that fires meanwhile makes the
	 * work item own the engine.  So: timer, owner, and both again.
	 */
	hrtimer_cancel(&qp->sq.timer);
	herald_wire_qp_stop(qp);
	herald_engine_wait_idle(&qp->sq.engine);
	hrtimer_cancel(&qp->sq.timer);
	herald_wire_qp_stop(qp);
	herald_engine_wait_idle(&qp->sq.engine);
	flush_work(&qp->sq.work);
}

void herald_requester_reset(struct herald_qp *qp)
{
	herald_engine_own(&qp->sq.engine);
	if (qp->sq.busy)
		herald_op_put(&qp->sq.op);
	qp->sq.busy = false;
	WRITE_ONCE(qp->sq.waiting, false);
	qp->sq.wait_kind = HERALD_WAIT_NONE;
	qp->sq.ring_dead = false;
	qp->sq.done = 0;
	qp->sq.finish = false;
	qp->sq.pause_usec = 0;
	herald_late_drop(qp);
	herald_wire_req_reset(qp);
	if (qp->sq.ring.shm)
		herald_ring_reset(&qp->sq.ring);
	while (!herald_engine_release(&qp->sq.engine))
		;	/* there is nothing to look at */
}
