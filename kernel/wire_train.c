// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/* Building a train: packets of one connection that leave as one skb. */
#include "device.h"
#include "mr.h"
#include "path_migration.h"
#include "psn.h"
#include "qp.h"
#include "wire_train.h"

#define BTH_ACK_REQ	0x80	/* in the byte before the PSN */

/* Large pieces of memory are rare on a busy host. */
static struct sk_buff *alloc_train(u32 seg_len, u32 *n)
{
	struct sk_buff *skb = NULL;
	u32 room;

	for (; *n && !skb; *n = skb ? *n : *n / 2) {
		/* the first or the last one may have more headers */
		room = HERALD_PKT_HDR_MAX + *n * seg_len;
		skb = herald_wire_alloc(room, GFP_ATOMIC | __GFP_NOWARN);
	}
	return skb;
}

u32 herald_train_begin(struct herald_train *t, struct herald_qp *qp, struct herald_route *route,
		       u32 n, u32 seg_len)
{
	t->skb = alloc_train(seg_len, &n);
	if (!t->skb) {
		herald_count(qp->dev, HERALD_CTR_wire_no_memory);
		return 0;
	}
	t->qp = qp;
	t->route = route;
	herald_path_read(qp, &t->av, &t->pkey);
	t->migreq = READ_ONCE(qp->attr.path_mig_state) == IB_MIG_MIGRATED;
	t->count = 0;
	t->fate = HERALD_FATE_UNKNOWN;
	t->repeated = false;
	return n;
}

bool herald_train_begin_to(struct herald_train *t, struct herald_qp *qp,
			   const struct herald_av *av, u32 length)
{
	t->skb = herald_wire_alloc(HERALD_PKT_HDR_MAX + length + 3 + HERALD_ICRC_LEN,
				   GFP_ATOMIC | __GFP_NOWARN);
	if (!t->skb)
		return false;
	t->qp = qp;
	t->route = NULL;
	t->av = *av;
	t->count = 0;
	t->fate = HERALD_FATE_UNKNOWN;
	t->repeated = false;
	return true;
}

void herald_train_packet(const struct herald_train *t, struct herald_pkt *pkt)
{
	memset(pkt, 0, sizeof(*pkt));
	pkt->dest_qpn = t->qp->dest_qpn;
	pkt->pkey = t->pkey;
	pkt->migreq = t->migreq;
}

static u8 *add_headers(struct herald_train *t, struct herald_pkt *pkt, u32 length)
{
	u8 headers[HERALD_PKT_HDR_MAX];
	u32 n;

	pkt->pad = herald_pkt_pad(length);
	n = herald_pkt_emit(pkt, headers);
	skb_put_data(t->skb, headers, n);
	if (!t->count++)
		t->seg_len = n + length + pkt->pad + HERALD_ICRC_LEN;
	return skb_put(t->skb, length);
}

static void add_trailer(struct herald_train *t, const struct herald_pkt *pkt)
{
	/* the pad; the checksum's place is filled in when the packet leaves */
	skb_put_zero(t->skb, pkt->pad + HERALD_ICRC_LEN);
}

void herald_train_add(struct herald_train *t, struct herald_pkt *pkt, struct herald_cursor *from,
		      u32 length)
{
	struct herald_span span = { .length = length };
	struct herald_cursor to __uninitialized;

	span.linear = add_headers(t, pkt, length);
	if (length && !herald_cursor_open(&to, &span, 0, length))
		herald_cursor_move(&to, from, length);
	add_trailer(t, pkt);
}

u8 *herald_train_reserve(struct herald_train *t, struct herald_pkt *pkt, u32 n, u32 length,
			 u32 *gap)
{
	u8 *first = NULL, *at;
	u32 i;

	*gap = 0;
	for (i = 0; i < n; i++) {
		at = add_headers(t, pkt, length);
		if (!first)
			first = at;
		else if (i == 1)
			*gap = at - first - length;
		add_trailer(t, pkt);
		pkt->psn = herald_psn_add(pkt->psn, 1);
	}
	return first;
}

void herald_train_ask(struct herald_train *t)
{
	t->skb->data[(t->count - 1) * t->seg_len + 8] |= BTH_ACK_REQ;
}

static void transmit(struct herald_train *t, struct sk_buff *skb)
{
	struct herald_qp *qp = t->qp;
	struct herald_route once, *route = t->route ?: &once;
	u16 sport = rdma_get_udp_sport(t->av.flow_label, qp->qpn, qp->dest_qpn);

	herald_wire_cb(skb)->qpn = qp->qpn;
	herald_wire_cb(skb)->repeated = t->repeated;
	if (!t->route)
		herald_route_init(&once);
	herald_wire_xmit(qp->dev, &t->av, route, sport, skb, t->seg_len, t->count);
	if (!t->route)
		herald_route_drop(qp->dev, &once);
}

/* As if the ones after them had come first: they seem to be those. */
static void overtake(struct herald_train *t)
{
	u32 i;

	for (i = 0; i < t->count; i++) {
		u8 *bth = t->skb->data + i * t->seg_len;
		u32 psn = bth[9] << 16 | bth[10] << 8 | bth[11];

		psn = herald_psn_add(psn, t->ahead);
		bth[9] = psn >> 16;
		bth[10] = psn >> 8;
		bth[11] = psn;
	}
}

void herald_train_send(struct herald_train *t)
{
	struct sk_buff *twin = NULL;

	switch (t->fate) {
	case HERALD_FATE_LOSE:
		return herald_train_drop(t);
	case HERALD_FATE_CORRUPT:
		herald_wire_cb(t->skb)->damage = true;
		break;
	case HERALD_FATE_REORDER:
		/* whoever does not ask for it again never gets it */
		if (t->qp->type != IB_QPT_RC) {
			herald_count(t->qp->dev, HERALD_CTR_uc_dropped);
			return herald_train_drop(t);
		}
		overtake(t);
		break;
	case HERALD_FATE_DUPLICATE:
		twin = skb_copy(t->skb, GFP_ATOMIC | __GFP_NOWARN);
		break;
	}
	transmit(t, t->skb);
	if (twin)
		transmit(t, twin);
}

void herald_train_drop(struct herald_train *t)
{
	kfree_skb(t->skb);
}
