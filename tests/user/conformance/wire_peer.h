/* SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB */
/*
 * A peer made of packets: the other end of the wire, which says what a test wants said and hears all that the device
 * sends. It lives behind a veth in a namespace of its own and has no QPs, only numbers for them.
 *
 *	device -- interface 10.11.12.1 ======= 10.11.12.2 -- namespace -- packet sockets
 *		      2001:db8:77::1           2001:db8:77::2
 */
#pragma once

#include "pair.h"

#include <linux/types.h>

#include <array>

extern "C" {
#include "../../../kernel/pkt.h"
#include "../../../kernel/psn.h"
}

namespace conformance {

using Bytes = std::vector<uint8_t>;

/* Different bytes for every seed. */
Bytes some_bytes(size_t n, uint32_t seed = 1);

/* One packet of either direction; a request reads like what it asks for. */
struct WirePacket {
	herald_pkt h{};
	Bytes payload;
	uint8_t tos = 0;     /* IP's, with the congestion bits */
	uint32_t damage = 0; /* to be applied to the iCRC */
	bool stray = false;  /* to come from an address that is not the peer's */

	WirePacket &with(Bytes bytes)
	{
		payload = std::move(bytes);
		return *this;
	}
	WirePacket &with(size_t n) { return with(some_bytes(n)); }
	WirePacket &psn(uint32_t value)
	{
		h.psn = value & HERALD_PSN_MASK;
		return *this;
	}
	/* AckReq */
	WirePacket &ask()
	{
		h.ack_req = true;
		return *this;
	}
	WirePacket &solicit()
	{
		h.solicited = true;
		return *this;
	}
	/* RETH or AtomicETH */
	WirePacket &at(const Region &r, size_t off, uint32_t len) { return at(r.addr(off), r.mr->rkey, len); }
	WirePacket &at(uint64_t va, uint32_t rkey, uint32_t len)
	{
		h.va = va;
		h.rkey = rkey;
		h.dmalen = len;
		return *this;
	}
	WirePacket &operands(uint64_t swap_add, uint64_t compare = 0)
	{
		h.swap_add = swap_add;
		h.compare = compare;
		return *this;
	}
	/* AETH */
	WirePacket &aeth(uint8_t syndrome, uint32_t msn)
	{
		h.syndrome = syndrome;
		h.msn = msn;
		return *this;
	}

	/* For messages of tests */
	std::string text() const;
};

/* The namespace, the pair of interfaces, the sockets. */
class WirePeer {
public:
	WirePeer();
	~WirePeer();
	WirePeer(const WirePeer &) = delete;
	WirePeer &operator=(const WirePeer &) = delete;

	/* The device's interface. */
	const std::string &netdev() const { return netdev_; }
	/* When that is up: its IPv6 address, and who the peer is, so that nothing waits for an answer to that. */
	void make_known() const;
	/* The two addresses, as GIDs. */
	static ibv_gid own_gid(Family family);
	static ibv_gid device_gid(Family family);

	void send(Family family, const WirePacket &packet);
	/* What stands between the UDP header and the iCRC; that is right if there are enough bytes for one. */
	void send_bytes(Family family, const Bytes &bytes, uint32_t damage = 0, uint8_t tos = 0, bool stray = false);
	/*
	 * Packets of the same length, but the last may be shorter, as one train over IPv4: one that a sender gave to its
	 * interface whole. @pieces: it is not in one piece in memory.
	 */
	void send_train(const std::vector<WirePacket> &packets, bool pieces = false);
	/* The same without an iCRC. */
	void send_bare(Family family, const Bytes &bytes);
	/* The next packet for a QP; those for others are gone. Its iCRC was right, or the test has failed. */
	std::optional<WirePacket> receive(Family family, uint32_t qpn, Millis limit);

private:
	void open_sockets();
	void transmit(Family family, Bytes packet);
	std::optional<WirePacket> parse(Family family, const Bytes &ip) const;
	int &fd(Family family) { return fds_[family == Family::v4 ? 0 : 1]; }

	std::string netdev_, other_, ns_;
	std::array<int, 2> fds_ = {-1, -1};
	std::array<int, 2> ports_ = {-1, -1}; /* so that nobody answers that the port is closed */
	std::array<uint8_t, 6> mac_{};
	int index_ = 0; /* of the other interface */
	int trains_ = -1;
	uint16_t id_ = 0;
};

} // namespace conformance
