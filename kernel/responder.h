/* SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB */
/* The responder: what a QP does with a request that reached it. */
#ifndef HERALD_RESPONDER_H
#define HERALD_RESPONDER_H

#include "mr.h"
#include "transport.h"

struct herald_qp;
struct herald_deferred;

/**
 * struct herald_request - a request, or a piece of one, as a transport hands it over
 * @opcode: enum herald_wr_opcode
 * @solicited, @with_imm, @imm_or_rkey: of the message
 * @finish: all of it was done, but for what HERALD_AGAIN asked for
 * @length: bytes of the whole message
 * @offset: where this piece begins
 * @piece: bytes in this piece; 0 only for an empty message
 * @payload: where the data comes from, or goes to (READ, atomics); open for
 *	this piece
 * @remote_addr, @rkey, @compare_add, @swap: as the operation has them
 * @src_qpn: who sent it
 * @src_av, @qkey, @pkey: datagrams; 0: the sender has no P_Key
 * @grh: datagrams: the 40 bytes that precede the payload
 * @duplicate: it was done already
 * @repeated: a READ that was answered before: that it cannot be any more is nobody's fault
 * @verdict: what is to be found wrong with it, on purpose; HERALD_OK: nothing
 */
struct herald_request {
	u8 opcode;
	bool solicited;
	u32 imm_or_rkey;
	bool finish;
	u64 length;
	u64 offset;
	u32 piece;
	struct herald_cursor *payload;
	u64 remote_addr;
	u32 rkey;
	u64 compare_add;
	u64 swap;
	u32 src_qpn;
	const struct herald_av *src_av;
	u32 qkey;
	u16 pkey;
	const u8 *grh;
	bool duplicate;
	bool repeated;
	u8 verdict;
	u32 flush_placement;
	u32 flush_selectivity;
};

/**
 * herald_responder_execute - do one piece of a request
 * @qp: the QP it is for; the caller owns its responder
 * @rq: the request
 * @outcome: set with HERALD_DONE
 * @d: gets completions' events
 *
 * Return: HERALD_MORE, HERALD_DONE or HERALD_AGAIN.
 * Context: any; no lock held; does not sleep.
 */
enum herald_progress herald_responder_execute(struct herald_qp *qp, const struct herald_request *rq,
					      enum herald_outcome *outcome,
					      struct herald_deferred *d);

/*
 * What follows for this end from a request that was found wrong before it could
 * be executed; returns what the requester is to be told.  Context: as execute.
 */
enum herald_outcome herald_responder_refuse(struct herald_qp *qp, enum herald_outcome why,
					    struct herald_deferred *d);

/* What a responder finds that gives the send WR @status; HERALD_OK: nothing does.  Context: any. */
enum herald_outcome herald_responder_verdict(int status);

/**
 * herald_responder_own - own a QP's responder
 * @qp: the QP
 * @waiter: the requester to be kicked once it is free again, or NULL
 *
 * Return: true if owned; false: @waiter is on the list.
 * Context: any.
 */
bool herald_responder_own(struct herald_qp *qp, struct herald_qp *waiter);

/* Let go; flushes first if the state asks for it, and kicks all waiters.  Context: any; no lock. */
void herald_responder_release(struct herald_qp *qp, struct herald_deferred *d);

/* The state has changed, or a receive WR was posted in ERR: flush if it asks for it. */
void herald_responder_kick(struct herald_qp *qp, struct herald_deferred *d);

void herald_responder_init(struct herald_qp *qp);
/* Wait until idle; the state must forbid work.  May sleep. */
void herald_responder_stop(struct herald_qp *qp);
void herald_responder_reset(struct herald_qp *qp);

#endif /* HERALD_RESPONDER_H */
