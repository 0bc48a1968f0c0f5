// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/*
 * The responder: what a QP does with a request that reached it.
 *
 * It runs in the context of whoever brought the request (on this host, the
 * sender), and is owned by one context at a time.  The order within a request
 * is: may this QP receive, has it the operation, is there room (take the
 * receive WR), move the data, complete the receive WR.  A receive WR that was
 * taken stays in qp->resp.recv until it completes: over the pieces of a long
 * message, and over datagrams that did not fit.
 */
#include <linux/kernel.h>

#include "cq.h"
#include "device.h"
#include "mr.h"
#include "opcode.h"
#include "qp.h"
#include "requester.h"
#include "responder.h"
#include "srq.h"
#include "wire_qp.h"

#define GRH_LEN		40
#define RELEASE_ROUNDS	4

/* ------------------------------------------------------ receive WRs -- */

/* What is wrong with the receive WR just taken, on purpose. */
static enum herald_outcome recv_verdict(struct herald_qp *qp)
{
	if (!herald_fault_armed(&qp->dev->faults, HERALD_FAULT_RECV))
		return HERALD_OK;
	switch (herald_fault_recv(qp)) {
	case IB_WC_LOC_LEN_ERR:
		return HERALD_NAK_TOO_LONG;
	case IB_WC_LOC_PROT_ERR:
		return HERALD_NAK_BAD_RECV;
	case IB_WC_LOC_ACCESS_ERR:
		return HERALD_NAK_ACCESS;
	case IB_WC_REM_INV_REQ_ERR:
		return HERALD_NAK_INV_INVALIDATE;
	default:
		return HERALD_OK;
	}
}

/* HERALD_OK: qp->resp.recv is valid; else what to do about the lack of one. */
static enum herald_outcome take_recv(struct herald_qp *qp, struct herald_deferred *d)
{
	int ret;

	if (qp->resp.busy)
		return HERALD_OK;
	if (herald_fault_armed(&qp->dev->faults, HERALD_FAULT_RNR) && herald_fault_rnr(qp))
		return HERALD_RNR;
	if (qp->srq) {
		ret = herald_srq_take(qp->srq, &qp->resp.recv, d);
	} else if (qp->resp.ring_dead || !qp->resp.ring.shm) {
		ret = 0;
	} else {
		ret = herald_recv_copy(&qp->resp.ring, qp->cap.max_recv_sge, &qp->resp.recv);
		if (ret > 0)
			qp->resp.recv.queue = HERALD_CQE_RQ;
	}

	switch (ret) {
	case 1:
		qp->resp.busy = true;
		return recv_verdict(qp);
	case 0:
		return HERALD_RNR;
	case -EBADMSG:
		herald_count(qp->dev, HERALD_CTR_bad_recv_wqe);
		qp->resp.recv.queue = qp->srq ? HERALD_CQE_SRQ : HERALD_CQE_RQ;
		qp->resp.busy = true;
		return HERALD_NAK_BAD_RECV;
	default:
		qp->resp.ring_dead = true;
		herald_count(qp->dev, HERALD_CTR_bad_ring_index);
		return HERALD_NAK_BAD_RQ;
	}
}

static void complete_recv(struct herald_qp *qp, int status, const struct herald_recv_info *info,
			  struct herald_deferred *d)
{
	qp->resp.busy = false;
	herald_complete_recv(qp, &qp->resp.recv, status, info, d);
}

static void complete_recv_ok(struct herald_qp *qp, const struct herald_request *rq,
			     const struct herald_opcode_row *row, struct herald_deferred *d)
{
	struct herald_recv_info info = {
		.opcode = row->kind == HERALD_KIND_WRITE ? IB_WC_RECV_RDMA_WITH_IMM : IB_WC_RECV,
		.byte_len = rq->length,
		.src_qp = rq->src_qpn,
		.solicited = rq->solicited,
	};

	if (row->traits & HERALD_OP_IMM) {
		info.wc_flags |= IB_WC_WITH_IMM;
		info.imm_or_rkey = rq->imm_or_rkey;
	}
	if (row->traits & HERALD_OP_INVALIDATE) {
		info.wc_flags |= IB_WC_WITH_INVALIDATE;
		info.imm_or_rkey = rq->imm_or_rkey;
	}
	if (rq->grh) {
		info.byte_len += GRH_LEN;
		info.wc_flags |= IB_WC_GRH | IB_WC_WITH_NETWORK_HDR_TYPE;
		info.net_type = rq->src_av->net_type;
		info.sl = rq->src_av->sl;
	}
	complete_recv(qp, IB_WC_SUCCESS, &info, d);
}

