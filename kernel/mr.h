/* SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB */
/*
 * Memory keys: regions (mr.c), windows (mw.c), and the copies between them
 * (copy.c).  A key is (index << 8) | variant: the index finds the entry in
 * herald_dev.keys, the variant changes with every use of the index so that a
 * stale key is refused.  lkey and rkey of a region are the same number.
 */
#ifndef HERALD_MR_H
#define HERALD_MR_H

#include <linux/refcount.h>
#include <rdma/ib_verbs.h>
#include <rdma/herald-abi.h>

#include "completion.h"

struct herald_dev;
struct herald_pd;
struct herald_qp;
struct herald_op;

/* The lkey of kernel consumers' own memory; refused in a process's WQE. */
#define HERALD_LOCAL_DMA_LKEY	0

/**
 * struct herald_span - one end of a copy
 * @sge: scatter/gather list, or NULL
 * @nsge: its length
 * @linear: kernel memory instead (inline data, a header), or NULL
 * @length: bytes it covers
 * @qp: the QP whose PD, and whose window bindings, the keys must belong to
 * @access: enum ib_access_flags that every key must carry (0 for reading one's own)
 * @remote: the keys came from the peer (rkeys): windows are allowed, the
 *	local DMA lkey is not
 */
struct herald_span {
	const struct herald_sge *sge;
	u32 nsge;
	void *linear;
	u64 length;
	struct herald_qp *qp;
	int access;
	bool remote;
};

enum herald_copy_result {
	HERALD_COPY_OK,
	HERALD_COPY_SRC,	/* the source's key, range or permission */
	HERALD_COPY_DST,	/* the destination's */
};

/**
 * herald_span_check - would every byte of it be accessible now?
 * @span: the span; zero length is always fine and looks at no key
 *
 * Return: 0 or -EACCES.
 * Context: any; no lock held.
 */
int herald_span_check(const struct herald_span *span);

/**
 * herald_copy - move bytes between two spans
 * @dst: where to
 * @dst_off: bytes to skip in @dst
 * @src: where from
 * @src_off: bytes to skip in @src
 * @len: bytes; at most HERALD_PIECE
 *
 * Holds references to the memory, and no lock, while it copies; all keys that
 * the piece touches are checked before the first byte moves.
 * Context: any; does not sleep.
 */
enum herald_copy_result herald_copy(const struct herald_span *dst, u64 dst_off,
				    const struct herald_span *src, u64 src_off, u32 len);

/**
 * herald_atomic - an 8-byte atomic operation on a span
 * @target: 8 bytes, remote; must be aligned to 8
 * @opcode: HERALD_WR_ATOMIC_CMP_AND_SWP, _FETCH_AND_ADD or _ATOMIC_WRITE
 * @operand: the value to add, to compare with, or to write
 * @swap: the value to swap in
 * @old: the value found
 *
 * Atomic against all other herald atomics and against the host's own.
 * Return: HERALD_OK, HERALD_NAK_INV_REQ (alignment), HERALD_NAK_ACCESS.
 * Context: any.
 */
enum herald_outcome herald_atomic(const struct herald_span *target, int opcode, u64 operand,
				  u64 swap, u64 *old);

/* LOCAL_INV, and the responder's half of SEND_WITH_INV: invalidate a key that @qp may. */
enum herald_outcome herald_key_invalidate_local(struct herald_qp *qp, u32 key);
enum herald_outcome herald_key_invalidate_remote(struct herald_qp *qp, u32 key);

/* REG_MR and BIND_MW: what the requester does for them. */
enum herald_outcome herald_mr_register(struct herald_qp *qp, const struct herald_op *op);
enum herald_outcome herald_mw_bind(struct herald_qp *qp, const struct herald_op *op);

/* ib_device_ops; reg_user_mr's dmah argument is bridged in compat/ */
struct ib_mr *herald_get_dma_mr(struct ib_pd *pd, int access);
struct ib_mr *herald_reg_user_mr(struct ib_pd *pd, u64 start, u64 length, u64 virt_addr,
				 int access, struct ib_udata *udata);
struct ib_mr *herald_rereg_user_mr(struct ib_mr *mr, int flags, u64 start, u64 length,
				   u64 virt_addr, int access, struct ib_pd *pd,
				   struct ib_udata *udata);
struct ib_mr *herald_alloc_mr(struct ib_pd *pd, enum ib_mr_type type, u32 max_num_sg);
int herald_map_mr_sg(struct ib_mr *mr, struct scatterlist *sg, int nents, unsigned int *offset);
int herald_dereg_mr(struct ib_mr *mr, struct ib_udata *udata);
int herald_alloc_mw(struct ib_mw *mw, struct ib_udata *udata);
int herald_dealloc_mw(struct ib_mw *mw);

#endif /* HERALD_MR_H */
