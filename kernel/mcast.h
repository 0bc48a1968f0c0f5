/* SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB */
/* Multicast groups: which QPs of a device have attached to which group. */
#ifndef HERALD_MCAST_H
#define HERALD_MCAST_H

#include <rdma/ib_verbs.h>

struct herald_dev;
struct herald_qp;

/* ib_device_ops.  Only UD QPs; a second attach of the same pair is harmless. */
int herald_attach_mcast(struct ib_qp *ibqp, union ib_gid *gid, u16 lid);
int herald_detach_mcast(struct ib_qp *ibqp, union ib_gid *gid, u16 lid);

/**
 * herald_mcast_members - the QPs attached to a group
 * @dev: the device
 * @gid: the group
 * @qps: filled with referenced QPs (herald_qp_put() each)
 * @max: room in @qps
 * @after: where the last call stopped, to page through a large group; 0: at the beginning
 *
 * Whoever is attached all the while is returned once, whoever else comes or goes meanwhile.
 *
 * Return: how many were filled in.
 * Context: any.
 */
int herald_mcast_members(struct herald_dev *dev, const union ib_gid *gid, struct herald_qp **qps,
			 int max, u64 *after);

/* Take @qp out of all groups (destroy).  Context: process. */
void herald_mcast_forget(struct herald_qp *qp);

#endif /* HERALD_MCAST_H */