/* ---------------------------------------------------------- failing -- */

static void count_nak(struct herald_qp *qp, const struct herald_outcome_row *row)
{
	switch (row->nak) {
	case HERALD_NAK_KIND_RNR:
		herald_count(qp->dev, HERALD_CTR_rnr_sent);
		break;
	case HERALD_NAK_KIND_INVALID_REQUEST:
		herald_count(qp->dev, HERALD_CTR_nak_invalid_request);
		break;
	case HERALD_NAK_KIND_REMOTE_ACCESS:
		herald_count(qp->dev, HERALD_CTR_nak_access);
		break;
	case HERALD_NAK_KIND_REMOTE_OPERATION:
		herald_count(qp->dev, HERALD_CTR_nak_operation);
		break;
	}
}

/* A datagram or unreliable message that cannot be taken is dropped and counted; nobody is told. */
static enum herald_outcome drop(struct herald_qp *qp, enum herald_outcome why)
{
	enum herald_counter counter = HERALD_CTR_uc_dropped;

	if (qp->type != IB_QPT_UC)
		counter = why == HERALD_NAK_TOO_LONG ? HERALD_CTR_ud_dropped_too_long :
						       HERALD_CTR_ud_dropped_no_recv;
	herald_count(qp->dev, counter);
	qp->resp.dropped = true;
	return HERALD_OK;
}

/*
 * The responder's share of an outcome that is not HERALD_OK; returns what the
 * requester is to be told.  A fault in the receiver's own queue or memory is a
 * local error, which stops the QP whatever its type.
 */
static enum herald_outcome fail(struct herald_qp *qp, enum herald_outcome why,
				struct herald_deferred *d)
{
	const struct herald_outcome_row *row = herald_outcome_row(why);
	bool own_fault = why == HERALD_NAK_BAD_RECV || why == HERALD_NAK_BAD_RQ;

	if (why == HERALD_NO_ANSWER)
		return why;
	if (qp->type != IB_QPT_RC && !own_fault)
		return drop(qp, why);

	count_nak(qp, row);
	if (row->resp_action == HERALD_RESP_ERROR) {
		if (qp->resp.busy && row->resp_status != IB_WC_SUCCESS)
			complete_recv(qp, row->resp_status, NULL, d);
		herald_qp_error(qp, row->resp_event, d);
	}
	return qp->type == IB_QPT_RC ? why : drop(qp, why);
}

/* -------------------------------------------------------- operations -- */

static bool last_piece(const struct herald_request *rq)
{
	return rq->offset + rq->piece >= rq->length;
}

static enum herald_outcome fill_recv(struct herald_qp *qp, const struct herald_request *rq)
{
	struct herald_recv *recv = &qp->resp.recv;
	const struct herald_span dst = {
		.sge = recv->sge, .nsge = recv->num_sge, .length = recv->length,
		.qp = qp, .access = IB_ACCESS_LOCAL_WRITE,
	};
	const struct herald_span grh = { .linear = (void *)rq->grh, .length = GRH_LEN };
	struct herald_cursor to __uninitialized, header __uninitialized;
	u32 skip = rq->grh ? GRH_LEN : 0;

	if (rq->length + skip > recv->length)
		return HERALD_NAK_TOO_LONG;
	if (!skip && !rq->piece)
		return HERALD_OK;
	/* a datagram is one piece, behind its header */
	if (herald_cursor_open(&to, &dst, rq->offset, skip + rq->piece))
		return HERALD_NAK_BAD_RECV;
	if (skip && !herald_cursor_open(&header, &grh, 0, skip))
		herald_cursor_move(&to, &header, skip);
	herald_cursor_move(&to, rq->payload, rq->piece);
	herald_cursor_close(&to);
	return HERALD_OK;
}

static enum herald_outcome do_send(struct herald_qp *qp, const struct herald_request *rq,
				   const struct herald_opcode_row *row, struct herald_deferred *d)
{
	enum herald_outcome out;

	/* the beginning went to somebody else: this QP was reset meanwhile */
	if (rq->offset && !qp->resp.busy)
		return HERALD_NO_ANSWER;
	out = take_recv(qp, d);
	if (out == HERALD_OK)
		out = fill_recv(qp, rq);
	if (out != HERALD_OK || !last_piece(rq))
		return out;

	if (row->traits & HERALD_OP_INVALIDATE) {
		/* on one host the sender may have sent out of the very memory whose key goes */
		herald_cursor_close(rq->payload);
		out = herald_key_invalidate_remote(qp, rq->imm_or_rkey);
		qp->resp.invalidated = out == HERALD_OK;
		return out;
	}
	complete_recv_ok(qp, rq, row, d);
	return HERALD_OK;
}

