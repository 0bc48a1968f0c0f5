/* SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB */
/* What the pure files need of the kernel's verbs, in user space: constants. */
#ifndef HERALD_SHIM_RDMA_IB_VERBS_H
#define HERALD_SHIM_RDMA_IB_VERBS_H

#include <linux/types.h>

#include "../../kunit/ib_values.h"

enum herald_shim_ib_values {
#define HERALD_SHIM_VALUE(name, value) name = value,
	HERALD_IB_VALUES(HERALD_SHIM_VALUE)
#undef HERALD_SHIM_VALUE
};

#endif /* HERALD_SHIM_RDMA_IB_VERBS_H */
