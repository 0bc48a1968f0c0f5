// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/*
 * Automatic path migration: a QP's move to its alternate path.
 *
 * A path is an address vector, a P_Key index and a timeout.  It may change while
 * the QP's own requester and its peers' look at it, who do not take its lock:
 * qp->path_seq tells them that what they read was not all of one path.  No two
 * QPs' locks are held at once: a migration that spreads to the other end does so
 * by the next message, as it would on a wire.
 */
#include "counters.h"
#include "device.h"
#include "event.h"
#include "path_migration.h"
#include "qp.h"

/* -------------------------------------------------------------- paths -- */

static atomic64_t generation __read_mostly = ATOMIC64_INIT(1);

static s64 paths_generation(void)
{
	/* what is looked at afterwards is no older: pairs with herald_paths_changed() */
	return atomic64_read_acquire(&generation);
}

void herald_paths_changed(void)
{
	/* a full barrier: the change is visible before the number is */
	atomic64_inc_return(&generation);
}

void herald_path_begin(struct herald_qp *qp)
{
	lockdep_assert_held(&qp->lock);
	write_seqcount_begin(&qp->path_seq);
}

void herald_path_end(struct herald_qp *qp)
{
	write_seqcount_end(&qp->path_seq);
}

static u16 alt_partition(const struct herald_qp *qp)
{
	return herald_dev_pkey(qp->dev, READ_ONCE(qp->attr.alt_pkey_index));
}

/* The path of a QP, as a message has it that was sent over it. */
void herald_path_read(struct herald_qp *qp, struct herald_av *av, u16 *pkey)
{
	unsigned int seq;

	do {
		seq = read_seqcount_begin(&qp->path_seq);
		*av = qp->av;
		*pkey = herald_qp_partition(qp);
	} while (read_seqcount_retry(&qp->path_seq, seq));
}

/* Are both ends of the path there?  The answer holds until something changes. */
static bool path_is_there(struct herald_qp *qp, struct herald_qp *peer, s64 seen)
{
	struct herald_av av;
	bool there;
	u16 pkey;

	if (likely(qp->sq.path_seen == seen))
		return true;
	herald_path_read(qp, &av, &pkey);
	rcu_read_lock();
	there = herald_dev_has_gid(qp->dev, &av.sgid) &&
		herald_dev_is_at(peer->dev, herald_dev_net(qp->dev), &av.dgid,
				 herald_dev_av_ifindex(qp->dev, &av));
	rcu_read_unlock();
	if (there)
		qp->sq.path_seen = seen;
	return there;
}

/* If one of the two is not in the state MIGRATED.  @primary: it comes over @peer's path. */
static enum herald_arrival look_twice(const struct herald_qp *qp, const struct herald_qp *peer,
				      bool primary)
{
	int mine = READ_ONCE(qp->attr.path_mig_state);
	int theirs = READ_ONCE(peer->attr.path_mig_state);

	/* the same addresses may serve both paths of @peer: then the partition tells */
	if (theirs == IB_MIG_ARMED && mine == IB_MIG_MIGRATED &&
	    herald_av_mirrors(&qp->av, &peer->alt_av) &&
	    (!primary || herald_qp_partition(qp) == alt_partition(peer)))
		return HERALD_ARRIVES_MOVED;
	if (!primary)
		return HERALD_NOT_FOR_US;
	/* MigReq is 1 in the state MIGRATED */
	if (mine != IB_MIG_MIGRATED && (mine == IB_MIG_REARM || theirs == IB_MIG_REARM))
		return HERALD_ARRIVES_ARMING;
	return HERALD_ARRIVES;
}

static enum herald_arrival look(const struct herald_qp *qp, const struct herald_qp *peer)
{
	u16 pkey = herald_qp_partition(qp);
	bool primary = herald_av_mirrors(&qp->av, &peer->av) && pkey &&
		       pkey == herald_qp_partition(peer);

	if (unlikely(READ_ONCE(qp->attr.path_mig_state) != IB_MIG_MIGRATED ||
		     READ_ONCE(peer->attr.path_mig_state) != IB_MIG_MIGRATED))
		return look_twice(qp, peer, primary);
	return primary ? HERALD_ARRIVES : HERALD_NOT_FOR_US;
}

enum herald_arrival herald_path_arrival(struct herald_qp *qp, struct herald_qp *peer)
{
	enum herald_arrival how;
	unsigned int own, others;
	s64 seen;

