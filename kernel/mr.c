// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/* Memory regions of processes, and the kernel's own memory. */
#include <linux/overflow.h>
#include <linux/slab.h>
#include <rdma/ib_umem.h>
#include <rdma/uverbs_ioctl.h>

#include "device.h"
#include "mr.h"
#include "udata.h"

#define HERALD_MR_ACCESS						\
	(IB_ACCESS_LOCAL_WRITE | IB_ACCESS_REMOTE_WRITE |		\
	 IB_ACCESS_REMOTE_READ | IB_ACCESS_REMOTE_ATOMIC |		\
	 IB_ACCESS_MW_BIND | IB_ZERO_BASED | IB_ACCESS_FLUSH_GLOBAL |	\
	 IB_ACCESS_FLUSH_PERSISTENT)

/* ----------------------------------------------------------- life and death -- */

struct herald_mr *herald_mr_new(struct ib_pd *pd)
{
	struct herald_dev *dev = to_hdev(pd->device);
	struct herald_mr *mr;
	u32 key;
	int ret;

	ret = herald_object_count(dev, &dev->num_mr, HERALD_MAX_MR);
	if (ret)
		return ERR_PTR(ret);
	ret = -ENOMEM;
	mr = kzalloc(sizeof(*mr), GFP_KERNEL_ACCOUNT);
	if (!mr)
		goto err_count;
	mr->dev = dev;
	mr->ib.device = pd->device;
	mr->ib.pd = pd;
	spin_lock_init(&mr->lock);
	mr->key.kind = HERALD_KEY_REGION;
	ret = herald_key_alloc(dev, &mr->key, &key);
	if (ret)
		goto err_free;
	mr->ib.lkey = key;
	mr->ib.rkey = key;
	mr->last_key = key;
	return mr;

err_free:
	kfree(mr);
err_count:
	atomic_dec(&dev->num_mr);
	return ERR_PTR(ret);
}

/* Its memory is not published, and no copy uses it. */
void herald_mr_delete(struct herald_mr *mr)
{
	herald_key_free(mr->dev, &mr->key);
	atomic_dec(&mr->dev->num_mr);
	if (mr->umem)
		ib_umem_release(mr->umem);
	herald_mem_free(mr->frs[0]);
	herald_mem_free(mr->frs[1]);
	kfree_rcu(mr, rcu);
}

int herald_dereg_mr(struct ib_mr *ibmr, struct ib_udata *udata)
{
	struct herald_mr *mr = to_hmr(ibmr);
	struct herald_mem *mem;
	unsigned long flags;

	spin_lock_irqsave(&mr->lock, flags);
	if (mr->windows) {
		spin_unlock_irqrestore(&mr->lock, flags);
		return -EBUSY;
	}
	mem = rcu_replace_pointer(mr->mem, NULL, lockdep_is_held(&mr->lock));
	spin_unlock_irqrestore(&mr->lock, flags);

	if (mem) {
		herald_mem_put(mem);
		herald_mem_wait_idle(mem);
	}
	if (mr->frs[0]) {
		/* A copy may still use a table that was invalidated just now. */
		herald_mem_wait_idle(mr->frs[0]);
		herald_mem_wait_idle(mr->frs[1]);
	} else {
		herald_mem_free(mem);
	}
	herald_mr_delete(mr);
	return 0;
}

struct ib_mr *herald_get_dma_mr(struct ib_pd *pd, int access)
{
	struct herald_mem *mem;
	struct herald_mr *mr;

	mr = herald_mr_new(pd);
	if (IS_ERR(mr))
		return ERR_CAST(mr);
	mem = herald_mem_alloc(0);
	if (!mem) {
		herald_mr_delete(mr);
		return ERR_PTR(-ENOMEM);
	}
	mem->identity = true;
	mem->length = U64_MAX;
	mem->access = access;
	mem->key = mr->ib.lkey;
	mem->pd = pd;
	mem->mr = mr;
	refcount_set(&mem->refs, 1);
	rcu_assign_pointer(mr->mem, mem);
	return &mr->ib;
}

/* ------------------------------------------------------------- registration -- */

/* The access flags that count; the optional ones that herald has no use for are dropped. */
static int check_access(struct ib_device *ibdev, int *access)
{
	int wanted = *access & ~IB_ACCESS_OPTIONAL;
	int ret;

	ret = ib_check_mr_access(ibdev, wanted);
	if (ret)
		return ret;
	if (wanted & ~HERALD_MR_ACCESS)
		return -EOPNOTSUPP;
	*access = wanted;
	return 0;
}

static int check_range(u64 start, u64 length, u64 virt_addr)
{
	u64 end;

	if (!length || length > SIZE_MAX || check_add_overflow(start, length, &end) ||
	    check_add_overflow(virt_addr, length - 1, &end))
		return -EINVAL;
	/* The core has checked this for processes. */
	return offset_in_page(start) == offset_in_page(virt_addr) ? 0 : -EINVAL;
}

/* What a process's region is to become. */
struct registration {
	u64 start;
	u64 length;
	u64 virt_addr;
	int access;
	struct ib_pd *pd;
	struct ib_umem *umem;
	bool fresh;		/* umem was pinned for this; else it is the region's already */
};

static int pin(struct ib_device *ibdev, struct registration *r)
{
	struct ib_umem *umem = ib_umem_get_va(ibdev, r->start, r->length, r->access);

	if (IS_ERR(umem))
		return PTR_ERR(umem);
	r->umem = umem;
	r->fresh = true;
	return 0;
}

