/* SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB */
/* A CQ's ring, for the files that may touch it: cq.c, cq_resize.c. */
#ifndef HERALD_CQ_RING_H
#define HERALD_CQ_RING_H

#include <rdma/herald-abi.h>

#include "cq.h"
#include "device.h"

/* The memory of a ring */
struct cq_ring {
	struct herald_shm *shm;
	struct herald_cq_ctl *ctl;
	struct herald_cqe *cqes;
	u32 depth;
	u32 capacity;
};

/* Make a ring for @cqe CQEs; it can be mapped if there is @udata.  Context: may sleep. */
int herald_cq_ring_alloc(struct cq_ring *ring, struct ib_udata *udata, u32 cqe);

/* From now on this is the ring.  Context: cq->lock held, or nobody else knows the CQ. */
static inline void cq_ring_use(struct herald_cq *cq, const struct cq_ring *ring)
{
	cq->shm = ring->shm;
	cq->ctl = ring->ctl;
	cq->cqes = ring->cqes;
	cq->depth = ring->depth;
	cq->capacity = ring->capacity;
	cq->ib.cqe = ring->capacity;
}

static inline struct herald_cqe *cq_slot(const struct herald_cq *cq, u32 index)
{
	return &cq->cqes[index & (cq->depth - 1)];
}

/* CQEs in the ring that were not polled, as far as is known.  cq->lock held. */
static inline u32 cq_used(const struct herald_cq *cq)
{
	return cq->producer - cq->consumer;
}

/*
 * Take over the process's consumer index; an impossible one is counted and
 * changes nothing.  cq->lock held.
 */
static inline void cq_refresh_consumer(struct herald_cq *cq)
{
	u32 consumer;

	if (!cq->user)
		return;
	/* pairs with the release that follows the process's last look at a CQE */
	consumer = smp_load_acquire(&cq->ctl->consumer);
	if (likely(consumer - cq->consumer <= cq_used(cq)))
		cq->consumer = consumer;
	else
		herald_count(cq->dev, HERALD_CTR_bad_ring_index);
}

#endif /* HERALD_CQ_RING_H */
