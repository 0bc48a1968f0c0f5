// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/* The data path as kernel consumers use it; each test once for every way to poll. */
#include <linux/random.h>
#include <linux/slab.h>

#include "krping.h"

#define ROUNDS	200

static void fill(struct krping_end *end)
{
	get_random_bytes(end->buf, KRPING_BUF);
}

static int same(struct krping_rig *rig, u32 len)
{
	return memcmp(rig->end[0].buf, rig->end[1].buf, len) ? krping_fail("wrong data") : 0;
}

/* SEND, RDMA WRITE and READ through ib_dma mappings, in both directions. */
int krping_test_transfer(struct krping_rig *rig)
{
	struct krping_end *a = &rig->end[0], *b = &rig->end[1];
	struct krping_wait s, r;
	u32 len;
	int i;

	for (i = 0; i < ROUNDS; i++) {
		len = 1 + get_random_u32() % KRPING_BUF;
		fill(a);
		krping_wait_init(&s);
		krping_wait_init(&r);
		KRPING_DO(krping_post_recv(rig, b, 0, KRPING_BUF, &r));
		KRPING_DO(krping_post_send(rig, a, 0, len, 0, &s));
		KRPING_DO(krping_wait_ok(rig, &s));
		KRPING_DO(krping_wait_ok(rig, &r));
		KRPING_EXPECT(r.wc.byte_len == len && r.wc.opcode == IB_WC_RECV);
		KRPING_EXPECT(r.wc.qp == b->qp && s.wc.qp == a->qp);
		KRPING_DO(same(rig, len));
		swap(a, b);
	}

	krping_wait_init(&s);
	KRPING_DO(krping_post_reg(b, &s));
	KRPING_DO(krping_wait_ok(rig, &s));
	KRPING_EXPECT(s.wc.opcode == IB_WC_REG_MR);
	for (i = 0; i < ROUNDS; i++) {
		bool write = i % 2;

		len = 1 + get_random_u32() % KRPING_BUF;
		fill(write ? a : b);
		krping_wait_init(&s);
		KRPING_DO(krping_post_rdma(rig, a, write ? IB_WR_RDMA_WRITE : IB_WR_RDMA_READ, 0,
					   len, b->mr->iova, b->mr->rkey, &s));
		KRPING_DO(krping_wait_ok(rig, &s));
		KRPING_DO(same(rig, len));
	}
	krping_wait_init(&s);
	KRPING_DO(krping_post_local_inv(b, b->mr->rkey, &s));
	return krping_wait_ok(rig, &s);
}

/*
 * CASES 14: register, let the peer write and invalidate by its SEND, or
 * invalidate here; as RPC over RDMA does it.
 */
int krping_test_chains(struct krping_rig *rig)
{
	struct krping_end *owner = &rig->end[0], *peer = &rig->end[1];
	struct krping_wait reg, msg, sent, inv;
	u32 key;
	int i;

	for (i = 0; i < ROUNDS; i++) {
		bool remote = i % 2;

		krping_wait_init(&reg);
		krping_wait_init(&msg);
		krping_wait_init(&sent);
		krping_wait_init(&inv);
		memset(owner->buf, 0, 64);
		fill(peer);
		KRPING_DO(krping_post_recv(rig, owner, KRPING_BUF - 64, 64, &msg));
		KRPING_DO(krping_post_reg(owner, &reg));
		key = owner->mr->rkey;
		KRPING_DO(krping_wait_ok(rig, &reg));
		KRPING_DO(krping_post_rdma(rig, peer, IB_WR_RDMA_WRITE, 0, KRPING_BUF - 64,
					   owner->mr->iova, key, NULL));
		KRPING_DO(krping_post_send(rig, peer, 0, 64, remote ? key : 0, &sent));
		KRPING_DO(krping_wait_ok(rig, &msg));
		KRPING_DO(krping_wait_ok(rig, &sent));
		KRPING_DO(same(rig, KRPING_BUF - 64));
		if (remote) {
			KRPING_EXPECT(msg.wc.wc_flags & IB_WC_WITH_INVALIDATE);
			KRPING_EXPECT(msg.wc.ex.invalidate_rkey == key);
			continue;
		}
		KRPING_EXPECT(!(msg.wc.wc_flags & IB_WC_WITH_INVALIDATE));
		KRPING_DO(krping_post_local_inv(owner, key, &inv));
		KRPING_DO(krping_wait_ok(rig, &inv));
		KRPING_EXPECT(inv.wc.opcode == IB_WC_LOCAL_INV);
	}
	return 0;
}

