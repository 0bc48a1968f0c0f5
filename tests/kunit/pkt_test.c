// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/*
 * Headers and iCRC with the kernel's own crc32_le(), which has code of its own for long buffers.
 * All the rest is tested on the host (tests/user/unit/pkt*_test.cc).
 */
#include <kunit/test.h>
#include <linux/slab.h>

#include "../../kernel/compat/crc.c"
#include "../../kernel/pkt.c"
/* after it: its short names are in the way */
#include "../../kernel/opcode.c"

#define LONG_PAYLOAD	4096

/* IP, UDP and BTH of an RC SEND ONLY with LONG_PAYLOAD bytes; the iCRCs are zlib's */
static const u8 long_v4[] = {
	0x45, 0x00, 0x10, 0x2c, 0x12, 0x34, 0x40, 0x00, 0x40, 0x11, 0x2c, 0x56, 0xc0, 0x00,
	0x02, 0x01, 0xc6, 0x33, 0x64, 0x02, 0xc0, 0xde, 0x12, 0xb7, 0x10, 0x18, 0x00, 0x00,
	0x04, 0x00, 0xff, 0xff, 0x00, 0xab, 0xcd, 0xef, 0x00, 0x24, 0x68, 0xac,
};

static const u8 long_v6[] = {
	0x60, 0x00, 0x00, 0x00, 0x10, 0x18, 0x11, 0x40, 0x20, 0x01, 0x0d, 0xb8, 0x00, 0x00,
	0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x01, 0x20, 0x01, 0x0d, 0xb8,
	0x00, 0x01, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x02, 0xc0, 0xde,
	0x12, 0xb7, 0x10, 0x18, 0x0c, 0xcf, 0x04, 0x00, 0xff, 0xff, 0x00, 0xab, 0xcd, 0xef,
	0x00, 0x24, 0x68, 0xac,
};

/* from the IP header to the end of the pad, as a ConnectX-4 has sent it */
static const u8 captured_cnp[IP4_LEN + UDP_LEN + HERALD_BTH_LEN + CNP_LEN] = {
	0x45, 0xc2, 0x00, 0x3c, 0x71, 0x8c, 0x40, 0x00, 0x40, 0x11, 0x91, 0x61, 0x0a, 0x00,
	0x11, 0x01, 0x0a, 0x00, 0x12, 0x01, 0x00, 0x00, 0x12, 0xb7, 0x00, 0x28, 0x00, 0x00,
	0x81, 0x00, 0xff, 0xff, 0x40, 0x00, 0x01, 0x18,
};

/* @packet and @payload bytes more, at every alignment that a buffer can have */
static void expect_icrc(struct kunit *test, const u8 *packet, u32 len, u32 payload, u32 expected)
{
	u32 ip_len = packet[0] >> 4 == 4 ? IP4_LEN : IP6_LEN;
	u32 covered = len - ip_len - UDP_LEN + payload;
	u8 *buf = kunit_kzalloc(test, len + payload + 8, GFP_KERNEL);
	u32 shift, i, icrc;

	KUNIT_ASSERT_NOT_NULL(test, buf);
	for (shift = 0; shift < 8; shift++) {
		u8 *ip = buf + shift, *udp = ip + ip_len, *bth = udp + UDP_LEN;

		memcpy(ip, packet, len);
		for (i = 0; i < payload; i++)
			ip[len + i] = 7 * i + 1;
		icrc = ip_len == IP4_LEN ? herald_icrc_v4(ip, udp, get16(ip + 4), bth, covered) :
					   herald_icrc_v6(ip, udp, bth, covered);
		KUNIT_EXPECT_EQ(test, icrc, expected);
	}
}

static void pkt_icrc_test(struct kunit *test)
{
	expect_icrc(test, captured_cnp, sizeof(captured_cnp), 0, 0x2a00fd82);
	expect_icrc(test, long_v4, sizeof(long_v4), LONG_PAYLOAD, 0x2e373193);
	expect_icrc(test, long_v6, sizeof(long_v6), LONG_PAYLOAD, 0x709b03d1);
}

/* CRC-32 as it is defined, bit by bit */
static u32 crc_by_bits(u32 crc, const u8 *p, u32 len)
{
	int bit;

	while (len--) {
		crc ^= *p++;
		for (bit = 0; bit < 8; bit++)
			crc = crc >> 1 ^ (crc & 1 ? 0xedb88320 : 0);
	}
	return crc;
}

static void expect_crcs(struct kunit *test, const u8 *buf)
{
	u32 at, len;

	for (at = 0; at < 8; at++)
		for (len = 0; len < 700; len += 1 + len / 32)
			KUNIT_EXPECT_EQ(test, herald_crc32_le(~at, buf + at, len),
					crc_by_bits(~at, buf + at, len));
}

/* Where crc32_le() does not know what the processor has, the crypto API computes the same. */
static void pkt_crc_test(struct kunit *test)
{
	u8 *buf = kunit_kmalloc(test, LONG_PAYLOAD, GFP_KERNEL);
	u32 i;

	KUNIT_ASSERT_NOT_NULL(test, buf);
	for (i = 0; i < LONG_PAYLOAD; i++)
		buf[i] = 7 * i + (i >> 8);
	expect_crcs(test, buf);
#ifndef HAVE_CRC32_OPTIMIZATIONS
	crc_mode = CRC_CRYPTO;
	KUNIT_ASSERT_EQ(test, herald_crc_init(), 0);
	KUNIT_EXPECT_TRUE(test, static_key_enabled(&crc_by_crypto));
	expect_crcs(test, buf);
	pkt_icrc_test(test);
	herald_crc_exit();
	KUNIT_EXPECT_FALSE(test, static_key_enabled(&crc_by_crypto));
#endif
}

static void pkt_round_trip_test(struct kunit *test)
{
	u8 buf[HERALD_PKT_HDR_MAX + HERALD_ICRC_LEN] = { }, again[HERALD_PKT_HDR_MAX];
	struct herald_pkt pkt;
	unsigned int opcode;
	u32 len;

	for (opcode = 0; opcode < 256; opcode++) {
		const struct herald_pkt_row *row = herald_pkt_row(opcode);
		int expected = row->flags & HERALD_PKT_KNOWN ? 0 : -HERALD_PKT_BAD_OPCODE;

		pkt = (struct herald_pkt){
			.opcode = opcode, .dest_qpn = 0x123456, .va = 0x123456789abcdef0,
			.swap_add = 1ULL << 63, .imm = opcode, .ieth = ~opcode, .msn = opcode,
		};
		len = herald_pkt_emit(&pkt, buf);
		KUNIT_EXPECT_EQ(test, len, row->hdr_len);
		KUNIT_EXPECT_EQ(test, herald_pkt_parse(&pkt, buf, len + HERALD_ICRC_LEN), expected);
		KUNIT_EXPECT_EQ(test, herald_pkt_emit(&pkt, again), len);
		KUNIT_EXPECT_MEMEQ(test, buf, again, len);
	}
}

static struct kunit_case pkt_kcases[] = {
	KUNIT_CASE(pkt_icrc_test),
	KUNIT_CASE(pkt_crc_test),
	KUNIT_CASE(pkt_round_trip_test),
	{}
};

static struct kunit_suite pkt_suite = {
	.name = "herald-pkt",
	.test_cases = pkt_kcases,
};

kunit_test_suite(pkt_suite);
