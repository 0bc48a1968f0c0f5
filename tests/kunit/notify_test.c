// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/* The arm table: which completion raises an event. */
#include <kunit/test.h>

#include "../../kernel/notify_table.c"

struct arm_case {
	const char *name;
	enum herald_arm_state state;
	enum herald_arm_input input;
	enum herald_arm_state next;
	enum herald_arm_verdict verdict;
};

#define D	HERALD_DISARMED
#define S	HERALD_ARMED_SOLICITED
#define N	HERALD_ARMED_NEXT
#define QUIET	HERALD_QUIET
#define FIRE	HERALD_FIRE

static const struct arm_case arm_cases[] = {
	{ "disarmed, arm solicited", D, HERALD_IN_ARM_SOLICITED, S, QUIET },
	{ "disarmed, arm next", D, HERALD_IN_ARM_NEXT, N, QUIET },
	{ "disarmed, CQE", D, HERALD_IN_PUBLISH, D, HERALD_SUPPRESSED_UNARMED },
	{ "disarmed, solicited CQE", D, HERALD_IN_PUBLISH_SOLICITED, D,
	  HERALD_SUPPRESSED_UNARMED },
	{ "disarmed, overrun", D, HERALD_IN_OVERRUN, D, QUIET },
	{ "disarmed, destroy", D, HERALD_IN_DESTROY, D, QUIET },
	{ "solicited, again", S, HERALD_IN_ARM_SOLICITED, S, QUIET },
	{ "solicited becomes next", S, HERALD_IN_ARM_NEXT, N, QUIET },
	{ "solicited, CQE waits", S, HERALD_IN_PUBLISH, S, HERALD_SUPPRESSED_UNSOLICITED },
	{ "solicited, solicited CQE fires", S, HERALD_IN_PUBLISH_SOLICITED, D, FIRE },
	{ "solicited, overrun wakes", S, HERALD_IN_OVERRUN, D, FIRE },
	{ "solicited, destroy", S, HERALD_IN_DESTROY, D, QUIET },
	{ "next is not weakened", N, HERALD_IN_ARM_SOLICITED, N, QUIET },
	{ "next, again", N, HERALD_IN_ARM_NEXT, N, QUIET },
	{ "next, CQE fires", N, HERALD_IN_PUBLISH, D, FIRE },
	{ "next, solicited CQE fires", N, HERALD_IN_PUBLISH_SOLICITED, D, FIRE },
	{ "next, overrun wakes", N, HERALD_IN_OVERRUN, D, FIRE },
	{ "next, destroy", N, HERALD_IN_DESTROY, D, QUIET },
};

static void arm_case_name(const struct arm_case *c, char *desc)
{
	strscpy(desc, c->name, KUNIT_PARAM_DESC_SIZE);
}

KUNIT_ARRAY_PARAM(arm, arm_cases, arm_case_name);

static void arm_step_test(struct kunit *test)
{
	const struct arm_case *c = test->param_value;
	const struct herald_arm_step *step = herald_arm_table(c->state, c->input);

	KUNIT_EXPECT_EQ(test, step->next, c->next);
	KUNIT_EXPECT_EQ(test, step->verdict, c->verdict);
}

/* Every pair has a case above, so that a new state or input cannot be forgotten. */
static void arm_cases_complete_test(struct kunit *test)
{
	KUNIT_EXPECT_EQ(test, ARRAY_SIZE(arm_cases), HERALD_ARM_STATES * HERALD_ARM_INPUTS);
}

struct word_case {
	const char *name;
	u64 arm;
	u32 fired;
	u32 index;
	enum herald_arm_state state;
	u32 seq;	/* 0: no matter */
};

#define SOL	HERALD_ARM_SOLICITED
#define NEXT	HERALD_ARM_NEXT

