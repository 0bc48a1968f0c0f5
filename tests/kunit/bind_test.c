// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/* Fast registration and windows: keys that come and go by work requests. */
#include <linux/kthread.h>
#include <linux/scatterlist.h>

#include "mem_test.h"

/* --------------------------------------------------------- fast registration -- */

static enum herald_outcome reg_mr(struct mem_rig *rig, struct herald_qp *qp, struct ib_mr *mr,
				  int access)
{
	rig->op->u.reg.mr = (uintptr_t)mr;
	rig->op->u.reg.key = mr->rkey;
	rig->op->u.reg.access = access;
	return herald_mr_register(qp, rig->op);
}

/* Map @len bytes of the buffer from @off on. */
static struct ib_mr *mapped(struct kunit *test, u32 off, u32 len, u32 max_pages, u32 page_size,
			    int want)
{
	struct mem_rig *rig = test->priv;
	struct ib_mr *mr = herald_alloc_mr(&rig->pd.ib, IB_MR_TYPE_MEM_REG, max_pages);
	struct scatterlist sg;

	KUNIT_ASSERT_FALSE(test, IS_ERR(mr));
	sg_init_one(&sg, rig->buf + off, len);
	sg_dma_address(&sg) = (uintptr_t)rig->buf + off;
	sg_dma_len(&sg) = len;
	mr->page_size = page_size;
	KUNIT_ASSERT_EQ(test, herald_map_mr_sg(mr, &sg, 1, NULL), want);
	return mr;
}

static void fastreg_life(struct kunit *test)
{
	const int access = IB_ACCESS_LOCAL_WRITE | IB_ACCESS_REMOTE_READ;
	struct mem_rig *rig = test->priv;
	struct ib_mr *mr = mapped(test, 100, 5000, 16, 512, 1);
	u32 key = mr->rkey;

	KUNIT_EXPECT_EQ(test, mr->length, 5000ull);
	KUNIT_EXPECT_EQ(test, reads(rig->qp, key, mr->iova), -EACCES);
	KUNIT_EXPECT_EQ(test, reg_mr(rig, rig->other_qp, mr, access), HERALD_LOC_MW_BIND);
	KUNIT_EXPECT_EQ(test, reg_mr(rig, rig->qp, mr, IB_ACCESS_REMOTE_WRITE), HERALD_LOC_MW_BIND);
	mr->rkey = key + 0x100;
	KUNIT_EXPECT_EQ(test, reg_mr(rig, rig->qp, mr, access), HERALD_LOC_MW_BIND);
	ib_update_fast_reg_key(mr, 42);
	mr->rkey = (key & ~0xff) | 42;
	KUNIT_EXPECT_EQ(test, reg_mr(rig, rig->qp, mr, access), HERALD_OK);
	KUNIT_EXPECT_EQ(test, reg_mr(rig, rig->qp, mr, access), HERALD_LOC_MW_BIND);
	KUNIT_EXPECT_EQ(test, reads(rig->qp, mr->rkey, mr->iova), 0);
	KUNIT_EXPECT_EQ(test, reads(rig->qp, mr->rkey, mr->iova + 4999), 0);
	KUNIT_EXPECT_EQ(test, reads(rig->qp, mr->rkey, mr->iova + 5000), -EACCES);
	KUNIT_EXPECT_EQ(test, reads(rig->qp, mr->rkey, mr->iova - 1), -EACCES);
	KUNIT_EXPECT_EQ(test, reads(rig->qp, mr->rkey ^ 1, mr->iova), -EACCES);

	KUNIT_EXPECT_EQ(test, herald_key_invalidate_local(rig->qp, mr->rkey ^ 1),
			HERALD_LOC_MW_BIND);
	KUNIT_EXPECT_EQ(test, herald_key_invalidate_local(rig->other_qp, mr->rkey),
			HERALD_LOC_MW_BIND);
	KUNIT_EXPECT_EQ(test, herald_key_invalidate_local(rig->qp, mr->rkey), HERALD_OK);
	KUNIT_EXPECT_TRUE(test, herald_key_quiet(rig->qp, mr->rkey));
	KUNIT_EXPECT_EQ(test, reads(rig->qp, mr->rkey, mr->iova), -EACCES);
	KUNIT_EXPECT_EQ(test, herald_key_invalidate_local(rig->qp, mr->rkey), HERALD_OK);
	KUNIT_EXPECT_EQ(test, herald_key_invalidate_remote(rig->qp, mr->rkey),
			HERALD_NAK_INV_INVALIDATE);

	/* the same list again, moved, and ended by the peer */
	mr->iova += 0x100000000ull;
	KUNIT_EXPECT_EQ(test, reg_mr(rig, rig->qp, mr, access), HERALD_OK);
	KUNIT_EXPECT_EQ(test, reads(rig->qp, mr->rkey, mr->iova), 0);
	KUNIT_EXPECT_EQ(test, herald_key_invalidate_remote(rig->qp, mr->rkey), HERALD_OK);
	/* no remote right, no remote invalidation */
	KUNIT_EXPECT_EQ(test, reg_mr(rig, rig->qp, mr, IB_ACCESS_LOCAL_WRITE), HERALD_OK);
	KUNIT_EXPECT_EQ(test, herald_key_invalidate_remote(rig->qp, mr->rkey),
			HERALD_NAK_INV_INVALIDATE);
	KUNIT_EXPECT_EQ(test, herald_dereg_mr(mr, NULL), 0);
	/* a region that was not made for it */
	KUNIT_EXPECT_EQ(test, herald_key_invalidate_local(rig->qp, rig->plain->ib.lkey),
			HERALD_LOC_MW_BIND);
}

