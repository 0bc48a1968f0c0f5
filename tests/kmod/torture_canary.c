// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/*
 * Does every CPU of the machine get anywhere?  One that the host has taken away
 * for seconds, or that is loaded beyond measure, delays completions as a fault of
 * the device would.  So on each of them something runs in a bottom half, then in
 * a thread, as handlers and consumers do: only a time in which all of them did so
 * counts as time.
 */
#include <linux/percpu.h>
#include <linux/workqueue.h>

#include "torture.h"

struct canary {
	struct work_struct bh, task;
	bool sang;
};

static DEFINE_PER_CPU(struct canary, canaries);
static unsigned int silent;

static void sing_in_task(struct work_struct *work)
{
	WRITE_ONCE(container_of(work, struct canary, task)->sang, true);
}

static void sing_in_bh(struct work_struct *work)
{
	schedule_work_on(smp_processor_id(), &container_of(work, struct canary, bh)->task);
}

static bool all_sang(void)
{
	int cpu;

	for_each_online_cpu(cpu) {
		if (!READ_ONCE(per_cpu_ptr(&canaries, cpu)->sang))
			return false;
	}
	return true;
}

static void sing_again(void)
{
	int cpu;

	for_each_online_cpu(cpu) {
		struct canary *c = per_cpu_ptr(&canaries, cpu);

		WRITE_ONCE(c->sang, false);
		queue_work_on(cpu, system_bh_wq, &c->bh);
	}
}

bool torture_canaries_sing(void)
{
	if (!all_sang()) {
		if (++silent == 50 * torture.patience) {
			torture_fail(TORTURE_LOST, "a CPU runs no bottom half, or no thread");
			WRITE_ONCE(torture.stop, true);
		}
		return false;
	}
	silent = 0;
	sing_again();
	return true;
}

void torture_canaries_init(void)
{
	int cpu;

	silent = 0;
	for_each_possible_cpu(cpu) {
		struct canary *c = per_cpu_ptr(&canaries, cpu);

		INIT_WORK(&c->bh, sing_in_bh);
		INIT_WORK(&c->task, sing_in_task);
	}
	sing_again();
}

void torture_canaries_exit(void)
{
	int cpu;

	for_each_possible_cpu(cpu) {
		struct canary *c = per_cpu_ptr(&canaries, cpu);

		cancel_work_sync(&c->bh);
		cancel_work_sync(&c->task);
	}
}
