// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
// The specification's encodings of time.
#include <gtest/gtest.h>

#include "pure.h"

namespace {

TEST(Timer, RnrCodes)
{
	EXPECT_EQ(herald_rnr_timer_ns(0), 655360000u);
	EXPECT_EQ(herald_rnr_timer_ns(1), 10000u);
	EXPECT_EQ(herald_rnr_timer_ns(12), 640000u);
	EXPECT_EQ(herald_rnr_timer_ns(31), 491520000u);
	EXPECT_EQ(herald_rnr_timer_ns(32), herald_rnr_timer_ns(0));
	for (int code = 1; code < 31; code++)
		EXPECT_LT(herald_rnr_timer_ns(code), herald_rnr_timer_ns(code + 1)) << code;
}

TEST(Timer, AckTimeouts)
{
	EXPECT_EQ(herald_ack_timeout_ns(0), 0u);
	EXPECT_EQ(herald_ack_timeout_ns(1), 8192u);
	EXPECT_EQ(herald_ack_timeout_ns(14), 4096ull << 14);
	EXPECT_EQ(herald_ack_timeout_ns(31), 4096ull << 31);
}

} // namespace
