// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/* The tables of memory ranges, and the table of keys. */
#include <kunit/test.h>
#include <linux/module.h>
#include <linux/overflow.h>

/* The sources themselves; copy_test.c tests what comes after the tables. */
#include "../../kernel/mem.c"
#include "../../kernel/key.c"
#include "../../kernel/mr.c"
#include "../../kernel/fastreg.c"
#include "../../kernel/mw.c"
#include "../../kernel/copy.c"

#include "mem_test.h"

u64 test_counts[HERALD_CTR_MAX];

int herald_fault_verb_strikes(struct herald_faults *faults, enum herald_fault_site verb)
{
	return 0;
}

void herald_count_add(struct herald_dev *dev, enum herald_counter c, u64 n)
{
	test_counts[c] += n;
}

/* --------------------------------------------------------------- builders -- */

static struct herald_mem *new_mem(struct kunit *test, u32 max_ranges)
{
	struct herald_mem *mem;

	mem = kunit_kzalloc(test, struct_size(mem, ranges, max_ranges), GFP_KERNEL);
	KUNIT_ASSERT_NOT_NULL(test, mem);
	mem->max_ranges = max_ranges;
	return mem;
}

/* Addresses are never followed. */
static void *at(u64 va)
{
	return (void *)(uintptr_t)va;
}

/* Ranges of 1, 2, 3, ... pages, each with a hole before it. */
static struct herald_mem *stairs(struct kunit *test, u32 n)
{
	struct herald_mem *mem = new_mem(test, n);
	u64 va = 0x100000;
	u32 i;

	for (i = 0; i < n; i++) {
		KUNIT_ASSERT_EQ(test, herald_mem_add(mem, at(va), (i + 1) * 4096ull), 0);
		va += (i + 3) * 4096ull;
	}
	return mem;
}

/* ----------------------------------------------------------------- ranges -- */

static void mem_find_first_and_last_byte_of_each_range(struct kunit *test)
{
	static const u32 sizes[] = { 1, 2, 3, 4, 5, 7, 8, 9, 31, 64 };
	u32 s, i;

	for (s = 0; s < ARRAY_SIZE(sizes); s++) {
		struct herald_mem *mem = stairs(test, sizes[s]);

		KUNIT_ASSERT_EQ(test, mem->nranges, sizes[s]);
		for (i = 0; i < mem->nranges; i++) {
			u64 start = mem->ranges[i].start, end = herald_mem_range_end(mem, i);

			KUNIT_EXPECT_EQ(test, end - start, (i + 1) * 4096ull);
			KUNIT_EXPECT_EQ(test, herald_mem_find(mem, start), i);
			KUNIT_EXPECT_EQ(test, herald_mem_find(mem, end - 1), i);
		}
		KUNIT_EXPECT_EQ(test, herald_mem_range_end(mem, mem->nranges - 1), mem->length);
	}
}

static void mem_run_ends_at_the_range(struct kunit *test)
{
	struct herald_mem *mem = stairs(test, 3);
	u64 run;

	KUNIT_EXPECT_PTR_EQ(test, herald_mem_run(mem, 0, &run), at(0x100000));
	KUNIT_EXPECT_EQ(test, run, 4096ull);
	KUNIT_EXPECT_PTR_EQ(test, herald_mem_run(mem, 4095, &run), at(0x100fff));
	KUNIT_EXPECT_EQ(test, run, 1ull);
	KUNIT_EXPECT_PTR_EQ(test, herald_mem_run(mem, 4096, &run), at(0x103000));
	KUNIT_EXPECT_EQ(test, run, 8192ull);
	KUNIT_EXPECT_PTR_EQ(test, herald_mem_run(mem, 4096 * 6 - 1, &run), at(0x109fff));
	KUNIT_EXPECT_EQ(test, run, 1ull);
}

static void mem_run_of_the_kernels_own(struct kunit *test)
{
	struct herald_mem *mem = new_mem(test, 0);
	u64 run;

	mem->identity = true;
	mem->length = U64_MAX;
	KUNIT_EXPECT_PTR_EQ(test, herald_mem_run(mem, 0x12345678, &run), at(0x12345678));
	KUNIT_EXPECT_EQ(test, run, U64_MAX - 0x12345678);
}