static void fastreg_maps_the_right_bytes(struct kunit *test)
{
	static const u32 page_sizes[] = { 512, 1024, 4096 };
	struct mem_rig *rig = test->priv;
	u32 p, off;

	for (p = 0; p < ARRAY_SIZE(page_sizes); p++)
		for (off = 0; off < 2000; off += 333) {
			struct ib_mr *mr = mapped(test, off, 3000, 16, page_sizes[p], 1);
			struct herald_sge sge = { .addr = mr->iova, .length = 3000,
						  .lkey = mr->lkey };
			struct herald_span from = span_of(rig->qp, &sge, 1, 0, false);
			struct herald_span to = { .length = 3000 };

			to.linear = rig->shadow;
			KUNIT_EXPECT_EQ(test, reg_mr(rig, rig->qp, mr, 0), HERALD_OK);
			KUNIT_EXPECT_EQ(test, herald_copy(&to, 0, &from, 0, 3000), HERALD_COPY_OK);
			KUNIT_EXPECT_MEMEQ(test, rig->shadow, rig->buf + off, 3000);
			KUNIT_EXPECT_EQ(test, herald_dereg_mr(mr, NULL), 0);
		}
}

static void fastreg_map_while_valid(struct kunit *test)
{
	struct mem_rig *rig = test->priv;
	struct ib_mr *mr = mapped(test, 0, 512, 4, 512, 1);
	struct scatterlist sg;
	u64 first = mr->iova;

	KUNIT_EXPECT_EQ(test, reg_mr(rig, rig->qp, mr, IB_ACCESS_REMOTE_READ), HERALD_OK);
	sg_init_one(&sg, rig->buf + 1024, 1024);
	sg_dma_address(&sg) = (uintptr_t)rig->buf + 1024;
	sg_dma_len(&sg) = 1024;
	KUNIT_EXPECT_EQ(test, herald_map_mr_sg(mr, &sg, 1, NULL), 1);
	/* the old registration is in force until it is invalidated */
	KUNIT_EXPECT_EQ(test, reads(rig->qp, mr->rkey, first), 0);
	KUNIT_EXPECT_EQ(test, reads(rig->qp, mr->rkey, first + 1024), -EACCES);
	KUNIT_EXPECT_EQ(test, reg_mr(rig, rig->qp, mr, 0), HERALD_LOC_MW_BIND);
	KUNIT_EXPECT_EQ(test, herald_key_invalidate_local(rig->qp, mr->rkey), HERALD_OK);
	KUNIT_EXPECT_EQ(test, reg_mr(rig, rig->qp, mr, IB_ACCESS_REMOTE_READ), HERALD_OK);
	KUNIT_EXPECT_EQ(test, reads(rig->qp, mr->rkey, first), -EACCES);
	KUNIT_EXPECT_EQ(test, reads(rig->qp, mr->rkey, first + 1024), 0);
	KUNIT_EXPECT_EQ(test, herald_dereg_mr(mr, NULL), 0);
}

