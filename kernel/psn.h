/* SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB */
/* PURE: packet sequence numbers, which have 24 bits and wrap around (IBTA vol. 1, 9.7.1). */
#ifndef HERALD_PSN_H
#define HERALD_PSN_H

#include <linux/types.h>

#define HERALD_PSN_MASK	0xffffffU

/* @n packets after @a; before it, if @n is negative. */
static inline u32 herald_psn_add(u32 a, s32 n)
{
	return (a + (u32)n) & HERALD_PSN_MASK;
}

/*
 * How far @a is after @b: -2^23 ... 2^23 - 1.  Negative: before it, the half of the circle whose
 * packets are duplicates.
 */
static inline s32 herald_psn_diff(u32 a, u32 b)
{
	return (s32)((a - b) << 8) >> 8;
}

#endif /* HERALD_PSN_H */
