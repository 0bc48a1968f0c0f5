// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/*
 * Moving bytes between spans of memory.
 *
 * A copy first finds, checks and holds all the memory that it will touch, then
 * moves the bytes, then lets go.  Holding is one atomic operation per key, and
 * letting go another; there is no lock, but for windows while they are found.
 */
#include <linux/atomic.h>
#include <linux/libnvdimm.h>
#include <linux/mm.h>
#include <linux/string.h>

#include "device.h"
#include "mr.h"
#include "qp.h"

/* ------------------------------------------------------------------ holding -- */

static int hold_region(struct herald_mr *mr, const struct herald_span *span, u32 key, u64 addr,
		       u64 len, struct herald_hold *hold)
{
	struct herald_mem *mem = herald_mr_get_mem(mr, key);

	if (unlikely(!mem))
		return -EACCES;
	if (unlikely(mem->pd != span->qp->ib.pd || (mem->access & span->access) != span->access ||
		     !herald_range_inside(addr, len, mem->iova, mem->length)))
		goto refuse;
	/* A peer can name any address of the kernel's own region. */
	if (mem->identity && span->remote &&
	    (!virt_addr_valid((void *)(uintptr_t)addr) ||
	     !virt_addr_valid((void *)(uintptr_t)(addr + len - 1))))
		goto refuse;
	*hold = (struct herald_hold){ .mem = mem, .bias = -mem->iova };
	return 0;

refuse:
	herald_mem_put(mem);
	return -EACCES;
}

/* Find what @key stands for, check that the span may use these bytes of it, hold it. */
static int hold_key(const struct herald_span *span, u32 key, u64 addr, u64 len,
		    struct herald_hold *hold)
{
	struct herald_qp *qp = span->qp;
	struct herald_key *entry;
	struct herald_mr *mr;
	int ret = -EACCES;

	if (key == HERALD_LOCAL_DMA_LKEY && !span->remote && !qp->user) {
		*hold = (struct herald_hold){};
		return 0;
	}
	rcu_read_lock();
	entry = herald_key_find(qp->dev, key >> 8);
	mr = herald_key_region(entry);
	if (likely(mr))
		ret = hold_region(mr, span, key, addr, len, hold);
	else if (entry && span->remote)
		ret = herald_window_hold(herald_key_window(entry), qp, key, addr, len,
					 span->access, hold);
	rcu_read_unlock();
	if (unlikely(ret))
		herald_count(qp->dev, HERALD_CTR_bad_key);
	return ret;
}

static void unhold(const struct herald_hold *hold)
{
	if (hold->mem)
		herald_mem_put(hold->mem);
	if (unlikely(hold->win))
		herald_window_put(hold->win);
}

int herald_span_check(const struct herald_span *span)
{
	struct herald_hold hold;
	u32 i;

	if (!span->length || span->linear)
		return 0;
	for (i = 0; i < span->nsge; i++) {
		const struct herald_sge *sge = &span->sge[i];

		if (!sge->length)
			continue;
		if (hold_key(span, sge->lkey, sge->addr, sge->length, &hold))
			return -EACCES;
		unhold(&hold);
	}
	return 0;
}

/* ------------------------------------------------------------------ cursors -- */

void herald_cursor_close(struct herald_cursor *c)
{
	while (c->held) {
		c->held--;
		if (c->mem[c->held])
			herald_mem_put(c->mem[c->held]);
	}
	if (unlikely(c->win)) {
		herald_window_put(c->win);
		c->win = NULL;
	}
}

/* Hold the SGEs in which @len bytes from the cursor lie. */
static int hold_sges(struct herald_cursor *c, u64 len)
{
	const struct herald_span *span = c->span;
	struct herald_hold hold;
	u64 off = c->off;
	u32 i;

	for (i = c->first; len && i < span->nsge; i++) {
		const struct herald_sge *sge = &span->sge[i];
		u64 n = min_t(u64, sge->length - off, len);

		c->mem[c->held] = NULL;
		if (n) {
			if (hold_key(span, sge->lkey, sge->addr + off, n, &hold))
				return -EACCES;
			c->mem[c->held] = hold.mem;
			c->bias = hold.bias;
			c->win = hold.win;
		}
		c->held++;
		len -= n;
		off = 0;
	}
	return len ? -EACCES : 0;
}

