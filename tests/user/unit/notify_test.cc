// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
// The arm table against the rules it stands for, and the arm word.
#include <gtest/gtest.h>

#include <random>

#include "../../../user/provider/arm.h"
#include "pure.h"

namespace {

herald_arm_step step(int state, int input)
{
	return *herald_arm_table(static_cast<herald_arm_state>(state), static_cast<herald_arm_input>(input));
}

// C1: an arm is one-shot: whatever fires leaves the CQ disarmed, and a disarmed CQ is silent.
TEST(ArmTable, FiringDisarms)
{
	for (int state = 0; state < HERALD_ARM_STATES; state++) {
		for (int input = 0; input < HERALD_ARM_INPUTS; input++) {
			auto s = step(state, input);

			if (s.verdict == HERALD_FIRE) {
				EXPECT_EQ(s.next, HERALD_DISARMED);
				EXPECT_NE(state, HERALD_DISARMED);
			}
		}
	}
}

TEST(ArmTable, NeverOutOfRange)
{
	for (int state = 0; state < HERALD_ARM_STATES; state++) {
		for (int input = 0; input < HERALD_ARM_INPUTS; input++) {
			EXPECT_LT(step(state, input).next, HERALD_ARM_STATES);
			EXPECT_LE(step(state, input).verdict, HERALD_SUPPRESSED_UNSOLICITED);
		}
	}
}

// C3: arming tells nobody anything.
TEST(ArmTable, ArmingIsQuiet)
{
	for (int state = 0; state < HERALD_ARM_STATES; state++) {
		EXPECT_EQ(step(state, HERALD_IN_ARM_SOLICITED).verdict, HERALD_QUIET);
		EXPECT_EQ(step(state, HERALD_IN_ARM_NEXT).verdict, HERALD_QUIET);
	}
}

// C5
TEST(ArmTable, NextIsNotWeakened)
{
	EXPECT_EQ(step(HERALD_ARMED_NEXT, HERALD_IN_ARM_SOLICITED).next, HERALD_ARMED_NEXT);
	EXPECT_EQ(step(HERALD_ARMED_SOLICITED, HERALD_IN_ARM_NEXT).next, HERALD_ARMED_NEXT);
}

// C4: an unsolicited CQE neither fires nor uses up a solicited-only arm.
TEST(ArmTable, SolicitedWaits)
{
	auto s = step(HERALD_ARMED_SOLICITED, HERALD_IN_PUBLISH);

	EXPECT_EQ(s.verdict, HERALD_SUPPRESSED_UNSOLICITED);
	EXPECT_EQ(s.next, HERALD_ARMED_SOLICITED);
	EXPECT_EQ(step(HERALD_ARMED_SOLICITED, HERALD_IN_PUBLISH_SOLICITED).verdict, HERALD_FIRE);
}

// Whoever is armed waits for a CQE that an overrun has dropped; nobody else is disturbed.
TEST(ArmTable, OverrunWakesTheArmed)
{
	EXPECT_EQ(step(HERALD_DISARMED, HERALD_IN_OVERRUN).verdict, HERALD_QUIET);
	EXPECT_EQ(step(HERALD_ARMED_SOLICITED, HERALD_IN_OVERRUN).verdict, HERALD_FIRE);
	EXPECT_EQ(step(HERALD_ARMED_NEXT, HERALD_IN_OVERRUN).verdict, HERALD_FIRE);
}

TEST(ArmTable, DestroyIsSilent)
{
	for (int state = 0; state < HERALD_ARM_STATES; state++) {
		EXPECT_EQ(step(state, HERALD_IN_DESTROY).verdict, HERALD_QUIET);
		EXPECT_EQ(step(state, HERALD_IN_DESTROY).next, HERALD_DISARMED);
	}
}

// Long random histories against a model written from the rules and not from the table.
TEST(ArmTable, RandomHistories)
{
	std::mt19937 random(1);
	bool armed = false, next = false;
	int state = HERALD_DISARMED;

	for (int i = 0; i < 1000000; i++) {
		int input = static_cast<int>(random() % HERALD_IN_DESTROY);
		bool fires = false;

		switch (input) {
		case HERALD_IN_ARM_SOLICITED:
			armed = true;
			break;
		case HERALD_IN_ARM_NEXT:
			armed = next = true;
			break;
		case HERALD_IN_PUBLISH:
			fires = armed && next;
			break;
		default:
			fires = armed;
			break;
		}
		if (fires)
			armed = next = false;

		auto s = step(state, input);
		ASSERT_EQ(s.verdict == HERALD_FIRE, fires) << "step " << i;
		state = s.next;
	}
}

int state_of(__u64 arm, __u32 fired, __u32 index)
{
	return herald_arm_word(arm, fired, index).state;
}

constexpr __u32 indices[] = {0, 1, 2, 0x7ffffffe, 0x7fffffff, 0x80000000, 0xfffffffe, 0xffffffff};

// Around every corner of the index: the CQEs that were seen do not fire, the next 1000 do.
TEST(ArmWord, SeenAcrossTheWrap)
{
	for (__u32 seen : indices) {
		__u64 arm = HERALD_ARM(seen, 9, 0, HERALD_ARM_NEXT);

		for (__u32 n = 0; n < 1000; n++) {
			ASSERT_EQ(state_of(arm, 8, seen + n), HERALD_ARMED_NEXT);
			ASSERT_EQ(state_of(arm, 8, seen - 1 - n), HERALD_DISARMED);
		}
	}
}

TEST(ArmWord, Kinds)
{
	EXPECT_EQ(state_of(HERALD_ARM(0, 1, 0, HERALD_ARM_SOLICITED), 0, 0), HERALD_ARMED_SOLICITED);
	EXPECT_EQ(state_of(HERALD_ARM(0, 1, 0, HERALD_ARM_NEXT), 0, 0), HERALD_ARMED_NEXT);
	EXPECT_EQ(state_of(HERALD_ARM(0, 1, 0, 0), 0, 0), HERALD_DISARMED);
	EXPECT_EQ(state_of(HERALD_ARM(0, 1, 0, 3), 0, 0), HERALD_DISARMED);
}

TEST(ArmWord, ConsumedUntilTheNextSequenceNumber)
{
	for (__u32 seq : {1u, 2u, HERALD_ARM_SEQ_MASK - 1, HERALD_ARM_SEQ_MASK}) {
		__u64 arm = HERALD_ARM(7, seq, 0, HERALD_ARM_NEXT);
		__u64 again = HERALD_ARM(7, seq + 1, 0, HERALD_ARM_NEXT);

		EXPECT_EQ(state_of(arm, seq, 7), HERALD_DISARMED);
		EXPECT_EQ(state_of(again, seq, 7), HERALD_ARMED_NEXT);
	}
}

// The process's half makes the word, the kernel's half reads it: for every CQE exactly the event that the rules owe (C1 to
// C5), though the kernel reads the word a while after the CQE became visible, and the process may poll and arm meanwhile.
class ArmHistory {
public:
	ArmHistory(__u32 index, __u32 seq) : arm(seq), word(HERALD_ARM(0, seq, 0, 0)), producer(index), fired(seq) {}

