// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/* Doorbells that wait for each other: when that is tried, and that nothing waits for ever. */
#include <kunit/test.h>

#include "../../kernel/wire_pace.c"

/* Time is not to matter: with a doorbell that took so long, the next one is always quick. */
static void make_quick(struct herald_pace *pace)
{
	pace->took = NSEC_PER_SEC;
	pace->ended = local_clock();
}

static u32 rings_until_waiting(struct kunit *test, struct herald_pace *pace)
{
	u32 n;

	for (n = 1; n <= 1u << (MOST_PATIENCE + 1); n++) {
		make_quick(pace);
		if (herald_pace_ring(pace) == HERALD_PACE_WAIT_FIRST)
			return n;
	}
	KUNIT_FAIL(test, "they never wait");
	return 0;
}

static void pace_slow_ones_run_test(struct kunit *test)
{
	struct herald_pace pace = { };
	int i;

	for (i = 0; i < 100; i++) {
		pace.ended = local_clock() - NSEC_PER_SEC;
		KUNIT_EXPECT_EQ(test, herald_pace_ring(&pace), HERALD_PACE_RUN);
	}
}

static void pace_quick_ones_wait_test(struct kunit *test)
{
	struct herald_pace pace = { };
	int i, round;

	KUNIT_EXPECT_EQ(test, rings_until_waiting(test, &pace), 1u << LEAST_PATIENCE);
	for (round = 0; round < 3; round++) {
		for (i = 2; i < BATCH; i++)
			KUNIT_EXPECT_EQ(test, herald_pace_ring(&pace), HERALD_PACE_WAIT);
		KUNIT_EXPECT_EQ(test, herald_pace_ring(&pace), HERALD_PACE_RUN);
		/* whoever worked them off has left nothing for the timer */
		KUNIT_EXPECT_FALSE(test, herald_pace_overdue(&pace));
		KUNIT_EXPECT_EQ(test, herald_pace_ring(&pace), HERALD_PACE_WAIT_FIRST);
	}
}

/* It is tried again after twice as many, up to a limit. */
static void pace_failure_test(struct kunit *test)
{
	u32 expected = 1u << LEAST_PATIENCE;
	struct herald_pace pace = { };
	int i;

	for (i = 0; i < MOST_PATIENCE - LEAST_PATIENCE + 2; i++) {
		KUNIT_EXPECT_EQ(test, rings_until_waiting(test, &pace), expected);
		KUNIT_EXPECT_TRUE(test, herald_pace_overdue(&pace));
		KUNIT_EXPECT_FALSE(test, herald_pace_overdue(&pace));
		make_quick(&pace);
		KUNIT_EXPECT_EQ(test, herald_pace_ring(&pace), HERALD_PACE_RUN);
		pace.quick = 0;
		expected = min(2 * expected, 1u << MOST_PATIENCE);
	}
}

/* The timer had to help, but seldom: it goes on, and the past is forgiven. */
static void pace_success_test(struct kunit *test)
{
	struct herald_pace pace = { .patience = 2 };
	int i;

	rings_until_waiting(test, &pace);
	for (i = 0; i < WORTH; i++)
		herald_pace_ring(&pace);
	KUNIT_EXPECT_TRUE(test, herald_pace_overdue(&pace));
	KUNIT_EXPECT_EQ(test, herald_pace_ring(&pace), HERALD_PACE_WAIT_FIRST);
	KUNIT_EXPECT_EQ(test, pace.patience, 0);
}

/* What waited before a reset is nobody's: the next one starts the timer anew. */
static void pace_reset_test(struct kunit *test)
{
	struct herald_pace pace = { };

	rings_until_waiting(test, &pace);
	herald_pace_ring(&pace);
	herald_pace_reset(&pace);
	KUNIT_EXPECT_FALSE(test, herald_pace_overdue(&pace));
	KUNIT_EXPECT_EQ(test, rings_until_waiting(test, &pace), 1u << LEAST_PATIENCE);
}

static void pace_delay_test(struct kunit *test)
{
	struct herald_pace pace = { };

	KUNIT_EXPECT_EQ(test, herald_pace_delay_ns(&pace), (u64)LEAST_DELAY_NS);
	pace.took = NSEC_PER_SEC;
	KUNIT_EXPECT_EQ(test, herald_pace_delay_ns(&pace), (u64)MOST_DELAY_NS);
}

static struct kunit_case pace_cases[] = {
	KUNIT_CASE(pace_slow_ones_run_test),
	KUNIT_CASE(pace_quick_ones_wait_test),
	KUNIT_CASE(pace_failure_test),
	KUNIT_CASE(pace_success_test),
	KUNIT_CASE(pace_reset_test),
	KUNIT_CASE(pace_delay_test),
	{ }
};

static struct kunit_suite pace_suite = {
	.name = "herald_pace",
	.test_cases = pace_cases,
};

kunit_test_suite(pace_suite);
