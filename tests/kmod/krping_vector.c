// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/* Completion vectors (rule C12) and moderation (rule C9) for a consumer in the kernel. */
#include <linux/cpumask.h>
#include <linux/delay.h>
#include <linux/sched.h>
#include <linux/slab.h>

#include "krping.h"

#define ROUNDS	50

/* A CQ of a vector, with one pair of QPs on it; its handler notes where it runs. */
struct vectored {
	struct krping_rig rig;
	atomic_t events;
	int cpu;
	int moves;	/* how often it was another CPU than before */
};

static void note_cpu(struct ib_cq *cq, void *context)
{
	struct vectored *v = context;
	int cpu = smp_processor_id();

	if (v->cpu >= 0 && v->cpu != cpu)
		v->moves++;
	v->cpu = cpu;
	atomic_inc(&v->events);
}

static int vectored_init(struct vectored *v, struct ib_device *dev, int vector)
{
	struct ib_cq_init_attr attr = { .cqe = 64, .comp_vector = vector };
	int rc;

	v->cpu = -1;
	v->rig.dev = dev;
	v->rig.poll = KRPING_RAW;
	v->rig.pd = ib_alloc_pd(dev, 0);
	if (IS_ERR(v->rig.pd))
		return PTR_ERR(v->rig.pd);
	v->rig.cq = ib_create_cq(dev, note_cpu, NULL, v, &attr);
	rc = PTR_ERR_OR_ZERO(v->rig.cq);
	if (rc)
		goto err_pd;
	rc = krping_connect(&v->rig, v->rig.end);
	if (!rc)
		return 0;
	ib_destroy_cq(v->rig.cq);
err_pd:
	ib_dealloc_pd(v->rig.pd);
	return rc;
}

/* One message; its two completions are left in the CQ.  Nobody calls what @w has. */
static int message(struct vectored *v)
{
	static struct krping_wait w[2];

	krping_wait_init(&w[0]);
	krping_wait_init(&w[1]);
	return krping_post_recv(&v->rig, &v->rig.end[1], 0, 64, &w[1]) ?:
	       krping_post_send(&v->rig, &v->rig.end[0], 0, 8, 0, &w[0]);
}

static int wait_events(struct vectored *v, int n)
{
	unsigned long end = jiffies + 60 * HZ;

	while (atomic_read(&v->events) < n) {
		if (time_after(jiffies, end))
			return krping_fail("%d of %d events", atomic_read(&v->events), n);
		cond_resched();
	}
	return atomic_read(&v->events) == n ? 0 : krping_fail("more than %d events", n);
}

static int poll_n(struct vectored *v, int n)
{
	unsigned long end = jiffies + 60 * HZ;
	struct ib_wc wc;

	while (n) {
		int got = ib_poll_cq(v->rig.cq, 1, &wc);

		if (got < 0 || (got && wc.status))
			return krping_fail("poll: %d, status %d", got, got > 0 ? wc.status : 0);
		n -= got;
		if (!got && time_after(jiffies, end))
			return -ETIMEDOUT;
		cond_resched();
	}
	return 0;
}

static int with_vectored(struct ib_device *dev, int vector, int (*test)(struct vectored *v))
{
	struct vectored *v = kzalloc(sizeof(*v), GFP_KERNEL);
	int rc;

	if (!v)
		return -ENOMEM;
	rc = vectored_init(v, dev, vector);
	if (!rc) {
		rc = test(v);
		krping_rig_exit(&v->rig);
	}
	kfree(v);
	return rc;
}

/* ---------------------------------------------------------------- vectors -- */

/* Which CPU each vector's handler ran on */
static int seen_cpu[NR_CPUS];
static int seen;

/* Completions caused on every CPU in turn: the handler always runs on one and the same. */
static int one_cpu(struct vectored *v)
{
	int i, cpu = -1;

	for (i = 0; i < ROUNDS; i++) {
		cpu = cpumask_next(cpu, cpu_online_mask);
		if (cpu >= nr_cpu_ids)
			cpu = cpumask_first(cpu_online_mask);
		set_cpus_allowed_ptr(current, cpumask_of(cpu));
		KRPING_EXPECT(ib_req_notify_cq(v->rig.cq, IB_CQ_NEXT_COMP) == 0);
		KRPING_DO(message(v));
		KRPING_DO(wait_events(v, i + 1));
		KRPING_DO(poll_n(v, 2));
	}
	KRPING_EXPECT(v->moves == 0);
	for (i = 0; i < seen; i++)
		KRPING_EXPECT(seen_cpu[i] != v->cpu);
	seen_cpu[seen++] = v->cpu;
	return 0;
}

/* C12: as many vectors as CPUs; one is out of range; each has a CPU of its own. */
int krping_test_vectors(struct ib_device *dev)
{
	struct ib_cq_init_attr attr = { .cqe = 4, .comp_vector = dev->num_comp_vectors };
	struct ib_cq *cq = ib_create_cq(dev, NULL, NULL, NULL, &attr);
	int vector, rc = 0;

	if (!IS_ERR(cq)) {
		ib_destroy_cq(cq);
		return krping_fail("vector %d was taken", dev->num_comp_vectors);
	}
	KRPING_EXPECT(PTR_ERR(cq) == -EINVAL);
	KRPING_EXPECT(dev->num_comp_vectors == num_online_cpus());
	seen = 0;
	for (vector = 0; vector < dev->num_comp_vectors && !rc; vector++)
		rc = with_vectored(dev, vector, one_cpu);
	set_cpus_allowed_ptr(current, cpu_possible_mask);
	return rc;
}

/* -------------------------------------------------------------- moderation -- */

/* C9: an event waits for the fourth completion, for the end of the period, or is let go. */
static int moderated(struct vectored *v)
{
	ktime_t start;
	int early;

	KRPING_EXPECT(rdma_set_cq_moderation(v->rig.cq, 4, 0) == -EINVAL);
	KRPING_DO(rdma_set_cq_moderation(v->rig.cq, 4, U16_MAX));
	KRPING_EXPECT(ib_req_notify_cq(v->rig.cq, IB_CQ_NEXT_COMP) == 0);
	start = ktime_get();
	KRPING_DO(message(v));
	early = atomic_read(&v->events);
	/* on a machine that is too slow for that the period is over */
	KRPING_EXPECT(!early || ktime_us_delta(ktime_get(), start) >= U16_MAX);
	KRPING_DO(message(v));
	KRPING_DO(wait_events(v, 1));
	KRPING_DO(poll_n(v, 4));

	KRPING_DO(rdma_set_cq_moderation(v->rig.cq, 0, 1000));
	KRPING_EXPECT(ib_req_notify_cq(v->rig.cq, IB_CQ_NEXT_COMP) == 0);
	KRPING_DO(message(v));
	KRPING_DO(wait_events(v, 2));
	KRPING_DO(poll_n(v, 2));

	KRPING_DO(rdma_set_cq_moderation(v->rig.cq, 100, U16_MAX));
	KRPING_EXPECT(ib_req_notify_cq(v->rig.cq, IB_CQ_NEXT_COMP) == 0);
	KRPING_DO(message(v));
	KRPING_DO(poll_n(v, 2));
	KRPING_DO(rdma_set_cq_moderation(v->rig.cq, 0, 0));
	return wait_events(v, 3);
}

int krping_test_moderation(struct ib_device *dev)
{
	return with_vectored(dev, 0, moderated);
}
