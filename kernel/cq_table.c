// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/* The CQs of a device, by number. */
#include <linux/mutex.h>
#include <linux/wait_bit.h>
#include <linux/xarray.h>
#include <rdma/herald-ioctl.h>

#include "cq.h"
#include "cq_hold.h"
#include "cq_table.h"
#include "device.h"

void herald_cqs_init(struct herald_dev *dev)
{
	xa_init_flags(&dev->cqs, XA_FLAGS_ALLOC1);
	mutex_init(&dev->cqs_mutex);
}

void herald_cqs_exit(struct herald_dev *dev)
{
	WARN_ON(!xa_empty(&dev->cqs));
	xa_destroy(&dev->cqs);
	mutex_destroy(&dev->cqs_mutex);
}

int herald_cqs_reserve(struct herald_cq *cq)
{
	int ret = xa_alloc_cyclic(&cq->dev->cqs, &cq->id, NULL, xa_limit_31b, &cq->dev->next_cq,
				  GFP_KERNEL);

	return ret < 0 ? ret : 0;
}

void herald_cqs_add(struct herald_cq *cq)
{
	/* there is room: it was reserved */
	WARN_ON(xa_err(xa_store(&cq->dev->cqs, cq->id, cq, GFP_KERNEL)));
}

/* A process counts these itself: the device's counters get them when the CQ goes. */
static void count_process(struct herald_cq *cq)
{
	struct herald_cq_info info;

	if (!cq->user)
		return;
	herald_cq_look(cq, &info);
	herald_count_add(cq->dev, HERALD_CTR_cq_arms, info.stats.arms);
	herald_count_add(cq->dev, HERALD_CTR_cq_events_read, info.stats.events_read);
	herald_count_add(cq->dev, HERALD_CTR_cq_events_acked, info.stats.events_acked);
}

void herald_cqs_remove(struct herald_cq *cq)
{
	if (!cq->id)
		return;
	mutex_lock(&cq->dev->cqs_mutex);
	if (xa_erase(&cq->dev->cqs, cq->id))
		count_process(cq);
	mutex_unlock(&cq->dev->cqs_mutex);
	cq->id = 0;	/* another CQ may have it now */
	wait_var_event(&cq->visitors, !atomic_read(&cq->visitors));
}

void herald_cqs_sum(struct herald_dev *dev, struct herald_cq_stats *sum)
{
	struct herald_cq_info info;
	struct herald_cq *cq;
	unsigned long id;

	mutex_lock(&dev->cqs_mutex);
	sum->arms = herald_counter_read(dev, HERALD_CTR_cq_arms);
	sum->events_read = herald_counter_read(dev, HERALD_CTR_cq_events_read);
	sum->events_acked = herald_counter_read(dev, HERALD_CTR_cq_events_acked);
	xa_for_each(&dev->cqs, id, cq) {
		if (!cq->user)
			continue;
		herald_cq_look(cq, &info);
		sum->arms += info.stats.arms;
		sum->events_read += info.stats.events_read;
		sum->events_acked += info.stats.events_acked;
	}
	mutex_unlock(&dev->cqs_mutex);
}

/* ---------------------------------------------------------------- visits -- */

/* The next CQ from @id on, which stays until leave(); or NULL. */
static struct herald_cq *visit(struct herald_dev *dev, unsigned long *id)
{
	struct herald_cq *cq;

	mutex_lock(&dev->cqs_mutex);
	cq = xa_find(&dev->cqs, id, ULONG_MAX, XA_PRESENT);
	if (cq)
		atomic_inc(&cq->visitors);
	mutex_unlock(&dev->cqs_mutex);
	return cq;
}

static void leave(struct herald_cq *cq)
{
	/* who waits in herald_cqs_remove() frees it: only its address is used from here on */
	if (atomic_dec_and_test(&cq->visitors))
		wake_up_var(&cq->visitors);
}

int herald_cqs_each(struct herald_dev *dev, int (*fn)(struct herald_cq *cq, void *arg), void *arg)
{
	struct herald_cq *cq;
	unsigned long id = 0;
	int ret = 0;

	while (!ret && (cq = visit(dev, &id))) {
		ret = fn(cq, arg);
		leave(cq);
		id++;
	}
	return ret;
}

static int to_when(u32 when)
{
	switch (when) {
	case HERALD_ARMING_BEFORE:
		return HERALD_HOLD_BEFORE_ARM;
	case HERALD_ARMING_AFTER:
		return HERALD_HOLD_AFTER_ARM;
	default:
		return -EINVAL;
	}
}

/* 0, or what the arm is to fail with; and whether the next one is to be announced. */
static int may_arm(struct herald_cq *cq)
{
	int ret = herald_fault_verb(&cq->dev->faults, HERALD_FAULT_REQ_NOTIFY);

	herald_cq_ask(cq);
	return ret;
}

int herald_cqs_arming(struct herald_dev *dev, struct ib_ucontext *uctx, u32 id, u32 arming)
{
	int when = to_when(arming), ret = -EINVAL;
	unsigned long found = id;
	struct herald_cq *cq;

	if (when < 0)
		return when;
	cq = visit(dev, &found);
	if (!cq)
		return -EINVAL;
	if (found == id && cq->uctx == uctx) {
		ret = when == HERALD_HOLD_BEFORE_ARM ? may_arm(cq) : 0;
		if (!ret)
			herald_cq_arming(cq, when);
	}
	leave(cq);
	return ret;
}
