/* SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB */
/*
 * A device that is taken away while processes use it: CASES 49, 50. All who wait wake up, each open context hears of it
 * once (IBV_EVENT_DEVICE_FATAL), everything can be destroyed, what was mapped may be touched, and nobody has to wait for
 * the processes.
 */
#include "destroying.h"
#include "process.h"

#include <fcntl.h>
#include <signal.h>
#include <unistd.h>

#include <atomic>

using namespace conformance;

namespace {

void set_blocking(int fd, bool blocking)
{
	const int flags = fcntl(fd, F_GETFL);

	require(fcntl(fd, F_SETFL, blocking ? flags & ~O_NONBLOCK : flags | O_NONBLOCK) == 0, "F_SETFL");
}

/* What a process may hear while its device goes: with an interface, its port and its GIDs go first. */
bool goes_before(ibv_event_type type)
{
	return type == IBV_EVENT_PORT_ERR || type == IBV_EVENT_GID_CHANGE;
}

/* Reads events up to DEVICE_FATAL; nothing may come after it. */
void expect_fatal_once(ibv_context *ctx)
{
	for (;;) {
		auto got = next_async(ctx, patience());

		if (!got)
			fail("no DEVICE_FATAL");
		if (got->type == IBV_EVENT_DEVICE_FATAL)
			break;
		EXPECT_TRUE(goes_before(got->type)) << ibv_event_type_str(got->type);
	}
	expect_no_async(ctx);
}

/* Every page of every ring, read and written. */
void touch_rings()
{
	for (const Mapping &m : ring_mappings()) {
		for (size_t at = 0; at < m.size; at += 64) {
			auto *byte = static_cast<volatile uint8_t *>(m.start + at);

			*byte = static_cast<uint8_t>(*byte + 1);
		}
	}
}

/* A command of each kind that needs a device. */
void expect_calls_fail(Device &dev, ibv_pd *pd, End &end)
{
	ibv_port_attr port{};
	ibv_device_attr device{};
	char page[4096];

	EXPECT_NE(ibv_query_port(dev, 1, &port), 0);
	EXPECT_NE(ibv_query_device(dev, &device), 0);
	EXPECT_EQ(ibv_alloc_pd(dev), nullptr);
	EXPECT_EQ(ibv_create_cq(dev, 4, nullptr, nullptr, 0), nullptr);
	EXPECT_EQ(ibv_create_comp_channel(dev), nullptr);
	EXPECT_EQ(ibv_reg_mr(pd, page, sizeof(page), IBV_ACCESS_LOCAL_WRITE), nullptr);
	EXPECT_NE(try_modify(end, state_attr(IBV_QPS_ERR)), 0);
	EXPECT_NE(Send(IBV_WR_SEND, 1).from(end.mem, 0, 8).try_post(end), 0);
	EXPECT_NE(try_recv(end, {end.mem.sge(0, 8)}, 1), 0);
}

/* A process in the middle of everything, each thing in a thread of its own. */
class Occupant {
public:
	explicit Occupant(const std::string &name) : dev(name)
	{
		set_blocking(channel->fd, true);
		set_blocking(dev.ctx->async_fd, true);
	}

	void begin()
	{
		threads.push_back(worker([this] { get_cq_event(); }));
		threads.push_back(worker([this] { get_async_event(); }));
		threads.push_back(worker([this] { poll_loop(); }));
		threads.push_back(worker([this] { transfer(); }));
		for (auto &tid : blocked) {
			while (!tid)
				std::this_thread::yield();
			wait_until_asleep(tid);
		}
		while (!polls || transfers < 2)
			std::this_thread::yield();
	}

	void end()
	{
		threads.clear(); /* joins */
		EXPECT_EQ(fatal, 1);
		set_blocking(dev.ctx->async_fd, false);
		expect_no_async(dev);
		expect_calls_fail(dev, pd, busy.a);
		touch_rings();
	}

private:
	void get_cq_event()
	{
		ibv_cq *got = nullptr;
		void *context = nullptr;

		blocked[0] = gettid();
		EXPECT_EQ(ibv_get_cq_event(channel, &got, &context), -1);
		EXPECT_EQ(errno, EIO);
	}

