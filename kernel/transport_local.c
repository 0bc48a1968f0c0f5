// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/*
 * The local transport: the peer is a QP of this host.  The responder's half
 * runs here, in the sender's context, and data moves once.
 *
 * What a wire would do to a message is done to it all the same: a peer that is
 * not there, not connected to us, or not ready answers nothing, and the
 * requester's timers decide.  What else a network does happens on purpose only
 * (fault.h), to one attempt at a message at a time: there are no packets here.
 */
#include <linux/ip.h>
#include <linux/ipv6.h>
#include <net/ip.h>
#include <net/ipv6.h>
#include <rdma/ib_addr.h>

#include "ah.h"
#include "device.h"
#include "late.h"
#include "mcast.h"
#include "mr.h"
#include "opcode.h"
#include "path_migration.h"
#include "qp.h"
#include "responder.h"
#include "timer.h"
#include "transport.h"
#include "wire_qp.h"

#define GRH_LEN			40
#define QPN_MULTICAST		0xffffffu
#define CONTROLLED_QKEY		0x80000000u	/* use the QP's own */

/* Both ports are active, and in one network namespace. */
static bool reachable(struct herald_dev *from, struct herald_dev *to)
{
	bool yes;

	if (!herald_dev_port_up(from))
		return false;
	if (from == to)
		return true;
	if (!herald_dev_port_up(to))
		return false;
	rcu_read_lock();
	yes = herald_dev_net(from) && herald_dev_net(from) == herald_dev_net(to);
	rcu_read_unlock();
	return yes;
}

/* ------------------------------------------------------- on the way -- */

/*
 * What becomes of the attempt that is under way; it is asked for when the first
 * piece leaves.  Once decided, it holds until the attempt ends.
 */
static enum herald_fate fate_of(struct herald_qp *qp)
{
	if (herald_fault_armed(&qp->dev->faults, HERALD_FAULT_MESSAGE) && !qp->sq.fate &&
	    !qp->sq.done && !qp->sq.finish)
		qp->sq.fate = herald_fault_message(qp, &qp->sq.pause_usec);
	return qp->sq.fate;
}

/*
 * It is to be late: true; the requester calls again after the pause, and then it
 * passes.  A connected QP's timer takes one that is later than it waits for lost.
 */
static bool delayed(struct herald_qp *qp)
{
	u8 code = READ_ONCE(qp->attr.timeout);
	u64 timeout = qp->type == IB_QPT_RC ? herald_ack_timeout_ns(code) : 0;

	if (timeout && (u64)qp->sq.pause_usec * NSEC_PER_USEC >= timeout) {
		qp->sq.pause_usec = 0;
		qp->sq.fate = HERALD_FATE_LOSE;
		return false;
	}
	qp->sq.fate = HERALD_FATE_PASS;
	return true;
}

/* Does it never get as far as the peer's responder?  Then *outcome is what becomes of it. */
static bool stopped(struct herald_qp *qp, struct herald_qp *peer, enum herald_outcome *outcome)
{
	*outcome = HERALD_NO_ANSWER;
	switch (qp->sq.fate) {
	case HERALD_FATE_LOSE:
		return true;
	case HERALD_FATE_CORRUPT:
		herald_count(peer->dev, HERALD_CTR_icrc_dropped);
		return true;
	case HERALD_FATE_REORDER:
		if (qp->type == IB_QPT_UC)
			herald_count(peer->dev, HERALD_CTR_uc_dropped);
		else if (herald_qp_may(peer) & HERALD_MAY_RECEIVE)
			*outcome = HERALD_NAK_SEQUENCE;
		if (*outcome == HERALD_NAK_SEQUENCE)
			herald_count(peer->dev, HERALD_CTR_nak_sequence);
		return true;
	default:
		return false;
	}
}

/* ---------------------------------------------------------- connected -- */

/* The other end of our connection, if a message gets there. */
static struct herald_qp *find_peer(struct herald_qp *qp, enum herald_arrival *how)
{
	struct herald_qp *peer = herald_qp_find(qp->dest_qpn);

	if (peer) {
		*how = herald_path_arrival(qp, peer);
		if (*how == HERALD_NOT_FOR_US || peer->transport != qp->transport ||
		    !reachable(qp->dev, peer->dev)) {
			herald_qp_put(peer);
			peer = NULL;
		}
	}
	if (!peer)
		herald_count(qp->dev, HERALD_CTR_no_peer);
	return peer;
}

static u32 next_piece(const struct herald_qp *qp, const struct herald_op *op)
{
	if (qp->sq.finish)
		return 0;
	return min_t(u64, op->length - qp->sq.done, HERALD_PIECE);
}

