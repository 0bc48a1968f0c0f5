/* SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB */
/*
 * Provoking objects that come and go: nothing is used after it is gone (KASAN looks in the debug lane), every destroy
 * returns, each event's element is alive.
 */
#include "control.h"
#include "pair.h"

#include <array>
#include <atomic>

using namespace conformance;

namespace {

/* Numbers that may or may not be some object's by now. */
class Provoker {
public:
	explicit Provoker(const Device &dev) : dev_(dev) {}

	void qp(uint32_t qpn)
	{
		static const std::array<const char *, 6> names = {"comm-est", "sq-drained", "qp-last-wqe-reached",
								  "path-mig", "qp-fatal",   "qp-access-err"};

		attempt(names[next_++ % names.size()], qpn);
	}
	void srq(uint32_t srqn) { attempt(next_++ % 2 ? "srq-limit-reached" : "srq-err", srqn); }
	void cq(uint32_t cqn)
	{
		if (next_++ % 3 == 0)
			attempt("cq-err", cqn);
	}
	/* Everything of this process that the tables show, objects that are being made included. */
	void all()
	{
		for (const auto &row : own_rows(dev_, "qps"))
			qp(number(row, "qpn"));
		for (const auto &row : own_rows(dev_, "srqs"))
			srq(number(row, "srqn"));
		for (const auto &row : own_rows(dev_, "cqs"))
			cq(number(row, "cqn"));
	}

	std::atomic<int> done{0};

private:
	static uint32_t number(const TableRow &row, const char *column)
	{
		return static_cast<uint32_t>(std::stoul(row.at(column)));
	}
	void attempt(const char *event, uint32_t number)
	{
		const int error = try_provoke(dev_, event, number);

		EXPECT_TRUE(error == 0 || error == ENOENT || error == EINVAL) << event << ": " << strerror(error);
		done += error == 0;
	}

	const Device &dev_;
	size_t next_ = 0;
};

} // namespace

class ProvokeStress : public RcTest {
protected:
	static constexpr int kEnough = 50;

	void SetUp() override
	{
		if (!CqControl::available(dev))
			GTEST_SKIP() << "this device's events cannot be provoked";
	}

	/* Objects are made, used and destroyed until enough has met; the machine may be slow, and the threads unfairly treated. */
	template <class F> void make_and_destroy(const Provoker &provoker, F made)
	{
		const auto end = Clock::now() + patience();

		for (int i = 0; Clock::now() < end && (i < 50 / slowness() || provoker.done < kEnough); i++) {
			Srq srq = make_srq(pd, 16);
			Cq cq = make_cq(dev, 61);
			QpOptions a, b;
			a.send_cq = cq;
			b.srq = srq;
			End one(dev, pd, a), two(dev, pd, b);

			made(one, two);
			/* whatever becomes of them meanwhile */
			try_modify(one, init_attr(IBV_QPT_RC, {}));
			try_modify(two, init_attr(IBV_QPT_RC, {}));
			Send().from(one.mem, 0, 8).try_post(one);
		}
		EXPECT_GE(provoker.done, kEnough);
	}
};

/*
 * Those that are being made, too. Nobody reads the events: to libibverbs an object exists once its create call has
 * returned, and acks from before that are forgotten.
 */
TEST_F(ProvokeStress, WhateverTheTablesShow)
{
	Provoker provoker(dev);
	auto thread = worker([&](std::stop_token stop) {
		while (!stop.stop_requested())
			provoker.all();
	});

	make_and_destroy(provoker, [](End &, End &) {});
}

/* CASES 42: a reader gets and acks what is provoked while the objects are destroyed. */
TEST_F(ProvokeStress, Cases42_ReaderOfObjectsThatComeAndGo)
{
	/* 0 is a number, of the core's own CQ */
	std::atomic<uint32_t> one{~0u}, two{~0u}, srqn{~0u}, cqn{~0u};
	std::atomic<int> got{0};
	Provoker provoker(dev);
	auto reader = worker([&](std::stop_token stop) {
		while (!stop.stop_requested()) {
			ibv_async_event event{};

			if (!readable(dev.ctx->async_fd, Millis(20)) || ibv_get_async_event(dev, &event))
				continue;
			if (event.event_type == IBV_EVENT_CQ_ERR)
				EXPECT_EQ(event.element.cq->context, dev.ctx.get());
			else if (event.event_type == IBV_EVENT_SRQ_ERR ||
				 event.event_type == IBV_EVENT_SRQ_LIMIT_REACHED)
				EXPECT_EQ(event.element.srq->context, dev.ctx.get());
			else
				EXPECT_EQ(event.element.qp->context, dev.ctx.get());
			got++;
			ibv_ack_async_event(&event);
		}
	});
	auto thread = worker([&](std::stop_token stop) {
		while (!stop.stop_requested()) {
			provoker.qp(one);
			provoker.qp(two);
			provoker.srq(srqn);
			provoker.cq(cqn);
		}
	});

	make_and_destroy(provoker, [&](End &a, End &b) {
		const auto cqs = own_rows(dev, "cqs");

		one = a.num();
		two = b.num();
		srqn = srq_number(dev);
		cqn = static_cast<uint32_t>(std::stoul(cqs.at(0).at("cqn")));
	});
	thread.request_stop();
	thread.join();
	reader.request_stop();
	reader.join();
	EXPECT_GT(got, 0);
}
