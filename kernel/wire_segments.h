/* SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB */
/*
 * The packets of a train that was received.  Middle packets that follow each
 * other are taken together: their headers differ in nothing but the PSN.
 */
#ifndef HERALD_WIRE_SEGMENTS_H
#define HERALD_WIRE_SEGMENTS_H

#include "pkt.h"
#include "wire.h"

struct herald_qp;

/**
 * struct herald_segments - a walk along a train
 * @i: the next packet, @end: behind the last one
 * @payload: of the packets that were just taken, @stride: from one's to the next one's
 * @count: how many they are
 * @requests: set by whoever has to answer for requests that make no sense: malformed ones
 *	of a reliable connection are taken, too ...
 * @malformed: ... and this was one: only its BTH is valid, and its row may be that of no opcode
 */
struct herald_segments {
	struct sk_buff *skb;
	u16 i, end;
	const u8 *payload;
	u32 stride;
	u32 count;
	bool requests;
	bool malformed;
};

struct herald_segments herald_segments(struct sk_buff *skb);

/*
 * Take the next ones.  Damaged and senseless ones are skipped, and counted.  false: no more.
 * Context: any.
 */
bool herald_segments_next(struct herald_segments *s, struct herald_qp *qp, struct herald_pkt *pkt,
			  const struct herald_pkt_row **row);

/* Give the last ones back: they are taken again, next time. */
static inline void herald_segments_back(struct herald_segments *s)
{
	s->i -= s->count;
}

/* Only the first @n of the last ones were taken: the next ones begin behind them. */
static inline void herald_segments_trim(struct herald_segments *s, u32 n)
{
	s->i -= s->count - n;
	s->count = n;
}

/* What is left is taken next time. */
void herald_segments_keep(const struct herald_segments *s);

#endif /* HERALD_WIRE_SEGMENTS_H */
