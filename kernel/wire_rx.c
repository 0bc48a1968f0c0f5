// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/*
 * Receiving: from a socket's skb to runs of segments for a QP.
 *
 * Others may see the same data (a capture, a bridge), so nothing is written into it.
 * A train that is in pieces in memory is copied, to skbs of a size that there is
 * always memory for.  What is dropped is counted, at the device that has the
 * destination address, or at a bystander.
 */
#include <linux/ip.h>
#include <linux/ipv6.h>
#include <linux/netdevice.h>
#include <linux/netfilter.h>
#include <linux/udp.h>
#include <net/dst.h>
#include <net/ip.h>
#include <net/ipv6.h>
#include <net/xfrm.h>
#include <rdma/ib_verbs.h>

#include "counters.h"
#include "device.h"
#include "mcast.h"
#include "pkt.h"
#include "qp.h"
#include "wire.h"
#include "wire_mark.h"
#include "wire_trace.h"

#define QPN_GSI		1
#define QPN_MULTICAST	0xffffff
#define SHORTEST	(HERALD_BTH_LEN + HERALD_ICRC_LEN)
#define COPY_BYTES	(SKB_WITH_OVERHEAD(32768) - 128)	/* one piece, and its headers */

/**
 * struct arrival - one skb's way through this file
 * @net: the namespace that it came to
 * @sgid: where it comes from
 * @dgid: its destination
 * @iif: the interface that it came from
 * @v4: over IPv4
 * @multicast: @dgid is a group
 * @whole: it cannot have been damaged
 * @id: IPv4 identification of segment 0
 * @id_step: by how much each segment's differs from the one's before; -1: not known yet
 * @seg_len: bytes of each segment but the last
 * @dev: a device that has the destination, to count at; looked up when it is needed
 */
struct arrival {
	struct net *net;
	union ib_gid sgid;
	union ib_gid dgid;
	int iif;
	bool v4;
	bool multicast;
	bool whole;
	u16 id;
	int id_step;
	u32 seg_len;
	struct herald_dev *dev;
};

/* ----------------------------------------------------------- counting -- */

static void first_device(struct herald_dev *dev, void *arg)
{
	struct herald_dev **first = arg;

	if (!*first)
		*first = dev;
}

/* Nobody has the destination: a device of the interface that it came by, or else any one. */
static struct herald_dev *bystander(const struct arrival *in)
{
	struct herald_dev *dev = NULL;

	herald_devs_on_interface(in->net, in->iif, first_device, &dev);
	return dev ?: herald_dev_first(in->net);
}

static void count(struct arrival *in, enum herald_counter counter, u32 n)
{
	struct herald_dev *dev;

	if (!in->dev && in->multicast)
		herald_devs_on_interface(in->net, in->iif, first_device, &in->dev);
	else if (!in->dev)
		in->dev = herald_dev_find_by_gid(in->net, &in->dgid, in->iif, NULL);
	dev = in->dev ?: bystander(in);
	if (dev)
		herald_count_add(dev, counter, n);
}

/* What becomes of a run; of @dev, NULL if nobody has its destination. */
static void trace_run(struct herald_dev *dev, struct sk_buff *skb, u8 verdict)
{
	struct herald_wire_cb *cb = herald_wire_cb(skb);
	u32 at = cb->first * cb->seg_len;

	if (trace_herald_wire_receive_enabled())
		trace_herald_wire_receive(dev, skb->data + at, cb->count,
					  min_t(u32, skb->len - at, cb->count * cb->seg_len),
					  verdict);
}

/* ----------------------------------------------------------- delivery -- */

struct multicast {
	struct arrival *in;
	struct sk_buff *skb;
	u32 members;
};

static void to_members(struct herald_dev *dev, void *arg)
{
	struct herald_qp *qps[8];
	struct multicast *mc = arg;
	struct sk_buff *clone;
	u64 after = 0;
	int n, i;

	if (!herald_dev_port_up(dev))
		return;
	do {
		n = herald_mcast_members(dev, &mc->in->dgid, qps, ARRAY_SIZE(qps), &after);
		for (i = 0; i < n; i++) {
			clone = skb_clone(mc->skb, GFP_ATOMIC);
			if (clone)
				herald_wire_arrived(qps[i], clone, false);
			else
				count(mc->in, HERALD_CTR_wire_rx_no_memory,
				      herald_wire_cb(mc->skb)->count);
			herald_qp_put(qps[i]);
		}
		mc->members += n;
	} while (n == ARRAY_SIZE(qps));
}

