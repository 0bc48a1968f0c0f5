// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/* What is done to a device on purpose: the files in debugfs, and their commands. */
#include <linux/debugfs.h>
#include <linux/kstrtox.h>
#include <linux/moduleparam.h>
#include <linux/string.h>
#include <linux/uaccess.h>
#include <rdma/restrack.h>

#include "control.h"
#include "cq.h"
#include "cq_hold.h"
#include "cq_table.h"
#include "debugfs_tables.h"
#include "device.h"
#include "fault_command.h"
#include "provoke.h"

static struct dentry *herald_root;

static bool provoke;
module_param(provoke, bool, 0444);
MODULE_PARM_DESC(provoke, "New devices take commands that provoke events and faults (default: no)");

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
	/* the core warns of an event that it did not ask for */
	if (cq->ib.poll_ctx == IB_POLL_DIRECT)
		return -EOPNOTSUPP;
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

static int run_cq_command(struct herald_dev *dev, char *line)
{
	struct request request;
	int ret;

	ret = parse(line, &request);
	if (ret)
		return ret;
	ret = herald_cqs_each(dev, run_on_cq, &request);
	if (ret < 0)
		return ret;
	return request.found ? 0 : -ENOENT;
}

#define PROVOKE	"provoke "
#define FAULT	"fault "

/* The longest command there is, and some. */
#define MAX_LINE	128

static int run_line(struct herald_dev *dev, char *line)
{
	if (strstarts(line, PROVOKE))
		return herald_provoke(dev, line + strlen(PROVOKE));
	if (strstarts(line, FAULT))
		return herald_fault_command(dev, line + strlen(FAULT));
	return run_cq_command(dev, line);
}

static ssize_t control_write(struct file *file, const char __user *buf, size_t len, loff_t *pos)
{
	struct herald_dev *dev = file->private_data;
	char line[MAX_LINE];
	int ret;

	if (!READ_ONCE(dev->allow))
		return -EPERM;
	if (len >= sizeof(line))
		return -EINVAL;
	if (copy_from_user(line, buf, len))
		return -EFAULT;
	line[len] = '\0';
	/* what follows a NUL was never looked at */
	if (strlen(line) != len)
		return -EINVAL;
	ret = run_line(dev, strim(line));
	return ret ?: len;
}

static const struct file_operations control_fops = {
	.owner = THIS_MODULE,
	.open = simple_open,
	.write = control_write,
	.llseek = noop_llseek,
};

/* ------------------------------------------------------------------- files -- */

static int allow_get(void *data, u64 *value)
{
	struct herald_dev *dev = data;

	*value = READ_ONCE(dev->allow);
	return 0;
}

static int allow_set(void *data, u64 value)
{
	struct herald_dev *dev = data;

	if (value > 1)
		return -EINVAL;
	WRITE_ONCE(dev->allow, value);
	/* nobody could clear them */
	if (!value)
		herald_fault_disarm(dev, 0);
	return 0;
}
DEFINE_DEBUGFS_ATTRIBUTE(allow_fops, allow_get, allow_set, "%llu\n");

void herald_control_add(struct herald_dev *dev)
{
	/* enabled anew, in another RDMA namespace: with the files that it has */
	if (dev->debugfs)
		return;
	dev->debugfs = debugfs_create_dir(dev_name(&dev->ib.dev), herald_root);
	dev->allow = provoke;
	herald_tables_add(dev);
	debugfs_create_file("control", 0200, dev->debugfs, dev, &control_fops);
	debugfs_create_file("allow", 0600, dev->debugfs, dev, &allow_fops);
	debugfs_create_atomic_t("fatal", 0400, dev->debugfs, &dev->fatal);
}

void herald_control_remove(struct herald_dev *dev)
{
	debugfs_remove_recursive(dev->debugfs);
	dev->debugfs = NULL;
}

void herald_control_module_init(void)
{
	herald_root = debugfs_create_dir("herald", NULL);
}

void herald_control_module_exit(void)
{
	debugfs_remove_recursive(herald_root);
}
