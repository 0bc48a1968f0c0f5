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
 * @pid: the process that made it, as the initial namespace calls it; 0: the kernel
 * @uctx: that process's context; NULL: the kernel
 * @node: in herald_dev.srqs
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
	pid_t pid;
	struct ib_ucontext *uctx;
	struct list_head node;
};

/* What debugfs shows of an SRQ */
struct herald_srq_info {
	u32 limit;
	int posted;	/* negative: the ring is corrupt */
	u32 events;	/* asynchronous ones raised */
	bool dead;
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

/*
 * herald_srq_kill - as if the ring were corrupt: SRQ_ERR; -EINVAL if it is dead already
 * herald_srq_fire_limit - SRQ_LIMIT_REACHED; a limit that is armed is used up
 *
 * Context: may sleep, no lock held.
 */
int herald_srq_kill(struct herald_srq *srq, struct herald_deferred *d);
void herald_srq_fire_limit(struct herald_srq *srq, struct herald_deferred *d);

/* As herald_qp_ask().  Context: process, the SRQ does not go away. */
void herald_srq_ask(struct herald_srq *srq);
void herald_srq_look(struct herald_srq *srq, struct herald_srq_info *info);

void herald_srqs_init(struct herald_dev *dev);
void herald_srqs_exit(struct herald_dev *dev);

/* Call @fn for every SRQ of the device, as herald_cqs_each() does.  May sleep. */
int herald_srqs_each(struct herald_dev *dev, int (*fn)(struct herald_srq *srq, void *arg),
		     void *arg);

/* ib_device_ops */
int herald_create_srq(struct ib_srq *ibsrq, struct ib_srq_init_attr *init, struct ib_udata *udata);
int herald_modify_srq(struct ib_srq *ibsrq, struct ib_srq_attr *attr, enum ib_srq_attr_mask mask,
		      struct ib_udata *udata);
int herald_query_srq(struct ib_srq *ibsrq, struct ib_srq_attr *attr);
int herald_destroy_srq(struct ib_srq *ibsrq, struct ib_udata *udata);
int herald_post_srq_recv(struct ib_srq *ibsrq, const struct ib_recv_wr *wr,
			 const struct ib_recv_wr **bad_wr);

#endif /* HERALD_SRQ_H */
