// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/*
 * One WQE, copied out of its slot once and then judged as a copy: a process
 * may write to the slot at any time.  And the way in: a kernel consumer's WR,
 * judged first and then written into a slot.
 */
#include <linux/string.h>
#include <rdma/ib_verbs.h>

#include "ah.h"
#include "counters.h"
#include "opcode.h"
#include "qp.h"
#include "wqe.h"

#define KNOWN_FLAGS	(HERALD_WR_FENCE | HERALD_WR_SIGNALED | HERALD_WR_SOLICITED | \
			 HERALD_WR_INLINE)
#define MAX_QPN		0xffffffu
#define ATOMIC_LEN	sizeof(u64)

/* The ABI repeats the verbs' numbers, so that nothing need be translated. */
static_assert((int)HERALD_WR_RDMA_WRITE == (int)IB_WR_RDMA_WRITE);
static_assert((int)HERALD_WR_RDMA_WRITE_WITH_IMM == (int)IB_WR_RDMA_WRITE_WITH_IMM);
static_assert((int)HERALD_WR_SEND == (int)IB_WR_SEND);
static_assert((int)HERALD_WR_SEND_WITH_IMM == (int)IB_WR_SEND_WITH_IMM);
static_assert((int)HERALD_WR_RDMA_READ == (int)IB_WR_RDMA_READ);
static_assert((int)HERALD_WR_ATOMIC_CMP_AND_SWP == (int)IB_WR_ATOMIC_CMP_AND_SWP);
static_assert((int)HERALD_WR_ATOMIC_FETCH_AND_ADD == (int)IB_WR_ATOMIC_FETCH_AND_ADD);
static_assert((int)HERALD_WR_LOCAL_INV == (int)IB_WR_LOCAL_INV);
static_assert((int)HERALD_WR_BIND_MW == (int)IB_WR_BIND_MW);
static_assert((int)HERALD_WR_SEND_WITH_INV == (int)IB_WR_SEND_WITH_INV);
static_assert((int)HERALD_WR_FLUSH == (int)IB_WR_FLUSH);
static_assert((int)HERALD_WR_ATOMIC_WRITE == (int)IB_WR_ATOMIC_WRITE);
static_assert((int)HERALD_WR_REG_MR == (int)IB_WR_REG_MR);
static_assert((int)HERALD_WR_FENCE == (int)IB_SEND_FENCE);
static_assert((int)HERALD_WR_SIGNALED == (int)IB_SEND_SIGNALED);
static_assert((int)HERALD_WR_SOLICITED == (int)IB_SEND_SOLICITED);
static_assert((int)HERALD_WR_INLINE == (int)IB_SEND_INLINE);
static_assert(sizeof(struct herald_send_wqe) == HERALD_SEND_WQE_HDR);
static_assert(sizeof(struct herald_recv_wqe) == HERALD_RECV_WQE_HDR);
static_assert(sizeof(struct herald_sge) == sizeof(struct ib_sge));
static_assert(offsetof(struct herald_sge, length) == offsetof(struct ib_sge, length));
static_assert(offsetof(struct herald_sge, lkey) == offsetof(struct ib_sge, lkey));

static bool is_datagram(const struct herald_qp *qp)
{
	return qp->type == IB_QPT_UD || qp->type == IB_QPT_GSI;
}

/* The compiler must not look at the source again once the copy is made. */
static __always_inline void copy_once(void *dst, const void *src, size_t len)
{
	memcpy(dst, src, len);
	barrier();
}

/* What follows the header of a send slot. */
static void *slot_data(void *slot)
{
	return slot + HERALD_SEND_WQE_HDR;
}

static u64 sge_sum(const struct herald_sge *sge, u32 n)
{
	u64 sum = 0;

	while (n--)
		sum += (sge++)->length;
	return sum;
}

/*
 * How many bytes of inline data an operation may have.  ATOMIC WRITE's eight
 * bytes are an operand rather than payload (ibv_wr_atomic_write gives them by
 * value), so they need no more than a slot that has room for them.
 */
static u32 inline_limit(const struct herald_qp *qp, const struct herald_opcode_row *row)
{
	if (!(row->traits & HERALD_OP_MAY_INLINE))
		return 0;
	if (row->kind == HERALD_KIND_ATOMIC_WRITE)
		return qp->sq.ring.stride >= HERALD_SEND_WQE_HDR + ATOMIC_LEN ? ATOMIC_LEN : 0;
	return qp->cap.max_inline_data;
}

