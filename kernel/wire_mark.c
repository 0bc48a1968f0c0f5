// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/* The mark of a train that has not left this host's memory. */
#include <linux/random.h>

#include "pkt.h"
#include "wire_mark.h"

/*
 * At the very beginning of the skb's memory.  What was there before is not cleared from
 * all memory: so it says what the train is, and nobody else knows the secret.
 */
struct mark {
	u64 secret;
	union ib_gid sgid;
	union ib_gid dgid;
	u32 len;
	u32 seg_len;
	u32 icrc;	/* the last one */
};

static_assert(sizeof(struct mark) <= HERALD_MARK_LEN);

static u64 secret;

void herald_mark_init(void)
{
	secret = get_random_u64();
}

void herald_mark_put(struct sk_buff *skb, const u8 *payload, const union ib_gid *sgid,
		     const union ib_gid *dgid, u32 seg_len)
{
	struct mark mark = {
		.secret = secret, .sgid = *sgid, .dgid = *dgid,
		.len = skb_tail_pointer(skb) - payload, .seg_len = seg_len,
		.icrc = herald_icrc_get(skb_tail_pointer(skb) - HERALD_ICRC_LEN),
	};

	if (skb_headroom(skb) >= sizeof(mark))
		memcpy(skb->head, &mark, sizeof(mark));
}

bool herald_mark_holds(const struct sk_buff *skb, const union ib_gid *sgid,
		       const union ib_gid *dgid, u32 seg_len)
{
	struct mark mark;

	if (skb->ip_summed != CHECKSUM_PARTIAL || skb_is_nonlinear(skb) ||
	    skb_network_header(skb) < skb->head + sizeof(mark))
		return false;
	memcpy(&mark, skb->head, sizeof(mark));
	return mark.secret == secret && mark.len == skb->len && mark.seg_len == seg_len &&
	       mark.icrc == herald_icrc_get(skb_tail_pointer(skb) - HERALD_ICRC_LEN) &&
	       !memcmp(&mark.sgid, sgid, sizeof(*sgid)) &&
	       !memcmp(&mark.dgid, dgid, sizeof(*dgid));
}
