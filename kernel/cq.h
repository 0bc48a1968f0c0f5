/* SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB */
/* Completion queues.  Only cq.c and cq_resize.c touch a CQ ring. */
#ifndef HERALD_CQ_H
#define HERALD_CQ_H

#include <linux/list.h>
#include <linux/mutex.h>
#include <linux/spinlock.h>
#include <linux/workqueue.h>
#include <rdma/ib_verbs.h>
#include <rdma/herald-abi.h>

#include "counters.h"
#include "event.h"
#include "moderate.h"
#include "notify.h"

struct herald_cq_hold;
struct herald_dev;
struct herald_shm;
struct herald_qp;

/* X(identifier): what a CQ counts; shown by debugfs and `rdma resource show cq -dd` */
#define HERALD_CQ_STATS(X)	\
	X(posted)		\
	X(arms)			\
	X(events)		\
	X(unarmed)		\
	X(unsolicited)		\
	X(missed_hints)		\
	X(dropped)		\
	X(events_read)		\
	X(events_acked)

/**
 * struct herald_cq_stats - what has happened on a CQ
 * @posted: CQEs added
 * @arms: arms but those that asked for nothing new: no more than a pending one,
 *	with no CQE since; a process's modulo 2^28
 * @events: completion events raised
 * @unarmed, @unsolicited: CQEs that raised none, and why
 * @missed_hints: arms that were told of unpolled CQEs
 * @dropped: CQEs lost by an overrun
 * @events_read, @events_acked: by the process's own account, as of its last
 *	ibv_get_cq_event, modulo 2^32; kernel consumers have none
 */
struct herald_cq_stats {
#define HERALD_CQ_STAT(name) u64 name;
	HERALD_CQ_STATS(HERALD_CQ_STAT)
#undef HERALD_CQ_STAT
};

/* What debugfs shows of a CQ */
struct herald_cq_info {
	struct herald_cq_stats stats;
	u32 unpolled;
	u32 held;	/* held back, see cq_hold.h */
	u32 waiting;	/* events that moderation delays */
	u8 armed;	/* enum herald_arm_state */
	bool dead;
};

/**
 * struct herald_cq - a completion queue
 * @user: the ring is mapped by a process, which consumes it and arms it by a
 *	store; else herald consumes it in poll_cq and @arm_state holds
 * @timestamps: its consumer asked for completion timestamps
 * @id: in herald_dev.cqs
 * @visitors: who found it there and is not done with it; its destroy waits for them
 * @uctx: the context of the process that made it; NULL: the kernel
 * @pid: the process that made it, as the initial namespace calls it; 0: the kernel
 * @cpu: where a kernel consumer's handler runs (its completion vector)
 * @lock: protects the fields from @shm to @notify_next; irq-safe; nothing but
 *	a herald_event_source.lock and timers' locks are taken inside it
 * @depth: slots, a power of two
 * @capacity: CQEs it holds before it overruns, == ib.cqe
 * @producer: private producer index
 * @consumer: private consumer index; of user CQs, the last one that was read
 *	and found possible
 * @purges: counts the changes that herald_cq_purge() made to unpolled CQEs
 * @dead: overrun happened; nothing is published any more
 * @overrun_walked: ... and all QPs that were attached then are in the error state
 * @overrun_provoked: ... on purpose
 * @overrun_pending: ... and its consequences are not over yet
 * @closing: being destroyed: no event from now on
 * @arm_state: kernel CQs
 * @arm_fired: user CQs: sequence number of the last arm consumed
 * @flags: enum herald_cq_flags, as published
 * @tell_arm: enum herald_tell_arm
 * @stats: see above; some of it is only in a process's half of the ring
 * @moderation: delays events
 * @hold: holds completions back on demand; NULL until that is first asked for
 * @events_due: completion events that were decided and not yet delivered
 * @claimed: some context will deliver @events_due
 * @notify_next: on the chain of the context that has claimed it
 * @overrun_next: on the chain of the context that will see to the overrun
 * @notify_work: delivers on @cpu, and when a context has done enough of it
 * @overrun_work: sees to an overrun's consequences
 * @events: its asynchronous events
 * @resize_mutex: one resize at a time
 * @qps_lock: protects @qps (a leaf; not held with @lock)
 * @qps: QPs attached, by herald_qp.cq_node[SEND or RECV]
 */
