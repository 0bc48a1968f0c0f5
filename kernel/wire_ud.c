// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/* Datagrams over the wire. */
#include <linux/ip.h>
#include <linux/ipv6.h>

#include "ah.h"
#include "device.h"
#include "mr.h"
#include "pkt.h"
#include "psn.h"
#include "responder.h"
#include "wire_qp.h"
#include "wire_segments.h"
#include "wire_train.h"

#define GRH_LEN		40

bool herald_wire_send_datagram(struct herald_qp *qp, const struct herald_request *rq, u32 qpn)
{
	struct herald_train train;
	struct herald_pkt pkt;

	if (!qp->wire || !herald_dev_port_up(qp->dev))
		return false;
	if (!herald_train_begin_to(&train, qp, rq->src_av, rq->length)) {
		herald_count(qp->dev, HERALD_CTR_wire_no_memory);
		return true;
	}
	memset(&pkt, 0, sizeof(pkt));
	pkt.opcode = herald_pkt_request_opcode(HERALD_CLASS_UD, rq->opcode, true, true);
	pkt.solicited = rq->solicited;
	pkt.migreq = true;
	pkt.pkey = rq->pkey;
	pkt.dest_qpn = qpn;
	pkt.psn = qp->wire->req.psn;
	pkt.qkey = rq->qkey;
	pkt.src_qpn = qp->qpn;
	pkt.imm = rq->imm_or_rkey;
	qp->wire->req.psn = herald_psn_add(pkt.psn, 1);
	train.fate = qp->sq.fate;
	if (train.fate == HERALD_FATE_DUPLICATE)	/* which is sent as a second one */
		train.fate = HERALD_FATE_PASS;
	herald_train_add(&train, &pkt, rq->payload, rq->length);
	herald_train_send(&train);
	return true;
}

/* ------------------------------------------------------------ receiving -- */

/* The header that precedes the payload: RoCEv2 annex A17, IPv4 in the last 20 bytes. */
static void copy_grh(const struct sk_buff *skb, u32 udp_payload, u8 grh[GRH_LEN],
		     struct herald_av *av)
{
	u32 udp_len = udp_payload + sizeof(struct udphdr);

	memset(grh, 0, GRH_LEN);
	memset(av, 0, sizeof(*av));
	if (ip_hdr(skb)->version == 4) {
		struct iphdr ip = *ip_hdr(skb);

		ip.tot_len = htons(udp_len + sizeof(ip));
		memcpy(grh + GRH_LEN - sizeof(ip), &ip, sizeof(ip));
		av->net_type = RDMA_NETWORK_IPV4;
	} else {
		struct ipv6hdr ip6 = *ipv6_hdr(skb);

		ip6.payload_len = htons(udp_len);
		memcpy(grh, &ip6, sizeof(ip6));
		av->net_type = RDMA_NETWORK_IPV6;
	}
}

static bool is_for(struct herald_qp *qp, const struct herald_pkt *pkt,
		   const struct herald_pkt_row *row)
{
	if (row->qp_type_class != HERALD_CLASS_UD) {
		herald_count(qp->dev, HERALD_CTR_wire_wrong_service);
		return false;
	}
	if (READ_ONCE(qp->qkey) != pkt->qkey) {
		herald_count(qp->dev, HERALD_CTR_ud_dropped_qkey);
		return false;
	}
	if (!herald_pkey_matches(qp, pkt->pkey)) {
		herald_count(qp->dev, HERALD_CTR_ud_dropped_pkey);
		return false;
	}
	return true;
}

bool herald_wire_datagrams(struct herald_qp *qp, struct sk_buff *skb, struct herald_deferred *d)
{
	struct herald_segments segs = herald_segments(skb);
	const struct herald_pkt_row *row;
	enum herald_outcome out;
	struct herald_av av;
	struct herald_pkt pkt;
	u8 grh[GRH_LEN];

	while (herald_segments_next(&segs, qp, &pkt, &row)) {
		const struct herald_span span = {
			.linear = (void *)segs.payload, .length = pkt.payload_len,
		};
		struct herald_cursor payload __uninitialized;
		struct herald_request rq = {
			.opcode = row->wr_opcode, .solicited = pkt.solicited,
			.imm_or_rkey = pkt.imm, .length = pkt.payload_len,
			.piece = pkt.payload_len, .payload = &payload,
			.src_qpn = pkt.src_qpn, .src_av = &av, .qkey = pkt.qkey,
			.pkey = pkt.pkey, .grh = grh,
		};

		if (!is_for(qp, &pkt, row))
			continue;
		copy_grh(skb, pkt.hdr_len + pkt.payload_len + pkt.pad + HERALD_ICRC_LEN, grh, &av);
		herald_cursor_open(&payload, &span, 0, pkt.payload_len);
		herald_responder_execute(qp, &rq, &out, d);
	}
	return true;
}
