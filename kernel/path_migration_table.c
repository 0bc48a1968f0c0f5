// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/*
 * PURE: automatic path migration, one row per state.
 *
 * Only the device arms, and only what the consumer has made ready; only what is
 * armed moves.  A failed move ends in the same state as one that worked: the
 * consumer must load an alternate path and make ready again.
 */
#include <linux/types.h>
#include <rdma/ib_verbs.h>

#include "path_migration.h"

#define STEP(next_, verdict_) { .next = IB_MIG_##next_, .verdict = HERALD_MIG_##verdict_ }

static const struct herald_mig_step mig_table[HERALD_MIG_STATES][HERALD_MIG_INPUTS] = {
	[IB_MIG_MIGRATED] = {
		/* what it is already; programs say so on their way to RTS */
		[HERALD_MIG_SET_MIGRATED]	= STEP(MIGRATED, KEEP),
		[HERALD_MIG_SET_REARM]		= STEP(REARM, NEED_ALT),
		[HERALD_MIG_SET_ARMED]		= STEP(MIGRATED, REFUSE),
		[HERALD_MIG_PEER_READY]		= STEP(MIGRATED, KEEP),
		[HERALD_MIG_PEER_MOVED]		= STEP(MIGRATED, KEEP),
		[HERALD_MIG_NO_ANSWER]		= STEP(MIGRATED, KEEP),
	},
	[IB_MIG_REARM] = {
		[HERALD_MIG_SET_MIGRATED]	= STEP(REARM, REFUSE),
		[HERALD_MIG_SET_REARM]		= STEP(REARM, REFUSE),
		[HERALD_MIG_SET_ARMED]		= STEP(REARM, REFUSE),
		[HERALD_MIG_PEER_READY]		= STEP(ARMED, KEEP),
		[HERALD_MIG_PEER_MOVED]		= STEP(REARM, KEEP),
		[HERALD_MIG_NO_ANSWER]		= STEP(REARM, KEEP),
	},
	[IB_MIG_ARMED] = {
		[HERALD_MIG_SET_MIGRATED]	= STEP(MIGRATED, MOVE),
		[HERALD_MIG_SET_REARM]		= STEP(ARMED, REFUSE),
		[HERALD_MIG_SET_ARMED]		= STEP(ARMED, REFUSE),
		[HERALD_MIG_PEER_READY]		= STEP(ARMED, KEEP),
		[HERALD_MIG_PEER_MOVED]		= STEP(MIGRATED, MOVE),
		[HERALD_MIG_NO_ANSWER]		= STEP(MIGRATED, MOVE),
	},
};

const struct herald_mig_step *herald_mig_table(int state, enum herald_mig_input input)
{
	return &mig_table[state][input];
}
