// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/* The module, and the proof that the host tests' shim speaks of the same values as the kernel. */
#include <linux/build_bug.h>
#include <linux/module.h>
#include <rdma/ib_verbs.h>
#include <rdma/herald-abi.h>

#include "ib_values.h"

#define SAME_VALUE(name, value) static_assert((name) == (value));
HERALD_IB_VALUES(SAME_VALUE)
#undef SAME_VALUE

/* The layout that processes of every word size share. */
static_assert(sizeof(struct herald_ring_ctl) == HERALD_RING_DATA_OFFSET);
static_assert(sizeof(struct herald_cq_ctl) == HERALD_CQ_DATA_OFFSET);
static_assert(offsetof(struct herald_ring_ctl, consumer) == HERALD_CACHE_LINE);
static_assert(offsetof(struct herald_cq_ctl, arm) == HERALD_CACHE_LINE);
static_assert(sizeof(struct herald_cqe) == 64);
static_assert(sizeof(struct herald_send_wqe) == HERALD_SEND_WQE_HDR);
static_assert(sizeof(struct herald_recv_wqe) == HERALD_RECV_WQE_HDR);

MODULE_DESCRIPTION("herald: KUnit tests of the pure tables");
MODULE_LICENSE("Dual BSD/GPL");