/* The last part of a SEND_WITH_INV: nobody may use the key's memory once it has completed. */
static enum herald_progress finish_invalidate(struct herald_qp *qp, const struct herald_request *rq,
					      struct herald_deferred *d)
{
	if (!herald_key_quiet(qp, rq->imm_or_rkey))
		return HERALD_AGAIN;
	qp->resp.invalidated = false;
	complete_recv_ok(qp, rq, herald_opcode(rq->opcode), d);
	return HERALD_DONE;
}

static struct herald_span remote_span(struct herald_qp *qp, const struct herald_request *rq,
				      const struct herald_opcode_row *row, struct herald_sge *sge)
{
	*sge = (struct herald_sge){
		.addr = rq->remote_addr, .length = rq->length, .lkey = rq->rkey,
	};
	return (struct herald_span){
		.sge = sge, .nsge = 1, .length = rq->length, .qp = qp,
		.access = row->key_access, .remote = true,
	};
}

static enum herald_outcome do_write(struct herald_qp *qp, const struct herald_request *rq,
				    const struct herald_opcode_row *row, struct herald_deferred *d)
{
	struct herald_sge sge;
	struct herald_span dst = remote_span(qp, rq, row, &sge);
	bool takes_recv = (row->traits & HERALD_OP_TAKES_RECV) && last_piece(rq);
	struct herald_cursor to __uninitialized;
	enum herald_outcome out;

	/*
	 * The whole range is judged by the first packet, later pieces judge
	 * again; and a message that may not be written takes no receive WR.
	 */
	if ((takes_recv || (!rq->offset && rq->length > rq->piece)) && herald_span_check(&dst))
		return HERALD_NAK_ACCESS;
	if (takes_recv) {
		out = take_recv(qp, d);
		if (out != HERALD_OK)
			return out;
	}
	if (rq->piece) {
		if (herald_cursor_open(&to, &dst, rq->offset, rq->piece))
			return HERALD_NAK_ACCESS;
		herald_cursor_move(&to, rq->payload, rq->piece);
		herald_cursor_close(&to);
	}
	if (takes_recv)
		complete_recv_ok(qp, rq, row, d);
	return HERALD_OK;
}

static enum herald_outcome do_read(struct herald_qp *qp, const struct herald_request *rq,
				   const struct herald_opcode_row *row)
{
	struct herald_sge sge;
	struct herald_span src = remote_span(qp, rq, row, &sge);
	struct herald_cursor from __uninitialized;

	if (!qp->attr.max_dest_rd_atomic)
		return HERALD_NAK_INV_REQ;
	if (!rq->piece)
		return HERALD_OK;
	if (!rq->offset && rq->length > rq->piece && herald_span_check(&src))
		return HERALD_NAK_ACCESS;
	if (herald_cursor_open(&from, &src, rq->offset, rq->piece))
		return HERALD_NAK_ACCESS;
	herald_cursor_move(rq->payload, &from, rq->piece);
	herald_cursor_close(&from);
	return HERALD_OK;
}

static enum herald_outcome do_atomic(struct herald_qp *qp, const struct herald_request *rq,
				     const struct herald_opcode_row *row)
{
	struct herald_sge sge;
	struct herald_span target = remote_span(qp, rq, row, &sge);
	u64 value = 0;
	const struct herald_span linear = { .linear = &value, .length = sizeof(value) };
	struct herald_cursor own __uninitialized;
	enum herald_outcome out;

	sge.length = sizeof(u64);
	target.length = sizeof(u64);
	herald_cursor_open(&own, &linear, 0, sizeof(value));
	if (row->kind == HERALD_KIND_ATOMIC_WRITE) {
		herald_cursor_move(&own, rq->payload, sizeof(value));
		return herald_atomic(&target, rq->opcode, value, 0, &value);
	}
	if (!qp->attr.max_dest_rd_atomic)
		return HERALD_NAK_INV_REQ;
	out = herald_atomic(&target, rq->opcode, rq->compare_add, rq->swap, &value);
	if (out == HERALD_OK)
		herald_cursor_move(rq->payload, &own, sizeof(value));
	return out;
}

static enum herald_outcome do_flush(struct herald_qp *qp, const struct herald_request *rq,
				    const struct herald_opcode_row *row)
{
	struct herald_sge sge;
	struct herald_span range = remote_span(qp, rq, row, &sge);
	int access = 0;

	if (rq->flush_placement & IB_FLUSH_GLOBAL)
		access |= IB_ACCESS_FLUSH_GLOBAL;
	if (rq->flush_placement & IB_FLUSH_PERSISTENT)
		access |= IB_ACCESS_FLUSH_PERSISTENT;
	if ((qp->attr.qp_access_flags & access) != access)
		return HERALD_NAK_INV_REQ;
	return herald_flush(&range, rq->flush_placement, rq->flush_selectivity);
}

