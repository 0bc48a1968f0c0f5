// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
// The headers of the pure files, for C++. By path, because a -I for kernel/ would make its limits.h <limits.h>.
#ifndef HERALD_UNIT_PURE_H
#define HERALD_UNIT_PURE_H

#include <linux/types.h>

extern "C" {
#include <rdma/herald-abi.h>
#include <rdma/ib_verbs.h>

#include "../../../kernel/completion.h"
#include "../../../kernel/notify.h"
#include "../../../kernel/opcode.h"
#include "../../../kernel/path_migration.h"
#include "../../../kernel/pkt.h"
#include "../../../kernel/psn.h"
#include "../../../kernel/qp_state.h"
#include "../../../kernel/timer.h"
}

#endif
