// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/*
 * Shared memory and the rings in it.
 *
 * A process's mapping holds its own references to the pages, so the kernel can
 * drop its mapping and its references whenever the object goes: the process
 * keeps memory that nobody else looks at.  Nothing has to be revoked when the
 * device is removed.
 */
#include <linux/log2.h>
#include <linux/mm.h>
#include <linux/overflow.h>
#include <linux/sched/signal.h>
#include <linux/slab.h>
#include <linux/vmalloc.h>
#include <rdma/ib_verbs.h>

#include "ring.h"

static void herald_shm_release(struct herald_shm *shm)
{
	unsigned int i;

	if (shm->va)
		vunmap(shm->va);
	for (i = 0; i < shm->npages; i++)
		if (shm->pages[i])
			put_page(shm->pages[i]);
	kvfree(shm);
}

static int herald_shm_fill(struct herald_shm *shm)
{
	unsigned int i;

	for (i = 0; i < shm->npages; i++) {
		/* GFP_KERNEL_ACCOUNT: a process pays for its rings itself */
		shm->pages[i] = alloc_page(GFP_KERNEL_ACCOUNT | __GFP_ZERO);
		if (!shm->pages[i] || fatal_signal_pending(current))
			return -ENOMEM;
		cond_resched();
	}
	shm->va = vmap(shm->pages, shm->npages, VM_MAP, PAGE_KERNEL);
	return shm->va ? 0 : -ENOMEM;
}

struct herald_shm *herald_shm_alloc(struct ib_ucontext *uctx, size_t size)
{
	size_t npages = DIV_ROUND_UP(size, PAGE_SIZE);
	struct herald_shm *shm;

	if (!npages || npages > INT_MAX)
		return ERR_PTR(-ENOMEM);
	shm = kvzalloc(struct_size(shm, pages, npages), GFP_KERNEL_ACCOUNT);
	if (!shm)
		return ERR_PTR(-ENOMEM);
	shm->npages = npages;
	if (herald_shm_fill(shm))
		goto release;
	if (uctx && rdma_user_mmap_entry_insert(uctx, &shm->entry, npages << PAGE_SHIFT))
		goto release;
	shm->user = uctx;
	return shm;

release:
	herald_shm_release(shm);
	return ERR_PTR(-ENOMEM);
}

void herald_shm_free(struct herald_shm *shm)
{
	if (!shm)
		return;
	if (shm->user)
		rdma_user_mmap_entry_remove(&shm->entry);
	else
		herald_shm_release(shm);
}

int herald_mmap(struct ib_ucontext *uctx, struct vm_area_struct *vma)
{
	struct rdma_user_mmap_entry *entry;
	struct herald_shm *shm;
	int err;

	/* NULL if the mapping is private or its length is not exactly the entry's. */
	entry = rdma_user_mmap_entry_get(uctx, vma);
	if (!entry)
		return -EINVAL;
	shm = container_of(entry, struct herald_shm, entry);

	/* After fork, two processes would be one producer. */
	vm_flags_set(vma, VM_DONTCOPY | VM_DONTEXPAND);
	err = vm_map_pages_zero(vma, shm->pages, shm->npages);
	rdma_user_mmap_entry_put(entry);
	return err;
}

void herald_mmap_free(struct rdma_user_mmap_entry *entry)
{
	herald_shm_release(container_of(entry, struct herald_shm, entry));
}

void herald_shm_info(const struct herald_shm *shm, u32 depth, u32 stride,
		     struct herald_ring_info *info)
{
	info->mmap_offset = rdma_user_mmap_get_offset(&shm->entry);
	info->mmap_length = (u64)shm->npages << PAGE_SHIFT;
	info->depth = depth;
	info->stride = stride;
}

int herald_ring_init(struct herald_ring *ring, struct ib_ucontext *uctx, u32 min_depth, u32 stride)
{
	u32 depth = roundup_pow_of_two(max(min_depth, 1u));
	struct herald_shm *shm;

	shm = herald_shm_alloc(uctx, size_add(HERALD_RING_DATA_OFFSET, size_mul(depth, stride)));
	if (IS_ERR(shm))
		return PTR_ERR(shm);
	*ring = (struct herald_ring) {
		.shm = shm,
		.ctl = shm->va,
		.slots = shm->va + HERALD_RING_DATA_OFFSET,
		.depth = depth,
		.stride = stride,
		.user = shm->user,
	};
	return 0;
}

/* A process that still posts after the device was taken from it has to be told by its doorbell. */
void herald_ring_destroy(struct herald_ring *ring)
{
	if (ring->user) {
		WRITE_ONCE(ring->ctl->ask, 0);
		WRITE_ONCE(ring->ctl->flags, HERALD_RING_DEAD | HERALD_RING_NEED_DOORBELL);
	}
	herald_shm_free(ring->shm);
	memset(ring, 0, sizeof(*ring));
}

void herald_ring_reset(struct herald_ring *ring)
{
	ring->head = 0;
	ring->tail = 0;
	WRITE_ONCE(ring->ctl->producer, 0);
	WRITE_ONCE(ring->ctl->flags, 0);
	herald_ring_publish(ring, 0);
}
