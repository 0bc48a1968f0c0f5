/* SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB */
/* herald's own methods of the uverbs ioctl: the doorbell, and announced arms. */
#ifndef HERALD_IOCTL_METHODS_H
#define HERALD_IOCTL_METHODS_H

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

#endif /* HERALD_IOCTL_METHODS_H */
