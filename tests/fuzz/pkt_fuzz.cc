// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
// libFuzzer: the transport headers of whatever comes over the wire. The input is an IP packet as those of tests/golden, or
// what is left of one. scripts/fuzz.sh builds and runs it.
//
// - Nothing outside the packet is read (AddressSanitizer finds it), whatever the packet says.
// - What was decoded is encoded to the same bytes, but for reserved bits; and decoded again it is the same.
// - The iCRC does not depend on what a train's headers say of lengths and identification.
#include <linux/types.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <vector>

extern "C" {
#include "../../kernel/pkt.h"
}

namespace {

using Bytes = std::vector<u8>;
using Row = struct herald_pkt_row; // a function has the same name

void require(bool holds, const char *what)
{
	if (holds)
		return;
	std::fprintf(stderr, "does not hold: %s\n", what);
	std::abort();
}

// These headers with reserved bits as they are sent.
Bytes canonical(const u8 *data, const Row *row)
{
	Bytes bytes(data, data + row->hdr_len);
	u8 *ext = bytes.data() + HERALD_BTH_LEN;

	bytes[4] &= 0xc0;
	bytes[8] &= 0x80;
	if (row->ext & HERALD_EXT_DETH)
		ext[4] = 0;
	if (row->ext & HERALD_EXT_FETH) {
		ext[0] = ext[1] = ext[2] = 0;
		ext[3] &= 0x3f;
	}
	if (row->ext & HERALD_EXT_CNP)
		std::fill(ext, ext + 16, 0);
	return bytes;
}

void check_encoding(const herald_pkt &pkt, const u8 *data)
{
	const Row *row = herald_pkt_row(pkt.opcode);
	Bytes bytes(row->hdr_len, 0xaa);

	require(herald_pkt_emit(&pkt, bytes.data()) == row->hdr_len, "as many bytes as the row says");
	require(bytes == canonical(data, row), "the same bytes");
}

void check_good(const herald_pkt &pkt, const u8 *data, u32 len)
{
	Bytes bytes(data, data + len), headers;
	herald_pkt again;

	require(pkt.hdr_len + pkt.payload_len + pkt.pad + HERALD_ICRC_LEN == len, "the parts are the whole");
	require(pkt.pad == herald_pkt_pad(pkt.payload_len), "no more pad than is needed");
	check_encoding(pkt, data);
	headers = canonical(data, herald_pkt_row(pkt.opcode));
	std::copy(headers.begin(), headers.end(), bytes.begin());
	require(herald_pkt_parse(&again, bytes.data(), len) == 0, "decoded again");
	require(again.hdr_len == pkt.hdr_len && again.payload_len == pkt.payload_len, "the same lengths");
	check_encoding(again, data);
}

void check_parse(const u8 *data, u32 len)
{
	herald_pkt pkt;
	int rc = herald_pkt_parse(&pkt, data, len);

	require(rc <= 0 && rc > -HERALD_PKT_ERRORS, "a known error");
	if (!rc)
		check_good(pkt, data, len);
	else if (rc == -HERALD_PKT_BAD_OPCODE)
		check_encoding(pkt, data);
}

u32 icrc(const Bytes &ip, u32 ip_len, const u8 *bth, u32 len)
{
	const u8 *udp = ip.data() + ip_len;

	return ip_len == 20 ? herald_icrc_v4(ip.data(), udp, 0x1234, bth, len)
			    : herald_icrc_v6(ip.data(), udp, bth, len);
}

void check_icrc(const u8 *data, u32 ip_len, const u8 *bth, u32 len)
{
	Bytes one(data, data + ip_len + 8), other = one;

	other[ip_len == 20 ? 2 : 4] ^= 0xff;
	other[5] ^= 0xff;
	other[ip_len + 4] ^= 0xff;
	require(icrc(one, ip_len, bth, len) == icrc(other, ip_len, bth, len), "a train's lengths do not count");
}

} // namespace

extern "C" int LLVMFuzzerTestOneInput(const u8 *data, size_t size)
{
	u32 ip_len = size && data[0] >> 4 == 4 ? 20 : 40;
	u32 before = ip_len + 8;

	if (size < before)
		return 0;
	check_parse(data + before, size - before);
	if (size - before >= HERALD_BTH_LEN)
		check_icrc(data, ip_len, data + before, size - before);
	return 0;
}
