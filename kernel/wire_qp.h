/* SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB */
/*
 * A connected QP on the wire: what its two engines remember of the packets they
 * sent and received.  wire_req.c sends requests, wire_ack.c hears what becomes
 * of them; wire_resp.c takes requests, wire_reply.c answers them.
 */
#ifndef HERALD_WIRE_QP_H
#define HERALD_WIRE_QP_H

#include <linux/hrtimer.h>
#include <linux/skbuff.h>

#include "engine.h"
#include "limits.h"
#include "qp.h"
#include "requester.h"
#include "responder.h"
#include "wire.h"
#include "wire_check.h"
#include "wire_pace.h"
#include "wqe.h"

#define HERALD_WIRE_OPS		64	/* WRs in flight; a power of two */
#define HERALD_WIRE_WINDOW	(1u << 20)	/* bytes in flight */
#define HERALD_WIRE_READS	HERALD_MAX_RD_ATOMIC
/* A READ is asked for in parts of this size, so that its answer finds room. */
#define HERALD_WIRE_READ_PART	(512u << 10)

struct herald_deferred;
struct herald_pkt;

/**
 * struct herald_wire_op - a send WR in the window
 * @op: the WR
 * @first, @last: the PSNs of its packets; a READ's are those of the responses
 * @outcome, @status: what is known of it already; acted upon when it is the oldest:
 *	the outcome, or with HERALD_OK the enum ib_wc_status
 * @fate: of the attempt that is under way: enum herald_fate
 * @settled: they are valid, and nothing is to be sent
 */
struct herald_wire_op {
	struct herald_op op;
	u32 first, last;
	u8 outcome;
	u8 status;
	u8 fate;
	bool settled;
};

/* A READ that is being answered */
struct herald_wire_reading {
	bool active;
	bool again;		/* a duplicate's */
	u32 psn;		/* of the next response */
	u32 msn;
	u32 left;		/* responses to come */
	u64 va;
	u64 length;
	u64 offset;
	u32 rkey;
};

/**
 * struct herald_wire_qp - the state of a connected QP on the wire
 * @requests, @responses: what has arrived and waits for its engine; own locks
 * @waiting: bytes of the skbs in both
 * @timer: the local ACK timeout; asks the requester to look
 * @pace, @pace_timer: of its doorbells; nobody's
 *
 * @req: belongs to the owner of qp->sq.engine
 * @req.ops: HERALD_WIRE_OPS slots; @head: the oldest, @send: the one that is
 *	being sent, @tail: the next free one; free running
 * @req.psn: of the next WR; @una: the oldest not acknowledged; @next: of the
 *	next packet, which is one of ops[send]'s
 * @req.end: behind the last packet that was ever sent
 * @req.reads: READs and atomics that were sent and not answered
 * @req.gap_seen: that responses were lost was noticed at this @una, and they were asked for again
 * @req.deadline: when the answer is overdue; only if @req.timing
 *
 * @resp: belongs to the owner of qp->resp.engine
 * @resp.psn: the one that is expected
 * @resp.acked: the last one that an ACK may name: that of a SEND or WRITE
 * @resp.done: the last HERALD_WIRE_READS READs and atomics
 * @resp.asked: how many of them there were; @answered: ... that have all of their answer
 *
 * @req.ops and @resp.done are there from the first modify to RTR that needs them.
 */
struct herald_wire_qp {
	struct herald_qp *qp;
	struct sk_buff_head requests;
	struct sk_buff_head responses;
	atomic_t waiting;
	struct hrtimer timer;
	struct herald_pace pace;
	struct hrtimer pace_timer;

	struct {
		struct herald_wire_op *ops;
		u32 head, send, tail;
		u32 psn;
		u32 una;
		u32 next;
		u32 end;
		u32 reads;
		bool gap_seen;
		ktime_t deadline;
		bool timing;
		struct herald_route route;
	} req;

	struct {
		u32 psn;
		u32 acked;
		u32 msn;
		u8 message;		/* enum herald_op_kind of the message under way, or 0 */
		u64 offset;		/* bytes of it that arrived */
		u64 length;		/* WRITE: of all of it */
		u64 va;
		u32 rkey;
		bool finish;		/* SEND_WITH_INV: to be asked again */
		bool skipping;		/* UC: the rest of a message that was lost or dropped */
		bool nak_sent;		/* silence until the expected packet comes */
		bool ack_due;
		struct herald_wire_reading reading;
		struct herald_wire_done *done;
		u32 next_done;
		u32 asked;
		u32 answered;
		struct herald_route route;
	} resp;
};

/* ----------------------------------------------------------------- life -- */

/* What a new QP needs for the wire, if there is one; 0 or -ENOMEM.  Context: may sleep. */
int herald_wire_qp_init(struct herald_qp *qp);
/*
 * ... and what it needs for a connection to @av, if that goes over the wire: before a
 * modify to RTR.  0 or -ENOMEM.  Context: no lock held.
 */
int herald_wire_qp_connect(struct herald_qp *qp, const struct herald_av *av);
/* No timer runs any more; the requester is idle, and the state forbids work.  May sleep. */
void herald_wire_qp_stop(struct herald_qp *qp);
/* Drop what has arrived, and what is remembered.  The owner of the engine. */
void herald_wire_req_reset(struct herald_qp *qp);
void herald_wire_resp_reset(struct herald_qp *qp);
void herald_wire_qp_exit(struct herald_qp *qp);
/* The PSNs of a modify to RTR, or to RTS.  Context: qp->lock held; the engine is at rest. */
void herald_wire_qp_rtr(struct herald_qp *qp);
void herald_wire_qp_rts(struct herald_qp *qp);
/* The PSNs as they are now.  Context: qp->lock held. */
void herald_wire_qp_query(struct herald_qp *qp, struct ib_qp_attr *attr);

