/* SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB */
/* Queue pairs: the object, its states and its life. */
#ifndef HERALD_QP_H
#define HERALD_QP_H

#include <linux/completion.h>
#include <linux/hrtimer.h>
#include <linux/list.h>
#include <linux/refcount.h>
#include <linux/seqlock.h>
#include <linux/spinlock.h>
#include <linux/workqueue.h>
#include <rdma/ib_verbs.h>

#include "ah.h"
#include "device.h"
#include "engine.h"
#include "event.h"
#include "qp_state.h"
#include "ring.h"
#include "wqe.h"

struct herald_cq;
struct herald_srq;
struct herald_dev;
struct herald_transport_ops;
struct herald_wire_qp;

enum herald_qp_event_latch {
	HERALD_LATCH_COMM_EST	= 1 << 0,	/* raised since RTR was entered */
	HERALD_LATCH_LAST_WQE	= 1 << 1,
	HERALD_LATCH_DRAINED	= 1 << 2,	/* the send queue is idle since SQD was entered */
	HERALD_LATCH_FATAL	= 1 << 3,	/* QP_FATAL was raised */
};

/**
 * struct herald_qp_ref - what keeps a QP from going away
 * @refs: one for the object, one per user; the last one completes @qp->gone
 * @qpn: its number
 * @qp: the QP; valid while a reference is held
 *
 * It is not part of the QP because the core frees that as soon as destroy
 * returns, and a look-up under RCU may still be reading the count then.
 */
struct herald_qp_ref {
	refcount_t refs;
	u32 qpn;
	struct herald_qp *qp;
	struct rcu_head rcu;
};

/**
 * struct herald_qp - a queue pair
 *
 * Immutable after create:
 * @qpn: unique on the host among all herald devices, but for the GSI QP's 1
 * @scq, @rcq, @srq: where it completes and receives (@srq may be NULL)
 * @sq_sig_all, @cap: as created (@cap as granted)
 * @user: its rings belong to a process, whose context is @uctx
 * @pid: the process that made it, as the initial namespace calls it; 0: the kernel
 *
 * @lock: protects what stands under "state"; irq-safe; a leaf.  Attributes are
 * written before the state that makes engines look at them.
 * @path_seq: a reader of @av, @alt_av, @has_alt and their P_Key indices (in @attr)
 * that does not hold @lock reads until this has not changed; see path_migration.c
 * @sq: the requester: its fields belong to the owner of @sq.engine, but for
 * @sq.post_lock (kernel posters) and the timer
 * @resp: the responder: its fields belong to the owner of @resp.engine, but
 * for @resp.lock, which protects the waiting list
 */
struct herald_qp {
	struct ib_qp ib;
	struct herald_dev *dev;
	struct herald_qp_ref *ref;
	struct completion gone;

	u32 qpn;
	enum ib_qp_type type;
	bool user;
	struct ib_ucontext *uctx;
	pid_t pid;
	bool sq_sig_all;
	struct ib_qp_cap cap;
	struct herald_cq *scq, *rcq;
	struct herald_srq *srq;
	struct list_head cq_node[2];	/* in scq->qps[0], rcq->qps[1] */
	struct list_head mcast;		/* its memberships; under dev->mcast.lock */
	const struct herald_transport_ops *transport;

	/* state */
	spinlock_t lock;
	enum ib_qp_state state;		/* written under lock with release, see herald_qp_may */
	u32 latch;			/* enum herald_qp_event_latch */
	u32 provoked;			/* those whose event, when it comes, was provoked */
	bool sqd_notify;		/* SQ_DRAINED was asked for */
	bool dying;			/* destroy has begun */
	bool resetting;			/* a reset waits for the engines; state is RESET */
	bool has_av;			/* av was set since the last reset */
	struct ib_qp_attr attr;		/* as last modified; no address in it, see av */
	seqcount_spinlock_t path_seq;
	struct herald_av av;
	struct herald_av alt_av;	/* the alternate path */
	bool has_alt;			/* alt_av is valid */
	u32 path_moves;			/* how often it has migrated */
	u32 dest_qpn;
	u32 qkey;
	u32 mtu;			/* bytes */
	struct herald_event_source events;
	struct herald_wire_qp *wire;	/* what it needs on the wire, or NULL; see wire_qp.h */

