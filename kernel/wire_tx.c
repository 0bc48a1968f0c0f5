// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/*
 * Sending a train: route, iCRCs, UDP and IP headers.
 *
 * The iCRC covers lengths and identification of the packet that a segment will be,
 * so they are those that segmentation gives it: whole but for the last one, and
 * counted up from the train's.  The UDP checksum is left to the interface or to
 * segmentation; GRO puts only together what has one.
 */
#include <linux/ip.h>
#include <linux/ipv6.h>
#include <linux/netdevice.h>
#include <linux/udp.h>
#include <net/dst.h>
#include <net/ip.h>
#include <net/ip6_checksum.h>
#include <net/ipv6.h>
#include <net/route.h>
#include <net/udp.h>
#include <rdma/ib_verbs.h>

#include "ah.h"
#include "counters.h"
#include "device.h"
#include "pkt.h"
#include "wire.h"
#include "wire_mark.h"
#include "wire_trace.h"

/* Room in front of the first BTH, for whatever interface it will be */
#define HEADROOM	ALIGN(HERALD_MARK_LEN + LL_MAX_HEADER + sizeof(struct ipv6hdr) +	\
			      sizeof(struct udphdr), 64)

/* An skb in one allocation of 64 KiB */
#define MAX_BYTES	(SKB_WITH_OVERHEAD(65536) - HEADROOM)

/* More in front of a segment than this has no interface; what its limits count too. */
#define MAX_OVERHEAD	(MAX_HEADER + sizeof(struct ipv6hdr) + sizeof(struct udphdr))

struct sk_buff *herald_wire_alloc(u32 bytes, gfp_t gfp)
{
	struct sk_buff *skb;

	if (bytes > MAX_BYTES)
		return NULL;
	skb = alloc_skb(HEADROOM + bytes, gfp | __GFP_NOWARN);
	if (!skb)
		return NULL;
	skb_reserve(skb, HEADROOM);
	herald_wire_cb(skb)->damage = false;
	return skb;
}

/* What the interface would have taken apart again is not put together. */
u32 herald_wire_max_train(struct herald_dev *dev, u32 seg_len)
{
	u32 bytes = MAX_BYTES, segs = UDP_MAX_SEGMENTS;
	struct net_device *ndev;

	rcu_read_lock();
	ndev = rcu_dereference(dev->ndev);
	if (ndev) {
		u32 size = min(READ_ONCE(ndev->gso_max_size), READ_ONCE(ndev->gso_ipv4_max_size));

		bytes = min_t(u32, bytes, size > MAX_OVERHEAD ? size - MAX_OVERHEAD : 0);
		segs = min_t(u32, segs, READ_ONCE(ndev->gso_max_segs));
	}
	rcu_read_unlock();
	bytes -= min_t(u32, bytes, HERALD_PKT_HDR_MAX);	/* the first one's extended headers */
	return clamp_t(u32, bytes / seg_len, 1, max(segs, 1u));
}

/* ------------------------------------------------------------ segments -- */

/* Is it what the caller says that it is?  skb->data is the first BTH. */
static bool train_fits(const struct sk_buff *skb, u32 seg_len, u32 nsegs)
{
	u32 least = HERALD_BTH_LEN + HERALD_ICRC_LEN;
	u32 last = skb->len - (nsegs - 1) * seg_len;

	return nsegs && nsegs <= HERALD_WIRE_MAX_SEGS && seg_len >= least && last >= least &&
	       last <= seg_len && !(seg_len & 3) && !(last & 3);
}

static void seal_segment_v4(struct sk_buff *skb, u16 id, u8 *bth, u32 len)
{
	u32 covered = len - HERALD_ICRC_LEN;

	herald_icrc_put(bth + covered,
			herald_icrc_v4(skb_network_header(skb), skb_transport_header(skb), id,
				       bth, covered));
}

static void seal_segment_v6(struct sk_buff *skb, u16 id, u8 *bth, u32 len)
{
	u32 covered = len - HERALD_ICRC_LEN;

	herald_icrc_put(bth + covered,
			herald_icrc_v6(skb_network_header(skb), skb_transport_header(skb),
				       bth, covered));
}