static void fastreg_has_room_for_its_pages(struct kunit *test)
{
	struct mem_rig *rig = test->priv;
	struct ib_mr *mr = mapped(test, 0, 2048, 4, 512, 1);

	KUNIT_EXPECT_EQ(test, mr->length, 2048ull);
	KUNIT_EXPECT_EQ(test, herald_dereg_mr(mr, NULL), 0);
	/* five pages: the entry is not finished (and the core does not count its last page) */
	mr = mapped(test, 0, 2049, 4, 512, 0);
	KUNIT_EXPECT_EQ(test, mr->length, 1536ull);
	KUNIT_EXPECT_EQ(test, reg_mr(rig, rig->qp, mr, IB_ACCESS_REMOTE_READ), HERALD_OK);
	KUNIT_EXPECT_EQ(test, reads(rig->qp, mr->rkey, mr->iova + 1535), 0);
	KUNIT_EXPECT_EQ(test, reads(rig->qp, mr->rkey, mr->iova + 1536), -EACCES);
	KUNIT_EXPECT_EQ(test, herald_dereg_mr(mr, NULL), 0);
	KUNIT_EXPECT_EQ(test, PTR_ERR(herald_alloc_mr(&rig->pd.ib, IB_MR_TYPE_MEM_REG, 0)),
			-EINVAL);
	KUNIT_EXPECT_EQ(test, PTR_ERR(herald_alloc_mr(&rig->pd.ib, IB_MR_TYPE_MEM_REG,
						      HERALD_MAX_FAST_REG + 1)), -EINVAL);
}

#define BLOCK	512u
#define BLOCKS	(2 * SIZE / BLOCK)

struct fastreg_race {
	struct herald_qp *qp;
	u32 index;
	u32 reads;
	u32 wrong;
};

/* Read by every key that the region may have; block n is all n and has variant n. */
static int read_by_all_keys(void *arg)
{
	struct fastreg_race *race = arg;
	struct herald_sge sge = { .addr = IOVA, .length = BLOCK };
	struct herald_span to = { .length = BLOCK };
	struct herald_span from;
	u8 block[BLOCK];
	u32 n;

	to.linear = block;
	while (!kthread_should_stop()) {
		for (n = 0; n < BLOCKS; n++) {
			sge.lkey = herald_key_make(race->index, n);
			from = span_of(race->qp, &sge, 1, IB_ACCESS_REMOTE_READ, true);
			if (herald_copy(&to, 0, &from, 0, BLOCK) != HERALD_COPY_OK)
				continue;
			race->reads++;
			race->wrong += memchr_inv(block, n, BLOCK) ? 1 : 0;
		}
		cond_resched();
	}
	return 0;
}

static void fastreg_reader_sees_one_registration(struct kunit *test)
{
	struct mem_rig *rig = test->priv;
	struct ib_mr *mr = mapped(test, 0, BLOCK, 1, BLOCK, 1);
	struct fastreg_race race = { .qp = rig->qp, .index = mr->rkey >> 8 };
	struct task_struct *task;
	struct scatterlist sg;
	u32 i, n, busy = 0;

	for (n = 0; n < BLOCKS; n++)
		memset(rig->buf + n * BLOCK, n, BLOCK);
	task = kthread_run(read_by_all_keys, &race, "herald_kunit");
	KUNIT_ASSERT_FALSE(test, IS_ERR(task));
	for (i = 0; i < 50000; i++) {
		n = i % BLOCKS;
		sg_init_one(&sg, rig->buf + n * BLOCK, BLOCK);
		sg_dma_address(&sg) = (uintptr_t)rig->buf + n * BLOCK;
		sg_dma_len(&sg) = BLOCK;
		while (herald_map_mr_sg(mr, &sg, 1, NULL) != 1) {
			busy++;
			cond_resched();
		}
		mr->iova = IOVA;
		mr->rkey = herald_key_make(race.index, n);
		if (reg_mr(rig, rig->qp, mr, IB_ACCESS_REMOTE_READ) != HERALD_OK)
			break;
		if (i % 64 == 0)
			cond_resched();
		if (herald_key_invalidate_local(rig->qp, mr->rkey) != HERALD_OK)
			break;
	}
	kthread_stop(task);
	KUNIT_EXPECT_EQ(test, i, 50000u);
	KUNIT_EXPECT_EQ(test, race.wrong, 0u);
	kunit_info(test, "%u reads, %u times no table was free\n", race.reads, busy);
	KUNIT_EXPECT_EQ(test, herald_dereg_mr(mr, NULL), 0);
}

