/* SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB */
/*
 * Torture of completion events: threads that do random things to queue pairs and
 * completion queues, and accounts that say what must come of it.
 *
 * A group is a few CQs, of random kinds, and pairs of QPs that complete to them.
 * Who uses a pair reads group->lock and pair->lock; who destroys it writes one of
 * the two.  Handlers take neither: a queue is posted to by who set its busy bit,
 * and whoever destroys the QP has that bit.
 */
#ifndef HERALD_TORTURE_H
#define HERALD_TORTURE_H

#include <linux/atomic.h>
#include <linux/prandom.h>
#include <linux/rwsem.h>
#include <linux/spinlock.h>
#include <rdma/ib_verbs.h>

#define TORTURE_GROUPS	2
#define TORTURE_CQS	3	/* of a group */
#define TORTURE_PAIRS	3	/* of a group */
#define TORTURE_DEPTH	32	/* WRs of a queue */
#define TORTURE_SLOTS	(2 * TORTURE_DEPTH)	/* the last WR of all may be one too many */
#define TORTURE_BUF	(64 * 1024)
#define TORTURE_TICK	50	/* ms; patience is counted in the watchdog's own ticks */

/* How the completions of a CQ reach the consumer */
enum torture_kind {
	TORTURE_DIRECT,		/* ib_alloc_cq: threads poll */
	TORTURE_SOFTIRQ,
	TORTURE_WORKQUEUE,
	TORTURE_MISSED,		/* own handler: poll, arm and report missed events */
	TORTURE_REPOLL,		/* own handler: poll, arm, poll */
	TORTURE_MIXED,		/* own handler only counts; threads poll and arm */
	TORTURE_SOLICITED,	/* own handler, for receive queues: arms for solicited ones */
	TORTURE_KINDS
};

extern const char *const torture_kind_names[TORTURE_KINDS];

/* What can be found to be broken; each is a line of the results. */
enum torture_rule {
	TORTURE_ONCE,		/* C13: every WR that must complete completes, once */
	TORTURE_ORDER,		/* C13: in the order of posting; after an error only flushes */
	TORTURE_GONE,		/* C14: nothing completes for a QP that was destroyed */
	TORTURE_ALONE,		/* C6: a handler is not entered twice at once for one CQ */
	TORTURE_BOUND,		/* C1: no more events than arms that took effect */
	TORTURE_LOST,		/* C2: what was armed and matched has fired; no stall */
	TORTURE_FLAG,		/* C3: what arming returns */
	TORTURE_VERB,		/* no verb fails that has no reason to */
	TORTURE_RULES
};

struct torture_queue;

struct torture_wr {
	struct ib_cqe cqe;
	struct torture_queue *queue;
	u32 seq;
	u32 number;		/* of the message, if it is one */
	bool live;
	bool signaled;
	bool message;
	bool solicited;
};

/* The send queue or the receive queue of a QP */
struct torture_queue {
	struct torture_end *end;
	struct torture_cq *cq;
	bool send;
	unsigned long busy;	/* bit 0: somebody posts, or the QP is not to be used */
	u32 posted;		/* by who is busy */
	u32 must;		/* WRs before this one complete, by who is busy */
	u32 messages;		/* sends: posted messages, by who is busy */
	u32 completed;		/* by who polls, as is what follows */
	u32 acked;		/* sends: messages that were successful; receives: that came */
	u32 acked_solicited;	/* the last solicited one of them, plus one */
	bool failed;
	atomic_t credits;	/* receives: WRs that no message is to take yet */
	u32 seen, ticks;	/* the watchdog's */
	int bank;
	struct torture_wr wrs[2][TORTURE_SLOTS];
};

struct torture_end {
	struct torture_pair *pair;
	struct torture_end *peer;
	struct ib_qp *qp;
	struct torture_queue sq, rq;
};

struct torture_pair {
	struct torture_group *group;
	struct rw_semaphore lock;
	bool dying;		/* errors are expected */
	u32 ticks;
	struct torture_end end[2];
};

enum torture_armed { TORTURE_UNARMED, TORTURE_ARMED_SOLICITED, TORTURE_ARMED_NEXT };

