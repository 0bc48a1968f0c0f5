// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/*
 * Devices: made on an interface, found by it or by a GID, and removed.
 *
 * A device leaves in three ways (its link is deleted, its interface goes, the
 * module goes), which may meet.  ib_core runs herald_dealloc_driver() once,
 * whoever is first.  What RCU readers may still see is freed by a work item,
 * which first passes the fence that ib_unregister_device() is: so when its
 * work queue is drained, no code of this module runs for a device any more.
 * (ib_unregister_driver() will not do: others share RDMA_DRIVER_UNKNOWN.)
 */
#include <linux/etherdevice.h>
#include <linux/if_arp.h>
#include <linux/rculist.h>
#include <linux/rtnetlink.h>
#include <net/addrconf.h>
#include <rdma/ib_addr.h>
#include <rdma/ib_user_verbs.h>

#include "control.h"
#include "cq_table.h"
#include "device.h"
#include "ioctl.h"
#include "mr.h"
#include "srq.h"
#include "wire.h"

/* Writers of the list; readers use RCU. */
static DEFINE_SPINLOCK(herald_devices_lock);
static LIST_HEAD(herald_devices);

/*
 * Not herald_wq: that makes progress without memory by a single thread, and
 * those whom a reaper waits for may wait for work there.
 */
static struct workqueue_struct *herald_reap_wq;

/* ------------------------------------------------------------ finding -- */

/* Context: RCU. */
static struct herald_dev *herald_device_on(struct net_device *ndev)
{
	struct herald_dev *dev;

	list_for_each_entry_rcu(dev, &herald_devices, node)
		if (rcu_access_pointer(dev->ndev) == ndev)
			return dev;
	return NULL;
}

struct net *herald_dev_net(struct herald_dev *dev)
{
	struct net_device *ndev = rcu_dereference(dev->ndev);

	return ndev ? dev_net(ndev) : NULL;
}

struct herald_dev *herald_dev_find_by_gid(struct net *net, const union ib_gid *gid, int from,
					  struct herald_dev *hint)
{
	struct herald_dev *dev;

	if (hint && herald_dev_is_at(hint, net, gid, from))
		return hint;
	list_for_each_entry_rcu(dev, &herald_devices, node)
		if (herald_dev_is_at(dev, net, gid, from))
			return dev;
	return NULL;
}

struct herald_dev *herald_dev_first(struct net *net)
{
	struct herald_dev *dev;

	list_for_each_entry_rcu(dev, &herald_devices, node)
		if (herald_dev_net(dev) == net)
			return dev;
	return NULL;
}

void herald_devs_on_interface(struct net *net, int ifindex,
			      void (*fn)(struct herald_dev *dev, void *arg), void *arg)
{
	struct herald_dev *dev;

	list_for_each_entry_rcu(dev, &herald_devices, node)
		if (herald_dev_net(dev) == net && herald_dev_has_ifindex(dev, ifindex))
			fn(dev, arg);
}

u32 herald_dev_mtu(struct herald_dev *dev)
{
	struct net_device *ndev;
	enum ib_mtu mtu = 0;

	rcu_read_lock();
	ndev = rcu_dereference(dev->ndev);
	if (ndev)
		mtu = iboe_get_mtu(READ_ONCE(ndev->mtu));
	rcu_read_unlock();
	return mtu ? ib_mtu_enum_to_int(mtu) : 256;
}

/* -------------------------------------------------------------- going -- */

static void herald_device_free_tables(struct herald_dev *dev)
{
	WARN_ON(!xa_empty(&dev->keys));
	WARN_ON(!xa_empty(&dev->ahs));
	WARN_ON(!list_empty(&dev->routes.list));
	xa_destroy(&dev->keys);
	xa_destroy(&dev->ahs);
	herald_faults_exit(dev);
	herald_cqs_exit(dev);
	herald_srqs_exit(dev);
	kvfree(dev->gids);
	free_percpu(dev->counters);
}

static void herald_device_reap(struct work_struct *work)
{
	struct herald_dev *dev = container_of(work, struct herald_dev, reap);

	/* Nothing is left to unregister: this waits for who is still at it. */
	ib_unregister_device(&dev->ib);
	synchronize_rcu();
	herald_port_exit(dev);
	herald_device_free_tables(dev);
	put_device(&dev->ib.dev);
}

