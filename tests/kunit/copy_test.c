// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/* Copies between spans, and atomics. */
#include "mem_test.h"

/* Where byte @off of the region with pieces is. */
static u8 *piece_byte(struct mem_rig *rig, u64 off)
{
	u64 run;

	return herald_mem_run(mem_of(rig->pieces), off, &run);
}

/* -------------------------------------------------------------------- copies -- */

static void copy_crosses_ranges(struct kunit *test)
{
	static const u32 lens[] = { 1, 7, 8, 9, 63, 64, 65, 500, 1000 };
	struct mem_rig *rig = test->priv;
	u32 off, l, i;

	for (l = 0; l < ARRAY_SIZE(lens); l++)
		for (off = 0; off + lens[l] <= SIZE; off += 61) {
			struct herald_sge from = sge_of(rig->pieces, off, lens[l]);
			struct herald_sge to = sge_of(rig->plain, SIZE - lens[l], lens[l]);
			struct herald_span src = span_of(rig->qp, &from, 1, 0, false);
			struct herald_span dst = span_of(rig->qp, &to, 1,
							 IB_ACCESS_REMOTE_WRITE, true);

			KUNIT_ASSERT_EQ(test, herald_copy(&dst, 0, &src, 0, lens[l]),
					HERALD_COPY_OK);
			for (i = 0; i < lens[l]; i++)
				KUNIT_ASSERT_EQ(test, rig->buf[SIZE - lens[l] + i],
						*piece_byte(rig, off + i));
		}
	KUNIT_EXPECT_EQ(test, test_counts[HERALD_CTR_bad_key], 0ull);
}

static void copy_gathers_and_scatters_from_an_offset(struct kunit *test)
{
	struct mem_rig *rig = test->priv;
	struct herald_sge from[4] = {
		sge_of(rig->pieces, 5, 100), { .lkey = 0xdead },
		sge_of(rig->plain, 0, 3), sge_of(rig->pieces, 1000, 300),
	};
	struct herald_sge to[3] = {
		sge_of(rig->plain, 1000, 11), sge_of(rig->plain, 2000, 90),
		sge_of(rig->plain, 3000, 400),
	};
	struct herald_span src = span_of(rig->qp, from, 4, 0, false);
	struct herald_span dst = span_of(rig->qp, to, 3, IB_ACCESS_LOCAL_WRITE, false);
	u8 *want = rig->shadow;
	u32 i;

	for (i = 0; i < 100; i++)
		want[i] = *piece_byte(rig, 5 + i);
	memcpy(want + 100, rig->buf, 3);
	for (i = 0; i < 300; i++)
		want[103 + i] = *piece_byte(rig, 1000 + i);

	/* the middle 380 bytes, to byte 10 and on */
	KUNIT_ASSERT_EQ(test, herald_copy(&dst, 10, &src, 20, 380), HERALD_COPY_OK);
	KUNIT_EXPECT_EQ(test, rig->buf[1010], want[20]);
	KUNIT_EXPECT_MEMEQ(test, rig->buf + 2000, want + 21, 90);
	KUNIT_EXPECT_MEMEQ(test, rig->buf + 3000, want + 111, 289);
	KUNIT_EXPECT_EQ(test, test_counts[HERALD_CTR_bytes_moved], 380ull);
	/* more than there is */
	KUNIT_EXPECT_EQ(test, herald_copy(&dst, 0, &src, 20, 384), HERALD_COPY_SRC);
	KUNIT_EXPECT_EQ(test, herald_copy(&dst, 99, &src, 0, 403), HERALD_COPY_DST);
}

static void copy_onto_itself_is_a_move(struct kunit *test)
{
	struct mem_rig *rig = test->priv;
	struct herald_sge low = sge_of(rig->plain, 0, 1000), high = sge_of(rig->plain, 3, 1000);
	struct herald_span a = span_of(rig->qp, &low, 1, IB_ACCESS_LOCAL_WRITE, false);
	struct herald_span b = span_of(rig->qp, &high, 1, IB_ACCESS_LOCAL_WRITE, false);

	KUNIT_EXPECT_EQ(test, herald_copy(&b, 0, &a, 0, 1000), HERALD_COPY_OK);
	KUNIT_EXPECT_MEMEQ(test, rig->buf + 3, rig->shadow, 1000);
	memcpy(rig->buf, rig->shadow, SIZE);
	KUNIT_EXPECT_EQ(test, herald_copy(&a, 0, &b, 0, 1000), HERALD_COPY_OK);
	KUNIT_EXPECT_MEMEQ(test, rig->buf, rig->shadow + 3, 1000);
	KUNIT_EXPECT_EQ(test, herald_copy(&a, 0, &a, 0, 1000), HERALD_COPY_OK);
}

