// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/* Completion events for a consumer in the kernel: rules C1 to C6; CASES 2, 3, 4, 24. */
#include <linux/delay.h>
#include <linux/kthread.h>
#include <linux/slab.h>

#include "krping_counted.h"

#define MISSED	(IB_CQ_NEXT_COMP | IB_CQ_REPORT_MISSED_EVENTS)

/* C3, CASES 24: 1 exactly when completions are there, 0 otherwise and without the flag. */
static int missed_events(struct counted *c)
{
	struct krping_wait w[2];

	KRPING_EXPECT(ib_req_notify_cq(c->rig.cq, MISSED) == 0);
	KRPING_DO(counted_message(c, false, w));
	KRPING_DO(counted_wait(c, 1));
	KRPING_DO(counted_poll(c, 1));
	/* the second may come a little later; once it can be polled it is there */
	KRPING_DO(counted_poll(c, 1));
	KRPING_EXPECT(ib_req_notify_cq(c->rig.cq, MISSED) == 0);
	KRPING_DO(counted_message(c, false, w));
	KRPING_DO(counted_wait(c, 2));
	KRPING_DO(counted_poll(c, 1));
	msleep(20);
	KRPING_EXPECT(ib_req_notify_cq(c->rig.cq, MISSED) == 1);
	KRPING_EXPECT(ib_req_notify_cq(c->rig.cq, IB_CQ_NEXT_COMP) == 0);
	KRPING_EXPECT(ib_req_notify_cq(c->rig.cq,
				       IB_CQ_SOLICITED | IB_CQ_REPORT_MISSED_EVENTS) == 1);
	KRPING_DO(counted_poll(c, 1));
	KRPING_EXPECT(ib_req_notify_cq(c->rig.cq, MISSED) == 0);
	/* it was armed in all cases, once */
	KRPING_EXPECT(atomic_read(&c->events) == 2);
	KRPING_DO(counted_message(c, false, w));
	KRPING_DO(counted_wait(c, 3));
	KRPING_DO(counted_poll(c, 2));
	return 0;
}

int krping_test_missed_events(struct ib_device *dev)
{
	return with_counted(dev, 0, missed_events);
}

/* C5: exactly one of the two kinds. */
static int notify_flags(struct counted *c)
{
	KRPING_EXPECT(ib_req_notify_cq(c->rig.cq, 0) == -EINVAL);
	KRPING_EXPECT(ib_req_notify_cq(c->rig.cq, IB_CQ_NEXT_COMP | IB_CQ_SOLICITED) == -EINVAL);
	KRPING_EXPECT(ib_req_notify_cq(c->rig.cq, IB_CQ_REPORT_MISSED_EVENTS) == -EINVAL);
	KRPING_EXPECT(ib_req_notify_cq(c->rig.cq, IB_CQ_SOLICITED) == 0);
	KRPING_EXPECT(ib_req_notify_cq(c->rig.cq, IB_CQ_NEXT_COMP) == 0);
	return 0;
}

int krping_test_notify_flags(struct ib_device *dev)
{
	return with_counted(dev, 0, notify_flags);
}

/* C4 and C5: a solicited arm; and NEXT_COMP, which a solicited arm does not weaken. */
static int solicited(struct counted *c)
{
	struct krping_wait w[2];

	ib_req_notify_cq(c->rig.cq, IB_CQ_SOLICITED);
	KRPING_DO(counted_message(c, false, w));
	KRPING_DO(counted_poll(c, 2));
	msleep(50);
	KRPING_EXPECT(atomic_read(&c->events) == 0);
	KRPING_DO(counted_message(c, true, w));
	KRPING_DO(counted_poll(c, 2));
	KRPING_DO(counted_wait(c, 1));
	ib_req_notify_cq(c->rig.cq, IB_CQ_NEXT_COMP);
	ib_req_notify_cq(c->rig.cq, IB_CQ_SOLICITED);
	KRPING_DO(counted_message(c, false, w));
	KRPING_DO(counted_poll(c, 2));
	KRPING_DO(counted_wait(c, 2));
	return 0;
}

int krping_test_solicited(struct ib_device *dev)
{
	return with_counted(dev, 0, solicited);
}

/* ---------------------------------------------------- many QPs, one CQ -- */

#define PAIRS	8
#define POSTS	1000

struct poster {
	struct krping_rig *rig;
	struct krping_end end[2];
	struct task_struct *task;
	struct completion done;
	int rc;
};

static int post_and_wait(struct poster *p)
{
	struct krping_wait s, r;
	int i;

	for (i = 0; i < POSTS; i++) {
		krping_wait_init(&s);
		krping_wait_init(&r);
		KRPING_DO(krping_post_recv(p->rig, &p->end[1], 0, 64, &r));
		KRPING_DO(krping_post_send(p->rig, &p->end[0], 0, 64, 0, &s));
		KRPING_DO(krping_wait_ok(p->rig, &s));
		KRPING_DO(krping_wait_ok(p->rig, &r));
	}
	return 0;
}

static int poster_fn(void *data)
{
	struct poster *p = data;

	p->rc = post_and_wait(p);
	complete(&p->done);
	return 0;
}

