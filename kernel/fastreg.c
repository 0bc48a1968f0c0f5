// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/*
 * Fast registration: a kernel consumer fills a region's table (map_mr_sg),
 * makes it valid by a work request (REG_MR), and invalid by another
 * (LOCAL_INV) or by its peer's (SEND_WITH_INV).
 *
 * A region has two tables.  A consumer may map while the last registration is
 * still to be invalidated, and a copy may still use that for one piece after it
 * was: whichever of the two nobody looks at is filled.
 */
#include <linux/log2.h>

#include "device.h"
#include "mr.h"
#include "qp.h"

#define HERALD_FR_ACCESS						\
	(IB_ACCESS_LOCAL_WRITE | IB_ACCESS_REMOTE_WRITE |		\
	 IB_ACCESS_REMOTE_READ | IB_ACCESS_REMOTE_ATOMIC |		\
	 IB_ACCESS_FLUSH_GLOBAL)

#define HERALD_REMOTE_ACCESS						\
	(IB_ACCESS_REMOTE_WRITE | IB_ACCESS_REMOTE_READ | IB_ACCESS_REMOTE_ATOMIC)

struct ib_mr *herald_alloc_mr(struct ib_pd *pd, enum ib_mr_type type, u32 max_num_sg)
{
	struct herald_mr *mr;

	if (type != IB_MR_TYPE_MEM_REG)
		return ERR_PTR(-EOPNOTSUPP);
	if (!max_num_sg || max_num_sg > HERALD_MAX_FAST_REG)
		return ERR_PTR(-EINVAL);
	mr = herald_mr_new(pd);
	if (IS_ERR(mr))
		return ERR_CAST(mr);
	mr->max_pages = max_num_sg;
	mr->frs[0] = herald_mem_alloc(max_num_sg);
	mr->frs[1] = herald_mem_alloc(max_num_sg);
	if (!mr->frs[0] || !mr->frs[1]) {
		herald_mr_delete(mr);
		return ERR_PTR(-ENOMEM);
	}
	return &mr->ib;
}

static int add_page(struct ib_mr *ibmr, u64 addr)
{
	struct herald_mr *mr = to_hmr(ibmr);

	if (!mr->pages_left)
		return -ENOMEM;
	mr->pages_left--;
	/* Virtual DMA: the address is the kernel's. */
	return herald_mem_add(mr->filling, (void *)(uintptr_t)addr, ibmr->page_size);
}

/* The list counts whole pages; the region begins and ends inside the outer ones. */
static void trim(struct herald_mem *mem, u64 skip, u64 length)
{
	u32 i;

	mem->length = length;
	if (!mem->nranges)
		return;
	mem->ranges[0].va += skip;
	for (i = 1; i < mem->nranges; i++)
		mem->ranges[i].start -= skip;
	while (mem->nranges > 1 && mem->ranges[mem->nranges - 1].start >= length)
		mem->nranges--;
}

/* A table that may be written; rather not the one that waits to be registered. */
static struct herald_mem *spare(const struct herald_mr *mr)
{
	int first = mr->frs[0] == mr->mapped;

	if (herald_mem_idle(mr->frs[first]))
		return mr->frs[first];
	return herald_mem_idle(mr->frs[!first]) ? mr->frs[!first] : NULL;
}

int herald_map_mr_sg(struct ib_mr *ibmr, struct scatterlist *sg, int nents, unsigned int *offset)
{
	struct herald_mr *mr = to_hmr(ibmr);
	struct herald_mem *mem;
	int ret;

	if (!mr->frs[0] || !is_power_of_2(ibmr->page_size))
		return -EINVAL;
	mem = spare(mr);
	if (!mem)
		return -EBUSY;
	herald_mem_clear(mem);
	mr->filling = mem;
	mr->pages_left = mr->max_pages;
	ret = ib_sg_to_pages(ibmr, sg, nents, offset, add_page);
	if (ret < 0) {
		mr->mapped = NULL;
		return ret;
	}
	trim(mem, ibmr->iova & (ibmr->page_size - 1), ibmr->length);
	mr->mapped = mem;
	return ret;
}

static bool may_register(struct herald_mr *mr, const struct herald_qp *qp, u32 key, u32 access)
{
	struct herald_mem *mem = mr->mapped;

	if (!mem || mr->ib.pd != qp->ib.pd || key >> 8 != mr->key.index ||
	    access & ~HERALD_FR_ACCESS)
		return false;
	if (access & (IB_ACCESS_REMOTE_WRITE | IB_ACCESS_REMOTE_ATOMIC) &&
	    !(access & IB_ACCESS_LOCAL_WRITE))
		return false;
	return !rcu_access_pointer(mr->mem) && herald_mem_idle(mem);
}

