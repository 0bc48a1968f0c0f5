/* SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB */
/* The release, reported as the device's firmware version; dkms.conf has it too. */
#ifndef HERALD_VERSION_H
#define HERALD_VERSION_H

#include <linux/stringify.h>

#define HERALD_VERSION_MAJOR	0
#define HERALD_VERSION_MINOR	1
#define HERALD_VERSION_PATCH	0

#define HERALD_VERSION			\
	__stringify(HERALD_VERSION_MAJOR) "." \
	__stringify(HERALD_VERSION_MINOR) "." \
	__stringify(HERALD_VERSION_PATCH)

#endif /* HERALD_VERSION_H */
