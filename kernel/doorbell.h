/* SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB */
/* The doorbell of processes' queues. */
#ifndef HERALD_DOORBELL_H
#define HERALD_DOORBELL_H

#include <rdma/uverbs_ioctl.h>

struct herald_qp;

/* For ib_device.driver_def. */
extern const struct uapi_definition herald_uapi_definitions[];

/*
 * post.c: a process's WRs are in the ring.  0, or -EINVAL in a state that takes
 * none.  Context: process, may sleep.
 */
int herald_ring_send_doorbell(struct herald_qp *qp);
int herald_ring_recv_doorbell(struct herald_qp *qp);

#endif /* HERALD_DOORBELL_H */