/* ------------------------------------------------------------------- windows -- */

static struct ib_mw *new_window(struct kunit *test, enum ib_mw_type type)
{
	struct mem_rig *rig = test->priv;
	struct herald_mw *mw = kunit_kzalloc(test, sizeof(*mw), GFP_KERNEL);

	KUNIT_ASSERT_NOT_NULL(test, mw);
	mw->ib.device = &rig->dev->ib;
	mw->ib.pd = &rig->pd.ib;
	mw->ib.type = type;
	KUNIT_ASSERT_EQ(test, herald_alloc_mw(&mw->ib, NULL), 0);
	/* only a process's memory takes windows; it is not looked at */
	rig->plain->umem = (struct ib_umem *)rig;
	return &mw->ib;
}

static void end_window(struct kunit *test, struct ib_mw *mw)
{
	struct mem_rig *rig = test->priv;

	KUNIT_EXPECT_EQ(test, herald_dealloc_mw(mw), 0);
	KUNIT_EXPECT_EQ(test, rig->plain->windows, 0);
	KUNIT_EXPECT_EQ(test, atomic_read(&rig->dev->num_mw), 0);
	rig->plain->umem = NULL;
}

/* Bind to [off, off + len) of the plain region; the window's key goes up by one if it works. */
static enum herald_outcome bind_mw(struct mem_rig *rig, struct herald_qp *qp, struct ib_mw *mw,
				   u64 off, u64 len, u32 access)
{
	enum herald_outcome out;

	rig->op->u.bind.addr = IOVA + off;
	rig->op->u.bind.length = len;
	rig->op->u.bind.mr_lkey = rig->plain->ib.lkey;
	rig->op->u.bind.mw_rkey = mw->rkey;
	rig->op->u.bind.new_rkey = ib_inc_rkey(mw->rkey);
	rig->op->u.bind.access = access;
	out = herald_mw_bind(qp, rig->op);
	if (out == HERALD_OK)
		mw->rkey = rig->op->u.bind.new_rkey;
	return out;
}

static void window_type_1(struct kunit *test)
{
	struct mem_rig *rig = test->priv;
	struct herald_qp *sibling = mem_rig_qp(test, rig->dev, &rig->pd);
	struct ib_mw *mw = new_window(test, IB_MW_TYPE_1);
	u32 old;

	KUNIT_EXPECT_EQ(test, reads(rig->qp, mw->rkey, IOVA), -EACCES);
	KUNIT_EXPECT_EQ(test, bind_mw(rig, rig->qp, mw, 16, 32, IB_ACCESS_REMOTE_READ), HERALD_OK);
	KUNIT_EXPECT_EQ(test, reads(rig->qp, mw->rkey, IOVA + 16), 0);
	KUNIT_EXPECT_EQ(test, reads(sibling, mw->rkey, IOVA + 47), 0);
	KUNIT_EXPECT_EQ(test, reads(rig->qp, mw->rkey, IOVA + 15), -EACCES);
	KUNIT_EXPECT_EQ(test, reads(rig->qp, mw->rkey, IOVA + 48), -EACCES);
	KUNIT_EXPECT_EQ(test, reads(rig->other_qp, mw->rkey, IOVA + 16), -EACCES);
	KUNIT_EXPECT_EQ(test, herald_dereg_mr(&rig->plain->ib, NULL), -EBUSY);
	KUNIT_EXPECT_EQ(test, herald_key_invalidate_local(rig->qp, mw->rkey), HERALD_LOC_MW_BIND);

	old = mw->rkey;
	KUNIT_EXPECT_EQ(test, bind_mw(rig, rig->qp, mw, SIZE - 8, 8, IB_ACCESS_REMOTE_READ),
			HERALD_OK);
	KUNIT_EXPECT_EQ(test, rig->plain->windows, 1);
	KUNIT_EXPECT_EQ(test, reads(rig->qp, old, IOVA + 16), -EACCES);
	KUNIT_EXPECT_EQ(test, reads(rig->qp, mw->rkey, IOVA + 16), -EACCES);
	KUNIT_EXPECT_EQ(test, reads(rig->qp, mw->rkey, IOVA + SIZE - 1), 0);

	KUNIT_EXPECT_EQ(test, bind_mw(rig, rig->qp, mw, 0, 0, 0), HERALD_OK);
	KUNIT_EXPECT_EQ(test, rig->plain->windows, 0);
	KUNIT_EXPECT_EQ(test, reads(rig->qp, mw->rkey, IOVA + SIZE - 1), -EACCES);
	/* deallocation closes it */
	KUNIT_EXPECT_EQ(test, bind_mw(rig, rig->qp, mw, 0, 8, IB_ACCESS_REMOTE_READ), HERALD_OK);
	end_window(test, mw);
	KUNIT_EXPECT_EQ(test, reads(rig->qp, mw->rkey, IOVA), -EACCES);
}

