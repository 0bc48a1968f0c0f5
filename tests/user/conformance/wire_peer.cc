/* SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB */
#include "wire_peer.h"

#include <arpa/inet.h>
#include <fcntl.h>
#include <linux/ethtool.h>
#include <linux/if_packet.h>
#include <linux/sockios.h>
#include <net/ethernet.h>
#include <net/if.h>
#include <poll.h>
#include <sched.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cstdio>
#include <fstream>

namespace conformance {

namespace {

constexpr uint16_t kPort = 4791;
constexpr size_t kUdpLen = 8;
constexpr int kReceiveBuffer = 4 << 20;

const char *const kOwnMac = "02:00:00:00:47:91";
const char *const kOwn4 = "10.11.12.2", *const kStray4 = "10.11.12.3", *const kDevice4 = "10.11.12.1";
const char *const kOwn6 = "2001:db8:77::2", *const kStray6 = "2001:db8:77::3", *const kDevice6 = "2001:db8:77::1";

void run(const std::string &command)
{
	require_ok(system(command.c_str()), command);
}

ibv_gid to_gid(const char *v4, const char *v6, Family family)
{
	ibv_gid gid{};

	if (family == Family::v6) {
		require(inet_pton(AF_INET6, v6, gid.raw) == 1, v6);
		return gid;
	}
	gid.raw[10] = gid.raw[11] = 0xff;
	require(inet_pton(AF_INET, v4, gid.raw + 12) == 1, v4);
	return gid;
}

void put16(uint8_t *at, uint32_t value)
{
	at[0] = static_cast<uint8_t>(value >> 8);
	at[1] = static_cast<uint8_t>(value);
}

uint16_t get16(const uint8_t *at)
{
	return static_cast<uint16_t>(at[0] << 8 | at[1]);
}

uint32_t sum16(std::span<const uint8_t> bytes, uint32_t sum = 0)
{
	for (size_t i = 0; i < bytes.size(); i += 2)
		sum += bytes[i] << 8 | (i + 1 < bytes.size() ? bytes[i + 1] : 0);
	return sum;
}

uint16_t fold(uint32_t sum)
{
	while (sum >> 16)
		sum = (sum & 0xffff) + (sum >> 16);
	return static_cast<uint16_t>(~sum);
}

size_t ip_len(Family family)
{
	return family == Family::v4 ? 20 : 40;
}

void make_ipv4(uint8_t *ip, size_t total, uint16_t id, uint8_t tos, bool stray)
{
	ip[0] = 0x45;
	ip[1] = tos;
	put16(ip + 2, static_cast<uint32_t>(total));
	put16(ip + 4, id);
	put16(ip + 6, 0x4000); /* do not fragment */
	ip[8] = 64;
	ip[9] = IPPROTO_UDP;
	memcpy(ip + 12, to_gid(stray ? kStray4 : kOwn4, nullptr, Family::v4).raw + 12, 4);
	memcpy(ip + 16, to_gid(kDevice4, nullptr, Family::v4).raw + 12, 4);
	put16(ip + 10, fold(sum16({ip, 20})));
}

void make_ipv6(uint8_t *ip, size_t total, uint8_t tos, bool stray)
{
	ip[0] = static_cast<uint8_t>(0x60 | tos >> 4);
	ip[1] = static_cast<uint8_t>(tos << 4);
	put16(ip + 4, static_cast<uint32_t>(total - 40));
	ip[6] = IPPROTO_UDP;
	ip[7] = 64;
	memcpy(ip + 8, to_gid(nullptr, stray ? kStray6 : kOwn6, Family::v6).raw, 16);
	memcpy(ip + 24, to_gid(nullptr, kDevice6, Family::v6).raw, 16);
}

/* Headers in front of the payload. */
Bytes make_packet(Family family, const Bytes &payload, uint16_t id, uint8_t tos, bool stray)
{
	const size_t ip = ip_len(family), udp_bytes = kUdpLen + payload.size();
	Bytes packet(ip + udp_bytes);
	uint8_t *udp = packet.data() + ip;

	if (family == Family::v4)
		make_ipv4(packet.data(), packet.size(), id, tos, stray);
	else
		make_ipv6(packet.data(), packet.size(), tos, stray);
	put16(udp, 0xc0de);
	put16(udp + 2, kPort);
	put16(udp + 4, static_cast<uint32_t>(udp_bytes));
	std::copy(payload.begin(), payload.end(), udp + kUdpLen);
	return packet;
}

/* IPv6 has no UDP without a checksum. */
void put_udp_checksum(Bytes &packet)
{
	uint8_t *udp = packet.data() + 40;
	const std::span<const uint8_t> addresses(packet.data() + 8, 32), rest(udp, packet.size() - 40);
	const uint16_t sum =
		fold(sum16(rest, sum16(addresses) + static_cast<uint32_t>(packet.size() - 40) + IPPROTO_UDP));

	put16(udp + 6, sum ? sum : 0xffff);
}

/* Runs it in a thread that is in another network namespace: sockets stay where they were made. */
template <class F> void in_namespace(const std::string &ns, F body)
{
	std::string error;

	std::thread([&] {
		const int fd = open(("/run/netns/" + ns).c_str(), O_RDONLY | O_CLOEXEC);

		try {
			require(fd >= 0 && setns(fd, CLONE_NEWNET) == 0, "namespace " + ns);
			body();
		} catch (const std::exception &e) {
			error = e.what();
		}
		close(fd);
	}).join();
	if (!error.empty())
		fail(error);
}

int open_packet_socket(const std::string &netdev, int ethertype)
{
	const int fd = socket(AF_PACKET, SOCK_DGRAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	sockaddr_ll at{};

	require(fd >= 0, "packet socket");
	at.sll_family = AF_PACKET;
	at.sll_protocol = htons(static_cast<uint16_t>(ethertype));
	at.sll_ifindex = static_cast<int>(if_nametoindex(netdev.c_str()));
	require(at.sll_ifindex > 0, netdev);
	require_ok(setsockopt(fd, SOL_SOCKET, SO_RCVBUFFORCE, &kReceiveBuffer, sizeof(kReceiveBuffer)), "SO_RCVBUF");
	require_ok(bind(fd, reinterpret_cast<sockaddr *>(&at), sizeof(at)), "bind to " + netdev);
	return fd;
}

/* For whole frames with a header that tells of offloads; it hears nothing. */
int open_train_socket(const std::string &netdev)
{
	const int fd = socket(AF_PACKET, SOCK_RAW | SOCK_CLOEXEC, 0), one = 1;
	sockaddr_ll at{};

	require(fd >= 0, "packet socket");
	at.sll_family = AF_PACKET;
	at.sll_ifindex = static_cast<int>(if_nametoindex(netdev.c_str()));
	require_ok(setsockopt(fd, SOL_PACKET, PACKET_VNET_HDR, &one, sizeof(one)), "PACKET_VNET_HDR");
	require_ok(bind(fd, reinterpret_cast<sockaddr *>(&at), sizeof(at)), "bind to " + netdev);
	return fd;
}

int hold_port(int family)
{
	const int fd = socket(family, SOCK_DGRAM | SOCK_CLOEXEC, 0), one = 1;
	sockaddr_in6 any6{};
	sockaddr_in any4{};

	require(fd >= 0, "UDP socket");
	any4.sin_family = AF_INET;
	any4.sin_port = htons(kPort);
	any6.sin6_family = AF_INET6;
	any6.sin6_port = htons(kPort);
	if (family == AF_INET6)
		setsockopt(fd, IPPROTO_IPV6, IPV6_V6ONLY, &one, sizeof(one));
	require_ok(family == AF_INET ? bind(fd, reinterpret_cast<sockaddr *>(&any4), sizeof(any4))
				     : bind(fd, reinterpret_cast<sockaddr *>(&any6), sizeof(any6)),
		   "bind to port 4791");
	return fd;
}

/* Without it an interface takes no trains: they come as packets, each with what it has on a real wire. */
void forbid_offloads(const std::string &netdev)
{
	const int fd = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);
	ethtool_value value{ETHTOOL_STXCSUM, 0};
	ifreq request{};

	require(fd >= 0, "socket");
	netdev.copy(request.ifr_name, sizeof(request.ifr_name) - 1);
	request.ifr_data = reinterpret_cast<char *>(&value);
	const int rc = ioctl(fd, SIOCETHTOOL, &request);
	close(fd);
	require_ok(rc, netdev + ": checksums in software");
}

std::array<uint8_t, 6> mac_of(const std::string &netdev)
{
	std::ifstream in("/sys/class/net/" + netdev + "/address");
	std::array<uint8_t, 6> mac{};
	std::string byte;

	for (uint8_t &m : mac) {
		require(static_cast<bool>(std::getline(in, byte, ':')), netdev + ": address");
		m = static_cast<uint8_t>(std::stoul(byte, nullptr, 16));
	}
	return mac;
}

} // namespace

Bytes some_bytes(size_t n, uint32_t seed)
{
	Bytes bytes(n);
	uint32_t x = seed * 2654435761u + 1;

	for (uint8_t &byte : bytes) {
		x = x * 1664525 + 1013904223;
		byte = static_cast<uint8_t>(x >> 24);
	}
	return bytes;
}

std::string WirePacket::text() const
{
	const struct herald_pkt_row *row = herald_pkt_row(h.opcode);
	std::array<char, 256> line{};

	snprintf(line.data(), line.size(),
		 "%s qpn %#x psn %u (%#x)%s%s%s, syndrome %#x msn %u, va %#llx len %u, %zu bytes",
		 row->name ? row->name : "?", h.dest_qpn, h.psn, h.psn, h.ack_req ? " AckReq" : "",
		 h.solicited ? " SE" : "", h.migreq ? " MigReq" : "", h.syndrome, h.msn,
		 static_cast<unsigned long long>(h.va), h.dmalen, payload.size());
	return line.data();
}

/* ----------------------------------------------------------------- peer -- */

WirePeer::WirePeer()
{
	static int instance;
	const std::string id = std::to_string(getpid() % 10000) + "n" + std::to_string(instance++);

	netdev_ = "wd" + id;
	other_ = "wp" + id;
	ns_ = "wire" + id;
	run("ip netns add " + ns_);
	run("ip link add " + netdev_ + " type veth peer name " + other_ + " address " + kOwnMac + " netns " + ns_);
	run("ip -n " + ns_ + " addr add " + kOwn4 + "/24 dev " + other_ + " && ip -n " + ns_ + " addr add " + kOwn6 +
	    "/64 dev " + other_ + " nodad && ip -n " + ns_ + " link set " + other_ + " up");
	forbid_offloads(netdev_);
	mac_ = mac_of(netdev_);
	in_namespace(ns_, [this] { open_sockets(); });
}

void WirePeer::open_sockets()
{
	index_ = static_cast<int>(if_nametoindex(other_.c_str()));
	fd(Family::v4) = open_packet_socket(other_, ETH_P_IP);
	fd(Family::v6) = open_packet_socket(other_, ETH_P_IPV6);
	trains_ = open_train_socket(other_);
	ports_ = {hold_port(AF_INET), hold_port(AF_INET6)};
}

WirePeer::~WirePeer()
{
	for (int fd : {fds_[0], fds_[1], ports_[0], ports_[1], trains_})
		if (fd >= 0)
			close(fd);
	/* the interfaces go with the device's end, or with the namespace */
	EXPECT_EQ(system(("ip netns del " + ns_).c_str()), 0);
}

void WirePeer::make_known() const
{
	const std::string lladdr = std::string(" lladdr ") + kOwnMac + " nud permanent dev " + netdev_;

	run("ip addr add " + std::string(kDevice6) + "/64 dev " + netdev_ + " nodad");
	run("ip neigh replace " + std::string(kOwn4) + lladdr + " && ip neigh replace " + kOwn6 + lladdr);
}

ibv_gid WirePeer::own_gid(Family family)
{
	return to_gid(kOwn4, kOwn6, family);
}

ibv_gid WirePeer::device_gid(Family family)
{
	return to_gid(kDevice4, kDevice6, family);
}

/* -------------------------------------------------------------- sending -- */

void WirePeer::transmit(Family family, Bytes packet)
{
	sockaddr_ll to{};

	if (family == Family::v6)
		put_udp_checksum(packet);
	to.sll_family = AF_PACKET;
	to.sll_protocol = htons(family == Family::v4 ? ETH_P_IP : ETH_P_IPV6);
	to.sll_halen = static_cast<uint8_t>(mac_.size());
	memcpy(to.sll_addr, mac_.data(), mac_.size());
	to.sll_ifindex = index_;
	const ssize_t n =
		sendto(fd(family), packet.data(), packet.size(), 0, reinterpret_cast<sockaddr *>(&to), sizeof(to));
	require(n == static_cast<ssize_t>(packet.size()), "sendto");
}

void WirePeer::send_bytes(Family family, const Bytes &bytes, uint32_t damage, uint8_t tos, bool stray)
{
	Bytes covered = bytes;

	covered.resize(bytes.size() + HERALD_ICRC_LEN);
	Bytes packet = make_packet(family, covered, ++id_, tos, stray);
	const uint8_t *ip = packet.data(), *udp = ip + ip_len(family), *bth = udp + kUdpLen;
	const auto len = static_cast<uint32_t>(bytes.size());
	uint32_t icrc = 0;

	if (len >= HERALD_BTH_LEN)
		icrc = family == Family::v4 ? herald_icrc_v4(ip, udp, id_, bth, len)
					    : herald_icrc_v6(ip, udp, bth, len);
	herald_icrc_put(packet.data() + packet.size() - HERALD_ICRC_LEN, icrc ^ damage);
	transmit(family, packet);
}

void WirePeer::send_bare(Family family, const Bytes &bytes)
{
	transmit(family, make_packet(family, bytes, ++id_, 0, false));
}

/* From the BTH to the pad. */
static Bytes to_bytes(const WirePacket &packet)
{
	Bytes bytes(HERALD_PKT_HDR_MAX);
	herald_pkt h = packet.h;

	h.pad = herald_pkt_pad(static_cast<uint32_t>(packet.payload.size()));
	bytes.resize(herald_pkt_emit(&h, bytes.data()));
	bytes.insert(bytes.end(), packet.payload.begin(), packet.payload.end());
	bytes.resize(bytes.size() + h.pad);
	return bytes;
}

void WirePeer::send(Family family, const WirePacket &packet)
{
	send_bytes(family, to_bytes(packet), packet.damage, packet.tos, packet.stray);
}

/* <linux/virtio_net.h>, which C++ does not take */
struct OffloadHeader {
	uint8_t flags = 1;    /* the checksum is needed */
	uint8_t gso_type = 5; /* UDP */
	uint16_t hdr_len = 0, gso_size = 0, csum_start = 0, csum_offset = 0;
};

/* What the interface would need to know to make packets of it. */
static OffloadHeader offload_header(size_t segment, size_t in_one_piece)
{
	OffloadHeader vnet;

	vnet.gso_size = static_cast<uint16_t>(segment);
	vnet.csum_start = ETH_HLEN + 20;
	vnet.csum_offset = 6;
	vnet.hdr_len = static_cast<uint16_t>(ETH_HLEN + in_one_piece);
	return vnet;
}

void WirePeer::send_train(const std::vector<WirePacket> &packets, bool pieces)
{
	const uint16_t first = ++id_;
	Bytes payload;
	std::vector<size_t> ends;

	for (const WirePacket &p : packets) {
		const Bytes bytes = to_bytes(p);

		payload.insert(payload.end(), bytes.begin(), bytes.end());
		payload.resize(payload.size() + HERALD_ICRC_LEN);
		ends.push_back(payload.size());
	}
	Bytes ip = make_packet(Family::v4, payload, first, 0, false);
	uint8_t *udp = ip.data() + 20, *data = udp + kUdpLen;
	for (size_t i = 0, begin = 0; i < packets.size(); begin = ends[i++]) {
		const auto covered = static_cast<uint32_t>(ends[i] - begin - HERALD_ICRC_LEN);
		const auto id = static_cast<uint16_t>(first + i);

		herald_icrc_put(data + begin + covered,
				herald_icrc_v4(ip.data(), udp, id, data + begin, covered) ^ packets[i].damage);
	}
	id_ = static_cast<uint16_t>(first + packets.size());
	/* the part of the checksum that hardware would go on from */
	put16(udp + 6, static_cast<uint16_t>(~fold(sum16({ip.data() + 12, 8}) + IPPROTO_UDP +
						   static_cast<uint32_t>(kUdpLen + payload.size()))));

	const OffloadHeader vnet = offload_header(ends[0], pieces ? 20 + kUdpLen : ip.size());
	Bytes frame(sizeof(vnet) + ETH_HLEN);
	memcpy(frame.data(), &vnet, sizeof(vnet));
	memcpy(frame.data() + sizeof(vnet), mac_.data(), mac_.size());
	put16(frame.data() + sizeof(vnet) + 12, ETH_P_IP);
	frame.insert(frame.end(), ip.begin(), ip.end());
	require(::send(trains_, frame.data(), frame.size(), 0) == static_cast<ssize_t>(frame.size()), "send a train");
}

/* ------------------------------------------------------------ receiving -- */

/* Nothing, if it is not for the port; a test that gets what is no packet has failed. */
std::optional<WirePacket> WirePeer::parse(Family family, const Bytes &ip) const
{
	const size_t head = ip_len(family) + kUdpLen;
	WirePacket packet;

	if (ip.size() < head || ip[family == Family::v4 ? 9 : 6] != IPPROTO_UDP)
		return {};
	const uint8_t *udp = ip.data() + head - kUdpLen, *bth = udp + kUdpLen;
	if (get16(udp + 2) != kPort)
		return {};
	const auto len = static_cast<uint32_t>(ip.size() - head);
	if (int why = herald_pkt_parse(&packet.h, bth, len))
		fail("a packet that says nothing: " + std::to_string(why));
	const uint32_t covered = len - HERALD_ICRC_LEN;
	const uint32_t icrc = family == Family::v4 ? herald_icrc_v4(ip.data(), udp, get16(ip.data() + 4), bth, covered)
						   : herald_icrc_v6(ip.data(), udp, bth, covered);
	EXPECT_EQ(icrc, herald_icrc_get(bth + covered)) << "iCRC of " << packet.text();
	packet.payload.assign(bth + packet.h.hdr_len, bth + packet.h.hdr_len + packet.h.payload_len);
	packet.tos = family == Family::v4 ? ip[1] : static_cast<uint8_t>(ip[0] << 4 | ip[1] >> 4);
	return packet;
}

std::optional<WirePacket> WirePeer::receive(Family family, uint32_t qpn, Millis limit)
{
	const auto end = Clock::now() + limit;

	for (;;) {
		const auto left = std::chrono::ceil<Millis>(end - Clock::now());

		if (!readable(fd(family), std::max(left, Millis(0))))
			return {};
		Bytes ip(65536);
		const ssize_t n = ::recv(fd(family), ip.data(), ip.size(), 0);
		if (n < 0 && errno == EAGAIN)
			continue;
		require(n >= 0, "recv");
		ip.resize(static_cast<size_t>(n));
		auto packet = parse(family, ip);
		if (packet && packet->h.dest_qpn == qpn)
			return packet;
	}
}

} // namespace conformance
