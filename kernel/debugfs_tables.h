/* SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB */
/* The tables of a device's objects in debugfs, see control.h. */
#ifndef HERALD_DEBUGFS_TABLES_H
#define HERALD_DEBUGFS_TABLES_H

struct herald_dev;

/* Add them to dev->debugfs. */
void herald_tables_add(struct herald_dev *dev);

#endif /* HERALD_DEBUGFS_TABLES_H */
