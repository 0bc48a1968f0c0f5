// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/* Which packets are whose, and which way they go. */
#include <linux/ip.h>
#include <linux/ipv6.h>
#include <net/ipv6.h>

#include "device.h"
#include "path_migration.h"
#include "pkt.h"
#include "wire_qp.h"

/* The highest bit: a full member of the partition, who hears all of it (IBTA vol. 1, 10.9.3). */
#define PKEY_FULL	0x8000

bool herald_pkey_matches(const struct herald_qp *qp, u16 pkey)
{
	if (qp->type == IB_QPT_GSI)
		return pkey & ~PKEY_FULL;
	return herald_qp_partition(qp) && (pkey | PKEY_FULL) == herald_qp_partition(qp);
}

static void gid_of_ipv4(union ib_gid *gid, __be32 address)
{
	ipv6_addr_set_v4mapped(address, (struct in6_addr *)gid);
}

static void addresses(const struct sk_buff *skb, union ib_gid *from, union ib_gid *to)
{
	if (ip_hdr(skb)->version == 4) {
		gid_of_ipv4(from, ip_hdr(skb)->saddr);
		gid_of_ipv4(to, ip_hdr(skb)->daddr);
	} else {
		memcpy(from, &ipv6_hdr(skb)->saddr, sizeof(*from));
		memcpy(to, &ipv6_hdr(skb)->daddr, sizeof(*to));
	}
}

bool herald_wire_arrives(struct herald_qp *qp, const struct sk_buff *skb,
			 const struct herald_pkt *pkt, struct herald_deferred *d)
{
	/* all of ours are full members: what the sender is does not matter */
	u16 pkey = pkt->pkey | PKEY_FULL;
	u8 class = qp->type == IB_QPT_UC ? HERALD_CLASS_UC : HERALD_CLASS_RC;
	union ib_gid from, to;

	if ((pkt->opcode & HERALD_CLASS_MASK) != class) {
		herald_count(qp->dev, HERALD_CTR_wire_wrong_service);
		return false;
	}
	addresses(skb, &from, &to);
	switch (herald_path_of_packet(qp, &from, &to, pkey, pkt->migreq)) {
	case HERALD_ARRIVES:
		return true;
	case HERALD_ARRIVES_ARMING:
		herald_mig_peer_ready(qp);
		return true;
	case HERALD_ARRIVES_MOVED:
		if (herald_mig_follow_from(qp, &from, &to, pkey, d))
			return true;
		break;
	default:
		break;
	}
	herald_count(qp->dev, HERALD_CTR_wire_wrong_path);
	return false;
}

bool herald_wire_has_others(struct herald_dev *dev)
{
	struct net_device *ndev;
	bool others;

	if (herald_wire_mode() == HERALD_WIRE_FORCE)
		return true;
	rcu_read_lock();
	ndev = rcu_dereference(dev->ndev);
	others = ndev && !(ndev->flags & IFF_LOOPBACK);
	rcu_read_unlock();
	return others;
}

bool herald_wire_wanted(struct herald_qp *qp, const struct herald_av *av)
{
	bool local;
	int from;

	switch (herald_wire_mode()) {
	case HERALD_WIRE_OFF:
		return false;
	case HERALD_WIRE_FORCE:
		return true;
	default:
		break;
	}
	/* a source address that is gone: there is no route from it, and nobody is near it */
	from = herald_dev_av_ifindex(qp->dev, av);
	rcu_read_lock();
	local = from && herald_dev_find_by_gid(herald_dev_net(qp->dev), &av->dgid, from, qp->dev);
	rcu_read_unlock();
	return !local;
}
