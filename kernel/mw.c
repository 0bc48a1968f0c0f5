// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/* Memory windows, types 1 and 2B. */
#include <linux/hashtable.h>
#include <linux/slab.h>
#include <rdma/uverbs_ioctl.h>

#include "device.h"
#include "mr.h"
#include "qp.h"
#include "udata.h"

#define HERALD_MW_FLUSH	(IB_ACCESS_FLUSH_GLOBAL | IB_ACCESS_FLUSH_PERSISTENT)

/* Consumers are used to give local write access along; it opens nothing to a peer. */
#define HERALD_MW_ACCESS						\
	(IB_ACCESS_LOCAL_WRITE | IB_ACCESS_REMOTE_WRITE | IB_ACCESS_REMOTE_READ |		\
	 IB_ACCESS_REMOTE_ATOMIC | IB_ZERO_BASED | HERALD_MW_FLUSH)

/* The type 2 windows that are bound, by QP, so that a QP's end finds its own. */
static DEFINE_HASHTABLE(bound_windows, 8);
static DEFINE_SPINLOCK(bound_lock);	/* irq-safe; inside herald_window.lock; a leaf */

/* ------------------------------------------------------------------ binding -- */

/* Close it.  Context: any; @win->lock held. */
static void unbind(struct herald_window *win)
{
	struct herald_mr *mr;

	lockdep_assert_held(&win->lock);
	if (!win->mem)
		return;
	mr = win->mem->mr;
	if (win->qp) {
		spin_lock(&bound_lock);
		hash_del(&win->node);
		win->qp = NULL;
		spin_unlock(&bound_lock);
	}
	win->mem = NULL;
	spin_lock(&mr->lock);
	mr->windows--;
	spin_unlock(&mr->lock);
}

/* Count a window on @mem's region, unless that has just become another one. */
static bool pin_mem(struct herald_mem *mem)
{
	struct herald_mr *mr = mem->mr;
	bool ok;

	spin_lock(&mr->lock);
	ok = rcu_access_pointer(mr->mem) == mem;
	if (ok)
		mr->windows++;
	spin_unlock(&mr->lock);
	return ok;
}

/* May @win, of this type and in this state, be bound by @qp at all? */
static bool may_bind(const struct herald_window *win, const struct herald_qp *qp,
		     const struct herald_send_wqe *wqe)
{
	if (win->dead || win->rkey != wqe->bind.mw_rkey || win->pd != qp->ib.pd ||
	    wqe->bind.new_rkey >> 8 != win->key.index)
		return false;
	/* o10-36.2.2: a type 1 window is never zero based. */
	if (win->type == IB_MW_TYPE_1)
		return !(wqe->bind.access & IB_ZERO_BASED);
	/* o10-37.2.30, o10-37.2.40: a type 2 window must be free; length 0 does not free it. */
	return !win->mem && wqe->bind.length;
}

/* C10-73, C10-74, C10-75: does the region allow it? */
static bool mem_allows(const struct herald_mem *mem, const struct herald_qp *qp,
		       const struct herald_send_wqe *wqe)
{
	u32 access = wqe->bind.access;

	if (!mem->mr->umem || mem->pd != qp->ib.pd || !(mem->access & IB_ACCESS_MW_BIND))
		return false;
	if (access & (IB_ACCESS_REMOTE_WRITE | IB_ACCESS_REMOTE_ATOMIC) &&
	    !(mem->access & IB_ACCESS_LOCAL_WRITE))
		return false;
	if (access & HERALD_MW_FLUSH & ~mem->access)
		return false;
	return herald_range_inside(wqe->bind.addr, wqe->bind.length, mem->iova, mem->length);
}

/* Give @win its new key and @mem (NULL: nothing).  Context: any; @win->lock held. */
static bool bind(struct herald_window *win, struct herald_qp *qp,
		 const struct herald_send_wqe *wqe, struct herald_mem *mem)
{
	if (!may_bind(win, qp, wqe) || (mem && !pin_mem(mem)))
		return false;
	unbind(win);
	win->rkey = wqe->bind.new_rkey;
	win->access = wqe->bind.access;
	win->addr = wqe->bind.addr;
	win->length = wqe->bind.length;
	win->base = wqe->bind.access & IB_ZERO_BASED ? 0 : win->addr;
	win->mem = mem;
	if (win->type == IB_MW_TYPE_2) {
		spin_lock(&bound_lock);
		win->qp = qp;
		hash_add(bound_windows, &win->node, (uintptr_t)qp);
		spin_unlock(&bound_lock);
	}
	return true;
}

static bool try_bind(struct herald_qp *qp, const struct herald_send_wqe *wqe)
{
	struct herald_window *win;
	struct herald_mem *mem = NULL;
	struct herald_mr *mr;
	unsigned long flags;
	bool ok = false;

	rcu_read_lock();
	win = herald_key_window(herald_key_find(qp->dev, wqe->bind.mw_rkey >> 8));
	if (!win)
		goto out;
	if (wqe->bind.length) {
		mr = herald_key_region(herald_key_find(qp->dev, wqe->bind.mr_lkey >> 8));
		mem = mr ? herald_mr_get_mem(mr, wqe->bind.mr_lkey) : NULL;
		if (!mem || !mem_allows(mem, qp, wqe))
			goto out;
	}
	spin_lock_irqsave(&win->lock, flags);
	ok = bind(win, qp, wqe, mem);
	spin_unlock_irqrestore(&win->lock, flags);
out:
	if (mem)
		herald_mem_put(mem);
	rcu_read_unlock();
	return ok;
}

