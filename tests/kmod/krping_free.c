// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/*
 * Freeing a CQ that the core polls in a softirq.  The poller lets go of the CQ
 * and only then arms it, so it may still be at it when ib_free_cq() has the
 * device destroy the CQ; after which the core frees the memory.
 */
#include <linux/cpumask.h>
#include <linux/delay.h>
#include <linux/sched.h>
#include <linux/smp.h>

#include "krping.h"

#define PATIENCE_MS	300	/* how long an arm waits to be overtaken */

static struct {
	struct ib_cq *cq;
	int (*arm)(struct ib_cq *cq, enum ib_cq_notify_flags flags);
	bool entered, freed, overtaken, left;
} slow;

/* Takes so long that whoever does not wait for it overtakes it. */
static int slow_arm(struct ib_cq *cq, enum ib_cq_notify_flags flags)
{
	int i, rc = 0;

	if (READ_ONCE(slow.cq) != cq)
		return slow.arm(cq, flags);
	WRITE_ONCE(slow.entered, true);
	for (i = 0; i < PATIENCE_MS && !READ_ONCE(slow.freed); i++)
		mdelay(1);
	slow.overtaken = READ_ONCE(slow.freed);
	if (!slow.overtaken)
		rc = slow.arm(cq, flags);
	smp_store_release(&slow.left, true);	/* pairs with wait_for() */
	return rc;
}

/* An event of an empty CQ: the core polls it, on this CPU. */
static void extra_event(void *arg)
{
	struct ib_cq *cq = arg;

	cq->comp_handler(cq, cq->cq_context);
}

static int wait_for(const bool *flag)
{
	unsigned long end = jiffies + 60 * HZ;

	while (!smp_load_acquire(flag)) {	/* pairs with slow_arm() */
		if (time_after(jiffies, end))
			return -ETIMEDOUT;
		cond_resched();
	}
	return 0;
}

/* Called on another CPU than @cpu. */
static int free_while_arming(struct ib_device *dev, int cpu)
{
	struct ib_cq *cq = ib_alloc_cq(dev, NULL, 16, 0, IB_POLL_SOFTIRQ);
	int rc;

	if (IS_ERR(cq))
		return PTR_ERR(cq);
	WRITE_ONCE(slow.cq, cq);
	rc = smp_call_function_single(cpu, extra_event, cq, 1) ?: wait_for(&slow.entered);
	ib_free_cq(cq);
	WRITE_ONCE(slow.freed, true);
	return rc ?: wait_for(&slow.left);
}

/* C6, C8: when ib_free_cq() returns, nobody uses the CQ any more. */
int krping_test_free_polled(struct ib_device *dev)
{
	int here = cpumask_first(cpu_online_mask), rc;

	KRPING_EXPECT(num_online_cpus() > 1);
	memset(&slow, 0, sizeof(slow));
	set_cpus_allowed_ptr(current, cpumask_of(here));
	slow.arm = dev->ops.req_notify_cq;
	WRITE_ONCE(dev->ops.req_notify_cq, slow_arm);
	rc = free_while_arming(dev, cpumask_next(here, cpu_online_mask));
	WRITE_ONCE(dev->ops.req_notify_cq, slow.arm);
	set_cpus_allowed_ptr(current, cpu_possible_mask);
	KRPING_DO(rc);
	KRPING_EXPECT(!slow.overtaken);
	return 0;
}
