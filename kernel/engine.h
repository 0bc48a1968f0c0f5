/* SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB */
/*
 * Ownership of an engine (a QP's requester, a QP's responder).
 *
 * An engine is run by one context at a time.  That is a flag and not a lock:
 * the owner may copy data, complete work and run completion handlers, and it
 * may hand the engine over to a work item without letting go of it.  Whoever
 * finds it owned leaves a kick and goes away; the owner looks again before it
 * lets go.
 */
#ifndef HERALD_ENGINE_H
#define HERALD_ENGINE_H

#include <linux/atomic.h>
#include <linux/wait_bit.h>

#define HERALD_ENGINE_RUN	1
#define HERALD_ENGINE_KICK	2

struct herald_engine {
	atomic_t word;
};

static inline void herald_engine_init(struct herald_engine *e)
{
	atomic_set(&e->word, 0);
}

/**
 * herald_engine_kick - ask for the engine to run
 * @e: the engine
 *
 * Return: true if the caller now owns it and must run it; false if somebody
 * else owns it, who will see the kick before letting go.
 * Context: any.
 */
static inline bool herald_engine_kick(struct herald_engine *e)
{
	int old = atomic_fetch_or(HERALD_ENGINE_RUN | HERALD_ENGINE_KICK, &e->word);

	return !(old & HERALD_ENGINE_RUN);
}

/**
 * herald_engine_try - own the engine if nobody does, without leaving a kick
 * @e: the engine
 *
 * Return: true if the caller now owns it.
 * Context: any.
 */
static inline bool herald_engine_try(struct herald_engine *e)
{
	return atomic_cmpxchg_acquire(&e->word, 0, HERALD_ENGINE_RUN) == 0;
}

/* The owner is about to look at all there is to do.  Context: any; owner only. */
static inline void herald_engine_clear_kick(struct herald_engine *e)
{
	atomic_fetch_andnot(HERALD_ENGINE_KICK, &e->word);
}

/**
 * herald_engine_release - let go of the engine unless it was kicked
 * @e: the engine
 *
 * Return: true if it is no longer the caller's; false if there was a kick: the
 * caller still owns it and must look again.
 * Context: any; owner only.
 */
static inline bool herald_engine_release(struct herald_engine *e)
{
	if (atomic_cmpxchg_release(&e->word, HERALD_ENGINE_RUN, 0) != HERALD_ENGINE_RUN)
		return false;
	smp_mb__after_atomic();
	wake_up_var(&e->word);
	return true;
}

/* Wait until nobody owns the engine.  Context: process, may sleep. */
static inline void herald_engine_wait_idle(struct herald_engine *e)
{
	wait_var_event(&e->word, !(atomic_read(&e->word) & HERALD_ENGINE_RUN));
}

static inline bool herald_engine_owned(const struct herald_engine *e)
{
	return atomic_read(&e->word) & HERALD_ENGINE_RUN;
}

#endif /* HERALD_ENGINE_H */