static void open_linear(struct herald_cursor *c, u64 off)
{
	const struct herald_span *span = c->span;

	c->va = span->linear + off;
	c->run = span->length - off;
	if (unlikely(span->seg)) {
		u32 into = (u32)off % span->seg;

		c->va += (u32)off / span->seg * span->gap;
		c->run = min_t(u64, c->run, span->seg - into);
	}
	c->off = off + c->run;
}

int herald_cursor_open(struct herald_cursor *c, const struct herald_span *span, u64 off, u64 len)
{
	c->span = span;
	c->win = NULL;
	c->held = 0;
	c->first = 0;
	c->at = 0;
	c->run = 0;
	if (!herald_range_inside(off, len, 0, span->length))
		return -EACCES;
	if (span->linear) {
		open_linear(c, off);
		return 0;
	}
	if (span->nsge > HERALD_MAX_SGE || (span->remote && span->nsge > 1))
		return -EACCES;
	while (c->first < span->nsge && off >= span->sge[c->first].length)
		off -= span->sge[c->first++].length;
	c->off = off;
	if (unlikely(hold_sges(c, len))) {
		herald_cursor_close(c);
		return -EACCES;
	}
	return 0;
}

/* The next segment of linear memory. */
static void next_segment(struct herald_cursor *c)
{
	c->va += c->span->gap;
	c->run = min_t(u64, c->span->seg, c->span->length - c->off);
	c->off += c->run;
}

/* Find the next run.  There is one: nobody moves more than he opened. */
static void next_run(struct herald_cursor *c)
{
	const struct herald_sge *sge;
	struct herald_mem *mem;
	u64 addr, left;

	if (unlikely(c->span->linear)) {
		next_segment(c);
		return;
	}
	sge = &c->span->sge[c->first + c->at];
	while (c->off == sge->length) {
		c->at++;
		c->off = 0;
		sge++;
	}
	mem = c->mem[c->at];
	addr = sge->addr + c->off;
	left = sge->length - c->off;
	if (mem) {
		u64 bias = c->win ? c->bias : -mem->iova;

		c->va = herald_mem_run(mem, addr + bias, &c->run);
		c->run = min(c->run, left);
	} else {
		c->va = (u8 *)(uintptr_t)addr;
		c->run = left;
	}
	c->off += c->run;
}

static void advance(struct herald_cursor *c, u64 n)
{
	c->va += n;
	c->run -= n;
}

/* The same memory may be at both ends, and the ends may overlap. */
static void move(u8 *dst, const u8 *src, size_t n)
{
	if (unlikely(dst < src + n && src < dst + n))
		memmove(dst, src, n);
	else
		memcpy(dst, src, n);
}

void herald_cursor_move(struct herald_cursor *dst, struct herald_cursor *src, u32 len)
{
	const struct herald_qp *qp = dst->span->qp ?: src->span->qp;
	u32 left = len, n;

	while (left) {
		if (!dst->run)
			next_run(dst);
		if (!src->run)
			next_run(src);
		n = min3((u64)left, dst->run, src->run);
		move(dst->va, src->va, n);
		advance(dst, n);
		advance(src, n);
		left -= n;
	}
	if (qp)
		herald_count_add(qp->dev, HERALD_CTR_bytes_moved, len);
}

enum herald_copy_result herald_copy(const struct herald_span *dst, u64 dst_off,
				    const struct herald_span *src, u64 src_off, u32 len)
{
	struct herald_cursor to __uninitialized, from __uninitialized;

	if (!len)
		return HERALD_COPY_OK;
	if (unlikely(herald_cursor_open(&from, src, src_off, len)))
		return HERALD_COPY_SRC;
	if (unlikely(herald_cursor_open(&to, dst, dst_off, len))) {
		herald_cursor_close(&from);
		return HERALD_COPY_DST;
	}
	herald_cursor_move(&to, &from, len);
	herald_cursor_close(&to);
	herald_cursor_close(&from);
	return HERALD_COPY_OK;
}

/* ------------------------------------------------------------------ atomics -- */

