/* SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB */
/*
 * WRs that are posted together travel together (docs/design.md, the wire): as one train, with one request for an answer. What
 * is said of each is what would be said of it alone (IBTA vol. 1, 9.7.3).
 */
#include "wire_requester.h"

using namespace conformance;

namespace {

/* Sends one after the other, posted as one list */
class List {
public:
	explicit List(Region &mem) : mem_(mem) {}

	List &add(uint32_t length, ibv_wr_opcode opcode = IBV_WR_SEND)
	{
		wrs_.push_back(std::make_unique<Send>(opcode, wrs_.size()));
		wrs_.back()->from(mem_, wrs_.size() * 512, length).to(0x1000 * wrs_.size(), 0x4242);
		return *this;
	}

	void post(ibv_qp *qp)
	{
		ibv_send_wr *bad = nullptr;

		for (size_t i = 0; i < wrs_.size(); i++) {
			ibv_send_wr &wr = wrs_[i]->wr;

			wr.sg_list = wrs_[i]->sges.data();
			wr.num_sge = static_cast<int>(wrs_[i]->sges.size());
			wr.next = i + 1 < wrs_.size() ? &wrs_[i + 1]->wr : nullptr;
		}
		require_ok(ibv_post_send(qp, &wrs_.front()->wr, &bad), "ibv_post_send");
	}

private:
	Region &mem_;
	std::vector<std::unique_ptr<Send>> wrs_;
};

} // namespace

/* One train; an ACK of the last completes all, one of the middle those before it. */
TEST_F(WireRequester, EqualOnesTravelTogether)
{
	WireConn c = connect();
	const uint64_t trains = counter("wire_tx_trains"), packets = counter("wire_tx_packets");
	List list(c.end.mem);

	c.end.mem.fill(9);
	for (uint32_t i = 0; i < 6; i++)
		list.add(65, IBV_WR_RDMA_WRITE);
	list.post(c.end);
	for (uint32_t i = 0; i < 6; i++) {
		const WirePacket p = c.next(HERALD_BTH_RC_RDMA_WRITE_ONLY);

		EXPECT_EQ(p.h.psn, 5000 + i);
		EXPECT_EQ(p.h.va, 0x1000u * (i + 1));
		EXPECT_EQ(p.h.dmalen, 65u);
		EXPECT_EQ(p.h.pad, 3u);
		EXPECT_EQ(p.h.ack_req, i == 5);
		ASSERT_EQ(p.payload.size(), 65u);
		EXPECT_EQ(differs(p.payload.data(), c.end.mem.data() + (i + 1) * 512, 65), -1);
	}
	EXPECT_EQ(counter("wire_tx_packets") - packets, 6u);
	EXPECT_EQ(counter("wire_tx_trains") - trains, 1u);
	c.ack(5002);
	for (uint64_t i = 0; i < 3; i++)
		expect_ok(c.end.scq, i);
	expect_empty(c.end.scq);
	c.ack(5005);
	for (uint64_t i = 3; i < 6; i++)
		expect_ok(c.end.scq, i);
}

/* A shorter one ends a train, a longer one begins the next. */
TEST_F(WireRequester, OthersTravelApart)
{
	WireConn c = connect();
	const uint64_t trains = counter("wire_tx_trains");
	const std::array<uint32_t, 7> lengths = {64, 64, 20, 20, 100, 0, 64};
	const std::array<bool, 7> asks = {false, false, true, true, false, true, true};
	List list(c.end.mem);

	for (uint32_t length : lengths)
		list.add(length);
	list.post(c.end);
	for (uint32_t i = 0; i < lengths.size(); i++) {
		const WirePacket p = c.next(HERALD_BTH_RC_SEND_ONLY);

		EXPECT_EQ(p.h.psn, 5000 + i);
		EXPECT_EQ(p.payload.size(), lengths[i]);
		EXPECT_EQ(p.h.ack_req, asks[i]) << i;
	}
	EXPECT_EQ(counter("wire_tx_trains") - trains, 4u);
	c.ack(5006);
	for (uint64_t i = 0; i < lengths.size(); i++)
		expect_ok(c.end.scq, i);
}

/* 9.7.5.1.2: what was lost of them, and all behind it, is sent again. */
TEST_F(WireRequester, TogetherOnceMore)
{
	WireConn c = connect();
	List list(c.end.mem);

	for (uint32_t i = 0; i < 5; i++)
		list.add(32);
	list.post(c.end);
	for (uint32_t i = 0; i < 5; i++)
		EXPECT_EQ(c.next(HERALD_BTH_RC_SEND_ONLY).h.psn, 5000 + i);
	c.ack(5002, HERALD_AETH_NAK_SEQUENCE);
	for (uint32_t i = 2; i < 5; i++)
		EXPECT_EQ(c.next(HERALD_BTH_RC_SEND_ONLY).h.psn, 5000 + i);
	c.ack(5004);
	for (uint64_t i = 0; i < 5; i++)
		expect_ok(c.end.scq, i);
}

/* A WRITE's first packet is longer than the others: one more is in its train, as long as it may be, and then come the others. */
TEST_F(WireRequester, FirstTakesOneAlong)
{
	static constexpr std::array<std::pair<uint32_t, uint64_t>, 4> cases = {
		{{256, 1}, {300, 1}, {512, 1}, {900, 2}}};
	WireConn c = connect();
	uint32_t psn = 5000;

	c.end.mem.fill(11);
	for (const auto &[length, trains] : cases) {
		const uint64_t before = counter("wire_tx_trains");
		uint32_t off = 0;

		Send(IBV_WR_RDMA_WRITE_WITH_IMM, 1).from(c.end.mem, 0, length).to(0x1000, 0x4242).imm(7).post(c.end);
		while (off < length) {
			const WirePacket p = c.next();

			EXPECT_EQ(p.h.psn, psn++);
			ASSERT_EQ(p.payload.size(), std::min(length - off, 256u));
			EXPECT_EQ(differs(p.payload.data(), c.end.mem.data() + off, p.payload.size()), -1);
			off += p.payload.size();
		}
		EXPECT_EQ(counter("wire_tx_trains") - before, trains) << length << " bytes";
		c.ack(psn - 1);
		expect_ok(c.end.scq, 1);
	}
}
