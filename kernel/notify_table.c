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

static u8 kind_to_state(u32 kind)
{
	switch (kind) {
	case HERALD_ARM_SOLICITED:
		return HERALD_ARMED_SOLICITED;
	case HERALD_ARM_NEXT:
		return HERALD_ARMED_NEXT;
	default:
		return HERALD_DISARMED;
	}
}

struct herald_armed herald_arm_word(u64 arm, u32 fired, u32 index)
{
	u32 seq = HERALD_ARM_SEQ(arm), before = (seq - 1) & HERALD_ARM_SEQ_MASK;
	struct herald_armed armed = { .state = HERALD_DISARMED, .seq = seq };
	u32 kind = HERALD_ARM_KIND(arm), prev = HERALD_ARM_PREV(arm);
	s32 ahead = index - HERALD_ARM_SEEN(arm);

	/* used up */
	if (seq == fired)
		return armed;
	if (before == fired)
		prev = 0;

	if (ahead >= 0) {
		armed.state = kind_to_state(kind > prev ? kind : prev);
	} else if (ahead == -1) {
		/* the process saw it, but armed before it was decided */
		armed.state = kind_to_state(prev);
		armed.seq = before;
	}
	return armed;
}