	if (peer->type != qp->type || READ_ONCE(peer->dest_qpn) != qp->qpn)
		return HERALD_NOT_FOR_US;
	do {
		own = read_seqcount_begin(&qp->path_seq);
		others = read_seqcount_begin(&peer->path_seq);
		seen = paths_generation();
		how = look(qp, peer);
	} while (read_seqcount_retry(&peer->path_seq, others) ||
		 read_seqcount_retry(&qp->path_seq, own));
	if (how != HERALD_NOT_FOR_US && !path_is_there(qp, peer, seen))
		return HERALD_NOT_FOR_US;
	return how;
}

/* ------------------------------------------------------------- arming -- */

static bool is_alive(const struct herald_qp *qp)
{
	lockdep_assert_held(&qp->lock);
	return !qp->dying && !qp->resetting &&
	       (herald_qp_activity(qp->state) & HERALD_MAY_RECEIVE);
}

bool herald_mig_peer_ready(struct herald_qp *qp)
{
	int state = READ_ONCE(qp->attr.path_mig_state);
	unsigned long flags;

	if (state != IB_MIG_REARM)
		return state == IB_MIG_ARMED;
	spin_lock_irqsave(&qp->lock, flags);
	state = qp->attr.path_mig_state;
	if (is_alive(qp)) {
		state = herald_mig_table(state, HERALD_MIG_PEER_READY)->next;
		WRITE_ONCE(qp->attr.path_mig_state, state);
	}
	spin_unlock_irqrestore(&qp->lock, flags);
	return state != IB_MIG_MIGRATED;
}

/* ---------------------------------------------------------- migrating -- */

/* As far as this end can tell. */
static bool alt_is_usable(const struct herald_qp *qp)
{
	return herald_dev_port_up(qp->dev) && alt_partition(qp) &&
	       herald_dev_has_gid(qp->dev, &qp->alt_av.sgid);
}

/* What was the alternate path is the path from now on, and the old one is forgotten. */
static void take_alt(struct herald_qp *qp)
{
	herald_path_begin(qp);
	/* inside, so that nobody sees the new path with the old number */
	herald_paths_changed();
	qp->av = qp->alt_av;
	WRITE_ONCE(qp->attr.pkey_index, qp->attr.alt_pkey_index);
	WRITE_ONCE(qp->attr.timeout, qp->attr.alt_timeout);
	WRITE_ONCE(qp->path_moves, qp->path_moves + 1);
	qp->has_alt = false;
	herald_path_end(qp);
	qp->attr.alt_pkey_index = 0;
	qp->attr.alt_timeout = 0;
	qp->attr.alt_port_num = 0;
}

/* @pkey: the partition of the message that asks for it, or 0. */
static enum herald_mig_result move(struct herald_qp *qp, enum herald_mig_input why, u16 pkey,
				   struct herald_deferred *d)
{
	const struct herald_mig_step *step = herald_mig_table(qp->attr.path_mig_state, why);

	if (step->verdict != HERALD_MIG_MOVE || !is_alive(qp))
		return HERALD_MIG_NONE;
	WRITE_ONCE(qp->attr.path_mig_state, step->next);
	if (!alt_is_usable(qp) || (pkey && pkey != alt_partition(qp))) {
		herald_count(qp->dev, HERALD_CTR_path_migration_errors);
		if (why != HERALD_MIG_NO_ANSWER)
			herald_event_qp(qp, IB_EVENT_PATH_MIG_ERR, d);
		return HERALD_MIG_FAILED;
	}
	take_alt(qp);
	herald_count(qp->dev, HERALD_CTR_path_migrations);
	herald_event_qp(qp, IB_EVENT_PATH_MIG, d);
	return HERALD_MIG_DONE;
}

enum herald_mig_result herald_mig_move(struct herald_qp *qp, enum herald_mig_input why,
				       struct herald_deferred *d)
{
	enum herald_mig_result result;
	unsigned long flags;

	spin_lock_irqsave(&qp->lock, flags);
	result = move(qp, why, 0, d);
	spin_unlock_irqrestore(&qp->lock, flags);
	return result;
}

void herald_mig_gave_up(struct herald_qp *qp, struct herald_deferred *d)
{
	unsigned long flags;

	spin_lock_irqsave(&qp->lock, flags);
	if (!qp->dying && !qp->resetting)
		herald_event_qp(qp, IB_EVENT_PATH_MIG_ERR, d);
	spin_unlock_irqrestore(&qp->lock, flags);
}

