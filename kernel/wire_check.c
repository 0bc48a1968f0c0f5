// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/* PURE: what a responder on the wire asks of a packet before it executes it. */
#include <linux/types.h>
#include <rdma/herald-abi.h>

#include "limits.h"
#include "opcode.h"
#include "pkt.h"
#include "psn.h"
#include "wire_check.h"

/* ---------------------------------------------------------------- the PSN -- */

enum herald_wire_place herald_wire_place(u32 psn, u32 count, u32 expected, u32 *skip)
{
	s32 ahead = herald_psn_diff(psn, expected);

	if (ahead > 0)
		return HERALD_PLACE_EARLY;
	if (ahead + (s32)count <= 0)
		return HERALD_PLACE_DUPLICATE;
	*skip = -ahead;
	return HERALD_PLACE_EXPECTED;
}

/* ----------------------------------------------------- opcode and length -- */

static bool in_order(const struct herald_wire_check *c)
{
	if (c->row->flags & HERALD_PKT_FIRST)
		return !c->message;
	return c->message == c->row->kind;
}

/* How much one packet of its kind may bring, whatever the message is. */
static bool right_payload(const struct herald_wire_check *c)
{
	u32 len = c->pkt->payload_len;

	if (!(c->row->flags & HERALD_PKT_LAST))
		return len == c->mtu;
	if (len > c->mtu || (!(c->row->flags & HERALD_PKT_FIRST) && !len))
		return false;
	return c->row->kind != HERALD_KIND_ATOMIC_WRITE || len == sizeof(u64);
}

/* The message ends where it said that it would. */
static bool last_fits(const struct herald_wire_check *c)
{
	u32 len = c->pkt->payload_len;

	switch (c->row->kind) {
	case HERALD_KIND_SEND:
		return (c->row->flags & HERALD_PKT_FIRST) || c->offset + len <= HERALD_MAX_MSG;
	case HERALD_KIND_WRITE:
		if (c->row->flags & HERALD_PKT_FIRST)
			return c->pkt->dmalen == len;
		return c->offset + len == c->length;
	default:
		return true;
	}
}

/* How many packets, all of the path MTU, leave something for one behind them. */
static u32 fitting(const struct herald_wire_check *c)
{
	bool first = c->row->flags & HERALD_PKT_FIRST;
	u64 offset = first ? 0 : c->offset;
	u64 end = HERALD_MAX_MSG;

	if (c->row->kind == HERALD_KIND_WRITE)
		end = first ? c->pkt->dmalen : c->length;
	if (end > HERALD_MAX_MSG || offset >= end)
		return 0;
	if (offset + (u64)c->count * c->mtu < end)
		return c->count;
	return (u32)(end - offset - 1) / c->mtu;
}

u32 herald_wire_check(const struct herald_wire_check *c)
{
	if (!in_order(c) || !right_payload(c))
		return 0;
	if (c->row->flags & HERALD_PKT_LAST)
		return last_fits(c);
	return fitting(c);
}

/* ------------------------------------------------------------- duplicates -- */

bool herald_wire_is_done(const struct herald_wire_done *done, const struct herald_pkt *pkt)
{
	return done->valid && done->opcode == pkt->opcode &&
	       herald_psn_diff(pkt->psn, done->first) >= 0 &&
	       herald_psn_diff(pkt->psn, done->last) <= 0;
}

bool herald_wire_reads_again(const struct herald_wire_done *done, const struct herald_pkt *pkt,
			     u32 mtu)
{
	u64 offset = (u64)herald_psn_diff(pkt->psn, done->first) * mtu;

	return pkt->rkey == done->rkey && pkt->va == done->va + offset &&
	       pkt->dmalen <= done->length - offset;
}