static enum herald_outcome check_length(const struct herald_opcode_row *row, u64 length)
{
	if (length > HERALD_MAX_MSG)
		return HERALD_LOC_LEN;

	switch (row->kind) {
	case HERALD_KIND_ATOMIC:
	case HERALD_KIND_ATOMIC_WRITE:
		return length == ATOMIC_LEN ? HERALD_OK : HERALD_LOC_LEN;
	case HERALD_KIND_FLUSH:
	case HERALD_KIND_LOCAL:
		return length ? HERALD_LOC_QP_OP : HERALD_OK;
	default:
		return HERALD_OK;	/* a datagram's own limit is its transport's affair */
	}
}

/* ------------------------------------------------ out of a send ring -- */

/* Is everything zero that the operation has no use for? */
static bool reserved_clear(const struct herald_qp *qp, const struct herald_send_wqe *w,
			   const struct herald_opcode_row *row)
{
	if (w->reserved0)
		return false;

	switch (row->kind) {
	case HERALD_KIND_SEND:
		if (!is_datagram(qp))
			return true;
		if (qp->user && (w->ud.pkey_index || w->ud.kernel_ah))
			return false;
		return !w->ud.reserved;
	case HERALD_KIND_WRITE:
	case HERALD_KIND_READ:
	case HERALD_KIND_ATOMIC_WRITE:
		return !w->rdma.reserved && !w->rdma.reserved1[0] && !w->rdma.reserved1[1];
	case HERALD_KIND_ATOMIC:
		return !w->atomic.reserved;
	case HERALD_KIND_FLUSH:
		return !w->flush.reserved;
	default:
		return true;
	}
}

static enum herald_outcome fetch_payload(struct herald_qp *qp, struct herald_op *op, void *slot,
					 const struct herald_opcode_row *row)
{
	const struct herald_send_wqe *w = &op->u;
	enum herald_outcome out;
	u64 length;

	if (w->flags & HERALD_WR_INLINE) {
		if (w->num_sge || w->inline_len > inline_limit(qp, row))
			return HERALD_LOC_QP_OP;
		length = w->inline_len;
		copy_once(op->inl, slot_data(slot), w->inline_len);
	} else {
		if (w->inline_len || w->num_sge > qp->cap.max_send_sge)
			return HERALD_LOC_QP_OP;
		copy_once(op->sge, slot_data(slot), w->num_sge * sizeof(op->sge[0]));
		length = sge_sum(op->sge, w->num_sge);
	}
	if (w->num_sge && (row->kind == HERALD_KIND_FLUSH || row->kind == HERALD_KIND_LOCAL))
		return HERALD_LOC_QP_OP;

	out = check_length(row, length);
	if (out == HERALD_OK) {
		op->num_sge = w->num_sge;
		op->length = length;
	}
	return out;
}

static enum herald_outcome fetch_destination(struct herald_qp *qp, struct herald_op *op)
{
	const struct herald_send_wqe *w = &op->u;

	if (w->ud.remote_qpn > MAX_QPN)
		return HERALD_LOC_QP_OP;
	if (qp->user)
		op->ah = herald_ah_get(qp->dev, qp->ib.pd, w->ud.ah);
	return op->ah ? HERALD_OK : HERALD_LOC_QP_OP;
}

/* op->u is the copy of the header; fill in the rest, as far as it is good. */
static enum herald_outcome decode(struct herald_qp *qp, struct herald_op *op, void *slot)
{
	const struct herald_send_wqe *w = &op->u;
	const struct herald_opcode_row *row;
	enum herald_outcome out;

	if (!herald_opcode_allowed(qp->type, w->opcode, qp->user))
		return HERALD_LOC_QP_OP;
	row = herald_opcode(w->opcode);
	op->opcode = w->opcode;
	if ((w->flags & ~KNOWN_FLAGS) || !reserved_clear(qp, w, row))
		return HERALD_LOC_QP_OP;
	out = fetch_payload(qp, op, slot, row);
	if (out == HERALD_OK && is_datagram(qp))
		out = fetch_destination(qp, op);
	return out;
}

