/* SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB */
/*
 * When a send queue is worked off that is rung in quick succession: at each doorbell, or
 * at every so many of them, when several WRs travel as one train.
 *
 * A program that waits for each of its WRs is served best by the first, one that keeps
 * its queue full by the second.  Which of them it is cannot be seen from here; so it is
 * tried, and what did not pay is tried again after twice as many doorbells.  What waits
 * does not wait for longer than herald_pace_delay_ns(): the program may have nothing
 * more to send.
 */
#ifndef HERALD_WIRE_PACE_H
#define HERALD_WIRE_PACE_H

#include <linux/atomic.h>
#include <linux/types.h>

/**
 * struct herald_pace - of one QP; all zero at first
 * @waiting: doorbells whose WRs wait for more
 * @began, @ended: of its last doorbell, in ns
 * @took: how long the last one took that was worked off at once, in ns
 * @quick: doorbells in a row that came soon after the one before
 * @patience: the logarithm of how many more it takes for the next try
 * @batching: they wait for each other
 * @rung: doorbells since what waited had to be fetched
 *
 * But for @waiting, doorbells that meet may lose a count.
 */
struct herald_pace {
	atomic_t waiting;
	u64 began;
	u64 ended;
	u64 took;
	u32 quick;
	u8 patience;
	bool batching;
	u32 rung;
};

enum herald_pace_what {
	HERALD_PACE_RUN,	/* work it off now, with all that waits */
	HERALD_PACE_WAIT,	/* it waits */
	HERALD_PACE_WAIT_FIRST,	/* ... and is the first to: start the timer */
};

/* Nothing waits any more, and nothing is known.  Context: the timer does not run. */
void herald_pace_reset(struct herald_pace *pace);

/* A doorbell is rung.  Context: process. */
enum herald_pace_what herald_pace_ring(struct herald_pace *pace);

/* It is over. */
void herald_pace_rung(struct herald_pace *pace);

/* How long a WR may wait, in ns */
u64 herald_pace_delay_ns(const struct herald_pace *pace);

/* That time is over.  true: something waits, and is to be worked off.  Context: any. */
bool herald_pace_overdue(struct herald_pace *pace);

#endif /* HERALD_WIRE_PACE_H */
