/* SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB */
/*
 * What is done to a device on purpose, by root, through debugfs:
 *
 *	/sys/kernel/debug/herald/DEVICE/cqs	its CQs: what they hold and have counted
 *	/sys/kernel/debug/herald/DEVICE/qps	its QPs: their states
 *	/sys/kernel/debug/herald/DEVICE/srqs	its SRQs
 *	/sys/kernel/debug/herald/DEVICE/faults	the faults that are armed, see fault.h
 *	/sys/kernel/debug/herald/DEVICE/control	commands; see commands[] in control.c
 *	/sys/kernel/debug/herald/DEVICE/allow	1: commands are taken; at first what
 *						the module parameter "provoke" says
 *	/sys/kernel/debug/herald/DEVICE/fatal	1: it had a fatal error, see provoke.c
 */
#ifndef HERALD_CONTROL_H
#define HERALD_CONTROL_H

struct herald_dev;

void herald_control_module_init(void);
void herald_control_module_exit(void);

/*
 * The device has its name; and it is going: whoever is at its files is done when
 * this returns.  Context: may sleep.
 */
void herald_control_add(struct herald_dev *dev);
void herald_control_remove(struct herald_dev *dev);

#endif /* HERALD_CONTROL_H */
