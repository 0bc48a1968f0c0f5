/* SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB */
/*
 * Automatic path migration (IBTA vol. 1, chapter 17).  The table is pure; the
 * functions that follow it switch a QP to its alternate path.
 */
#ifndef HERALD_PATH_MIGRATION_H
#define HERALD_PATH_MIGRATION_H

#include <linux/types.h>

/* What can happen to a QP's migration state (enum ib_mig_state). */
enum herald_mig_input {
	HERALD_MIG_SET_MIGRATED,	/* the consumer asks for a state */
	HERALD_MIG_SET_REARM,
	HERALD_MIG_SET_ARMED,
	HERALD_MIG_PEER_READY,		/* a packet came whose MigReq is 0 */
	HERALD_MIG_PEER_MOVED,		/* ... over the alternate path, and MigReq is 1 */
	HERALD_MIG_NO_ANSWER,		/* the retries are used up */
	HERALD_MIG_INPUTS
};

enum herald_mig_verdict {
	HERALD_MIG_KEEP,		/* the path stays as it is */
	HERALD_MIG_REFUSE,		/* not a thing to ask for now */
	HERALD_MIG_NEED_ALT,		/* an alternate path must be loaded, else it is refused */
	HERALD_MIG_MOVE,		/* to the alternate path, if that can be used */
};

struct herald_mig_step {
	u8 next;	/* enum ib_mig_state */
	u8 verdict;	/* enum herald_mig_verdict */
};

#define HERALD_MIG_STATES	3

/* PURE.  Bounds are the caller's. */
const struct herald_mig_step *herald_mig_table(int state, enum herald_mig_input input);

struct herald_av;
struct herald_deferred;
struct herald_qp;

/* ------------------------------------------------------------- paths -- */

/* A path's addresses may have come or gone, on any device: whoever relies on one looks again. */
void herald_paths_changed(void);

/*
 * Around every change of a QP's address vectors or P_Key indices; one of @av calls
 * herald_paths_changed() in between.  Context: qp->lock held.
 */
void herald_path_begin(struct herald_qp *qp);
void herald_path_end(struct herald_qp *qp);

/* The path of a QP and its partition, as of one moment.  Context: any. */
void herald_path_read(struct herald_qp *qp, struct herald_av *av, u16 *pkey);

/* What a message is to the QP that it was sent to */
enum herald_arrival {
	HERALD_NOT_FOR_US,	/* it did not come from the other end, or not over our path */
	HERALD_ARRIVES,
	HERALD_ARRIVES_ARMING,	/* ... from one who is ready to migrate; one is not armed yet */
	HERALD_ARRIVES_MOVED,	/* it came over the alternate path: its sender has migrated */
};

/**
 * herald_path_arrival - does a message get from one QP to another, and how?
 * @qp: the sender; the caller owns its requester
 * @peer: the receiver, whatever QP that may be
 *
 * It must be the other end of a connection, with the same path, or with an alternate
 * path if it is armed; both ends of the path must be there.  Ports are not looked at.
 * Context: any; no lock held.
 */
enum herald_arrival herald_path_arrival(struct herald_qp *qp, struct herald_qp *peer);

/*
 * The other end is ready to migrate: if this one is, it is armed now.  Does an answer
 * say that this one is ready?  Context: no lock held.
 */
bool herald_mig_peer_ready(struct herald_qp *qp);

/* --------------------------------------------------------- migration -- */

enum herald_mig_result {
	HERALD_MIG_NONE,	/* not armed: nothing happened */
	HERALD_MIG_DONE,	/* PATH_MIG: the alternate path is the path now */
	HERALD_MIG_FAILED,	/* PATH_MIG_ERR: the alternate path cannot be used, nor is it */
};

/**
 * herald_mig_move - migrate because of @why if the QP is armed
 * @qp: the QP
 * @why: what happened
 * @d: gets the event
 *
 * Afterwards the QP is in the state MIGRATED, whatever became of it.  If there
 * was no answer, the event of a failure is left to herald_mig_gave_up().
 * Context: any; no lock held.
 */
enum herald_mig_result herald_mig_move(struct herald_qp *qp, enum herald_mig_input why,
				       struct herald_deferred *d);

/* PATH_MIG_ERR, once the completion is seen that explains it.  Context: any; no lock held. */
void herald_mig_gave_up(struct herald_qp *qp, struct herald_deferred *d);

/*
 * As if the alternate path could not be used, if the QP is armed; else false.
 * Context: any; no lock held.
 */
bool herald_mig_refuse(struct herald_qp *qp, struct herald_deferred *d);

/*
 * A message of @peer, which has migrated, has come over @qp's alternate path: migrate,
 * too.  True if it can be taken now.  Context: any; no lock held.
 */
bool herald_mig_follow(struct herald_qp *qp, struct herald_qp *peer, struct herald_deferred *d);

/*
 * The same for a packet that came over the wire, from one GID to another, in the
 * partition @pkey.
 */
bool herald_mig_follow_from(struct herald_qp *qp, const union ib_gid *from, const union ib_gid *to,
			    u16 pkey, struct herald_deferred *d);

/*
 * How a packet from the wire arrives; @migreq: its sender is in the state MIGRATED.
 * Context: any; no lock held.
 */
enum herald_arrival herald_path_of_packet(struct herald_qp *qp, const union ib_gid *from,
					  const union ib_gid *to, u16 pkey, bool migreq);

/* May a modify set this state (as a process has it, so anything)?  Context: qp->lock held. */
bool herald_mig_may_set(const struct herald_qp *qp, int state, bool has_alt);

/* That modify has been made.  Context: qp->lock held. */
void herald_mig_set(struct herald_qp *qp, int state, struct herald_deferred *d);

#endif /* HERALD_PATH_MIGRATION_H */