enum herald_outcome herald_mr_register(struct herald_qp *qp, const struct herald_op *op)
{
	u32 access = op->u.reg.access & ~IB_ACCESS_OPTIONAL;
	struct herald_mr *mr = (struct herald_mr *)(uintptr_t)op->u.reg.mr;
	u32 key = op->u.reg.key;
	struct herald_mem *mem;
	unsigned long flags;
	bool ok;

	/* The consumer keeps the region until the WR has completed. */
	if (qp->user || !mr)
		return HERALD_LOC_QP_OP;
	spin_lock_irqsave(&mr->lock, flags);
	ok = mr->dev == qp->dev && may_register(mr, qp, key, access);
	if (ok) {
		mem = mr->mapped;
		mem->key = key;
		mem->access = access;
		mem->pd = qp->ib.pd;
		/* Consumers may move the region's address after they mapped it. */
		mem->iova = mr->ib.iova;
		mem->mr = mr;
		mr->last_key = key;
		/* Pairs with herald_mr_get_mem(): a late reader may hold the pointer. */
		smp_wmb();
		refcount_set(&mem->refs, 1);
		rcu_assign_pointer(mr->mem, mem);
	}
	spin_unlock_irqrestore(&mr->lock, flags);
	if (ok)
		return HERALD_OK;
	herald_count(qp->dev, HERALD_CTR_bad_key);
	return HERALD_LOC_MW_BIND;
}

bool herald_mr_invalidate(struct herald_mr *mr, const struct herald_qp *qp, u32 key, bool remote)
{
	struct herald_mem *mem;
	unsigned long flags;
	bool ok;

	spin_lock_irqsave(&mr->lock, flags);
	mem = rcu_dereference_protected(mr->mem, lockdep_is_held(&mr->lock));
	if (!mr->frs[0] || mr->ib.pd != qp->ib.pd || mr->last_key != key)
		ok = false;
	else if (!mem)
		ok = !remote;
	else
		ok = !remote || mem->access & HERALD_REMOTE_ACCESS;
	if (ok)
		RCU_INIT_POINTER(mr->mem, NULL);
	spin_unlock_irqrestore(&mr->lock, flags);
	if (ok && mem)
		herald_mem_put(mem);
	return ok;
}

static bool invalidate(struct herald_qp *qp, u32 key, bool remote)
{
	struct herald_window *win;
	struct herald_key *entry;
	struct herald_mr *mr;
	bool ok = false;

	rcu_read_lock();
	entry = herald_key_find(qp->dev, key >> 8);
	mr = herald_key_region(entry);
	win = herald_key_window(entry);
	if (mr)
		ok = herald_mr_invalidate(mr, qp, key, remote);
	else if (win)
		ok = herald_window_invalidate(win, qp, key);
	rcu_read_unlock();
	if (!ok)
		herald_count(qp->dev, HERALD_CTR_bad_key);
	return ok;
}

enum herald_outcome herald_key_invalidate_local(struct herald_qp *qp, u32 key)
{
	return invalidate(qp, key, false) ? HERALD_OK : HERALD_LOC_MW_BIND;
}

enum herald_outcome herald_key_invalidate_remote(struct herald_qp *qp, u32 key)
{
	return invalidate(qp, key, true) ? HERALD_OK : HERALD_NAK_INV_INVALIDATE;
}

/* Are the tables that are not published unused? */
static bool mr_quiet(struct herald_mr *mr)
{
	struct herald_mem *mem = rcu_access_pointer(mr->mem);
	int i;

	for (i = 0; i < 2; i++)
		if (mr->frs[i] && mr->frs[i] != mem && !herald_mem_idle(mr->frs[i]))
			return false;
	return true;
}

bool herald_key_quiet(struct herald_qp *qp, u32 key)
{
	struct herald_window *win;
	struct herald_key *entry;
	struct herald_mr *mr;
	bool quiet = true;

	rcu_read_lock();
	entry = herald_key_find(qp->dev, key >> 8);
	mr = herald_key_region(entry);
	win = herald_key_window(entry);
	if (mr)
		quiet = mr_quiet(mr);
	else if (win)
		quiet = refcount_read(&win->refs) <= 1;
	rcu_read_unlock();
	/* What the copies wrote is there before the caller says so. */
	smp_mb();
	return quiet;
}