	void get_async_event()
	{
		ibv_async_event event{};

		blocked[1] = gettid();
		while (!fatal) {
			require_ok(ibv_get_async_event(dev, &event), "ibv_get_async_event");
			if (event.event_type == IBV_EVENT_DEVICE_FATAL)
				fatal++;
			else
				EXPECT_TRUE(goes_before(event.event_type)) << ibv_event_type_str(event.event_type);
			ibv_ack_async_event(&event);
		}
	}

	void poll_loop()
	{
		ibv_wc wc{};
		int n;

		while ((n = ibv_poll_cq(silent, 1, &wc)) == 0)
			polls++;
		EXPECT_LT(n, 0);
	}

	/* Long writes until one is refused, or what is known of them ends. */
	void transfer()
	{
		ibv_wc wc{};

		for (;;) {
			const auto len = static_cast<uint32_t>(busy.a.mem.size());
			int n;

			if (Send(IBV_WR_RDMA_WRITE, 1).from(busy.a.mem, 0, len).to(busy.b.mem).try_post(busy.a))
				return;
			while ((n = ibv_poll_cq(busy.a.scq, 1, &wc)) == 0)
				std::this_thread::yield();
			if (n < 0)
				return;
			EXPECT_EQ(wc.status, IBV_WC_SUCCESS) << ibv_wc_status_str(wc.status);
			transfers++;
		}
	}

	static QpOptions large()
	{
		QpOptions o;

		o.memory = 8 << 20;
		return o;
	}

	Device dev;
	Pd pd = make_pd(dev);
	Channel channel = make_channel(dev);
	Cq silent = make_cq(dev, 16, channel);
	Pair busy{dev, pd, large()};
	std::atomic<pid_t> blocked[2] = {};
	std::atomic<int> fatal = 0, polls = 0, transfers = 0;
	std::vector<std::jthread> threads;
};

} // namespace

class RemovalTest : public ::testing::Test {
protected:
	void SetUp() override
	{
		if (geteuid())
			GTEST_SKIP() << "makes and removes devices: for root";
		link.emplace();
	}
	/* Messages through a device of this name, as if there had never been another. */
	void expect_works()
	{
		Device dev(link->name());
		Pd pd = make_pd(dev);
		Pair p(dev, pd);

		Send(IBV_WR_RDMA_WRITE, 7).from(p.a.mem, 0, 4096).to(p.b.mem).post(p.a);
		expect_ok(p.a.scq, 7);
		expect_no_async(dev, Millis(0));
	}
	std::optional<Link> link;
};

/* By its own name, and with its interface. */
class Cases49_Removal : public RemovalTest, public ::testing::WithParamInterface<bool> {};

/* CASES 49: blocked in get_cq_event, get_async_event and a poll loop, in the middle of transfers: all wake. */
TEST_P(Cases49_Removal, AllWake)
{
	Child child([this](int, int out) {
		Occupant occupant(link->name());

		occupant.begin();
		Child::put(out, "!", 1);
		occupant.end();
		return 0;
	});
	char c;

	ASSERT_TRUE(child.hear(&c, 1));
	EXPECT_LE(GetParam() ? link->unplug() : link->del(), Link::limit());
	EXPECT_EQ(child.wait(), 0) << "-1: somebody does not wake up";
	link->add();
	expect_works();
}

INSTANTIATE_TEST_SUITE_P(, Cases49_Removal, ::testing::Bool(),
			 [](const auto &info) { return info.param ? "Interface" : "Link"; });

/* Each open context is told, once; contexts of one process, too. */
TEST_F(RemovalTest, Cases49_EveryContextHearsOfItOnce)
{
	std::vector<Device> all;
	Child child([this](int, int out) {
		Device dev(link->name());

		Child::put(out, "!", 1);
		expect_fatal_once(dev);
		return 0;
	});
	char c;

	for (int i = 0; i < 4; i++)
		all.emplace_back(link->name());
	ASSERT_TRUE(child.hear(&c, 1));
	link->del();
	for (Device &dev : all)
		expect_fatal_once(dev);
	EXPECT_EQ(child.wait(), 0);
}

