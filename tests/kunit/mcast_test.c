// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/*
 * Paging through a multicast group while its members come and go: whoever is attached all the
 * while is returned exactly once, for each attached QP gets its copy (ibv_attach_mcast(3)).  From
 * outside nobody can choose the moment between two pages.  mcast.c is the test.
 */
#include <kunit/test.h>

/* The source itself: the module exports nothing. */
#include "../../kernel/mcast.c"

#define MEMBERS		20
#define PAGE		8

/* -------------------------------------------------- what mcast.c calls -- */

static u32 joined, left;
static struct herald_qp *going;	/* has no references to give any more */

bool herald_qp_get(struct herald_qp *qp)
{
	return qp != going;
}

bool herald_wire_join(struct herald_dev *dev, const union ib_gid *group)
{
	joined++;
	return true;
}

void herald_wire_leave(struct herald_dev *dev, const union ib_gid *group)
{
	left++;
}

/* ------------------------------------------------------------- builders -- */

struct rig {
	struct herald_dev *dev;
	struct herald_qp *qps;
	u32 seen[MEMBERS];
	union ib_gid gid;
};

static void attach(struct kunit *test, u32 i)
{
	struct rig *rig = test->priv;

	KUNIT_ASSERT_EQ(test, herald_attach_mcast(&rig->qps[i].ib, &rig->gid, 0), 0);
}

static void detach(struct kunit *test, u32 i)
{
	struct rig *rig = test->priv;

	KUNIT_ASSERT_EQ(test, herald_detach_mcast(&rig->qps[i].ib, &rig->gid, 0), 0);
}

static int mcast_init(struct kunit *test)
{
	struct rig *rig = kunit_kzalloc(test, sizeof(*rig), GFP_KERNEL);
	u32 i;

	KUNIT_ASSERT_NOT_NULL(test, rig);
	rig->dev = kunit_kzalloc(test, sizeof(*rig->dev), GFP_KERNEL);
	rig->qps = kunit_kcalloc(test, MEMBERS, sizeof(*rig->qps), GFP_KERNEL);
	KUNIT_ASSERT_TRUE(test, rig->dev && rig->qps);
	test->priv = rig;
	spin_lock_init(&rig->dev->mcast.lock);
	hash_init(rig->dev->mcast.groups);
	rig->gid.raw[0] = 0xff;
	joined = 0;
	left = 0;
	going = NULL;
	for (i = 0; i < MEMBERS; i++) {
		rig->qps[i].type = IB_QPT_UD;
		rig->qps[i].dev = rig->dev;
		INIT_LIST_HEAD(&rig->qps[i].mcast);
		attach(test, i);
	}
	return 0;
}

static void mcast_exit(struct kunit *test)
{
	struct rig *rig = test->priv;
	u32 i;

	for (i = 0; i < MEMBERS; i++)
		herald_mcast_forget(&rig->qps[i]);
	KUNIT_EXPECT_EQ(test, rig->dev->mcast.ngroups, 0u);
	KUNIT_EXPECT_EQ(test, joined, left);
}

/* The next page; how many are on it. */
static int page(struct rig *rig, u64 *after)
{
	struct herald_qp *qps[PAGE];
	int n = herald_mcast_members(rig->dev, &rig->gid, qps, PAGE, after), i;

	for (i = 0; i < n; i++)
		rig->seen[qps[i] - rig->qps]++;
	return n;
}

static void pages_to_the_end(struct rig *rig, u64 *after)
{
	while (page(rig, after) == PAGE)
		;
}

static void expect_once_but(struct kunit *test, u32 but, u32 times)
{
	struct rig *rig = test->priv;
	u32 i;

	for (i = 0; i < MEMBERS; i++)
		KUNIT_EXPECT_EQ_MSG(test, rig->seen[i], i == but ? times : 1, "member %u", i);
}

/* ---------------------------------------------------------------- tests -- */

static void mcast_all_test(struct kunit *test)
{
	u64 after = 0;

	pages_to_the_end(test->priv, &after);
	expect_once_but(test, MEMBERS, 0);
}

/* One that was returned detaches: the others do not move up past the end of the page. */
static void mcast_detaches_test(struct kunit *test)
{
	u64 after = 0;

	KUNIT_EXPECT_EQ(test, page(test->priv, &after), PAGE);
	detach(test, 2);
	pages_to_the_end(test->priv, &after);
	expect_once_but(test, MEMBERS, 0);
}

/* It attaches anew: that is another time, which may have its copy, too. */
static void mcast_attaches_again_test(struct kunit *test)
{
	u64 after = 0;

	KUNIT_EXPECT_EQ(test, page(test->priv, &after), PAGE);
	detach(test, 2);
	attach(test, 2);
	pages_to_the_end(test->priv, &after);
	expect_once_but(test, 2, 2);
}

/* One that is being destroyed is passed over, and nobody is returned twice for it. */
static void mcast_going_test(struct kunit *test)
{
	struct rig *rig = test->priv;
	u64 after = 0;

	going = &rig->qps[3];
	pages_to_the_end(rig, &after);
	expect_once_but(test, 3, 0);
}

static struct kunit_case mcast_cases[] = {
	KUNIT_CASE(mcast_all_test),
	KUNIT_CASE(mcast_detaches_test),
	KUNIT_CASE(mcast_attaches_again_test),
	KUNIT_CASE(mcast_going_test),
	{ }
};

static struct kunit_suite mcast_suite = {
	.name = "herald_mcast",
	.init = mcast_init,
	.exit = mcast_exit,
	.test_cases = mcast_cases,
};

kunit_test_suite(mcast_suite);

MODULE_DESCRIPTION("herald: KUnit tests of multicast groups");
MODULE_LICENSE("Dual BSD/GPL");
