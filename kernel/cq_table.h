/* SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB */
/* The CQs of a device, for those who look at them or meddle with them from outside. */
#ifndef HERALD_CQ_TABLE_H
#define HERALD_CQ_TABLE_H

#include <linux/types.h>

struct herald_cq;
struct herald_cq_stats;
struct herald_dev;
struct ib_ucontext;

void herald_cqs_init(struct herald_dev *dev);
void herald_cqs_exit(struct herald_dev *dev);

/*
 * A CQ gets its number, is found, and is found no more; whoever has found it is
 * done when herald_cqs_remove() returns.  Context: may sleep.
 */
int herald_cqs_reserve(struct herald_cq *cq);
void herald_cqs_add(struct herald_cq *cq);
void herald_cqs_remove(struct herald_cq *cq);

/**
 * herald_cqs_each - call @fn for every CQ
 *
 * Stops when it returns something else than 0.
 * Return: what the last call returned, or 0.
 * Context: may sleep; the destroy of the CQ that @fn is called for waits, no other's.
 */
int herald_cqs_each(struct herald_dev *dev, int (*fn)(struct herald_cq *cq, void *arg), void *arg);

/*
 * The device's count of arms, of events read and of events acked: these fields
 * only of @sum, CQs that are gone included.  Context: may sleep.
 */
void herald_cqs_sum(struct herald_dev *dev, struct herald_cq_stats *sum);

/* The process that has @uctx arms the CQ @id; see herald_cq_arming().  0 or errno.  May sleep. */
int herald_cqs_arming(struct herald_dev *dev, struct ib_ucontext *uctx, u32 id, u32 when);

#endif /* HERALD_CQ_TABLE_H */