static void connected_request(struct herald_qp *qp, const struct herald_op *op,
			      struct herald_cursor *payload, struct herald_request *rq)
{
	const struct herald_opcode_row *row = herald_opcode(op->opcode);
	const struct herald_send_wqe *u = &op->u;

	*rq = (struct herald_request){
		.opcode = op->opcode,
		.solicited = op->flags & HERALD_WR_SOLICITED,
		.imm_or_rkey = op->imm_or_rkey,
		.length = op->length,
		.finish = qp->sq.finish,
		.offset = qp->sq.done,
		.piece = next_piece(qp, op),
		.payload = payload,
		.src_qpn = qp->qpn,
		.verdict = qp->sq.verdict,
	};
	switch (row->kind) {
	case HERALD_KIND_WRITE:
	case HERALD_KIND_READ:
	case HERALD_KIND_ATOMIC_WRITE:
		rq->remote_addr = u->rdma.remote_addr;
		rq->rkey = u->rdma.rkey;
		break;
	case HERALD_KIND_ATOMIC:
		rq->remote_addr = u->atomic.remote_addr;
		rq->rkey = u->atomic.rkey;
		rq->compare_add = u->atomic.compare_add;
		rq->swap = u->atomic.swap;
		break;
	case HERALD_KIND_FLUSH:
		rq->remote_addr = u->flush.remote_addr;
		rq->rkey = u->flush.rkey;
		rq->length = u->flush.length;
		rq->flush_placement = u->flush.placement;
		rq->flush_selectivity = u->flush.selectivity;
		rq->piece = u->flush.length;
		break;
	}
}

/* What the requester can see for itself before anything leaves it. */
static enum herald_outcome check_own(const struct herald_qp *qp, const struct herald_op *op,
				     const struct herald_span *payload)
{
	enum herald_outcome out = herald_op_length_check(op);

	if (out != HERALD_OK)
		return out;
	/* a message of one piece is judged when that is opened */
	if (!qp->sq.finish && !qp->sq.done && op->length > HERALD_PIECE &&
	    herald_span_check(payload))
		return HERALD_LOC_PROT;
	return HERALD_OK;
}

/* The network brings it twice: the peer, whose responder we own, has done it already. */
static void bring_again(struct herald_qp *qp, struct herald_qp *peer, struct herald_op *op,
			struct herald_deferred *d)
{
	struct herald_span span = herald_op_span(qp, op);
	struct herald_cursor payload __uninitialized;
	struct herald_request rq __uninitialized;
	enum herald_outcome outcome;

	qp->sq.done = 0;
	qp->sq.finish = false;
	if (herald_cursor_open(&payload, &span, 0, next_piece(qp, op)))
		return;
	connected_request(qp, op, &payload, &rq);
	rq.duplicate = true;
	herald_responder_execute(peer, &rq, &outcome, d);
	herald_cursor_close(&payload);
}

/* The caller owns the peer's responder. */
static enum herald_progress arrive(struct herald_qp *qp, struct herald_qp *peer,
				   enum herald_arrival how, const struct herald_request *rq,
				   enum herald_outcome *outcome, struct herald_deferred *d)
{
	enum herald_progress progress;
	bool ready = false;

	if (unlikely(how == HERALD_ARRIVES_MOVED) && !herald_mig_follow(peer, qp, d)) {
		*outcome = HERALD_NO_ANSWER;
		return HERALD_DONE;
	}
	/* the header comes first: who sees the completion is armed, and may move at once */
	if (unlikely(how == HERALD_ARRIVES_ARMING))
		ready = herald_mig_peer_ready(peer);
	progress = herald_responder_execute(peer, rq, outcome, d);
	/* there is an answer: it says what the other end was when the header came */
	if (unlikely(ready) && qp->type == IB_QPT_RC &&
	    (progress != HERALD_DONE || *outcome != HERALD_NO_ANSWER))
		herald_mig_peer_ready(qp);
	return progress;
}

/* The payload is open: have the peer's responder do the piece. */
static enum herald_progress hand_over(struct herald_qp *qp, struct herald_op *op,
				      struct herald_cursor *payload, enum herald_outcome *outcome,
				      struct herald_deferred *d)
{
	struct herald_request rq __uninitialized;
	enum herald_progress progress;
	enum herald_arrival how;
	struct herald_qp *peer;

