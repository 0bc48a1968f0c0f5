/* SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB */
/* What goes on between two ends while their paths change. */
#pragma once

#include "migration.h"

#include <algorithm>
#include <atomic>

namespace conformance {

/* Messages that carry their number, some at a time: each completes once, in order, with its own bytes. */
class Traffic {
public:
	Traffic(End &from, End &to, uint32_t size) : from_(from), to_(to), size_(size) {}

	void run(std::stop_token stop)
	{
		auto end = Clock::now() + patience();

		for (;;) {
			const bool going = !stop.stop_requested();

			if (!going && sent_ == posted_ && received == posted_)
				return;
			while (going && posted_ - std::min<uint64_t>(sent_, received) < kWindow)
				post();
			if (poll_sent() | poll_received())
				end = Clock::now() + patience();
			else
				std::this_thread::yield();
			if (Clock::now() > end)
				fail("nothing completes any more after " + std::to_string(received));
		}
	}

	std::atomic<uint64_t> received = 0;

private:
	static constexpr uint64_t kWindow = 4;

	size_t slot(uint64_t n) const { return n % kWindow * size_; }
	void post()
	{
		const size_t at = slot(posted_);

		from_.mem.fill(static_cast<uint32_t>(posted_), at, size_);
		recv(to_, to_.mem, to_.mem.size() / 2 + at, size_, posted_);
		Send(IBV_WR_SEND, posted_).from(from_.mem, at, size_).post(from_);
		posted_++;
	}
	bool poll_sent()
	{
		ibv_wc wc{};

		if (ibv_poll_cq(from_.scq, 1, &wc) <= 0)
			return false;
		require(wc.status == IBV_WC_SUCCESS, std::string("send: ") + ibv_wc_status_str(wc.status));
		EXPECT_EQ(wc.wr_id, sent_);
		sent_++;
		return true;
	}
	bool poll_received()
	{
		ibv_wc wc{};

		if (ibv_poll_cq(to_.rcq, 1, &wc) <= 0)
			return false;
		require(wc.status == IBV_WC_SUCCESS, std::string("receive: ") + ibv_wc_status_str(wc.status));
		EXPECT_EQ(wc.wr_id, received);
		EXPECT_EQ(wc.byte_len, size_);
		EXPECT_EQ(differs(from_.mem.data() + slot(received),
				  to_.mem.data() + to_.mem.size() / 2 + slot(received), size_),
			  -1);
		received++;
		return true;
	}

	End &from_, &to_;
	uint32_t size_;
	uint64_t posted_ = 0, sent_ = 0;
};

/* Both ways, from now until it is stopped; what was posted then has arrived. */
class BothWays {
public:
	explicit BothWays(Pair &p)
		: there_(p.a, p.b, 64), back_(p.b, p.a, 64),
		  one_(worker([this](std::stop_token stop) { there_.run(stop); })),
		  two_(worker([this](std::stop_token stop) { back_.run(stop); }))
	{
	}
	/* So many more have arrived, each way. */
	void wait_for(uint64_t more) const
	{
		const uint64_t n = there_.received + more, m = back_.received + more;
		const auto end = Clock::now() + patience();

		while (there_.received < n || back_.received < m) {
			require(Clock::now() < end, "the traffic stands still");
			std::this_thread::yield();
		}
	}

private:
	Traffic there_, back_;
	std::jthread one_, two_;
};

} // namespace conformance
