// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/* The device's counters: per CPU, summed when they are read. */
#include "counters.h"
#include "cq.h"
#include "cq_table.h"
#include "device.h"

void herald_count_add(struct herald_dev *dev, enum herald_counter c, u64 n)
{
	this_cpu_add(dev->counters->v[c], n);
}

u64 herald_counter_read(struct herald_dev *dev, enum herald_counter c)
{
	u64 sum = 0;
	int cpu;

	for_each_possible_cpu(cpu)
		sum += READ_ONCE(per_cpu_ptr(dev->counters, cpu)->v[c]);
	return sum;
}

static const struct rdma_stat_desc herald_stat_descs[] = {
#define HERALD_COUNTER_DESC(_name) { .name = #_name },
	HERALD_COUNTERS(HERALD_COUNTER_DESC)
#undef HERALD_COUNTER_DESC
};

/* No lifespan: what is read is at most one jiffy old. */
struct rdma_hw_stats *herald_alloc_hw_port_stats(struct ib_device *ibdev, u32 port)
{
	return rdma_alloc_hw_stats_struct(herald_stat_descs, ARRAY_SIZE(herald_stat_descs), 0);
}

int herald_get_hw_stats(struct ib_device *ibdev, struct rdma_hw_stats *stats, u32 port, int index)
{
	struct herald_dev *dev = to_hdev(ibdev);
	struct herald_cq_stats sum;
	int i;

	if (!port || !stats)
		return -EINVAL;
	for (i = 0; i < HERALD_CTR_MAX; i++)
		stats->value[i] = herald_counter_read(dev, i);
	/* processes count these themselves */
	herald_cqs_sum(dev, &sum);
	stats->value[HERALD_CTR_cq_arms] = sum.arms;
	stats->value[HERALD_CTR_cq_events_read] = sum.events_read;
	stats->value[HERALD_CTR_cq_events_acked] = sum.events_acked;
	return HERALD_CTR_MAX;
}
