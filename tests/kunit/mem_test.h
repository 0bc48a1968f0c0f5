/* SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB */
/* What the tests of memory keys share; mem_rig.c. */
#ifndef HERALD_MEM_TEST_H
#define HERALD_MEM_TEST_H

#include <kunit/test.h>

#include "device.h"
#include "mr.h"
#include "qp.h"

/* What the sources under test have counted, of all devices. */
extern u64 test_counts[HERALD_CTR_MAX];

#define IOVA	0x7f0000001000ull
#define SIZE	4096u
#define RW	(IB_ACCESS_LOCAL_WRITE | IB_ACCESS_REMOTE_WRITE | IB_ACCESS_REMOTE_READ | \
		 IB_ACCESS_REMOTE_ATOMIC | IB_ACCESS_MW_BIND)

/*
 * One device with two protection domains and a QP in each, and a buffer that
 * two regions cut up in different ways:
 *
 *	buf     |AAAAAAAA|BBBBBBBB|...			2 * SIZE bytes
 *	plain   one range: the first half
 *	pieces  the second half, in ranges of 1, 2, 3, ... * 8 bytes, last one first
 */
struct mem_rig {
	struct herald_dev *dev;
	struct herald_pd pd, other_pd;
	struct herald_qp *qp, *other_qp;
	struct herald_op *op;
	u8 *buf;
	u8 *shadow;
	struct herald_mr *plain, *pieces;
};

int mem_rig_init(struct kunit *test);
void mem_rig_exit(struct kunit *test);	/* expects that nothing was left behind */

struct herald_qp *mem_rig_qp(struct kunit *test, struct herald_dev *dev, struct herald_pd *pd);

/* A region that nothing was added to yet. */
struct herald_mr *mem_rig_region(struct kunit *test, struct herald_pd *pd, int access, u64 iova,
				 struct herald_mem **memp);

static inline struct herald_mem *mem_of(struct herald_mr *mr)
{
	return rcu_dereference_protected(mr->mem, true);
}

/* @len bytes of a region of the rig's. */
static inline struct herald_sge sge_of(struct herald_mr *mr, u64 off, u32 len)
{
	return (struct herald_sge){ .addr = IOVA + off, .length = len, .lkey = mr->ib.lkey };
}

struct herald_span span_of(struct herald_qp *qp, const struct herald_sge *sge, u32 nsge,
			   int access, bool remote);

/* Can @qp read one byte there?  0 or -EACCES; -EIO if checking and copying do not agree. */
int reads(struct herald_qp *qp, u32 key, u64 addr);

#endif /* HERALD_MEM_TEST_H */
