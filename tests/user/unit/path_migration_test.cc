// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
// Automatic path migration: the rules that the table's entries have to obey; KUnit has the entries themselves.
#include <gtest/gtest.h>

#include "pure.h"

namespace {

constexpr int kStates[] = {IB_MIG_MIGRATED, IB_MIG_REARM, IB_MIG_ARMED};
constexpr herald_mig_input kAsked[] = {HERALD_MIG_SET_MIGRATED, HERALD_MIG_SET_REARM, HERALD_MIG_SET_ARMED};
constexpr herald_mig_input kHappens[] = {HERALD_MIG_PEER_READY, HERALD_MIG_PEER_MOVED, HERALD_MIG_NO_ANSWER};

TEST(PathMigration, OnlyTheDeviceArms)
{
	for (int state : kStates) {
		EXPECT_EQ(herald_mig_table(state, HERALD_MIG_SET_ARMED)->verdict, HERALD_MIG_REFUSE) << state;
		for (auto input : kAsked)
			EXPECT_TRUE(herald_mig_table(state, input)->next != IB_MIG_ARMED || state == IB_MIG_ARMED)
				<< state << " " << input;
	}
}

TEST(PathMigration, ArmedByBothEndsBeingReady)
{
	for (auto input : kHappens)
		EXPECT_EQ(herald_mig_table(IB_MIG_REARM, input)->next,
			  input == HERALD_MIG_PEER_READY ? IB_MIG_ARMED : IB_MIG_REARM);
	EXPECT_EQ(herald_mig_table(IB_MIG_MIGRATED, HERALD_MIG_PEER_READY)->next, IB_MIG_MIGRATED);
}

TEST(PathMigration, OnlyTheArmedMove)
{
	for (int state : kStates)
		for (int input = 0; input < HERALD_MIG_INPUTS; input++) {
			auto step = herald_mig_table(state, static_cast<herald_mig_input>(input));

			if (step->verdict == HERALD_MIG_MOVE) {
				EXPECT_EQ(state, IB_MIG_ARMED) << input;
				EXPECT_EQ(step->next, IB_MIG_MIGRATED) << input;
			}
		}
}

TEST(PathMigration, ThreeThingsMoveTheArmed)
{
	for (auto input : {HERALD_MIG_SET_MIGRATED, HERALD_MIG_PEER_MOVED, HERALD_MIG_NO_ANSWER})
		EXPECT_EQ(herald_mig_table(IB_MIG_ARMED, input)->verdict, HERALD_MIG_MOVE) << input;
}

TEST(PathMigration, RearmingNeedsAnAlternatePath)
{
	EXPECT_EQ(herald_mig_table(IB_MIG_MIGRATED, HERALD_MIG_SET_REARM)->verdict, HERALD_MIG_NEED_ALT);
	EXPECT_EQ(herald_mig_table(IB_MIG_REARM, HERALD_MIG_SET_REARM)->verdict, HERALD_MIG_REFUSE);
	EXPECT_EQ(herald_mig_table(IB_MIG_ARMED, HERALD_MIG_SET_REARM)->verdict, HERALD_MIG_REFUSE);
}

TEST(PathMigration, ARefusalChangesNothing)
{
	for (int state : kStates)
		for (auto input : kAsked) {
			auto step = herald_mig_table(state, input);

			if (step->verdict == HERALD_MIG_REFUSE) {
				EXPECT_EQ(step->next, state) << input;
			}
		}
}

} // namespace