/* To each member's QP of all devices on the interface.  The skb stays the caller's. */
static void deliver_to_group(struct arrival *in, struct sk_buff *skb)
{
	struct multicast mc = { .in = in, .skb = skb };

	herald_devs_on_interface(in->net, in->iif, to_members, &mc);
	if (!mc.members)
		count(in, HERALD_CTR_mcast_no_member, herald_wire_cb(skb)->count);
}

/* The QP of a number, with a reference, if its device has the destination address. */
static struct herald_qp *find_qp(struct arrival *in, u32 qpn)
{
	struct herald_dev *dev;
	struct herald_qp *qp;

	if (qpn == QPN_GSI) {
		dev = herald_dev_find_by_gid(in->net, &in->dgid, in->iif, in->dev);
		return dev ? herald_qp_find_gsi(dev) : NULL;
	}
	qp = herald_qp_find(qpn);
	if (!qp)
		return NULL;
	if (qp->dev == in->dev || herald_dev_is_at(qp->dev, in->net, &in->dgid, in->iif))
		return qp;
	herald_qp_put(qp);
	return NULL;
}

static u32 qpn_of(const u8 *bth)
{
	return bth[5] << 16 | bth[6] << 8 | bth[7];
}

static unsigned int kind_of(const u8 *bth)
{
	return herald_pkt_row(bth[0])->flags & (HERALD_PKT_RESPONSE | HERALD_PKT_CNP);
}

static void deliver_to_qp(struct arrival *in, struct sk_buff *skb, u32 qpn, bool response)
{
	struct herald_qp *qp = find_qp(in, qpn);

	if (!qp) {
		trace_run(in->dev, skb, HERALD_WIRE_NO_QP);
		count(in, HERALD_CTR_wire_rx_no_qp, herald_wire_cb(skb)->count);
		kfree_skb(skb);
		return;
	}
	if (herald_dev_port_up(qp->dev)) {
		trace_run(qp->dev, skb, HERALD_WIRE_DELIVERED);
		herald_wire_arrived(qp, skb, response);
	} else {
		trace_run(qp->dev, skb, HERALD_WIRE_DOWN);
		herald_count_add(qp->dev, HERALD_CTR_wire_rx_down, herald_wire_cb(skb)->count);
		kfree_skb(skb);
	}
	herald_qp_put(qp);
}

/* The first segment of a run is a good one.  Takes the skb. */
static void deliver(struct arrival *in, struct sk_buff *skb)
{
	struct herald_wire_cb *cb = herald_wire_cb(skb);
	const u8 *bth = skb->data + cb->first * cb->seg_len;
	unsigned int kind = kind_of(bth);
	u32 qpn = qpn_of(bth);

	if (kind & HERALD_PKT_CNP) {
		trace_run(in->dev, skb, HERALD_WIRE_CNP);
		count(in, HERALD_CTR_wire_rx_cnp, cb->count);
		consume_skb(skb);
	} else if (in->multicast && qpn == QPN_MULTICAST) {
		trace_run(in->dev, skb, HERALD_WIRE_TO_GROUP);
		deliver_to_group(in, skb);
		consume_skb(skb);
	} else if (in->multicast || qpn == QPN_MULTICAST) {
		trace_run(in->dev, skb, HERALD_WIRE_NO_QP);
		count(in, HERALD_CTR_wire_rx_no_qp, cb->count);
		kfree_skb(skb);
	} else {
		deliver_to_qp(in, skb, qpn, kind & HERALD_PKT_RESPONSE);
	}
}

/* --------------------------------------------------------------- runs -- */

static u32 next_good(struct sk_buff *skb, u32 from, u32 nsegs)
{
	return min_t(u32, find_next_zero_bit(herald_wire_cb(skb)->bad, nsegs, from), nsegs);
}

/*
 * Where the run ends that begins at @first.  Bad segments in it are part of it: nobody
 * knows whose they were.
 */
static u32 run_end(struct sk_buff *skb, u32 first, u32 nsegs)
{
	u32 seg_len = herald_wire_cb(skb)->seg_len;
	const u8 *bth = skb->data + first * seg_len, *other;
	u32 i = first;

	do {
		i = next_good(skb, i + 1, nsegs);
		other = skb->data + i * seg_len;
	} while (i < nsegs && qpn_of(other) == qpn_of(bth) && kind_of(other) == kind_of(bth));
	return i;
}

/* @skb is linear, and its control block says which segments are bad.  Takes it. */
static void deliver_runs(struct arrival *in, struct sk_buff *skb, u32 nsegs)
{
	u32 first = next_good(skb, 0, nsegs), end;
	struct sk_buff *run;

	for (; first < nsegs; first = end) {
		end = run_end(skb, first, nsegs);
		herald_wire_cb(skb)->first = first;
		herald_wire_cb(skb)->count = end - first;
		if (end == nsegs) {
			deliver(in, skb);
			return;
		}
		run = skb_clone(skb, GFP_ATOMIC);
		if (run)
			deliver(in, run);
		else
			count(in, HERALD_CTR_wire_rx_no_memory, end - first);
	}
	kfree_skb(skb);
}