struct herald_cq {
	struct ib_cq ib;
	struct herald_dev *dev;
	bool user;
	bool timestamps;
	u32 id;
	atomic_t visitors;
	struct ib_ucontext *uctx;
	pid_t pid;
	unsigned int cpu;

	spinlock_t lock;
	struct herald_shm *shm;
	struct herald_cq_ctl *ctl;
	struct herald_cqe *cqes;
	u32 depth;
	u32 capacity;
	u32 producer;
	u32 consumer;
	u32 purges;
	bool dead;
	bool overrun_walked;
	bool overrun_provoked;
	bool overrun_pending;
	bool closing;
	u8 arm_state;
	u32 arm_fired;
	u32 flags;
	u8 tell_arm;
	struct herald_cq_stats stats;
	struct herald_moderation moderation;
	struct herald_cq_hold *hold;
	u32 events_due;
	bool claimed;
	struct herald_cq *notify_next;

	struct herald_cq *overrun_next;
	struct work_struct notify_work;
	struct work_struct overrun_work;
	struct herald_event_source events;
	struct mutex resize_mutex;

	spinlock_t qps_lock;
	struct list_head qps[2];
};

static inline struct herald_cq *to_hcq(struct ib_cq *ibcq)
{
	return container_of(ibcq, struct herald_cq, ib);
}

/* The ring has the flags of enum ibv_wc_flags; this one differs from its namesake in the kernel. */
#define HERALD_CQE_FLAG_INVALIDATE	(1 << 3)	/* IBV_WC_WITH_INV */

/*
 * A kernel CQ's CQE says which ib_qp it belongs to, where a process's may have
 * a timestamp, which the kernel's verbs do not know.  No process sees that
 * ring, and destroying a QP purges its CQEs, so the pointer is good as long as
 * the CQE is there.
 */
static inline void herald_cqe_set_qp(struct herald_cqe *cqe, struct ib_qp *ibqp)
{
	cqe->timestamp = (uintptr_t)ibqp;
}

static inline struct ib_qp *herald_cqe_qp(const struct herald_cqe *cqe)
{
	return (struct ib_qp *)(uintptr_t)cqe->timestamp;
}

/**
 * struct herald_sq_backref - where a send WR's fate is written before its CQE
 * @made: cqe_made in the SQ slot, or NULL
 * @index: cqe_index in the SQ slot
 * @consumer: the SQ's published consumer index
 * @value: what it becomes
 *
 * All are in shared memory, only written.
 */
struct herald_sq_backref {
	u32 *made;
	u32 *index;
	u32 *consumer;
	u32 value;
};

/**
 * herald_cq_publish - add a completion
 * @cq: the queue
 * @cqe: the completion; copied
 * @solicited: the message carried the solicited bit (an unsuccessful status
 *	counts as solicited by itself)
 * @ref: written before the CQE becomes visible, may be NULL
 * @d: gets the completion event, or the overrun, if there is one
 *
 * Publishing and consuming the armed state are one critical section.  On a
 * full queue: the CQ dies (HERALD_CQ_DEAD), once; @ref is written all the same,
 * saying that no CQE was made.
 *
 * Return: false if the CQE was dropped and nothing will come of it: the
 * overrun is over and its consequences were dealt with.  Else true.
 * Context: any; no other lock of the CQ held.
 */
bool herald_cq_publish(struct herald_cq *cq, const struct herald_cqe *cqe, bool solicited,
		       const struct herald_sq_backref *ref, struct herald_deferred *d);

