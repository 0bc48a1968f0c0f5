/* SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB */
/*
 * What can become of a work request, and what follows from it: one row per
 * outcome.  Only completion.c builds a work completion.
 */
#ifndef HERALD_COMPLETION_H
#define HERALD_COMPLETION_H

#include <linux/types.h>

enum herald_outcome {
	HERALD_OK,
	/* found by the requester on its own side */
	HERALD_LOC_LEN,			/* too long for the MTU (UD) or for any message */
	HERALD_LOC_QP_OP,		/* malformed WQE, or an operation the QP has not */
	HERALD_LOC_PROT,		/* own SGE: key, range or permission */
	HERALD_LOC_MW_BIND,		/* bind or fast registration refused */
	/* found by the responder */
	HERALD_RNR,			/* no receive WQE */
	HERALD_NO_ANSWER,		/* no such QP, not connected to us, cannot receive now */
	HERALD_NAK_SEQUENCE,		/* a later message came first */
	HERALD_NAK_INV_REQ,		/* operation the responder's QP has not, bad alignment */
	HERALD_NAK_TOO_LONG,		/* message longer than the receive WQE */
	HERALD_NAK_ACCESS,		/* rkey, range or permission */
	HERALD_NAK_BAD_RECV,		/* the receive WQE's own SGE is bad */
	HERALD_NAK_BAD_RQ,		/* the receive ring is corrupt */
	HERALD_NAK_INV_INVALIDATE,	/* SEND_WITH_INV of a key that cannot be invalidated */
	/* found by the requester's timers */
	HERALD_RETRY_EXCEEDED,
	HERALD_RNR_EXCEEDED,
	/* the QP left the states in which work is done */
	HERALD_FLUSHED,
	/* the send ring is corrupt */
	HERALD_BAD_SQ,
	HERALD_OUTCOMES
};

/* What the requester does */
enum herald_req_action {
	HERALD_REQ_COMPLETE,	/* complete the WR, go on */
	HERALD_REQ_RNR_WAIT,	/* wait for the RNR timer, try again, count */
	HERALD_REQ_RETRY,	/* wait for the transport timer, try again, count (RC);
				 * complete successfully (UC, UD: nobody will know) */
	HERALD_REQ_RETRY_NOW,	/* try again at once, count */
	HERALD_REQ_ERROR,	/* complete in error; RC to ERR, UC and UD to SQE */
};

/* What the responder's QP does */
enum herald_resp_action {
	HERALD_RESP_NONE,
	HERALD_RESP_ERROR,	/* to ERR; raise the row's event, if any */
};

/* AETH syndromes, for counters and for the wire */
enum herald_nak {
	HERALD_ACK,
	HERALD_NAK_NONE,	/* silence */
	HERALD_NAK_KIND_RNR,
	HERALD_NAK_KIND_SEQUENCE,
	HERALD_NAK_KIND_INVALID_REQUEST,
	HERALD_NAK_KIND_REMOTE_ACCESS,
	HERALD_NAK_KIND_REMOTE_OPERATION,
};

struct herald_outcome_row {
	const char *name;
	u8 req_status;		/* enum ib_wc_status of the send WR */
	u8 req_action;
	u8 resp_status;		/* enum ib_wc_status of the receive WR if one was consumed;
				 * IB_WC_SUCCESS: no receive completion in error */
	u8 resp_action;		/* on RC; UC and UD responders drop the message */
	int resp_event;		/* enum ib_event_type, or -1 */
	u8 nak;
};

/* PURE.  Never NULL: an impossible outcome gives the row of HERALD_BAD_SQ. */
const struct herald_outcome_row *herald_outcome_row(enum herald_outcome outcome);

struct herald_qp;
struct herald_op;
struct herald_recv;
struct herald_deferred;

/**
 * struct herald_recv_info - what a receive completion says besides its status
 * @opcode: IB_WC_RECV or IB_WC_RECV_RDMA_WITH_IMM
 * @wc_flags: IB_WC_GRH, IB_WC_WITH_IMM, IB_WC_WITH_INVALIDATE, IB_WC_WITH_NETWORK_HDR_TYPE
 * @imm_or_rkey: be32 immediate or the invalidated rkey
 */
struct herald_recv_info {
	u8 opcode;
	u8 wc_flags;
	u8 net_type;
	u8 sl;
	u32 byte_len;
	u32 imm_or_rkey;
	u32 src_qp;
	u16 pkey_index;
	bool solicited;
};

/**
 * herald_complete_send - complete a send WR
 * @qp: its QP
 * @op: the WR
 * @status: enum ib_wc_status
 * @d: gets the consequences
 *
 * Publishes a CQE if the WR is signaled or unsuccessful, and frees the slot:
 * publishes the SQ's consumer index op->index + 1.
 * Context: any; the requester's owner only; no lock held.
 */
void herald_complete_send(struct herald_qp *qp, const struct herald_op *op, int status,
			  struct herald_deferred *d);

/*
 * Complete a receive WR.  @info may be NULL for an unsuccessful status.
 * Context: any; no lock held.
 */
void herald_complete_recv(struct herald_qp *qp, const struct herald_recv *recv, int status,
			  const struct herald_recv_info *info, struct herald_deferred *d);

#endif /* HERALD_COMPLETION_H */
