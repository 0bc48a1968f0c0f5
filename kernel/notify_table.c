// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/*
 * PURE: the arm table.  One row per armed state, one entry per thing that can
 * happen to a CQ.
 *
 * An arm is one-shot: firing disarms.  NEXT_COMP is never weakened to
 * SOLICITED.  An overrun wakes whoever is armed, because the CQE that it is
 * waiting for will never come.
 */
#include <linux/types.h>
#include <rdma/herald-abi.h>

#include "notify.h"

#define STEP(next_, verdict_) { .next = HERALD_##next_, .verdict = HERALD_##verdict_ }

static const struct herald_arm_step arm_table[HERALD_ARM_STATES][HERALD_ARM_INPUTS] = {
	[HERALD_DISARMED] = {
		[HERALD_IN_ARM_SOLICITED]	= STEP(ARMED_SOLICITED, QUIET),
		[HERALD_IN_ARM_NEXT]		= STEP(ARMED_NEXT, QUIET),
		[HERALD_IN_PUBLISH]		= STEP(DISARMED, SUPPRESSED_UNARMED),
		[HERALD_IN_PUBLISH_SOLICITED]	= STEP(DISARMED, SUPPRESSED_UNARMED),
		[HERALD_IN_OVERRUN]		= STEP(DISARMED, QUIET),
		[HERALD_IN_DESTROY]		= STEP(DISARMED, QUIET),
	},
	[HERALD_ARMED_SOLICITED] = {
		[HERALD_IN_ARM_SOLICITED]	= STEP(ARMED_SOLICITED, QUIET),
		[HERALD_IN_ARM_NEXT]		= STEP(ARMED_NEXT, QUIET),
		[HERALD_IN_PUBLISH]		= STEP(ARMED_SOLICITED, SUPPRESSED_UNSOLICITED),
		[HERALD_IN_PUBLISH_SOLICITED]	= STEP(DISARMED, FIRE),
		[HERALD_IN_OVERRUN]		= STEP(DISARMED, FIRE),
		[HERALD_IN_DESTROY]		= STEP(DISARMED, QUIET),
	},
	[HERALD_ARMED_NEXT] = {
		[HERALD_IN_ARM_SOLICITED]	= STEP(ARMED_NEXT, QUIET),
		[HERALD_IN_ARM_NEXT]		= STEP(ARMED_NEXT, QUIET),
		[HERALD_IN_PUBLISH]		= STEP(DISARMED, FIRE),
		[HERALD_IN_PUBLISH_SOLICITED]	= STEP(DISARMED, FIRE),
		[HERALD_IN_OVERRUN]		= STEP(DISARMED, FIRE),
		[HERALD_IN_DESTROY]		= STEP(DISARMED, QUIET),
	},
};

const struct herald_arm_step *herald_arm_table(enum herald_arm_state state,
					       enum herald_arm_input input)
{
	return &arm_table[state][input];
}

const char *herald_arm_state_name(enum herald_arm_state state)
{
	static const char *const names[HERALD_ARM_STATES] = {
		[HERALD_DISARMED] = "no",
		[HERALD_ARMED_SOLICITED] = "solicited",
		[HERALD_ARMED_NEXT] = "next",
	};

	return names[state];
}

enum herald_arm_state herald_arm_word_state(u64 arm, u32 fired, u32 index)
{
	/* a word whose sequence number was consumed arms nothing */
	if (HERALD_ARM_SEQ(arm) == fired)
		return HERALD_DISARMED;
	/* a CQE that the process saw before it armed raises no event */
	if ((s32)(index - HERALD_ARM_SEEN(arm)) < 0)
		return HERALD_DISARMED;

	switch (HERALD_ARM_KIND(arm)) {
	case HERALD_ARM_SOLICITED:
		return HERALD_ARMED_SOLICITED;
	case HERALD_ARM_NEXT:
		return HERALD_ARMED_NEXT;
	default:
		return HERALD_DISARMED;
	}
}