/* Count something of a CQ, and of its device.  cq->lock held. */
static inline void herald_cq_count(struct herald_cq *cq, u64 *stat, enum herald_counter counter)
{
	++*stat;
	herald_count(cq->dev, counter);
}

/* What an overrun does, without one; 0, or -EINVAL if it is dead already.  Context: any. */
int herald_cq_kill(struct herald_cq *cq, struct herald_deferred *d);

/* What is said of it; @info is overwritten.  Context: any. */
void herald_cq_look(struct herald_cq *cq, struct herald_cq_info *info);

/* --------------------------------- for cq_hold.c, with cq->lock held -- */

/* Add a CQE, for which there is room, and raise its event. */
void herald_cq_add(struct herald_cq *cq, const struct herald_cqe *cqe, bool solicited,
		   struct herald_deferred *d);
void herald_cq_write_ref(const struct herald_sq_backref *ref, bool made, u32 index);

/* A completion event is due. */
void herald_cq_event(struct herald_cq *cq, struct herald_deferred *d);

/* Why a process is to announce its arms */
enum herald_tell_arm {
	HERALD_TELL_ARM_HOLD	= 1 << 0,	/* something may be released then */
	HERALD_TELL_ARM_FAULT	= 1 << 1,	/* the arm may fail */
};

/*
 * Ask the process to announce its arms (HERALD_CQ_TELL_ARM), or, if there is no
 * other reason, not to.  cq->lock held.
 */
void herald_cq_tell_arm(struct herald_cq *cq, enum herald_tell_arm why, bool tell);

/* As herald_qp_ask(), for arms.  Context: process; the CQ does not go away. */
void herald_cq_ask(struct herald_cq *cq);

/* ----------------------------------------------------------------------- */

/**
 * herald_cq_purge - remove a QP's unpolled CQEs and free their room
 * @cq: the queue; of a user CQ, only those that are held: the provider removes
 *	the others
 * @qpn: the QP; it produces none any more
 *
 * Context: any.
 */
void herald_cq_purge(struct herald_cq *cq, u32 qpn);

/* Put a QP on the list of those that an overrun takes along, and off it.  Context: any. */
void herald_cq_attach_qp(struct herald_cq *cq, struct list_head *node, bool send);
void herald_cq_detach_qp(struct herald_cq *cq, struct list_head *node);

void herald_cq_overrun_init(struct herald_cq *cq);

/*
 * Called by herald_deferred_run: have a work item see to an overrun's
 * consequences: CQ_ERR, then herald_qp_fatal() on every attached QP.
 * Context: any.
 */
void herald_cq_overrun(struct herald_cq *cq);

/* Wait until the consequences of an overrun, if any, are over (destroy).  Context: may sleep. */
void herald_cq_overrun_flush(struct herald_cq *cq);

/*
 * ib_device_ops.  create_cq is for users and for the kernel alike, attrs may be
 * NULL.  On a dead CQ poll_cq and req_notify_cq fail with -EIO once the good
 * CQEs were polled.  A process polls and arms without the kernel: on its CQ
 * both fail with -EOPNOTSUPP.
 */
struct sk_buff;
int herald_fill_res_cq_entry(struct sk_buff *msg, struct ib_cq *ibcq);
int herald_create_cq(struct ib_cq *ibcq, const struct ib_cq_init_attr *attr,
		     struct uverbs_attr_bundle *attrs);
int herald_pre_destroy_cq(struct ib_cq *ibcq);
int herald_destroy_cq(struct ib_cq *ibcq, struct ib_udata *udata);
int herald_resize_cq(struct ib_cq *ibcq, unsigned int cqe, struct ib_udata *udata);
int herald_poll_cq(struct ib_cq *ibcq, int n, struct ib_wc *wc);
int herald_req_notify_cq(struct ib_cq *ibcq, enum ib_cq_notify_flags flags);

#endif /* HERALD_CQ_H */
