// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/*
 * CASES 14: what a storage driver does all day, on eight QPs at once: register,
 * let the peer write and invalidate, or invalidate here; and now and then drain
 * with everything in flight.  Each WR completes once.
 */
#include <linux/delay.h>
#include <linux/kthread.h>
#include <linux/moduleparam.h>
#include <linux/random.h>
#include <linux/slab.h>

#include "krping.h"

#define QPS		8
#define LEN		4096
#define MAX_DELAY	5	/* us */

static unsigned int chains = 400;
module_param(chains, uint, 0444);
MODULE_PARM_DESC(chains, "how many chains of work requests, over all QPs, for each way to poll");

/* What one chain posts */
enum { CHAIN_MSG, CHAIN_REG, CHAIN_WRITE, CHAIN_SEND, CHAIN_INV, CHAIN_WRS };

struct chain {
	struct krping_rig *rig;
	struct krping_end end[2];	/* the owner of the memory, its peer */
	struct krping_wait wr[CHAIN_WRS];
	bool posted[CHAIN_WRS];
	u32 key;
	struct task_struct *task;
	struct completion done;
	unsigned int drains;
	int rc;
};

/* There are no packets whose delay would make orders differ: so the posts take their time. */
static void dawdle(void)
{
	udelay(get_random_u32() % (MAX_DELAY + 1));
}

static void begin(struct chain *c)
{
	int i;

	for (i = 0; i < CHAIN_WRS; i++) {
		krping_wait_init(&c->wr[i]);
		c->posted[i] = false;
	}
	memset(c->end[0].buf, 0, LEN);
	get_random_bytes(c->end[1].buf, LEN);
}

static int posted(struct chain *c, int which, int rc)
{
	c->posted[which] = !rc;
	dawdle();
	return rc;
}

static int post_registration(struct chain *c)
{
	struct krping_end *owner = &c->end[0];

	KRPING_DO(posted(c, CHAIN_MSG, krping_post_recv(c->rig, owner, KRPING_BUF - 64, 64,
							&c->wr[CHAIN_MSG])));
	KRPING_DO(posted(c, CHAIN_REG, krping_post_reg(owner, &c->wr[CHAIN_REG])));
	c->key = owner->mr->rkey;
	/* the peer must not come before it */
	return krping_wait_ok(c->rig, &c->wr[CHAIN_REG]);
}

/* @remote: the peer invalidates */
static int post_transfer(struct chain *c, bool remote)
{
	struct krping_end *peer = &c->end[1];

	KRPING_DO(posted(c, CHAIN_WRITE,
			 krping_post_rdma(c->rig, peer, IB_WR_RDMA_WRITE, 0, LEN,
					  c->end[0].mr->iova, c->key, &c->wr[CHAIN_WRITE])));
	return posted(c, CHAIN_SEND, krping_post_send(c->rig, peer, 0, 64, remote ? c->key : 0,
						      &c->wr[CHAIN_SEND]));
}

static int post_invalidation(struct chain *c)
{
	return posted(c, CHAIN_INV,
		      krping_post_local_inv(&c->end[0], c->key, &c->wr[CHAIN_INV]));
}

static int each_completed_once(struct chain *c)
{
	int i;

	for (i = 0; i < CHAIN_WRS; i++)
		if (atomic_read(&c->wr[i].times) != c->posted[i])
			return krping_fail("WR %d of a chain has completed %d times", i,
					   atomic_read(&c->wr[i].times));
	return 0;
}

static int whole_chain(struct chain *c, bool remote)
{
	KRPING_DO(post_registration(c));
	KRPING_DO(post_transfer(c, remote));
	KRPING_DO(krping_wait_ok(c->rig, &c->wr[CHAIN_MSG]));
	KRPING_EXPECT(!memcmp(c->end[0].buf, c->end[1].buf, LEN));
	KRPING_EXPECT(!!(c->wr[CHAIN_MSG].wc.wc_flags & IB_WC_WITH_INVALIDATE) == remote);
	if (!remote) {
		KRPING_DO(post_invalidation(c));
		KRPING_DO(krping_wait_ok(c->rig, &c->wr[CHAIN_INV]));
	}
	KRPING_DO(krping_wait_ok(c->rig, &c->wr[CHAIN_WRITE]));
	KRPING_DO(krping_wait_ok(c->rig, &c->wr[CHAIN_SEND]));
	return each_completed_once(c);
}

/* Whether the drained WRs invalidated it is not known: a new one, as drivers make it. */
static int renew_mr(struct chain *c)
{
	struct krping_end *owner = &c->end[0];

	KRPING_DO(ib_dereg_mr(owner->mr));
	owner->mr = ib_alloc_mr(c->rig->pd, IB_MR_TYPE_MEM_REG, KRPING_BUF / PAGE_SIZE + 1);
	return PTR_ERR_OR_ZERO(owner->mr);
}

/* Nobody waits for anything but the drains: then all is there, and nothing comes later. */
static int drained_chain(struct chain *c, bool remote)
{
	KRPING_DO(post_registration(c));
	KRPING_DO(post_transfer(c, remote));
	if (!remote)
		KRPING_DO(post_invalidation(c));
	ib_drain_qp(c->end[remote].qp);
	ib_drain_qp(c->end[!remote].qp);
	KRPING_DO(each_completed_once(c));
	c->drains++;
	KRPING_DO(renew_mr(c));
	return krping_reconnect(c->rig, c->end);
}

static int run_chains(struct chain *c)
{
	unsigned int i;
	int rc = 0;

	for (i = 0; i < chains / QPS + 1 && !rc; i++) {
		bool remote = get_random_u32() % 2;

		begin(c);
		rc = i % 8 == 3 ? drained_chain(c, remote) : whole_chain(c, remote);
		cond_resched();
	}
	/* no completion may come for what a failed chain has left */
	ib_drain_qp(c->end[0].qp);
	ib_drain_qp(c->end[1].qp);
	return rc;
}

static int chain_fn(void *data)
{
	struct chain *c = data;

	c->rc = run_chains(c);
	complete(&c->done);
	return 0;
}

static int start(struct chain *c, struct krping_rig *rig, int n)
{
	int rc;

	c->rig = rig;
	init_completion(&c->done);
	rc = krping_connect(rig, c->end);
	if (rc)
		return rc;
	c->task = kthread_run(chain_fn, c, "krping-chain/%d", n);
	if (!IS_ERR(c->task))
		return 0;
	krping_disconnect(rig, c->end);
	return PTR_ERR(c->task);
}

int krping_test_many_chains(struct krping_rig *rig)
{
	struct chain *all = kcalloc(QPS, sizeof(*all), GFP_KERNEL);
	int i, n, rc = all ? 0 : -ENOMEM;

	for (n = 0; n < QPS && !rc; n++) {
		rc = start(&all[n], rig, n);
		if (rc)
			break;
	}
	for (i = 0; i < n; i++) {
		wait_for_completion(&all[i].done);
		rc = rc ?: all[i].rc;
		if (!rc && !all[i].drains)
			rc = krping_fail("nothing was drained");
		krping_disconnect(rig, all[i].end);
	}
	kfree(all);
	return rc;
}
