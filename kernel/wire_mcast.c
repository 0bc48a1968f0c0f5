// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/*
 * Multicast groups that the interface must listen to, lest the stack drops what comes
 * for their members.  The stack counts who listens; so does each member.
 */
#include <linux/igmp.h>
#include <linux/inetdevice.h>
#include <linux/netdevice.h>
#include <linux/rtnetlink.h>
#include <net/addrconf.h>
#include <net/ipv6.h>
#include <rdma/ib_verbs.h>

#include "device.h"
#include "wire.h"

static bool join_v4(struct net_device *ndev, __be32 group)
{
	struct in_device *in_dev = __in_dev_get_rtnl(ndev);

	if (in_dev)
		ip_mc_inc_group(in_dev, group);
	return in_dev;
}

static void leave_v4(struct net_device *ndev, __be32 group)
{
	struct in_device *in_dev = __in_dev_get_rtnl(ndev);

	if (in_dev)
		ip_mc_dec_group(in_dev, group);
}

static bool join_group(struct net_device *ndev, const struct in6_addr *group)
{
	if (ipv6_addr_v4mapped(group))
		return ipv4_is_multicast(group->s6_addr32[3]) &&
		       join_v4(ndev, group->s6_addr32[3]);
	return IS_ENABLED(CONFIG_IPV6) && ipv6_addr_is_multicast(group) &&
	       !ipv6_dev_mc_inc(ndev, group);
}

bool herald_wire_join(struct herald_dev *dev, const union ib_gid *group)
{
	struct net_device *ndev;
	bool joined;

	if (herald_wire_mode() == HERALD_WIRE_OFF)
		return false;
	rtnl_lock();
	ndev = rtnl_dereference(dev->ndev);
	joined = ndev && join_group(ndev, (const struct in6_addr *)group);
	rtnl_unlock();
	return joined;
}

void herald_wire_leave(struct herald_dev *dev, const union ib_gid *gid)
{
	const struct in6_addr *group = (const struct in6_addr *)gid;
	struct net_device *ndev;

	rtnl_lock();
	/* an interface that has gone took its memberships with it */
	ndev = rtnl_dereference(dev->ndev);
	if (ndev && ipv6_addr_v4mapped(group))
		leave_v4(ndev, group->s6_addr32[3]);
	else if (ndev && IS_ENABLED(CONFIG_IPV6))
		ipv6_dev_mc_dec(ndev, group);
	rtnl_unlock();
}
