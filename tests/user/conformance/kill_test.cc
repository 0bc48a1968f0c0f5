/* SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB */
/* Processes that die at any point: CASES 29, 30, 57; nothing is left, peers hear of it. */
#include "process.h"

#include <net/if.h>
#include <signal.h>
#include <unistd.h>

#include <cstdlib>
#include <memory>
#include <thread>

using namespace conformance;

namespace {

/* Makes, uses and destroys objects of every kind for ever. */
int busy_body(int, int out)
{
	Device dev;

	Child::put(out, "!", 1);
	for (;;) {
		Pd pd = make_pd(dev);
		Channel channel = make_channel(dev);
		Srq srq = make_srq(pd, 16);
		QpOptions o, s;

		o.channel = channel;
		o.memory = 1 << 20;
		s.srq = srq;
		Pair p(dev, pd, o), q(dev, pd, QpOptions(), s, Path());
		UdEnd ud(dev, pd);
		for (int i = 0; i < 20; i++) {
			arm(p.a.scq);
			Send(IBV_WR_RDMA_WRITE, i).from(p.a.mem, 0, 1 << 20).to(p.b.mem).post(p.a);
			expect_event(channel, p.a.scq);
			expect_ok(p.a.scq, i);
			srq_recv(srq, q.b.mem, 0, 4096, i);
			Send(IBV_WR_SEND, i).from(q.a.mem, 0, 100).post(q.a);
			expect_ok(q.a.scq, i);
			expect_ok(q.b.rcq, i);
			recv(ud, ud.mem, 0, 4096, i);
			Send(IBV_WR_SEND, i).from(ud.mem, 0, 100).ud(ud.self, ud.num(), ud.qkey).post(ud);
			expect_ok(ud.rcq, i);
			expect_ok(ud.scq, i);
		}
		/* some of what is left is under way: a send that nobody takes, an unread event */
		Send().from(p.a.mem, 0, 8).post(p.a);
		to_error(q.b);
	}
}

} // namespace

class KillTest : public ::testing::Test {
protected:
	void SetUp() override
	{
		name = Device().name;
		before = resources(name);
		if (before.empty())
			GTEST_SKIP() << "`rdma resource show` gives nothing";
	}
	std::string name;
	std::map<std::string, int> before;
};

TEST_F(KillTest, AtRandomPoints)
{
	Random rnd(7);

	for (int i = 0; i < 30; i++) {
		Child child(busy_body);
		char c;

		ASSERT_TRUE(child.hear(&c, 1));
		usleep(rnd.below(30000));
		child.kill(SIGKILL);
		ASSERT_EQ(child.wait(), 128 + SIGKILL);
		expect_resources(name, before);
	}
}

/* In the middle of starting: before, while and after the context is made. */
TEST_F(KillTest, WhileItStarts)
{
	Random rnd(8);

	for (int i = 0; i < 30; i++) {
		Child child(busy_body);
		usleep(rnd.below(5000));
		child.kill(SIGKILL);
		ASSERT_GE(child.wait(), 0);
		expect_resources(name, before);
	}
}

/* CASES 29: with an event got and never acked, and one never read. */
TEST_F(KillTest, Cases29_WithUnackedEvents)
{
	Child child([](int in, int out) {
		Device dev;
		Pd pd = make_pd(dev);
		Channel channel = make_channel(dev);
		QpOptions o;
		o.channel = channel;
		Pair p(dev, pd, o);
		ibv_cq *cq;
		void *context;
		char c;

		for (int i = 0; i < 2; i++) {
			arm(p.a.scq);
			Send(IBV_WR_RDMA_WRITE, i).from(p.a.mem, 0, 8).to(p.b.mem).post(p.a);
			expect_ok(p.a.scq, i);
			require(readable(channel->fd, patience()), "no event");
			if (i == 0)
				require_ok(ibv_get_cq_event(channel, &cq, &context), "get");
		}
		Child::put(out, "!", 1);
		Child::get(in, &c, 1);
		return 0;
	});
	char c;
	ASSERT_TRUE(child.hear(&c, 1));
	child.kill(SIGKILL);
	EXPECT_EQ(child.wait(), 128 + SIGKILL);
	expect_resources(name, before);
}