/* What was invalidated is of no use any more; nor is the key of before the last registration. */
int krping_test_stale_key(struct krping_rig *rig)
{
	struct krping_end *owner = &rig->end[0], *peer = &rig->end[1];
	struct krping_wait w;
	u64 iova;
	u32 key;

	krping_wait_init(&w);
	KRPING_DO(krping_post_reg(owner, &w));
	KRPING_DO(krping_wait_ok(rig, &w));
	key = owner->mr->rkey;
	iova = owner->mr->iova;
	krping_wait_init(&w);
	KRPING_DO(krping_post_local_inv(owner, key, &w));
	KRPING_DO(krping_wait_ok(rig, &w));
	memset(owner->buf, 0, 64);
	fill(peer);
	krping_wait_init(&w);
	KRPING_DO(krping_post_rdma(rig, peer, IB_WR_RDMA_WRITE, 0, 64, iova, key, &w));
	KRPING_DO(krping_wait(rig, &w));
	KRPING_EXPECT(w.wc.status == IB_WC_REM_ACCESS_ERR);
	KRPING_EXPECT(!memchr_inv(owner->buf, 0, 64));
	return 0;
}

/* ib_drain_qp: when it returns, every WR has completed, once. */
int krping_test_drain(struct krping_rig *rig)
{
	struct krping_end *a = &rig->end[0], *b = &rig->end[1];
	const int n = KRPING_DEPTH / 2;
	struct krping_wait *w;
	int i, rc = 0, flushed = 0;

	w = kcalloc(3 * n, sizeof(*w), GFP_KERNEL);
	if (!w)
		return -ENOMEM;
	for (i = 0; i < 3 * n; i++)
		krping_wait_init(&w[i]);
	/* the first half of a's sends finds a receive WR, the other half waits for one */
	for (i = 0; i < n && !rc; i++)
		rc = krping_post_recv(rig, a, 0, 64, &w[i]);
	for (i = 0; i < n && !rc; i++)
		rc = krping_post_recv(rig, b, 0, 64, &w[n + i]);
	for (i = 0; i < n && !rc; i++)
		rc = krping_post_send(rig, a, 0, 64, 0, &w[2 * n + i]);
	ib_drain_qp(a->qp);
	ib_drain_qp(b->qp);
	for (i = 0; i < 3 * n && !rc; i++) {
		if (!completion_done(&w[i].done))
			rc = krping_fail("WR %d has not completed", i);
		flushed += w[i].wc.status == IB_WC_WR_FLUSH_ERR;
	}
	/* a's receives at least */
	if (!rc && flushed < n)
		rc = krping_fail("only %d were flushed", flushed);
	kfree(w);
	return rc;
}

/* bad_wr on every refusal, and the ones before it are posted. */
int krping_test_bad_wr(struct krping_rig *rig)
{
	struct krping_end *a = &rig->end[0];
	struct ib_sge sge = { .addr = a->dma, .length = 8, .lkey = rig->pd->local_dma_lkey };
	struct ib_sge sges[2] = { sge, sge };
	struct ib_send_wr good = {}, bad = {};
	const struct ib_send_wr *bad_wr = NULL;
	const struct ib_recv_wr *bad_recv = NULL;
	struct ib_recv_wr recv = { .sg_list = sges, .num_sge = 2 };
	struct krping_wait s, r;
	int rc;

	krping_wait_init(&s);
	krping_wait_init(&r);
	KRPING_DO(krping_post_recv(rig, &rig->end[1], 0, 64, &r));
	good.wr_cqe = &s.cqe;
	good.sg_list = &sge;
	good.num_sge = 1;
	good.opcode = IB_WR_SEND;
	good.send_flags = IB_SEND_SIGNALED;
	good.next = &bad;
	bad = good;
	bad.next = NULL;
	bad.opcode = 0x77;
	rc = ib_post_send(a->qp, &good, &bad_wr);
	KRPING_EXPECT(rc == -EINVAL && bad_wr == &bad);
	KRPING_DO(krping_wait_ok(rig, &s));
	KRPING_DO(krping_wait_ok(rig, &r));
	rc = ib_post_recv(a->qp, &recv, &bad_recv);
	KRPING_EXPECT(rc && bad_recv == &recv);
	return 0;
}
