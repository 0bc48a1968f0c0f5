// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
// libFuzzer: what a responder on the wire asks of a request before it executes it (kernel/wire_check.c). The input is a
// conversation: the path MTU, then packets. scripts/fuzz.sh builds and runs it.
//
// - The order of opcodes is that of a grammar, which is written here in another way.
// - No packet brings more than the path MTU, no message more than it said or than a message may have; a WRITE that ends is whole.
// - Packets that are looked at together are what they would be one by one: their opcodes, lengths and PSNs.
// - What is read again was read before: the same key, the same bytes for the same PSNs, and nothing beyond.
#include <linux/types.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <span>
#include <string>
#include <vector>

extern "C" {
#include <rdma/herald-abi.h>

#include "../../kernel/limits.h"
#include "../../kernel/opcode.h"
#include "../../kernel/pkt.h"
#include "../../kernel/psn.h"
#include "../../kernel/wire_check.h"
}

namespace {

using Row = struct herald_pkt_row; // functions have the same names
using Check = struct herald_wire_check;
using Place = enum herald_wire_place;

void require(bool holds, const char *what)
{
	if (holds)
		return;
	std::fprintf(stderr, "does not hold: %s\n", what);
	std::abort();
}

// What is left of the input; zeros when nothing is.
class Input {
public:
	Input(const u8 *data, size_t size) : left_(data, size) {}

	bool empty() const { return left_.empty(); }
	u32 number(size_t bytes)
	{
		u32 value = 0;

		for (size_t i = 0; i < bytes; i++)
			value |= static_cast<u32>(byte()) << (8 * i);
		return value;
	}
	void copy(u8 *to, size_t n)
	{
		for (size_t i = 0; i < n; i++)
			to[i] = byte();
	}

private:
	u8 byte()
	{
		const u8 value = left_.empty() ? 0 : left_[0];

		left_ = left_.subspan(left_.empty() ? 0 : 1);
		return value;
	}

	std::span<const u8> left_;
};

// One record of the input: packets of the same kind. The headers come from there, the payload does not matter.
struct Packets {
	herald_pkt pkt;
	u32 count;
	bool good;

	explicit Packets(Input &in, u32 expected, u32 mtu)
	{
		static std::vector<u8> bytes;
		const u32 ahead = in.number(1);

		count = 1 + in.number(1) % 240;
		const u32 payload = length(in.number(2), mtu);
		u8 opcode[HERALD_BTH_LEN];
		in.copy(opcode, HERALD_BTH_LEN);
		const Row *row = herald_pkt_row(opcode[0]);
		bytes.assign(row->hdr_len + (payload + 3) / 4 * 4 + HERALD_ICRC_LEN, 0);
		std::copy(opcode, opcode + HERALD_BTH_LEN, bytes.data());
		bytes[1] = static_cast<u8>((bytes[1] & 0xcf) | herald_pkt_pad(payload) << 4);
		in.copy(bytes.data() + HERALD_BTH_LEN, row->hdr_len - HERALD_BTH_LEN);
		good = !herald_pkt_parse(&pkt, bytes.data(), static_cast<u32>(bytes.size())) &&
		       (row->flags & HERALD_PKT_REQUEST);
		pkt.psn = herald_psn_add(expected, static_cast<s8>(ahead));
		// only the middle of a message comes together
		if (!(row->flags & HERALD_PKT_MIDDLE))
			count = 1;
	}

private:
	// Mostly one that is near a boundary
	static u32 length(u32 word, u32 mtu)
	{
		switch (word >> 14) {
		case 0:
			return mtu;
		case 1:
			return mtu + (word & 7) - 4;
		default:
			return word & 0x1fff;
		}
	}
};

// The responder's memory, as far as it matters here.
struct Responder {
	u32 mtu;
	u32 psn;
	u8 message = 0;
	u64 offset = 0;
	u64 length = 0;
	std::string opcodes; // of the message under way: F, M, L or O, and S for a SEND, W for a WRITE
	herald_wire_done done{};