/* CASES 29: killed while ibv_destroy_cq waits for the ack. */
TEST_F(KillTest, Cases29_KilledWhileDestroyWaits)
{
	Child child([](int, int out) {
		Device dev;
		Pd pd = make_pd(dev);
		Channel channel = make_channel(dev);
		ibv_cq *cq = make_cq(dev, 8, channel).release(), *got;
		void *context;

		{
			QpOptions o;
			o.send_cq = o.recv_cq = cq;
			Pair p(dev, pd, o);
			arm(cq);
			Send(IBV_WR_RDMA_WRITE).from(p.a.mem, 0, 8).to(p.b.mem).post(p.a);
			require(readable(channel->fd, patience()), "no event");
			require_ok(ibv_get_cq_event(channel, &got, &context), "get");
		}
		Child::put(out, "!", 1);
		ibv_destroy_cq(cq);
		/* not reached */
		Child::put(out, "?", 1);
		return 0;
	});
	auto waiting = before;
	char c;

	ASSERT_TRUE(child.hear(&c, 1));
	/* the kernel's half is gone, and the PD is still there: it is in there, waiting */
	waiting["pd"]++;
	waiting["ctx"]++;
	expect_resources(name, waiting);
	EXPECT_FALSE(child.hear(&c, 1, quiet())) << "destroy did not wait for the ack";
	child.kill(SIGKILL);
	EXPECT_EQ(child.wait(), 128 + SIGKILL);
	expect_resources(name, before);
}

/* exit(2) without a single destroy. */
TEST_F(KillTest, ExitWithoutTidyingUp)
{
	Child child([](int, int) {
		auto *dev = new Device;
		auto *pd = new Pd(make_pd(*dev));
		auto *pair = new Pair(*dev, *pd);

		for (int i = 0; i < 10; i++)
			recv(pair->b, pair->b.mem, 0, 64, i);
		Send(IBV_WR_RDMA_WRITE).from(pair->a.mem, 0, 8).to(pair->b.mem).post(pair->a);
		_exit(0);
		return 1;
	});
	EXPECT_EQ(child.wait(), 0);
	expect_resources(name, before);
}

/* ---------------------------------------------------------------- peers -- */

namespace {

struct Address {
	uint32_t qpn;
	uint32_t rkey;
	uint64_t addr;
};

/* The other end of a connection in a process of its own; it answers '?' until it is told otherwise. */
int peer_body(int in, int out)
{
	Device dev;
	Pd pd = make_pd(dev);
	QpOptions o;
	End e(dev, pd, o);
	Address mine = {e.num(), e.mem.mr->rkey, e.mem.addr()}, theirs;
	char c;

	Child::put(out, &mine, sizeof(mine));
	Child::get(in, &theirs, sizeof(theirs));
	to_init(e);
	to_rtr(dev, e, theirs.qpn);
	to_rts(dev, e);
	for (int i = 0; i < 16; i++)
		recv(e, e.mem, 0, 4096, i);
	Child::put(out, "!", 1);
	Child::get(in, &c, 1);
	return 0;
}

} // namespace

class PeerTest : public RcTest {
protected:
	void connect(Child &child, End &end)
	{
		Address mine = {end.num(), end.mem.mr->rkey, end.mem.addr()};
		Path path;
		char c;

		path.timeout = 12;
		path.retry_cnt = 2;
		require(child.hear(&theirs, sizeof(theirs)), "no address");
		child.tell(&mine, sizeof(mine));
		to_init(end);
		to_rtr(dev, end, theirs.qpn, path);
		to_rts(dev, end, path);
		require(child.hear(&c, 1), "not connected");
	}
	Address theirs{};
};

/* Two processes, each with its own memory. */
TEST_F(PeerTest, TwoProcesses)
{
	QpOptions o;
	End end(dev, pd, o);
	Child child(peer_body);

	connect(child, end);
	end.mem.fill(5);
	Send(IBV_WR_RDMA_WRITE, 1).from(end.mem, 0, 4096).to(theirs.addr + 8192, theirs.rkey).post(end);
	expect_ok(end.scq, 1);
	Send(IBV_WR_RDMA_READ, 2).from(end.mem, 16384, 4096).to(theirs.addr + 8192, theirs.rkey).post(end);
	expect_ok(end.scq, 2);
	EXPECT_EQ(differs(end.mem.data(), end.mem.data() + 16384, 4096), -1);
	Send(IBV_WR_SEND, 3).from(end.mem, 0, 4096).post(end);
	expect_ok(end.scq, 3);
	child.tell('x');
	EXPECT_EQ(child.wait(), 0);
}

