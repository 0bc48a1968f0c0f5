/* SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB */
/*
 * Asynchronous events on purpose, with the side effects that they have when
 * they come by themselves.
 */
#ifndef HERALD_PROVOKE_H
#define HERALD_PROVOKE_H

#include <linux/types.h>

struct herald_dev;

/* An event's name: that of its enum ib_event_type, in lower case with dashes. */
const char *herald_event_name(int type);

/**
 * herald_provoke - raise an asynchronous event
 * @dev: the device
 * @line: EVENT [NUMBER]; it is cut up
 *
 * Return: 0; -EINVAL if that is not understood or the object's state rules the
 * event out; -ENOENT if there is no such object; -EOPNOTSUPP if the event does
 * not exist here.
 * Context: process, may sleep; no herald lock held.
 */
int herald_provoke(struct herald_dev *dev, char *line);

#endif /* HERALD_PROVOKE_H */