/* What had completed can still be polled; then poll says that no more will come. */
TEST_F(RemovalTest, Cases49_CompletionsOutliveTheDevice)
{
	Device dev(link->name());
	Pd pd = make_pd(dev);
	Channel channel = make_channel(dev);
	QpOptions o;

	o.channel = channel;
	Pair p(dev, pd, o);
	for (int i = 0; i < 10; i++)
		Send(IBV_WR_RDMA_WRITE, i).from(p.a.mem, 0, 64).to(p.b.mem).post(p.a);
	/* one that does not complete: nobody takes it */
	Send(IBV_WR_SEND, 10).from(p.a.mem, 0, 64).post(p.a);
	link->del();
	for (int i = 0; i < 10; i++)
		expect_ok(p.a.scq, i);
	ibv_wc wc{};
	EXPECT_LT(ibv_poll_cq(p.a.scq, 1, &wc), 0);
	EXPECT_LT(ibv_poll_cq(p.b.rcq, 1, &wc), 0);
	/* arm, poll, sleep: the program's loop ends, however it got here */
	ibv_req_notify_cq(p.a.scq, 0);
	ibv_cq *cq = nullptr;
	void *context = nullptr;
	EXPECT_EQ(ibv_get_cq_event(channel, &cq, &context), -1);
	EXPECT_EQ(errno, EIO);
	expect_fatal_once(dev);
}

/* Somebody has got events of a CQ, a QP and an SRQ, and acks them late. */
class RemovalAckTest : public RemovalTest {
protected:
	void SetUp() override
	{
		RemovalTest::SetUp();
		if (link)
			got.emplace(link->name());
	}

	struct Got {
		explicit Got(const std::string &name) : dev(name)
		{
			ibv_srq_attr limit{};

			limit.srq_limit = 1;
			srq_recv(srq, p.b.mem, 0, 64, 1);
			require_ok(ibv_modify_srq(srq, &limit, IBV_SRQ_LIMIT), "ibv_modify_srq");
			arm(p.b.rcq);
			Send(IBV_WR_SEND, 1).from(p.a.mem, 0, 8).post(p.a);
			get(IBV_EVENT_SRQ_LIMIT_REACHED, of_srq);
			to_error(p.b);
			get(IBV_EVENT_QP_LAST_WQE_REACHED, of_qp);
			require(readable(channel->fd, patience()), "no completion event");
			require_ok(ibv_get_cq_event(channel, &cq, &context), "ibv_get_cq_event");
		}
		void get(ibv_event_type type, ibv_async_event &event)
		{
			require(readable(dev.ctx->async_fd, patience()), "no asynchronous event");
			require_ok(ibv_get_async_event(dev, &event), "ibv_get_async_event");
			require(event.event_type == type, ibv_event_type_str(event.event_type));
		}
		QpOptions with_srq() const
		{
			QpOptions o;

			o.srq = srq;
			o.channel = channel;
			return o;
		}

		Device dev;
		Pd pd = make_pd(dev);
		Channel channel = make_channel(dev);
		Srq srq = make_srq(pd, 16);
		Pair p{dev, pd, QpOptions(), with_srq(), Path()};
		ibv_cq *cq = nullptr;
		void *context = nullptr;
		ibv_async_event of_qp{}, of_srq{};
	};
	std::optional<Got> got;
};

/* CASES 43, 49: without a device, too, destroying waits for the acks: whoever has the event touches the object. */
TEST_F(RemovalAckTest, Cases49_DestroyWaitsForAcksAfterIt)
{
	link->del();
	ibv_qp *raw_qp = got->p.b.qp.release();
	ibv_cq *raw_cq = got->p.b.own_recv_cq.release();
	ibv_srq *raw_srq = got->srq.release();

	Destroying qp([=] { return ibv_destroy_qp(raw_qp); });
	qp.expect_waits();
	ibv_ack_async_event(&got->of_qp);
	qp.expect_done();

	Destroying cq([=] { return ibv_destroy_cq(raw_cq); });
	cq.expect_waits();
	ibv_ack_cq_events(got->cq, 1);
	cq.expect_done();

	Destroying srq([=] { return ibv_destroy_srq(raw_srq); });
	srq.expect_waits();
	ibv_ack_async_event(&got->of_srq);
	srq.expect_done();
}

