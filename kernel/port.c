// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/*
 * The port: its state, which follows the interface's or was provoked, its
 * speed, and its P_Keys.
 *
 * dev->port.up is what was last reported.  Queries and the data path go by it
 * and by nothing else, so that they never disagree with the events; a change
 * is visible before its event is.  All changes are made under RTNL, as are the
 * interface's own.
 */
#include <linux/ethtool.h>
#include <linux/netdevice.h>
#include <linux/rtnetlink.h>

#include "device.h"
#include "event.h"

/* What a provoked PKEY_CHANGE puts into the second entry: full member of partition 1. */
#define SECOND_PKEY	0x8001

static bool link_is_up(struct herald_dev *dev)
{
	struct net_device *ndev = rtnl_dereference(dev->ndev);

	return ndev && netif_running(ndev) && netif_carrier_ok(ndev);
}

static u32 link_speed(struct herald_dev *dev)
{
	struct net_device *ndev = rtnl_dereference(dev->ndev);
	struct ethtool_link_ksettings settings = {};

	if (!ndev || __ethtool_get_link_ksettings(ndev, &settings) ||
	    settings.base.speed == (u32)SPEED_UNKNOWN)
		return 0;
	return settings.base.speed;
}

/* ------------------------------------------------------------- speed -- */

/*
 * A work item's affair: those who tell of an interface's changes may hold a
 * lock that asking for its speed takes.
 */
static void speed_work(struct work_struct *work)
{
	struct herald_dev *dev = container_of(work, struct herald_dev, port.speed_work);
	u32 speed;

	rtnl_lock();
	speed = link_speed(dev);
	if (dev->port.up && !dev->port.new && speed != dev->port.speed &&
	    ib_device_try_get(&dev->ib)) {
		herald_event_port(dev, HERALD_EVENT_SPEED_CHANGE, false);
		ib_device_put(&dev->ib);
	}
	dev->port.speed = speed;
	dev->port.new = false;
	rtnl_unlock();
}

/* Kernels that know no such event have nobody to tell. */
static void look_for_speed(struct herald_dev *dev)
{
	if (HERALD_HAS_SPEED_CHANGE)
		schedule_work(&dev->port.speed_work);
}

/* ------------------------------------------------------------- state -- */

void herald_port_init(struct herald_dev *dev)
{
	dev->port.pkeys[0] = HERALD_DEFAULT_PKEY;
	INIT_WORK(&dev->port.speed_work, speed_work);
}

void herald_port_exit(struct herald_dev *dev)
{
	cancel_work_sync(&dev->port.speed_work);
}

void herald_port_attach(struct herald_dev *dev)
{
	ASSERT_RTNL();
	dev->port.link = link_is_up(dev);
	dev->port.up = dev->port.link;
	dev->port.speed = HERALD_HAS_SPEED_CHANGE ? link_speed(dev) : 0;
}

static void report(struct herald_dev *dev, bool up, bool provoked)
{
	WRITE_ONCE(dev->port.up, up);
	if (up) {
		dev->port.new = true;
		look_for_speed(dev);
	}
	herald_event_port(dev, up ? IB_EVENT_PORT_ACTIVE : IB_EVENT_PORT_ERR, provoked);
}

/* The change that the link makes to a port that nobody has stopped, or that it frees. */
static void follow_link(struct herald_dev *dev)
{
	bool link = link_is_up(dev);

	if (link && !dev->port.link)
		dev->port.stopped = false;
	dev->port.link = link;
	link = link && !dev->port.stopped;
	if (link != dev->port.up)
		report(dev, link, false);
	look_for_speed(dev);
}

void herald_port_update(struct herald_dev *dev)
{
	ASSERT_RTNL();
	if (!dev->registered || !ib_device_try_get(&dev->ib))
		return;
	follow_link(dev);
	ib_device_put(&dev->ib);
}

void herald_port_gone(struct herald_dev *dev)
{
	ASSERT_RTNL();
	WRITE_ONCE(dev->port.up, false);
}

/* ---------------------------------------------------------- provoked -- */

int herald_port_stop(struct herald_dev *dev)
{
	rtnl_lock();
	dev->port.stopped = true;
	report(dev, false, true);
	rtnl_unlock();
	return 0;
}

int herald_port_start(struct herald_dev *dev)
{
	int ret = -EINVAL;

	rtnl_lock();
	if (dev->port.link) {
		dev->port.stopped = false;
		report(dev, true, true);
		ret = 0;
	}
	rtnl_unlock();
	return ret;
}

int herald_port_change_pkeys(struct herald_dev *dev)
{
	u16 *pkey = &dev->port.pkeys[1];

	rtnl_lock();
	WRITE_ONCE(*pkey, *pkey ? 0 : SECOND_PKEY);
	herald_event_port(dev, IB_EVENT_PKEY_CHANGE, true);
	rtnl_unlock();
	return 0;
}
