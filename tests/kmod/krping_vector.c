// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/* Vectors (rule C12), moderation (C9), where handlers run (C6): for a consumer in the kernel. */
#include <linux/bottom_half.h>
#include <linux/cpumask.h>
#include <linux/ktime.h>
#include <linux/sched.h>

#include "krping_counted.h"

#define ROUNDS	50

static int arm(struct counted *c)
{
	return ib_req_notify_cq(c->rig.cq, IB_CQ_NEXT_COMP);
}

static int message(struct counted *c)
{
	static struct krping_wait w[2];

	return counted_message(c, false, w);
}

/* ---------------------------------------------------------------- vectors -- */

/* Which CPU each vector's handler ran on */
static int seen_cpu[NR_CPUS];
static int seen;

/* Completions caused on every CPU in turn: the handler always runs on one and the same. */
static int one_cpu(struct counted *c)
{
	int i, cpu = -1;

	for (i = 0; i < ROUNDS; i++) {
		cpu = cpumask_next(cpu, cpu_online_mask);
		if (cpu >= nr_cpu_ids)
			cpu = cpumask_first(cpu_online_mask);
		set_cpus_allowed_ptr(current, cpumask_of(cpu));
		KRPING_EXPECT(arm(c) == 0);
		KRPING_DO(message(c));
		KRPING_DO(counted_wait(c, i + 1));
		KRPING_DO(counted_poll(c, 2));
	}
	KRPING_EXPECT(c->moves == 0);
	for (i = 0; i < seen; i++)
		KRPING_EXPECT(seen_cpu[i] != c->cpu);
	seen_cpu[seen++] = c->cpu;
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
		rc = with_counted(dev, vector, one_cpu);
	set_cpus_allowed_ptr(current, cpu_possible_mask);
	return rc;
}

/* -------------------------------------------------------------- moderation -- */

/* C9: an event waits for the fourth completion, for the end of the period, or is let go. */
static int moderated(struct counted *c)
{
	ktime_t start;
	int early;

	KRPING_EXPECT(rdma_set_cq_moderation(c->rig.cq, 4, 0) == -EINVAL);
	KRPING_DO(rdma_set_cq_moderation(c->rig.cq, 4, U16_MAX));
	KRPING_EXPECT(arm(c) == 0);
	start = ktime_get();
	KRPING_DO(message(c));
	early = atomic_read(&c->events);
	/* on a machine that is too slow for that the period is over */
	KRPING_EXPECT(!early || ktime_us_delta(ktime_get(), start) >= U16_MAX);
	KRPING_DO(message(c));
	KRPING_DO(counted_wait(c, 1));
	KRPING_DO(counted_poll(c, 4));

	KRPING_DO(rdma_set_cq_moderation(c->rig.cq, 0, 1000));
	KRPING_EXPECT(arm(c) == 0);
	KRPING_DO(message(c));
	KRPING_DO(counted_wait(c, 2));
	KRPING_DO(counted_poll(c, 2));

	KRPING_DO(rdma_set_cq_moderation(c->rig.cq, 100, U16_MAX));
	KRPING_EXPECT(arm(c) == 0);
	KRPING_DO(message(c));
	KRPING_DO(counted_poll(c, 2));
	KRPING_DO(rdma_set_cq_moderation(c->rig.cq, 0, 0));
	return counted_wait(c, 3);
}

int krping_test_moderation(struct ib_device *dev)
{
	return with_counted(dev, 0, moderated);
}

/* ------------------------------------------------------------ call chains -- */

/* From here to leave_call() stands for a lock that the handler takes, too. */
static void enter_call(struct counted *c)
{
	local_bh_disable();
	WRITE_ONCE(c->caller, smp_processor_id());
}

static void leave_call(struct counted *c)
{
	WRITE_ONCE(c->caller, -1);
	local_bh_enable();
}

/*
 * C6, and the core's locking rules: no verb calls the handler, whatever it sets
 * free; on every CPU, the vector's own among them.
 */
static int not_from_verbs(struct counted *c)
{
	int cpu, events = 0, rc;

	for_each_online_cpu(cpu) {
		set_cpus_allowed_ptr(current, cpumask_of(cpu));
		KRPING_EXPECT(arm(c) == 0);
		enter_call(c);
		rc = message(c);
		leave_call(c);
		KRPING_DO(rc);
		KRPING_DO(counted_wait(c, ++events));
		KRPING_DO(counted_poll(c, 2));

		KRPING_DO(rdma_set_cq_moderation(c->rig.cq, 100, U16_MAX));
		KRPING_EXPECT(arm(c) == 0);
		KRPING_DO(message(c));
		enter_call(c);
		rc = rdma_set_cq_moderation(c->rig.cq, 0, 0);
		leave_call(c);
		KRPING_DO(rc);
		KRPING_DO(counted_wait(c, ++events));
		KRPING_DO(counted_poll(c, 2));
	}
	KRPING_EXPECT(atomic_read(&c->nested) == 0);
	return 0;
}

int krping_test_call_chain(struct ib_device *dev)
{
	int rc = with_counted(dev, 0, not_from_verbs);

	set_cpus_allowed_ptr(current, cpu_possible_mask);
	return rc;
}
