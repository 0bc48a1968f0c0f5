/* SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB */
/*
 * PURE: what a responder on the wire asks of a packet before it executes it
 * (IBTA vol. 1, 9.7.4.1): is it the expected one, does its opcode follow from the
 * one before, is its length right; and whether a duplicate is one.
 */
#ifndef HERALD_WIRE_CHECK_H
#define HERALD_WIRE_CHECK_H

#include <linux/types.h>

struct herald_pkt;
struct herald_pkt_row;

/* ---------------------------------------------------------------- the PSN -- */

enum herald_wire_place {
	HERALD_PLACE_DUPLICATE,		/* all of them came before */
	HERALD_PLACE_EXPECTED,
	HERALD_PLACE_EARLY,		/* something is missing before them */
};

/**
 * herald_wire_place() - where packets stand in the sequence
 * @psn: of the first
 * @count: how many they are, with PSNs one by one
 * @expected: the PSN that is expected
 * @skip: set if the place is EXPECTED: how many of them came before; fewer than @count
 *
 * Return: the place.
 * Context: any.
 */
enum herald_wire_place herald_wire_place(u32 psn, u32 count, u32 expected, u32 *skip);

/* ----------------------------------------------------- opcode and length -- */

/**
 * struct herald_wire_check - packets of a request, and what they come after
 * @pkt: the first of them; the others differ from it in their PSN only
 * @row: its opcode's
 * @count: how many they are: more than one only of the middle of a message
 * @mtu: path MTU
 * @message: enum herald_op_kind of the message under way, 0 for none
 * @offset: bytes of it that have arrived
 * @length: a WRITE's bytes
 */
struct herald_wire_check {
	const struct herald_pkt *pkt;
	const struct herald_pkt_row *row;
	u32 count;
	u32 mtu;
	u8 message;
	u64 offset;
	u64 length;
};

/**
 * herald_wire_check() - opcode and length
 * @c: of which packets
 *
 * Return: how many of them are right, before the first one that is not: @count, or fewer; at
 * 0 the first one is an invalid request.
 * Context: any.
 */
u32 herald_wire_check(const struct herald_wire_check *c);

/* ------------------------------------------------------------- duplicates -- */

/* One READ or atomic that may have to be answered again. */
struct herald_wire_done {
	u32 first, last;	/* PSNs of the response */
	u8 opcode;		/* of the request, as on the wire */
	bool valid;
	u64 va;			/* READ */
	u64 length;
	u32 rkey;
	u64 value;		/* atomics: what was there before */
};

/* Is the packet that request, or asks for a part of its answer?  Context: any. */
bool herald_wire_is_done(const struct herald_wire_done *done, const struct herald_pkt *pkt);

/*
 * May a READ that is that one be executed again?  Only what was read before: the same key, and the
 * part of the range that the PSN says.  Context: any.
 */
bool herald_wire_reads_again(const struct herald_wire_done *done, const struct herald_pkt *pkt,
			     u32 mtu);

#endif /* HERALD_WIRE_CHECK_H */
