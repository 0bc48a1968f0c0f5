// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/*
 * Asynchronous events on purpose: one row per event, with a function that does
 * what the event's natural cause would have done.  What follows from that (the
 * flushes, the events of other objects) is left to the code that does it anyway.
 *
 * An object is found while it lives and cannot go as long as it is used: a QP
 * is referenced, a CQ is visited, an SRQ's destroy waits for a mutex.
 */
#include <linux/kstrtox.h>
#include <linux/string.h>
#include <rdma/restrack.h>

#include "cq.h"
#include "cq_table.h"
#include "device.h"
#include "event.h"
#include "path_migration.h"
#include "provoke.h"
#include "qp.h"
#include "srq.h"

struct row {
	const char *name;
	int event;		/* enum ib_event_type */
	enum herald_object object;
	union {
		int (*qp)(struct herald_qp *qp, int event, struct herald_deferred *d);
		int (*cq)(struct herald_cq *cq, struct herald_deferred *d);
		int (*srq)(struct herald_srq *srq, struct herald_deferred *d);
		int (*dev)(struct herald_dev *dev, int event);
	};
};

/* ----------------------------------------------------------------- QPs -- */

/* Once per stay in the error state, as always: a QP that is there already had its event. */
static int qp_error(struct herald_qp *qp, int event, struct herald_deferred *d)
{
	return herald_qp_error(qp, event, d) ? 0 : -EINVAL;
}

static int qp_last_wqe(struct herald_qp *qp, int event, struct herald_deferred *d)
{
	if (!qp->srq)
		return -EINVAL;
	/* the event comes of it by itself, after the last flush */
	return herald_qp_error(qp, -1, d) ? 0 : -EINVAL;
}

static int qp_drained(struct herald_qp *qp, int event, struct herald_deferred *d)
{
	return herald_qp_drain(qp, d);
}

/* Nothing but the event. */
static int qp_event(struct herald_qp *qp, int event, struct herald_deferred *d)
{
	unsigned long flags;
	int ret = -EINVAL;

	spin_lock_irqsave(&qp->lock, flags);
	if (!qp->dying) {
		herald_event_qp(qp, event, d);
		ret = 0;
	}
	spin_unlock_irqrestore(&qp->lock, flags);
	return ret;
}

/* As on request, with what comes of it, if there is another path to go to; else the event alone. */
static int qp_path_mig(struct herald_qp *qp, int event, struct herald_deferred *d)
{
	if (herald_mig_move(qp, HERALD_MIG_SET_MIGRATED, d) != HERALD_MIG_NONE)
		return 0;
	return qp_event(qp, event, d);
}

/* What a move that failed leaves, if there is one to fail; else the event alone. */
static int qp_path_mig_err(struct herald_qp *qp, int event, struct herald_deferred *d)
{
	return herald_mig_refuse(qp, d) ? 0 : qp_event(qp, event, d);
}

/* ---------------------------------------------------------------- SRQs -- */

static int srq_limit(struct herald_srq *srq, struct herald_deferred *d)
{
	herald_srq_fire_limit(srq, d);
	return 0;
}

/* ---------------------------------------------------- port and device -- */

static int port_event(struct herald_dev *dev, int event)
{
	herald_event_port(dev, event, true);
	return 0;
}

static int port_err(struct herald_dev *dev, int event)
{
	return herald_port_stop(dev);
}

static int port_active(struct herald_dev *dev, int event)
{
	return herald_port_start(dev);
}

static int pkey_change(struct herald_dev *dev, int event)
{
	return herald_port_change_pkeys(dev);
}

static int speed_change(struct herald_dev *dev, int event)
{
	return HERALD_HAS_SPEED_CHANGE ? port_event(dev, event) : -EOPNOTSUPP;
}

static int flush_qp(struct herald_qp *qp, void *arg)
{
	struct herald_deferred *d = arg;

	herald_qp_error(qp, -1, d);
	herald_deferred_run(d);
	return 0;
}

/* A second one would find nothing to do. */
static int device_fatal(struct herald_dev *dev, int event)
{
	struct herald_deferred d = { .provoked = true };

	/* a full barrier; pairs with the one in check_fatal(): no QP is missed */
	if (atomic_xchg(&dev->fatal, 1))
		return -EINVAL;
	herald_qps_each(dev, flush_qp, &d);
	return port_event(dev, event);
}

/* ---------------------------------------------------------- the table -- */

