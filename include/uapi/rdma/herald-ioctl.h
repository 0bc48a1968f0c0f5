/* SPDX-License-Identifier: ((GPL-2.0 WITH Linux-syscall-note) OR Linux-OpenIB) */
/* herald's own methods of the uverbs ioctl (RDMA_VERBS_IOCTL). */
#ifndef HERALD_IOCTL_H
#define HERALD_IOCTL_H

#include <linux/types.h>
#include <rdma/ib_user_ioctl_cmds.h>

/* Of the object UVERBS_OBJECT_DEVICE */
enum herald_device_methods {
	/*
	 * "Look at these rings": what was posted is worked off before it
	 * returns, as far as the budget of a call goes, or else soon after.
	 *
	 * Errors: EINVAL: no such QP in this context, its state takes no WR of
	 * that kind, or an unknown queue; ENODEV, EIO: the device is gone.
	 */
	HERALD_METHOD_DOORBELL = (1U << UVERBS_ID_NS_SHIFT),
	/*
	 * "I am about to arm this CQ", and "I have armed it"; while
	 * HERALD_CQ_TELL_ARM is set, so that what is held back can be released
	 * at these moments.
	 *
	 * Errors: EINVAL: no such CQ in this context, or an unknown moment;
	 * ENODEV, EIO: the device is gone; before an arm, which then fails with
	 * it, what a fault says.
	 */
	HERALD_METHOD_ARMING,
	/*
	 * "I am about to post to this queue", while the ring's ask is set.
	 *
	 * Errors: EINVAL: no such queue in this context; ENODEV, EIO: the device
	 * is gone; or what the post is to fail with.
	 */
	HERALD_METHOD_POSTING,
};

enum herald_doorbell_attrs {
	HERALD_ATTR_DOORBELL = (1U << UVERBS_ID_NS_SHIFT),	/* in: struct herald_doorbell */
};

enum herald_doorbell_queues {
	HERALD_DOORBELL_SEND = 1 << 0,	/* after the SQ's producer index moved */
	HERALD_DOORBELL_RECV = 1 << 1,	/* as HERALD_RING_NEED_DOORBELL asks for it */
};

enum herald_arming_attrs {
	HERALD_ATTR_ARMING = (1U << UVERBS_ID_NS_SHIFT),	/* in: struct herald_arming */
};

enum herald_arming_moment {
	HERALD_ARMING_BEFORE	= 0,
	HERALD_ARMING_AFTER	= 1,
};

struct herald_arming {
	__u32 cq_id;		/* as create_cq answered it */
	__u32 moment;		/* enum herald_arming_moment */
};

enum herald_posting_attrs {
	HERALD_ATTR_POSTING = (1U << UVERBS_ID_NS_SHIFT),	/* in: struct herald_posting */
};

enum herald_posting_queue {
	HERALD_POSTING_SEND	= 0,
	HERALD_POSTING_RECV	= 1,
	HERALD_POSTING_SRQ	= 2,
};

struct herald_posting {
	__u32 number;		/* the QP's; of an SRQ, srq_num, as create_srq answered it */
	__u32 queue;		/* enum herald_posting_queue */
};

/* The attribute's value; it fits into struct ib_uverbs_attr.data. */
struct herald_doorbell {
	__u32 qpn;
	__u32 queues;		/* enum herald_doorbell_queues, at least one */
};

#endif /* HERALD_IOCTL_H */