struct torture_cq {
	struct torture_group *group;
	struct ib_cq *cq;
	enum torture_kind kind;
	u32 vector;
	struct rnd_state rnd;	/* the handler's */
	atomic_t inside;	/* handlers that run now */
	atomic64_t events;
	spinlock_t lock;	/* polling and arming, but of what the core polls; what follows */
	enum torture_armed armed;
	bool sure;		/* the CQ was empty when it was armed */
	u32 fuzzy;		/* QPs that are being destroyed with completions in it */
	u64 arms;		/* at most so many events */
	u64 fired;		/* at least so many */
	u64 calls;		/* of ib_req_notify_cq */
	u64 hints;		/* ... that returned 1 */
	u64 polled;
	int last_ret, last_flags;
	u64 owed;		/* the watchdog's */
	u32 ticks;
};

struct torture_group {
	struct rw_semaphore lock;
	u32 ticks;
	struct torture_cq cq[TORTURE_CQS];
	struct torture_pair pair[TORTURE_PAIRS];
};

struct torture {
	struct ib_device *dev;
	struct ib_pd *pd;
	struct ib_mr *mr;	/* all of buf */
	void *buf;
	u64 dma;
	struct scatterlist sg;
	struct torture_group group[TORTURE_GROUPS];
	u32 patience;		/* ticks */
	bool stop;
};

extern struct torture torture;

struct torture_totals {
	atomic64_t calls, arms, events, fired, hints, posted, completed, flushed;
	atomic64_t kills, drains, purges, recreated, moderated, unmoderated;
	atomic64_t kinds[TORTURE_KINDS];
};

extern struct torture_totals torture_totals;

/* A failure; what was wrong goes to the log. */
__printf(2, 3) void torture_fail(enum torture_rule rule, const char *fmt, ...);

static inline u32 torture_below(struct rnd_state *rnd, u32 n)
{
	return prandom_u32_state(rnd) % n;
}

static inline bool torture_one_in(struct rnd_state *rnd, u32 n)
{
	return !torture_below(rnd, n);
}

/* The core polls it, in its own context. */
static inline bool torture_core_polls(const struct torture_cq *c)
{
	return c->kind == TORTURE_SOFTIRQ || c->kind == TORTURE_WORKQUEUE;
}

/* Nothing but a thread polls it. */
static inline bool torture_threads_poll(const struct torture_cq *c)
{
	return c->kind == TORTURE_DIRECT || c->kind == TORTURE_MIXED;
}

/* torture_queue.c: posting, and the accounts of queues */
void torture_queue_init(struct torture_queue *q, struct torture_end *end, bool send);
/* Up to @n WRs, fewer if there is no room.  Context: any. */
void torture_post(struct torture_queue *q, struct rnd_state *rnd, u32 n);
/* One more WR, which completes.  The queue is busy by the caller. */
void torture_post_last(struct torture_queue *q);
void torture_queue_restart(struct torture_queue *q);
void torture_done(struct ib_cq *cq, struct ib_wc *wc);
bool torture_queue_drained(const struct torture_queue *q);

/* torture_events.c: arming, and the account of events */
int torture_arm(struct torture_cq *c, int flags);
void torture_note_cqe(struct torture_cq *c, bool matching);
void torture_note_event(struct torture_cq *c);
void torture_set_fuzzy(struct torture_cq *c, bool fuzzy);

/* torture_cq.c: the kinds of CQs */
int torture_cq_create(struct torture_cq *c, enum torture_kind kind, struct rnd_state *rnd);
void torture_cq_destroy(struct torture_cq *c);
/* Up to @n completions of a CQ that threads poll.  Context: process. */
void torture_poll(struct torture_cq *c, int n);
/* Arm a mixed CQ in a random way.  Context: process. */
void torture_arm_mixed(struct torture_cq *c, struct rnd_state *rnd);
void torture_moderate(struct torture_cq *c, struct rnd_state *rnd);

/* torture_group.c: life and death */
void torture_group_init(struct torture_group *g);
int torture_group_create(struct torture_group *g, struct rnd_state *rnd);
void torture_group_destroy(struct torture_group *g, struct rnd_state *rnd);
void torture_group_recreate(struct torture_group *g, struct rnd_state *rnd);
void torture_kill_pair(struct torture_pair *pair, struct rnd_state *rnd);
int torture_memory_init(void);
void torture_memory_exit(void);

/* torture_thread.c */
int torture_thread(void *seed);

/*
 * torture_canary.c: has every CPU run a bottom half and a thread since the last
 * time that this was true?
 */
bool torture_canaries_sing(void);
void torture_canaries_init(void);
void torture_canaries_exit(void);

/* torture_watch.c: one tick of the watchdog; the dump of a CQ or a pair */
void torture_watch(void);
void torture_dump_cq(const struct torture_cq *c);
void torture_dump_pair(const struct torture_pair *pair);

#endif /* HERALD_TORTURE_H */
