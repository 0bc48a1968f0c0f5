// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/*
 * A consumer in the kernel, of any RDMA device. On loading it runs its tests on
 * the device named by the parameter, and leaves the results, in KTAP, in
 * debugfs: herald_krping/results. Loading succeeds if the device was there.
 */
#include <linux/debugfs.h>
#include <linux/module.h>
#include <linux/seq_file.h>
#include <linux/slab.h>

#include "krping.h"

static char *device;
module_param(device, charp, 0444);
MODULE_PARM_DESC(device, "the RDMA device to run on");

static bool faults;
module_param(faults, bool, 0444);
MODULE_PARM_DESC(faults, "run what krping_fault.c says, and only that (default: no)");

static const struct {
	const char *name;
	int (*run)(struct krping_rig *rig);
} data_tests[] = {
	{ "transfer", krping_test_transfer },
	{ "cases14_chains", krping_test_chains },
	{ "cases14_many_chains", krping_test_many_chains },
	{ "stale_key", krping_test_stale_key },
	{ "drain", krping_test_drain },
	{ "bad_wr", krping_test_bad_wr },
};

static const struct {
	const char *name;
	int (*run)(struct ib_device *dev);
} notify_tests[] = {
	{ "cases24_missed_events", krping_test_missed_events },
	{ "notify_flags", krping_test_notify_flags },
	{ "solicited", krping_test_solicited },
	{ "cases2_cases4_one_handler", krping_test_one_handler },
	{ "cases3_feeding", krping_test_feeding },
	{ "vectors", krping_test_vectors },
	{ "moderation", krping_test_moderation },
	{ "call_chain", krping_test_call_chain },
	{ "free_polled", krping_test_free_polled },
	{ "event_call_chain", krping_test_event_call_chain },
	{ "event_destroy", krping_test_event_destroy },
	{ "event_reset", krping_test_event_reset },
};

#define TESTS	(KRPING_POLLS * ARRAY_SIZE(data_tests) + ARRAY_SIZE(notify_tests))

static struct result {
	char name[48];
	int rc;
} results[TESTS];
static unsigned int nresults;
static bool ran;
static struct dentry *dir;

static void note(int rc, const char *prefix, const char *name)
{
	struct result *r = &results[nresults++];

	snprintf(r->name, sizeof(r->name), "%s%s", prefix, name);
	r->rc = rc;
	pr_info("herald_krping: %sok %u %s\n", rc ? "not " : "", nresults, r->name);
}

static int run_data_test(struct ib_device *dev, enum krping_poll poll,
			 int (*run)(struct krping_rig *rig))
{
	struct krping_rig *rig = kzalloc(sizeof(*rig), GFP_KERNEL);
	int rc = rig ? krping_rig_init(rig, dev, poll) : -ENOMEM;

	if (!rc) {
		rc = run(rig);
		/* no completion may come for what is on the stack of a test that gave up */
		ib_drain_qp(rig->end[0].qp);
		ib_drain_qp(rig->end[1].qp);
		krping_rig_exit(rig);
	}
	kfree(rig);
	return rc;
}

static int krping_add(struct ib_device *dev)
{
	char prefix[24];
	int poll, i;

	if (ran || strcmp(dev_name(&dev->dev), device))
		return -EOPNOTSUPP;
	ran = true;
	if (faults) {
		note(run_data_test(dev, KRPING_DIRECT, krping_test_faults), "", "faults");
		return -EOPNOTSUPP;
	}
	for (poll = 0; poll < KRPING_POLLS; poll++) {
		snprintf(prefix, sizeof(prefix), "%s_", krping_poll_names[poll]);
		for (i = 0; i < ARRAY_SIZE(data_tests); i++)
			note(run_data_test(dev, poll, data_tests[i].run), prefix,
			     data_tests[i].name);
	}
	for (i = 0; i < ARRAY_SIZE(notify_tests); i++)
		note(notify_tests[i].run(dev), "", notify_tests[i].name);
	return -EOPNOTSUPP;
}

static void krping_remove(struct ib_device *dev, void *client_data)
{
}

static struct ib_client client = {
	.name = "herald_krping",
	.add = krping_add,
	.remove = krping_remove,
};

static int results_show(struct seq_file *m, void *unused)
{
	unsigned int i;

	seq_printf(m, "KTAP version 1\n1..%u\n", nresults);
	for (i = 0; i < nresults; i++)
		seq_printf(m, "%sok %u %s%s\n", results[i].rc ? "not " : "", i + 1, results[i].name,
			   results[i].rc ? " # see the kernel's log" : "");
	return 0;
}
DEFINE_SHOW_ATTRIBUTE(results);

static int __init krping_init(void)
{
	int rc;

	if (!device)
		return -EINVAL;
	rc = ib_register_client(&client);
	if (rc)
		return rc;
	if (!ran) {
		ib_unregister_client(&client);
		return -ENODEV;
	}
	dir = debugfs_create_dir("herald_krping", NULL);
	debugfs_create_file("results", 0444, dir, NULL, &results_fops);
	return 0;
}

static void __exit krping_exit(void)
{
	debugfs_remove_recursive(dir);
	ib_unregister_client(&client);
}

module_init(krping_init);
module_exit(krping_exit);
MODULE_DESCRIPTION("Tests of an RDMA device from inside the kernel");
MODULE_LICENSE("Dual BSD/GPL");