static void unpin(struct registration *r)
{
	if (r->fresh)
		ib_umem_release(r->umem);
}

/* The table of @r, or an ERR_PTR; @old has the ranges already, if the umem is not fresh. */
static struct herald_mem *build(struct herald_mr *mr, const struct registration *r,
				const struct herald_mem *old)
{
	struct herald_mem *mem;

	if ((r->access & IB_ACCESS_FLUSH_PERSISTENT) && !herald_umem_is_persistent(r->umem))
		return ERR_PTR(-EINVAL);
	mem = r->fresh ? herald_mem_from_umem(r->umem) : herald_mem_dup(old);
	if (IS_ERR_OR_NULL(mem))
		return mem ?: ERR_PTR(-ENOMEM);
	mem->key = mr->ib.lkey;
	mem->access = r->access;
	mem->pd = r->pd;
	mem->iova = r->access & IB_ZERO_BASED ? 0 : r->virt_addr;
	mem->mr = mr;
	refcount_set(&mem->refs, 1);
	return mem;
}

struct ib_mr *herald_reg_user_mr(struct ib_pd *pd, u64 start, u64 length, u64 virt_addr,
				 int access, struct ib_udata *udata)
{
	struct registration r = {
		.start = start, .length = length, .virt_addr = virt_addr,
		.access = access, .pd = pd,
	};
	struct herald_mem *mem;
	struct herald_mr *mr;
	int ret;

	ret = herald_fault_verb(&to_hdev(pd->device)->faults, HERALD_FAULT_REG_MR) ?:
	      herald_udata_zero(udata) ?: check_access(pd->device, &r.access) ?:
	      check_range(start, length, virt_addr);
	if (ret)
		return ERR_PTR(ret);
	mr = herald_mr_new(pd);
	if (IS_ERR(mr))
		return ERR_CAST(mr);
	ret = pin(pd->device, &r);
	if (ret)
		goto err_delete;
	mr->umem = r.umem;
	mr->virt_addr = virt_addr;
	mem = build(mr, &r, NULL);
	if (IS_ERR(mem)) {
		ret = PTR_ERR(mem);
		goto err_delete;
	}
	rcu_assign_pointer(mr->mem, mem);
	return &mr->ib;

err_delete:
	herald_mr_delete(mr);
	return ERR_PTR(ret);
}

/* ----------------------------------------------------------- reregistration -- */

/* Put @mem in the place of the present table, unless windows stand on that. */
static int replace(struct herald_mr *mr, struct herald_mem *mem)
{
	struct herald_mem *old;
	unsigned long flags;

	spin_lock_irqsave(&mr->lock, flags);
	if (mr->windows) {
		spin_unlock_irqrestore(&mr->lock, flags);
		return -EBUSY;
	}
	old = rcu_replace_pointer(mr->mem, mem, lockdep_is_held(&mr->lock));
	spin_unlock_irqrestore(&mr->lock, flags);
	herald_mem_put(old);
	herald_mem_wait_idle(old);
	herald_mem_free(old);
	return 0;
}

/* What the region would be after @flags; its memory is pinned again only if it must be. */
static int plan(struct herald_mr *mr, const struct herald_mem *old, int flags,
		struct registration *r)
{
	int ret;

	if (!(flags & IB_MR_REREG_ACCESS))
		r->access = old->access;
	ret = check_access(&mr->dev->ib, &r->access);
	if (ret)
		return ret;
	if (!(flags & IB_MR_REREG_PD))
		r->pd = old->pd;
	if (flags & IB_MR_REREG_TRANS) {
		ret = check_range(r->start, r->length, r->virt_addr);
		return ret ?: pin(&mr->dev->ib, r);
	}
	r->start = mr->umem->address;
	r->length = mr->umem->length;
	r->virt_addr = mr->virt_addr;
	r->umem = mr->umem;
	if (!ib_access_writable(r->access) || mr->umem->writable)
		return 0;
	/* Pinned for reading only: the pages behind it may have to become others. */
	if (mr->umem->owning_mm != current->mm)
		return -EACCES;
	return pin(&mr->dev->ib, r);
}

struct ib_mr *herald_rereg_user_mr(struct ib_mr *ibmr, int flags, u64 start, u64 length,
				   u64 virt_addr, int access, struct ib_pd *pd,
				   struct ib_udata *udata)
{
	struct registration r = {
		.start = start, .length = length, .virt_addr = virt_addr,
		.access = access, .pd = pd,
	};
	struct herald_mr *mr = to_hmr(ibmr);
	struct herald_mem *old, *mem;
	int ret;

	if (flags & ~IB_MR_REREG_SUPPORTED)
		return ERR_PTR(-EOPNOTSUPP);
	if (!mr->umem)
		return ERR_PTR(-EINVAL);
	ret = herald_udata_zero(udata) ?: herald_dev_check(mr->dev);
	if (ret)
		return ERR_PTR(ret);
	/* Nobody else changes a process's region: the core locks the object. */
	old = rcu_dereference_protected(mr->mem, true);
	ret = plan(mr, old, flags, &r);
	if (ret)
		return ERR_PTR(ret);
	mem = build(mr, &r, old);
	if (IS_ERR(mem)) {
		unpin(&r);
		return ERR_CAST(mem);
	}
	ret = replace(mr, mem);
	if (ret) {
		herald_mem_free(mem);
		unpin(&r);
		return ERR_PTR(ret);
	}
	if (r.fresh) {
		ib_umem_release(mr->umem);
		mr->umem = r.umem;
	}
	mr->virt_addr = r.virt_addr;
	return NULL;
}