/* ----------------------------------------------------------- checking -- */

static bool icrc_is(const struct arrival *in, const struct sk_buff *skb, u16 id, const u8 *bth,
		    u32 covered)
{
	const u8 *ip = skb_network_header(skb), *udp = skb_transport_header(skb);
	u32 icrc = in->v4 ? herald_icrc_v4(ip, udp, id, bth, covered) :
			    herald_icrc_v6(ip, udp, bth, covered);

	return icrc == herald_icrc_get(bth + covered);
}

/*
 * Segments are numbered one by one, or all the same (RFC 6864 allows that): the first
 * good one that tells the difference decides.
 */
static bool icrc_good(struct arrival *in, const struct sk_buff *skb, u32 index, const u8 *bth,
		      u32 covered)
{
	if (!in->v4 || !index || in->id_step >= 0)
		return icrc_is(in, skb, in->id + index * max(in->id_step, 0), bth, covered);
	if (icrc_is(in, skb, in->id + index, bth, covered))
		in->id_step = 1;
	else if (icrc_is(in, skb, in->id, bth, covered))
		in->id_step = 0;
	return in->id_step >= 0;
}

/*
 * Fill in the control block of a linear skb with the segments from @index of the train
 * on.  skb->data is the first one's BTH.
 */
static void check_segments(struct arrival *in, struct sk_buff *skb, u32 index, u32 nsegs)
{
	struct herald_wire_cb *cb = herald_wire_cb(skb);
	u32 i, len, damaged = 0, malformed = 0;
	enum herald_wire_verdict why;
	const u8 *bth;

	memset(cb, 0, sizeof(*cb));
	cb->seg_len = in->seg_len;
	for (i = 0; i < nsegs; i++) {
		bth = herald_wire_segment(skb, i, &len);
		if (len < SHORTEST || len & 3) {
			malformed++;
			why = HERALD_WIRE_MALFORMED;
		} else if (!in->whole &&
			   !icrc_good(in, skb, index + i, bth, len - HERALD_ICRC_LEN)) {
			damaged++;
			why = HERALD_WIRE_BAD_ICRC;
		} else {
			continue;
		}
		__set_bit(i, cb->bad);
		if (len >= HERALD_BTH_LEN)
			trace_herald_wire_receive(in->dev, bth, 1, len, why);
	}
	if (damaged)
		count(in, HERALD_CTR_icrc_dropped, damaged);
	if (malformed)
		count(in, HERALD_CTR_wire_rx_malformed, malformed);
}

/* -------------------------------------------------------------- copies -- */

/* A linear skb with the segments from @index on, and the train's headers. */
static struct sk_buff *copy_segments(struct arrival *in, const struct sk_buff *skb, u32 index,
				     u32 nsegs)
{
	u32 headers = skb_transport_offset(skb) - skb_network_offset(skb) + sizeof(struct udphdr);
	u32 bytes = min(nsegs * in->seg_len, skb->len - index * in->seg_len);
	struct sk_buff *copy = alloc_skb(headers + bytes, GFP_ATOMIC | __GFP_NOWARN);

	if (!copy)
		return NULL;
	skb_reset_network_header(copy);
	skb_set_transport_header(copy, headers - sizeof(struct udphdr));
	skb_put_data(copy, skb_network_header(skb), headers);
	__skb_pull(copy, headers);
	skb_copy_bits(skb, index * in->seg_len, skb_put(copy, bytes), bytes);
	copy->protocol = skb->protocol;
	copy->skb_iif = skb->skb_iif;
	return copy;
}

/* Takes the skb, whose data is in pieces. */
static void take_copies(struct arrival *in, struct sk_buff *skb, u32 nsegs)
{
	u32 most = max_t(u32, COPY_BYTES / in->seg_len, 1);
	struct sk_buff *copy;
	u32 i, n;

	count(in, HERALD_CTR_wire_rx_copied, 1);
	for (i = 0; i < nsegs; i += n) {
		n = min(most, nsegs - i);
		copy = copy_segments(in, skb, i, n);
		if (!copy) {
			count(in, HERALD_CTR_wire_rx_no_memory, n);
			continue;
		}
		check_segments(in, copy, i, n);
		deliver_runs(in, copy, n);
	}
	consume_skb(skb);
}

/* -------------------------------------------------------------- arrival -- */