	struct {
		struct herald_engine engine;
		struct herald_ring ring;
		spinlock_t post_lock;	/* kernel posters; a reset passes through it */
		struct work_struct work;
		struct hrtimer timer;
		struct herald_op op;	/* the WR being worked on */
		bool busy;		/* op is valid */
		bool waiting;		/* for the timer (set by the owner, cleared by the timer) */
		bool ring_dead;
		u64 done;		/* bytes of op that were moved; or see push_multicast() */
		bool finish;		/* SEND_WITH_INV: all moved, to be asked again */
		bool invalidated;		/* LOCAL_INV: the key is closed, copies may go on */
		u8 retry_left;
		u8 rnr_left;
		u8 rnr_timer;			/* the peer's, with the last RNR NAK */
		u8 wait_kind;			/* enum herald_wait: what the timer is for */
		u8 fate;			/* of the attempt: enum herald_fate */
		u8 verdict;			/* what the peer is to find: enum herald_outcome */
		u32 pause_usec;			/* with HERALD_AGAIN, if it is longer than usual */
		struct herald_late *late;	/* a datagram that the next one overtakes */
		u32 path_moves;			/* qp->path_moves, when retry_left began */
		s64 path_seen;			/* when the path was good; path_migration.c */
		struct herald_qp *wait_next;	/* on a responder's waiting list (referenced) */
		atomic_t on_wait_list;
	} sq;

	struct {
		struct herald_engine engine;
		spinlock_t lock;		/* waiters */
		struct herald_qp *waiters;	/* requesters to be kicked on release */
		struct herald_ring ring;	/* the RQ; no memory with an SRQ or without WRs */
		spinlock_t post_lock;		/* as sq.post_lock */
		struct herald_recv recv;	/* the WR being filled */
		bool busy;			/* recv is valid */
		bool invalidated;		/* SEND_WITH_INV: as in sq */
		bool dropped;			/* the last request, which nobody is told */
		bool ring_dead;
		struct work_struct work;	/* herald_qp_kick_responder() */
	} resp;
};

static inline struct herald_qp *to_hqp(struct ib_qp *ibqp)
{
	return container_of(ibqp, struct herald_qp, ib);
}

/* Every entry of a P_Key table makes its port a full member of the partition. */
static inline u16 herald_qp_partition(const struct herald_qp *qp)
{
	return herald_dev_pkey(qp->dev, READ_ONCE(qp->attr.pkey_index));
}

/* ------------------------------------------------------- references -- */

/*
 * herald_qp_find - the QP with a number, referenced, or NULL.  QPN 1 is never
 * found here: herald_qp_find_gsi().  Context: any.
 */
struct herald_qp *herald_qp_find(u32 qpn);
struct herald_qp *herald_qp_find_gsi(struct herald_dev *dev);

/*
 * Call @fn, with a reference, for every QP of the device, until it returns
 * something else than 0; return that, or 0.  Context: may sleep.
 */
int herald_qps_each(struct herald_dev *dev, int (*fn)(struct herald_qp *qp, void *arg), void *arg);
bool herald_qp_get(struct herald_qp *qp);	/* false if it is going away */
void herald_qp_put(struct herald_qp *qp);

int herald_qp_module_init(void);		/* the host-wide table of QP numbers */
void herald_qp_module_exit(void);

/* ------------------------------------------------------------ state -- */

/* Whoever sees a state sees the attributes that were set with it. */
static inline unsigned int herald_qp_may(const struct herald_qp *qp)
{
	/* pairs with the release in herald_qp_quiesce() and in qp_modify.c */
	return herald_qp_activity(smp_load_acquire(&qp->state));
}

/**
 * herald_qp_error - put a QP into the error state
 * @qp: the QP
 * @event: the asynchronous event that explains it, or -1
 * @d: gets the event
 *
 * Only the first call of a stay in ERR has an effect.  Sets the state and
 * kicks both engines, which flush; the caller must not own a lock.  If the
 * caller owns one of the engines, that engine flushes when the owner looks
 * again.  The event is that of the call which entered the state; but QP_FATAL
 * is raised, once, of a QP that was there already too: it may be all that tells
 * of completions which were lost with their CQ.
 * Return: true if this call entered the state, or raised the event.
 * Context: any; no lock held.
 */