static const struct word_case word_cases[] = {
	{ "never armed", 0, 0, 0, D },
	{ "first arm", HERALD_ARM(0, 1, 0, HERALD_ARM_NEXT), 0, 0, N },
	{ "first arm, solicited", HERALD_ARM(0, 1, 0, HERALD_ARM_SOLICITED), 0, 0, S },
	{ "fired already", HERALD_ARM(0, 1, 0, HERALD_ARM_NEXT), 1, 0, D },
	{ "CQE was seen", HERALD_ARM(5, 3, 0, HERALD_ARM_NEXT), 2, 4, D },
	{ "CQE is the first unseen", HERALD_ARM(5, 3, 0, HERALD_ARM_NEXT), 2, 5, N },
	{ "CQE is later", HERALD_ARM(5, 3, 0, HERALD_ARM_NEXT), 2, 500, N },
	{ "index wraps, unseen", HERALD_ARM(0xffffffffu, 3, 0, HERALD_ARM_NEXT), 2, 0, N },
	{ "index wraps, seen", HERALD_ARM(0, 3, 0, HERALD_ARM_NEXT), 2, 0xffffffffu, D },
	{ "sequence number wraps", HERALD_ARM(0, 0, 0, HERALD_ARM_NEXT),
	  HERALD_ARM_SEQ_MASK, 0, N },
	{ "previous, its CQE", HERALD_ARM(5, 3, NEXT, SOL), 1, 4, N, 2 },
	{ "previous, solicited, its CQE", HERALD_ARM(5, 3, SOL, NEXT), 1, 4, S, 2 },
	{ "previous, CQE before that", HERALD_ARM(5, 3, NEXT, NEXT), 1, 3, D },
	{ "previous, a later CQE", HERALD_ARM(5, 3, NEXT, SOL), 1, 5, N, 3 },
	{ "previous asks for less", HERALD_ARM(5, 3, SOL, NEXT), 1, 5, N, 3 },
	{ "previous has fired, its CQE", HERALD_ARM(5, 3, NEXT, NEXT), 2, 4, D },
	{ "previous has fired, a later CQE", HERALD_ARM(5, 3, NEXT, SOL), 2, 5, S, 3 },
	{ "both have fired", HERALD_ARM(5, 3, NEXT, NEXT), 3, 5, D },
	{ "previous, number wraps", HERALD_ARM(5, 0, NEXT, SOL), 7, 4, N,
	  HERALD_ARM_SEQ_MASK },
	{ "previous, index wraps", HERALD_ARM(0, 3, NEXT, SOL), 1, U32_MAX, N, 2 },
	{ "impossible previous", HERALD_ARM(5, 3, 3, NEXT), 1, 4, D },
	{ "no kind", HERALD_ARM(0, 1, 0, 0), 0, 0, D },
	{ "impossible kind", HERALD_ARM(0, 1, 0, 3), 0, 0, D },
};

static void word_case_name(const struct word_case *c, char *desc)
{
	strscpy(desc, c->name, KUNIT_PARAM_DESC_SIZE);
}

KUNIT_ARRAY_PARAM(word, word_cases, word_case_name);

static void arm_word_test(struct kunit *test)
{
	const struct word_case *c = test->param_value;

	struct herald_armed armed = herald_arm_word(c->arm, c->fired, c->index);

	KUNIT_EXPECT_EQ(test, armed.state, c->state);
	if (c->seq)
		KUNIT_EXPECT_EQ(test, armed.seq, c->seq);
}

static void arm_word_fields_test(struct kunit *test)
{
	u64 arm = HERALD_ARM(0x89abcdefu, 0xffffffffu, HERALD_ARM_SOLICITED, HERALD_ARM_NEXT);

	KUNIT_EXPECT_EQ(test, HERALD_ARM_SEEN(arm), 0x89abcdefu);
	KUNIT_EXPECT_EQ(test, HERALD_ARM_SEQ(arm), HERALD_ARM_SEQ_MASK);
	KUNIT_EXPECT_EQ(test, HERALD_ARM_PREV(arm), HERALD_ARM_SOLICITED);
	KUNIT_EXPECT_EQ(test, HERALD_ARM_KIND(arm), HERALD_ARM_NEXT);
}

static struct kunit_case notify_cases[] = {
	KUNIT_CASE_PARAM(arm_step_test, arm_gen_params),
	KUNIT_CASE(arm_cases_complete_test),
	KUNIT_CASE_PARAM(arm_word_test, word_gen_params),
	KUNIT_CASE(arm_word_fields_test),
	{}
};

static struct kunit_suite notify_suite = {
	.name = "herald-notify",
	.test_cases = notify_cases,
};

kunit_test_suite(notify_suite);
