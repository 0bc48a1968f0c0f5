/* SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB */
/*
 * The contract between the requester and what carries its messages.  A
 * transport sees ops and spans, never rings.
 */
#ifndef HERALD_TRANSPORT_H
#define HERALD_TRANSPORT_H

#include "completion.h"

struct herald_qp;
struct herald_op;
struct herald_deferred;

enum herald_progress {
	HERALD_DONE,	/* the op has an outcome */
	HERALD_MORE,	/* a piece was moved (qp->sq.done), call again */
	HERALD_BUSY,	/* the peer's responder is at work elsewhere: the requester was put
			 * on its waiting list and will be kicked */
	HERALD_AGAIN,	/* somebody else's copy must end first: call again in a moment */
};

struct herald_transport_ops {
	const char *name;
	/**
	 * @push: move an op on by at most one piece
	 * @qp: the QP; the caller owns its requester
	 * @op: the op; qp->sq.done says how far it is
	 * @outcome: set with HERALD_DONE
	 * @d: gets what happens at the other end
	 *
	 * Context: any; no lock held; does not sleep.
	 */
	enum herald_progress (*push)(struct herald_qp *qp, struct herald_op *op,
				     enum herald_outcome *outcome, struct herald_deferred *d);
};

extern const struct herald_transport_ops herald_transport_local;

#endif /* HERALD_TRANSPORT_H */
