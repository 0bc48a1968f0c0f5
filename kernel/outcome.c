// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/*
 * PURE: the outcome table.  What each outcome of a work request means for both
 * ends.
 */
#include <linux/types.h>
#include <rdma/ib_verbs.h>

#include "completion.h"

#define NO_EVENT	(-1)

/* requester's status and action; responder's status, action and event; what travels back */
#define ROW(outcome, rstat, ract, pstat, pact, event, nak_)		\
	[HERALD_##outcome] = {						\
		.name = #outcome,					\
		.req_status = IB_WC_##rstat,				\
		.req_action = HERALD_REQ_##ract,			\
		.resp_status = IB_WC_##pstat,				\
		.resp_action = HERALD_RESP_##pact,			\
		.resp_event = event,					\
		.nak = HERALD_##nak_,					\
	}

static const struct herald_outcome_row outcome_table[HERALD_OUTCOMES] = {
	ROW(OK,			SUCCESS, COMPLETE,
	    SUCCESS, NONE, NO_EVENT, ACK),

	/* the responder never hears of the requester's own faults */
	ROW(LOC_LEN,		LOC_LEN_ERR, ERROR,
	    SUCCESS, NONE, NO_EVENT, NAK_NONE),
	ROW(LOC_QP_OP,		LOC_QP_OP_ERR, ERROR,
	    SUCCESS, NONE, NO_EVENT, NAK_NONE),
	ROW(LOC_PROT,		LOC_PROT_ERR, ERROR,
	    SUCCESS, NONE, NO_EVENT, NAK_NONE),
	ROW(LOC_MW_BIND,	MW_BIND_ERR, ERROR,
	    SUCCESS, NONE, NO_EVENT, NAK_NONE),

	/* the status is the one for when the retries are used up */
	ROW(RNR,		RNR_RETRY_EXC_ERR, RNR_WAIT,
	    SUCCESS, NONE, NO_EVENT, NAK_KIND_RNR),
	ROW(NO_ANSWER,		RETRY_EXC_ERR, RETRY,
	    SUCCESS, NONE, NO_EVENT, NAK_NONE),
	ROW(NAK_SEQUENCE,	RETRY_EXC_ERR, RETRY_NOW,
	    SUCCESS, NONE, NO_EVENT, NAK_KIND_SEQUENCE),

	ROW(NAK_INV_REQ,	REM_INV_REQ_ERR, ERROR,
	    REM_INV_REQ_ERR, ERROR, IB_EVENT_QP_REQ_ERR, NAK_KIND_INVALID_REQUEST),
	/* these have a completion of the receive WR to carry the error: no event */
	ROW(NAK_TOO_LONG,	REM_INV_REQ_ERR, ERROR,
	    LOC_LEN_ERR, ERROR, NO_EVENT, NAK_KIND_INVALID_REQUEST),
	ROW(NAK_BAD_RECV,	REM_OP_ERR, ERROR,
	    LOC_PROT_ERR, ERROR, NO_EVENT, NAK_KIND_REMOTE_OPERATION),
	ROW(NAK_INV_INVALIDATE,	REM_ACCESS_ERR, ERROR,
	    REM_INV_REQ_ERR, ERROR, NO_EVENT, NAK_KIND_REMOTE_ACCESS),
	/*
	 * A receive WR is taken only by an RDMA WRITE with immediate whose key
	 * goes bad half way: a local access error.
	 */
	ROW(NAK_ACCESS,		REM_ACCESS_ERR, ERROR,
	    LOC_ACCESS_ERR, ERROR, IB_EVENT_QP_ACCESS_ERR, NAK_KIND_REMOTE_ACCESS),
	ROW(NAK_BAD_RQ,		REM_OP_ERR, ERROR,
	    SUCCESS, ERROR, IB_EVENT_QP_FATAL, NAK_KIND_REMOTE_OPERATION),

	ROW(RETRY_EXCEEDED,	RETRY_EXC_ERR, ERROR,
	    SUCCESS, NONE, NO_EVENT, NAK_NONE),
	ROW(RNR_EXCEEDED,	RNR_RETRY_EXC_ERR, ERROR,
	    SUCCESS, NONE, NO_EVENT, NAK_NONE),

	/* the QP is where it is going to already */
	ROW(FLUSHED,		WR_FLUSH_ERR, COMPLETE,
	    WR_FLUSH_ERR, NONE, NO_EVENT, NAK_NONE),

	/* no WR to complete: the requester raises QP_FATAL */
	ROW(BAD_SQ,		FATAL_ERR, ERROR,
	    SUCCESS, NONE, NO_EVENT, NAK_NONE),
};

const struct herald_outcome_row *herald_outcome_row(enum herald_outcome outcome)
{
	if ((unsigned int)outcome >= HERALD_OUTCOMES)
		outcome = HERALD_BAD_SQ;
	return &outcome_table[outcome];
}
