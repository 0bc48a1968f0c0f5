/* SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB */
/*
 * Memory keys: regions (mr.c), windows (mw.c), and the copies between them
 * (copy.c).  A key is (index << 8) | variant: the index finds the entry in
 * herald_dev.keys, the variant changes with every use of the index so that a
 * stale key is refused.  lkey and rkey of a region are the same number.
 */
#ifndef HERALD_MR_H
#define HERALD_MR_H

#include <linux/list.h>
#include <linux/refcount.h>
#include <linux/spinlock.h>
#include <linux/xarray.h>
#include <rdma/ib_verbs.h>
#include <rdma/herald-abi.h>

#include "completion.h"
#include "limits.h"
#include "mem.h"

struct herald_dev;
struct herald_pd;
struct herald_qp;
struct herald_op;

/* -------------------------------------------------------- the key table -- */

#define HERALD_KEY_MAX_INDEX	0xffffffu	/* 0 is no key's */

enum herald_key_kind {
	HERALD_KEY_REGION,
	HERALD_KEY_WINDOW,
};

/**
 * struct herald_key - an entry of herald_dev.keys
 * @index: its place there
 * @kind: what it is embedded in; freed after an RCU grace period
 */
struct herald_key {
	u32 index;
	enum herald_key_kind kind;
};

static inline u32 herald_key_make(u32 index, u8 variant)
{
	return index << 8 | variant;
}

/* Make the table of a new device.  Context: any. */
void herald_keys_init(struct herald_dev *dev);

/* Enter @key, whose kind is set; @value is its first key.  0 or -ENOMEM.  May sleep. */
int herald_key_alloc(struct herald_dev *dev, struct herald_key *key, u32 *value);
void herald_key_free(struct herald_dev *dev, struct herald_key *key);

/* What is at an index (key >> 8), or NULL.  Context: any, inside rcu_read_lock(). */
struct herald_key *herald_key_find(struct herald_dev *dev, u32 index);

/**
 * struct herald_mr - a memory region
 * @dev: its device
 * @umem: a process's pinned memory, or NULL
 * @virt_addr: as registered (with IB_ZERO_BASED not what accesses use)
 * @lock: serialises the changes of @mem, @windows and @last_key; irq-safe;
 *	may be taken inside herald_window.lock; a leaf otherwise
 * @mem: what the key stands for; NULL while invalid.  Read under RCU.
 * @windows: bound to it; only a process's regions have any
 * @last_key: fast registration: the key that was valid last
 * @frs: fast registration: one table may be published while the other is
 *	filled; else both NULL
 * @mapped: the one of @frs that map_mr_sg has filled last, or NULL
 * @filling: the one that map_mr_sg is filling
 * @pages_left: how many pages it may still add
 */
struct herald_mr {
	struct ib_mr ib;
	struct herald_key key;
	struct herald_dev *dev;
	struct ib_umem *umem;
	u64 virt_addr;

	spinlock_t lock;	/* irq-safe */
	struct herald_mem __rcu *mem;
	u32 windows;
	u32 last_key;

	struct herald_mem *frs[2];
	struct herald_mem *mapped;
	struct herald_mem *filling;
	u32 max_pages;
	u32 pages_left;

	struct rcu_head rcu;
};

static inline struct herald_mr *to_hmr(struct ib_mr *ibmr)
{
	return container_of(ibmr, struct herald_mr, ib);
}

/**
 * struct herald_window - a memory window's working half
 *
 * The core frees struct ib_mw as soon as dealloc_mw returns, and the key table
 * needs a grace period, hence the two halves.
 *
 * @type: IB_MW_TYPE_1 or IB_MW_TYPE_2 (2B)
 * @refs: one for the object, one per copy under way
 * @lock: protects what follows; irq-safe; herald_mr.lock and the lock of the
 *	table of bound windows are taken inside it
 * @rkey: the key that it is reached by, or would be
 * @dead: being freed: cannot be bound
 * @mem: the memory that it is bound to, or NULL; stays published while it is
 * @qp: type 2: the QP that it is bound to
 * @addr, @length: what it opens, in the region's addresses
 * @base: the address that a peer uses for @addr
 * @node: type 2: in the table of bound windows
 */
