/* SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB */
#include "wire_test.h"

#include <sched.h>

#include <fstream>

namespace conformance {

/* ----------------------------------------------------------- connection -- */

WireOptions::WireOptions()
{
	path.mtu = IBV_MTU_256;
	path.timeout = 0;
}

WireGround::WireGround() : peer(std::make_unique<WirePeer>()), link(peer->netdev())
{
	peer->make_known();
	for (Family family : {Family::v4, Family::v6})
		warm_up(family);
}

void WireGround::warm_up(Family family)
{
	const auto end = Clock::now() + patience();
	const Pd pd = make_pd(dev);
	WireOptions options;

	options.family = family;
	const WireConn c(*this, pd, options);
	const WirePacket write = c.request(HERALD_BTH_RC_RDMA_WRITE_ONLY);
	do {
		c.send(write);
		if (peer->receive(family, c.qpn, Millis(100)))
			return;
	} while (Clock::now() < end);
	fail("the peer and the device do not hear each other");
}

/* An address comes into the table in a work item. */
int WireConn::gid_index(const Device &dev, Family family)
{
	const auto end = Clock::now() + patience();
	const ibv_gid wanted = WirePeer::device_gid(family);

	do {
		for (int i = 0; i < dev.port.gid_tbl_len; i++) {
			ibv_gid_entry entry{};

			if (!ibv_query_gid_ex(dev.get(), Device::port_num, static_cast<uint32_t>(i), &entry, 0) &&
			    entry.gid_type == IBV_GID_TYPE_ROCE_V2 && !memcmp(&entry.gid, &wanted, sizeof(wanted)))
				return i;
		}
		std::this_thread::yield();
	} while (Clock::now() < end);
	fail("the address does not come into the GID table");
}

WireConn::WireConn(WireGround &g, ibv_pd *pd, const WireOptions &o)
	: ground(g), options(o), end(g.dev, pd, o.qp), psn(o.rq_psn)
{
	static uint32_t invented = 0x123400;

	qpn = ++invented;
	to_init(end, o.path);
	modify(end, rtr());
	Attr rts = rts_attr(g.dev, o.qp.type, o.path);
	rts.a.sq_psn = o.sq_psn;
	modify(end, rts);
}

Attr WireConn::rtr() const
{
	Path path = options.path;

	path.gid_index = gid_index(ground.dev, options.family);
	Attr at = rtr_attr(ground.dev, options.qp.type, path, qpn);
	at.a.rq_psn = options.rq_psn;
	at.a.ah_attr.grh.dgid = WirePeer::own_gid(options.family);
	return at;
}

WirePacket WireConn::packet(uint8_t opcode, uint32_t of_psn) const
{
	WirePacket p;

	p.h.opcode = opcode;
	p.h.psn = of_psn;
	p.h.pkey = 0xffff;
	p.h.migreq = true;
	p.h.dest_qpn = end.num();
	return p;
}

void WireConn::send_next(const WirePacket &packet, uint32_t psns)
{
	send(packet);
	psn = herald_psn_add(psn, static_cast<s32>(psns));
	if (herald_pkt_row(packet.h.opcode)->flags & HERALD_PKT_LAST)
		msn++;
}

WirePacket WireConn::next() const
{
	auto packet = ground.peer->receive(options.family, qpn, patience());

	if (!packet)
		fail("the device sends nothing");
	return *packet;
}

WirePacket WireConn::next(uint8_t opcode) const
{
	WirePacket packet = next();

	EXPECT_STREQ(herald_pkt_row(packet.h.opcode)->name, herald_pkt_row(opcode)->name) << packet.text();
	return packet;
}

std::vector<WirePacket> WireConn::drain(Millis limit) const
{
	std::vector<WirePacket> all;

	while (auto packet = ground.peer->receive(options.family, qpn, limit))
		all.push_back(*packet);
	return all;
}

void WireConn::expect_aeth(uint8_t syndrome, uint32_t of_psn, uint32_t of_msn) const
{
	const WirePacket p = next(HERALD_BTH_RC_ACKNOWLEDGE);

	EXPECT_EQ(p.h.syndrome, syndrome) << p.text();
	EXPECT_EQ(p.h.psn, of_psn & HERALD_PSN_MASK) << p.text();
	EXPECT_EQ(p.h.msn, of_msn) << p.text();
	EXPECT_EQ(p.h.pkey, 0xffff);
}

void WireConn::expect_silence()
{
	const uint32_t of = psn;

	send_next(request(HERALD_BTH_RC_RDMA_WRITE_ONLY).ask());
	expect_ack(of, msn);
}

void WireConn::ack(uint32_t of_psn, uint8_t syndrome) const
{
	send(packet(HERALD_BTH_RC_ACKNOWLEDGE, of_psn & HERALD_PSN_MASK).aeth(syndrome, 0));
}

/* ---------------------------------------------------------------- tests -- */

std::unique_ptr<WireGround> WireTest::ground;
std::string WireTest::why_not;

namespace {

std::string wire_mode()
{
	std::string mode;

	std::ifstream("/sys/module/herald/parameters/wire") >> mode;
	return mode;
}

/* In one process packets stay in order, if they do not change from one CPU to another. */
void stay_on_this_cpu()
{
	cpu_set_t one;

	CPU_ZERO(&one);
	CPU_SET(sched_getcpu(), &one);
	require_ok(sched_setaffinity(0, sizeof(one), &one), "sched_setaffinity");
}

std::string obstacle()
{
	if (!CqControl::available(Device()))
		return "not this device's";
	if (wire_mode() != "auto")
		return "the wire is not used for what is elsewhere";
	if (system("ip link add wiretry type veth peer name wiretry2 2>/dev/null && ip link del wiretry"))
		return "no veth";
	if (system("ip netns add wiretry && ip netns del wiretry"))
		return "no network namespaces";
	return "";
}

} // namespace

void WireTest::SetUpTestSuite()
{
	why_not = obstacle();
	if (!why_not.empty())
		return;
	stay_on_this_cpu();
	ground = std::make_unique<WireGround>();
}

void WireTest::TearDownTestSuite()
{
	ground.reset();
}

void WireTest::SetUp()
{
	if (!why_not.empty())
		GTEST_SKIP() << why_not;
	pd = make_pd(ground->dev);
	while (next_async(ground->dev, Millis(0)))
		;
}

void WireTest::expect_counted(const std::string &name, uint64_t before, uint64_t times)
{
	const auto end = Clock::now() + patience();
	uint64_t now = counter(name);

	while (now < before + times && Clock::now() < end)
		now = counter(name);
	EXPECT_EQ(now - before, times) << name;
}

void WireTest::expect_qp_event(ibv_event_type type, const WireConn &c)
{
	std::optional<Async> got;

	do
		got = next_async(ground->dev, patience());
	while (got && !got->element);
	ASSERT_TRUE(got) << "no event came; expected " << ibv_event_type_str(type);
	EXPECT_STREQ(ibv_event_type_str(got->type), ibv_event_type_str(type));
	EXPECT_EQ(got->element, c.end.qp.get());
}

} // namespace conformance
