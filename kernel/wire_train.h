/* SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB */
/* Building a train: packets of one connection that leave as one skb. */
#ifndef HERALD_WIRE_TRAIN_H
#define HERALD_WIRE_TRAIN_H

#include "ah.h"
#include "pkt.h"
#include "qp.h"
#include "wire.h"

struct herald_cursor;

/**
 * struct herald_train - a train being built
 * @av, @pkey: the path, as it was when it began
 * @seg_len: of the first packet; only the last one may be shorter
 * @fate: what becomes of it on the way, on purpose: enum herald_fate
 * @repeated: its first packet was sent before
 * @ahead: by how many PSNs it is sent too early if it is to be overtaken
 */
struct herald_train {
	struct herald_qp *qp;
	struct herald_route *route;
	struct sk_buff *skb;
	struct herald_av av;
	u16 pkey;
	bool migreq;
	u32 seg_len;
	u32 count;
	u8 fate;
	bool repeated;
	u32 ahead;
};

/* From the BTH to the iCRC: a packet of a message in several, and one without a payload */
static inline u32 herald_train_middle_len(const struct herald_qp *qp)
{
	return HERALD_BTH_LEN + qp->mtu + HERALD_ICRC_LEN;
}

#define HERALD_TRAIN_BARE_LEN	(HERALD_PKT_HDR_MAX + HERALD_ICRC_LEN)

/*
 * Begin one of at most @n packets of @seg_len bytes each, of which one may be longer by as much
 * as the extended headers are.
 * Return: how many there is memory for; 0: none.
 * Context: any; the owner of @route.
 */
u32 herald_train_begin(struct herald_train *t, struct herald_qp *qp, struct herald_route *route,
		       u32 n, u32 seg_len);

/* Begin a datagram of @length bytes.  false: there is no memory. */
bool herald_train_begin_to(struct herald_train *t, struct herald_qp *qp,
			   const struct herald_av *av, u32 length);

/* Fill in what all packets of the train share; the rest is 0. */
void herald_train_packet(const struct herald_train *t, struct herald_pkt *pkt);

/* Append a packet with @length bytes of payload from a cursor that is open for them. */
void herald_train_add(struct herald_train *t, struct herald_pkt *pkt, struct herald_cursor *from,
		      u32 length);

/*
 * Append @n packets with the same headers, but for their PSNs, and a payload of @length bytes
 * each.  Return: where the first one's payload belongs; the next ones' follow @gap bytes after
 * the end of the one before.
 */
u8 *herald_train_reserve(struct herald_train *t, struct herald_pkt *pkt, u32 n, u32 length,
			 u32 *gap);

/* The last packet asks for an answer. */
void herald_train_ask(struct herald_train *t);

/* Send it.  What cannot be sent is lost, and counted. */
void herald_train_send(struct herald_train *t);
void herald_train_drop(struct herald_train *t);

#endif /* HERALD_WIRE_TRAIN_H */
