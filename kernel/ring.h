/* SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB */
/*
 * Shared memory: pages that the kernel allocates and a process may map, and
 * the work queue rings inside them.  Kernel consumers use the same rings in
 * memory that is mapped nowhere.
 */
#ifndef HERALD_RING_H
#define HERALD_RING_H

#include <linux/mm_types.h>
#include <rdma/ib_verbs.h>
#include <rdma/herald-abi.h>

/**
 * struct herald_shm - zeroed pages, mapped contiguously in the kernel
 * @entry: what a process mmaps; only used if @user
 * @user: @entry was inserted into a ucontext
 * @npages: number of pages
 * @va: the kernel's mapping (vmap)
 * @pages: the pages; charged to the allocating task's cgroup
 */
struct herald_shm {
	struct rdma_user_mmap_entry entry;
	bool user;
	unsigned int npages;
	void *va;
	struct page *pages[] __counted_by(npages);
};

/**
 * herald_shm_alloc - allocate shared memory
 * @uctx: the process's context, or NULL for a kernel consumer
 * @size: bytes, rounded up to whole pages
 *
 * Return: the memory or an ERR_PTR (-ENOMEM).
 * Context: process, may sleep.
 */
struct herald_shm *herald_shm_alloc(struct ib_ucontext *uctx, size_t size);

/**
 * herald_shm_free - give up the kernel's use of it
 * @shm: the memory, NULL is fine
 *
 * The pages go when the last mapping of the process has gone too.  The caller
 * must have stopped everything that uses @shm->va.
 * Context: process, may sleep.
 */
void herald_shm_free(struct herald_shm *shm);

/* ib_device_ops.mmap and .mmap_free.  Mappings are VM_DONTCOPY and VM_DONTEXPAND. */
int herald_mmap(struct ib_ucontext *uctx, struct vm_area_struct *vma);
void herald_mmap_free(struct rdma_user_mmap_entry *entry);

/* Fill the udata answer for shared memory with slots in it. */
void herald_shm_info(const struct herald_shm *shm, u32 depth, u32 stride,
		     struct herald_ring_info *info);

/**
 * struct herald_ring - a work queue of which herald is the consumer
 * @shm: its memory
 * @ctl: the control block at the start of it
 * @slots: the first slot
 * @depth: slots, a power of two
 * @stride: bytes per slot
 * @head: private consumer index: the next slot to take
 * @tail: private producer index (kernel consumers only)
 * @user: the producer is a process: nothing in it is to be trusted
 */
struct herald_ring {
	struct herald_shm *shm;
	struct herald_ring_ctl *ctl;
	void *slots;
	u32 depth;
	u32 stride;
	u32 head;
	u32 tail;
	bool user;
};

/**
 * herald_ring_init - allocate the memory of a ring
 * @ring: to be filled in
 * @uctx: the process's context, or NULL for a kernel consumer
 * @min_depth: slots wanted, rounded up to a power of two
 * @stride: bytes per slot
 *
 * Return: 0 or -ENOMEM.
 * Context: process, may sleep.
 */
int herald_ring_init(struct herald_ring *ring, struct ib_ucontext *uctx, u32 min_depth, u32 stride);
void herald_ring_destroy(struct herald_ring *ring);	/* idempotent */

/* Empty the ring (QP reset): all indices and flags to zero. */
void herald_ring_reset(struct herald_ring *ring);

static inline void *herald_ring_slot(const struct herald_ring *ring, u32 index)
{
	return ring->slots + (size_t)(index & (ring->depth - 1)) * ring->stride;
}

/**
 * herald_ring_pending - how many slots wait to be taken
 * @ring: the ring
 *
 * Reads the producer index once, with acquire.
 * Return: 0 to depth; -EINVAL if the producer index is impossible (a corrupt
 * or hostile ring).
 * Context: any; consumer only.
 */
static inline int herald_ring_pending(const struct herald_ring *ring)
{
	/* pairs with the poster's release: the slots before it are filled */
	u32 n = smp_load_acquire(&ring->ctl->producer) - ring->head;

	return likely(n <= ring->depth) ? (int)n : -EINVAL;
}

/* Publish that slots before @index are free.  Context: any; consumer only. */
static inline void herald_ring_publish(struct herald_ring *ring, u32 index)
{
	/* pairs with the poster's acquire: we no longer read these slots */
	smp_store_release(&ring->ctl->consumer, index);
}

/* A kernel consumer's side: room for one more? publish one more. */
static inline bool herald_ring_full(const struct herald_ring *ring)
{
	return ring->tail - READ_ONCE(ring->ctl->consumer) >= ring->depth;
}

static inline void herald_ring_push(struct herald_ring *ring)
{
	ring->tail++;
	/* pairs with herald_ring_pending() */
	smp_store_release(&ring->ctl->producer, ring->tail);
}

/* Slot sizes, as herald-abi.h defines them. */
static inline u32 herald_send_stride(u32 max_sge, u32 max_inline)
{
	u32 sges = max_sge * sizeof(struct herald_sge);

	return ALIGN(HERALD_SEND_WQE_HDR + max(sges, max_inline), 64);
}

static inline u32 herald_recv_stride(u32 max_sge)
{
	return HERALD_RECV_WQE_HDR + max_sge * sizeof(struct herald_sge);
}

#endif /* HERALD_RING_H */
