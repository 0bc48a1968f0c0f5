// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/* When a send queue is worked off that is rung in quick succession. */
#include <linux/compiler.h>
#include <linux/minmax.h>
#include <linux/sched/clock.h>
#include <linux/time64.h>

#include "wire_pace.h"

/* From the end of one doorbell to the next one: so many times what one takes, and at least */
#define QUICK_RUNS	4
#define QUICK_NS	(20 * NSEC_PER_USEC)

/* So many quick ones, before it is tried, and a power of two more after each failure */
#define LEAST_PATIENCE	5
#define MOST_PATIENCE	16

/* Doorbells that wait for each other */
#define BATCH		16

/* It pays if what waits has to be fetched after so many, on average */
#define WORTH		32

/* How long one waits: so many times what a doorbell takes, and these limits */
#define DELAY_RUNS	4
#define LEAST_DELAY_NS	(20 * NSEC_PER_USEC)
#define MOST_DELAY_NS	(300 * NSEC_PER_USEC)

void herald_pace_reset(struct herald_pace *pace)
{
	WRITE_ONCE(pace->batching, false);
	pace->quick = 0;
	pace->patience = 0;
	atomic_set(&pace->waiting, 0);
}

static bool is_quick(struct herald_pace *pace)
{
	u64 now = local_clock(), most = max_t(u64, QUICK_RUNS * READ_ONCE(pace->took), QUICK_NS);
	bool quick = now - READ_ONCE(pace->ended) < most;

	WRITE_ONCE(pace->began, now);
	return quick;
}

static bool starts_batching(struct herald_pace *pace)
{
	pace->quick = is_quick(pace) ? pace->quick + 1 : 0;
	if (pace->quick < 1u << (LEAST_PATIENCE + pace->patience))
		return false;
	pace->quick = 0;
	pace->rung = 0;
	WRITE_ONCE(pace->batching, true);
	return true;
}

enum herald_pace_what herald_pace_ring(struct herald_pace *pace)
{
	int n;

	if (!READ_ONCE(pace->batching) && !starts_batching(pace))
		return HERALD_PACE_RUN;
	pace->rung++;
	/*
	 * The WR is in the ring already.  Either somebody who takes the count after this looks
	 * there after that, or the count stays, and who made it 1 has started the timer.
	 */
	n = atomic_inc_return(&pace->waiting);
	if (n >= BATCH) {
		atomic_xchg(&pace->waiting, 0);
		return HERALD_PACE_RUN;
	}
	return n == 1 ? HERALD_PACE_WAIT_FIRST : HERALD_PACE_WAIT;
}

void herald_pace_rung(struct herald_pace *pace)
{
	u64 now = local_clock();

	WRITE_ONCE(pace->ended, now);
	if (!READ_ONCE(pace->batching))
		WRITE_ONCE(pace->took, now - READ_ONCE(pace->began));
}

u64 herald_pace_delay_ns(const struct herald_pace *pace)
{
	return clamp_t(u64, DELAY_RUNS * READ_ONCE(pace->took), LEAST_DELAY_NS, MOST_DELAY_NS);
}

bool herald_pace_overdue(struct herald_pace *pace)
{
	if (!atomic_xchg(&pace->waiting, 0))
		return false;
	if (pace->rung >= WORTH) {
		pace->patience = 0;
	} else {
		WRITE_ONCE(pace->batching, false);
		pace->patience = min(pace->patience + 1, MOST_PATIENCE - LEAST_PATIENCE);
	}
	pace->rung = 0;
	return true;
}
