// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/*
 * Torture of an RDMA device's completion events from inside the kernel. Loading
 * starts it on the device named by the parameter; when debugfs'
 * herald_torture/state says "done", herald_torture/results has the results, in
 * KTAP.
 */
#include <linux/cpumask.h>
#include <linux/debugfs.h>
#include <linux/kthread.h>
#include <linux/module.h>
#include <linux/seq_file.h>
#include <linux/slab.h>

#include "torture.h"

#define MAX_THREADS	64
#define MAX_MESSAGES	20

static char *device;
module_param(device, charp, 0444);
MODULE_PARM_DESC(device, "the RDMA device to run on");
static unsigned int seconds = 20;
module_param(seconds, uint, 0444);
MODULE_PARM_DESC(seconds, "how long");
static unsigned int seed = 1;
module_param(seed, uint, 0444);
MODULE_PARM_DESC(seed, "of the threads' random numbers");
static unsigned int threads;
module_param(threads, uint, 0444);
MODULE_PARM_DESC(threads, "how many (0: two for each CPU)");
static unsigned int patience = 2000;
module_param(patience, uint, 0444);
MODULE_PARM_DESC(patience, "milliseconds without progress that are a failure");

struct torture torture;
struct torture_totals torture_totals;

static const char *const rule_names[TORTURE_RULES] = {
	[TORTURE_ONCE] = "completes_once",
	[TORTURE_ORDER] = "queue_order",
	[TORTURE_GONE] = "nothing_of_destroyed",
	[TORTURE_ALONE] = "one_handler",
	[TORTURE_BOUND] = "no_more_events_than_arms",
	[TORTURE_LOST] = "nothing_lost",
	[TORTURE_FLAG] = "missed_events_flag",
	[TORTURE_VERB] = "verbs",
};

static atomic_t failures[TORTURE_RULES];
static atomic_t messages;
static struct task_struct *tasks[MAX_THREADS], *conductor;
static struct dentry *dir;
static bool added, finished;

void torture_fail(enum torture_rule rule, const char *fmt, ...)
{
	struct va_format vaf = { .fmt = fmt };
	va_list args;

	atomic_inc(&failures[rule]);
	if (atomic_inc_return(&messages) > MAX_MESSAGES)
		return;
	va_start(args, fmt);
	vaf.va = &args;
	pr_info("herald_torture: # %s: %pV\n", rule_names[rule], &vaf);
	va_end(args);
}

/* ------------------------------------------------------------- running -- */

static void start_threads(void)
{
	unsigned int i, n = threads ?: 2 * num_online_cpus(), cpu = cpumask_first(cpu_online_mask);

	for (i = 0; i < min_t(unsigned int, n, MAX_THREADS); i++) {
		uintptr_t stream = seed * MAX_THREADS + i;
		struct task_struct *task;

		task = kthread_create(torture_thread, (void *)stream, "torture/%u", i);
		if (IS_ERR(task)) {
			torture_fail(TORTURE_VERB, "a thread could not be made");
			return;
		}
		/* one for each CPU, and then those that go where they like */
		if (i < num_online_cpus()) {
			kthread_bind(task, cpu);
			cpu = cpumask_next(cpu, cpu_online_mask);
		}
		tasks[i] = task;
		wake_up_process(task);
	}
}

static void stop_threads(void)
{
	int i;

	for (i = 0; i < MAX_THREADS; i++) {
		if (tasks[i])
			kthread_stop(tasks[i]);
		tasks[i] = NULL;
	}
}

static void run(void)
{
	unsigned long end = jiffies + seconds * HZ;

	torture_canaries_init();
	start_threads();
	while (time_before(jiffies, end) && !READ_ONCE(torture.stop)) {
		schedule_timeout_interruptible(msecs_to_jiffies(TORTURE_TICK));
		if (torture_canaries_sing())
			torture_watch();
	}
	WRITE_ONCE(torture.stop, true);
	stop_threads();
	torture_canaries_exit();
}

static int set_up(struct rnd_state *rnd)
{
	int i, rc;

	torture.patience = patience / TORTURE_TICK + 1;
	torture.pd = ib_alloc_pd(torture.dev, 0);
	if (IS_ERR(torture.pd))
		return PTR_ERR(torture.pd);
	rc = torture_memory_init();
	for (i = 0; i < TORTURE_GROUPS && !rc; i++)
		rc = torture_group_create(&torture.group[i], rnd);
	return rc;
}

static void tear_down(struct rnd_state *rnd)
{
	int i;

	for (i = 0; i < TORTURE_GROUPS; i++)
		torture_group_destroy(&torture.group[i], rnd);
	torture_memory_exit();
	if (!IS_ERR(torture.pd))
		ib_dealloc_pd(torture.pd);
}