/* Fill in all iCRCs, once the other headers are there. */
static void seal(struct sk_buff *skb, u32 seg_len, u16 id, bool v4)
{
	u8 *bth = skb_transport_header(skb) + sizeof(struct udphdr);
	u32 len;

	for (; bth < skb_tail_pointer(skb); bth += len, id++) {
		len = min_t(u32, seg_len, skb_tail_pointer(skb) - bth);
		if (v4)
			seal_segment_v4(skb, id, bth, len);
		else
			seal_segment_v6(skb, id, bth, len);
	}
}

/* ------------------------------------------------------------- headers -- */

static void set_segmentation(struct sk_buff *skb, u16 seg_len, u16 nsegs)
{
	struct skb_shared_info *shinfo = skb_shinfo(skb);

	if (nsegs < 2)
		return;
	shinfo->gso_type = SKB_GSO_UDP_L4;
	shinfo->gso_size = seg_len;
	shinfo->gso_segs = nsegs;
}

static void push_udp(struct sk_buff *skb, u16 sport)
{
	struct udphdr *udp = __skb_push(skb, sizeof(*udp));

	skb_reset_transport_header(skb);
	udp->source = htons(sport);
	udp->dest = htons(ROCE_V2_UDP_DPORT);
	udp->len = htons(skb->len);
	skb->ip_summed = CHECKSUM_PARTIAL;
	skb->csum_start = skb_transport_header(skb) - skb->head;
	skb->csum_offset = offsetof(struct udphdr, check);
}

static void push_v4(struct sk_buff *skb, const struct herald_av *av, u16 id)
{
	const struct in6_addr *sgid = (const void *)&av->sgid, *dgid = (const void *)&av->dgid;
	struct iphdr *ip;

	udp_hdr(skb)->check = ~udp_v4_check(skb->len, sgid->s6_addr32[3], dgid->s6_addr32[3], 0);
	ip = __skb_push(skb, sizeof(*ip));
	skb_reset_network_header(skb);
	*ip = (struct iphdr){
		.version = 4,
		.ihl = 5,
		.tos = av->traffic_class,
		.tot_len = htons(skb->len),
		.id = htons(id),
		.frag_off = htons(IP_DF),
		.ttl = av->hop_limit,
		.protocol = IPPROTO_UDP,
		.saddr = sgid->s6_addr32[3],
		.daddr = dgid->s6_addr32[3],
	};
	skb->protocol = htons(ETH_P_IP);
	memset(IPCB(skb), 0, sizeof(*IPCB(skb)));
}

static void push_v6(struct sk_buff *skb, const struct herald_av *av)
{
	const struct in6_addr *sgid = (const void *)&av->sgid, *dgid = (const void *)&av->dgid;
	u32 udp_len = skb->len;
	struct ipv6hdr *ip;

	udp_hdr(skb)->check = ~udp_v6_check(udp_len, sgid, dgid, 0);
	ip = __skb_push(skb, sizeof(*ip));
	skb_reset_network_header(skb);
	ip6_flow_hdr(ip, av->traffic_class, htonl(av->flow_label) & IPV6_FLOWLABEL_MASK);
	ip->payload_len = htons(udp_len);
	ip->nexthdr = IPPROTO_UDP;
	ip->hop_limit = av->hop_limit;
	ip->saddr = *sgid;
	ip->daddr = *dgid;
	skb->protocol = htons(ETH_P_IPV6);
	memset(IP6CB(skb), 0, sizeof(*IP6CB(skb)));
}

/* ------------------------------------------------------------- sending -- */

static bool fits_path(const struct sk_buff *skb, const struct herald_av *av, u32 seg_len)
{
	u32 ip_len = av->net_type == RDMA_NETWORK_IPV4 ? sizeof(struct iphdr) :
							 sizeof(struct ipv6hdr);

	return ip_len + sizeof(struct udphdr) + min(seg_len, skb->len) <= dst_mtu(skb_dst(skb));
}

/* Find the way.  Context: RCU. */
static int set_route(struct herald_dev *dev, const struct herald_wire_net *wire,
		     const struct herald_av *av, struct herald_route *route, u16 sport,
		     struct sk_buff *skb, u16 seg_len)
{
	int err;

	if (!wire || !herald_dev_port_up(dev))
		return -ENETDOWN;
	err = herald_route_apply(dev, wire, av, route, sport, skb);
	if (err)
		return err;
	return fits_path(skb, av, seg_len) ? 0 : -EMSGSIZE;
}

