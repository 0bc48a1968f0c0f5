// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/*
 * Asynchronous events of a consumer in the kernel: the handler is never called
 * on the call chain of a verb, and it is over when the object has gone.
 */
#include <linux/delay.h>
#include <linux/sched.h>
#include <linux/slab.h>

#include "krping.h"

#define SLOW_MS	200	/* long enough for a destroy that does not wait to return */

static struct {
	struct task_struct *caller;	/* it is inside a verb */
	atomic_t nested;		/* handlers called by it meanwhile */
	struct completion drained;
	bool slow;
	struct completion entered;
	bool left;
} seen;

static void on_event(struct ib_event *event, void *context)
{
	if (event->event != IB_EVENT_SQ_DRAINED)
		return;
	if (READ_ONCE(seen.caller) == current)
		atomic_inc(&seen.nested);
	complete(&seen.entered);
	if (seen.slow)
		mdelay(SLOW_MS);
	WRITE_ONCE(seen.left, true);
	complete(&seen.drained);
}

static void watch(struct ib_qp *qp, bool slow)
{
	memset(&seen, 0, sizeof(seen));
	init_completion(&seen.drained);
	init_completion(&seen.entered);
	seen.slow = slow;
	qp->registered_event_handler = on_event;
}

/* An idle QP is drained at once: as soon as the verb that asks for it runs. */
static int drain(struct ib_qp *qp)
{
	struct ib_qp_attr attr = { .qp_state = IB_QPS_SQD, .en_sqd_async_notify = 1 };
	int rc;

	WRITE_ONCE(seen.caller, current);
	rc = ib_modify_qp(qp, &attr, IB_QP_STATE | IB_QP_EN_SQD_ASYNC_NOTIFY);
	WRITE_ONCE(seen.caller, NULL);
	return rc;
}

static int to_rts(struct ib_qp *qp)
{
	struct ib_qp_attr attr = { .qp_state = IB_QPS_RTS };

	return ib_modify_qp(qp, &attr, IB_QP_STATE);
}

static int call_chain(struct krping_rig *rig)
{
	struct ib_qp *qp = rig->end[0].qp;
	int i;

	watch(qp, false);
	for (i = 0; i < 20; i++) {
		KRPING_DO(drain(qp));
		KRPING_EXPECT(wait_for_completion_timeout(&seen.drained, 60 * HZ));
		KRPING_DO(to_rts(qp));
	}
	KRPING_EXPECT(!atomic_read(&seen.nested));
	KRPING_EXPECT(!completion_done(&seen.drained));
	return 0;
}

/* A pair of its own goes while the handler of its first QP is at work. */
static int destroy_waits(struct krping_rig *rig)
{
	struct krping_end end[2] = {};
	bool left;
	int rc;

	KRPING_DO(krping_connect(rig, end));
	watch(end[0].qp, true);
	rc = drain(end[0].qp);
	if (!rc && !wait_for_completion_timeout(&seen.entered, 60 * HZ))
		rc = -ETIMEDOUT;
	krping_disconnect(rig, end);
	left = READ_ONCE(seen.left);
	KRPING_DO(rc);
	KRPING_EXPECT(left);
	return 0;
}

/* A QP is reset while its handler is at work: the event is one of its life until then. */
static int reset_waits(struct krping_rig *rig)
{
	struct ib_qp_attr attr = { .qp_state = IB_QPS_RESET };
	bool left;

	watch(rig->end[0].qp, true);
	KRPING_DO(drain(rig->end[0].qp));
	KRPING_EXPECT(wait_for_completion_timeout(&seen.entered, 60 * HZ));
	KRPING_DO(ib_modify_qp(rig->end[0].qp, &attr, IB_QP_STATE));
	left = READ_ONCE(seen.left);
	KRPING_EXPECT(wait_for_completion_timeout(&seen.drained, 60 * HZ));
	KRPING_EXPECT(left);
	return 0;
}

static int with_rig(struct ib_device *dev, int (*test)(struct krping_rig *rig))
{
	struct krping_rig *rig = kzalloc(sizeof(*rig), GFP_KERNEL);
	int rc = rig ? krping_rig_init(rig, dev, KRPING_SOFTIRQ) : -ENOMEM;

	if (!rc) {
		rc = test(rig);
		krping_rig_exit(rig);
	}
	kfree(rig);
	return rc;
}

int krping_test_event_call_chain(struct ib_device *dev)
{
	return with_rig(dev, call_chain);
}

int krping_test_event_destroy(struct ib_device *dev)
{
	return with_rig(dev, destroy_waits);
}

int krping_test_event_reset(struct ib_device *dev)
{
	return with_rig(dev, reset_waits);
}
