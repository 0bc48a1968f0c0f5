// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
// The iCRC: what it covers and what it does not (IBTA vol. 1, annex A17).
#include <gtest/gtest.h>

#include <set>

#include "golden.h"

namespace {

TEST(Icrc, GoldenPackets)
{
	ASSERT_FALSE(golden_packets().empty());
	for (auto &g : golden_packets())
		EXPECT_EQ(g.icrc(), g.icrc_there()) << g.name;
}

// Known from elsewhere: a CNP that a ConnectX-4 sent, and a SEND of UC, both from scapy's own tests.
TEST(Icrc, CapturedPackets)
{
	EXPECT_EQ(golden_packet("captured_cnp").icrc(), 0x2a00fd82u);
	EXPECT_EQ(golden_packet("captured_uc_send_only").icrc(), 0xf353f378u);
}

TEST(Icrc, LowestByteFirst)
{
	u8 bytes[4];

	herald_icrc_put(bytes, 0x12345678);
	EXPECT_EQ(bytes[0], 0x78);
	EXPECT_EQ(bytes[3], 0x12);
	EXPECT_EQ(herald_icrc_get(bytes), 0x12345678u);
	herald_icrc_put(bytes, 0xffeeddcc);
	EXPECT_EQ(herald_icrc_get(bytes), 0xffeeddccu);
}

// Bytes that routers change, that a checksum depends on, or that the length of the packet stands for.
std::set<size_t> free_bytes(const Golden &g)
{
	size_t udp = g.udp() - g.ip.data(), bth = udp + 8;
	std::set<size_t> bytes = {udp + 4, udp + 5, udp + 6, udp + 7, bth + 4};

	for (size_t i : g.v4() ? std::set<size_t>{1, 2, 3, 4, 5, 8, 10, 11} : std::set<size_t>{1, 2, 3, 4, 5, 7})
		bytes.insert(i);
	return bytes;
}

void expect_coverage(const Golden &golden)
{
	const std::set<size_t> free = free_bytes(golden);
	const u32 id = golden.id();
	Golden g = golden;

	for (size_t bit = 0; bit < 8 * (g.ip.size() - HERALD_ICRC_LEN); bit++) {
		size_t byte = bit / 8;
		bool version = byte == 0; // its flip would make another kind of packet of it

		if (version)
			continue;
		g.ip[byte] ^= 1 << bit % 8;
		u32 icrc = golden.v4() ? herald_icrc_v4(g.ip.data(), g.udp(), id, g.bth(), g.len() - HERALD_ICRC_LEN)
				       : g.icrc();
		EXPECT_EQ(icrc == golden.icrc_there(), free.count(byte) == 1) << g.name << " byte " << byte;
		g.ip[byte] ^= 1 << bit % 8;
	}
}

TEST(Icrc, CoversEveryBitButThoseThatChange)
{
	for (const char *name : {"rc_rdma_write_only_with_imm/ipv4", "rc_rdma_write_only_with_imm/ipv6", "cnp/ipv4",
				 "length_5/ipv4", "length_5/ipv6"})
		expect_coverage(golden_packet(name));
}

// IPv6: the lower half of byte 0 is of the traffic class, the upper one the version.
TEST(Icrc, TrafficClassOfIpv6DoesNotCount)
{
	Golden g = golden_packet("rc_send_only/ipv6");

	g.ip[0] = 0x6f;
	EXPECT_EQ(g.icrc(), g.icrc_there());
}

TEST(Icrc, HeaderLengthOfIpv4Counts)
{
	Golden g = golden_packet("rc_send_only/ipv4");

	g.ip[0] = 0x46;
	EXPECT_NE(g.icrc(), g.icrc_there());
}

// A train has one header, with the first's identification and lengths that are all segments' together.
TEST(Icrc, SegmentOfATrain)
{
	Golden g = golden_packet("ipv4_id"), train = golden_packet("rc_send_only/ipv4");
	u32 covered = g.len() - HERALD_ICRC_LEN;

	train.ip[2] = train.ip[3] = 0xf0;
	EXPECT_EQ(herald_icrc_v4(train.ip.data(), train.udp(), 0xffff, g.bth(), covered), g.icrc_there());
	EXPECT_NE(herald_icrc_v4(train.ip.data(), train.udp(), 0xfffe, g.bth(), covered), g.icrc_there());
	// the next one's, after 0xffff
	EXPECT_EQ(herald_icrc_v4(train.ip.data(), train.udp(), 0, g.bth(), covered),
		  herald_icrc_v4(g.ip.data(), g.udp(), 0, g.bth(), covered));
}

} // namespace