	void publish(bool solicited_)
	{
		solicited = solicited_;
		owed = asked && (solicited || asked == HERALD_ARM_NEXT);
		if (owed)
			asked = 0;
		producer++;
		undecided = true;
	}
	// true if the CQE raised what it owed, and no more
	bool decide()
	{
		const auto armed = herald_arm_word(word, fired, producer - 1);
		const bool fires =
			step(armed.state, solicited ? HERALD_IN_PUBLISH_SOLICITED : HERALD_IN_PUBLISH).verdict ==
			HERALD_FIRE;

		undecided = false;
		if (fires)
			fired = armed.seq;
		return fires == owed;
	}
	void ask(__u32 kind)
	{
		asked = std::max(asked, kind);
		if (arm.ask(kind, producer, fired))
			word = arm.word();
	}

	bool undecided = false;

private:
	herald::Arm arm;
	__u64 word;
	__u32 producer, fired;
	__u32 asked = 0; // by the rules alone
	bool solicited = false, owed = false;
};

TEST(ArmWord, RandomHistoriesOweExactly)
{
	std::mt19937 random(2);

	for (int history = 0; history < 20000; history++) {
		ArmHistory h(indices[history % 8], indices[history / 8 % 8] & HERALD_ARM_SEQ_MASK);

		for (int i = 0; i < 60; i++) {
			switch (random() % 3) {
			case 0:
				if (!h.undecided)
					h.publish(random() % 2);
				break;
			case 1:
				if (h.undecided) {
					ASSERT_TRUE(h.decide()) << "history " << history << ", step " << i;
				}
				break;
			default:
				h.ask(random() % 2 ? HERALD_ARM_NEXT : HERALD_ARM_SOLICITED);
				break;
			}
		}
	}
}

// The number never meets that of the last arm that fired, however long nothing fires: an arm would be taken for used up.
TEST(ArmWord, NumberNeverMeetsTheLastThatFired)
{
	herald::Arm arm(10);
	const __u32 fired = 15;

	for (__u32 seen = 1; seen < 100; seen++) {
		arm.ask(HERALD_ARM_SOLICITED, seen, fired);
		ASSERT_NE(HERALD_ARM_SEQ(arm.word()), fired);
		ASSERT_EQ(state_of(arm.word(), fired, seen), HERALD_ARMED_SOLICITED) << "seen " << seen;
	}
	EXPECT_TRUE(arm.ask(HERALD_ARM_NEXT, 100, fired));
	EXPECT_EQ(state_of(arm.word(), fired, 100), HERALD_ARMED_NEXT);
	EXPECT_FALSE(arm.ask(HERALD_ARM_SOLICITED, 101, fired));
	EXPECT_EQ(state_of(arm.word(), fired, 101), HERALD_ARMED_NEXT);
}

TEST(ArmWord, ZeroedPageIsDisarmed)
{
	for (__u32 index : indices)
		EXPECT_EQ(state_of(0, 0, index), HERALD_DISARMED);
}

} // namespace
