/* SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB */
/* Shared receive queues. */
#ifndef HERALD_SRQ_H
#define HERALD_SRQ_H

#include <linux/spinlock.h>
#include <rdma/ib_verbs.h>

#include "event.h"
#include "ring.h"
#include "wqe.h"

/**
 * struct herald_srq - a shared receive queue
 * @lock: protects the consumer side, limit and dead; irq-safe; a leaf
 * @post_lock: serialises kernel posters; irq-safe; a leaf
 * @limit: armed limit, 0 if none
 * @dead: the ring is corrupt; SRQ_ERR was raised
 * @events: its asynchronous events
 */
struct herald_srq {
	struct ib_srq ib;
	struct herald_dev *dev;
	u32 srq_num;
	u32 max_wr;
	u32 max_sge;
	spinlock_t lock;
	struct herald_ring ring;
	u32 limit;
	bool dead;
	spinlock_t post_lock;
	struct herald_event_source events;
};

static inline struct herald_srq *to_hsrq(struct ib_srq *ibsrq)
{
	return container_of(ibsrq, struct herald_srq, ib);
}

/**
 * herald_srq_take - take one receive WR
 * @srq: the queue
 * @recv: filled in; queue is HERALD_CQE_SRQ
 * @d: gets SRQ_LIMIT_REACHED and SRQ_ERR
 *
 * Return: as herald_recv_copy().
 * Context: any; no lock held.
 */
int herald_srq_take(struct herald_srq *srq, struct herald_recv *recv, struct herald_deferred *d);

/* ib_device_ops */
int herald_create_srq(struct ib_srq *ibsrq, struct ib_srq_init_attr *init, struct ib_udata *udata);
int herald_modify_srq(struct ib_srq *ibsrq, struct ib_srq_attr *attr, enum ib_srq_attr_mask mask,
		      struct ib_udata *udata);
int herald_query_srq(struct ib_srq *ibsrq, struct ib_srq_attr *attr);
int herald_destroy_srq(struct ib_srq *ibsrq, struct ib_udata *udata);
int herald_post_srq_recv(struct ib_srq *ibsrq, const struct ib_recv_wr *wr,
			 const struct ib_recv_wr **bad_wr);

#endif /* HERALD_SRQ_H */
