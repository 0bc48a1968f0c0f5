/* SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB */
/* Tests of the requester on the wire: its requests, and answers to them by hand. */
#pragma once

#include "wire_test.h"

namespace conformance {

class WireRequester : public WireTest {
protected:
	static void post_send(WireConn &c, uint64_t id, uint32_t len = 8)
	{
		Send(IBV_WR_SEND, id).from(c.end.mem, 0, len).post(c.end);
	}
	static void post_read(WireConn &c, uint64_t id, uint32_t len)
	{
		Send(IBV_WR_RDMA_READ, id).from(c.end.mem, 0, len).to(0x10000, 0x77).post(c.end);
	}
	/* The whole answer of a READ, or a part of it. */
	static void answer_read(const WireConn &c, uint32_t first, const Bytes &data)
	{
		const size_t n = std::max<size_t>(1, (data.size() + 255) / 256);

		for (size_t i = 0; i < n; i++)
			c.send(response(c, first + static_cast<uint32_t>(i), i, n, data));
	}
	static WirePacket response(const WireConn &c, uint32_t psn, size_t i, size_t n, const Bytes &data)
	{
		const auto from = data.begin() + static_cast<ssize_t>(i * 256);
		const auto to = i + 1 < n ? from + 256 : data.end();
		const uint8_t opcode = n == 1       ? HERALD_BTH_RC_RDMA_READ_RESPONSE_ONLY
				       : i == 0     ? HERALD_BTH_RC_RDMA_READ_RESPONSE_FIRST
				       : i + 1 == n ? HERALD_BTH_RC_RDMA_READ_RESPONSE_LAST
						    : HERALD_BTH_RC_RDMA_READ_RESPONSE_MIDDLE;

		return c.packet(opcode, psn & HERALD_PSN_MASK).aeth(HERALD_AETH_NO_CREDITS, 1).with({from, to});
	}
	static void expect_next(const WireConn &c, uint8_t opcode, uint32_t psn)
	{
		const WirePacket p = c.next(opcode);

		EXPECT_EQ(p.h.psn, psn) << p.text();
	}
	/* Nothing has changed: a message goes through, first. */
	static void expect_untouched(WireConn &c, uint32_t psn)
	{
		expect_empty(c.end.scq);
		post_send(c, 4711);
		expect_next(c, HERALD_BTH_RC_SEND_ONLY, psn);
		c.ack(psn);
		expect_ok(c.end.scq, 4711);
	}
};

} // namespace conformance
