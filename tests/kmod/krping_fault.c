// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/*
 * Verbs of a consumer in the kernel that fail on purpose.  Whoever loads the
 * module has armed the device: of posts of each kind, and of arms, the
 * KRPING_FAULT_NTH fails with -EIO, and no other.
 */
#include "krping.h"

#define CALLS			5
#define KRPING_FAULT_NTH	3

static int wanted(int call)
{
	return call == KRPING_FAULT_NTH ? -EIO : 0;
}

/* What was posted completes, in order, and nothing else does. */
static int posts(struct krping_rig *rig)
{
	struct krping_wait sent[CALLS], received[CALLS];
	int i;

	for (i = 0; i < CALLS; i++) {
		krping_wait_init(&sent[i]);
		krping_wait_init(&received[i]);
		KRPING_EXPECT(krping_post_recv(rig, &rig->end[1], 64 * i, 64, &received[i]) ==
			      wanted(i + 1));
	}
	for (i = 0; i < CALLS; i++)
		KRPING_EXPECT(krping_post_send(rig, &rig->end[0], 0, 64, 0, &sent[i]) ==
			      wanted(i + 1));
	for (i = 0; i < CALLS; i++) {
		if (wanted(i + 1))
			continue;
		KRPING_DO(krping_wait_ok(rig, &sent[i]));
		KRPING_DO(krping_wait_ok(rig, &received[i]));
	}
	ib_drain_qp(rig->end[0].qp);
	ib_drain_qp(rig->end[1].qp);
	for (i = 0; i < CALLS; i++) {
		KRPING_EXPECT(atomic_read(&sent[i].times) == !wanted(i + 1));
		KRPING_EXPECT(atomic_read(&received[i].times) == !wanted(i + 1));
	}
	return 0;
}

/* The first WR of a list is the bad one. */
static int srq_posts(struct krping_rig *rig)
{
	struct ib_srq_init_attr init = { .attr = { .max_wr = 2 * CALLS, .max_sge = 1 } };
	struct ib_recv_wr two = {}, one = { .next = &two };
	struct ib_srq *srq = ib_create_srq(rig->pd, &init);
	const struct ib_recv_wr *bad;
	int i, rc = 0;

	KRPING_EXPECT(!IS_ERR(srq));
	for (i = 1; i <= CALLS && !rc; i++) {
		bad = NULL;
		if (ib_post_srq_recv(srq, &one, &bad) != wanted(i) ||
		    bad != (wanted(i) ? &one : NULL))
			rc = krping_fail("post %d to an SRQ", i);
	}
	ib_destroy_srq(srq);
	return rc;
}

static void no_handler(struct ib_cq *cq, void *context)
{
}

static int arms(struct krping_rig *rig)
{
	struct ib_cq_init_attr attr = { .cqe = 4 };
	struct ib_cq *cq = ib_create_cq(rig->dev, no_handler, NULL, NULL, &attr);
	int i, rc = 0;

	KRPING_EXPECT(!IS_ERR(cq));
	for (i = 1; i <= CALLS && !rc; i++) {
		if (ib_req_notify_cq(cq, IB_CQ_NEXT_COMP) != wanted(i))
			rc = krping_fail("arm %d", i);
	}
	ib_destroy_cq(cq);
	return rc;
}

int krping_test_faults(struct krping_rig *rig)
{
	KRPING_DO(posts(rig));
	KRPING_DO(srq_posts(rig));
	KRPING_DO(arms(rig));
	return 0;
}
