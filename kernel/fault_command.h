/* SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB */
/* "fault ...", a command of a device's control file; docs/faults.md has its syntax. */
#ifndef HERALD_FAULT_COMMAND_H
#define HERALD_FAULT_COMMAND_H

struct herald_dev;
struct seq_file;

/**
 * herald_fault_command - arm or disarm faults
 * @dev: the device
 * @line: what follows "fault "; it is cut up
 *
 * Return: 0; -EINVAL: not understood; -ENOENT: no such QP, or no fault of that
 * number; -ENOSPC: too many are armed; -ENOMEM.
 * Context: process, may sleep; no herald lock held.
 */
int herald_fault_command(struct herald_dev *dev, char *line);

/* The file that lists what is armed; m->private is the device. */
int herald_faults_show(struct seq_file *m, void *unused);

#endif /* HERALD_FAULT_COMMAND_H */
