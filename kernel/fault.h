/* SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB */
/*
 * Faults on purpose: what is armed on a device, and whether it strikes now.
 *
 * A fault has a site, which is the one place that asks for it.  A site asks only
 * if something is armed for it, which is a look at one word of the device; the
 * rest of what a fault does is done by the code that meets such things anyway.
 */
#ifndef HERALD_FAULT_H
#define HERALD_FAULT_H

#include <linux/compiler.h>
#include <linux/list.h>
#include <linux/prandom.h>
#include <linux/spinlock.h>
#include <linux/types.h>

struct herald_dev;
struct herald_qp;
struct seq_file;

#define HERALD_MAX_FAULTS	64	/* of a device, those that are over included */

/* Where a fault strikes.  Those from HERALD_FAULT_VERBS on are verbs that fail. */
enum herald_fault_site {
	HERALD_FAULT_MESSAGE,	/* an attempt at a message leaves its requester */
	HERALD_FAULT_RNR,	/* a responder looks for a receive WR */
	HERALD_FAULT_WR,	/* a requester takes the next WR */
	HERALD_FAULT_RECV,	/* a responder has taken a receive WR */
	HERALD_FAULT_VERBS,
	HERALD_FAULT_CREATE_QP = HERALD_FAULT_VERBS,
	HERALD_FAULT_CREATE_CQ,
	HERALD_FAULT_CREATE_SRQ,
	HERALD_FAULT_CREATE_AH,
	HERALD_FAULT_ALLOC_PD,
	HERALD_FAULT_REG_MR,
	HERALD_FAULT_MODIFY_QP,
	HERALD_FAULT_RESIZE_CQ,
	HERALD_FAULT_POST_SEND,
	HERALD_FAULT_POST_RECV,
	HERALD_FAULT_POST_SRQ_RECV,
	HERALD_FAULT_REQ_NOTIFY,
	HERALD_FAULT_SITES
};

/* What becomes of an attempt at a message. */
enum herald_fate {
	HERALD_FATE_UNKNOWN,	/* nobody asked */
	HERALD_FATE_PASS,	/* nothing happens to it */
	HERALD_FATE_LOSE,
	HERALD_FATE_DELAY,
	HERALD_FATE_DUPLICATE,
	HERALD_FATE_REORDER,
	HERALD_FATE_CORRUPT,
	/* not armed: a datagram is through, and the one that it has overtaken follows */
	HERALD_FATE_OVERTAKES,
};

/* When a fault strikes, of the times that its site asks for it. */
enum herald_fault_trigger {
	HERALD_FAULT_NTH,	/* from the @number-th on */
	HERALD_FAULT_EVERY,	/* each @number-th */
	HERALD_FAULT_PERMILLE,	/* @number of 1000, by chance */
};

#define HERALD_FAULT_NO_END	U64_MAX

/**
 * struct herald_fault - one armed fault
 * @node: in herald_faults.list
 * @id: its number
 * @site: enum herald_fault_site
 * @fate: what happens to a message: enum herald_fate
 * @value: microseconds of a delay; a verb's errno; a WR's enum ib_wc_status
 * @qpn: of which QP; 0: of any
 * @trigger, @number: when; enum herald_fault_trigger
 * @seed: of @chance
 * @seen: how often its site asked
 * @struck: how often it struck
 * @left: how often it is still to strike; HERALD_FAULT_NO_END: no end
 */
struct herald_fault {
	struct list_head node;
	u32 id;
	u8 site;
	u8 fate;
	u8 trigger;
	u32 value;
	u32 qpn;
	u32 number;
	u64 seed;
	struct rnd_state chance;
	u64 seen;
	u64 struck;
	u64 left;
};

/**
 * struct herald_faults - those of a device
 * @armed: bit of each enum herald_fault_site for which something can still strike
 * @lock: protects the rest, and writers of @armed; irq-safe; a leaf
 * @list: in the order in which they were armed
 * @count: how many these are
 * @last_id: of the one that was armed last
 */
struct herald_faults {
	u32 armed;
	spinlock_t lock;
	struct list_head list;
	unsigned int count;
	u32 last_id;
};

/* Can something strike here?  Context: any. */
static inline bool herald_fault_armed(const struct herald_faults *faults,
				      enum herald_fault_site site)
{
	return unlikely(READ_ONCE(faults->armed) & BIT(site));
}

/* ------------------------------------------------------------- the sites -- */

/*
 * What becomes of the attempt that @qp begins; @usec: how late it will be, if it
 * is to be delayed.  Context: any.
 */
enum herald_fate herald_fault_message(struct herald_qp *qp, u32 *usec);

/* Is there no receive WR to be had?  Context: any. */
bool herald_fault_rnr(struct herald_qp *qp);

/* The status that the WR, or receive WR, just taken is to have; 0: its own.  Context: any. */
u8 herald_fault_wr(struct herald_qp *qp);
u8 herald_fault_recv(struct herald_qp *qp);

int herald_fault_verb_strikes(struct herald_faults *faults, enum herald_fault_site verb);

/* The verb begins: 0, or the errno that it is to fail with, having done nothing.  Context: any. */
static inline int herald_fault_verb(struct herald_faults *faults, enum herald_fault_site verb)
{
	return herald_fault_armed(faults, verb) ? herald_fault_verb_strikes(faults, verb) : 0;
}

/*
 * Have a process ask before it posts to a ring, or not, as something is armed for
 * it or not; @word: the ring's, see herald-abi.h.  Context: process.
 */
void herald_fault_ask(struct herald_faults *faults, enum herald_fault_site site, u32 *word);

/* ------------------------------------------------------------ the faults -- */

void herald_faults_init(struct herald_dev *dev);
void herald_faults_exit(struct herald_dev *dev);	/* no site asks any more */

/**
 * herald_fault_arm - arm a fault
 * @dev: the device
 * @want: what, when and how often; copied
 *
 * One that is over makes room if there are too many.
 * Return: 0, -ENOMEM, or -ENOSPC if all of them are still to strike.
 * Context: process, may sleep.
 */
int herald_fault_arm(struct herald_dev *dev, const struct herald_fault *want);

/* Disarm the one with a number, or all (@id 0).  0 or -ENOENT.  Context: process, may sleep. */
int herald_fault_disarm(struct herald_dev *dev, u32 id);

/* The QP has gone, and with it what was armed for it.  Context: process, may sleep. */
void herald_fault_forget_qp(struct herald_qp *qp);

/*
 * Call @show for each, in the order of arming, under a lock: it must not sleep.
 * Context: process.
 */
void herald_faults_each(struct herald_dev *dev,
			void (*show)(const struct herald_fault *fault, void *arg), void *arg);

#endif /* HERALD_FAULT_H */
