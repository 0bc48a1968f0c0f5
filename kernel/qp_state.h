/* SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB */
/* PURE: what a QP may do in each state. */
#ifndef HERALD_QP_STATE_H
#define HERALD_QP_STATE_H

#include <linux/types.h>
#include <rdma/ib_verbs.h>

enum herald_activity {
	HERALD_MAY_POST_SEND	= 1 << 0,	/* accept a send WR (it may only be flushed) */
	HERALD_MAY_POST_RECV	= 1 << 1,
	HERALD_MAY_SEND		= 1 << 2,	/* start a new send WR */
	HERALD_MAY_CONTINUE	= 1 << 3,	/* go on with a send WR that was started */
	HERALD_MAY_RECEIVE	= 1 << 4,	/* answer incoming requests */
	HERALD_FLUSH_SEND	= 1 << 5,	/* complete send WRs as flushed */
	HERALD_FLUSH_RECV	= 1 << 6,
};

extern const unsigned int herald_qp_activities[IB_QPS_ERR + 1];

/* The activities permitted in @state (enum ib_qp_state); 0 for an impossible one. */
static inline unsigned int herald_qp_activity(int state)
{
	if (state < IB_QPS_RESET || state > IB_QPS_ERR)
		return 0;
	return herald_qp_activities[state];
}

#endif /* HERALD_QP_STATE_H */