enum herald_outcome herald_responder_verdict(int status)
{
	switch (status) {
	case IB_WC_REM_INV_REQ_ERR:
		return HERALD_NAK_INV_REQ;
	case IB_WC_REM_ACCESS_ERR:
		return HERALD_NAK_ACCESS;
	case IB_WC_REM_OP_ERR:
		return HERALD_NAK_BAD_RECV;
	default:
		return HERALD_OK;
	}
}

/* Something is found wrong on purpose, which needs a receive WR to be wrong, or none. */
static enum herald_outcome condemn(struct herald_qp *qp, const struct herald_request *rq,
				   const struct herald_opcode_row *row, struct herald_deferred *d)
{
	enum herald_outcome out;

	if (rq->verdict != HERALD_NAK_BAD_RECV)
		return rq->verdict;
	if (!(row->traits & HERALD_OP_TAKES_RECV))
		return HERALD_NAK_BAD_RQ;
	out = take_recv(qp, d);
	return out == HERALD_OK ? rq->verdict : out;
}

static enum herald_outcome dispatch(struct herald_qp *qp, const struct herald_request *rq,
				    struct herald_deferred *d)
{
	const struct herald_opcode_row *row = herald_opcode(rq->opcode);

	if (!herald_opcode_allowed(qp->type, rq->opcode, false))
		return HERALD_NAK_INV_REQ;
	if (unlikely(rq->verdict != HERALD_OK))
		return condemn(qp, rq, row, d);
	if ((qp->attr.qp_access_flags & row->qp_access) != row->qp_access)
		return HERALD_NAK_INV_REQ;

	switch (row->kind) {
	case HERALD_KIND_SEND:
		return do_send(qp, rq, row, d);
	case HERALD_KIND_WRITE:
		return do_write(qp, rq, row, d);
	case HERALD_KIND_READ:
		return do_read(qp, rq, row);
	case HERALD_KIND_ATOMIC:
	case HERALD_KIND_ATOMIC_WRITE:
		return do_atomic(qp, rq, row);
	case HERALD_KIND_FLUSH:
		return do_flush(qp, rq, row);
	default:
		return HERALD_NAK_INV_REQ;
	}
}

enum herald_progress herald_responder_execute(struct herald_qp *qp, const struct herald_request *rq,
					      enum herald_outcome *outcome,
					      struct herald_deferred *d)
{
	enum herald_outcome out;

	if (!(herald_qp_may(qp) & HERALD_MAY_RECEIVE)) {
		herald_count(qp->dev, HERALD_CTR_peer_not_ready);
		*outcome = qp->type == IB_QPT_RC ? HERALD_NO_ANSWER : HERALD_OK;
		return HERALD_DONE;
	}
	if (unlikely(READ_ONCE(qp->state) == IB_QPS_RTR))
		herald_qp_comm_est(qp, d);

	*outcome = HERALD_OK;
	/* a duplicate is acknowledged anew, and not executed */
	if (unlikely(rq->duplicate)) {
		herald_count(qp->dev, HERALD_CTR_duplicates);
		return HERALD_DONE;
	}
	if (rq->finish) {
		if (qp->resp.invalidated)
			return finish_invalidate(qp, rq, d);
		/* this QP was reset meanwhile */
		*outcome = HERALD_NO_ANSWER;
		return HERALD_DONE;
	}
	/* what a requester left behind that gave up */
	qp->resp.invalidated = false;
	out = dispatch(qp, rq, d);
	if (out == HERALD_OK && !last_piece(rq))
		return HERALD_MORE;
	if (out == HERALD_OK && qp->resp.invalidated)
		return finish_invalidate(qp, rq, d);
	if (out != HERALD_OK)
		out = rq->repeated ? HERALD_NO_ANSWER : fail(qp, out, d);
	*outcome = out;
	return HERALD_DONE;
}

enum herald_outcome herald_responder_refuse(struct herald_qp *qp, enum herald_outcome why,
					    struct herald_deferred *d)
{
	return fail(qp, why, d);
}

/* -------------------------------------------------------- ownership -- */