bool herald_mig_refuse(struct herald_qp *qp, struct herald_deferred *d)
{
	unsigned long flags;
	bool armed;

	spin_lock_irqsave(&qp->lock, flags);
	armed = is_alive(qp) && qp->attr.path_mig_state == IB_MIG_ARMED;
	if (armed) {
		WRITE_ONCE(qp->attr.path_mig_state, IB_MIG_MIGRATED);
		herald_count(qp->dev, HERALD_CTR_path_migration_errors);
		herald_event_qp(qp, IB_EVENT_PATH_MIG_ERR, d);
	}
	spin_unlock_irqrestore(&qp->lock, flags);
	return armed;
}

/* Does a message with this path come over ours?  Context: @av is read as a whole. */
static bool is_way_of(const struct herald_av *av, const union ib_gid *from, const union ib_gid *to)
{
	return herald_gid_equal(&av->dgid, from) && herald_gid_equal(&av->sgid, to);
}

bool herald_mig_follow_from(struct herald_qp *qp, const union ib_gid *from, const union ib_gid *to,
			    u16 pkey, struct herald_deferred *d)
{
	unsigned long flags;
	bool arrives;

	spin_lock_irqsave(&qp->lock, flags);
	/* another path may have been loaded since it was seen */
	if (is_way_of(&qp->alt_av, from, to))
		move(qp, HERALD_MIG_PEER_MOVED, pkey, d);
	/* this end may have moved by itself meanwhile */
	arrives = is_way_of(&qp->av, from, to) && pkey == herald_qp_partition(qp);
	spin_unlock_irqrestore(&qp->lock, flags);
	return arrives;
}

bool herald_mig_follow(struct herald_qp *qp, struct herald_qp *peer, struct herald_deferred *d)
{
	struct herald_av av;
	u16 pkey;

	herald_path_read(peer, &av, &pkey);
	return pkey && herald_mig_follow_from(qp, &av.sgid, &av.dgid, pkey, d);
}

/* How a packet arrives, as a message does in look_twice(). */
static enum herald_arrival look_at_packet(const struct herald_qp *qp, const union ib_gid *from,
					  const union ib_gid *to, u16 pkey, bool migreq)
{
	int state = READ_ONCE(qp->attr.path_mig_state);
	bool primary = is_way_of(&qp->av, from, to) && pkey && pkey == herald_qp_partition(qp);

	if (unlikely(state == IB_MIG_ARMED) && migreq && is_way_of(&qp->alt_av, from, to) &&
	    (!primary || pkey == alt_partition(qp)))
		return HERALD_ARRIVES_MOVED;
	if (!primary)
		return HERALD_NOT_FOR_US;
	return state == IB_MIG_REARM && !migreq ? HERALD_ARRIVES_ARMING : HERALD_ARRIVES;
}

enum herald_arrival herald_path_of_packet(struct herald_qp *qp, const union ib_gid *from,
					  const union ib_gid *to, u16 pkey, bool migreq)
{
	enum herald_arrival how;
	unsigned int seq;

	do {
		seq = read_seqcount_begin(&qp->path_seq);
		how = look_at_packet(qp, from, to, pkey, migreq);
	} while (read_seqcount_retry(&qp->path_seq, seq));
	return how;
}

/* -------------------------------------------------------------- modify -- */

static enum herald_mig_input set_input(int state)
{
	if (state == IB_MIG_REARM)
		return HERALD_MIG_SET_REARM;
	return state == IB_MIG_ARMED ? HERALD_MIG_SET_ARMED : HERALD_MIG_SET_MIGRATED;
}

bool herald_mig_may_set(const struct herald_qp *qp, int state, bool has_alt)
{
	const struct herald_mig_step *step;

	lockdep_assert_held(&qp->lock);
	if (state < IB_MIG_MIGRATED || state > IB_MIG_ARMED)
		return false;
	step = herald_mig_table(qp->attr.path_mig_state, set_input(state));
	if (step->verdict == HERALD_MIG_NEED_ALT)
		return has_alt;
	return step->verdict != HERALD_MIG_REFUSE;
}

void herald_mig_set(struct herald_qp *qp, int state, struct herald_deferred *d)
{
	enum herald_mig_input input = set_input(state);
	const struct herald_mig_step *step = herald_mig_table(qp->attr.path_mig_state, input);

	if (step->verdict == HERALD_MIG_MOVE)
		move(qp, input, 0, d);
	else
		WRITE_ONCE(qp->attr.path_mig_state, step->next);
}