	Check check(const Packets &p, u32 count) const
	{
		return {.pkt = &p.pkt,
			.row = herald_pkt_row(p.pkt.opcode),
			.count = count,
			.mtu = mtu,
			.message = message,
			.offset = offset,
			.length = length};
	}
	void take(const Packets &p, u32 count)
	{
		const Row *row = herald_pkt_row(p.pkt.opcode);

		if (row->flags & HERALD_PKT_FIRST) {
			message = row->kind;
			offset = 0;
			length = p.pkt.dmalen;
		}
		offset += static_cast<u64>(count) * p.pkt.payload_len;
		if (row->flags & HERALD_PKT_LAST)
			message = 0;
	}
};

/* -------------------------------------------------------------- grammar -- */

// A name tells where a packet stands in its message, too.
bool has(const Row *row, const char *part)
{
	return std::strstr(row->name, part) != nullptr;
}

char letter(const Row *row)
{
	return has(row, "_FIRST") ? 'F' : has(row, "_MIDDLE") ? 'M' : has(row, "_LAST") ? 'L' : 'O';
}

// May it follow what is there of a message?
bool follows(const std::string &before, const Row *row)
{
	const char place = letter(row);
	const char operation = has(row, "SEND") ? 'S' : 'W';

	if (place == 'F' || place == 'O')
		return before.empty();
	return !before.empty() && before[0] == operation;
}

void remember(std::string &opcodes, const Row *row)
{
	switch (letter(row)) {
	case 'F':
		opcodes = has(row, "SEND") ? "S" : "W";
		break;
	case 'L':
		opcodes.clear();
		break;
	}
}

/* ---------------------------------------------------------------- rules -- */

// The rules of lengths for packets that were accepted, from what the responder then does with them.
void check_accepted(const Responder &after, const Packets &p, const Row *row)
{
	const bool write = row->kind == HERALD_KIND_WRITE;

	require(p.pkt.payload_len <= after.mtu, "no packet is longer than the path MTU");
	require((row->flags & HERALD_PKT_LAST) || p.pkt.payload_len == after.mtu, "all but the last are as long");
	require(letter(row) != 'L' || p.pkt.payload_len, "the last of several has something");
	if (row->kind != HERALD_KIND_SEND && !write)
		return;
	require(after.offset <= HERALD_MAX_MSG, "no message is too long");
	if (write && (row->flags & HERALD_PKT_LAST))
		require(after.offset == after.length, "a WRITE that ends is whole");
	else if (write)
		require(after.offset < after.length, "a WRITE that goes on is not");
	require(!write || after.length <= HERALD_MAX_MSG, "no WRITE says that it is too long");
}

// What the check would say of them one by one, and of the one behind.
u32 one_by_one(Responder r, const Packets &p)
{
	u32 n = 0;

	for (; n < p.count; n++) {
		const Check check = r.check(p, 1);

		if (!herald_wire_check(&check))
			break;
		r.take(p, 1);
	}
	return n;
}

void check_place(const Packets &p, u32 expected, Place place, u32 skip)
{
	u32 before = 0;

	// those whose PSN is behind the expected one, on the circle
	while (before < p.count && herald_psn_diff(herald_psn_add(p.pkt.psn, static_cast<s32>(before)), expected) < 0)
		before++;
	if (place == HERALD_PLACE_DUPLICATE)
		require(before == p.count, "all of them came before");
	else if (place == HERALD_PLACE_EARLY)
		require(!before && p.pkt.psn != expected, "something is missing");
	else
		require(before == skip && skip < p.count &&
				herald_psn_add(p.pkt.psn, static_cast<s32>(skip)) == expected,
			"the next one is the expected one");
}

/* --------------------------------------------------------------- READs -- */

u32 responses(u32 length, u32 mtu)
{
	return length ? (length + mtu - 1) / mtu : 1;
}

// Make it nearly the READ that it looks like: what in it is right, its partition says.
void approach(const Responder &r, herald_pkt &pkt)
{
	if (pkt.pkey & 1)
		pkt.va = r.done.va + static_cast<u64>(herald_psn_diff(pkt.psn, r.done.first)) * r.mtu;
	if (pkt.pkey & 2)
		pkt.rkey = r.done.rkey;
	if (pkt.pkey & 4)
		pkt.dmalen = static_cast<u32>(r.done.length - (pkt.pkey >> 8));
}

void check_again(const Responder &r, herald_pkt &pkt)
{
	if (!herald_wire_is_done(&r.done, &pkt))
		return;
	require(pkt.opcode == r.done.opcode, "the same operation");
	approach(r, pkt);
	if (pkt.opcode != HERALD_BTH_RC_RDMA_READ_REQUEST || !herald_wire_reads_again(&r.done, &pkt, r.mtu))
		return;
	const u64 from = pkt.va - r.done.va;
	require(pkt.rkey == r.done.rkey, "the same key");
	require(from <= r.done.length && pkt.dmalen <= r.done.length - from, "nothing beyond what was read");
	require(from == static_cast<u64>(herald_psn_diff(pkt.psn, r.done.first)) * r.mtu, "the bytes of that PSN");
}

void answered_by_data(Responder &r, const herald_pkt &pkt, const Row *row)
{
	const u32 n = row->kind == HERALD_KIND_READ ? responses(std::min(pkt.dmalen, HERALD_MAX_MSG), r.mtu) : 1;

	r.done = {.first = r.psn,
		  .last = herald_psn_add(r.psn, static_cast<s32>(n - 1)),
		  .opcode = pkt.opcode,
		  .valid = true,
		  .va = pkt.va,
		  .length = std::min(pkt.dmalen, HERALD_MAX_MSG),
		  .rkey = pkt.rkey,
		  .value = 0};
	r.psn = herald_psn_add(r.psn, static_cast<s32>(n));
}

/* --------------------------------------------------------- a conversation -- */

// As wire_resp.c does it. After a packet that is refused the connection would be over: here it begins anew.
void take(Responder &r, Packets &p)
{
	const Row *row = herald_pkt_row(p.pkt.opcode);
	const Check check = r.check(p, p.count);
	const u32 n = herald_wire_check(&check);

	require(n <= p.count, "no more than there are");
	require(n == one_by_one(r, p), "together as one by one");
	require(!n || follows(r.opcodes, row), "the opcode follows");
	if (!n) {
		r.message = 0;
		r.opcodes.clear();
		return;
	}
	remember(r.opcodes, row);
	r.take(p, n);
	check_accepted(r, p, row);
	require(r.opcodes.empty() == !r.message, "a message is under way until its last packet");
	if (row->kind == HERALD_KIND_SEND || row->kind == HERALD_KIND_WRITE)
		r.psn = herald_psn_add(r.psn, static_cast<s32>(n));
	else
		answered_by_data(r, p.pkt, row);
}

void look_at(Responder &r, Packets &p)
{
	u32 skip = 0;
	const Place place = herald_wire_place(p.pkt.psn, p.count, r.psn, &skip);

	check_place(p, r.psn, place, skip);
	if (place == HERALD_PLACE_DUPLICATE)
		check_again(r, p.pkt);
	if (place != HERALD_PLACE_EXPECTED)
		return;
	p.pkt.psn = r.psn;
	p.count -= skip;
	take(r, p);
}

} // namespace

extern "C" int LLVMFuzzerTestOneInput(const u8 *data, size_t size)
{
	Input in(data, size);
	Responder r{};

	// also smaller ones than there are, which few bytes fill
	r.mtu = 8U << in.number(1) % 10;
	r.psn = in.number(3) & HERALD_PSN_MASK;
	while (!in.empty()) {
		Packets p(in, r.psn, r.mtu);

		if (p.good)
			look_at(r, p);
	}
	return 0;
}
