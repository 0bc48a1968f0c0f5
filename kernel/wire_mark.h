/* SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB */
/*
 * A train that has not left this host's memory need not be checked for damage.
 *
 * The sender leaves a mark in the skb's unused headroom, which says what it has sealed.
 * The receiver believes it under the condition under which the stack does without the UDP
 * checksum: the skb still waits for that to be filled in (CHECKSUM_PARTIAL).  Whoever
 * changes data on purpose (netem) or copies a packet to where it may be damaged, fills
 * it in first.  Packets that others have made have no mark, and are checked.
 */
#ifndef HERALD_WIRE_MARK_H
#define HERALD_WIRE_MARK_H

#include <linux/skbuff.h>
#include <rdma/ib_verbs.h>

/* What the headroom has to have room for, beside the headers */
#define HERALD_MARK_LEN	64

/* Once, before anything is sent. */
void herald_mark_init(void);

/*
 * Mark a train whose iCRCs are right.  @payload: its first BTH.  Context: any.
 */
void herald_mark_put(struct sk_buff *skb, const u8 *payload, const union ib_gid *sgid,
		     const union ib_gid *dgid, u32 seg_len);

/* Is it one that left like this?  skb->data is the first BTH.  Context: any. */
bool herald_mark_holds(const struct sk_buff *skb, const union ib_gid *sgid,
		       const union ib_gid *dgid, u32 seg_len);

#endif /* HERALD_WIRE_MARK_H */
