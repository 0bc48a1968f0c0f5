/* SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB */
/* PURE: the specification's encodings of time. */
#ifndef HERALD_TIMER_H
#define HERALD_TIMER_H

#include <linux/types.h>

/* The RNR NAK timer field (5 bits, others ignored) in nanoseconds: IBTA, RNR NAK timer table. */
u64 herald_rnr_timer_ns(u8 code);

/* Local ACK timeout: 4.096 us * 2^code (5 bits) in nanoseconds; 0 means for ever and gives 0. */
u64 herald_ack_timeout_ns(u8 code);

#endif /* HERALD_TIMER_H */