static void look_at_v4(struct arrival *in, const struct sk_buff *skb)
{
	const struct iphdr *ip = ip_hdr(skb);
	int sdif = inet_sdif((struct sk_buff *)skb);

	ipv6_addr_set_v4mapped(ip->saddr, (struct in6_addr *)&in->sgid);
	ipv6_addr_set_v4mapped(ip->daddr, (struct in6_addr *)&in->dgid);
	in->multicast = ipv4_is_multicast(ip->daddr);
	in->iif = sdif ?: skb->skb_iif;
	in->id = ntohs(ip->id);
	in->id_step = -1;
}

static void look_at_v6(struct arrival *in, const struct sk_buff *skb)
{
	const struct ipv6hdr *ip = ipv6_hdr(skb);

	memcpy(&in->sgid, &ip->saddr, sizeof(in->sgid));
	memcpy(&in->dgid, &ip->daddr, sizeof(in->dgid));
	in->multicast = ipv6_addr_is_multicast(&ip->daddr);
	/* what comes back to this host, too, has its own link's */
	in->iif = IP6CB(skb)->iif;
}

static bool was_fragmented(const struct arrival *in, const struct sk_buff *skb)
{
	return in->v4 ? IPCB(skb)->frag_max_size : IP6CB(skb)->flags & IP6SKB_FRAGMENTED;
}

/* RoCEv2 knows no IPv4 options and no IPv6 extension headers. */
static bool has_plain_header(const struct arrival *in, const struct sk_buff *skb)
{
	return skb_network_header_len(skb) ==
	       (in->v4 ? sizeof(struct iphdr) : sizeof(struct ipv6hdr));
}

/* What keeps all of it from being looked at further; or HERALD_CTR_MAX. */
static enum herald_counter refusal(const struct arrival *in, const struct sk_buff *skb, u32 nsegs)
{
	if (was_fragmented(in, skb))
		return HERALD_CTR_wire_rx_fragmented;
	if (!has_plain_header(in, skb) || skb->len < SHORTEST || nsegs > HERALD_WIRE_MAX_SEGS)
		return HERALD_CTR_wire_rx_malformed;
	return HERALD_CTR_MAX;
}

/* Let go of what belongs to the network: the skb may have to wait for its turn. */
static void detach_skb(struct sk_buff *skb)
{
	skb_orphan(skb);
	skb_dst_drop(skb);
	nf_reset_ct(skb);
	secpath_reset(skb);
	skb->dev = NULL;
}

/* skb->data is the UDP header. */
int herald_wire_rcv(struct sock *sk, struct sk_buff *skb)
{
	struct arrival in = { .net = sock_net(sk), .v4 = skb->protocol == htons(ETH_P_IP) };
	enum herald_counter why;
	u32 nsegs;

	if (in.v4)
		look_at_v4(&in, skb);
	else
		look_at_v6(&in, skb);
	__skb_pull(skb, sizeof(struct udphdr));
	in.seg_len = skb_is_gso(skb) ? skb_shinfo(skb)->gso_size : max(skb->len, 1u);
	nsegs = max(DIV_ROUND_UP(skb->len, in.seg_len), 1u); /* an empty one counts, too */
	count(&in, HERALD_CTR_wire_rx_trains, 1);
	count(&in, HERALD_CTR_wire_rx_packets, nsegs);

	in.whole = herald_mark_holds(skb, &in.sgid, &in.dgid, in.seg_len);
	if (in.whole)
		count(&in, HERALD_CTR_wire_rx_whole, 1);
	why = refusal(&in, skb, nsegs);
	if (why != HERALD_CTR_MAX) {
		count(&in, why, nsegs);
		kfree_skb(skb);
		return 0;
	}
	detach_skb(skb);
	if (skb_is_nonlinear(skb)) {
		take_copies(&in, skb, nsegs);
		return 0;
	}
	check_segments(&in, skb, 0, nsegs);
	deliver_runs(&in, skb, nsegs);
	return 0;
}

/*
 * The inner packet of an ICMP error is one of ours.  That it did not arrive is found out
 * by the protocol, and an MTU that the path has not is an error of its configuration.
 */
int herald_wire_icmp_error(struct sock *sk, struct sk_buff *skb)
{
	struct herald_dev *dev;
	union ib_gid sgid;

	if (skb->protocol == htons(ETH_P_IP))
		ipv6_addr_set_v4mapped(ip_hdr(skb)->saddr, (struct in6_addr *)&sgid);
	else
		memcpy(&sgid, &ipv6_hdr(skb)->saddr, sizeof(sgid));
	rcu_read_lock();
	dev = herald_dev_find_by_gid(sock_net(sk), &sgid, 0, NULL);
	if (dev)
		herald_count(dev, HERALD_CTR_wire_icmp_errors);
	rcu_read_unlock();
	return -ENOENT;	/* the socket is not to be told */
}
