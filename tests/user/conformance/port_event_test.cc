/* SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB */
/*
 * Events of the port and of the device (docs/events.md), natural and provoked, on a device of the test's own: once per
 * change, port number 1, and what can be queried and done agrees with what was reported.
 */
#include "control.h"
#include "pair.h"

#include <fcntl.h>
#include <linux/if_tun.h>
#include <net/if.h>
#include <sys/ioctl.h>
#include <unistd.h>

using namespace conformance;

class PortEvent : public ::testing::Test {
protected:
	TempLink link;
	Device dev;
	Pd pd = make_pd(dev);

	void SetUp() override
	{
		if (!CqControl::available(dev))
			GTEST_SKIP() << "this device's events cannot be provoked";
		/* what came of the new interface's addresses */
		while (next_async(dev, quiet()))
			;
	}

	ibv_port_state state() const
	{
		ibv_port_attr port{};

		require_ok(ibv_query_port(dev, Device::port_num, &port), "ibv_query_port");
		return port.state;
	}
	uint16_t pkey(int index) const
	{
		__be16 key = 0;

		require_ok(ibv_query_pkey(dev, Device::port_num, index, &key), "ibv_query_pkey");
		return be16toh(key);
	}
	/* The next event but for those of the interface's addresses. */
	void expect_port_event(ibv_event_type type)
	{
		std::optional<Async> got;

		do
			got = next_async(dev, patience());
		while (got && got->type == IBV_EVENT_GID_CHANGE && type != IBV_EVENT_GID_CHANGE);
		ASSERT_TRUE(got) << "no event came; expected " << ibv_event_type_str(type);
		EXPECT_STREQ(ibv_event_type_str(got->type), ibv_event_type_str(type));
		EXPECT_EQ(got->port, 1);
	}
	void expect_no_port_event(Millis limit = quiet())
	{
		while (auto got = next_async(dev, limit))
			EXPECT_EQ(got->type, IBV_EVENT_GID_CHANGE) << ibv_event_type_str(got->type);
	}
	void set_link(const std::string &state) { TempLink::run("ip link set " + link.netdev() + " " + state); }

	/* Nothing counts as lost: what cannot be sent now is sent later. */
	static Path patient()
	{
		Path path;

		path.timeout = 0;
		return path;
	}
	static void write(Pair &p, uint64_t id)
	{
		Send(IBV_WR_RDMA_WRITE, id).from(p.a.mem, 0, 8).to(p.b.mem).post(p.a);
	}
};

/* CASES 48: the interface's state is the port's; it is there when the event is read. */
TEST_F(PortEvent, Cases48_InterfaceDownAndUp)
{
	for (int i = 0; i < 100 / slowness(); i++) {
		set_link("down");
		expect_port_event(IBV_EVENT_PORT_ERR);
		EXPECT_EQ(state(), IBV_PORT_DOWN);
		set_link("up");
		expect_port_event(IBV_EVENT_PORT_ACTIVE);
		EXPECT_EQ(state(), IBV_PORT_ACTIVE);
	}
	expect_no_port_event();
}

/* The carrier counts as much. */
TEST_F(PortEvent, CarrierLostAndFound)
{
	TempLink::run("ip link set " + link.netdev() + " carrier off");
	expect_port_event(IBV_EVENT_PORT_ERR);
	EXPECT_EQ(state(), IBV_PORT_DOWN);
	/* an interface without a carrier is no less without one for being set up again */
	set_link("down");
	set_link("up");
	expect_no_port_event();
	TempLink::run("ip link set " + link.netdev() + " carrier on");
	expect_port_event(IBV_EVENT_PORT_ACTIVE);
	expect_no_port_event();
}

/* An address that comes and goes is a GID that does. */
TEST_F(PortEvent, AddressesChangeTheGids)
{
	TempLink::run("ip addr add 10.11.12.77/24 dev " + link.netdev());
	expect_port_event(IBV_EVENT_GID_CHANGE);
	expect_no_port_event();
	TempLink::run("ip addr del 10.11.12.77/24 dev " + link.netdev());
	expect_port_event(IBV_EVENT_GID_CHANGE);
	expect_no_port_event();
}

