// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/*
 * The GID table, as the core keeps it, in a form that the data path can read
 * in any context.
 */
#include "ah.h"
#include "device.h"
#include "path_migration.h"

static void herald_gid_set(struct herald_dev *dev, u32 index, const union ib_gid *gid)
{
	struct herald_gid_slot *slot = &dev->gids[index];
	unsigned long flags;
	unsigned int used;

	write_seqlock_irqsave(&dev->gid_lock, flags);
	slot->valid = !!gid;
	if (gid)
		slot->gid = *gid;
	used = max(dev->gids_used, index + 1);
	while (used && !dev->gids[used - 1].valid)
		used--;
	dev->gids_used = used;
	write_sequnlock_irqrestore(&dev->gid_lock, flags);
	herald_paths_changed();
}

int herald_add_gid(const struct ib_gid_attr *attr, void **context)
{
	if (attr->index >= HERALD_GID_TABLE_LEN)
		return -EINVAL;
	herald_gid_set(to_hdev(attr->device), attr->index, &attr->gid);
	return 0;
}

int herald_del_gid(const struct ib_gid_attr *attr, void **context)
{
	if (attr->index >= HERALD_GID_TABLE_LEN)
		return -EINVAL;
	herald_gid_set(to_hdev(attr->device), attr->index, NULL);
	return 0;
}

static bool herald_gid_is_at(const struct herald_dev *dev, unsigned int index,
			     const union ib_gid *gid)
{
	return dev->gids[index].valid && herald_gid_equal(&dev->gids[index].gid, gid);
}

static int herald_gid_scan(const struct herald_dev *dev, const union ib_gid *gid)
{
	unsigned int used = min_t(unsigned int, READ_ONCE(dev->gids_used), HERALD_GID_TABLE_LEN);
	unsigned int i;

	for (i = 0; i < used; i++)
		if (herald_gid_is_at(dev, i, gid))
			return i;
	return -1;
}

bool herald_dev_has_gid(struct herald_dev *dev, const union ib_gid *gid)
{
	unsigned int seq;
	bool found;

	do {
		seq = read_seqbegin(&dev->gid_lock);
		found = herald_gid_scan(dev, gid) >= 0;
	} while (read_seqretry(&dev->gid_lock, seq));
	return found;
}

int herald_dev_gid_index(struct herald_dev *dev, const union ib_gid *gid, u8 hint)
{
	unsigned int seq;
	int found;

	do {
		seq = read_seqbegin(&dev->gid_lock);
		found = herald_gid_is_at(dev, hint, gid) ? hint : herald_gid_scan(dev, gid);
	} while (read_seqretry(&dev->gid_lock, seq));
	return found;
}
