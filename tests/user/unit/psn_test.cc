// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
// Packet sequence numbers: a circle of 2^24 (IBTA vol. 1, 9.7.1).
#include <gtest/gtest.h>

#include "pure.h"

namespace {

constexpr int HALF = 1 << 23;

TEST(Psn, Adds)
{
	EXPECT_EQ(herald_psn_add(0, 0), 0u);
	EXPECT_EQ(herald_psn_add(5, 7), 12u);
	EXPECT_EQ(herald_psn_add(5, -7), 0xfffffeu);
	EXPECT_EQ(herald_psn_add(0xffffff, 1), 0u);
	EXPECT_EQ(herald_psn_add(0, -1), 0xffffffu);
	EXPECT_EQ(herald_psn_add(0xffffff, 0xffffff), 0xfffffeu);
	EXPECT_EQ(herald_psn_add(1, HALF), 0x800001u);
}

// The half before a PSN is older than it, the half from it on is not; -2^23 is the edge.
TEST(Psn, DiffAtTheEdges)
{
	struct {
		u32 a, b;
		s32 diff;
	} const cases[] = {
		{0, 0, 0},
		{1, 0, 1},
		{0, 1, -1},
		{0, 0xffffff, 1},
		{0xffffff, 0, -1},
		{0x7fffff, 0, HALF - 1},
		{0x800000, 0, -HALF},
		{0, 0x800000, -HALF},
		{0x800001, 0, -HALF + 1},
		{0x7ffffe, 0xffffff, HALF - 1},
		{0x7fffff, 0xffffff, -HALF},
	};

	for (auto &c : cases)
		EXPECT_EQ(herald_psn_diff(c.a, c.b), c.diff) << std::hex << c.a << " - " << c.b;
}

// Wherever on the circle one begins, the sum of a number and a difference is the other number.
TEST(Psn, DiffIsTheInverseOfAdd)
{
	for (u32 a = 0; a <= HERALD_PSN_MASK; a += 0xfffd) {
		for (s32 n : {-HALF, -HALF + 1, -65536, -1, 0, 1, 255, 65536, HALF - 1}) {
			EXPECT_EQ(herald_psn_diff(herald_psn_add(a, n), a), n) << std::hex << a;
			EXPECT_LE(herald_psn_add(a, n), HERALD_PSN_MASK);
		}
	}
}

// What a caller has above the 24 bits does not count.
TEST(Psn, UpperBitsDoNotCount)
{
	EXPECT_EQ(herald_psn_diff(0xff000003, 1), 2);
	EXPECT_EQ(herald_psn_add(0xffffffff, 1), 0u);
}

} // namespace