/* CASES 54: those that are no more than the event. */
TEST_F(PortEvent, Cases54_EventsAlone)
{
	const struct {
		const char *name;
		ibv_event_type type;
		const char *text;
	} rows[] = {
		{"lid-change", IBV_EVENT_LID_CHANGE, "LID change"},
		{"sm-change", IBV_EVENT_SM_CHANGE, "SM change"},
		{"client-reregister", IBV_EVENT_CLIENT_REREGISTER, "client reregistration"},
		{"gid-change", IBV_EVENT_GID_CHANGE, "GID table change"},
		{"port-active", IBV_EVENT_PORT_ACTIVE, "port active"},
	};
	Pair p(dev, pd);

	for (const auto &row : rows) {
		SCOPED_TRACE(row.name);
		EXPECT_STREQ(ibv_event_type_str(row.type), row.text);
		provoke(dev, row.name);
		auto got = next_async(dev, patience());
		ASSERT_TRUE(got);
		EXPECT_EQ(got->type, row.type);
		EXPECT_EQ(got->port, 1);
		EXPECT_FALSE(next_async(dev, Millis(50)));
		EXPECT_EQ(state(), IBV_PORT_ACTIVE);
	}
	write(p, 1);
	expect_ok(p.a.scq, 1);
}

/* CASES 54: the port is down for queries and for traffic, until it is provoked to be active. */
TEST_F(PortEvent, Cases54_PortErrorStopsThePort)
{
	Pair p(dev, pd, {}, patient());

	provoke(dev, "port-err");
	expect_port_event(IBV_EVENT_PORT_ERR);
	EXPECT_EQ(state(), IBV_PORT_DOWN);
	write(p, 1);
	expect_stays_empty(p.a.scq);
	EXPECT_EQ(state_of(p.a), IBV_QPS_RTS);
	expect_no_port_event();

	provoke(dev, "port-active");
	expect_port_event(IBV_EVENT_PORT_ACTIVE);
	EXPECT_EQ(state(), IBV_PORT_ACTIVE);
	expect_ok(p.a.scq, 1);
	expect_no_port_event();
}

/* What a peer that has gone does to a connection: its retries are used up. */
TEST_F(PortEvent, RetriesEndOnAStoppedPort)
{
	Path path;
	path.timeout = 1;
	path.retry_cnt = 1;
	Pair p(dev, pd, {}, path);

	provoke(dev, "port-err");
	write(p, 1);
	expect_wc(p.a.scq, IBV_WC_RETRY_EXC_ERR, 1);
	expect_port_event(IBV_EVENT_PORT_ERR);
}

/* Datagrams are lost, to groups too. */
TEST_F(PortEvent, DatagramsAreLostOnAStoppedPort)
{
	UdEnd ud(dev, pd);
	ibv_gid group{};

	group.raw[0] = 0xff;
	group.raw[1] = 0x0e;
	group.raw[15] = 0x42;
	ASSERT_EQ(ibv_attach_mcast(ud, &group, 0), 0);
	Ah to_group = make_ah(dev, pd, dev.gid_index(), group);
	recv(ud, ud.mem, 0, 1024, 1);
	provoke(dev, "port-err");
	Send(IBV_WR_SEND, 2).from(ud.mem, 2048, 8).ud(ud.self, ud.num(), ud.qkey).post(ud);
	expect_ok(ud.scq, 2);
	Send(IBV_WR_SEND, 3).from(ud.mem, 2048, 8).ud(to_group, 0xffffff, ud.qkey).post(ud);
	expect_ok(ud.scq, 3);
	expect_stays_empty(ud.rcq);
	provoke(dev, "port-active");
	Send(IBV_WR_SEND, 4).from(ud.mem, 2048, 8).ud(to_group, 0xffffff, ud.qkey).post(ud);
	expect_ok(ud.scq, 4);
	expect_ok(ud.rcq, 1);
	ASSERT_EQ(ibv_detach_mcast(ud, &group, 0), 0);
}

/* A port that was stopped is freed by its interface's going down and coming up, with one event. */
TEST_F(PortEvent, StoppedUntilTheInterfaceComesUp)
{
	provoke(dev, "port-err");
	expect_port_event(IBV_EVENT_PORT_ERR);
	set_link("down");
	expect_no_port_event();
	EXPECT_EQ(state(), IBV_PORT_DOWN);
	EXPECT_EQ(try_provoke(dev, "port-active"), EINVAL) << "the interface itself is down";
	set_link("up");
	expect_port_event(IBV_EVENT_PORT_ACTIVE);
	EXPECT_EQ(state(), IBV_PORT_ACTIVE);
	expect_no_port_event();
}