/* The queues of what has arrived, for the owner of the engine that it is for. */
struct sk_buff *herald_wire_dequeue(struct herald_wire_qp *w, struct sk_buff_head *queue);
void herald_wire_put_back(struct herald_wire_qp *w, struct sk_buff_head *queue,
			  struct sk_buff *skb);
void herald_wire_purge(struct herald_wire_qp *w, struct sk_buff_head *queue);

static inline struct herald_wire_op *herald_wire_slot(struct herald_wire_qp *w, u32 i)
{
	return &w->req.ops[i & (HERALD_WIRE_OPS - 1)];
}

/* Is a WR in the window?  Context: owner of the requester. */
static inline bool herald_wire_busy(const struct herald_qp *qp)
{
	return qp->wire && qp->wire->req.head != qp->wire->req.tail;
}

/* ------------------------------------------------------------ requester -- */

/* A doorbell is rung.  true: work off what there is; else that is done soon. */
bool herald_wire_may_ring(struct herald_qp *qp);

/* Is there room in the window, and nothing in it that the current op has to wait for? */
bool herald_wire_may_take(struct herald_qp *qp);

/*
 * The current op goes into the window.  @out: what is wrong with it, or with
 * HERALD_OK the @status that it is to end with, or IB_WC_SUCCESS: it is sent.
 */
void herald_wire_take(struct herald_qp *qp, enum herald_outcome out, int status);

/* Is the answer more than an ACK? */
bool herald_wire_answered_by_data(const struct herald_op *op);

/*
 * Take what has arrived, look at the timer, send.  Return: HERALD_MORE if it is
 * to be called again at once, else HERALD_BUSY.
 */
enum herald_progress herald_wire_advance(struct herald_qp *qp, unsigned int may, u32 *bytes,
					 struct herald_deferred *d);

/* The oldest WR is flushed; false: there is none. */
bool herald_wire_flush(struct herald_qp *qp, struct herald_deferred *d);

/* Go back to the oldest packet that was not acknowledged. */
void herald_wire_rewind(struct herald_qp *qp);

/* The same, as a retry: false, and the oldest WR has failed, if none is left. */
bool herald_wire_retry(struct herald_qp *qp, enum herald_wait why, struct herald_deferred *d);

/* An answer came: the retries and the wait for an answer start anew. */
void herald_wire_progress(struct herald_qp *qp);

/* The oldest WR completes, if nothing more is to come for it: true. */
bool herald_wire_settle(struct herald_qp *qp, struct herald_deferred *d);

/* Look at one train of responses.  The owner of the requester. */
void herald_wire_response(struct herald_qp *qp, struct sk_buff *skb, struct herald_deferred *d);

/* The oldest WR is done, in this way. */
void herald_wire_complete_head(struct herald_qp *qp, int status, struct herald_deferred *d);

/* Its answer leaves: the peer may ask for one more.  The owner of the responder. */
static inline void herald_wire_answered(struct herald_wire_qp *w)
{
	WRITE_ONCE(w->resp.answered, w->resp.answered + 1);
}

/* How many packets may be in flight */
static inline u32 herald_wire_window(u32 mtu)
{
	return HERALD_WIRE_WINDOW / mtu;
}

/* Packets of @length bytes */
static inline u32 herald_wire_packets(u32 mtu, u64 length)
{
	return length ? (u32)((length + mtu - 1) / mtu) : 1;
}

/* ------------------------------------------------------------ responder -- */

/*
 * Take the requests that have arrived.  The owner of the responder.
 * Return: false: there is more than fits into one turn, call again later.
 */
bool herald_wire_respond(struct herald_qp *qp, struct herald_deferred *d);

/* Answers; each may find no memory, and is then lost as any packet may be. */
void herald_wire_send_ack(struct herald_qp *qp);
bool herald_wire_send_nak(struct herald_qp *qp, u8 syndrome);	/* false: it was */
void herald_wire_send_atomic(struct herald_qp *qp, u32 psn, u64 value);
/* For ATOMIC_WRITE and FLUSH */
void herald_wire_send_done(struct herald_qp *qp, u32 psn);

/* A READ that was begun cannot go on. */
void herald_wire_refuse_read(struct herald_qp *qp, enum herald_outcome out);

/* Go on answering a READ.  Return: false: there is more to send, but not in this turn. */
bool herald_wire_serve(struct herald_qp *qp, u32 *budget, struct herald_deferred *d);

/* May a QP hear what was sent with this P_Key?  Context: any. */
bool herald_pkey_matches(const struct herald_qp *qp, u16 pkey);

/*
 * Is it of the connection's service, and did it come over its path and in its
 * partition?  Over the alternate path, from one who has moved there, the QP follows.
 * Context: any; no lock held.
 */
bool herald_wire_arrives(struct herald_qp *qp, const struct sk_buff *skb,
			 const struct herald_pkt *pkt, struct herald_deferred *d);

/* -------------------------------------------------------------- choosing -- */

/* Is anybody else on the device's wire?  On lo, all that is sent comes back.  Context: any. */
bool herald_wire_has_others(struct herald_dev *dev);

/* Is the peer of this connection to be reached over the wire?  Context: any. */
bool herald_wire_wanted(struct herald_qp *qp, const struct herald_av *av);

/* ------------------------------------------------------------ datagrams -- */

/* Send it; false: there is no wire to send it over.  The requester's owner. */
bool herald_wire_send_datagram(struct herald_qp *qp, const struct herald_request *rq, u32 qpn);

/* Take the datagrams of a train; always true.  The responder's owner. */
bool herald_wire_datagrams(struct herald_qp *qp, struct sk_buff *skb, struct herald_deferred *d);

#endif /* HERALD_WIRE_QP_H */
