// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
// Transport headers: the table of opcodes, decoding, encoding (IBTA vol. 1, chapter 9, annexes A17 and A19).
#include <gtest/gtest.h>

#include <arpa/inet.h>

#include <algorithm>
#include <array>
#include <set>

#include "golden.h"

namespace {

using Bytes = std::vector<u8>;
using Row = struct herald_pkt_row; // a function has the same name

std::set<int> known_opcodes()
{
	std::set<int> known;

	for (int op = 0; op < 256; op++)
		if (herald_pkt_row(op)->flags & HERALD_PKT_KNOWN)
			known.insert(op);
	return known;
}

// The least bytes of payload that make a packet of this opcode good.
u32 payload_for(const Row *row)
{
	return row->flags & HERALD_PKT_HAS_PAYLOAD ? 8 : 0;
}

Bytes emitted(const herald_pkt &pkt)
{
	Bytes bytes(HERALD_PKT_HDR_MAX + 1, 0xaa);
	u32 len = herald_pkt_emit(&pkt, bytes.data());

	EXPECT_TRUE(std::all_of(bytes.begin() + len, bytes.end(), [](u8 b) { return b == 0xaa; }))
		<< "more written than said";
	bytes.resize(len);
	return bytes;
}

// A whole packet, but for its iCRC.
Bytes packet(const herald_pkt &pkt, u32 payload)
{
	Bytes bytes = emitted(pkt);

	bytes.resize(bytes.size() + payload + HERALD_ICRC_LEN);
	return bytes;
}

int parse(herald_pkt *pkt, const Bytes &bytes)
{
	return herald_pkt_parse(pkt, bytes.data(), bytes.size());
}

int parse(const Bytes &bytes)
{
	herald_pkt pkt;

	return parse(&pkt, bytes);
}

// The fields by name, as the golden packets have them.
std::map<std::string, u64> fields_of(const herald_pkt &pkt)
{
	std::map<std::string, u64> fields = {
		{"opcode", pkt.opcode},
		{"pad", pkt.pad},
		{"solicited", pkt.solicited},
		{"migreq", pkt.migreq},
		{"ack_req", pkt.ack_req},
		{"fecn", pkt.fecn},
		{"becn", pkt.becn},
		{"syndrome", pkt.syndrome},
		{"pkey", pkt.pkey},
		{"dest_qpn", pkt.dest_qpn},
		{"psn", pkt.psn},
		{"msn", pkt.msn},
		{"va", pkt.va},
		{"rkey", pkt.rkey},
		{"dmalen", pkt.dmalen},
		{"swap_add", pkt.swap_add},
		{"compare", pkt.compare},
		{"atomic_orig", pkt.atomic_orig},
		{"qkey", pkt.qkey},
		{"src_qpn", pkt.src_qpn},
		{"imm", ntohl(pkt.imm)},
		{"ieth", pkt.ieth},
		{"flush_placement", pkt.flush_placement},
		{"flush_selectivity", pkt.flush_selectivity},
		{"hdr_len", pkt.hdr_len},
		{"payload_len", pkt.payload_len},
	};

	std::erase_if(fields, [](auto &field) { return field.second == 0; });
	return fields;
}

// Every field at its largest: what a packet has not must not come back.
herald_pkt full(u8 opcode)
{
	herald_pkt pkt = {};

	pkt.opcode = opcode;
	pkt.pad = 3;
	pkt.solicited = pkt.migreq = pkt.ack_req = pkt.fecn = pkt.becn = true;
	pkt.syndrome = 0xff;
	pkt.pkey = 0xffff;
	pkt.dest_qpn = pkt.psn = pkt.msn = pkt.src_qpn = 0xffffff;
	pkt.va = pkt.swap_add = pkt.compare = pkt.atomic_orig = ~0ULL;
	pkt.rkey = pkt.dmalen = pkt.qkey = pkt.imm = pkt.ieth = ~0U;
	pkt.flush_placement = 15;
	pkt.flush_selectivity = 3;
	return pkt;
}

// --- the table ---------------------------------------------------------------------------------------------------

TEST(PktRow, OpcodesOfTheSpecification)
{
	std::set<int> expected = {0x64, 0x65, 0x81};

	for (int op = 0; op <= 0x0b; op++)
		expected.insert({op, 0x20 | op});
	for (int op = 0x0c; op <= 0x14; op++)
		expected.insert(op);
	expected.insert({0x16, 0x17, 0x1c, 0x1d});
	EXPECT_EQ(known_opcodes(), expected);
}

TEST(PktRow, AnyByteHasARow)
{
	for (int op = 0; op < 256; op++) {
		const Row *row = herald_pkt_row(op);

		ASSERT_NE(row, nullptr);
		ASSERT_NE(row->name, nullptr);
		EXPECT_GE(row->hdr_len, HERALD_BTH_LEN);
		EXPECT_LE(row->hdr_len, HERALD_PKT_HDR_MAX);
	}
}

TEST(PktRow, ClassIsInTheOpcode)
{
	for (int op : known_opcodes())
		EXPECT_EQ(herald_pkt_row(op)->qp_type_class, op & HERALD_CLASS_MASK) << op;
}

// The name says what the row says.
TEST(PktRow, PlaceInTheMessage)
{
	for (int op : known_opcodes()) {
		const Row *row = herald_pkt_row(op);
		std::string name = row->name;
		int expected = name.find("FIRST") != name.npos    ? HERALD_PKT_FIRST
			       : name.find("MIDDLE") != name.npos ? HERALD_PKT_MIDDLE
			       : name.find("LAST") != name.npos   ? HERALD_PKT_LAST
								  : HERALD_PKT_ONLY;

		EXPECT_EQ(row->flags & (HERALD_PKT_ONLY | HERALD_PKT_MIDDLE), expected) << name;
	}
}

TEST(PktRow, WhoseTheyAre)
{
	const std::set<int> responses = {0x0d, 0x0e, 0x0f, 0x10, 0x11, 0x12};

	for (int op : known_opcodes()) {
		int expected = op == HERALD_BTH_CNP  ? HERALD_PKT_CNP
			       : responses.count(op) ? HERALD_PKT_RESPONSE
						     : HERALD_PKT_REQUEST;

		EXPECT_EQ(herald_pkt_row(op)->flags & HERALD_PKT_KNOWN, expected) << op;
		EXPECT_EQ((herald_pkt_row(op)->flags & HERALD_PKT_ACK) != 0, op == 0x11) << op;
	}
}

TEST(PktRow, Payload)
{
	const std::set<int> without = {0x0c, 0x11, 0x12, 0x13, 0x14, 0x1c, 0x81};

	for (int op : known_opcodes())
		EXPECT_EQ((herald_pkt_row(op)->flags & HERALD_PKT_HAS_PAYLOAD) == 0, without.count(op) == 1) << op;
}

// What a row says of the WR is what opcode.c says of it.
TEST(PktRow, RequestsAreOfAWr)
{
	for (int op : known_opcodes()) {
		const Row *row = herald_pkt_row(op);
		const herald_opcode_row *wr = herald_opcode(row->wr_opcode);

		if (!(row->flags & HERALD_PKT_REQUEST))
			continue;
		EXPECT_EQ(row->kind, wr->kind) << row->name;
		if (row->flags & HERALD_PKT_LAST) {
			EXPECT_EQ((row->ext & HERALD_EXT_IMM) != 0, (wr->traits & HERALD_OP_IMM) != 0) << row->name;
			EXPECT_EQ((row->ext & HERALD_EXT_IETH) != 0, (wr->traits & HERALD_OP_INVALIDATE) != 0)
				<< row->name;
		}
	}
}

TEST(PktRow, KindsThatAreAnswered)
{
	EXPECT_EQ(herald_pkt_row(HERALD_BTH_RC_RDMA_READ_RESPONSE_MIDDLE)->kind, HERALD_KIND_READ);
	EXPECT_EQ(herald_pkt_row(HERALD_BTH_RC_ATOMIC_ACKNOWLEDGE)->kind, HERALD_KIND_ATOMIC);
	EXPECT_EQ(herald_pkt_row(HERALD_BTH_RC_ACKNOWLEDGE)->kind, HERALD_KIND_NONE);
	EXPECT_EQ(herald_pkt_row(0xff)->kind, HERALD_KIND_NONE);
}

// --- which opcode a request has ----------------------------------------------------------------------------------

struct Request {
	u8 wr;
	std::array<int, 4> ops; // middle, first, last, only
};

const Request requests[] = {
	{HERALD_WR_SEND, {1, 0, 2, 4}},
	{HERALD_WR_SEND_WITH_IMM, {1, 0, 3, 5}},
	{HERALD_WR_SEND_WITH_INV, {1, 0, 0x16, 0x17}},
	{HERALD_WR_RDMA_WRITE, {7, 6, 8, 0xa}},
	{HERALD_WR_RDMA_WRITE_WITH_IMM, {7, 6, 9, 0xb}},
	{HERALD_WR_RDMA_READ, {-1, -1, -1, 0xc}},
	{HERALD_WR_ATOMIC_CMP_AND_SWP, {-1, -1, -1, 0x13}},
	{HERALD_WR_ATOMIC_FETCH_AND_ADD, {-1, -1, -1, 0x14}},
	{HERALD_WR_FLUSH, {-1, -1, -1, 0x1c}},
	{HERALD_WR_ATOMIC_WRITE, {-1, -1, -1, 0x1d}},
};

int expected_opcode(u8 qp_class, int wr, int place)
{
	for (auto &r : requests) {
		int op = r.wr == wr ? r.ops[place] : -1;

		if (op >= 0 && herald_pkt_row(qp_class | op)->flags & HERALD_PKT_REQUEST)
			return qp_class | op;
	}
	return -1;
}

TEST(PktRequestOpcode, EveryWrOfEveryServiceAtEveryPlace)
{
	for (u8 qp_class : {HERALD_CLASS_RC, HERALD_CLASS_UC, HERALD_CLASS_UD, HERALD_CLASS_CNP})
		for (int wr = 0; wr < 256; wr++)
			for (int place = 0; place < 4; place++)
				EXPECT_EQ(herald_pkt_request_opcode(qp_class, wr, place & 1, place & 2),
					  expected_opcode(qp_class, wr, place))
					<< int(qp_class) << " " << wr << " " << place;
	EXPECT_EQ(herald_pkt_request_opcode(HERALD_CLASS_UD, HERALD_WR_SEND_WITH_IMM, true, true), 0x65);
	EXPECT_EQ(herald_pkt_request_opcode(HERALD_CLASS_UC, HERALD_WR_RDMA_READ, true, true), -1);
	EXPECT_EQ(herald_pkt_request_opcode(HERALD_CLASS_UD, HERALD_WR_SEND, true, false), -1);
	EXPECT_EQ(herald_pkt_request_opcode(HERALD_CLASS_RC, HERALD_WR_LOCAL_INV, true, true), -1);
}

// The other way: the end of a message tells which WR it was, the packets before only what kind.
TEST(PktRequestOpcode, RowsTellTheWr)
{
	for (auto &r : requests) {
		EXPECT_EQ(herald_pkt_row(r.ops[3])->wr_opcode, r.wr);
		if (r.ops[2] < 0)
			continue;
		EXPECT_EQ(herald_pkt_row(r.ops[2])->wr_opcode, r.wr);
		for (int place : {0, 1})
			EXPECT_EQ(herald_opcode(herald_pkt_row(r.ops[place])->wr_opcode)->traits &
					  (HERALD_OP_IMM | HERALD_OP_INVALIDATE),
				  0);
	}
}

// --- golden packets ----------------------------------------------------------------------------------------------

TEST(PktGolden, HasEveryOpcode)
{
	std::set<int> v4, v6;

	for (auto &g : golden_packets())
		(g.v4() ? v4 : v6).insert(g.field("opcode"));
	EXPECT_EQ(v4, known_opcodes());
	EXPECT_EQ(v6, known_opcodes());
}

TEST(PktGolden, Parse)
{
	for (auto &g : golden_packets()) {
		herald_pkt pkt;

		ASSERT_EQ(herald_pkt_parse(&pkt, g.bth(), g.len()), 0) << g.name;
		EXPECT_EQ(fields_of(pkt), g.fields) << g.name;
	}
}

TEST(PktGolden, Emit)
{
	for (auto &g : golden_packets()) {
		herald_pkt pkt;

		ASSERT_EQ(herald_pkt_parse(&pkt, g.bth(), g.len()), 0) << g.name;
		EXPECT_EQ(emitted(pkt), Bytes(g.bth(), g.bth() + pkt.hdr_len)) << g.name;
	}
}

// --- round trips -------------------------------------------------------------------------------------------------

// Fields that an opcode has come back, others are 0.
TEST(PktRoundTrip, EveryOpcodeWithEveryBit)
{
	for (int op : known_opcodes()) {
		const Row *row = herald_pkt_row(op);
		herald_pkt in = full(op), out;

		if (!payload_for(row))
			in.pad = 0;
		ASSERT_EQ(parse(&out, packet(in, payload_for(row))), 0) << row->name;
		EXPECT_EQ(out.hdr_len, row->hdr_len) << row->name;
		EXPECT_EQ(out.payload_len, payload_for(row) - in.pad) << row->name;
		EXPECT_EQ(emitted(out), emitted(in)) << row->name;
		EXPECT_EQ(out.va != 0, (row->ext & (HERALD_EXT_RETH | HERALD_EXT_ATOMIC)) != 0) << row->name;
		EXPECT_EQ(out.imm != 0, (row->ext & HERALD_EXT_IMM) != 0) << row->name;
		EXPECT_EQ(out.syndrome != 0, (row->ext & HERALD_EXT_AETH) != 0) << row->name;
	}
}

TEST(PktRoundTrip, FieldsTooWideLoseTheirUpperBits)
{
	herald_pkt in = full(HERALD_BTH_RC_FLUSH), out;

	in.migreq = false;
	in.pad = 4;
	in.dest_qpn = 0xff000001;
	in.psn = 0x01000002;
	in.flush_placement = 0x11;
	in.flush_selectivity = 6;
	ASSERT_EQ(parse(&out, packet(in, 0)), 0);
	EXPECT_EQ(out.dest_qpn, 1u);
	EXPECT_EQ(out.psn, 2u);
	EXPECT_EQ(out.pad, 0);
	EXPECT_FALSE(out.migreq); // whose bit is above the pad's
	EXPECT_EQ(out.flush_placement, 1u);
	EXPECT_EQ(out.flush_selectivity, 2u);
	EXPECT_TRUE(out.ack_req);
}

// Reserved bits are sent as 0.
TEST(PktRoundTrip, ReservedBitsAreZero)
{
	Bytes bth = emitted(full(HERALD_BTH_UD_SEND_ONLY)), feth = emitted(full(HERALD_BTH_RC_FLUSH)),
	      cnp = emitted(full(HERALD_BTH_CNP));

	EXPECT_EQ(bth[1] & 0x0f, 0);
	EXPECT_EQ(bth[4] & 0x3f, 0);
	EXPECT_EQ(bth[8] & 0x7f, 0);
	EXPECT_EQ(bth[HERALD_BTH_LEN + 4], 0); // of the DETH
	EXPECT_EQ(Bytes(feth.begin() + 12, feth.begin() + 16), (Bytes{0, 0, 0, 0x3f}));
	EXPECT_EQ(Bytes(cnp.begin() + 12, cnp.end()), Bytes(16, 0));
}

// ... and not looked at.
TEST(PktParse, ReservedBitsDoNotCount)
{
	Golden g = golden_packet("no_bits");
	Bytes bytes(g.bth(), g.bth() + g.len());
	herald_pkt pkt;

	bytes[4] = 0x3f;
	bytes[8] = 0x7f;
	ASSERT_EQ(parse(&pkt, bytes), 0);
	EXPECT_EQ(fields_of(pkt), g.fields);
}

// --- each check of parse -----------------------------------------------------------------------------------------

TEST(PktParse, Length)
{
	Bytes bytes = packet(herald_pkt{}, 8);

	for (u32 len = 0; len <= bytes.size(); len++) {
		herald_pkt pkt;
		bool good = len >= HERALD_BTH_LEN + HERALD_ICRC_LEN && len % 4 == 0;
		// a copy, so that a byte too far is found
		Bytes cut(bytes.begin(), bytes.begin() + len);

		EXPECT_EQ(herald_pkt_parse(&pkt, cut.data(), len), good ? 0 : -HERALD_PKT_BAD_LENGTH) << len;
	}
}

TEST(PktParse, Version)
{
	for (int version = 1; version < 16; version++) {
		Bytes bytes = packet(herald_pkt{}, 0);

		bytes[1] |= version;
		EXPECT_EQ(parse(bytes), -HERALD_PKT_BAD_VERSION) << version;
	}
}

// The packet's QP can still be found, and told what class of packet it was.
TEST(PktParse, Opcode)
{
	const std::set<int> known = known_opcodes();

	for (int op = 0; op < 256; op++) {
		herald_pkt in = full(op), out;

		if (known.count(op))
			continue;
		in.dest_qpn = 0x123456;
		ASSERT_EQ(parse(&out, packet(in, 64)), -HERALD_PKT_BAD_OPCODE) << op;
		EXPECT_EQ(out.opcode, op);
		EXPECT_EQ(out.dest_qpn, 0x123456u);
		EXPECT_EQ(out.psn, 0xffffffu);
	}
}

TEST(PktParse, ExtendedHeadersThatDoNotFit)
{
	for (int op : known_opcodes()) {
		Bytes whole = packet(full(op), 0);

		for (size_t len = HERALD_BTH_LEN + HERALD_ICRC_LEN; len < whole.size(); len += 4) {
			herald_pkt pkt;

			EXPECT_EQ(parse(&pkt, Bytes(whole.begin(), whole.begin() + len)), -HERALD_PKT_TRUNCATED) << op;
			EXPECT_EQ(pkt.dest_qpn, 0xffffffu);
		}
	}
}

TEST(PktParse, PayloadWhereThereIsNone)
{
	for (int op : known_opcodes()) {
		herald_pkt pkt = {};

		pkt.opcode = op;
		EXPECT_EQ(parse(packet(pkt, 0)), 0) << op;
		EXPECT_EQ(parse(packet(pkt, 4)), payload_for(herald_pkt_row(op)) ? 0 : -HERALD_PKT_BAD_PAYLOAD) << op;
	}
}

TEST(PktParse, PadWithoutPayload)
{
	for (int op : known_opcodes()) {
		for (int pad = 1; pad <= 3; pad++) {
			herald_pkt pkt = {};

			pkt.opcode = op;
			pkt.pad = pad;
			EXPECT_EQ(parse(packet(pkt, 0)), -HERALD_PKT_BAD_PAD) << op << " " << pad;
		}
	}
}

TEST(PktParse, PadIsNotOfThePayload)
{
	for (u32 payload = 0; payload <= 17; payload++) {
		herald_pkt in = {}, out;

		in.pad = herald_pkt_pad(payload);
		ASSERT_EQ(parse(&out, packet(in, payload + in.pad)), 0) << payload;
		EXPECT_EQ(out.payload_len, payload);
	}
}

// The largest payload of a path, and more than any packet can have.
TEST(PktParse, LongPayload)
{
	for (u32 payload : {4096u, 65532u, 1u << 20}) {
		herald_pkt out;

		ASSERT_EQ(parse(&out, packet(herald_pkt{}, payload)), 0) << payload;
		EXPECT_EQ(out.payload_len, payload);
	}
}

} // namespace
