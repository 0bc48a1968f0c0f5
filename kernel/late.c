// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/* A datagram that the next one of its QP overtakes. */
#include <linux/slab.h>

#include "late.h"
#include "mr.h"
#include "qp.h"

bool herald_late_keep(struct herald_qp *qp, const struct herald_request *rq, u32 qpn)
{
	struct herald_cursor to __uninitialized;
	struct herald_late *late;
	struct herald_span span;

	if (qp->sq.late)
		return false;
	late = kmalloc(struct_size(late, data, rq->length), GFP_ATOMIC | __GFP_NOWARN);
	if (!late)
		return false;
	late->rq = *rq;
	late->av = *rq->src_av;
	memcpy(late->grh, rq->grh, sizeof(late->grh));
	late->rq.src_av = &late->av;
	late->rq.grh = late->grh;
	late->rq.payload = NULL;
	late->qpn = qpn;
	span = (struct herald_span){ .linear = late->data, .length = rq->length };
	if (!herald_cursor_open(&to, &span, 0, rq->length)) {
		herald_cursor_move(&to, rq->payload, rq->length);
		herald_cursor_close(&to);
	}
	qp->sq.late = late;
	return true;
}

void herald_late_drop(struct herald_qp *qp)
{
	kfree(qp->sq.late);
	qp->sq.late = NULL;
}
