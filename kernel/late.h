/* SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB */
/* A datagram that was sent, and that the next one of its QP overtakes: a fault, see fault.h. */
#ifndef HERALD_LATE_H
#define HERALD_LATE_H

#include "ah.h"
#include "responder.h"

struct herald_qp;

/**
 * struct herald_late - a datagram on its way, with all that it needs there
 * @rq: the request; its pointers lead into the rest of this
 * @qpn: where it goes
 * @data: rq.length bytes of payload
 */
struct herald_late {
	struct herald_request rq;
	struct herald_av av;
	u8 grh[40];
	u32 qpn;
	u8 data[];
};

/**
 * herald_late_keep - keep a datagram back; it is a copy, so the WR may complete
 * @qp: its sender; the caller owns the requester
 * @rq: the datagram, with its payload open
 * @qpn: where it goes
 *
 * Return: false if there is one already, or no memory: then nothing happens to it.
 * Context: any.
 */
bool herald_late_keep(struct herald_qp *qp, const struct herald_request *rq, u32 qpn);

/* It has arrived, or never will.  Idempotent.  Context: any; as keep. */
void herald_late_drop(struct herald_qp *qp);

#endif /* HERALD_LATE_H */