	peer = find_peer(qp, &how);
	if (!peer) {
		*outcome = HERALD_NO_ANSWER;
		return HERALD_DONE;
	}
	if (unlikely(qp->sq.fate) && stopped(qp, peer, outcome)) {
		herald_qp_put(peer);
		return HERALD_DONE;
	}
	if (!herald_responder_own(peer, qp)) {
		herald_qp_put(peer);
		return HERALD_BUSY;
	}
	connected_request(qp, op, payload, &rq);
	progress = arrive(qp, peer, how, &rq, outcome, d);
	if (unlikely(qp->sq.fate == HERALD_FATE_DUPLICATE) && progress == HERALD_DONE &&
	    *outcome == HERALD_OK)
		bring_again(qp, peer, op, d);
	if (progress == HERALD_DONE && *outcome == HERALD_RNR)
		qp->sq.rnr_timer = peer->attr.min_rnr_timer;
	/* whoever withdraws its key need not wait for the peer's flush too */
	herald_cursor_close(payload);
	herald_responder_release(peer, d);
	herald_qp_put(peer);
	return progress;
}

static enum herald_progress push_connected(struct herald_qp *qp, struct herald_op *op,
					   enum herald_outcome *outcome,
					   struct herald_deferred *d)
{
	struct herald_span span = herald_op_span(qp, op);
	struct herald_cursor payload __uninitialized;
	u32 piece = next_piece(qp, op);
	enum herald_progress progress;

	*outcome = check_own(qp, op, &span);
	if (*outcome != HERALD_OK)
		return HERALD_DONE;
	if (unlikely(herald_cursor_open(&payload, &span, qp->sq.done, piece))) {
		*outcome = HERALD_LOC_PROT;
		return HERALD_DONE;
	}
	if (unlikely(fate_of(qp) == HERALD_FATE_DELAY) && delayed(qp)) {
		herald_cursor_close(&payload);
		return HERALD_AGAIN;
	}
	progress = hand_over(qp, op, &payload, outcome, d);
	herald_cursor_close(&payload);

	if (progress == HERALD_MORE)
		qp->sq.done += piece;
	else if (progress == HERALD_AGAIN)
		qp->sq.finish = true;
	else if (progress == HERALD_DONE)
		herald_count(qp->dev, HERALD_CTR_local_messages);
	return progress;
}

/* ---------------------------------------------------------- datagrams -- */

/* The header that precedes a datagram's payload: RoCEv2 annex A17, IPv4 in the last 20 bytes. */
static void build_grh(u8 grh[GRH_LEN], const struct herald_av *av, u32 length)
{
	/* UDP header, BTH, DETH and iCRC go between the IP header and the payload's end */
	u16 ip_payload = length + 8 + 12 + 8 + 4;

	memset(grh, 0, GRH_LEN);
	if (av->net_type == RDMA_NETWORK_IPV4) {
		struct iphdr ip = {
			.version = 4, .ihl = 5, .tos = av->traffic_class,
			.tot_len = htons(ip_payload + sizeof(ip)),
			.frag_off = htons(IP_DF), .ttl = av->hop_limit,
			.protocol = IPPROTO_UDP,
		};

		memcpy(&ip.saddr, av->sgid.raw + 12, 4);
		memcpy(&ip.daddr, av->dgid.raw + 12, 4);
		ip.check = ip_fast_csum(&ip, ip.ihl);
		memcpy(grh + 20, &ip, sizeof(ip));
	} else {
		struct ipv6hdr ip6 = {
			.payload_len = htons(ip_payload),
			.nexthdr = IPPROTO_UDP, .hop_limit = av->hop_limit,
		};

		ip6_flow_hdr(&ip6, av->traffic_class, htonl(av->flow_label & 0xfffff));
		memcpy(&ip6.saddr, &av->sgid, 16);
		memcpy(&ip6.daddr, &av->dgid, 16);
		memcpy(grh, &ip6, sizeof(ip6));
	}
}

/*
 * Hand one datagram to one QP.  false: its responder is busy; the requester is
 * on the waiting list.  A datagram that is not taken is counted, no more.
 */
static bool deliver(struct herald_qp *qp, struct herald_qp *peer, const struct herald_request *rq,
		    enum herald_outcome *outcome, struct herald_deferred *d)
{
	enum herald_outcome unheard;

	if (unlikely(qp->sq.fate) && stopped(qp, peer, &unheard))
		return true;
	/* QP1 too: its Q_Key is one that a process may not set */
	if (READ_ONCE(peer->qkey) != rq->qkey) {
		herald_count(peer->dev, HERALD_CTR_ud_dropped_qkey);
		return true;
	}
	if (!rq->pkey || (peer->type != IB_QPT_GSI && rq->pkey != herald_qp_partition(peer))) {
		herald_count(peer->dev, HERALD_CTR_ud_dropped_pkey);
		return true;
	}
	if (!herald_responder_own(peer, qp))
		return false;
	herald_responder_execute(peer, rq, outcome, d);
	herald_cursor_close(rq->payload);
	herald_responder_release(peer, d);
	herald_count(qp->dev, HERALD_CTR_local_messages);
	return true;
}

