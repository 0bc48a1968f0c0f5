// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/* A device, regions and spans for the tests of memory keys. */
#include <linux/slab.h>

#include "mem_test.h"

struct herald_qp *mem_rig_qp(struct kunit *test, struct herald_dev *dev, struct herald_pd *pd)
{
	struct herald_qp *qp = kunit_kzalloc(test, sizeof(*qp), GFP_KERNEL);

	KUNIT_ASSERT_NOT_NULL(test, qp);
	qp->dev = dev;
	qp->ib.pd = &pd->ib;
	qp->type = IB_QPT_RC;
	return qp;
}

struct herald_mr *mem_rig_region(struct kunit *test, struct herald_pd *pd, int access, u64 iova,
				 struct herald_mem **memp)
{
	struct herald_mr *mr = herald_mr_new(&pd->ib);
	struct herald_mem *mem = herald_mem_alloc(128);

	KUNIT_ASSERT_FALSE(test, IS_ERR(mr));
	KUNIT_ASSERT_NOT_NULL(test, mem);
	mem->key = mr->ib.lkey;
	mem->access = access;
	mem->pd = &pd->ib;
	mem->iova = iova;
	mem->mr = mr;
	refcount_set(&mem->refs, 1);
	rcu_assign_pointer(mr->mem, mem);
	*memp = mem;
	return mr;
}

int mem_rig_init(struct kunit *test)
{
	struct mem_rig *rig = kunit_kzalloc(test, sizeof(*rig), GFP_KERNEL);
	struct herald_mem *mem;
	u32 end, n = 1, i;

	KUNIT_ASSERT_NOT_NULL(test, rig);
	test->priv = rig;
	rig->dev = kunit_kzalloc(test, sizeof(*rig->dev), GFP_KERNEL);
	rig->op = kunit_kzalloc(test, sizeof(*rig->op), GFP_KERNEL);
	rig->buf = kunit_kzalloc(test, 2 * SIZE, GFP_KERNEL);
	rig->shadow = kunit_kzalloc(test, 2 * SIZE, GFP_KERNEL);
	KUNIT_ASSERT_TRUE(test, rig->dev && rig->op && rig->buf && rig->shadow);
	herald_keys_init(rig->dev);
	rig->pd.ib.device = &rig->dev->ib;
	rig->other_pd.ib.device = &rig->dev->ib;
	rig->qp = mem_rig_qp(test, rig->dev, &rig->pd);
	rig->other_qp = mem_rig_qp(test, rig->dev, &rig->other_pd);
	memset(test_counts, 0, sizeof(test_counts));

	rig->plain = mem_rig_region(test, &rig->pd, RW, IOVA, &mem);
	KUNIT_ASSERT_EQ(test, herald_mem_add(mem, rig->buf, SIZE), 0);
	rig->pieces = mem_rig_region(test, &rig->pd, RW, IOVA, &mem);
	for (end = 2 * SIZE; end > SIZE; end -= min(8 * n++, end - SIZE)) {
		u32 len = min(8 * n, end - SIZE);

		KUNIT_ASSERT_EQ(test, herald_mem_add(mem, rig->buf + end - len, len), 0);
	}
	KUNIT_ASSERT_EQ(test, mem->length, (u64)SIZE);
	for (i = 0; i < 2 * SIZE; i++)
		rig->buf[i] = i * 7 + i / 256;
	memcpy(rig->shadow, rig->buf, 2 * SIZE);
	return 0;
}

void mem_rig_exit(struct kunit *test)
{
	struct mem_rig *rig = test->priv;

	/* nothing may be left behind */
	KUNIT_EXPECT_EQ(test, refcount_read(&mem_of(rig->plain)->refs), 1);
	KUNIT_EXPECT_EQ(test, refcount_read(&mem_of(rig->pieces)->refs), 1);
	KUNIT_EXPECT_EQ(test, herald_dereg_mr(&rig->plain->ib, NULL), 0);
	KUNIT_EXPECT_EQ(test, herald_dereg_mr(&rig->pieces->ib, NULL), 0);
	KUNIT_EXPECT_TRUE(test, xa_empty(&rig->dev->keys));
	KUNIT_EXPECT_EQ(test, atomic_read(&rig->dev->num_mr), 0);
	xa_destroy(&rig->dev->keys);
	rcu_barrier();
}

struct herald_span span_of(struct herald_qp *qp, const struct herald_sge *sge, u32 nsge,
			   int access, bool remote)
{
	struct herald_span span = {
		.sge = sge, .nsge = nsge, .qp = qp, .access = access, .remote = remote,
	};
	u32 i;

	for (i = 0; i < nsge; i++)
		span.length += sge[i].length;
	return span;
}

int reads(struct herald_qp *qp, u32 key, u64 addr)
{
	struct herald_sge sge = { .addr = addr, .length = 1, .lkey = key };
	struct herald_span span = span_of(qp, &sge, 1, IB_ACCESS_REMOTE_READ, true);
	struct herald_span to = { .length = 1 };
	bool copied;
	u8 byte;

	to.linear = &byte;
	copied = herald_copy(&to, 0, &span, 0, 1) == HERALD_COPY_OK;
	if ((herald_span_check(&span) == 0) != copied)
		return -EIO;
	return copied ? 0 : -EACCES;
}