static void mem_add_joins_what_adjoins(struct kunit *test)
{
	struct herald_mem *mem = new_mem(test, 2);

	KUNIT_EXPECT_EQ(test, herald_mem_add(mem, at(0x1010), 0xff0), 0);
	KUNIT_EXPECT_EQ(test, herald_mem_add(mem, at(0x2000), 0x1000), 0);
	KUNIT_EXPECT_EQ(test, mem->nranges, 1);
	KUNIT_EXPECT_EQ(test, herald_mem_add(mem, at(0x3001), 0x1000), 0);
	KUNIT_EXPECT_EQ(test, mem->nranges, 2);
	/* one page before: not joined, and there is no room */
	KUNIT_EXPECT_EQ(test, herald_mem_add(mem, at(0x1000), 0x1000), -ENOSPC);
	KUNIT_EXPECT_EQ(test, mem->length, 0x2ff0ull);
	/* but joining needs none */
	KUNIT_EXPECT_EQ(test, herald_mem_add(mem, at(0x4001), 1), 0);
	KUNIT_EXPECT_EQ(test, mem->length, 0x2ff1ull);
	herald_mem_clear(mem);
	KUNIT_EXPECT_EQ(test, mem->nranges, 0);
	KUNIT_EXPECT_EQ(test, mem->length, 0ull);
}

struct inside_case {
	const char *name;
	u64 addr, len, base, length;
	bool inside;
};

static const struct inside_case inside_cases[] = {
	{ "all of it", 0x1000, 0x100, 0x1000, 0x100, true },
	{ "first byte", 0x1000, 1, 0x1000, 0x100, true },
	{ "last byte", 0x10ff, 1, 0x1000, 0x100, true },
	{ "one before", 0xfff, 1, 0x1000, 0x100, false },
	{ "one after", 0x1100, 1, 0x1000, 0x100, false },
	{ "begins before", 0xfff, 0x100, 0x1000, 0x100, false },
	{ "ends after", 0x1001, 0x100, 0x1000, 0x100, false },
	{ "longer", 0x1000, 0x101, 0x1000, 0x100, false },
	{ "sum overflows", U64_MAX, 2, 0, U64_MAX, false },
	{ "sum overflows into it", U64_MAX - 1, 0x1002, 0, 0x1000, false },
	{ "length overflows", 0x1001, U64_MAX, 0x1000, 0x100, false },
	{ "top of memory", U64_MAX - 0xff, 0xff, U64_MAX - 0xff, 0xff, true },
	{ "empty region", 0x1000, 1, 0x1000, 0, false },
};

static void inside_desc(const struct inside_case *c, char *desc)
{
	strscpy(desc, c->name, KUNIT_PARAM_DESC_SIZE);
}

KUNIT_ARRAY_PARAM(inside, inside_cases, inside_desc);

static void mem_range_inside(struct kunit *test)
{
	const struct inside_case *c = test->param_value;

	KUNIT_EXPECT_EQ(test, herald_range_inside(c->addr, c->len, c->base, c->length), c->inside);
}

/* ------------------------------------------------------------------- keys -- */

static struct herald_dev *new_dev(struct kunit *test)
{
	struct herald_dev *dev = kunit_kzalloc(test, sizeof(*dev), GFP_KERNEL);

	KUNIT_ASSERT_NOT_NULL(test, dev);
	herald_keys_init(dev);
	return dev;
}

static void key_index_is_never_zero(struct kunit *test)
{
	struct herald_dev *dev = new_dev(test);
	struct herald_key keys[8] = {};
	u32 value, i;

	dev->next_key = HERALD_KEY_MAX_INDEX - 3;
	for (i = 0; i < ARRAY_SIZE(keys); i++) {
		KUNIT_ASSERT_EQ(test, herald_key_alloc(dev, &keys[i], &value), 0);
		KUNIT_EXPECT_NE(test, value >> 8, 0);
		KUNIT_EXPECT_EQ(test, value >> 8, keys[i].index);
		KUNIT_EXPECT_PTR_EQ(test, xa_load(&dev->keys, value >> 8), (void *)&keys[i]);
	}
	for (i = 0; i < ARRAY_SIZE(keys); i++)
		herald_key_free(dev, &keys[i]);
	KUNIT_EXPECT_TRUE(test, xa_empty(&dev->keys));
	xa_destroy(&dev->keys);
}