int herald_op_fetch(struct herald_qp *qp, struct herald_op *op, enum herald_outcome *outcome)
{
	struct herald_ring *ring = &qp->sq.ring;
	int pending = herald_ring_pending(ring);
	void *slot;

	if (pending <= 0)
		return pending;
	slot = herald_ring_slot(ring, ring->head);
	copy_once(&op->u, slot, sizeof(op->u));

	op->wr_id = op->u.wr_id;
	op->index = ring->head++;
	op->flags = op->u.flags & KNOWN_FLAGS;
	op->imm_or_rkey = op->u.imm_or_rkey;
	/* what nobody need be afraid of, until decode() knows better */
	op->opcode = HERALD_WR_SEND;
	op->num_sge = 0;
	op->length = 0;
	op->ah = NULL;
	/* the slot's reference, see herald_wqe_post_send(), is now the op's */
	if (!qp->user && is_datagram(qp))
		op->ah = (struct herald_ah *)(uintptr_t)op->u.ud.kernel_ah;

	*outcome = decode(qp, op, slot);
	if (*outcome != HERALD_OK)
		herald_count(qp->dev, HERALD_CTR_bad_send_wqe);
	return 1;
}

void herald_op_put(struct herald_op *op)
{
	if (op->ah)
		herald_ah_put(op->ah);
	op->ah = NULL;
}

/* --------------------------------------------- out of a receive ring -- */

int herald_recv_copy(struct herald_ring *ring, u32 max_sge, struct herald_recv *recv)
{
	struct herald_recv_wqe w;
	bool good;
	void *slot;
	int pending;

	if (!ring->shm)
		return 0;
	pending = herald_ring_pending(ring);
	if (pending <= 0)
		return pending;
	slot = herald_ring_slot(ring, ring->head);
	copy_once(&w, slot, sizeof(w));

	recv->wr_id = w.wr_id;
	recv->index = ring->head;
	recv->num_sge = 0;
	recv->length = 0;
	good = !w.reserved && w.num_sge <= min_t(u32, max_sge, HERALD_MAX_SGE);
	if (good) {
		copy_once(recv->sge, slot + HERALD_RECV_WQE_HDR,
			  w.num_sge * sizeof(recv->sge[0]));
		recv->num_sge = w.num_sge;
		recv->length = sge_sum(recv->sge, w.num_sge);
	}
	ring->head++;
	herald_ring_publish(ring, ring->head);
	return good ? 1 : -EBADMSG;
}

/* ------------------------------------------- a kernel consumer's WRs -- */

static int encode_datagram(const struct herald_qp *qp, const struct ib_send_wr *wr,
			   struct herald_send_wqe *w)
{
	const struct ib_ud_wr *ud = ud_wr(wr);

	if (!ud->ah || ud->ah->device != qp->ib.device || ud->remote_qpn > MAX_QPN)
		return -EINVAL;
	w->ud.kernel_ah = (uintptr_t)to_hah(ud->ah);
	w->ud.remote_qpn = ud->remote_qpn;
	w->ud.remote_qkey = ud->remote_qkey;
	if (qp->type != IB_QPT_GSI)
		return 0;
	w->ud.pkey_index = ud->pkey_index;
	return ud->pkey_index < HERALD_PKEY_TABLE_LEN ? 0 : -EINVAL;
}

static int encode_local(const struct herald_qp *qp, const struct ib_send_wr *wr,
			struct herald_send_wqe *w)
{
	const struct ib_reg_wr *reg = reg_wr(wr);

	switch (wr->opcode) {
	case IB_WR_LOCAL_INV:
		return 0;
	case IB_WR_REG_MR:
		if (!reg->mr || reg->mr->device != qp->ib.device)
			return -EINVAL;
		w->reg.mr = (uintptr_t)reg->mr;
		w->reg.key = reg->key;
		w->reg.access = reg->access;
		return 0;
	default:
		return -EINVAL;	/* windows are not for kernel consumers */
	}
}

/* The operation's own part of the header. */
static int encode_operation(const struct herald_qp *qp, const struct ib_send_wr *wr,
			    const struct herald_opcode_row *row, struct herald_send_wqe *w)
{
	switch (row->kind) {
	case HERALD_KIND_SEND:
		return is_datagram(qp) ? encode_datagram(qp, wr, w) : 0;
	case HERALD_KIND_WRITE:
	case HERALD_KIND_READ:
	case HERALD_KIND_ATOMIC_WRITE:
		w->rdma.remote_addr = rdma_wr(wr)->remote_addr;
		w->rdma.rkey = rdma_wr(wr)->rkey;
		return 0;
	case HERALD_KIND_ATOMIC:
		w->atomic.remote_addr = atomic_wr(wr)->remote_addr;
		w->atomic.compare_add = atomic_wr(wr)->compare_add;
		w->atomic.swap = atomic_wr(wr)->swap;
		w->atomic.rkey = atomic_wr(wr)->rkey;
		return 0;
	case HERALD_KIND_LOCAL:
		return encode_local(qp, wr, w);
	default:
		return -EINVAL;	/* the kernel's verbs have no WR for FLUSH */
	}
}