/* The core is done with the device; also called by ib_dealloc_device(). */
static void herald_dealloc_driver(struct ib_device *ibdev)
{
	struct herald_dev *dev = to_hdev(ibdev);

	WRITE_ONCE(dev->dead, true);
	herald_control_remove(dev);
	herald_wire_detach(dev);
	/* Queued under the lock: whoever sees the list empty can drain the queue. */
	spin_lock(&herald_devices_lock);
	if (!list_empty(&dev->node))
		list_del_rcu(&dev->node);
	queue_work(herald_reap_wq, &dev->reap);
	spin_unlock(&herald_devices_lock);
}

void herald_device_netdev_gone(struct net_device *ndev)
{
	struct herald_dev *dev;

	ASSERT_RTNL();
	rcu_read_lock();
	dev = herald_device_on(ndev);
	if (dev) {
		get_device(&dev->ib.dev);
		WRITE_ONCE(dev->dead, true);
		RCU_INIT_POINTER(dev->ndev, NULL);
		herald_port_gone(dev);
	}
	/* One that is still registering unregisters itself when it is done. */
	if (dev && dev->registered && ib_device_try_get(&dev->ib)) {
		ib_unregister_device_queued(&dev->ib);
		ib_device_put(&dev->ib);
	}
	rcu_read_unlock();
	if (!dev)
		return;
	/* The namespace may go as soon as its interfaces have. */
	herald_wire_detach(dev);
	put_device(&dev->ib.dev);
}

static struct herald_dev *herald_device_first(void)
{
	struct herald_dev *dev;

	spin_lock(&herald_devices_lock);
	dev = list_first_entry_or_null(&herald_devices, struct herald_dev, node);
	if (dev)
		get_device(&dev->ib.dev);
	spin_unlock(&herald_devices_lock);
	return dev;
}

void herald_device_remove_all(void)
{
	struct herald_dev *dev;

	while ((dev = herald_device_first())) {
		ib_unregister_device(&dev->ib);
		put_device(&dev->ib.dev);
	}
	drain_workqueue(herald_reap_wq);
}

/* ------------------------------------------------------------- coming -- */

/* It has its name, and nobody has it yet. */
static int herald_enable_driver(struct ib_device *ibdev)
{
	herald_control_add(to_hdev(ibdev));
	return 0;
}

static const struct ib_device_ops herald_lifetime_ops = {
	.enable_driver = herald_enable_driver,
	.dealloc_driver = herald_dealloc_driver,
};

static int herald_device_init_tables(struct herald_dev *dev)
{
	INIT_LIST_HEAD(&dev->node);
	INIT_WORK(&dev->reap, herald_device_reap);
	herald_keys_init(dev);
	xa_init_flags(&dev->ahs, XA_FLAGS_ALLOC1);
	herald_cqs_init(dev);
	herald_srqs_init(dev);
	herald_faults_init(dev);
	herald_port_init(dev);
	seqlock_init(&dev->gid_lock);
	spin_lock_init(&dev->gsi_lock);
	spin_lock_init(&dev->mcast.lock);
	hash_init(dev->mcast.groups);
	spin_lock_init(&dev->routes.lock);
	INIT_LIST_HEAD(&dev->routes.list);

	dev->gids = kvcalloc(HERALD_GID_TABLE_LEN, sizeof(*dev->gids), GFP_KERNEL);
	dev->counters = alloc_percpu(struct herald_counters);
	return dev->gids && dev->counters ? 0 : -ENOMEM;
}

static void herald_device_init_ib(struct herald_dev *dev, struct net_device *ndev)
{
	struct ib_device *ibdev = &dev->ib;
	u8 mac[ETH_ALEN];

	/* lo has no address of its own, and more than one namespace has a lo */
	if (ndev->addr_len == ETH_ALEN && is_valid_ether_addr(ndev->dev_addr))
		ether_addr_copy(mac, ndev->dev_addr);
	else
		eth_random_addr(mac);
	addrconf_addr_eui48_base((u8 *)&ibdev->node_guid, (const char *)mac);

	ibdev->node_type = RDMA_NODE_IB_CA;
	ibdev->phys_port_cnt = 1;
	cpumask_copy(&dev->vector_cpus, cpu_online_mask);
	ibdev->num_comp_vectors = cpumask_weight(&dev->vector_cpus);
	ibdev->local_dma_lkey = 0;
	strscpy(ibdev->node_desc, "herald", sizeof(ibdev->node_desc));
	ibdev->driver_def = herald_uapi_definitions;

	ib_set_device_ops(ibdev, &herald_dev_ops);
	ib_set_device_ops(ibdev, &herald_compat_ops);
	ib_set_device_ops(ibdev, &herald_lifetime_ops);
}