struct refusal {
	const char *name;
	s64 off;
	u32 len;
	u32 key_xor;
	int access;
	bool remote;
	bool other_pd;
};

static const struct refusal refusals[] = {
	{ "another variant", 0, 8, 1, 0, false, false },
	{ "another index", 0, 8, 0x100, 0, false, false },
	{ "another PD", 0, 8, 0, 0, false, true },
	{ "another PD, remote", 0, 8, 0, IB_ACCESS_REMOTE_READ, true, true },
	{ "a right it has not", 0, 8, 0, IB_ACCESS_FLUSH_GLOBAL, true, false },
	{ "one before", -1, 8, 0, 0, false, false },
	{ "one after", SIZE - 7, 8, 0, 0, false, false },
	{ "far after", SIZE + 1, 1, 0, 0, false, false },
	{ "longer than all", 0, SIZE + 1, 0, 0, false, false },
	{ "address that overflows", -(s64)IOVA - 1, 8, 0, 0, false, false },
};

static void refusal_desc(const struct refusal *r, char *desc)
{
	strscpy(desc, r->name, KUNIT_PARAM_DESC_SIZE);
}

KUNIT_ARRAY_PARAM(refusal, refusals, refusal_desc);

static void copy_refuses(struct kunit *test)
{
	const struct refusal *r = test->param_value;
	struct mem_rig *rig = test->priv;
	struct herald_qp *qp = r->other_pd ? rig->other_qp : rig->qp;
	struct herald_sge sge[2] = {
		sge_of(rig->plain, 100, 8), sge_of(rig->pieces, r->off, r->len),
	};
	struct herald_span linear = { .length = 2 * SIZE };
	struct herald_span bad;

	sge[1].lkey ^= r->key_xor;
	linear.linear = rig->shadow;
	bad = span_of(qp, sge + 1, 1, r->access, r->remote);
	KUNIT_EXPECT_EQ(test, herald_span_check(&bad), -EACCES);
	KUNIT_EXPECT_EQ(test, herald_copy(&linear, 0, &bad, 0, r->len), HERALD_COPY_SRC);
	KUNIT_EXPECT_MEMEQ(test, rig->buf, rig->shadow, 2 * SIZE);

	/* an entry before it is good, and yet no byte moves */
	if (!r->remote)
		bad = span_of(qp, sge, 2, r->access, false);
	memset(rig->shadow, 0xee, 2 * SIZE);
	KUNIT_EXPECT_EQ(test, herald_copy(&bad, 0, &linear, 0, bad.length), HERALD_COPY_DST);
	KUNIT_EXPECT_NE(test, rig->buf[100], (u8)0xee);
	KUNIT_EXPECT_EQ(test, test_counts[HERALD_CTR_bad_key], 3ull);
	KUNIT_EXPECT_EQ(test, test_counts[HERALD_CTR_bytes_moved], 0ull);
}

static void copy_of_nothing_looks_at_no_key(struct kunit *test)
{
	struct mem_rig *rig = test->priv;
	struct herald_sge none = { .addr = 1, .length = 0, .lkey = 0xdeadbeef };
	struct herald_span span = span_of(rig->qp, &none, 1, 0, false);

	KUNIT_EXPECT_EQ(test, herald_span_check(&span), 0);
	KUNIT_EXPECT_EQ(test, herald_copy(&span, 0, &span, 0, 0), HERALD_COPY_OK);
	KUNIT_EXPECT_EQ(test, test_counts[HERALD_CTR_bad_key], 0ull);
}

static void copy_local_dma_lkey_is_the_kernels(struct kunit *test)
{
	struct mem_rig *rig = test->priv;
	struct herald_sge own = { .addr = (uintptr_t)rig->buf, .length = 8 };
	struct herald_span span = span_of(rig->qp, &own, 1, IB_ACCESS_LOCAL_WRITE, false);
	struct herald_span from = { .length = 8 };

	from.linear = "herald!";
	KUNIT_EXPECT_EQ(test, herald_copy(&span, 0, &from, 0, 8), HERALD_COPY_OK);
	KUNIT_EXPECT_STREQ(test, (char *)rig->buf, "herald!");
	rig->qp->user = true;
	KUNIT_EXPECT_EQ(test, herald_copy(&span, 0, &from, 0, 8), HERALD_COPY_DST);
	rig->qp->user = false;
	span.remote = true;
	KUNIT_EXPECT_EQ(test, herald_copy(&span, 0, &from, 0, 8), HERALD_COPY_DST);
}

