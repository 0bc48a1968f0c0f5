/* SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB */
/*
 * Asynchronous events and who reads them: several threads, objects that come and go meanwhile, late acks, ports that go
 * up and down: CASES 42, 43, 46, 48, 55.
 */
#include "destroying.h"
#include "process.h"

#include <fcntl.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <sys/eventfd.h>

#include <condition_variable>
#include <cstdlib>
#include <deque>
#include <mutex>

using namespace conformance;

namespace {

ibv_async_event get_async(ibv_context *ctx, ibv_event_type type)
{
	ibv_async_event event{};

	require(readable(ctx->async_fd, patience()), std::string("no event: ") + ibv_event_type_str(type));
	require_ok(ibv_get_async_event(ctx, &event), "ibv_get_async_event");
	EXPECT_STREQ(ibv_event_type_str(event.event_type), ibv_event_type_str(type));
	return event;
}

} // namespace

/* -------------------------------------------------------------- CASES 42 */

namespace {

/* What is known of a QP; its qp_context leads here. */
struct Account {
	std::atomic<ibv_qp *> qp = nullptr;
	std::atomic<bool> alive = false;
	std::atomic<int> got = 0;
};

/* HERALD_QPS, or as many as the lane has time for: in the long form, those of the case. */
size_t how_many_qps()
{
	const char *wanted = getenv("HERALD_QPS");

	if (wanted && *wanted)
		return strtoul(wanted, nullptr, 10);
	return long_form() && slowness() == 1 ? 100000 : 20000 / slowness();
}

class Crowd : public Verbs {
protected:
	static constexpr size_t kWindow = 256;

	/* Reads until told to stop; holds each event for a while before it acks it, and lets some pile up now and then. */
	void read_events(std::stop_token stop, uint64_t seed)
	{
		Random rnd(seed);

		while (!stop.stop_requested()) {
			ibv_async_event event{};

			if (!readable(dev.ctx->async_fd, Millis(20)))
				continue;
			usleep(static_cast<useconds_t>(rnd.below(3000)));
			/* up to what the other thread has got, or what has vanished */
			while (ibv_get_async_event(dev, &event) == 0) {
				look_at(event.element.qp, event.event_type, rnd.below(256));
				ibv_ack_async_event(&event);
			}
		}
	}

	/* Mostly short, so that the crowd moves on; sometimes long enough for others to run. */
	static void hold(uint64_t delay)
	{
		for (volatile uint64_t i = 0; i < delay * 4;)
			i = i + 1;
		if (delay == 0)
			usleep(100);
	}

	void look_at(ibv_qp *qp, ibv_event_type type, uint64_t delay)
	{
		auto *account = static_cast<Account *>(qp->qp_context);

		wrong_type += type != IBV_EVENT_QP_LAST_WQE_REACHED;
		dead += account->qp != qp || !account->alive;
		{
			std::lock_guard guard(mutex);

			account->got++;
		}
		news.notify_one();
		read++;
		hold(delay);
		dead += !account->alive || qp->qp_context != account;
	}

	/* A QP of an SRQ in the error state: LAST_WQE_REACHED is due, once. */
	void make_broken(Account &account)
	{
		ibv_qp_init_attr init{};

		init.qp_type = IBV_QPT_RC;
		init.send_cq = init.recv_cq = cq;
		init.srq = srq;
		init.cap.max_send_wr = init.cap.max_send_sge = 1;
		init.qp_context = &account;
		account.alive = true;
		account.qp = ibv_create_qp(pd, &init);
		require(account.qp, "ibv_create_qp");
		to_init(account.qp);
		to_error(account.qp);
	}

	void destroy(Account &account, bool wait)
	{
		if (wait) {
			std::unique_lock guard(mutex);

			news.wait_for(guard, patience(), [&] { return account.got > 0; });
			lost += account.got == 0;
			waited++;
		}
		require_ok(ibv_destroy_qp(account.qp), "ibv_destroy_qp");
		account.alive = false;
		twice += account.got > 1;
	}

	Cq cq = make_cq(dev, 16);
	Srq srq = make_srq(pd, 4);
	std::mutex mutex;
	std::condition_variable news; /* somebody has got an event */
	std::atomic<size_t> read = 0, dead = 0, wrong_type = 0;
	size_t lost = 0, twice = 0, waited = 0;
};

} // namespace

/*
 * CASES 42: two threads get and ack with random delays while QPs are made, broken and destroyed: each event's element is
 * alive from get to ack, none comes twice, and none is lost, if the QP is there until somebody has read it. Those of QPs
 * that are destroyed at once may vanish unread (ibv_get_async_event(3)).
 */