/* CASES 54: the table changes, index 0 does not; who uses the entry that goes cannot be heard any more. */
TEST_F(PortEvent, Cases54_PkeyChange)
{
	Path second = patient();
	QpOptions o;
	End refused(dev, pd, o);

	second.pkey_index = 1;
	EXPECT_EQ(pkey(0), 0xffff);
	EXPECT_EQ(pkey(1), 0);
	EXPECT_EQ(try_modify(refused, init_attr(IBV_QPT_RC, second)), EINVAL) << "the entry is empty";

	provoke(dev, "pkey-change");
	expect_port_event(IBV_EVENT_PKEY_CHANGE);
	EXPECT_EQ(pkey(0), 0xffff);
	EXPECT_EQ(pkey(1), 0x8001);
	Pair by_default(dev, pd, {}, patient()), p(dev, pd, {}, second);
	write(p, 1);
	expect_ok(p.a.scq, 1);

	provoke(dev, "pkey-change");
	expect_port_event(IBV_EVENT_PKEY_CHANGE);
	EXPECT_EQ(pkey(1), 0);
	write(p, 2);
	write(by_default, 3);
	expect_ok(by_default.a.scq, 3);
	expect_stays_empty(p.a.scq);

	provoke(dev, "pkey-change");
	expect_port_event(IBV_EVENT_PKEY_CHANGE);
	expect_ok(p.a.scq, 2);
	expect_no_port_event();
}

/* Kernels that know no such event refuse; libraries that know none pass its number through. */
TEST_F(PortEvent, Cases54_DeviceSpeedChange)
{
	const int error = try_provoke(dev, "device-speed-change");

	if (error == EOPNOTSUPP) {
		expect_no_port_event();
		return;
	}
	EXPECT_EQ(error, 0);
	auto got = next_async(dev, patience());
	ASSERT_TRUE(got);
	EXPECT_EQ(static_cast<int>(got->type), 20);
	expect_no_port_event();
}

/* A tap interface, whose speed is what it is told to be. */
class Tap {
public:
	Tap() : fd_(open("/dev/net/tun", O_RDWR | O_CLOEXEC))
	{
		ifreq request{};

		request.ifr_flags = IFF_TAP | IFF_NO_PI;
		require(fd_ >= 0 && ioctl(fd_, TUNSETIFF, &request) == 0, "tap");
		name_ = request.ifr_name;
	}
	~Tap() { close(fd_); }
	Tap(const Tap &) = delete;
	Tap &operator=(const Tap &) = delete;

	/* The interface says that something about it has changed. */
	void set_speed(int mbit)
	{
		TempLink::run("ethtool -s " + name_ + " speed " + std::to_string(mbit) + " duplex full autoneg off");
		multicast_ = !multicast_;
		TempLink::run("ip link set " + name_ + " multicast " + (multicast_ ? "on" : "off"));
	}
	const std::string &name() const { return name_; }

private:
	int fd_;
	std::string name_;
	bool multicast_ = true;
};

/* The natural cause: the interface's speed changes while the port is active; once a change. */
TEST(SpeedEvent, SpeedOfTheInterface)
{
	Tap tap;
	TempLink link(tap.name());
	Device dev;
	auto speed_events = [&] {
		int n = 0;

		while (auto got = next_async(dev, quiet()))
			n += static_cast<int>(got->type) == 20;
		return n;
	};

	if (!CqControl::available(dev))
		GTEST_SKIP() << "not this device's";
	speed_events();
	const int known = try_provoke(dev, "device-speed-change") == 0;
	EXPECT_EQ(speed_events(), known);
	for (int mbit : {25000, 100000, 10000}) {
		tap.set_speed(mbit);
		EXPECT_EQ(speed_events(), known) << mbit;
		tap.set_speed(mbit);
		EXPECT_EQ(speed_events(), 0) << "nothing has changed";
	}
	/* a port that comes up says so, and no more */
	TempLink::run("ip link set " + tap.name() + " down");
	tap.set_speed(25000);
	TempLink::run("ip link set " + tap.name() + " up");
	EXPECT_EQ(speed_events(), 0);
}

/* --------------------------------------------------------- DEVICE_FATAL */

class DeviceFatal : public PortEvent {
protected:
	template <class T> static void expect_refused(T *made, const char *what)
	{
		EXPECT_EQ(made, nullptr) << what;
		EXPECT_EQ(errno, EIO) << what;
	}
};

