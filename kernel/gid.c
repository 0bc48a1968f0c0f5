// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/*
 * The GID table, as the core keeps it, in a form that the data path can read
 * in any context.
 */
#include <net/ipv6.h>
#include <net/l3mdev.h>

#include "ah.h"
#include "device.h"
#include "path_migration.h"

static void herald_gid_set(struct herald_dev *dev, u32 index, const union ib_gid *gid, int ifindex)
{
	struct herald_gid_slot *slot = &dev->gids[index];
	unsigned long flags;
	unsigned int used;

	write_seqlock_irqsave(&dev->gid_lock, flags);
	slot->valid = !!gid;
	if (gid)
		slot->gid = *gid;
	slot->ifindex = ifindex;
	used = max(dev->gids_used, index + 1);
	while (used && !dev->gids[used - 1].valid)
		used--;
	dev->gids_used = used;
	write_sequnlock_irqrestore(&dev->gid_lock, flags);
	herald_paths_changed();
}

int herald_add_gid(const struct ib_gid_attr *attr, void **context)
{
	struct net_device *ndev;
	int ifindex;

	if (attr->index >= HERALD_GID_TABLE_LEN)
		return -EINVAL;
	rcu_read_lock();
	ndev = rcu_dereference(attr->ndev);
	ifindex = ndev ? ndev->ifindex : 0;
	rcu_read_unlock();
	herald_gid_set(to_hdev(attr->device), attr->index, &attr->gid, ifindex);
	return 0;
}

int herald_del_gid(const struct ib_gid_attr *attr, void **context)
{
	if (attr->index >= HERALD_GID_TABLE_LEN)
		return -EINVAL;
	herald_gid_set(to_hdev(attr->device), attr->index, NULL, 0);
	return 0;
}

/* What is looked for among the GIDs: an address, or an interface */
struct herald_gid_query {
	const union ib_gid *gid;
	int ifindex;	/* with @gid: the interface that it is meant from; 0: any */
	struct net *net;	/* of @ifindex, with @gid */
	u32 first;	/* the entry to look at first */
};

/*
 * Is it the address that is meant?  A link-local one is another on each link, and any
 * other one in each L3 domain (VRF): there routing would find somebody else.
 */
static bool herald_gid_in_scope(const struct herald_gid_slot *slot,
				const struct herald_gid_query *q)
{
	if (!q->ifindex || slot->ifindex == q->ifindex)
		return true;
	if (ipv6_addr_type((const struct in6_addr *)q->gid) & IPV6_ADDR_LINKLOCAL)
		return false;
	return l3mdev_master_ifindex_by_index(q->net, slot->ifindex) ==
	       l3mdev_master_ifindex_by_index(q->net, q->ifindex);
}

static bool herald_gid_matches(const struct herald_gid_slot *slot, const struct herald_gid_query *q)
{
	if (!slot->valid)
		return false;
	if (!q->gid)
		return slot->ifindex == q->ifindex;
	return !memcmp(&slot->gid, q->gid, sizeof(slot->gid)) && herald_gid_in_scope(slot, q);
}

static const struct herald_gid_slot *herald_gid_scan(const struct herald_dev *dev,
						     const struct herald_gid_query *q)
{
	unsigned int used = min_t(unsigned int, READ_ONCE(dev->gids_used), HERALD_GID_TABLE_LEN);
	unsigned int i;

	if (q->first < used && herald_gid_matches(&dev->gids[q->first], q))
		return &dev->gids[q->first];
	for (i = 0; i < used; i++)
		if (herald_gid_matches(&dev->gids[i], q))
			return &dev->gids[i];
	return NULL;
}

/* The index of one, or -1; *ifindex is its interface. */
static int herald_gid_find(struct herald_dev *dev, const struct herald_gid_query *q, int *ifindex)
{
	const struct herald_gid_slot *slot;
	unsigned int seq;

	do {
		seq = read_seqbegin(&dev->gid_lock);
		slot = herald_gid_scan(dev, q);
		*ifindex = slot ? slot->ifindex : 0;
	} while (read_seqretry(&dev->gid_lock, seq));
	return slot ? slot - dev->gids : -1;
}

bool herald_dev_has_gid(struct herald_dev *dev, const union ib_gid *gid)
{
	struct herald_gid_query q = { .gid = gid };
	int ifindex;

	return herald_gid_find(dev, &q, &ifindex) >= 0;
}

bool herald_dev_is_at(struct herald_dev *dev, struct net *net, const union ib_gid *gid, int from)
{
	struct herald_gid_query q = { .gid = gid, .ifindex = from, .net = net };
	int ifindex;

	return net && herald_dev_net(dev) == net && herald_gid_find(dev, &q, &ifindex) >= 0;
}

int herald_dev_gid_index(struct herald_dev *dev, const union ib_gid *gid, u8 hint)
{
	struct herald_gid_query q = { .gid = gid, .first = hint };
	int ifindex;

	return herald_gid_find(dev, &q, &ifindex);
}

int herald_dev_av_ifindex(struct herald_dev *dev, const struct herald_av *av)
{
	struct herald_gid_query q = { .gid = &av->sgid, .first = av->sgid_index };
	int ifindex;

	herald_gid_find(dev, &q, &ifindex);
	return ifindex;
}

bool herald_dev_has_ifindex(struct herald_dev *dev, int ifindex)
{
	struct herald_gid_query q = { .ifindex = ifindex };

	return herald_gid_find(dev, &q, &ifindex) >= 0;
}
