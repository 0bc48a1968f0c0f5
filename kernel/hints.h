/* SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB */
/*
 * A look-aside table in front of an xarray whose indices are spread over a
 * wide range: a walk through its levels costs more than the rest of a small
 * message's look-ups together.
 *
 * An entry is found here only while it is in the xarray too: it is put in after
 * it was stored there and taken out before it is erased, and freed a grace
 * period later.  Two entries that share a slot push each other out.  Whoever
 * finds an entry must see for himself that it is the right one.
 */
#ifndef HERALD_HINTS_H
#define HERALD_HINTS_H

#include <linux/rcupdate.h>

#define HERALD_HINTS	1024

struct herald_hints {
	void __rcu *slot[HERALD_HINTS];
};

/* What may be the entry at @index, or NULL.  Context: any, inside rcu_read_lock(). */
static inline void *herald_hint(const struct herald_hints *hints, u32 index)
{
	return rcu_dereference(hints->slot[index % HERALD_HINTS]);
}

/* Context: any; whoever stored @entry. */
static inline void herald_hint_set(struct herald_hints *hints, u32 index, void *entry)
{
	rcu_assign_pointer(hints->slot[index % HERALD_HINTS], entry);
}

/* Context: any; after herald_hint_set(), before the entry is erased. */
static inline void herald_hint_clear(struct herald_hints *hints, u32 index, void *entry)
{
	cmpxchg(&hints->slot[index % HERALD_HINTS], RCU_INITIALIZER(entry), NULL);
}

#endif /* HERALD_HINTS_H */