bool herald_responder_own(struct herald_qp *qp, struct herald_qp *waiter)
{
	unsigned long flags;

	if (likely(herald_engine_try(&qp->resp.engine)))
		return true;
	if (!waiter)
		return false;
	/* still on a list from before: whoever takes it off kicks it, and it asks again */
	if (atomic_xchg(&waiter->sq.on_wait_list, 1))
		return false;
	if (!herald_qp_get(waiter)) {
		atomic_set(&waiter->sq.on_wait_list, 0);
		return false;
	}
	spin_lock_irqsave(&qp->resp.lock, flags);
	waiter->sq.wait_next = qp->resp.waiters;
	qp->resp.waiters = waiter;
	spin_unlock_irqrestore(&qp->resp.lock, flags);

	/* whoever owns it sees the kick and then the list; if nobody does, we do */
	return herald_engine_kick(&qp->resp.engine);
}

static void wake_waiters(struct herald_qp *qp)
{
	struct herald_qp *waiter, *next;
	unsigned long flags;

	if (likely(!READ_ONCE(qp->resp.waiters)))
		return;
	spin_lock_irqsave(&qp->resp.lock, flags);
	waiter = qp->resp.waiters;
	qp->resp.waiters = NULL;
	spin_unlock_irqrestore(&qp->resp.lock, flags);

	for (; waiter; waiter = next) {
		next = waiter->sq.wait_next;
		atomic_set_release(&waiter->sq.on_wait_list, 0);
		herald_requester_kick_work(waiter);
		herald_qp_put(waiter);
	}
}

/* Bounded by what was there at the start; who posts in the error state kicks again. */
static void flush(struct herald_qp *qp, struct herald_deferred *d)
{
	int left, ret;

	qp->resp.invalidated = false;
	if (qp->resp.busy)
		complete_recv(qp, IB_WC_WR_FLUSH_ERR, NULL, d);
	if (!qp->srq && qp->resp.ring.shm && !qp->resp.ring_dead) {
		left = herald_ring_pending(&qp->resp.ring);
		if (left < 0) {
			herald_count(qp->dev, HERALD_CTR_bad_ring_index);
			qp->resp.ring_dead = true;
		}
		while (left-- > 0) {
			ret = herald_recv_copy(&qp->resp.ring, qp->cap.max_recv_sge,
					       &qp->resp.recv);
			if (ret != 1 && ret != -EBADMSG)
				break;
			qp->resp.recv.queue = HERALD_CQE_RQ;
			complete_recv(qp, IB_WC_WR_FLUSH_ERR, NULL, d);
		}
	}
	herald_qp_last_wqe(qp, d);
}

/* What there is to do, as far as it fits into one turn; false: it does not. */
static bool attend(struct herald_qp *qp, struct herald_deferred *d)
{
	if (herald_qp_may(qp) & HERALD_FLUSH_RECV)
		flush(qp, d);
	return !qp->wire || herald_wire_respond(qp, d);
}

void herald_responder_release(struct herald_qp *qp, struct herald_deferred *d)
{
	unsigned int rounds = 0;

	while (!herald_engine_release(&qp->resp.engine)) {
		if (!attend(qp, d))
			rounds = RELEASE_ROUNDS;
		/*
		 * Others may kick for ever: they are not to hold up this context.
		 * The work item is queued after the engine was let go of, so its
		 * kick is not among those that are dropped.
		 */
		if (++rounds >= RELEASE_ROUNDS) {
			herald_engine_abandon(&qp->resp.engine);
			herald_qp_queue_responder(qp);
			break;
		}
	}
	wake_waiters(qp);
}

void herald_responder_kick(struct herald_qp *qp, struct herald_deferred *d)
{
	bool all;

	if (!herald_engine_kick(&qp->resp.engine))
		return;
	all = attend(qp, d);
	herald_responder_release(qp, d);
	if (!all)
		herald_qp_queue_responder(qp);
}

/* ------------------------------------------------------------- life -- */

void herald_responder_init(struct herald_qp *qp)
{
	herald_engine_init(&qp->resp.engine);
	spin_lock_init(&qp->resp.lock);
	spin_lock_init(&qp->resp.post_lock);
}

void herald_responder_stop(struct herald_qp *qp)
{
	herald_engine_wait_idle(&qp->resp.engine);
}

void herald_responder_reset(struct herald_qp *qp)
{
	HERALD_DEFERRED(d);

	herald_engine_own(&qp->resp.engine);
	qp->resp.busy = false;
	qp->resp.invalidated = false;
	qp->resp.ring_dead = false;
	herald_wire_resp_reset(qp);
	if (qp->resp.ring.shm)
		herald_ring_reset(&qp->resp.ring);
	herald_responder_release(qp, &d);
	herald_deferred_run(&d);
}