static void key_index_is_not_reused_at_once(struct kunit *test)
{
	struct herald_dev *dev = new_dev(test);
	struct herald_key a = {}, b = {};
	u32 first, second;

	KUNIT_ASSERT_EQ(test, herald_key_alloc(dev, &a, &first), 0);
	herald_key_free(dev, &a);
	KUNIT_ASSERT_EQ(test, herald_key_alloc(dev, &b, &second), 0);
	KUNIT_EXPECT_NE(test, first >> 8, second >> 8);
	KUNIT_EXPECT_NULL(test, xa_load(&dev->keys, first >> 8));
	herald_key_free(dev, &b);
	xa_destroy(&dev->keys);
}

static void key_variant_changes_when_the_index_is_reused(struct kunit *test)
{
	struct herald_dev *dev = new_dev(test);
	struct herald_key key = {};
	u32 value, before, i;

	KUNIT_ASSERT_EQ(test, herald_key_alloc(dev, &key, &before), 0);
	for (i = 0; i < 300; i++) {
		herald_key_free(dev, &key);
		dev->next_key = before >> 8;
		KUNIT_ASSERT_EQ(test, herald_key_alloc(dev, &key, &value), 0);
		KUNIT_EXPECT_EQ(test, value >> 8, before >> 8);
		KUNIT_EXPECT_NE(test, value, before);
		before = value;
	}
	herald_key_free(dev, &key);
	xa_destroy(&dev->keys);
}

static void key_stale_finds_nothing(struct kunit *test)
{
	struct herald_mem *mem = new_mem(test, 1);
	struct herald_mr *mr;

	mr = kunit_kzalloc(test, sizeof(*mr), GFP_KERNEL);
	KUNIT_ASSERT_NOT_NULL(test, mr);
	mem->key = herald_key_make(5, 9);
	refcount_set(&mem->refs, 1);
	rcu_read_lock();
	KUNIT_EXPECT_NULL(test, herald_mr_get_mem(mr, mem->key));
	rcu_assign_pointer(mr->mem, mem);
	KUNIT_EXPECT_NULL(test, herald_mr_get_mem(mr, herald_key_make(5, 8)));
	KUNIT_EXPECT_EQ(test, refcount_read(&mem->refs), 1);
	KUNIT_EXPECT_PTR_EQ(test, herald_mr_get_mem(mr, mem->key), mem);
	KUNIT_EXPECT_EQ(test, refcount_read(&mem->refs), 2);
	herald_mem_put(mem);
	/* invalidated, the last copy gone: a late reader gets nothing */
	herald_mem_put(mem);
	KUNIT_EXPECT_NULL(test, herald_mr_get_mem(mr, mem->key));
	KUNIT_EXPECT_TRUE(test, herald_mem_idle(mem));
	rcu_read_unlock();
}

static struct kunit_case mem_cases[] = {
	KUNIT_CASE(mem_find_first_and_last_byte_of_each_range),
	KUNIT_CASE(mem_run_ends_at_the_range),
	KUNIT_CASE(mem_run_of_the_kernels_own),
	KUNIT_CASE(mem_add_joins_what_adjoins),
	KUNIT_CASE_PARAM(mem_range_inside, inside_gen_params),
	KUNIT_CASE(key_index_is_never_zero),
	KUNIT_CASE(key_index_is_not_reused_at_once),
	KUNIT_CASE(key_variant_changes_when_the_index_is_reused),
	KUNIT_CASE(key_stale_finds_nothing),
	{}
};

static struct kunit_suite mem_suite = {
	.name = "herald_mem",
	.test_cases = mem_cases,
};

kunit_test_suite(mem_suite);

MODULE_DESCRIPTION("herald: KUnit tests of the memory keys and of what they open");
MODULE_LICENSE("Dual BSD/GPL");