static void window_bind_refused(struct kunit *test)
{
	const u32 read = IB_ACCESS_REMOTE_READ;
	struct mem_rig *rig = test->priv;
	struct ib_mw *mw = new_window(test, IB_MW_TYPE_1);

	KUNIT_EXPECT_EQ(test, bind_mw(rig, rig->other_qp, mw, 0, 8, read), HERALD_LOC_MW_BIND);
	KUNIT_EXPECT_EQ(test, bind_mw(rig, rig->qp, mw, SIZE - 7, 8, read), HERALD_LOC_MW_BIND);
	KUNIT_EXPECT_EQ(test, bind_mw(rig, rig->qp, mw, 0, U64_MAX, read), HERALD_LOC_MW_BIND);
	KUNIT_EXPECT_EQ(test, bind_mw(rig, rig->qp, mw, 0, 8, read | IB_ZERO_BASED),
			HERALD_LOC_MW_BIND);
	KUNIT_EXPECT_EQ(test, bind_mw(rig, rig->qp, mw, 0, 8, read | IB_ACCESS_MW_BIND),
			HERALD_LOC_MW_BIND);
	mw->rkey ^= 1;
	KUNIT_EXPECT_EQ(test, bind_mw(rig, rig->qp, mw, 0, 8, read), HERALD_LOC_MW_BIND);
	mw->rkey ^= 1;
	mem_of(rig->plain)->access = RW & ~IB_ACCESS_MW_BIND;
	KUNIT_EXPECT_EQ(test, bind_mw(rig, rig->qp, mw, 0, 8, read), HERALD_LOC_MW_BIND);
	mem_of(rig->plain)->access = IB_ACCESS_MW_BIND;
	KUNIT_EXPECT_EQ(test, bind_mw(rig, rig->qp, mw, 0, 8, IB_ACCESS_REMOTE_WRITE),
			HERALD_LOC_MW_BIND);
	KUNIT_EXPECT_EQ(test, bind_mw(rig, rig->qp, mw, 0, 8, read), HERALD_OK);
	rig->qp->type = IB_QPT_UD;
	KUNIT_EXPECT_EQ(test, bind_mw(rig, rig->qp, mw, 0, 8, read), HERALD_LOC_QP_OP);
	KUNIT_EXPECT_EQ(test, test_counts[HERALD_CTR_bad_key], 8ull);
	end_window(test, mw);
}