/* Everything is flushed, the event comes once, nothing can be made or modified, everything can be destroyed. */
TEST_F(DeviceFatal, Cases54_FlushesEverything)
{
	Srq srq = make_srq(pd, 8);
	QpOptions with_srq;
	with_srq.srq = srq;
	Pair p(dev, pd), q(dev, pd, {}, with_srq, {});
	End fresh(dev, pd);

	recv(p.b, p.b.mem, 0, 64, 1);
	Send(IBV_WR_SEND, 2).from(q.a.mem, 0, 8).post(q.a); /* nothing is posted there: it waits */
	provoke(dev, "device-fatal");
	EXPECT_STREQ(ibv_event_type_str(IBV_EVENT_DEVICE_FATAL), "local catastrophic error");
	expect_wc(p.b.rcq, IBV_WC_WR_FLUSH_ERR, 1);
	expect_wc(q.a.scq, IBV_WC_WR_FLUSH_ERR, 2);
	int fatal = 0, last_wqe = 0;
	while (auto got = next_async(dev, fatal && last_wqe ? quiet() : patience())) {
		fatal += got->type == IBV_EVENT_DEVICE_FATAL;
		last_wqe += got->type == IBV_EVENT_QP_LAST_WQE_REACHED && got->element == q.b.qp.get();
	}
	EXPECT_EQ(fatal, 1);
	EXPECT_EQ(last_wqe, 1);
	for (ibv_qp *qp : {p.a.qp.get(), p.b.qp.get(), q.a.qp.get(), q.b.qp.get(), fresh.qp.get()})
		EXPECT_EQ(state_of(qp), IBV_QPS_ERR);
	/* a process that goes on posting is flushed */
	Send(IBV_WR_SEND, 3).from(p.a.mem, 0, 8).post(p.a);
	expect_wc(p.a.scq, IBV_WC_WR_FLUSH_ERR, 3);
	EXPECT_EQ(try_provoke(dev, "device-fatal"), EINVAL) << "it is dead already";
	expect_no_port_event();
}

TEST_F(DeviceFatal, NothingCanBeMade)
{
	Pair p(dev, pd);
	Srq srq = make_srq(pd, 8);
	Cq cq = make_cq(dev, 8);
	uint8_t memory[64];
	ibv_srq_init_attr srq_init{};
	ibv_srq_attr srq_attr{};
	ibv_qp_init_attr qp_init{};
	ibv_ah_attr ah_attr = rtr_attr(dev, IBV_QPT_RC, {}, 0).a.ah_attr;

	srq_init.attr = {.max_wr = 4, .max_sge = 1, .srq_limit = 0};
	qp_init.send_cq = qp_init.recv_cq = cq;
	qp_init.qp_type = IBV_QPT_RC;
	qp_init.cap.max_send_wr = 1;
	provoke(dev, "device-fatal");
	expect_refused(ibv_alloc_pd(dev), "PD");
	expect_refused(ibv_create_cq(dev, 4, nullptr, nullptr, 0), "CQ");
	expect_refused(ibv_reg_mr(pd, memory, sizeof(memory), 0), "MR");
	expect_refused(ibv_alloc_mw(pd, IBV_MW_TYPE_1), "MW");
	expect_refused(ibv_create_srq(pd, &srq_init), "SRQ");
	expect_refused(ibv_create_qp(pd, &qp_init), "QP");
	expect_refused(ibv_create_ah(pd, &ah_attr), "AH");
	EXPECT_EQ(try_modify(p.a, state_attr(IBV_QPS_RESET)), EIO);
	EXPECT_EQ(try_modify(p.a, state_attr(IBV_QPS_ERR)), 0) << "there it is; whoever drains asks for it";
	srq_attr.srq_limit = 1;
	EXPECT_EQ(code(ibv_modify_srq(srq, &srq_attr, IBV_SRQ_LIMIT)), EIO);
	EXPECT_EQ(code(ibv_resize_cq(cq, 16)), EIO);
	/* what only looks works */
	ibv_device_attr attr{};
	EXPECT_EQ(ibv_query_device(dev, &attr), 0);
	EXPECT_EQ(ibv_query_srq(srq, &srq_attr), 0);
	expect_empty(cq);
}

/* A new link mends it, even while somebody still has the old one open. */
TEST_F(DeviceFatal, ANewLinkWorks)
{
	Pair p(dev, pd);

	provoke(dev, "device-fatal");
	link.del_device();
	link.add_device();
	Device second;
	Pd second_pd = make_pd(second);
	Pair q(second, second_pd);
	write(q, 1);
	expect_ok(q.a.scq, 1);
	EXPECT_EQ(state_of(q.a), IBV_QPS_RTS);
}
