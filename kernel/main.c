// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/* The module: how devices come (rdma link add) and go, and what the interfaces tell. */
#include <linux/module.h>
#include <linux/netdevice.h>
#include <linux/rcupdate.h>
#include <linux/workqueue.h>
#include <rdma/rdma_netlink.h>

#include "device.h"
#include "control.h"
#include "qp.h"
#include "version.h"
#include "wire_mark.h"

struct workqueue_struct *herald_wq;

static int herald_newlink(const char *name, struct net_device *ndev)
{
	return herald_device_create(name, ndev);
}

static struct rdma_link_ops herald_link_ops = {
	.type = "herald",
	.newlink = herald_newlink,
};

/*
 * Called with RTNL held.  A new name of the interface changes nothing here: the
 * device has its own, and the interface's is looked up when it is shown.
 */
static int herald_netdev_event(struct notifier_block *nb, unsigned long event, void *info)
{
	struct net_device *ndev = netdev_notifier_info_to_dev(info);

	switch (event) {
	case NETDEV_UP:
	case NETDEV_DOWN:
	case NETDEV_CHANGE:
		herald_device_port_changed(ndev);
		break;
	case NETDEV_UNREGISTER:
		herald_device_netdev_gone(ndev);
		break;
	}
	return NOTIFY_DONE;
}

static struct notifier_block herald_netdev_nb = {
	.notifier_call = herald_netdev_event,
};

static int __init herald_init(void)
{
	int err;

	herald_mark_init();
	herald_wq = alloc_workqueue("herald", WQ_UNBOUND | WQ_MEM_RECLAIM, 0);
	if (!herald_wq)
		return -ENOMEM;

	err = herald_crc_init();
	if (err)
		goto destroy_wq;

	err = herald_qp_module_init();
	if (err)
		goto exit_crc;

	err = herald_device_module_init();
	if (err)
		goto exit_qp;

	err = register_netdevice_notifier(&herald_netdev_nb);
	if (err)
		goto exit_device;

	herald_control_module_init();
	rdma_link_register(&herald_link_ops);
	return 0;

exit_device:
	herald_device_module_exit();
exit_qp:
	herald_qp_module_exit();
exit_crc:
	herald_crc_exit();
destroy_wq:
	destroy_workqueue(herald_wq);
	return err;
}

static void __exit herald_exit(void)
{
	/* In this order: no new device, no news of interfaces, no device. */
	rdma_link_unregister(&herald_link_ops);
	unregister_netdevice_notifier(&herald_netdev_nb);
	herald_device_remove_all();
	herald_device_module_exit();
	herald_control_module_exit();
	destroy_workqueue(herald_wq);
	herald_qp_module_exit();
	rcu_barrier();
	herald_crc_exit();
}

module_init(herald_init);
module_exit(herald_exit);

MODULE_DESCRIPTION("Software RDMA NIC with exact events");
MODULE_AUTHOR("The herald authors");
MODULE_LICENSE("Dual BSD/GPL");
MODULE_VERSION(HERALD_VERSION);
MODULE_ALIAS_RDMA_LINK("herald");