/* ------------------------------------------------------------------- atomics -- */

static void atomics(struct kunit *test)
{
	struct mem_rig *rig = test->priv;
	u64 *word = (u64 *)(rig->buf + 64), old = 0;
	struct herald_sge sge = sge_of(rig->plain, 64, 8);
	struct herald_span span = span_of(rig->qp, &sge, 1, IB_ACCESS_REMOTE_ATOMIC, true);

	*word = 5;
	KUNIT_EXPECT_EQ(test, herald_atomic(&span, HERALD_WR_ATOMIC_CMP_AND_SWP, 4, 9, &old),
			HERALD_OK);
	KUNIT_EXPECT_EQ(test, old, 5ull);
	KUNIT_EXPECT_EQ(test, *word, 5ull);
	KUNIT_EXPECT_EQ(test, herald_atomic(&span, HERALD_WR_ATOMIC_CMP_AND_SWP, 5, 9, &old),
			HERALD_OK);
	KUNIT_EXPECT_EQ(test, old, 5ull);
	KUNIT_EXPECT_EQ(test, *word, 9ull);
	KUNIT_EXPECT_EQ(test, herald_atomic(&span, HERALD_WR_ATOMIC_FETCH_AND_ADD, U64_MAX, 0,
					    &old), HERALD_OK);
	KUNIT_EXPECT_EQ(test, old, 9ull);
	KUNIT_EXPECT_EQ(test, *word, 8ull);
	KUNIT_EXPECT_EQ(test, herald_atomic(&span, HERALD_WR_ATOMIC_WRITE, 77, 0, &old),
			HERALD_OK);
	KUNIT_EXPECT_EQ(test, *word, 77ull);
	KUNIT_EXPECT_EQ(test, herald_atomic(&span, HERALD_WR_SEND, 1, 0, &old),
			HERALD_NAK_INV_REQ);

	sge.addr += 4;
	KUNIT_EXPECT_EQ(test, herald_atomic(&span, HERALD_WR_ATOMIC_WRITE, 1, 0, &old),
			HERALD_NAK_INV_REQ);
	sge.addr = IOVA + SIZE;
	KUNIT_EXPECT_EQ(test, herald_atomic(&span, HERALD_WR_ATOMIC_WRITE, 1, 0, &old),
			HERALD_NAK_ACCESS);
	sge.addr = IOVA + SIZE - 8;
	KUNIT_EXPECT_EQ(test, herald_atomic(&span, HERALD_WR_ATOMIC_WRITE, 1, 0, &old), HERALD_OK);
	span.qp = rig->other_qp;
	KUNIT_EXPECT_EQ(test, herald_atomic(&span, HERALD_WR_ATOMIC_WRITE, 1, 0, &old),
			HERALD_NAK_ACCESS);
}

static void atomic_on_memory_that_is_not_aligned(struct kunit *test)
{
	struct mem_rig *rig = test->priv;
	struct herald_mem *mem;
	struct herald_mr *mr = mem_rig_region(test, &rig->pd, RW | IB_ZERO_BASED, 0, &mem);
	struct herald_sge sge = { .addr = 8, .length = 8, .lkey = mr->ib.lkey };
	struct herald_span span = span_of(rig->qp, &sge, 1, IB_ACCESS_REMOTE_ATOMIC, true);
	u64 old;

	KUNIT_ASSERT_EQ(test, herald_mem_add(mem, rig->buf + 1, 64), 0);
	KUNIT_EXPECT_EQ(test, herald_atomic(&span, HERALD_WR_ATOMIC_FETCH_AND_ADD, 1, 0, &old),
			HERALD_NAK_INV_REQ);
	KUNIT_EXPECT_EQ(test, herald_dereg_mr(&mr->ib, NULL), 0);
}

static struct kunit_case copy_cases[] = {
	KUNIT_CASE(copy_crosses_ranges),
	KUNIT_CASE(copy_gathers_and_scatters_from_an_offset),
	KUNIT_CASE(copy_onto_itself_is_a_move),
	KUNIT_CASE_PARAM(copy_refuses, refusal_gen_params),
	KUNIT_CASE(copy_of_nothing_looks_at_no_key),
	KUNIT_CASE(copy_local_dma_lkey_is_the_kernels),
	KUNIT_CASE(atomics),
	KUNIT_CASE(atomic_on_memory_that_is_not_aligned),
	{}
};

static struct kunit_suite copy_suite = {
	.name = "herald_copy",
	.init = mem_rig_init,
	.exit = mem_rig_exit,
	.test_cases = copy_cases,
};

kunit_test_suite(copy_suite);