static struct herald_dev *herald_device_alloc(struct net_device *ndev)
{
	struct herald_dev *dev = ib_alloc_device_with_net(herald_dev, ib, dev_net(ndev));

	if (!dev)
		return NULL;
	if (herald_device_init_tables(dev)) {
		herald_device_free_tables(dev);
		ib_dealloc_device(&dev->ib);
		return NULL;
	}
	herald_device_init_ib(dev, ndev);
	get_device(&dev->ib.dev);	/* put by herald_device_reap() */
	return dev;
}

/*
 * Tie the device to its interface.  From here on the notifier knows it.
 *
 * The core adds the addresses of a VLAN interface to the device on the real
 * interface under it, and only there; so that is the one it is told of.
 */
static int herald_device_attach(struct herald_dev *dev, struct net_device *ndev)
{
	struct net_device *real = rdma_vlan_dev_real_dev(ndev) ?: ndev;
	bool taken;
	int err;

	ASSERT_RTNL();
	if (ndev->reg_state != NETREG_REGISTERED)
		return -ENODEV;
	rcu_read_lock();
	taken = herald_device_on(ndev);
	rcu_read_unlock();
	if (taken)
		return -EEXIST;
	err = herald_wire_attach(dev, dev_net(ndev));
	if (err)
		return err;
	err = ib_device_set_netdev(&dev->ib, real, 1);
	if (err)
		return err;	/* the caller's ib_dealloc_device() detaches it */

	rcu_assign_pointer(dev->ndev, ndev);
	herald_port_attach(dev);
	spin_lock(&herald_devices_lock);
	list_add_tail_rcu(&dev->node, &herald_devices);
	spin_unlock(&herald_devices_lock);
	return 0;
}

void herald_device_port_changed(struct net_device *ndev)
{
	struct herald_dev *dev;

	rcu_read_lock();
	dev = herald_device_on(ndev);
	if (dev)
		herald_port_update(dev);
	rcu_read_unlock();
}

/* Registered: catch up with what the interface did meanwhile. */
static int herald_device_registered(struct herald_dev *dev)
{
	bool gone;

	rtnl_lock();
	dev->registered = true;
	gone = !rcu_access_pointer(dev->ndev);
	if (!gone)
		herald_port_update(dev);
	rtnl_unlock();
	if (!gone)
		return 0;
	ib_unregister_device(&dev->ib);
	return -ENODEV;
}

int herald_device_create(const char *name, struct net_device *ndev)
{
	struct herald_dev *dev;
	int err;

	if (ndev->type != ARPHRD_ETHER && ndev->type != ARPHRD_LOOPBACK)
		return -EINVAL;
	dev = herald_device_alloc(ndev);
	if (!dev)
		return -ENOMEM;

	rtnl_lock();
	err = herald_device_attach(dev, ndev);
	rtnl_unlock();
	if (err)
		goto dealloc;

	if (name)
		ib_mark_name_assigned_by_user(&dev->ib);
	/* Somebody may delete the link as soon as it is there. */
	get_device(&dev->ib.dev);
	err = ib_register_device(&dev->ib, name ?: "herald%d", NULL);
	if (!err) {
		err = herald_device_registered(dev);
		put_device(&dev->ib.dev);
		return err;
	}
	put_device(&dev->ib.dev);
	if (err == -ENFILE)	/* the core's word for a name that is taken */
		err = -EEXIST;
dealloc:
	ib_dealloc_device(&dev->ib);
	return err;
}

int herald_device_module_init(void)
{
	herald_reap_wq = alloc_workqueue("herald_reap", WQ_UNBOUND, 0);
	return herald_reap_wq ? 0 : -ENOMEM;
}

void herald_device_module_exit(void)
{
	destroy_workqueue(herald_reap_wq);
}