#define QP(_name, _event, _fn) \
	{ .name = _name, .event = IB_EVENT_##_event, .object = HERALD_OBJECT_QP, .qp = _fn }
#define CQ(_name, _event, _fn) \
	{ .name = _name, .event = IB_EVENT_##_event, .object = HERALD_OBJECT_CQ, .cq = _fn }
#define SRQ(_name, _event, _fn) \
	{ .name = _name, .event = IB_EVENT_##_event, .object = HERALD_OBJECT_SRQ, .srq = _fn }
#define DEV(_name, _event, _fn) \
	{ .name = _name, .event = _event, .object = HERALD_OBJECT_DEVICE, .dev = _fn }

static const struct row rows[] = {
	CQ("cq-err", CQ_ERR, herald_cq_kill),
	QP("qp-fatal", QP_FATAL, qp_error),
	QP("qp-req-err", QP_REQ_ERR, qp_error),
	QP("qp-access-err", QP_ACCESS_ERR, qp_error),
	QP("comm-est", COMM_EST, qp_event),
	QP("sq-drained", SQ_DRAINED, qp_drained),
	QP("path-mig", PATH_MIG, qp_path_mig),
	QP("path-mig-err", PATH_MIG_ERR, qp_path_mig_err),
	DEV("device-fatal", IB_EVENT_DEVICE_FATAL, device_fatal),
	DEV("port-active", IB_EVENT_PORT_ACTIVE, port_active),
	DEV("port-err", IB_EVENT_PORT_ERR, port_err),
	DEV("lid-change", IB_EVENT_LID_CHANGE, port_event),
	DEV("pkey-change", IB_EVENT_PKEY_CHANGE, pkey_change),
	DEV("sm-change", IB_EVENT_SM_CHANGE, port_event),
	SRQ("srq-err", SRQ_ERR, herald_srq_kill),
	SRQ("srq-limit-reached", SRQ_LIMIT_REACHED, srq_limit),
	QP("qp-last-wqe-reached", QP_LAST_WQE_REACHED, qp_last_wqe),
	DEV("client-reregister", IB_EVENT_CLIENT_REREGISTER, port_event),
	DEV("gid-change", IB_EVENT_GID_CHANGE, port_event),
	/* there are no work queues */
	DEV("wq-fatal", IB_EVENT_WQ_FATAL, NULL),
	DEV("device-speed-change", HERALD_EVENT_SPEED_CHANGE, speed_change),
};

#undef QP
#undef CQ
#undef SRQ
#undef DEV

const char *herald_event_name(int type)
{
	size_t i;

	for (i = 0; i < ARRAY_SIZE(rows); i++)
		if (rows[i].event == type)
			return rows[i].name;
	return "?";
}

static const struct row *find_row(const char *name)
{
	size_t i;

	for (i = 0; i < ARRAY_SIZE(rows); i++)
		if (!strcmp(rows[i].name, name))
			return &rows[i];
	return NULL;
}

/* ------------------------------------------------------------ objects -- */

/* A look through a table of objects for the one with a number. */
struct search {
	const struct row *row;
	u32 number;
};

/* Ends the look, as an error does. */
#define FOUND	1

static int on_cq(struct herald_cq *cq, void *arg)
{
	struct herald_deferred d = { .provoked = true };
	struct search *s = arg;
	int ret;

	if (!rdma_restrack_is_tracked(&cq->ib.res) || cq->ib.res.id != s->number)
		return 0;
	ret = s->row->cq(cq, &d);
	herald_deferred_run(&d);
	return ret ?: FOUND;
}

static int on_srq(struct herald_srq *srq, void *arg)
{
	struct herald_deferred d = { .provoked = true };
	struct search *s = arg;
	int ret;

	if (!rdma_restrack_is_tracked(&srq->ib.res) || srq->ib.res.id != s->number)
		return 0;
	ret = s->row->srq(srq, &d);
	herald_deferred_run(&d);
	return ret ?: FOUND;
}

static int on_qp(struct herald_dev *dev, const struct row *row, u32 number)
{
	struct herald_deferred d = { .provoked = true };
	struct herald_qp *qp = number == 1 ? herald_qp_find_gsi(dev) : herald_qp_find(number);
	int ret = -ENOENT;

	if (!qp)
		return ret;
	if (qp->dev == dev) {
		ret = row->qp(qp, row->event, &d);
		herald_deferred_run(&d);
	}
	herald_qp_put(qp);
	return ret;
}

static int on_object(struct herald_dev *dev, const struct row *row, u32 number)
{
	struct search s = { .row = row, .number = number };
	int ret;

	if (row->object == HERALD_OBJECT_QP)
		return on_qp(dev, row, number);
	if (row->object == HERALD_OBJECT_CQ)
		ret = herald_cqs_each(dev, on_cq, &s);
	else
		ret = herald_srqs_each(dev, on_srq, &s);
	if (ret < 0)
		return ret;
	return ret == FOUND ? 0 : -ENOENT;
}

static int provoke(struct herald_dev *dev, char *line)
{
	char *name = strsep(&line, " "), *number = strsep(&line, " ");
	const struct row *row = find_row(name);
	u32 n;

	if (!row || line)
		return -EINVAL;
	if (row->event == IB_EVENT_WQ_FATAL)
		return -EOPNOTSUPP;
	if (row->object == HERALD_OBJECT_DEVICE)
		return number ? -EINVAL : row->dev(dev, row->event);
	if (!number || kstrtou32(number, 10, &n))
		return -EINVAL;
	return on_object(dev, row, n);
}

int herald_provoke(struct herald_dev *dev, char *line)
{
	int ret;

	/* the core must not let go of a device that it is about to hear an event of */
	if (!ib_device_try_get(&dev->ib))
		return -ENODEV;
	ret = provoke(dev, line);
	ib_device_put(&dev->ib);
	return ret;
}
