/* SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB */
#ifndef HERALD_COMPAT_HRTIMER_H
#define HERALD_COMPAT_HRTIMER_H

#include <linux/hrtimer.h>

/* A relative timer on the monotonic clock.  The old form ends with 6.12. */
static inline void herald_hrtimer_setup(struct hrtimer *timer,
					enum hrtimer_restart (*fn)(struct hrtimer *))
{
#ifdef HAVE_HRTIMER_SETUP
	hrtimer_setup(timer, fn, CLOCK_MONOTONIC, HRTIMER_MODE_REL);
#else
	hrtimer_init(timer, CLOCK_MONOTONIC, HRTIMER_MODE_REL);
	timer->function = fn;
#endif
}

#endif /* HERALD_COMPAT_HRTIMER_H */
