/* SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB */
/*
 * When does a completion raise an event?  The table is pure; the functions
 * that follow it are the only callers of comp_handler.
 */
#ifndef HERALD_NOTIFY_H
#define HERALD_NOTIFY_H

#include <linux/types.h>

enum herald_arm_state {
	HERALD_DISARMED,
	HERALD_ARMED_SOLICITED,
	HERALD_ARMED_NEXT,
	HERALD_ARM_STATES
};

enum herald_arm_input {
	HERALD_IN_ARM_SOLICITED,
	HERALD_IN_ARM_NEXT,
	HERALD_IN_PUBLISH,		/* an unsolicited, successful CQE */
	HERALD_IN_PUBLISH_SOLICITED,	/* a solicited or an unsuccessful CQE */
	HERALD_IN_OVERRUN,
	HERALD_IN_DESTROY,
	HERALD_ARM_INPUTS
};

enum herald_arm_verdict {
	HERALD_QUIET,			/* nothing to tell */
	HERALD_FIRE,			/* one completion event */
	HERALD_SUPPRESSED_UNARMED,	/* count it */
	HERALD_SUPPRESSED_UNSOLICITED,	/* count it */
};

struct herald_arm_step {
	u8 next;	/* enum herald_arm_state */
	u8 verdict;	/* enum herald_arm_verdict */
};

/* PURE.  Bounds are the caller's: both arguments are below their maximum. */
const struct herald_arm_step *herald_arm_table(enum herald_arm_state state,
					       enum herald_arm_input input);

/* What a process's arm word means for a CQE */
struct herald_armed {
	u8 state;	/* enum herald_arm_state */
	u32 seq;	/* the arm that it uses up if it fires */
};

/*
 * PURE.  What the arm word means for the CQE @index, when the last arm that
 * fired had the sequence number @fired; see herald-abi.h.
 */
struct herald_armed herald_arm_word(u64 arm, u32 fired, u32 index);

/* PURE.  As debugfs shows it. */
const char *herald_arm_state_name(enum herald_arm_state state);

struct herald_cq;
struct herald_deferred;

struct herald_dev;

/* The CPU of a completion vector of @dev, below num_comp_vectors.  Context: any. */
unsigned int herald_vector_cpu(const struct herald_dev *dev, u32 vector);

/* Note one completion event of @cq on @d.  Context: any; cq->lock held. */
void herald_notify_defer(struct herald_cq *cq, struct herald_deferred *d);

/*
 * Deliver the completion events of a CQ that this context has claimed, or have
 * them delivered: comp_handler is called once per event, never concurrently with
 * itself for one CQ, with bottom halves disabled.  A kernel consumer's handler
 * runs in a bottom half on the CPU of the CQ's completion vector, and never on
 * the call chain of a verb.  A process is woken from here: which CPU its threads
 * run on is its own affair.
 * Context: any; no herald lock held.
 */
void herald_notify_run(struct herald_cq *cq);

void herald_notify_init(struct herald_cq *cq);

/*
 * Wait for running handlers and drop undelivered events; cq->closing is set
 * (destroy).  Context: may sleep.
 */
void herald_notify_flush(struct herald_cq *cq);

#endif /* HERALD_NOTIFY_H */