/* A destroy that waits for an ack when the device goes goes on waiting for it, and nothing else. */
TEST_F(RemovalAckTest, Cases49_DestroyWaitsForAcksAcrossIt)
{
	ibv_qp *raw_qp = got->p.b.qp.release();
	Destroying qp([=] { return ibv_destroy_qp(raw_qp); });

	qp.expect_waits();
	EXPECT_LE(link->del(), Link::limit());
	qp.expect_waits();
	ibv_ack_async_event(&got->of_srq);
	ibv_ack_cq_events(got->cq, 1);
	qp.expect_waits();
	ibv_ack_async_event(&got->of_qp);
	qp.expect_done();
	expect_fatal_once(got->dev);
}

/* CASES 50: a process that does nothing about it, for ever, keeps nobody waiting; and its name is free at once. */
TEST_F(RemovalTest, Cases50_HeldOpenByAStoppedProcess)
{
	Child child([this](int in, int out) {
		Device dev(link->name());
		Pd pd = make_pd(dev);
		Pair p(dev, pd);
		char c;

		recv(p.b, p.b.mem, 0, 64, 1);
		Child::put(out, "!", 1);
		raise(SIGSTOP);
		Child::get(in, &c, 1);
		touch_rings();
		expect_fatal_once(dev);
		return 0;
	});
	char c;

	ASSERT_TRUE(child.hear(&c, 1));
	child.expect_stopped();
	for (int i = 0; i < 3; i++) {
		EXPECT_LE(link->del(), Link::limit());
		link->add();
		expect_works();
	}
	child.kill(SIGCONT);
	child.tell('!');
	EXPECT_EQ(child.wait(), 0);
}

namespace {

/* Makes, uses and destroys objects until the device is gone; then all destructors run, and each checks its destroy. */
int until_it_goes(const std::string &name, int out)
{
	Device dev(name);
	bool said = false;

	try {
		for (int i = 0;; i++) {
			Pd pd = make_pd(dev);
			Channel channel = make_channel(dev);
			Srq srq = make_srq(pd, 16);
			QpOptions o, s;

			o.channel = channel;
			o.memory = 1 << 20;
			s.srq = srq;
			Pair p(dev, pd, o), q(dev, pd, QpOptions(), s, Path());
			arm(p.a.scq);
			Send(IBV_WR_RDMA_WRITE, i).from(p.a.mem, 0, 1 << 20).to(p.b.mem).post(p.a);
			expect_event(channel, p.a.scq);
			expect_ok(p.a.scq, i);
			srq_recv(srq, q.b.mem, 0, 4096, i);
			Send(IBV_WR_SEND, i).from(q.a.mem, 0, 100).post(q.a);
			expect_ok(q.b.rcq, i);
			if (!said)
				Child::put(out, "!", 1);
			said = true;
		}
	} catch (const std::exception &) {
		/* no call succeeds any more; nothing says more about it than the event */
	}
	expect_fatal_once(dev);
	return 0;
}

} // namespace

TEST_F(RemovalTest, Cases49_AtRandomMoments)
{
	const int rounds = 20 / slowness() + 2;
	Random rnd(11);

	for (int i = 0; i < rounds; i++) {
		Child one([this](int, int out) { return until_it_goes(link->name(), out); });
		Child two([this](int, int out) { return until_it_goes(link->name(), out); });
		char c;

		ASSERT_TRUE(one.hear(&c, 1));
		ASSERT_TRUE(two.hear(&c, 1));
		usleep(static_cast<useconds_t>(rnd.below(20000))); /* the moment is the point */
		EXPECT_LE(i % 2 ? link->unplug() : link->del(), Link::limit());
		EXPECT_EQ(one.wait(), 0);
		EXPECT_EQ(two.wait(), 0);
		link->add();
	}
	expect_works();
}