struct herald_window {
	struct herald_key key;
	enum ib_mw_type type;
	struct herald_dev *dev;
	struct ib_pd *pd;
	refcount_t refs;

	spinlock_t lock;	/* irq-safe */
	u32 rkey;
	bool dead;
	int access;
	struct herald_mem *mem;
	struct herald_qp *qp;
	u64 addr;
	u64 length;
	u64 base;
	struct hlist_node node;

	struct rcu_head rcu;
};

struct herald_mw {
	struct ib_mw ib;
	struct herald_window *win;
};

static inline struct herald_mw *to_hmw(struct ib_mw *ibmw)
{
	return container_of(ibmw, struct herald_mw, ib);
}

/* The region or window at a key's index, or NULL.  Context: any, inside rcu_read_lock(). */
static inline struct herald_mr *herald_key_region(struct herald_key *key)
{
	return key && key->kind == HERALD_KEY_REGION ?
		container_of(key, struct herald_mr, key) : NULL;
}

static inline struct herald_window *herald_key_window(struct herald_key *key)
{
	return key && key->kind == HERALD_KEY_WINDOW ?
		container_of(key, struct herald_window, key) : NULL;
}

/*
 * A region's memory under @key, with a reference, or NULL.
 * Context: any, inside rcu_read_lock().
 */
static inline struct herald_mem *herald_mr_get_mem(struct herald_mr *mr, u32 key)
{
	struct herald_mem *mem = rcu_dereference(mr->mem);

	if (!mem || !refcount_inc_not_zero(&mem->refs))
		return NULL;
	/*
	 * A fast registration's table is used again without a grace period:
	 * what it says is to be read after the reference was got.  Pairs with
	 * the barrier in herald_mr_register().
	 */
	smp_acquire__after_ctrl_dep();
	if (unlikely(mem->key != key)) {
		herald_mem_put(mem);
		return NULL;
	}
	return mem;
}

/**
 * struct herald_hold - memory that was found by a key and is held in place
 * @mem: the region's memory; NULL: addresses are the kernel's own
 * @win: the window it was reached through, or NULL
 * @bias: added to an address gives the offset in @mem
 */
struct herald_hold {
	struct herald_mem *mem;
	struct herald_window *win;
	u64 bias;
};

/**
 * herald_window_hold - hold a part of the memory behind a window
 * @win: the window
 * @qp: the QP that the access comes through
 * @key: the key that was used
 * @addr: where
 * @len: bytes, not 0
 * @access: enum ib_access_flags wanted
 * @hold: filled in
 *
 * Return: 0 or -EACCES.
 * Context: any, inside rcu_read_lock().
 */
int herald_window_hold(struct herald_window *win, const struct herald_qp *qp, u32 key, u64 addr,
		       u64 len, int access, struct herald_hold *hold);
void herald_window_put(struct herald_window *win);

/* What is the whole of an open window?  As herald_window_hold(), for FLUSH of a region. */
int herald_window_extent(struct herald_window *win, u32 key, u64 *addr, u64 *len);

/* ------------------------------------------------------------- the copies -- */

/* The lkey of kernel consumers' own memory; refused in a process's WQE. */
#define HERALD_LOCAL_DMA_LKEY	0

/**
 * struct herald_span - one end of a copy
 * @sge: scatter/gather list, or NULL
 * @nsge: its length
 * @linear: kernel memory instead (inline data, a header), or NULL
 * @seg: with @linear: it is in segments of so many bytes; 0: in one
 * @gap: bytes between two segments that do not belong to it
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
	u32 seg;
	u32 gap;
	u64 length;
	struct herald_qp *qp;
	int access;
	bool remote;
};

/**
 * struct herald_cursor - a place in a span, with the memory from there on held
 * @span: the span
 * @win: the window it is reached through, or NULL
 * @bias: added to an address gives the offset in the window's memory
 * @va: the next byte
 * @run: bytes there without a gap
 * @off: bytes of span->sge[@first + @at] before @va + @run; in linear memory, of the span
 * @first: the SGE in which it was opened
 * @held: how many of @mem are held
 * @at: the SGE it is in, counted from @first
 * @mem: what belongs to span->sge[@first + i]; NULL for the kernel's own memory
 *
 * Only a span with one SGE can go through a window (a peer names one key),
 * hence one window and one bias.
 */
