/* SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB */
/*
 * The wire: RoCEv2 packets over UDP (IBTA annex A17), below the protocol.
 *
 * A *train* is one skb with the packets ("segments") of one flow, back to back:
 * UDP payloads of the same length, but the last may be shorter.  It is sent by
 * UDP segmentation offload, and received whole where nothing has taken it apart
 * or UDP GRO has put it together again.  A train of one segment is a packet.
 *
 * The parts of a segment: BTH, extended headers, payload, pad, iCRC.
 */
#ifndef HERALD_WIRE_H
#define HERALD_WIRE_H

#include <linux/atomic.h>
#include <linux/bitmap.h>
#include <linux/minmax.h>
#include <linux/skbuff.h>

struct herald_av;
struct herald_dev;
struct herald_path_cache;
struct herald_qp;
struct net;
struct sock;
union ib_gid;

#define HERALD_WIRE_MAX_SEGS	240	/* of a train; its bitmap and counts are made for that */

/* ------------------------------------------------------- wire_net.c -- */

/* The module's parameter "wire". */
enum herald_wire_mode {
	HERALD_WIRE_AUTO,	/* for what is elsewhere */
	HERALD_WIRE_OFF,	/* no sockets: QPs of this host and namespace only */
	HERALD_WIRE_FORCE,	/* for everything, this host's QPs too */
};

enum herald_wire_mode herald_wire_mode(void);

/**
 * struct herald_wire_net - a network namespace that has devices
 * @net: the namespace; valid as long as a device is attached
 * @sk4: its socket for IPv4
 * @sk6: for IPv6; NULL if this kernel or its configuration has none
 */
struct herald_wire_net {
	struct net *net;
	struct sock *sk4;
	struct sock *sk6;

	/* wire_net.c */
	struct list_head node;
	unsigned int users;
	struct rcu_head rcu;
};

/**
 * herald_wire_attach - a device's packets come and go from now on
 * @dev: the device
 * @net: the namespace of its interface
 *
 * Opens the namespace's sockets if it is the first device there.
 * Return: 0 (also if the wire is off), or an errno: -EADDRINUSE if somebody else
 * has the port, which is said in the log.
 * Context: process, may sleep; @net cannot go away meanwhile.
 */
int herald_wire_attach(struct herald_dev *dev, struct net *net);

/*
 * Undo that, if it was done: nothing of the namespace is held any more when this
 * returns.  What is being sent or received goes on until an RCU grace period is
 * over, as does the namespace.  Context: process, may sleep; RTNL or not.
 */
void herald_wire_detach(struct herald_dev *dev);

/* ----------------------------------------------------- wire_mcast.c -- */

/*
 * The device's interface is to listen to a group: true if it does now, and
 * herald_wire_leave() must be called once; false if it cannot, and only members on
 * this host get what is sent.  Context: process, may sleep; not under RTNL.
 */
bool herald_wire_join(struct herald_dev *dev, const union ib_gid *group);
void herald_wire_leave(struct herald_dev *dev, const union ib_gid *group);

/* ----------------------------------------------------- wire_route.c -- */

/**
 * struct herald_route - the way of one flow, remembered: part of a QP or an AH
 * @cache: the route that was found last (RCU)
 * @ident: the next packet's IPv4 identification
 */
struct herald_route {
	struct herald_path_cache __rcu *cache;
	atomic_t ident;
};

static inline void herald_route_init(struct herald_route *route)
{
	RCU_INIT_POINTER(route->cache, NULL);
	atomic_set(&route->ident, 0);
}

/*
 * Forget what was remembered.  Must be called before the object that it is part of
 * goes, when nobody sends by it any more.  Context: any.
 */
void herald_route_drop(struct herald_dev *dev, struct herald_route *route);

/* The device does so with all its routes.  Context: any. */
void herald_routes_drop_all(struct herald_dev *dev);

/**
 * herald_route_apply - set an skb's route
 * @dev: the device
 * @wire: its namespace
 * @av: where to
 * @route: what was remembered
 * @sport: UDP source port
 * @skb: gets the route
 *
 * A remembered route is used as long as the stack says that it is valid.
 * Return: 0 or an errno.
 * Context: any but with interrupts off; inside rcu_read_lock(), and @skb leaves there.
 */
int herald_route_apply(struct herald_dev *dev, const struct herald_wire_net *wire,
		       const struct herald_av *av, struct herald_route *route, u16 sport,
		       struct sk_buff *skb);

