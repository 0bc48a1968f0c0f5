// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/*
 * The tables of a device's objects in debugfs: a line of headings, then one
 * line per object.  "-" stands where there is nothing.
 */
#include <linux/debugfs.h>
#include <linux/seq_file.h>
#include <rdma/restrack.h>

#include "cq.h"
#include "cq_table.h"
#include "debugfs_tables.h"
#include "device.h"
#include "fault_command.h"
#include "qp.h"
#include "srq.h"

/* ----------------------------------------------------------------- the CQs -- */

static int show_cq(struct herald_cq *cq, void *arg)
{
	struct seq_file *m = arg;
	struct herald_cq_info info;

	if (!rdma_restrack_is_tracked(&cq->ib.res))
		return 0;	/* not quite made yet */
	herald_cq_look(cq, &info);
	seq_printf(m, "%u %d %u %d %u %u %u %s %s", cq->ib.res.id, cq->pid, cq->cpu, cq->ib.cqe,
		   info.unpolled, info.held, info.waiting, herald_arm_state_name(info.armed),
		   info.dead ? "dead" : "ok");
#define HERALD_CQ_STAT(name) seq_printf(m, " %llu", info.stats.name);
	HERALD_CQ_STATS(HERALD_CQ_STAT)
#undef HERALD_CQ_STAT
	seq_putc(m, '\n');
	return 0;
}

static int cqs_show(struct seq_file *m, void *unused)
{
	seq_puts(m, "cqn pid cpu cqe unpolled held waiting armed state");
#define HERALD_CQ_STAT(name) seq_puts(m, " " #name);
	HERALD_CQ_STATS(HERALD_CQ_STAT)
#undef HERALD_CQ_STAT
	seq_putc(m, '\n');
	return herald_cqs_each(m->private, show_cq, m);
}
DEFINE_SHOW_ATTRIBUTE(cqs);

/* ----------------------------------------------------------------- the QPs -- */

static const char *type_name(enum ib_qp_type type)
{
	switch (type) {
	case IB_QPT_RC:
		return "RC";
	case IB_QPT_UC:
		return "UC";
	case IB_QPT_UD:
		return "UD";
	case IB_QPT_GSI:
		return "GSI";
	default:
		return "-";
	}
}

static const char * const state_names[] = {
	[IB_QPS_RESET] = "RESET",
	[IB_QPS_INIT] = "INIT",
	[IB_QPS_RTR] = "RTR",
	[IB_QPS_RTS] = "RTS",
	[IB_QPS_SQD] = "SQD",
	[IB_QPS_SQE] = "SQE",
	[IB_QPS_ERR] = "ERR",
};

/* Of the send queue alone: only in SQD does the QP's own state not say it. */
static const char *sq_state_name(enum ib_qp_state state, u32 latch)
{
	if (state != IB_QPS_SQD)
		return "-";
	return latch & HERALD_LATCH_DRAINED ? "drained" : "draining";
}

static int show_qp(struct herald_qp *qp, void *arg)
{
	enum ib_qp_state state;
	struct seq_file *m = arg;
	unsigned long flags;
	u32 latch;

	spin_lock_irqsave(&qp->lock, flags);
	state = qp->state;
	latch = qp->latch;
	spin_unlock_irqrestore(&qp->lock, flags);

	seq_printf(m, "%u %d %s %s %s %u %u ", qp->qpn, qp->pid, type_name(qp->type),
		   state_names[state], sq_state_name(state, latch), qp->scq->ib.res.id,
		   qp->rcq->ib.res.id);
	if (qp->srq)
		seq_printf(m, "%u", qp->srq->ib.res.id);
	else
		seq_putc(m, '-');
	seq_printf(m, " %u\n", READ_ONCE(qp->events.raised));
	return 0;
}

static int qps_show(struct seq_file *m, void *unused)
{
	seq_puts(m, "qpn pid type state sq_state scqn rcqn srqn events\n");
	return herald_qps_each(m->private, show_qp, m);
}
DEFINE_SHOW_ATTRIBUTE(qps);

/* ---------------------------------------------------------------- the SRQs -- */

static int show_srq(struct herald_srq *srq, void *arg)
{
	struct seq_file *m = arg;
	struct herald_srq_info info;

	if (!rdma_restrack_is_tracked(&srq->ib.res))
		return 0;
	herald_srq_look(srq, &info);
	seq_printf(m, "%u %d %u ", srq->ib.res.id, srq->pid, info.limit);
	if (info.dead || info.posted < 0)
		seq_putc(m, '-');
	else
		seq_printf(m, "%d", info.posted);
	seq_printf(m, " %u\n", info.events);
	return 0;
}

static int srqs_show(struct seq_file *m, void *unused)
{
	seq_puts(m, "srqn pid limit posted events\n");
	return herald_srqs_each(m->private, show_srq, m);
}
DEFINE_SHOW_ATTRIBUTE(srqs);

/* -------------------------------------------------------------- the faults -- */

DEFINE_SHOW_ATTRIBUTE(herald_faults);

void herald_tables_add(struct herald_dev *dev)
{
	debugfs_create_file("cqs", 0400, dev->debugfs, dev, &cqs_fops);
	debugfs_create_file("qps", 0400, dev->debugfs, dev, &qps_fops);
	debugfs_create_file("srqs", 0400, dev->debugfs, dev, &srqs_fops);
	debugfs_create_file("faults", 0400, dev->debugfs, dev, &herald_faults_fops);
}
