/* SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB */
/* The kernel's CRC-32 in user space, bit by bit: small enough to be seen to be right. */
#ifndef HERALD_SHIM_LINUX_CRC32_H
#define HERALD_SHIM_LINUX_CRC32_H

#include <linux/types.h>

static inline u32 crc32_le(u32 crc, const void *p, size_t len)
{
	const u8 *byte = (const u8 *)p;
	int bit;

	while (len--) {
		crc ^= *byte++;
		for (bit = 0; bit < 8; bit++)
			crc = crc >> 1 ^ (crc & 1 ? 0xedb88320 : 0);
	}
	return crc;
}

/* kernel/compat/compat.h */
#define herald_crc32_le(crc, p, len)	crc32_le(crc, p, len)

#endif /* HERALD_SHIM_LINUX_CRC32_H */
