// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/* What is done to a device on purpose: the files in debugfs, and their commands. */
#include <linux/debugfs.h>
#include <linux/kstrtox.h>
#include <linux/seq_file.h>
#include <linux/string.h>
#include <linux/uaccess.h>
#include <rdma/restrack.h>

#include "cq.h"
#include "cq_hold.h"
#include "cq_table.h"
#include "device.h"
#include "fault.h"

static struct dentry *herald_root;

/* ----------------------------------------------------------------- the CQs -- */

static int show_cq(struct herald_cq *cq, void *arg)
{
	struct seq_file *m = arg;
	struct herald_cq_info info;

	if (!rdma_restrack_is_tracked(&cq->ib.res))
		return 0;	/* not quite made yet */
	herald_cq_look(cq, &info);
	seq_printf(m, "%u %d %u %d %u %u %u %s %s", cq->ib.res.id, cq->pid, cq->cpu, cq->ib.cqe,
		   info.unpolled, info.held, info.waiting, herald_arm_state_name(info.armed),
		   info.dead ? "dead" : "ok");
#define HERALD_CQ_STAT(name) seq_printf(m, " %llu", info.stats.name);
	HERALD_CQ_STATS(HERALD_CQ_STAT)
#undef HERALD_CQ_STAT
	seq_putc(m, '\n');
	return 0;
}

static int cqs_show(struct seq_file *m, void *unused)
{
	seq_puts(m, "cqn pid cpu cqe unpolled held waiting armed state");
#define HERALD_CQ_STAT(name) seq_puts(m, " " #name);
	HERALD_CQ_STATS(HERALD_CQ_STAT)
#undef HERALD_CQ_STAT
	seq_putc(m, '\n');
	return herald_cqs_each(m->private, show_cq, m);
}
DEFINE_SHOW_ATTRIBUTE(cqs);

/* ---------------------------------------------------------------- commands -- */

static int do_hold(struct herald_cq *cq, u64 unused)
{
	return herald_cq_hold(cq);
}

static int do_release(struct herald_cq *cq, u64 n)
{
	return herald_cq_release(cq, HERALD_HOLD_NOW, n);
}

static int do_release_before(struct herald_cq *cq, u64 n)
{
	return herald_cq_release(cq, HERALD_HOLD_BEFORE_ARM, n);
}

static int do_release_after(struct herald_cq *cq, u64 n)
{
	return herald_cq_release(cq, HERALD_HOLD_AFTER_ARM, n);
}

static int do_resume(struct herald_cq *cq, u64 unused)
{
	herald_cq_resume(cq);
	return 0;
}

static int do_event(struct herald_cq *cq, u64 n)
{
	herald_cq_extra_events(cq, n);
	return 0;
}

#define MAX_NUMBER	1000000u
#define MAX_EVENTS	1000u		/* each takes memory until it is read */

/* COMMAND CQN [NUMBER]; CQN is what `rdma resource show cq` calls the CQ. */
static const struct command {
	const char *name;
	int (*run)(struct herald_cq *cq, u64 number);
	u64 max;	/* of NUMBER, which is 1 if it is not given; 0: takes none */
} commands[] = {
	/* hold back what completes from now on */
	{ "hold", do_hold },
	/* release NUMBER of what is held: now; or just before, or just after, the next arm */
	{ "release", do_release, MAX_NUMBER },
	{ "release-before-arm", do_release_before, MAX_NUMBER },
	{ "release-after-arm", do_release_after, MAX_NUMBER },
	/* let completions of different queues overtake each other; NUMBER is the seed */
	{ "reorder", herald_cq_reorder, U64_MAX },
	/* release all, hold and reorder no more */
	{ "resume", do_resume },
	/* raise NUMBER completion events that no completion causes */
	{ "event", do_event, MAX_EVENTS },
};

struct request {
	const struct command *command;
	u32 cqn;
	u64 number;
	bool found;
};

static int parse(char *line, struct request *r)
{
	char *name = strsep(&line, " "), *cqn = strsep(&line, " "), *number = strsep(&line, " ");
	size_t i;

	*r = (struct request){ .number = 1 };
	for (i = 0; i < ARRAY_SIZE(commands); i++)
		if (!strcmp(name, commands[i].name))
			r->command = &commands[i];
	if (!r->command || !cqn || line || kstrtou32(cqn, 10, &r->cqn))
		return -EINVAL;
	if (!number)
		return 0;
	if (kstrtou64(number, 10, &r->number) || r->number > r->command->max)
		return -EINVAL;
	return 0;
}

static int run_on_cq(struct herald_cq *cq, void *arg)
{
	struct request *r = arg;
	int ret;

	if (!rdma_restrack_is_tracked(&cq->ib.res) || cq->ib.res.id != r->cqn)
		return 0;
	r->found = true;
	ret = r->command->run(cq, r->number);
	return ret < 0 ? ret : 1;
}

static ssize_t control_write(struct file *file, const char __user *buf, size_t len, loff_t *pos)
{
	struct herald_dev *dev = file->private_data;
	struct request request;
	char line[64];
	int ret;

	if (len >= sizeof(line))
		return -EINVAL;
	if (copy_from_user(line, buf, len))
		return -EFAULT;
	line[len] = '\0';
	ret = parse(strim(line), &request);
	if (ret)
		return ret;
	ret = herald_cqs_each(dev, run_on_cq, &request);
	if (ret < 0)
		return ret;
	return request.found ? len : -ENOENT;
}

static const struct file_operations control_fops = {
	.owner = THIS_MODULE,
	.open = simple_open,
	.write = control_write,
	.llseek = noop_llseek,
};

/* ------------------------------------------------------------------- files -- */

void herald_fault_add(struct herald_dev *dev)
{
	dev->debugfs = debugfs_create_dir(dev_name(&dev->ib.dev), herald_root);
	debugfs_create_file("cqs", 0400, dev->debugfs, dev, &cqs_fops);
	debugfs_create_file("control", 0200, dev->debugfs, dev, &control_fops);
}

void herald_fault_remove(struct herald_dev *dev)
{
	debugfs_remove_recursive(dev->debugfs);
	dev->debugfs = NULL;
}

void herald_fault_module_init(void)
{
	herald_root = debugfs_create_dir("herald", NULL);
}

void herald_fault_module_exit(void)
{
	debugfs_remove_recursive(herald_root);
}