TEST_F(Crowd, Cases42_QpsComeAndGoWhileTwoRead)
{
	const size_t n = how_many_qps();
	std::vector<Account> accounts(n);
	std::deque<Account *> window;
	Random rnd(42);

	{
		auto one = worker([this](std::stop_token stop) { read_events(stop, 1); });
		auto two = worker([this](std::stop_token stop) { read_events(stop, 2); });

		for (Account &account : accounts) {
			make_broken(account);
			if (rnd.below(8) == 0) {
				destroy(account, false); /* most likely unread */
				continue;
			}
			window.push_back(&account);
			if (window.size() < kWindow)
				continue;
			/* the oldest go: so many that readers are met asleep and awake */
			for (size_t left = rnd.below(kWindow); window.size() > left; window.pop_front())
				destroy(*window.front(), true);
		}
		for (Account *account : window)
			destroy(*account, true);
	}
	expect_no_async(dev, Millis(0));
	printf("%zu QPs, %zu events read, %zu waited for\n", n, read.load(), waited);
	EXPECT_EQ(dead, 0u) << "events of QPs that were not there";
	EXPECT_EQ(lost, 0u);
	EXPECT_EQ(twice, 0u);
	EXPECT_EQ(wrong_type, 0u);
	EXPECT_GE(read, waited);
	EXPECT_LE(read, n);
}

/* -------------------------------------------------------------- CASES 43 */

class LateAck : public RcTest {
protected:
	/* A CQ that has overrun, its event got; the QPs are gone. */
	Cq overrun(ibv_async_event &event)
	{
		Cq cq = make_cq(dev, 1);
		QpOptions o;

		o.send_cq = cq;
		{
			Pair p(dev, pd, o, QpOptions(), {});

			for (int i = 0; i <= cq->cqe; i++)
				Send(IBV_WR_RDMA_WRITE, i).from(p.a.mem, 0, 8).to(p.b.mem).post(p.a);
			event = get_async(dev, IBV_EVENT_CQ_ERR);
			/* QP_FATAL vanishes with its QP, or is acked */
			expect_async(dev, IBV_EVENT_QP_FATAL, p.a.qp.get());
		}
		EXPECT_EQ(event.element.cq, cq.get());
		return cq;
	}

	/* An SRQ below its limit, its event got. */
	Srq below_limit(ibv_async_event &event)
	{
		Srq srq = make_srq(pd, 4);
		ibv_srq_attr limit{};
		QpOptions o;

		o.srq = srq;
		limit.srq_limit = 1;
		{
			Pair p(dev, pd, QpOptions(), o, {});

			srq_recv(srq, p.b.mem, 0, 64, 1);
			require_ok(ibv_modify_srq(srq, &limit, IBV_SRQ_LIMIT), "ibv_modify_srq");
			Send(IBV_WR_SEND, 1).from(p.a.mem, 0, 8).post(p.a);
			event = get_async(dev, IBV_EVENT_SRQ_LIMIT_REACHED);
		}
		EXPECT_EQ(event.element.srq, srq.get());
		return srq;
	}
};

/* CASES 43: got, not acked: destroy of the CQ waits; another CQ's ack does not let it go. (QPs: async_event_test.cc) */
TEST_F(LateAck, Cases43_Cq)
{
	ibv_async_event mine{}, others{};
	Cq cq = overrun(mine), other = overrun(others);
	ibv_cq *raw = cq.release();
	Destroying destroying([=] { return ibv_destroy_cq(raw); });

	destroying.expect_waits();
	ibv_ack_async_event(&others);
	destroying.expect_waits();
	ibv_ack_async_event(&mine);
	destroying.expect_done();
}

TEST_F(LateAck, Cases43_Srq)
{
	ibv_async_event mine{}, others{};
	Srq srq = below_limit(mine), other = below_limit(others);
	ibv_srq *raw = srq.release();
	Destroying destroying([=] { return ibv_destroy_srq(raw); });

	destroying.expect_waits();
	ibv_ack_async_event(&others);
	destroying.expect_waits();
	ibv_ack_async_event(&mine);
	destroying.expect_done();
}

/* -------------------------------------------------------- CASES 46 and 48 */

class PortTest : public ::testing::Test {
protected:
	void SetUp() override
	{
		if (geteuid())
			GTEST_SKIP() << "makes and removes devices: for root";
		link.emplace();
	}
	std::optional<Link> link;
};

/*
 * CASES 46, as far as a device with one port goes: an event of the port is delivered to each context, to one of the
 * threads that wait there, and names the port.
 */
TEST_F(PortTest, Cases46_GidChangeToOneOfFourReaders)
{
	Device dev(link->name()), second(link->name());
	std::atomic<int> got{0}, wrong{0};
	std::vector<std::jthread> readers;

	for (int i = 0; i < 4; i++) {
		readers.push_back(worker([&](std::stop_token stop) {
			while (!stop.stop_requested()) {
				ibv_async_event event{};

				if (!readable(dev.ctx->async_fd, Millis(20)) || ibv_get_async_event(dev, &event))
					continue;
				wrong += event.event_type != IBV_EVENT_GID_CHANGE || event.element.port_num != 1;
				ibv_ack_async_event(&event);
				got++;
			}
		}));
	}
	for (int round = 1; round <= 10; round++) {
		link->address(round % 2, 77);
		const auto end = Clock::now() + patience();
		while (got < round && Clock::now() < end)
			std::this_thread::yield();
		ASSERT_EQ(got, round);
		auto other = next_async(second, patience());
		ASSERT_TRUE(other);
		EXPECT_EQ(other->type, IBV_EVENT_GID_CHANGE);
		EXPECT_EQ(other->port, 1);
	}
	std::this_thread::sleep_for(quiet());
	readers.clear();
	EXPECT_EQ(got, 10);
	EXPECT_EQ(wrong, 0);
	expect_no_async(second, Millis(0));
}