/* The length is judged when the WR's turn comes: too long is a completion and not a refusal. */
static int encode_payload(const struct herald_qp *qp, const struct ib_send_wr *wr,
			  const struct herald_opcode_row *row, struct herald_send_wqe *w)
{
	u32 max_sge = row->kind == HERALD_KIND_LOCAL ? 0 : qp->cap.max_send_sge;
	u64 length = 0;
	int i;

	if (wr->num_sge < 0 || wr->num_sge > max_sge)
		return -EINVAL;
	if (!(wr->send_flags & IB_SEND_INLINE)) {
		w->num_sge = wr->num_sge;
		return 0;
	}
	for (i = 0; i < wr->num_sge; i++)
		length += wr->sg_list[i].length;
	if (!(row->traits & HERALD_OP_MAY_INLINE) || length > inline_limit(qp, row))
		return -EINVAL;
	w->inline_len = length;
	return 0;
}

static int encode(const struct herald_qp *qp, const struct ib_send_wr *wr,
		  struct herald_send_wqe *w)
{
	const struct herald_opcode_row *row;
	int ret;

	if (!herald_opcode_allowed(qp->type, wr->opcode, false) ||
	    (wr->send_flags & ~KNOWN_FLAGS))
		return -EINVAL;
	row = herald_opcode(wr->opcode);
	ret = encode_operation(qp, wr, row, w) ?: encode_payload(qp, wr, row, w);
	if (ret)
		return ret;

	w->wr_id = wr->wr_id;
	w->opcode = wr->opcode;
	w->flags = wr->send_flags;
	if (row->traits & HERALD_OP_IMM)
		w->imm_or_rkey = (__force u32)wr->ex.imm_data;
	else if (row->traits & HERALD_OP_INVALIDATE)
		w->imm_or_rkey = wr->ex.invalidate_rkey;
	return 0;
}

static void write_inline(void *dst, const struct ib_send_wr *wr)
{
	int i;

	for (i = 0; i < wr->num_sge; i++) {
		memcpy(dst, (void *)(uintptr_t)wr->sg_list[i].addr, wr->sg_list[i].length);
		dst += wr->sg_list[i].length;
	}
}

int herald_wqe_post_send(struct herald_qp *qp, const struct ib_send_wr *wr)
{
	struct herald_ring *ring = &qp->sq.ring;
	struct herald_send_wqe w = {};
	void *slot;
	int ret;

	ret = encode(qp, wr, &w);
	if (ret)
		return ret;
	if (herald_ring_full(ring))
		return -ENOMEM;

	slot = herald_ring_slot(ring, ring->tail);
	memcpy(slot, &w, sizeof(w));
	if (w.flags & HERALD_WR_INLINE)
		write_inline(slot_data(slot), wr);
	else
		memcpy(slot_data(slot), wr->sg_list, w.num_sge * sizeof(struct ib_sge));
	if (is_datagram(qp))
		herald_ah_ref((struct herald_ah *)(uintptr_t)w.ud.kernel_ah);
	herald_ring_push(ring);
	return 0;
}

void herald_wqe_drop_sends(struct herald_qp *qp)
{
	struct herald_ring *ring = &qp->sq.ring;
	const struct herald_send_wqe *w;

	if (qp->user || !is_datagram(qp))
		return;
	for (; ring->head != ring->tail; ring->head++) {
		w = herald_ring_slot(ring, ring->head);
		herald_ah_put((struct herald_ah *)(uintptr_t)w->ud.kernel_ah);
	}
}

int herald_wqe_post_recv(struct herald_ring *ring, u32 max_sge, const struct ib_recv_wr *wr)
{
	struct herald_recv_wqe w = { .wr_id = wr->wr_id };
	void *slot;

	if (!ring->shm || wr->num_sge < 0 || wr->num_sge > max_sge)
		return -EINVAL;
	if (herald_ring_full(ring))
		return -ENOMEM;

	w.num_sge = wr->num_sge;
	slot = herald_ring_slot(ring, ring->tail);
	memcpy(slot, &w, sizeof(w));
	memcpy(slot + HERALD_RECV_WQE_HDR, wr->sg_list, wr->num_sge * sizeof(struct ib_sge));
	herald_ring_push(ring);
	return 0;
}