bool herald_qp_error(struct herald_qp *qp, int event, struct herald_deferred *d);

/* Send queue error (UC, UD): RTS or SQD to SQE; from any other state, nothing. */
void herald_qp_sq_error(struct herald_qp *qp, struct herald_deferred *d);

/* The attached CQ overran: ERR and QP_FATAL. */
static inline void herald_qp_fatal(struct herald_qp *qp, struct herald_deferred *d)
{
	herald_qp_error(qp, IB_EVENT_QP_FATAL, d);
}

/* What a provoked SQ_DRAINED does: see docs/events.md.  0 or -EINVAL.  Context: no lock held. */
int herald_qp_drain(struct herald_qp *qp, struct herald_deferred *d);

/* The first request reached a QP in RTR: COMM_EST, once. */
void herald_qp_comm_est(struct herald_qp *qp, struct herald_deferred *d);

/* The requester has nothing under way and the state is SQD: SQ_DRAINED, if asked for, once. */
void herald_qp_drained(struct herald_qp *qp, struct herald_deferred *d);

/* The responder has flushed in ERR and takes nothing more: LAST_WQE_REACHED with an SRQ, once. */
void herald_qp_last_wqe(struct herald_qp *qp, struct herald_deferred *d);

/* ----------------------------------------------------- inside of qp -- */

/**
 * herald_may_run_here - may consumers' callbacks run in this context?
 *
 * Not with interrupts or bottom halves off: a kernel consumer may then hold a
 * lock that a handler takes, or is a handler itself, and must not be kept long.
 *
 * Context: any.
 */
bool herald_may_run_here(void);

/**
 * herald_qp_kick_requester - have the send queue worked off
 * @qp: the QP
 *
 * In this context if that is allowed (herald_may_run_here), else by the work item.
 * Context: any; no herald lock held.
 */
void herald_qp_kick_requester(struct herald_qp *qp);

/**
 * herald_qp_kick_responder - have the receive queue flushed if the state asks for it
 * @qp: the QP
 *
 * In this context if that is allowed (herald_may_run_here), else by a work item.
 * Context: any; no herald lock held.
 */
void herald_qp_kick_responder(struct herald_qp *qp);

/* As that, always by the work item.  Context: any; no herald lock held. */
void herald_qp_queue_responder(struct herald_qp *qp);

/*
 * A process whose posts may fail on purpose is to ask before it posts
 * (herald-abi.h), another one is not.  Context: process; the caller has a reference.
 */
void herald_qp_ask(struct herald_qp *qp);

void herald_qp_responder_work(struct work_struct *work);	/* post.c, for resp.work */

/*
 * Any state to RESET and dying (destroy), or only to RESET: no WR is accepted
 * and no event raised any more.  May sleep: waits for posters and engines.
 */
void herald_qp_quiesce(struct herald_qp *qp, bool dying);

/* All attributes and latches as after create.  Context: @qp->lock held. */
void herald_qp_clear_attr(struct herald_qp *qp);

/* ib_device_ops */
int herald_create_qp(struct ib_qp *ibqp, struct ib_qp_init_attr *init, struct ib_udata *udata);
int herald_modify_qp(struct ib_qp *ibqp, struct ib_qp_attr *attr, int mask, struct ib_udata *udata);
int herald_query_qp(struct ib_qp *ibqp, struct ib_qp_attr *attr, int mask,
		    struct ib_qp_init_attr *init);
int herald_destroy_qp(struct ib_qp *ibqp, struct ib_udata *udata);
/* post.c; for kernel consumers: a process has its rings and the doorbell */
int herald_post_send(struct ib_qp *ibqp, const struct ib_send_wr *wr,
		     const struct ib_send_wr **bad_wr);
int herald_post_recv(struct ib_qp *ibqp, const struct ib_recv_wr *wr,
		     const struct ib_recv_wr **bad_wr);

#endif /* HERALD_QP_H */
