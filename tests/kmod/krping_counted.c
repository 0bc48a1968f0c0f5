// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/* A CQ whose handler only counts. */
#include <linux/preempt.h>
#include <linux/slab.h>

#include "krping_counted.h"

static void count_event(struct ib_cq *cq, void *context)
{
	struct counted *c = context;
	int cpu = smp_processor_id();

	/* called in place, by whatever it was */
	if (!in_serving_softirq())
		atomic_inc(&c->nested);
	if (c->cpu >= 0 && c->cpu != cpu)
		c->moves++;
	c->cpu = cpu;
	atomic_inc(&c->events);
}

static int counted_init(struct counted *c, struct ib_device *dev, int vector)
{
	struct ib_cq_init_attr attr = { .cqe = 64, .comp_vector = vector };
	int rc;

	c->cpu = -1;
	c->rig.dev = dev;
	c->rig.poll = KRPING_RAW;
	c->rig.pd = ib_alloc_pd(dev, 0);
	if (IS_ERR(c->rig.pd))
		return PTR_ERR(c->rig.pd);
	c->rig.cq = ib_create_cq(dev, count_event, NULL, c, &attr);
	rc = PTR_ERR_OR_ZERO(c->rig.cq);
	if (rc) {
		ib_dealloc_pd(c->rig.pd);
		return rc;
	}
	rc = krping_connect(&c->rig, c->rig.end);
	if (rc) {
		ib_destroy_cq(c->rig.cq);
		ib_dealloc_pd(c->rig.pd);
	}
	return rc;
}

int counted_message(struct counted *c, bool solicited, struct krping_wait *w)
{
	struct krping_end *a = &c->rig.end[0];
	struct ib_sge sge = { .addr = a->dma, .length = 8, .lkey = c->rig.pd->local_dma_lkey };
	struct ib_send_wr wr = {
		.wr_cqe = &w[0].cqe, .sg_list = &sge, .num_sge = 1, .opcode = IB_WR_SEND,
		.send_flags = IB_SEND_SIGNALED | (solicited ? IB_SEND_SOLICITED : 0),
	};

	krping_wait_init(&w[0]);
	krping_wait_init(&w[1]);
	return krping_post_recv(&c->rig, &c->rig.end[1], 0, 64, &w[1]) ?:
	       ib_post_send(a->qp, &wr, NULL);
}

int counted_poll(struct counted *c, int n)
{
	unsigned long end = jiffies + 60 * HZ;
	struct ib_wc wc;

	while (n) {
		int got = ib_poll_cq(c->rig.cq, 1, &wc);

		if (got < 0)
			return got;
		if (got && wc.status)
			return -EIO;
		n -= got;
		if (!got && time_after(jiffies, end))
			return -ETIMEDOUT;
		cond_resched();
	}
	return 0;
}

int counted_wait(struct counted *c, int events)
{
	unsigned long end = jiffies + 60 * HZ;

	while (atomic_read(&c->events) < events) {
		if (time_after(jiffies, end))
			return -ETIMEDOUT;
		cond_resched();
	}
	return atomic_read(&c->events) == events ? 0 : -EINVAL;
}

int with_counted(struct ib_device *dev, int vector, int (*test)(struct counted *c))
{
	struct counted *c = kzalloc(sizeof(*c), GFP_KERNEL);
	int rc;

	if (!c)
		return -ENOMEM;
	rc = counted_init(c, dev, vector);
	if (!rc) {
		rc = test(c);
		krping_rig_exit(&c->rig);
	}
	kfree(c);
	return rc;
}
