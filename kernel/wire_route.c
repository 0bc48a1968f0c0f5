// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/*
 * Routes: found once for a flow, and again when the stack says that the old one is
 * not valid any more or when the flow's addresses are others.
 *
 * What is remembered is immutable and read under RCU.  It is on its device's list,
 * so that all of it can be let go when the interface goes: a namespace does not
 * outlive its interfaces, and no route may outlive its namespace.
 */
#include <linux/slab.h>
#include <net/dst.h>
#include <net/ip.h>
#include <net/ip6_fib.h>
#include <net/ip_fib.h>
#include <net/ipv6.h>
#include <net/l3mdev.h>
#include <net/route.h>
#include <rdma/ib_verbs.h>

#include "ah.h"
#include "device.h"
#include "wire.h"

struct herald_path_cache {
	struct dst_entry *dst;
	u32 cookie;
	union ib_gid sgid;
	union ib_gid dgid;
	u32 flow_label;
	u8 sgid_index;
	u8 traffic_class;
	u16 sport;

	struct herald_route *route;	/* it is the cache of; NULL: of none any more */
	struct list_head node;		/* dev->routes.list */
	struct rcu_head rcu;
};

/* ------------------------------------------------------------ finding -- */

static bool gid_is_ipv4(const union ib_gid *gid)
{
	return ipv6_addr_v4mapped((const struct in6_addr *)gid);
}

static __be32 gid_ipv4(const union ib_gid *gid)
{
	return ((const struct in6_addr *)gid)->s6_addr32[3];
}

/*
 * Is there a route?  Asked for one by an interface, the stack takes for on its link
 * what there is none to, blackholes too.
 */
static int check_v4(struct net *net, const struct flowi4 *fl)
{
	struct flowi4 copy = *fl;
	struct fib_result res;

	return ipv4_is_multicast(fl->daddr) ? 0 : fib_lookup(net, &copy, &res, 0);
}

static struct dst_entry *find_v4(struct net *net, const struct herald_av *av,
				 struct net_device *ndev, u16 sport)
{
	struct flowi4 fl = {
		.daddr = gid_ipv4(&av->dgid),
		.saddr = gid_ipv4(&av->sgid),
		.flowi4_oif = ndev->ifindex,
		.flowi4_iif = LOOPBACK_IFINDEX,
		.flowi4_proto = IPPROTO_UDP,
		.fl4_sport = htons(sport),
		.fl4_dport = htons(ROCE_V2_UDP_DPORT),
	};
	struct rtable *rt;
	int err;

	/* An address of this host may be another interface's. */
	if (inet_addr_type_dev_table(net, ndev, fl.daddr) == RTN_LOCAL)
		fl.flowi4_oif = l3mdev_master_ifindex_rcu(ndev);
	herald_flow4_set_tos(&fl, av->traffic_class);
	err = check_v4(net, &fl);
	if (err)
		return ERR_PTR(err);
	rt = ip_route_output_flow(net, &fl, NULL);
	if (IS_ERR(rt))
		return ERR_CAST(rt);
	/* A process needs leave for a broadcast, and nobody has asked for it. */
	if (rt->rt_flags & RTCF_BROADCAST) {
		ip_rt_put(rt);
		return ERR_PTR(-EACCES);
	}
	return &rt->dst;
}

static struct dst_entry *find_v6(struct net *net, const struct herald_av *av,
				 struct net_device *ndev, u16 sport)
{
	struct flowi6 fl = {
		.flowi6_oif = ndev->ifindex,
		.flowi6_proto = IPPROTO_UDP,
		.flowlabel = ip6_make_flowinfo(av->traffic_class,
					       htonl(av->flow_label) & IPV6_FLOWLABEL_MASK),
		.fl6_sport = htons(sport),
		.fl6_dport = htons(ROCE_V2_UDP_DPORT),
	};

	if (!IS_ENABLED(CONFIG_IPV6))
		return ERR_PTR(-EAFNOSUPPORT);
	memcpy(&fl.daddr, &av->dgid, sizeof(fl.daddr));
	memcpy(&fl.saddr, &av->sgid, sizeof(fl.saddr));
	return ip6_dst_lookup_flow(net, NULL, &fl, NULL);
}

/* By the interface that has the source address, which a link-local one needs. */
static struct dst_entry *find_route(struct herald_dev *dev, struct net *net,
				    const struct herald_av *av, u16 sport)
{
	bool v4 = av->net_type == RDMA_NETWORK_IPV4;
	struct net_device *ndev;

	if (v4 != gid_is_ipv4(&av->dgid) || v4 != gid_is_ipv4(&av->sgid))
		return ERR_PTR(-EINVAL);
	ndev = dev_get_by_index_rcu(net, herald_dev_av_ifindex(dev, av));
	if (!ndev)
		return ERR_PTR(-EADDRNOTAVAIL);
	return v4 ? find_v4(net, av, ndev, sport) : find_v6(net, av, ndev, sport);
}