/* CASES 30: the peer is killed while we wait in ibv_get_cq_event: the error arrives. */
TEST_F(PeerTest, Cases30_PeerKilledWhileWeWait)
{
	Channel channel = make_channel(dev);
	QpOptions o;
	o.channel = channel;
	End end(dev, pd, o);
	Child child(peer_body);

	connect(child, end);
	child.kill(SIGKILL);
	ASSERT_EQ(child.wait(), 128 + SIGKILL);
	arm(end.scq, true);
	Send(IBV_WR_SEND, 1).from(end.mem, 0, 64).post(end);
	expect_event(channel, end.scq);
	expect_wc(end.scq, IBV_WC_RETRY_EXC_ERR, 1);
}

namespace {

/* The device's network interface goes down, and comes back with its addresses when the object goes. */
class LinkDown {
public:
	explicit LinkDown(const Device &dev) : dev_(dev), had_v6_(dev.find_gid(Family::v6))
	{
		ibv_gid_entry entry{};
		char name[IF_NAMESIZE];

		require_ok(ibv_query_gid_ex(dev, Device::port_num, dev.gid_index(), &entry, 0), "ibv_query_gid_ex");
		require(if_indextoname(entry.ndev_ifindex, name), "if_indextoname");
		netdev_ = name;
		run("sysctl -qw net.ipv6.conf." + netdev_ + ".keep_addr_on_down=1");
		run("ip link set " + netdev_ + " down");
		wait_for(IBV_PORT_DOWN);
	}
	~LinkDown()
	{
		run("ip link set " + netdev_ + " up");
		wait_for(IBV_PORT_ACTIVE);
		const auto end = Clock::now() + patience();
		while (had_v6_ && !dev_.find_gid(Family::v6) && Clock::now() < end)
			std::this_thread::yield();
	}

private:
	static void run(const std::string &command) { require_ok(system(command.c_str()), command); }
	void wait_for(ibv_port_state state)
	{
		const auto end = Clock::now() + patience();
		ibv_port_attr port{};

		do
			ibv_query_port(dev_, Device::port_num, &port);
		while (port.state != state && Clock::now() < end);
		EXPECT_EQ(port.state, state);
	}

	const Device &dev_;
	std::string netdev_;
	const bool had_v6_;
};

} // namespace

/* CASES 30: the link goes down while we wait in ibv_get_cq_event for a peer that does not answer. */
TEST_F(PeerTest, Cases30_LinkDownWhileWeWait)
{
	Channel channel = make_channel(dev);
	QpOptions o;
	Path path;

	o.channel = channel;
	path.timeout = 18; /* 1 s each time: longer than it takes to bring the link down */
	path.retry_cnt = 7;
	Pair p = make_pair(o, path);
	modify(p.b, IBV_QPS_RESET);
	arm(p.a.scq, true);
	Send(IBV_WR_SEND, 1).from(p.a.mem, 0, 64).post(p.a);
	{
		auto link = std::make_unique<LinkDown>(dev);

		expect_no_event(channel, Millis(0));
		expect_event(channel, p.a.scq);
		expect_wc(p.a.scq, IBV_WC_RETRY_EXC_ERR, 1);
		/* the QP's own end flushes as always */
		arm(p.a.rcq, true);
		recv(p.a, p.a.mem, 0, 64, 2);
		expect_event(channel, p.a.rcq);
		expect_wc(p.a.rcq, IBV_WC_WR_FLUSH_ERR, 2);
	}
	/* and it is as good as before */
	Pair again = make_pair();
	Send(IBV_WR_RDMA_WRITE, 3).from(again.a.mem, 0, 64).to(again.b.mem).post(again.a);
	expect_ok(again.a.scq, 3);
}

