// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/* The packets of a train that was received. */
#include "device.h"
#include "psn.h"
#include "qp.h"
#include "wire_segments.h"

struct herald_segments herald_segments(struct sk_buff *skb)
{
	const struct herald_wire_cb *cb = herald_wire_cb(skb);

	return (struct herald_segments){
		.skb = skb, .i = cb->first, .end = cb->first + cb->count,
	};
}

static bool is_middle(const struct herald_pkt *pkt)
{
	return (herald_pkt_row(pkt->opcode)->flags & HERALD_PKT_MIDDLE) && !pkt->ack_req;
}

/* May packet @i be taken together with @pkt, which is the one @n before it? */
static bool follows(const struct herald_segments *s, u16 i, const struct herald_pkt *pkt, u32 n)
{
	struct herald_pkt next;
	const u8 *buf;
	u32 len;

	if (i >= s->end || herald_wire_bad(s->skb, i))
		return false;
	buf = herald_wire_segment(s->skb, i, &len);
	return len == herald_wire_cb(s->skb)->seg_len && !herald_pkt_parse(&next, buf, len) &&
	       next.opcode == pkt->opcode && next.psn == herald_psn_add(pkt->psn, n) &&
	       next.payload_len == pkt->payload_len && next.pkey == pkt->pkey &&
	       next.migreq == pkt->migreq && is_middle(&next);
}

/* Is it told to its sender that this makes no sense?  @why: of herald_pkt_parse() */
static bool is_answered(const struct herald_segments *s, const struct herald_pkt *pkt, int why)
{
	return s->requests && -why >= HERALD_PKT_BAD_OPCODE &&
	       (pkt->opcode & HERALD_CLASS_MASK) == HERALD_CLASS_RC;
}

bool herald_segments_next(struct herald_segments *s, struct herald_qp *qp, struct herald_pkt *pkt,
			  const struct herald_pkt_row **row)
{
	const u8 *buf;
	int why = 0;
	u32 len;

	for (; s->i < s->end; s->i++) {
		if (herald_wire_bad(s->skb, s->i))
			continue;
		buf = herald_wire_segment(s->skb, s->i, &len);
		why = herald_pkt_parse(pkt, buf, len);
		if (!why)
			break;
		herald_count(qp->dev, HERALD_CTR_wire_rx_malformed);
		if (is_answered(s, pkt, why))
			break;
	}
	if (s->i >= s->end)
		return false;

	*row = herald_pkt_row(pkt->opcode);
	s->malformed = why;
	s->payload = buf + pkt->hdr_len;
	s->stride = herald_wire_cb(s->skb)->seg_len;
	s->count = 1;
	if (!why && is_middle(pkt) && !pkt->pad)
		while (follows(s, s->i + s->count, pkt, s->count))
			s->count++;
	s->i += s->count;
	return true;
}

void herald_segments_keep(const struct herald_segments *s)
{
	struct herald_wire_cb *cb = herald_wire_cb(s->skb);

	cb->first = s->i;
	cb->count = s->end - s->i;
}