struct herald_cursor {
	const struct herald_span *span;
	struct herald_window *win;
	u64 bias;
	u8 *va;
	u64 run;
	u64 off;
	u32 first;
	u32 held;
	u32 at;
	struct herald_mem *mem[HERALD_MAX_SGE];
};

/**
 * herald_cursor_open - find, check and hold a part of a span
 * @c: the cursor
 * @span: the span; must outlive the cursor
 * @off: bytes to skip in it
 * @len: bytes from there on that will be moved; 0 holds nothing
 *
 * Whoever withdraws a key waits for the cursors that hold its memory, so they
 * live for no more than one piece.
 * Return: 0 or -EACCES; then nothing is held.
 * Context: any; no lock held.
 */
int herald_cursor_open(struct herald_cursor *c, const struct herald_span *span, u64 off, u64 len);

/* Let go of what it holds; may be done twice.  Context: any. */
void herald_cursor_close(struct herald_cursor *c);

/**
 * herald_cursor_move - move bytes from one cursor to the other, and both cursors on
 * @dst: where to
 * @src: where from
 * @len: bytes; not more than is left of what each was opened for
 *
 * Context: any; no lock held; does not sleep.
 */
void herald_cursor_move(struct herald_cursor *dst, struct herald_cursor *src, u32 len);

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

/**
 * herald_flush - FLUSH: make what was written before it visible or persistent
 * @target: one SGE, remote; its access is not looked at
 * @placement: IB_FLUSH_GLOBAL, IB_FLUSH_PERSISTENT or both
 * @selectivity: IB_FLUSH_RANGE, or IB_FLUSH_MR: address and length do not matter
 *
 * Checks the key for the placement's access flags.
 * Return: HERALD_OK, HERALD_NAK_INV_REQ (unknown placement), HERALD_NAK_ACCESS.
 * Context: any; does not sleep.
 */
enum herald_outcome herald_flush(const struct herald_span *target, u32 placement, u32 selectivity);

/* ---------------------------------------------------- binding, invalidating -- */

/**
 * herald_key_invalidate_local - LOCAL_INV
 * @qp: the QP it was posted to
 * @key: a fast registration's key, or that of a type 2 window bound to @qp
 *
 * Invalidating a fast registration that is invalid already, by the key that it
 * had last, succeeds.
 * Return: HERALD_OK or HERALD_LOC_MW_BIND.
 * Context: any; no lock held.
 */
enum herald_outcome herald_key_invalidate_local(struct herald_qp *qp, u32 key);

/*
 * The responder's half of SEND_WITH_INV: the key must be valid and have remote
 * rights.  HERALD_OK or HERALD_NAK_INV_INVALIDATE.  Context: any; no lock held.
 */
enum herald_outcome herald_key_invalidate_remote(struct herald_qp *qp, u32 key);

/*
 * After a key was invalidated: has the last copy that used it ended?  One that
 * had begun goes on for at most HERALD_PIECE bytes.  Context: any; no lock held.
 */
bool herald_key_quiet(struct herald_qp *qp, u32 key);

/* The parts of these that know regions, fastreg.c, and windows, mw.c; inside rcu_read_lock(). */
bool herald_mr_invalidate(struct herald_mr *mr, const struct herald_qp *qp, u32 key, bool remote);
bool herald_window_invalidate(struct herald_window *win, const struct herald_qp *qp, u32 key);

/* Close all type 2 windows bound to @qp: destroy and reset.  Context: any; no lock held. */
void herald_mw_forget_qp(struct herald_qp *qp);

/* REG_MR and BIND_MW: what the requester does for them. */
enum herald_outcome herald_mr_register(struct herald_qp *qp, const struct herald_op *op);
enum herald_outcome herald_mw_bind(struct herald_qp *qp, const struct herald_op *op);

/* An MR with a key and no memory yet, counted against the limit; or an ERR_PTR.  May sleep. */
struct herald_mr *herald_mr_new(struct ib_pd *pd);
void herald_mr_delete(struct herald_mr *mr);

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