static void window_type_2(struct kunit *test)
{
	const u32 access = IB_ACCESS_REMOTE_READ | IB_ZERO_BASED;
	struct mem_rig *rig = test->priv;
	struct herald_qp *sibling = mem_rig_qp(test, rig->dev, &rig->pd);
	struct ib_mw *mw = new_window(test, IB_MW_TYPE_2);

	KUNIT_EXPECT_EQ(test, bind_mw(rig, rig->qp, mw, 0, 0, access), HERALD_LOC_MW_BIND);
	KUNIT_EXPECT_EQ(test, bind_mw(rig, rig->qp, mw, 16, 32, access), HERALD_OK);
	KUNIT_EXPECT_EQ(test, bind_mw(rig, rig->qp, mw, 16, 32, access), HERALD_LOC_MW_BIND);
	KUNIT_EXPECT_EQ(test, reads(rig->qp, mw->rkey, 0), 0);
	KUNIT_EXPECT_EQ(test, reads(rig->qp, mw->rkey, 31), 0);
	KUNIT_EXPECT_EQ(test, reads(rig->qp, mw->rkey, 32), -EACCES);
	KUNIT_EXPECT_EQ(test, reads(rig->qp, mw->rkey, IOVA + 16), -EACCES);
	KUNIT_EXPECT_EQ(test, reads(sibling, mw->rkey, 0), -EACCES);
	KUNIT_EXPECT_EQ(test, herald_key_invalidate_remote(sibling, mw->rkey),
			HERALD_NAK_INV_INVALIDATE);
	KUNIT_EXPECT_EQ(test, herald_key_invalidate_remote(rig->qp, mw->rkey), HERALD_OK);
	KUNIT_EXPECT_TRUE(test, herald_key_quiet(rig->qp, mw->rkey));
	KUNIT_EXPECT_EQ(test, reads(rig->qp, mw->rkey, 0), -EACCES);
	KUNIT_EXPECT_EQ(test, herald_key_invalidate_local(rig->qp, mw->rkey), HERALD_LOC_MW_BIND);

	KUNIT_EXPECT_EQ(test, bind_mw(rig, sibling, mw, 16, 32, access), HERALD_OK);
	herald_mw_forget_qp(rig->qp);
	KUNIT_EXPECT_EQ(test, reads(sibling, mw->rkey, 0), 0);
	herald_mw_forget_qp(sibling);
	KUNIT_EXPECT_EQ(test, reads(sibling, mw->rkey, 0), -EACCES);
	KUNIT_EXPECT_EQ(test, rig->plain->windows, 0);
	KUNIT_EXPECT_EQ(test, bind_mw(rig, rig->qp, mw, 0, 8, access), HERALD_OK);
	KUNIT_EXPECT_EQ(test, herald_key_invalidate_local(rig->qp, mw->rkey), HERALD_OK);
	end_window(test, mw);
}

static void window_reads_the_right_bytes(struct kunit *test)
{
	struct mem_rig *rig = test->priv;
	struct ib_mw *mw = new_window(test, IB_MW_TYPE_2);
	struct herald_sge sge = { .addr = 3, .length = 20 };
	struct herald_span from, to = { .length = 20 };

	KUNIT_EXPECT_EQ(test, bind_mw(rig, rig->qp, mw, 100, 50,
				      IB_ACCESS_REMOTE_READ | IB_ZERO_BASED), HERALD_OK);
	sge.lkey = mw->rkey;
	to.linear = rig->shadow;
	from = span_of(rig->qp, &sge, 1, IB_ACCESS_REMOTE_READ, true);
	KUNIT_EXPECT_EQ(test, herald_copy(&to, 0, &from, 5, 15), HERALD_COPY_OK);
	KUNIT_EXPECT_MEMEQ(test, rig->shadow, rig->buf + 108, 15);
	from.access = IB_ACCESS_REMOTE_WRITE;
	KUNIT_EXPECT_EQ(test, herald_copy(&from, 0, &to, 0, 15), HERALD_COPY_DST);
	/* a window's key is no lkey */
	from = span_of(rig->qp, &sge, 1, 0, false);
	KUNIT_EXPECT_EQ(test, herald_copy(&to, 0, &from, 0, 15), HERALD_COPY_SRC);
	end_window(test, mw);
}

static struct kunit_case bind_cases[] = {
	KUNIT_CASE(fastreg_life),
	KUNIT_CASE(fastreg_maps_the_right_bytes),
	KUNIT_CASE(fastreg_map_while_valid),
	KUNIT_CASE(fastreg_has_room_for_its_pages),
	KUNIT_CASE(fastreg_reader_sees_one_registration),
	KUNIT_CASE(window_type_1),
	KUNIT_CASE(window_bind_refused),
	KUNIT_CASE(window_type_2),
	KUNIT_CASE(window_reads_the_right_bytes),
	{}
};

static struct kunit_suite bind_suite = {
	.name = "herald_bind",
	.init = mem_rig_init,
	.exit = mem_rig_exit,
	.test_cases = bind_cases,
};

kunit_test_suite(bind_suite);
