// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/* Ownership of engines: one owner at a time, no kick and no sleeper forgotten. */
#include <kunit/test.h>
#include <linux/completion.h>
#include <linux/kthread.h>
#include <linux/sched.h>

#include "engine.h"

static void free_engine(struct kunit *test)
{
	struct herald_engine e;

	herald_engine_init(&e);
	KUNIT_EXPECT_TRUE(test, herald_engine_idle(&e));
	KUNIT_EXPECT_EQ(test, atomic_read(&e.word), 0);
	KUNIT_EXPECT_TRUE(test, herald_engine_try(&e));
	KUNIT_EXPECT_EQ(test, atomic_read(&e.word), HERALD_ENGINE_RUN);
	KUNIT_EXPECT_TRUE(test, herald_engine_release(&e));
	KUNIT_EXPECT_TRUE(test, herald_engine_kick(&e));
	/* its own kick is no reason to look twice */
	KUNIT_EXPECT_TRUE(test, herald_engine_release(&e));
	KUNIT_EXPECT_EQ(test, atomic_read(&e.word), 0);
}

static void kick_while_owned(struct kunit *test)
{
	struct herald_engine e;

	herald_engine_init(&e);
	KUNIT_ASSERT_TRUE(test, herald_engine_try(&e));
	KUNIT_EXPECT_FALSE(test, herald_engine_try(&e));
	KUNIT_EXPECT_TRUE(test, herald_engine_release(&e));

	KUNIT_ASSERT_TRUE(test, herald_engine_try(&e));
	KUNIT_EXPECT_FALSE(test, herald_engine_kick(&e));
	KUNIT_EXPECT_FALSE(test, herald_engine_kick(&e));
	KUNIT_EXPECT_FALSE(test, herald_engine_release(&e));
	KUNIT_EXPECT_EQ(test, atomic_read(&e.word), HERALD_ENGINE_RUN);
	KUNIT_EXPECT_TRUE(test, herald_engine_release(&e));
	KUNIT_EXPECT_EQ(test, atomic_read(&e.word), 0);
}

/* Who waits does not keep the owner from letting go, nor hide a kick from it. */
static void waiter_and_kick(struct kunit *test)
{
	struct herald_engine e;

	herald_engine_init(&e);
	KUNIT_ASSERT_TRUE(test, herald_engine_try(&e));
	KUNIT_EXPECT_FALSE(test, herald_engine_idle(&e));
	KUNIT_EXPECT_TRUE(test, atomic_read(&e.word) & HERALD_ENGINE_WAIT);
	KUNIT_EXPECT_FALSE(test, herald_engine_kick(&e));
	KUNIT_EXPECT_FALSE(test, herald_engine_release(&e));
	KUNIT_EXPECT_FALSE(test, herald_engine_try_or_wait(&e));
	KUNIT_EXPECT_TRUE(test, herald_engine_release(&e));
	KUNIT_EXPECT_TRUE(test, herald_engine_idle(&e));
	KUNIT_EXPECT_EQ(test, atomic_read(&e.word), 0);

	KUNIT_ASSERT_TRUE(test, herald_engine_try(&e));
	KUNIT_EXPECT_FALSE(test, herald_engine_idle(&e));
	KUNIT_EXPECT_FALSE(test, herald_engine_kick(&e));
	herald_engine_abandon(&e);
	KUNIT_EXPECT_EQ(test, atomic_read(&e.word), 0);
}

/* ------------------------------------------------------------- stress -- */

#define KICKERS		3
#define KICKS		20000
#define WAITS		200

struct stress {
	struct herald_engine engine;
	atomic_t posted;
	int done;		/* the owner's */
	int inside;		/* the owner's */
	bool shared;		/* somebody else was inside */
	atomic_t running;
	struct completion over;
};

static void enter(struct stress *s)
{
	if (READ_ONCE(s->inside))
		WRITE_ONCE(s->shared, true);
	WRITE_ONCE(s->inside, 1);
}

static void leave(struct stress *s)
{
	WRITE_ONCE(s->inside, 0);
}

/* Owner: look at all there is, until nobody has asked for more; or give up, and kick it anew. */
static void look(struct stress *s)
{
	unsigned int rounds = 0;

	for (;;) {
		enter(s);
		s->done = atomic_read(&s->posted);
		leave(s);
		if (++rounds % 2) {
			if (herald_engine_release(&s->engine))
				return;
			continue;
		}
		herald_engine_abandon(&s->engine);
		if (!herald_engine_kick(&s->engine))
			return;
	}
}

static void end_thread(struct stress *s)
{
	if (atomic_dec_and_test(&s->running))
		complete(&s->over);
}

static int kicker(void *data)
{
	struct stress *s = data;
	int i;

	for (i = 0; i < KICKS; i++) {
		atomic_inc(&s->posted);
		if (herald_engine_kick(&s->engine))
			look(s);
		if (!(i % 64))
			cond_resched();
	}
	end_thread(s);
	return 0;
}

static int waiter(void *data)
{
	struct stress *s = data;
	int i;

	for (i = 0; i < WAITS; i++) {
		herald_engine_own(&s->engine);
		enter(s);
		/* let others find it owned */
		schedule();
		leave(s);
		look(s);
		herald_engine_wait_idle(&s->engine);
	}
	end_thread(s);
	return 0;
}

static void many_contexts(struct kunit *test)
{
	struct stress *s = kunit_kzalloc(test, sizeof(*s), GFP_KERNEL);
	int i;

	KUNIT_ASSERT_NOT_NULL(test, s);
	herald_engine_init(&s->engine);
	init_completion(&s->over);
	atomic_set(&s->running, KICKERS + 1);
	for (i = 0; i <= KICKERS; i++) {
		struct task_struct *t = kthread_run(i < KICKERS ? kicker : waiter, s,
						    "herald_engine/%d", i);

		if (IS_ERR(t)) {
			KUNIT_FAIL(test, "no thread: %ld", PTR_ERR(t));
			end_thread(s);
		}
	}
	wait_for_completion(&s->over);
	KUNIT_EXPECT_FALSE(test, s->shared);
	KUNIT_EXPECT_EQ(test, s->done, atomic_read(&s->posted));
	KUNIT_EXPECT_EQ(test, atomic_read(&s->engine.word), 0);
}

static struct kunit_case engine_cases[] = {
	KUNIT_CASE(free_engine),
	KUNIT_CASE(kick_while_owned),
	KUNIT_CASE(waiter_and_kick),
	KUNIT_CASE_SLOW(many_contexts),
	{}
};

static struct kunit_suite engine_suite = {
	.name = "herald_engine",
	.test_cases = engine_cases,
};

kunit_test_suite(engine_suite);