static bool is_datagram_peer(struct herald_qp *qp, struct herald_qp *peer,
			     const struct herald_av *av)
{
	int from = herald_dev_av_ifindex(qp->dev, av);
	bool yes;

	if (!from || peer->type != IB_QPT_UD || !reachable(qp->dev, peer->dev))
		return false;
	rcu_read_lock();
	yes = herald_dev_is_at(peer->dev, herald_dev_net(qp->dev), &av->dgid, from);
	rcu_read_unlock();
	return yes;
}

static struct herald_qp *find_datagram_peer(struct herald_qp *qp, const struct herald_av *av,
					    u32 qpn)
{
	int from = herald_dev_av_ifindex(qp->dev, av);
	struct herald_qp *peer = NULL;
	struct herald_dev *dev = NULL;

	if (qpn != 1) {
		peer = herald_qp_find(qpn);
		if (peer && !is_datagram_peer(qp, peer, av)) {
			herald_qp_put(peer);
			peer = NULL;
		}
		return peer;
	}
	rcu_read_lock();
	if (from)
		dev = herald_dev_find_by_gid(herald_dev_net(qp->dev), &av->dgid, from, qp->dev);
	if (dev && reachable(qp->dev, dev))
		peer = herald_qp_find_gsi(dev);
	rcu_read_unlock();
	return peer;
}

static enum herald_progress push_unicast(struct herald_qp *qp, u32 qpn,
					 const struct herald_request *rq,
					 enum herald_outcome *outcome, struct herald_deferred *d)
{
	struct herald_qp *peer = NULL;
	bool taken;

	if (!herald_wire_wanted(qp, rq->src_av))
		peer = find_datagram_peer(qp, rq->src_av, qpn);
	else if (herald_wire_send_datagram(qp, rq, qpn))
		return HERALD_DONE;
	if (!peer) {
		herald_count(qp->dev, HERALD_CTR_no_peer);
		return HERALD_DONE;
	}
	taken = deliver(qp, peer, rq, outcome, d);
	herald_qp_put(peer);
	return taken ? HERALD_DONE : HERALD_BUSY;
}

/*
 * The wire first, which does not come back to this host, then one member a step:
 * qp->sq.finish says that the wire has it, qp->sq.done which member had it last.
 */
static enum herald_progress push_multicast(struct herald_qp *qp, const struct herald_request *rq,
					   enum herald_outcome *outcome, struct herald_deferred *d)
{
	u64 after = qp->sq.done;
	struct herald_qp *peer;
	bool taken;

	if (!qp->sq.finish && herald_wire_has_others(qp->dev) &&
	    herald_wire_send_datagram(qp, rq, QPN_MULTICAST)) {
		qp->sq.finish = true;
		/* forced, the wire brings it back */
		return herald_wire_mode() == HERALD_WIRE_FORCE ? HERALD_DONE : HERALD_MORE;
	}
	if (!herald_dev_port_up(qp->dev) ||
	    !herald_mcast_members(qp->dev, &rq->src_av->dgid, &peer, 1, &after)) {
		if (!qp->sq.done)
			herald_count(qp->dev, HERALD_CTR_mcast_no_member);
		qp->sq.done = 0;
		return HERALD_DONE;
	}
	taken = deliver(qp, peer, rq, outcome, d);
	herald_qp_put(peer);
	if (!taken)
		return HERALD_BUSY;
	if (*outcome != HERALD_OK)
		return HERALD_DONE;
	if (qp->sq.fate != HERALD_FATE_LOSE && qp->sq.fate != HERALD_FATE_CORRUPT)
		herald_count(qp->dev, HERALD_CTR_mcast_delivered);
	qp->sq.done = after;
	return HERALD_MORE;
}

static enum herald_progress transmit(struct herald_qp *qp, u32 qpn,
				     const struct herald_request *rq,
				     enum herald_outcome *outcome, struct herald_deferred *d)
{
	if (rdma_is_multicast_addr((struct in6_addr *)&rq->src_av->dgid))
		return push_multicast(qp, rq, outcome, d);
	return push_unicast(qp, qpn, rq, outcome, d);
}

