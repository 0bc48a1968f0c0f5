/* SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB */
/* What tests of the wire stand on: a device whose interface leads to the peer, and QPs that are connected to it. */
#pragma once

#include "control.h"
#include "wire_peer.h"

#include <memory>

namespace conformance {

struct WireOptions {
	WireOptions();

	Family family = Family::v4;
	QpOptions qp;
	Path path;              /* with a path MTU of 256 and no ACK timeout */
	uint32_t rq_psn = 1000; /* the peer's first */
	uint32_t sq_psn = 5000; /* the device's first */
};

/* What all tests of a suite stand on; making it takes long. */
struct WireGround {
	WireGround();
	/* Waits until packets go both ways: an interface that is up need not be ready yet. */
	void warm_up(Family family);

	std::unique_ptr<WirePeer> peer;
	TempLink link;
	Device dev;
};

/* A QP of the device that is connected to the peer. */
class WireConn {
public:
	WireConn(WireGround &ground, ibv_pd *pd, const WireOptions &options = {});

	/* A request with the next PSN, a response with any. */
	WirePacket packet(uint8_t opcode, uint32_t psn) const;
	WirePacket request(uint8_t opcode) const { return packet(opcode, psn); }
	void send(const WirePacket &packet) const { ground.peer->send(options.family, packet); }
	/* It will be taken: the next request is behind it, and behind its responses. */
	void send_next(const WirePacket &packet, uint32_t psns = 1);

	/* The next one that the device sends, which must be one of these. */
	WirePacket next() const;
	WirePacket next(uint8_t opcode) const;
	/* All that are there. */
	std::vector<WirePacket> drain(Millis limit = Millis(0)) const;

	/* The next one is an acknowledgement, or a refusal. */
	void expect_ack(uint32_t of_psn, uint32_t msn) const { expect_aeth(HERALD_AETH_NO_CREDITS, of_psn, msn); }
	void expect_aeth(uint8_t syndrome, uint32_t of_psn, uint32_t msn) const;
	/*
	 * What was sent before has had no answer, and the connection goes on: an empty write is executed, and answered
	 * first.
	 */
	void expect_silence();

	/* Answer a request of the device's. */
	void ack(uint32_t of_psn, uint8_t syndrome = HERALD_AETH_NO_CREDITS) const;

	/* What the modify to RTR says. */
	Attr rtr() const;
	/* Of the address that the peer sends to; waits for it. */
	static int gid_index(const Device &dev, Family family);

	WireGround &ground;
	const WireOptions options;
	End end;
	uint32_t qpn;     /* the peer's */
	uint32_t psn;     /* of its next request */
	uint32_t msn = 0; /* of its messages that were executed */
};

class WireTest : public ::testing::Test {
public:
	static void SetUpTestSuite();
	static void TearDownTestSuite();

protected:
	void SetUp() override;

	WireConn connect(const WireOptions &options = {}) { return {*ground, pd, options}; }
	uint64_t counter(const std::string &name) { return device_counter(ground->dev, name); }
	/* Waits until it has been counted so often since. */
	void expect_counted(const std::string &name, uint64_t before, uint64_t times = 1);
	/* The next event that is a QP's. */
	void expect_qp_event(ibv_event_type type, const WireConn &c);
	void expect_error_state(const WireConn &c) { expect_state(c.end, IBV_QPS_ERR); }

	static std::unique_ptr<WireGround> ground;
	static std::string why_not;
	Pd pd;
};

} // namespace conformance
