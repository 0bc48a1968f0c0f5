// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/* PURE: the specification's encodings of time. */
#include "timer.h"

/* In units of 10 us; code 0 is the longest. */
static const u32 rnr_timer_10us[32] = {
	65536, 1, 2, 3, 4, 6, 8, 12, 16, 24, 32, 48, 64, 96, 128, 192,
	256, 384, 512, 768, 1024, 1536, 2048, 3072, 4096, 6144, 8192, 12288,
	16384, 24576, 32768, 49152,
};

u64 herald_rnr_timer_ns(u8 code)
{
	return (u64)rnr_timer_10us[code & 31] * 10000;
}

u64 herald_ack_timeout_ns(u8 code)
{
	code &= 31;
	return code ? 4096ULL << code : 0;
}