namespace {

/* The next event of the port's state; GIDs come and go with it. */
Async next_port_event(ibv_context *ctx)
{
	for (;;) {
		auto got = next_async(ctx, patience());

		if (!got)
			fail("no event of the port");
		if (got->type != IBV_EVENT_GID_CHANGE)
			return *got;
	}
}

} // namespace

/* CASES 48: down and up, 100 times: one PORT_ERR and one PORT_ACTIVE each, and the port is what the event says. */
TEST_F(PortTest, Cases48_DownAndUp)
{
	const int rounds = 100 / slowness();
	Device dev(link->name());

	for (int i = 0; i < 2 * rounds; i++) {
		const bool up = i % 2;
		ibv_port_attr port{};

		link->set_up(up);
		const Async event = next_port_event(dev);
		EXPECT_STREQ(ibv_event_type_str(event.type),
			     ibv_event_type_str(up ? IBV_EVENT_PORT_ACTIVE : IBV_EVENT_PORT_ERR));
		EXPECT_EQ(event.port, 1);
		ASSERT_EQ(ibv_query_port(dev, 1, &port), 0);
		EXPECT_EQ(port.state, up ? IBV_PORT_ACTIVE : IBV_PORT_DOWN) << "round " << i / 2;
	}
	/* nothing is left but what the addresses say */
	while (auto got = next_async(dev, quiet()))
		EXPECT_STREQ(ibv_event_type_str(got->type), ibv_event_type_str(IBV_EVENT_GID_CHANGE));
	/* to set it to what it is changes nothing */
	link->set_up(true);
	expect_no_async(dev);
}

/* -------------------------------------------------------------- CASES 55 */

namespace {

void nothing(int) {}

/* A signal that interrupts a read instead of restarting it. */
void interruptible(int signal)
{
	struct sigaction action{};

	action.sa_handler = nothing;
	require(sigaction(signal, &action, nullptr) == 0, "sigaction");
}

} // namespace

/*
 * CASES 55, what not to do: a thread is blocked in ibv_get_async_event, another closes the device. The read keeps the file,
 * and goes on; a signal ends it, and nothing crashes, here or when the device goes. (Were an event to come, it could not:
 * the context's objects, whose events they would be, are gone.)
 */
TEST_F(PortTest, Cases55_ClosedUnderAReader)
{
	Child child([this](int, int out) {
		Context ctx = open_device(link->name());
		std::atomic<pid_t> tid = 0;
		std::atomic<int> rc = 0, error = 0;

		interruptible(SIGUSR1);
		auto reader = worker([&, raw = ctx.get()] {
			ibv_async_event event{};

			tid = gettid();
			rc = ibv_get_async_event(raw, &event);
			error = errno;
		});
		while (!tid)
			std::this_thread::yield();
		wait_until_asleep(tid);
		EXPECT_EQ(ctx.destroy(), 0);
		wait_until_asleep(tid);
		Child::put(out, "!", 1);
		pthread_kill(reader.native_handle(), SIGUSR1);
		reader.join();
		EXPECT_EQ(rc, -1);
		EXPECT_EQ(error, EINTR);
		return 0;
	});
	char c;

	ASSERT_TRUE(child.hear(&c, 1));
	EXPECT_LE(link->del(), Link::limit());
	EXPECT_EQ(child.wait(), 0);
}

/* CASES 55, what to do: the file does not block, poll(2) waits for it and for an eventfd that says when to stop. */
TEST_F(PortTest, Cases55_PollAndEventfd)
{
	Device dev(link->name());
	const int stop = eventfd(0, EFD_CLOEXEC);
	std::atomic<int> got = 0;

	require(stop >= 0, "eventfd");
	auto reader = worker([&] {
		for (;;) {
			pollfd fds[2] = {{dev.ctx->async_fd, POLLIN, 0}, {stop, POLLIN, 0}};
			ibv_async_event event{};

			require(poll(fds, 2, -1) > 0, "poll");
			while (ibv_get_async_event(dev, &event) == 0) {
				ibv_ack_async_event(&event);
				got++;
			}
			EXPECT_EQ(errno, EAGAIN);
			if (fds[1].revents)
				return;
		}
	});
	link->address(true, 55);
	const auto end = Clock::now() + patience();
	while (!got && Clock::now() < end)
		std::this_thread::yield();
	EXPECT_EQ(eventfd_write(stop, 1), 0);
	reader.join();
	close(stop);
	EXPECT_EQ(got, 1);
	EXPECT_EQ(dev.ctx.destroy(), 0);
}
