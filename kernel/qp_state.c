// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/* PURE: what a QP may do in each state (IBTA vol. 1, 10.3.1). */
#include "qp_state.h"

const unsigned int herald_qp_activities[IB_QPS_ERR + 1] = {
	[IB_QPS_RESET] = 0,
	[IB_QPS_INIT] = HERALD_MAY_POST_RECV,
	[IB_QPS_RTR] = HERALD_MAY_POST_RECV | HERALD_MAY_RECEIVE,
	[IB_QPS_RTS] = HERALD_MAY_POST_SEND | HERALD_MAY_POST_RECV | HERALD_MAY_SEND |
		       HERALD_MAY_CONTINUE | HERALD_MAY_RECEIVE,
	/* what was started goes on, the rest waits in the queue */
	[IB_QPS_SQD] = HERALD_MAY_POST_SEND | HERALD_MAY_POST_RECV | HERALD_MAY_CONTINUE |
		       HERALD_MAY_RECEIVE,
	/* only the send queue is in error */
	[IB_QPS_SQE] = HERALD_MAY_POST_SEND | HERALD_MAY_POST_RECV | HERALD_MAY_RECEIVE |
		       HERALD_FLUSH_SEND,
	[IB_QPS_ERR] = HERALD_MAY_POST_SEND | HERALD_MAY_POST_RECV | HERALD_FLUSH_SEND |
		       HERALD_FLUSH_RECV,
};
