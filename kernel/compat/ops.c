// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/*
 * The device operations whose prototypes differ between kernels.  They are set
 * after herald_dev_ops, and ib_set_device_ops() fills unset pointers only.
 */
#include <rdma/ib_verbs.h>

#include "cq.h"
#include "mr.h"

/* needed until 6.12 */
#ifdef HAVE_REG_MR_DMAH
static struct ib_mr *herald_compat_reg_user_mr(struct ib_pd *pd, u64 start, u64 length,
					       u64 virt_addr, int access, struct ib_dmah *dmah,
					       struct ib_udata *udata)
{
	if (dmah)
		return ERR_PTR(-EOPNOTSUPP);
	return herald_reg_user_mr(pd, start, length, virt_addr, access, udata);
}
#else
#define herald_compat_reg_user_mr	herald_reg_user_mr
#endif

/* needed until 6.12 */
#ifndef HAVE_RESIZE_USER_CQ
static int herald_compat_resize_cq(struct ib_cq *ibcq, int cqe, struct ib_udata *udata)
{
	if (cqe <= 0)
		return -EINVAL;
	return herald_resize_cq(ibcq, cqe, udata);
}
#endif

/* needed until 6.12 */
#ifdef HAVE_REPORT_PORT_EVENT
/*
 * The core watches only the first ib_device of an interface and no port of a
 * bond; herald's own notifier watches all of them, on all kernels.  That this
 * operation is there keeps the core from reporting the same change again.
 */
static void herald_compat_report_port_event(struct ib_device *ibdev, struct net_device *ndev,
					    unsigned long event)
{
}
#endif

const struct ib_device_ops herald_compat_ops = {
	.reg_user_mr = herald_compat_reg_user_mr,
#ifdef HAVE_RESIZE_USER_CQ
	.resize_user_cq = herald_resize_cq,
#else
	.resize_cq = herald_compat_resize_cq,
#endif
#ifdef HAVE_REPORT_PORT_EVENT
	.report_port_event = herald_compat_report_port_event,
#endif
};