/* Killed while it copies: long writes into its memory are cut off, and are errors here. */
TEST_F(PeerTest, PeerKilledInTheMiddleOfTraffic)
{
	for (int round = 0; round < 5; round++) {
		QpOptions o;
		End end(dev, pd, o);
		Child child(peer_body);

		connect(child, end);
		for (int i = 0; i < 100; i++)
			Send(IBV_WR_RDMA_WRITE, i).from(end.mem, 0, 65536).to(theirs.addr, theirs.rkey).post(end);
		child.kill(SIGKILL);
		for (int i = 100; i < 110; i++)
			Send(IBV_WR_RDMA_WRITE, i).from(end.mem, 0, 65536).to(theirs.addr, theirs.rkey).post(end);
		ASSERT_EQ(child.wait(), 128 + SIGKILL);
		Send(IBV_WR_RDMA_WRITE, 110).from(end.mem, 0, 8).to(theirs.addr, theirs.rkey).post(end);
		auto wcs = poll_n(end.scq, 111);
		bool failed = false;
		for (auto &wc : wcs) {
			if (wc.status != IBV_WC_SUCCESS) {
				ibv_wc_status first = wc.status;
				EXPECT_TRUE(failed || first == IBV_WC_RETRY_EXC_ERR || first == IBV_WC_REM_ACCESS_ERR)
					<< ibv_wc_status_str(first);
				failed = true;
			} else {
				EXPECT_FALSE(failed);
			}
		}
		EXPECT_TRUE(failed);
	}
}

/* CASES 57: fork after reg_mr: the parent's traffic goes on, and the child's exit closes nothing of the parent's. */
TEST_F(PeerTest, Cases57_ForkInTheMiddle)
{
	Pair p = make_pair();

	for (int i = 0; i < 20; i++) {
		Child child([&](int, int) {
			/* the child touches the memory that the parent's traffic uses */
			memset(p.a.mem.data(), 0xcc, p.a.mem.size());
			memset(p.b.mem.data(), 0xcc, p.b.mem.size());
			_exit(0);
			return 0;
		});
		p.a.mem.fill(i, 0, 8192);
		Send(IBV_WR_RDMA_WRITE, i).from(p.a.mem, 0, 8192).to(p.b.mem).post(p.a);
		expect_ok(p.a.scq, i);
		EXPECT_EQ(differs(p.a.mem.data(), p.b.mem.data(), 8192), -1) << i;
		EXPECT_EQ(child.wait(), 0);
		EXPECT_EQ(differs(p.a.mem.data(), p.b.mem.data(), 8192), -1) << i;
	}
}

/* CASES 57: the same after ibv_fork_init(3), and the child ends as programs do, with exit(3). */
TEST_F(KillTest, Cases57_ForkAfterForkInit)
{
	/* in a process of its own: ibv_fork_init comes before all else that is registered */
	Child parent([](int, int) {
		require_ok(ibv_fork_init(), "ibv_fork_init");
		Device dev;
		Pd pd = make_pd(dev);
		Pair p(dev, pd);

		for (int i = 0; i < 10; i++) {
			p.a.mem.fill(i, 0, 8192);
			Child child([&](int, int) {
				p.a.mem.clear();
				p.b.mem.clear();
				/* its copies of the files are closed, and of the mappings there are none */
				exit(ring_mappings().empty() ? 0 : 1);
				return 1;
			});
			Send(IBV_WR_RDMA_WRITE, i).from(p.a.mem, 0, 8192).to(p.b.mem).post(p.a);
			expect_ok(p.a.scq, i);
			EXPECT_EQ(child.wait(), 0);
			EXPECT_EQ(differs(p.a.mem.data(), p.b.mem.data(), 8192), -1) << i;
			Send(IBV_WR_RDMA_READ, i).from(p.a.mem, 8192, 8192).to(p.b.mem).post(p.a);
			expect_ok(p.a.scq, i);
			EXPECT_EQ(differs(p.a.mem.data() + 8192, p.b.mem.data(), 8192), -1) << i;
		}
		expect_no_async(dev, Millis(0));
		return 0;
	});

	EXPECT_EQ(parent.wait(), 0);
	expect_resources(name, before);
}