/* On purpose: none of the iCRCs is right. */
static void damage_all(struct sk_buff *skb, u32 seg_len)
{
	u8 *bth = skb_transport_header(skb) + sizeof(struct udphdr);
	u32 len;

	for (; bth < skb_tail_pointer(skb); bth += len) {
		len = min_t(u32, seg_len, skb_tail_pointer(skb) - bth);
		bth[len - 1] ^= 0xff;
	}
}

/* Put everything on that is in front of the BTHs, and then the iCRCs. */
static void dress(struct sk_buff *skb, const struct herald_av *av, u16 sport, u16 id,
		  u16 seg_len, u16 nsegs)
{
	bool v4 = av->net_type == RDMA_NETWORK_IPV4;

	skb->priority = rt_tos2priority(av->traffic_class);
	set_segmentation(skb, seg_len, nsegs);
	push_udp(skb, sport);
	if (v4)
		push_v4(skb, av, id);
	else
		push_v6(skb, av);
	seal(skb, seg_len, id, v4);
}

static void mark(struct sk_buff *skb, const struct herald_av *av, u16 seg_len, u16 nsegs)
{
	const u8 *bth = skb_transport_header(skb) + sizeof(struct udphdr);

	herald_mark_put(skb, bth, &av->sgid, &av->dgid,
			nsegs > 1 ? seg_len : skb_tail_pointer(skb) - bth);
}

static int send(const struct herald_wire_net *wire, struct sk_buff *skb)
{
	int err = skb->protocol == htons(ETH_P_IP) ? ip_local_out(wire->net, wire->sk4, skb) :
						     ip6_local_out(wire->net, wire->sk6, skb);

	return err > 0 ? net_xmit_errno(err) : err;
}

static enum herald_counter counter_of(int err)
{
	switch (err) {
	case -ENETDOWN:
		return HERALD_CTR_wire_tx_down;
	case -EMSGSIZE:
		return HERALD_CTR_wire_tx_too_big;
	default:
		return HERALD_CTR_wire_tx_no_route;
	}
}

static enum herald_wire_verdict verdict_of(struct sk_buff *skb, int err)
{
	switch (err) {
	case 0:
		return herald_wire_cb(skb)->damage ? HERALD_WIRE_DAMAGED :
		       herald_wire_cb(skb)->repeated ? HERALD_WIRE_REPEATED : HERALD_WIRE_SENT;
	case -ENETDOWN:
		return HERALD_WIRE_DOWN;
	case -EMSGSIZE:
		return HERALD_WIRE_TOO_BIG;
	default:
		return HERALD_WIRE_NO_ROUTE;
	}
}

int herald_wire_xmit(struct herald_dev *dev, const struct herald_av *av,
		     struct herald_route *route, u16 sport, struct sk_buff *skb,
		     u16 seg_len, u16 nsegs)
{
	bool damage = herald_wire_cb(skb)->damage;
	struct herald_wire_net *wire;
	int err;

	if (WARN_ON_ONCE(!train_fits(skb, seg_len, nsegs))) {
		kfree_skb(skb);
		return -EINVAL;
	}
	rcu_read_lock();
	wire = rcu_dereference(dev->wire);
	err = set_route(dev, wire, av, route, sport, skb, seg_len);
	if (trace_herald_wire_send_enabled())
		trace_herald_wire_send(dev, herald_wire_cb(skb)->qpn, skb->data, nsegs, skb->len,
				       verdict_of(skb, err));
	if (err) {
		kfree_skb(skb);
		herald_count_add(dev, counter_of(err), nsegs);
	} else {
		dress(skb, av, sport, atomic_fetch_add(nsegs, &route->ident), seg_len, nsegs);
		if (unlikely(damage))
			damage_all(skb, seg_len);
		else
			mark(skb, av, seg_len, nsegs);
		herald_count(dev, HERALD_CTR_wire_tx_trains);
		herald_count_add(dev, HERALD_CTR_wire_tx_packets, nsegs);
		err = send(wire, skb);
		if (err)
			herald_count_add(dev, HERALD_CTR_wire_tx_dropped, nsegs);
	}
	rcu_read_unlock();
	return err;
}