/* The op's own datagram has arrived: now the one that it has overtaken. */
static enum herald_progress push_late(struct herald_qp *qp, enum herald_outcome *outcome,
				      struct herald_deferred *d)
{
	struct herald_late *late = qp->sq.late;
	const struct herald_span span = { .linear = late->data, .length = late->rq.length };
	struct herald_cursor payload __uninitialized;
	enum herald_progress progress;

	*outcome = HERALD_OK;
	herald_cursor_open(&payload, &span, 0, late->rq.length);
	late->rq.payload = &payload;
	progress = transmit(qp, late->qpn, &late->rq, outcome, d);
	herald_cursor_close(&payload);
	if (progress == HERALD_DONE)
		herald_late_drop(qp);
	return progress;
}

/* A datagram has been sent; what else is there to do on its occasion? */
static enum herald_progress aftermath(struct herald_qp *qp, enum herald_outcome outcome)
{
	/* what follows goes the whole way, too */
	qp->sq.finish = false;
	if (outcome != HERALD_OK)
		return HERALD_DONE;
	if (qp->sq.fate == HERALD_FATE_DUPLICATE) {
		qp->sq.fate = HERALD_FATE_PASS;
		return HERALD_MORE;
	}
	if (!qp->sq.late)
		return HERALD_DONE;
	qp->sq.fate = HERALD_FATE_OVERTAKES;
	return HERALD_MORE;
}

/* Does the datagram not leave now?  Then *progress says what becomes of the WR. */
static bool kept_back(struct herald_qp *qp, const struct herald_request *rq, u32 qpn,
		      enum herald_progress *progress)
{
	switch (fate_of(qp)) {
	case HERALD_FATE_DELAY:
		*progress = HERALD_AGAIN;
		return delayed(qp);
	case HERALD_FATE_REORDER:
		*progress = HERALD_DONE;
		if (herald_late_keep(qp, rq, qpn))
			return true;
		qp->sq.fate = HERALD_FATE_PASS;
		return false;
	default:
		return false;
	}
}

/* QP1's work requests each say which P_Key they go with. */
static u16 datagram_pkey(const struct herald_qp *qp, const struct herald_op *op)
{
	return qp->type == IB_QPT_GSI ? herald_dev_pkey(qp->dev, op->u.ud.pkey_index) :
					herald_qp_partition(qp);
}

static enum herald_progress push_datagram(struct herald_qp *qp, struct herald_op *op,
					  enum herald_outcome *outcome, struct herald_deferred *d)
{
	struct herald_span span = herald_op_span(qp, op);
	struct herald_cursor payload __uninitialized;
	const struct herald_av *av = &op->ah->av;
	u32 qkey = op->u.ud.remote_qkey;
	enum herald_progress progress;
	u8 grh[GRH_LEN];
	struct herald_request rq = {
		.opcode = op->opcode,
		.solicited = op->flags & HERALD_WR_SOLICITED,
		.imm_or_rkey = op->imm_or_rkey,
		.length = op->length,
		.piece = op->length,
		.payload = &payload,
		.src_qpn = qp->qpn,
		.src_av = av,
		.qkey = qkey & CONTROLLED_QKEY ? qp->qkey : qkey,
		.pkey = datagram_pkey(qp, op),
		.grh = grh,
	};

	if (unlikely(qp->sq.fate == HERALD_FATE_OVERTAKES))
		return push_late(qp, outcome, d);

	*outcome = HERALD_OK;
	if (op->length > herald_dev_mtu(qp->dev))
		*outcome = HERALD_LOC_LEN;
	else if (herald_cursor_open(&payload, &span, 0, op->length))
		*outcome = HERALD_LOC_PROT;
	if (*outcome != HERALD_OK)
		return HERALD_DONE;

	build_grh(grh, av, op->length);
	if (!kept_back(qp, &rq, op->u.ud.remote_qpn, &progress)) {
		progress = transmit(qp, op->u.ud.remote_qpn, &rq, outcome, d);
		if (progress == HERALD_DONE)
			progress = aftermath(qp, *outcome);
	}
	herald_cursor_close(&payload);
	return progress;
}

static enum herald_progress push(struct herald_qp *qp, struct herald_op *op,
				 enum herald_outcome *outcome, struct herald_deferred *d)
{
	bool connected = qp->type == IB_QPT_RC || qp->type == IB_QPT_UC;
	enum herald_progress progress;

	if (connected)
		progress = push_connected(qp, op, outcome, d);
	else
		progress = push_datagram(qp, op, outcome, d);
	if (unlikely(qp->sq.fate) && progress == HERALD_DONE)
		qp->sq.fate = HERALD_FATE_UNKNOWN;
	return progress;
}

const struct herald_transport_ops herald_transport_local = {
	.name = "local",
	.push = push,
};