/* What ran at all, so that what did not fail means something. */
static void check_activity(void)
{
	const struct torture_totals *t = &torture_totals;

	if (!atomic64_read(&t->completed) || !atomic64_read(&t->events) ||
	    !atomic64_read(&t->arms) || !atomic64_read(&t->kills))
		torture_fail(TORTURE_VERB, "something never happened");
}

static int conduct(void *unused)
{
	struct rnd_state rnd;
	int rc;

	prandom_seed_state(&rnd, seed);
	rc = set_up(&rnd);
	if (rc)
		torture_fail(TORTURE_VERB, "the beginning: %d", rc);
	else
		run();
	tear_down(&rnd);
	check_activity();
	/* whoever reads that it is done reads all of the results */
	smp_store_release(&finished, true);
	while (!kthread_should_stop())
		schedule_timeout_interruptible(HZ / 20);
	return 0;
}

/* ------------------------------------------------------------- results -- */

static void show_totals(struct seq_file *m)
{
	const struct torture_totals *t = &torture_totals;
	int i;

	seq_printf(m, "# seed %u: arms %lld (took effect %lld, returned 1 %lld), events %lld (at least %lld), posted %lld, completed %lld (flushed %lld), kills %lld (drained %lld, purged %lld), recreated %lld, moderated %lld (refused %lld)\n# CQs:",
		   seed, atomic64_read(&t->calls), atomic64_read(&t->arms),
		   atomic64_read(&t->hints), atomic64_read(&t->events),
		   atomic64_read(&t->fired), atomic64_read(&t->posted),
		   atomic64_read(&t->completed), atomic64_read(&t->flushed),
		   atomic64_read(&t->kills), atomic64_read(&t->drains), atomic64_read(&t->purges),
		   atomic64_read(&t->recreated), atomic64_read(&t->moderated),
		   atomic64_read(&t->unmoderated));
	for (i = 0; i < TORTURE_KINDS; i++)
		seq_printf(m, " %s %lld", torture_kind_names[i], atomic64_read(&t->kinds[i]));
	seq_putc(m, '\n');
}

static int results_show(struct seq_file *m, void *unused)
{
	int i;

	seq_printf(m, "KTAP version 1\n1..%d\n", TORTURE_RULES);
	show_totals(m);
	for (i = 0; i < TORTURE_RULES; i++) {
		int n = atomic_read(&failures[i]);

		seq_printf(m, "%sok %d %s", n ? "not " : "", i + 1, rule_names[i]);
		if (n)
			seq_printf(m, " # %d times; see the kernel's log", n);
		seq_putc(m, '\n');
	}
	return 0;
}
DEFINE_SHOW_ATTRIBUTE(results);

static int state_show(struct seq_file *m, void *unused)
{
	/* pairs with the release after the results are there */
	seq_puts(m, smp_load_acquire(&finished) ? "done\n" : "running\n");
	return 0;
}
DEFINE_SHOW_ATTRIBUTE(state);

/* ---------------------------------------------------------------- life -- */

static int torture_add(struct ib_device *dev)
{
	struct task_struct *task;
	int i;

	if (added || strcmp(dev_name(&dev->dev), device))
		return -EOPNOTSUPP;
	torture.dev = dev;
	for (i = 0; i < TORTURE_GROUPS; i++)
		torture_group_init(&torture.group[i]);
	task = kthread_run(conduct, NULL, "torture");
	if (IS_ERR(task))
		return PTR_ERR(task);
	conductor = task;
	added = true;
	return 0;
}

static void torture_remove(struct ib_device *dev, void *client_data)
{
	WRITE_ONCE(torture.stop, true);
	kthread_stop(conductor);
}

static struct ib_client client = {
	.name = "herald_torture",
	.add = torture_add,
	.remove = torture_remove,
};

static int __init torture_init(void)
{
	int rc;

	if (!device)
		return -EINVAL;
	rc = ib_register_client(&client);
	if (rc)
		return rc;
	if (!added) {
		ib_unregister_client(&client);
		return -ENODEV;
	}
	dir = debugfs_create_dir("herald_torture", NULL);
	debugfs_create_file("results", 0444, dir, NULL, &results_fops);
	debugfs_create_file("state", 0444, dir, NULL, &state_fops);
	return 0;
}

static void __exit torture_exit(void)
{
	debugfs_remove_recursive(dir);
	ib_unregister_client(&client);
}

module_init(torture_init);
module_exit(torture_exit);
MODULE_DESCRIPTION("Torture of an RDMA device's completion events");
MODULE_LICENSE("Dual BSD/GPL");
