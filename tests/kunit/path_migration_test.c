// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/* Automatic path migration: what happens in each state. */
#include <kunit/test.h>

#include "../../kernel/path_migration_table.c"

struct mig_case {
	const char *name;
	int state;
	enum herald_mig_input input;
	int next;
	enum herald_mig_verdict verdict;
};

#define M	IB_MIG_MIGRATED
#define R	IB_MIG_REARM
#define A	IB_MIG_ARMED

static const struct mig_case mig_cases[] = {
	{ "migrated, asked for it", M, HERALD_MIG_SET_MIGRATED, M, HERALD_MIG_KEEP },
	{ "migrated, asked to rearm", M, HERALD_MIG_SET_REARM, R, HERALD_MIG_NEED_ALT },
	{ "migrated, asked to arm", M, HERALD_MIG_SET_ARMED, M, HERALD_MIG_REFUSE },
	{ "migrated, peer is ready", M, HERALD_MIG_PEER_READY, M, HERALD_MIG_KEEP },
	{ "migrated, peer moves", M, HERALD_MIG_PEER_MOVED, M, HERALD_MIG_KEEP },
	{ "migrated, no answer", M, HERALD_MIG_NO_ANSWER, M, HERALD_MIG_KEEP },
	{ "rearm, asked to migrate", R, HERALD_MIG_SET_MIGRATED, R, HERALD_MIG_REFUSE },
	{ "rearm, asked for it", R, HERALD_MIG_SET_REARM, R, HERALD_MIG_REFUSE },
	{ "rearm, asked to arm", R, HERALD_MIG_SET_ARMED, R, HERALD_MIG_REFUSE },
	{ "rearm, peer is ready", R, HERALD_MIG_PEER_READY, A, HERALD_MIG_KEEP },
	{ "rearm, peer moves", R, HERALD_MIG_PEER_MOVED, R, HERALD_MIG_KEEP },
	{ "rearm, no answer", R, HERALD_MIG_NO_ANSWER, R, HERALD_MIG_KEEP },
	{ "armed, asked to migrate", A, HERALD_MIG_SET_MIGRATED, M, HERALD_MIG_MOVE },
	{ "armed, asked to rearm", A, HERALD_MIG_SET_REARM, A, HERALD_MIG_REFUSE },
	{ "armed, asked for it", A, HERALD_MIG_SET_ARMED, A, HERALD_MIG_REFUSE },
	{ "armed, peer is ready", A, HERALD_MIG_PEER_READY, A, HERALD_MIG_KEEP },
	{ "armed, peer moves", A, HERALD_MIG_PEER_MOVED, M, HERALD_MIG_MOVE },
	{ "armed, no answer", A, HERALD_MIG_NO_ANSWER, M, HERALD_MIG_MOVE },
};

static void mig_case_name(const struct mig_case *c, char *desc)
{
	strscpy(desc, c->name, KUNIT_PARAM_DESC_SIZE);
}

KUNIT_ARRAY_PARAM(mig, mig_cases, mig_case_name);

static void mig_table_test(struct kunit *test)
{
	const struct mig_case *c = test->param_value;
	const struct herald_mig_step *step = herald_mig_table(c->state, c->input);

	KUNIT_EXPECT_EQ(test, step->next, c->next);
	KUNIT_EXPECT_EQ(test, step->verdict, c->verdict);
}

/* Every entry is in the list above. */
static void mig_complete_test(struct kunit *test)
{
	KUNIT_EXPECT_EQ(test, ARRAY_SIZE(mig_cases), HERALD_MIG_STATES * HERALD_MIG_INPUTS);
}

static struct kunit_case mig_kcases[] = {
	KUNIT_CASE_PARAM(mig_table_test, mig_gen_params),
	KUNIT_CASE(mig_complete_test),
	{}
};

static struct kunit_suite mig_suite = {
	.name = "herald-path-migration",
	.test_cases = mig_kcases,
};

kunit_test_suite(mig_suite);