enum herald_outcome herald_mw_bind(struct herald_qp *qp, const struct herald_op *op)
{
	if (qp->type != IB_QPT_RC && qp->type != IB_QPT_UC)
		return HERALD_LOC_QP_OP;
	if (!(op->u.bind.access & ~HERALD_MW_ACCESS) && try_bind(qp, &op->u))
		return HERALD_OK;
	herald_count(qp->dev, HERALD_CTR_bad_key);
	return HERALD_LOC_MW_BIND;
}

/* ------------------------------------------------------------------ closing -- */

bool herald_window_invalidate(struct herald_window *win, const struct herald_qp *qp, u32 key)
{
	unsigned long flags;
	bool ok;

	/* o10-37.2.26: a type 1 window is not invalidated but bound to nothing. */
	spin_lock_irqsave(&win->lock, flags);
	ok = win->type == IB_MW_TYPE_2 && win->rkey == key && win->mem && win->qp == qp;
	if (ok)
		unbind(win);
	spin_unlock_irqrestore(&win->lock, flags);
	return ok;
}

/* A window that is bound to @qp, with a reference, or NULL. */
static struct herald_window *find_bound(const struct herald_qp *qp)
{
	struct herald_window *win, *found = NULL;
	unsigned long flags;

	spin_lock_irqsave(&bound_lock, flags);
	hash_for_each_possible(bound_windows, win, node, (uintptr_t)qp) {
		/* It is unbound before it goes, so that it is still there. */
		if (win->qp == qp) {
			refcount_inc(&win->refs);
			found = win;
			break;
		}
	}
	spin_unlock_irqrestore(&bound_lock, flags);
	return found;
}

void herald_mw_forget_qp(struct herald_qp *qp)
{
	struct herald_window *win;
	unsigned long flags;

	while ((win = find_bound(qp))) {
		spin_lock_irqsave(&win->lock, flags);
		if (win->qp == qp)
			unbind(win);
		spin_unlock_irqrestore(&win->lock, flags);
		herald_window_put(win);
	}
}

/* ------------------------------------------------------------------- access -- */

int herald_window_hold(struct herald_window *win, const struct herald_qp *qp, u32 key, u64 addr,
		       u64 len, int access, struct herald_hold *hold)
{
	unsigned long flags;
	bool ok;

	spin_lock_irqsave(&win->lock, flags);
	ok = win->mem && win->rkey == key && win->pd == qp->ib.pd &&
	     (win->type == IB_MW_TYPE_1 || win->qp == qp) &&
	     (win->access & access) == access &&
	     herald_range_inside(addr, len, win->base, win->length);
	if (ok) {
		/* Published for as long as the window is bound to it. */
		refcount_inc(&win->mem->refs);
		refcount_inc(&win->refs);
		*hold = (struct herald_hold){
			.mem = win->mem, .win = win,
			.bias = win->addr - win->base - win->mem->iova,
		};
	}
	spin_unlock_irqrestore(&win->lock, flags);
	return ok ? 0 : -EACCES;
}

int herald_window_extent(struct herald_window *win, u32 key, u64 *addr, u64 *len)
{
	unsigned long flags;
	bool ok;

	spin_lock_irqsave(&win->lock, flags);
	ok = win->mem && win->rkey == key;
	*addr = win->base;
	*len = win->length;
	spin_unlock_irqrestore(&win->lock, flags);
	return ok ? 0 : -EACCES;
}

void herald_window_put(struct herald_window *win)
{
	if (refcount_dec_and_test(&win->refs)) {
		/* As in herald_mem_put(). */
		smp_mb__after_atomic();
		/* The address is only hashed: @win may be gone already. */
		wake_up_var(&win->refs);
	}
}

/* --------------------------------------------------------- allocation, freeing -- */

static struct herald_window *new_window(struct herald_dev *dev, const struct ib_mw *ibmw, u32 *key)
{
	struct herald_window *win;

	win = kzalloc_obj(*win, GFP_KERNEL_ACCOUNT);
	if (!win)
		return NULL;
	win->key.kind = HERALD_KEY_WINDOW;
	win->type = ibmw->type;
	win->dev = dev;
	win->pd = ibmw->pd;
	refcount_set(&win->refs, 1);
	spin_lock_init(&win->lock);
	if (herald_key_alloc(dev, &win->key, key)) {
		kfree(win);
		return NULL;
	}
	spin_lock_irq(&win->lock);
	win->rkey = *key;
	spin_unlock_irq(&win->lock);
	return win;
}

int herald_alloc_mw(struct ib_mw *ibmw, struct ib_udata *udata)
{
	struct herald_dev *dev = to_hdev(ibmw->device);
	struct herald_mw *mw = to_hmw(ibmw);
	int ret = herald_udata_zero(udata);

	if (ret)
		return ret;
	ret = herald_object_count(dev, &dev->num_mw, HERALD_MAX_MW);
	if (ret)
		return ret;
	mw->win = new_window(dev, ibmw, &ibmw->rkey);
	if (!mw->win) {
		atomic_dec(&dev->num_mw);
		return -ENOMEM;
	}
	return 0;
}

int herald_dealloc_mw(struct ib_mw *ibmw)
{
	struct herald_window *win = to_hmw(ibmw)->win;

	herald_key_free(win->dev, &win->key);
	spin_lock_irq(&win->lock);
	win->dead = true;
	unbind(win);
	spin_unlock_irq(&win->lock);
	herald_window_put(win);
	wait_var_event(&win->refs, !refcount_read(&win->refs));
	atomic_dec(&win->dev->num_mw);
	kfree_rcu(win, rcu);
	return 0;
}
