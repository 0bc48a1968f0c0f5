// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/*
 * Our own methods of the uverbs ioctl: the doorbell of processes' queues, which
 * names a QP, and the announcements of arms and posts, if the kernel wants them.
 *
 * A method of its own, found by QP number, costs less than POST_SEND, which
 * looks the QP up by handle and copies room for a WR that is not there.
 */
#define UVERBS_MODULE_NAME herald
#include <rdma/uverbs_ioctl.h>
#include <rdma/uverbs_named_ioctl.h>
#include <rdma/uverbs_types.h>
#include <rdma/herald-ioctl.h>

#include "cq_table.h"
#include "device.h"
#include "ioctl.h"
#include "qp.h"
#include "srq.h"

#define KNOWN_QUEUES	(HERALD_DOORBELL_SEND | HERALD_DOORBELL_RECV)

static int ring(struct herald_qp *qp, u32 queues)
{
	int ret = 0;

	if (queues & HERALD_DOORBELL_SEND)
		ret = herald_ring_send_doorbell(qp);
	if (!ret && (queues & HERALD_DOORBELL_RECV))
		ret = herald_ring_recv_doorbell(qp);
	return ret;
}

static int UVERBS_HANDLER(HERALD_METHOD_DOORBELL)(struct uverbs_attr_bundle *attrs)
{
	struct ib_ucontext *uctx = ib_uverbs_get_ucontext(attrs);
	struct herald_doorbell bell;
	struct herald_qp *qp;
	int ret;

	if (IS_ERR(uctx))
		return PTR_ERR(uctx);
	ret = uverbs_copy_from(&bell, attrs, HERALD_ATTR_DOORBELL);
	if (ret)
		return ret;
	if (!bell.queues || (bell.queues & ~KNOWN_QUEUES))
		return -EINVAL;
	qp = herald_qp_find(bell.qpn);
	if (!qp)
		return -EINVAL;
	ret = qp->uctx == uctx ? ring(qp, bell.queues) : -EINVAL;
	herald_qp_put(qp);
	return ret;
}

static int UVERBS_HANDLER(HERALD_METHOD_ARMING)(struct uverbs_attr_bundle *attrs)
{
	struct ib_ucontext *uctx = ib_uverbs_get_ucontext(attrs);
	struct herald_arming arming;
	int ret;

	if (IS_ERR(uctx))
		return PTR_ERR(uctx);
	ret = uverbs_copy_from(&arming, attrs, HERALD_ATTR_ARMING);
	if (ret)
		return ret;
	return herald_cqs_arming(to_hdev(uctx->device), uctx, arming.cq_id, arming.moment);
}

static int posting_to_qp(struct herald_qp *qp, enum herald_fault_site site)
{
	int ret = herald_fault_verb(&qp->dev->faults, site);

	herald_qp_ask(qp);
	return ret;
}

struct srq_post {
	struct ib_ucontext *uctx;
	u32 number;
};

static int posting_to_srq(struct herald_srq *srq, void *arg)
{
	const struct srq_post *post = arg;
	int ret;

	if (srq->srq_num != post->number || srq->uctx != post->uctx)
		return 0;
	ret = herald_fault_verb(&srq->dev->faults, HERALD_FAULT_POST_SRQ_RECV);
	herald_srq_ask(srq);
	return ret ?: 1;
}

static int posting_srq(struct herald_dev *dev, struct ib_ucontext *uctx, u32 number)
{
	struct srq_post post = { .uctx = uctx, .number = number };
	int ret = herald_srqs_each(dev, posting_to_srq, &post);

	return ret > 0 ? 0 : ret ?: -EINVAL;
}

static int posting_qp(struct ib_ucontext *uctx, const struct herald_posting *posting)
{
	struct herald_qp *qp = herald_qp_find(posting->number);
	int ret = -EINVAL;

	if (!qp)
		return ret;
	if (qp->uctx == uctx)
		ret = posting_to_qp(qp, posting->queue == HERALD_POSTING_SEND ?
					HERALD_FAULT_POST_SEND : HERALD_FAULT_POST_RECV);
	herald_qp_put(qp);
	return ret;
}

/* Only while a post may fail on purpose; also tells the poster when that is over. */
static int UVERBS_HANDLER(HERALD_METHOD_POSTING)(struct uverbs_attr_bundle *attrs)
{
	struct ib_ucontext *uctx = ib_uverbs_get_ucontext(attrs);
	struct herald_posting posting;
	int ret;

	if (IS_ERR(uctx))
		return PTR_ERR(uctx);
	ret = uverbs_copy_from(&posting, attrs, HERALD_ATTR_POSTING);
	if (ret)
		return ret;
	switch (posting.queue) {
	case HERALD_POSTING_SEND:
	case HERALD_POSTING_RECV:
		return posting_qp(uctx, &posting);
	case HERALD_POSTING_SRQ:
		return posting_srq(to_hdev(uctx->device), uctx, posting.number);
	default:
		return -EINVAL;
	}
}

DECLARE_UVERBS_NAMED_METHOD(HERALD_METHOD_POSTING,
			    UVERBS_ATTR_PTR_IN(HERALD_ATTR_POSTING,
					       UVERBS_ATTR_TYPE(struct herald_posting),
					       UA_MANDATORY));

DECLARE_UVERBS_NAMED_METHOD(HERALD_METHOD_ARMING,
			    UVERBS_ATTR_PTR_IN(HERALD_ATTR_ARMING,
					       UVERBS_ATTR_TYPE(struct herald_arming),
					       UA_MANDATORY));

DECLARE_UVERBS_NAMED_METHOD(HERALD_METHOD_DOORBELL,
			    UVERBS_ATTR_PTR_IN(HERALD_ATTR_DOORBELL,
					       UVERBS_ATTR_TYPE(struct herald_doorbell),
					       UA_MANDATORY));

ADD_UVERBS_METHODS(herald_device, UVERBS_OBJECT_DEVICE, &UVERBS_METHOD(HERALD_METHOD_DOORBELL),
		   &UVERBS_METHOD(HERALD_METHOD_ARMING), &UVERBS_METHOD(HERALD_METHOD_POSTING));

const struct uapi_definition herald_uapi_definitions[] = {
	UAPI_DEF_CHAIN_OBJ_TREE(UVERBS_OBJECT_DEVICE, &herald_device),
	{},
};