static enum herald_outcome do_atomic(u64 *va, int opcode, u64 operand, u64 swap, u64 *old)
{
	switch (opcode) {
	case HERALD_WR_ATOMIC_CMP_AND_SWP:
		*old = cmpxchg64(va, operand, swap);
		return HERALD_OK;
	case HERALD_WR_ATOMIC_FETCH_AND_ADD:
		*old = atomic64_fetch_add(operand, (atomic64_t *)va);
		return HERALD_OK;
	case HERALD_WR_ATOMIC_WRITE:
		/* After all that the requester had written before (A19.4.2). */
		smp_store_release(va, operand);
		*old = 0;
		return HERALD_OK;
	default:
		return HERALD_NAK_INV_REQ;
	}
}

enum herald_outcome herald_atomic(const struct herald_span *target, int opcode, u64 operand,
				  u64 swap, u64 *old)
{
	enum herald_outcome out = HERALD_NAK_INV_REQ;
	struct herald_cursor c __uninitialized;

	if (target->linear || !target->nsge || target->length != sizeof(u64) ||
	    !IS_ALIGNED(target->sge->addr, sizeof(u64)))
		return HERALD_NAK_INV_REQ;
	if (herald_cursor_open(&c, target, 0, sizeof(u64)))
		return HERALD_NAK_ACCESS;
	next_run(&c);
	/* A zero based address is aligned where its memory need not be. */
	if (c.run >= sizeof(u64) && IS_ALIGNED((uintptr_t)c.va, sizeof(u64)))
		out = do_atomic((u64 *)c.va, opcode, operand, swap, old);
	herald_cursor_close(&c);
	return out;
}

/* -------------------------------------------------------------------- flush -- */

/* The whole of what a key opens.  0 or -EACCES. */
static int key_extent(struct herald_dev *dev, u32 key, u64 *addr, u64 *len)
{
	struct herald_key *entry;
	struct herald_mem *mem;
	struct herald_mr *mr;
	int ret = -EACCES;

	rcu_read_lock();
	entry = herald_key_find(dev, key >> 8);
	mr = herald_key_region(entry);
	mem = mr ? herald_mr_get_mem(mr, key) : NULL;
	if (mem) {
		*addr = mem->iova;
		*len = mem->length;
		herald_mem_put(mem);
		ret = 0;
	} else if (entry && !mr) {
		ret = herald_window_extent(herald_key_window(entry), key, addr, len);
	}
	rcu_read_unlock();
	if (ret)
		herald_count(dev, HERALD_CTR_bad_key);
	return ret;
}

static void write_back(const struct herald_hold *hold, u64 addr, u64 len)
{
	u64 off = addr + hold->bias, run;
	void *va;

	/* Regions of ordinary memory cannot have been given this right. */
	while (len) {
		va = herald_mem_run(hold->mem, off, &run);
		run = min(run, len);
		arch_wb_cache_pmem(va, run);
		off += run;
		len -= run;
	}
	/* Persistent once the stores above are ordered (pmem_wmb in drivers of it). */
	pmem_wmb();
}

enum herald_outcome herald_flush(const struct herald_span *target, u32 placement, u32 selectivity)
{
	struct herald_span span = *target;
	struct herald_hold hold;
	u64 addr, len;

	if (span.linear || span.nsge != 1 || !placement ||
	    placement & ~(IB_FLUSH_GLOBAL | IB_FLUSH_PERSISTENT))
		return HERALD_NAK_INV_REQ;
	span.access = (placement & IB_FLUSH_GLOBAL ? IB_ACCESS_FLUSH_GLOBAL : 0) |
		      (placement & IB_FLUSH_PERSISTENT ? IB_ACCESS_FLUSH_PERSISTENT : 0);
	addr = span.sge->addr;
	len = span.sge->length;
	if (selectivity == IB_FLUSH_MR) {
		if (key_extent(span.qp->dev, span.sge->lkey, &addr, &len))
			return HERALD_NAK_ACCESS;
	} else if (selectivity != IB_FLUSH_RANGE) {
		return HERALD_NAK_INV_REQ;
	}
	if (!len)
		return HERALD_OK;
	if (hold_key(&span, span.sge->lkey, addr, len, &hold))
		return HERALD_NAK_ACCESS;
	if (placement & IB_FLUSH_PERSISTENT)
		write_back(&hold, addr, len);
	/* What is in the host's memory is visible to all its CPUs. */
	smp_mb();
	unhold(&hold);
	return HERALD_OK;
}