static int run_posters(struct krping_rig *rig, struct poster *posters)
{
	int i, n, rc = 0, cpu = -1;

	for (n = 0; n < PAIRS && !rc; n++) {
		posters[n].rig = rig;
		init_completion(&posters[n].done);
		rc = krping_connect(rig, posters[n].end);
		if (rc)
			break;
		cpu = cpumask_next(cpu, cpu_online_mask);
		if (cpu >= nr_cpu_ids)
			cpu = cpumask_first(cpu_online_mask);
		posters[n].task = kthread_create(poster_fn, &posters[n], "krping/%d", n);
		if (IS_ERR(posters[n].task)) {
			rc = PTR_ERR(posters[n].task);
			krping_disconnect(rig, posters[n].end);
			break;
		}
		kthread_bind(posters[n].task, cpu);
		wake_up_process(posters[n].task);
	}
	for (i = 0; i < n; i++) {
		wait_for_completion(&posters[i].done);
		rc = rc ?: posters[i].rc;
		krping_disconnect(rig, posters[i].end);
	}
	return rc;
}

/*
 * C6, CASES 2 and 4: posters on all cores; the handler polls and arms, and is
 * never entered twice at once.
 */
int krping_test_one_handler(struct ib_device *dev)
{
	struct poster *posters = kcalloc(PAIRS, sizeof(*posters), GFP_KERNEL);
	struct krping_rig *rig = kzalloc(sizeof(*rig), GFP_KERNEL);
	int rc = posters && rig ? krping_rig_init(rig, dev, KRPING_RAW) : -ENOMEM;

	if (!rc) {
		rc = run_posters(rig, posters);
		if (!rc && atomic_read(&rig->overlaps))
			rc = krping_fail("%d times two handlers at once",
					 atomic_read(&rig->overlaps));
		if (!rc && !atomic_read(&rig->handled))
			rc = krping_fail("the handler never ran");
		krping_rig_exit(rig);
	}
	kfree(rig);
	kfree(posters);
	return rc;
}

/* --------------------------------------------------- two CQs that feed -- */

#define VOLLEYS	2000

/*
 * Each completion of a receive posts the next message, from the handler itself,
 * to an end that has another CQ.
 */
struct feeder {
	struct krping_rig rig;
	struct krping_end end[2];
	struct ib_cqe recv_cqe[2], send_cqe;
	struct completion done;
	atomic_t volleys;
	int rc;
};

static int feeder_recv(struct feeder *f, int which)
{
	struct krping_end *end = &f->end[which];
	struct ib_sge sge = { .addr = end->dma, .length = 64, .lkey = f->rig.pd->local_dma_lkey };
	struct ib_recv_wr wr = { .wr_cqe = &f->recv_cqe[which], .sg_list = &sge, .num_sge = 1 };

	return ib_post_recv(end->qp, &wr, NULL);
}

static int feeder_send(struct feeder *f, int which)
{
	struct krping_end *end = &f->end[which];
	struct ib_sge sge = { .addr = end->dma, .length = 8, .lkey = f->rig.pd->local_dma_lkey };
	struct ib_send_wr wr = {
		.wr_cqe = &f->send_cqe, .sg_list = &sge, .num_sge = 1,
		.opcode = IB_WR_SEND, .send_flags = IB_SEND_SIGNALED,
	};

	return ib_post_send(end->qp, &wr, NULL);
}

static void feeder_got(struct feeder *f, struct ib_wc *wc, int which)
{
	if (wc->status == IB_WC_WR_FLUSH_ERR)
		return;
	if (wc->status)
		f->rc = -EIO;
	else if (atomic_inc_return(&f->volleys) < VOLLEYS)
		f->rc = feeder_recv(f, which) ?: feeder_send(f, which);
	else
		goto end;
	if (!f->rc)
		return;
end:
	complete(&f->done);
}

static void feeder_got_0(struct ib_cq *cq, struct ib_wc *wc)
{
	feeder_got(container_of(wc->wr_cqe, struct feeder, recv_cqe[0]), wc, 0);
}

static void feeder_got_1(struct ib_cq *cq, struct ib_wc *wc)
{
	feeder_got(container_of(wc->wr_cqe, struct feeder, recv_cqe[1]), wc, 1);
}

static void feeder_sent(struct ib_cq *cq, struct ib_wc *wc)
{
}

static int feed(struct feeder *f)
{
	init_completion(&f->done);
	f->recv_cqe[0].done = feeder_got_0;
	f->recv_cqe[1].done = feeder_got_1;
	f->send_cqe.done = feeder_sent;
	KRPING_DO(feeder_recv(f, 0));
	KRPING_DO(feeder_recv(f, 1));
	KRPING_DO(feeder_send(f, 0));
	KRPING_EXPECT(wait_for_completion_timeout(&f->done, 120 * HZ));
	KRPING_EXPECT(!f->rc);
	return 0;
}

static int feed_each_other(struct feeder *f)
{
	int rc;

	f->rig.peer_cq = krping_raw_cq(&f->rig);
	if (IS_ERR(f->rig.peer_cq))
		return PTR_ERR(f->rig.peer_cq);
	rc = krping_connect(&f->rig, f->end);
	if (!rc) {
		rc = feed(f);
		krping_disconnect(&f->rig, f->end);
	}
	ib_destroy_cq(f->rig.peer_cq);
	return rc;
}

/*
 * CASES 3: two CQs, whose handlers poll them dry, post, and arm, and whose
 * messages call the other's handler: no deadlock, no recursion without end.
 */
int krping_test_feeding(struct ib_device *dev)
{
	struct feeder *f = kzalloc(sizeof(*f), GFP_KERNEL);
	int rc = f ? krping_rig_init(&f->rig, dev, KRPING_RAW) : -ENOMEM;

	if (!rc) {
		rc = feed_each_other(f);
		krping_rig_exit(&f->rig);
	}
	kfree(f);
	return rc;
}
