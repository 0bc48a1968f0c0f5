// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/*
 * Multicast groups.  A group exists as long as it has members; a QP is a
 * member until it detaches or is destroyed, and holds no reference: it takes
 * itself out (herald_mcast_forget) before it goes.
 */
#include <linux/jhash.h>
#include <linux/list.h>
#include <linux/slab.h>

#include "device.h"
#include "mcast.h"
#include "qp.h"
#include "wire.h"

struct herald_mcast_group {
	struct hlist_node node;
	union ib_gid gid;
	struct list_head members;	/* by their numbers */
	unsigned int nmembers;
};

struct herald_mcast_member {
	struct list_head node;		/* in group->members */
	struct list_head qp_node;	/* in qp->mcast */
	struct herald_mcast_group *group;
	struct herald_qp *qp;
	u64 number;			/* of all that ever attached on the device */
	union ib_gid gid;		/* the group's */
	bool joined;			/* the interface listens for it, too */
};

static u32 herald_mcast_hash(const union ib_gid *gid)
{
	return jhash(gid->raw, sizeof(gid->raw), 0);
}

/* The functions from here to "operations": dev->mcast.lock is held. */

static struct herald_mcast_group *herald_mcast_find(struct herald_dev *dev,
						    const union ib_gid *gid)
{
	struct herald_mcast_group *group;

	lockdep_assert_held(&dev->mcast.lock);
	hash_for_each_possible(dev->mcast.groups, group, node, herald_mcast_hash(gid))
		if (!memcmp(&group->gid, gid, sizeof(*gid)))
			return group;
	return NULL;
}

static struct herald_mcast_member *herald_mcast_member(struct herald_mcast_group *group,
						       struct herald_qp *qp)
{
	struct herald_mcast_member *member;

	list_for_each_entry(member, &group->members, node)
		if (member->qp == qp)
			return member;
	return NULL;
}

/* Both may be consumed: then they are set to NULL. */
static int herald_mcast_add(struct herald_qp *qp, const union ib_gid *gid,
			    struct herald_mcast_group **new_group,
			    struct herald_mcast_member **new_member)
{
	struct herald_dev *dev = qp->dev;
	struct herald_mcast_group *group = herald_mcast_find(dev, gid);

	if (group && herald_mcast_member(group, qp))
		return 0;
	if (group && group->nmembers >= HERALD_MAX_MCAST_QP)
		return -ENOMEM;
	if (!group) {
		if (dev->mcast.ngroups >= HERALD_MAX_MCAST_GRP)
			return -ENOMEM;
		dev->mcast.ngroups++;
		group = *new_group;
		*new_group = NULL;
		hash_add(dev->mcast.groups, &group->node, herald_mcast_hash(gid));
	}
	(*new_member)->group = group;
	(*new_member)->number = ++dev->mcast.attached;
	list_add_tail(&(*new_member)->node, &group->members);
	list_add(&(*new_member)->qp_node, &qp->mcast);
	*new_member = NULL;
	group->nmembers++;
	return 0;
}

/* The member is the caller's then, for herald_mcast_free(). */
static void herald_mcast_del(struct herald_dev *dev, struct herald_mcast_member *member)
{
	struct herald_mcast_group *group = member->group;

	list_del(&member->node);
	list_del(&member->qp_node);
	if (--group->nmembers)
		return;
	hash_del(&group->node);
	dev->mcast.ngroups--;
	kfree(group);
}

/* --------------------------------------------------------- operations -- */

/* @member: of no group any more, or not yet; or NULL */
static void herald_mcast_free(struct herald_dev *dev, struct herald_mcast_member *member)
{
	if (!member)
		return;
	if (member->joined)
		herald_wire_leave(dev, &member->gid);
	kfree(member);
}

int herald_attach_mcast(struct ib_qp *ibqp, union ib_gid *gid, u16 lid)
{
	struct herald_qp *qp = to_hqp(ibqp);
	struct herald_mcast_member *member;
	struct herald_mcast_group *group;
	unsigned long flags;
	int err;

	if (qp->type != IB_QPT_UD)
		return -EINVAL;
	err = herald_dev_check(qp->dev);
	if (err)
		return err;
	err = -ENOMEM;
	group = kzalloc_obj(*group, GFP_KERNEL_ACCOUNT);
	member = kzalloc_obj(*member, GFP_KERNEL_ACCOUNT);
	if (!group || !member)
		goto out;
	group->gid = *gid;
	INIT_LIST_HEAD(&group->members);
	member->qp = qp;
	member->gid = *gid;
	member->joined = herald_wire_join(qp->dev, gid);

	spin_lock_irqsave(&qp->dev->mcast.lock, flags);
	err = herald_mcast_add(qp, gid, &group, &member);
	spin_unlock_irqrestore(&qp->dev->mcast.lock, flags);
out:
	kfree(group);
	herald_mcast_free(qp->dev, member);
	return err;
}

int herald_detach_mcast(struct ib_qp *ibqp, union ib_gid *gid, u16 lid)
{
	struct herald_qp *qp = to_hqp(ibqp);
	struct herald_mcast_member *member = NULL;
	struct herald_mcast_group *group;
	unsigned long flags;

	spin_lock_irqsave(&qp->dev->mcast.lock, flags);
	group = herald_mcast_find(qp->dev, gid);
	if (group)
		member = herald_mcast_member(group, qp);
	if (member)
		herald_mcast_del(qp->dev, member);
	spin_unlock_irqrestore(&qp->dev->mcast.lock, flags);
	if (!member)
		return -EINVAL;
	herald_mcast_free(qp->dev, member);
	return 0;
}

int herald_mcast_members(struct herald_dev *dev, const union ib_gid *gid, struct herald_qp **qps,
			 int max, u64 *after)
{
	struct herald_mcast_member *member;
	struct herald_mcast_group *group;
	unsigned long flags;
	int n = 0;

	spin_lock_irqsave(&dev->mcast.lock, flags);
	group = herald_mcast_find(dev, gid);
	if (!group)
		goto out;
	list_for_each_entry(member, &group->members, node) {
		if (n == max)
			break;
		if (member->number <= *after)
			continue;
		*after = member->number;
		if (herald_qp_get(member->qp))
			qps[n++] = member->qp;
	}
out:
	spin_unlock_irqrestore(&dev->mcast.lock, flags);
	return n;
}

void herald_mcast_forget(struct herald_qp *qp)
{
	struct herald_mcast_member *member;
	struct herald_dev *dev = qp->dev;
	unsigned long flags;

	do {
		spin_lock_irqsave(&dev->mcast.lock, flags);
		member = list_first_entry_or_null(&qp->mcast, struct herald_mcast_member, qp_node);
		if (member)
			herald_mcast_del(dev, member);
		spin_unlock_irqrestore(&dev->mcast.lock, flags);
		herald_mcast_free(dev, member);
	} while (member);
}
