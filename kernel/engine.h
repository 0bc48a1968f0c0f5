/* SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB */
/*
 * Ownership of an engine (a QP's requester, a QP's responder).
 *
 * An engine is run by one context at a time.  That is a flag and not a lock:
 * the owner may copy data, complete work and run completion handlers, and it
 * may hand the engine over to a work item without letting go of it.  Whoever
 * finds it owned leaves a kick and goes away; the owner looks again before it
 * lets go.  Taking a free engine and letting go of one that nobody asked for
 * meanwhile is one atomic operation each.
 */
#ifndef HERALD_ENGINE_H
#define HERALD_ENGINE_H

#include <linux/atomic.h>
#include <linux/wait_bit.h>

#define HERALD_ENGINE_RUN	1
#define HERALD_ENGINE_KICK	2	/* only with RUN: look again */
#define HERALD_ENGINE_WAIT	4	/* only with RUN: somebody sleeps until it is free */

struct herald_engine {
	atomic_t word;
};

static inline void herald_engine_init(struct herald_engine *e)
{
	atomic_set(&e->word, 0);
}

/**
 * herald_engine_try - own the engine if nobody does, without leaving a kick
 * @e: the engine
 *
 * Return: true if the caller now owns it; what others did before they let go,
 * or before they failed to get it, is seen.
 * Context: any.
 */
static inline bool herald_engine_try(struct herald_engine *e)
{
	return atomic_cmpxchg(&e->word, 0, HERALD_ENGINE_RUN) == 0;
}

/**
 * herald_engine_kick - ask for the engine to run
 * @e: the engine
 *
 * Return: true if the caller now owns it and must look at all there is to do;
 * false if somebody else owns it, who will look after this before letting go.
 * Context: any.
 */
static inline bool herald_engine_kick(struct herald_engine *e)
{
	int old;

	while (!herald_engine_try(e)) {
		old = atomic_read(&e->word);
		if ((old & HERALD_ENGINE_RUN) &&
		    atomic_try_cmpxchg(&e->word, &old, old | HERALD_ENGINE_KICK))
			return false;
	}
	return true;
}

/**
 * herald_engine_release - let go of the engine unless it was kicked
 * @e: the engine
 *
 * Return: true if it is no longer the caller's; false if there was a kick: the
 * caller still owns it and must look at all there is to do, once more.
 * Context: any; owner only.
 */
static inline bool herald_engine_release(struct herald_engine *e)
{
	int old = HERALD_ENGINE_RUN;

	if (likely(atomic_try_cmpxchg(&e->word, &old, 0)))
		return true;
	if (!(old & HERALD_ENGINE_KICK) && atomic_try_cmpxchg(&e->word, &old, 0)) {
		/* The address is only hashed: the engine may be gone already. */
		wake_up_var(&e->word);
		return true;
	}
	atomic_andnot(HERALD_ENGINE_KICK, &e->word);
	/* the kick is taken before the caller looks for what it was about */
	smp_mb__after_atomic();
	return false;
}

/*
 * Let go of the engine whatever was asked for meanwhile: a kick is dropped, and
 * the caller must see to it that another one follows.  Context: any; owner only.
 */
static inline void herald_engine_abandon(struct herald_engine *e)
{
	if (atomic_xchg(&e->word, 0) & HERALD_ENGINE_WAIT)
		wake_up_var(&e->word);
}

/* Is it free?  If not, whoever owns it will wake the sleepers.  Context: any. */
static inline bool herald_engine_idle(struct herald_engine *e)
{
	int old = atomic_read_acquire(&e->word);

	while ((old & HERALD_ENGINE_RUN) && !(old & HERALD_ENGINE_WAIT)) {
		if (atomic_try_cmpxchg(&e->word, &old, old | HERALD_ENGINE_WAIT))
			return false;
	}
	return !(old & HERALD_ENGINE_RUN);
}

/* Wait until nobody owns the engine.  Context: process, may sleep. */
static inline void herald_engine_wait_idle(struct herald_engine *e)
{
	wait_var_event(&e->word, herald_engine_idle(e));
}

static inline bool herald_engine_try_or_wait(struct herald_engine *e)
{
	while (!herald_engine_try(e)) {
		if (!herald_engine_idle(e))
			return false;
	}
	return true;
}

/* Wait until nobody owns the engine, and own it.  Context: process, may sleep. */
static inline void herald_engine_own(struct herald_engine *e)
{
	wait_var_event(&e->word, herald_engine_try_or_wait(e));
}

#endif /* HERALD_ENGINE_H */
