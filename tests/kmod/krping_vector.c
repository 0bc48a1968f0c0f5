// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/* Vectors (rule C12), moderation (C9), where handlers run (C6): for a consumer in the kernel. */
#include <linux/cpumask.h>
#include <linux/irqflags.h>
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

#define TRIES	20	/* on a slow machine a period may be over by chance, but not each time */

static s64 since_us(ktime_t start)
{
	return ktime_us_delta(ktime_get(), start);
}

/* One event more: how many microseconds after @start it was there, or a negative errno. */
static s64 event_after(struct counted *c, ktime_t start)
{
	int rc = counted_wait(c, ++c->expected);

	return rc ?: since_us(start);
}

/* Armed, with one message that waits for the end of the longest period there is. */
static int let_wait(struct counted *c, u16 count)
{
	KRPING_DO(rdma_set_cq_moderation(c->rig.cq, count, U16_MAX));
	KRPING_EXPECT(arm(c) == 0);
	return message(c);
}

/* An event waits for the fourth completion.  Microseconds, or a negative errno. */
static s64 fourth_completion(struct counted *c)
{
	ktime_t start = ktime_get();
	int early;

	KRPING_DO(let_wait(c, 4));
	early = atomic_read(&c->events) - c->expected;
	KRPING_EXPECT(!early || since_us(start) >= U16_MAX);
	KRPING_DO(message(c));
	return event_after(c, start);
}

/* ... or it is let go ... */
static s64 let_go(struct counted *c)
{
	ktime_t start = ktime_get();

	KRPING_DO(let_wait(c, 100));
	KRPING_DO(message(c));
	KRPING_DO(rdma_set_cq_moderation(c->rig.cq, 0, 0));
	return event_after(c, start);
}

/* ... also with interrupts off, which stay so. */
static s64 let_go_irqs_off(struct counted *c)
{
	ktime_t start = ktime_get();
	unsigned long flags;
	bool off;
	int rc;

	KRPING_DO(let_wait(c, 100));
	KRPING_DO(message(c));
	local_irq_save(flags);
	rc = rdma_set_cq_moderation(c->rig.cq, 0, 0);
	off = irqs_disabled();
	local_irq_restore(flags);
	KRPING_DO(rc);
	KRPING_EXPECT(off);
	return event_after(c, start);
}

/* @once leaves four completions; at least one time its event did not wait for the period's end. */
static int in_time(struct counted *c, s64 (*once)(struct counted *c))
{
	s64 us = U16_MAX;
	int i;

	for (i = 0; i < TRIES && us >= U16_MAX; i++) {
		us = once(c);
		if (us < 0)
			return us;
		KRPING_DO(counted_poll(c, 4));
	}
	return us < U16_MAX ? 0 : krping_fail("the event waits for the end of the period");
}

/* ... or for the end of the period, and no shorter. */
static int whole_period(struct counted *c)
{
	ktime_t start = ktime_get();

	KRPING_DO(rdma_set_cq_moderation(c->rig.cq, 0, 20000));
	KRPING_EXPECT(arm(c) == 0);
	KRPING_DO(message(c));
	KRPING_EXPECT(event_after(c, start) >= 20000);
	return counted_poll(c, 2);
}

/* C9 */
static int moderated(struct counted *c)
{
	KRPING_EXPECT(rdma_set_cq_moderation(c->rig.cq, 4, 0) == -EINVAL);
	KRPING_DO(in_time(c, fourth_completion));
	KRPING_DO(in_time(c, let_go));
	KRPING_DO(in_time(c, let_go_irqs_off));
	KRPING_DO(whole_period(c));
	KRPING_EXPECT(atomic_read(&c->events) == c->expected);
	return 0;
}

int krping_test_moderation(struct ib_device *dev)
{
	return with_counted(dev, 0, moderated);
}

/* ------------------------------------------------------------ call chains -- */

/*
 * C6, and the core's locking rules: no verb calls the handler, whatever it sets
 * free; on every CPU, the vector's own among them.
 */
static int not_from_verbs(struct counted *c)
{
	int cpu, events = 0;

	for_each_online_cpu(cpu) {
		set_cpus_allowed_ptr(current, cpumask_of(cpu));
		KRPING_EXPECT(arm(c) == 0);
		KRPING_DO(message(c));
		KRPING_DO(counted_wait(c, ++events));
		KRPING_DO(counted_poll(c, 2));

		KRPING_DO(rdma_set_cq_moderation(c->rig.cq, 100, U16_MAX));
		KRPING_EXPECT(arm(c) == 0);
		KRPING_DO(message(c));
		KRPING_DO(rdma_set_cq_moderation(c->rig.cq, 0, 0));
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
