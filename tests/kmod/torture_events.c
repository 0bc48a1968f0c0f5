// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/*
 * The account of events, from both sides.  All polling and arming of a CQ that is
 * accounted for is under its lock, so what is known about the arm is exact:
 *
 * If the CQ was empty when it was armed ("sure"), the next completion that matches
 * must fire: one more in c->fired once it is polled.  If it is still empty when it
 * is armed again, the first arm cannot have fired, and the second adds nothing.
 * Any other arm may fire, once: one more in c->arms.
 */
#include "torture.h"

static void note_arm(struct torture_cq *c, enum torture_armed kind, bool empty, bool full)
{
	if (c->armed && c->sure && empty && !c->fuzzy) {
		c->arms--;
		c->armed = max(c->armed, kind);
		return;
	}
	/* what is there came after the arm */
	if (c->armed == TORTURE_ARMED_NEXT && c->sure && full && !c->fuzzy)
		WRITE_ONCE(c->fired, c->fired + 1);
	c->armed = kind;
	c->sure = empty && !c->fuzzy;
}

/* The CQ's lock is held. */
int torture_arm(struct torture_cq *c, int flags)
{
	bool solicited = flags & IB_CQ_SOLICITED;
	int ret;

	WRITE_ONCE(c->arms, c->arms + 1);
	ret = ib_req_notify_cq(c->cq, flags);
	c->last_flags = flags;
	c->last_ret = ret;
	c->calls++;
	c->hints += ret == 1;
	if (ret != 0 && (ret != 1 || !(flags & IB_CQ_REPORT_MISSED_EVENTS)))
		torture_fail(TORTURE_FLAG, "arming with %d returned %d", flags, ret);
	note_arm(c, solicited ? TORTURE_ARMED_SOLICITED : TORTURE_ARMED_NEXT,
		 (flags & IB_CQ_REPORT_MISSED_EVENTS) && !ret, ret == 1);
	return ret;
}

/* A completion was polled.  The CQ's lock is held, if it has an account. */
void torture_note_cqe(struct torture_cq *c, bool matching)
{
	if (!c->sure || !c->armed || (c->armed == TORTURE_ARMED_SOLICITED && !matching))
		return;
	WRITE_ONCE(c->fired, c->fired + 1);
	c->armed = TORTURE_UNARMED;
}

/* The handler was entered. */
void torture_note_event(struct torture_cq *c)
{
	u64 events = atomic64_inc_return(&c->events);

	/* each arm was counted before it could fire */
	if (events > READ_ONCE(c->arms))
		torture_fail(TORTURE_BOUND, "%s: event %llu, and no more than %llu arms",
			     torture_kind_names[c->kind], events, READ_ONCE(c->arms));
}

/*
 * Completions may vanish with their QP now: an event may be of one that nobody
 * will see, and a CQ may be empty that was not.
 */
void torture_set_fuzzy(struct torture_cq *c, bool fuzzy)
{
	unsigned long flags;

	spin_lock_irqsave(&c->lock, flags);
	c->fuzzy += fuzzy ? 1 : -1;
	c->sure = false;
	spin_unlock_irqrestore(&c->lock, flags);
}