/* -------------------------------------------------------- wire_tx.c -- */

/**
 * herald_wire_alloc - an empty train
 * @bytes: UDP payload of all segments; at most herald_wire_max_train() of them
 * @gfp: how to allocate
 *
 * The caller appends all segments with skb_put(), leaving the last HERALD_ICRC_LEN
 * bytes of each as they are, and says in its herald_wire_cb() whether it is to be damaged.
 * Return: a linear skb, or NULL: no memory, or too long; fewer segments may do.
 * Context: any, as @gfp says.
 */
struct sk_buff *herald_wire_alloc(u32 bytes, gfp_t gfp);

/* How many segments of @seg_len bytes go into one train, at least 1.  Context: any. */
u32 herald_wire_max_train(struct herald_dev *dev, u32 seg_len);

/**
 * herald_wire_xmit - finish a train and send it
 * @dev: the device
 * @av: where to
 * @route: the flow's memory
 * @sport: UDP source port, see rdma_get_udp_sport()
 * @skb: the train; consumed
 * @seg_len: bytes of each segment but the last
 * @nsegs: how many
 *
 * Over lo, or when bottom halves are enabled at its end, herald_wire_arrived() may
 * run inside of it: no lock may be held that is taken there.
 * Return: 0, or why it was not sent: -ENETDOWN (the port, or no wire), -EMSGSIZE (the
 * path has a smaller MTU), -ENOBUFS (dropped by the interface's queue), or what the
 * routing says.  Each is counted.
 * Context: process or softirq; interrupts on.
 */
int herald_wire_xmit(struct herald_dev *dev, const struct herald_av *av,
		     struct herald_route *route, u16 sport, struct sk_buff *skb,
		     u16 seg_len, u16 nsegs);

/* -------------------------------------------------------- wire_rx.c -- */

/**
 * struct herald_wire_cb - what skb->cb says of a train
 * @seg_len: bytes of each segment but the last
 * @first: this run's first segment ...
 * @count: ... and how many there are, the bad ones too
 * @bad: segments, counted from the train's first, that are damaged: as if lost
 * @answered: of the READs and atomics of this QP's peer, how many had been when it arrived
 * @damage: one that is to be sent is to be damaged on its way; the rest is not set then, but for
 * @repeated: ... its first packet was sent before, and
 * @qpn: ... whose it is, both for tracing
 *
 * In one that was received, skb->data is the BTH of segment 0; the skb is linear, and
 * its data may be shared: read only.  The network and transport headers are those of
 * the train, so that the lengths in them are not a segment's.  There is no interface in it.
 */
struct herald_wire_cb {
	u16 seg_len;
	u8 first;
	u8 count;
	u32 answered;
	bool damage;
	bool repeated;
	u32 qpn;
	DECLARE_BITMAP(bad, 256);
};

static inline struct herald_wire_cb *herald_wire_cb(struct sk_buff *skb)
{
	BUILD_BUG_ON(sizeof(struct herald_wire_cb) > sizeof_field(struct sk_buff, cb));
	return (struct herald_wire_cb *)skb->cb;
}

static inline bool herald_wire_bad(struct sk_buff *skb, u32 segment)
{
	return test_bit(segment, herald_wire_cb(skb)->bad);
}

/* From the BTH to the end of the iCRC; @len gets its bytes.  @segment is one of the run. */
static inline const u8 *herald_wire_segment(struct sk_buff *skb, u32 segment, u32 *len)
{
	u32 seg_len = herald_wire_cb(skb)->seg_len;

	*len = min(seg_len, skb->len - segment * seg_len);
	return skb->data + segment * seg_len;
}

/* The sockets' functions: a packet or train, and an ICMP error.  Context: softirq, RCU. */
int herald_wire_rcv(struct sock *sk, struct sk_buff *skb);
int herald_wire_icmp_error(struct sock *sk, struct sk_buff *skb);

/**
 * herald_wire_arrived - segments for a QP came in
 * @qp: the QP, whatever its type and state; the caller has a reference
 * @skb: the run, see struct herald_wire_cb; now the callee's
 * @response: they are responses, for the requester; else requests, for the responder
 *
 * The iCRC and the lengths (room for BTH and iCRC, multiples of four) of the
 * segments that are not bad were checked, and that the destination is the QP's
 * device.  Nothing else was.
 * Context: softirq, RCU; no lock held.
 */
void herald_wire_arrived(struct herald_qp *qp, struct sk_buff *skb, bool response);

#endif /* HERALD_WIRE_H */