/* -------------------------------------------------------- remembering -- */

static void cache_free(struct herald_path_cache *cache)
{
	if (!cache)
		return;
	dst_release(cache->dst);
	kfree_rcu(cache, rcu);
}

/* Take what a route remembers off the list; to be freed.  Context: dev->routes.lock held. */
static struct herald_path_cache *unlink_cache(struct herald_dev *dev, struct herald_route *route)
{
	struct herald_path_cache *cache;

	cache = rcu_replace_pointer(route->cache, NULL, lockdep_is_held(&dev->routes.lock));
	if (cache)
		list_del(&cache->node);
	return cache;
}

void herald_route_drop(struct herald_dev *dev, struct herald_route *route)
{
	struct herald_path_cache *cache;
	unsigned long flags;

	if (!rcu_access_pointer(route->cache))
		return;
	spin_lock_irqsave(&dev->routes.lock, flags);
	cache = unlink_cache(dev, route);
	spin_unlock_irqrestore(&dev->routes.lock, flags);
	cache_free(cache);
}

void herald_routes_drop_all(struct herald_dev *dev)
{
	struct herald_path_cache *cache, *next;
	unsigned long flags;
	LIST_HEAD(gone);

	spin_lock_irqsave(&dev->routes.lock, flags);
	list_for_each_entry(cache, &dev->routes.list, node)
		RCU_INIT_POINTER(cache->route->cache, NULL);
	list_splice_init(&dev->routes.list, &gone);
	spin_unlock_irqrestore(&dev->routes.lock, flags);
	list_for_each_entry_safe(cache, next, &gone, node)
		cache_free(cache);
}

static bool cache_matches(const struct herald_path_cache *cache, const struct herald_av *av,
			  u16 sport)
{
	return herald_gid_equal(&cache->dgid, &av->dgid) &&
	       herald_gid_equal(&cache->sgid, &av->sgid) &&
	       cache->flow_label == av->flow_label && cache->sgid_index == av->sgid_index &&
	       cache->traffic_class == av->traffic_class && cache->sport == sport;
}

static struct herald_path_cache *new_cache(struct herald_route *route, struct dst_entry *dst,
					   const struct herald_av *av, u16 sport)
{
	struct herald_path_cache *cache = kzalloc_obj(*cache, GFP_ATOMIC | __GFP_NOWARN);

	if (!cache)
		return NULL;
	*cache = (struct herald_path_cache){
		.dst = dst,
		.cookie = av->net_type == RDMA_NETWORK_IPV6 ?
			  rt6_get_cookie(dst_rt6_info(dst)) : 0,
		.sgid = av->sgid,
		.dgid = av->dgid,
		.flow_label = av->flow_label,
		.sgid_index = av->sgid_index,
		.traffic_class = av->traffic_class,
		.sport = sport,
		.route = route,
	};
	return cache;
}

/*
 * Remember @dst, and take the reference to it: true.  Not once the device has left its
 * namespace, nor without memory.
 */
static bool remember(struct herald_dev *dev, struct herald_route *route, struct dst_entry *dst,
		     const struct herald_av *av, u16 sport)
{
	struct herald_path_cache *cache = new_cache(route, dst, av, sport), *old = NULL;
	unsigned long flags;
	bool taken = false;

	if (!cache)
		return false;
	spin_lock_irqsave(&dev->routes.lock, flags);
	/* herald_wire_detach() has cleared it before it takes this lock */
	if (rcu_access_pointer(dev->wire)) {
		old = unlink_cache(dev, route);
		list_add(&cache->node, &dev->routes.list);
		rcu_assign_pointer(route->cache, cache);
		taken = true;
	}
	spin_unlock_irqrestore(&dev->routes.lock, flags);
	cache_free(old);
	if (!taken)
		kfree(cache);
	return taken;
}

int herald_route_apply(struct herald_dev *dev, const struct herald_wire_net *wire,
		       const struct herald_av *av, struct herald_route *route, u16 sport,
		       struct sk_buff *skb)
{
	struct herald_path_cache *cache = rcu_dereference(route->cache);
	struct dst_entry *dst;

	if (cache && cache_matches(cache, av, sport) && dst_check(cache->dst, cache->cookie)) {
		skb_dst_set_noref(skb, cache->dst);
		return 0;
	}
	dst = find_route(dev, wire->net, av, sport);
	if (IS_ERR(dst))
		return PTR_ERR(dst);
	/* what is remembered may be let go at once: the skb has a reference of its own */
	skb_dst_set(skb, dst_clone(dst));
	if (!remember(dev, route, dst, av, sport))
		dst_release(dst);
	return 0;
}
