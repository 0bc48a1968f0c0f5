/* SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB */
/* What every part of the torture uses: options, counts, random numbers, failing, and the state of the whole. */
#pragma once

#include <infiniband/verbs.h>

#include <atomic>
#include <chrono>
#include <cstdint>
#include <random>
#include <string>
#include <thread>

namespace torture {

struct Options {
	unsigned seconds = 30;
	unsigned seed = 1;
	unsigned threads = 4;
	unsigned patience = 2000; /* ms */
	unsigned min_arms = 0;
	std::string dev;
};

extern Options options;

using Count = std::atomic<uint64_t>;

struct Totals {
	Count arms;  /* that took effect */
	Count calls; /* of ibv_req_notify_cq */
	Count events, posted, completions, flushed;
	Count resizes, moderated, unmoderated;
	Count kills, purges, cqs;
	Count rounds; /* of the litmus test */
};

extern Totals totals;

/* Who may run now: each litmus test, kLitmus and its number, wants the machine for itself. */
enum Phase : uint8_t { kStop, kStorm, kLitmus };

extern std::atomic<int> phase;

/* Until it is @mine; false if the end has come. */
inline bool await_phase(int mine)
{
	for (;;) {
		const int now = phase.load();

		if (now == kStop || now == mine)
			return now == mine;
		phase.wait(now);
	}
}

class Random {
public:
	explicit Random(unsigned stream) : engine_(options.seed * 1000003u + stream) {}

	uint32_t below(uint32_t n) { return engine_() % n; }
	bool one_in(uint32_t n) { return !below(n); }

private:
	std::minstd_rand engine_;
};

/* What is to be shown when something failed. */
class Shown {
public:
	Shown();
	virtual ~Shown();
	Shown(const Shown &) = delete;
	Shown &operator=(const Shown &) = delete;
	virtual void show() const = 0;
};

/* Says what was wrong, shows everything, and ends the process. */
[[noreturn, gnu::format(printf, 1, 2)]] void fail(const char *fmt, ...);

/* A verb's answer: 0, an errno, or -1 and errno. */
void must(int rc, const char *what);

template <class T> T *must(T *p, const char *what)
{
	if (!p)
		fail("%s: %m", what);
	return p;
}

constexpr std::chrono::milliseconds kTick{50};

inline unsigned patience_ticks()
{
	return options.patience / static_cast<unsigned>(kTick.count()) + 1;
}

/* Something seems to wait: the phase goes on until it is known whether it does so in vain. The watchdog's. */
extern bool suspicion;

/* Has it waited for so many ticks, and may it? */
inline bool note_wait(unsigned ticks)
{
	suspicion |= ticks > 5;
	return ticks < patience_ticks();
}

inline void nap(unsigned us)
{
	std::this_thread::sleep_for(std::chrono::microseconds(us));
}

/*
 * Many go in and out and never wait; who closes it waits until all are out, and keeps them out until it opens it
 * again. A reader-writer lock of the C library would starve who closes it.
 */
class Gate {
public:
	bool try_enter()
	{
		if (state_.load() & kClosed)
			return false;
		if (!(state_.fetch_add(1) & kClosed))
			return true;
		state_.fetch_sub(1);
		return false;
	}
	void leave() { state_.fetch_sub(1); }

	/* False if somebody else has it closed. @inside: the caller itself is in, and stays. */
	bool close(unsigned inside = 0)
	{
		if (state_.fetch_or(kClosed) & kClosed)
			return false;
		while ((state_.load() & ~kClosed) > inside)
			nap(20);
		return true;
	}
	void open() { state_.fetch_and(~kClosed); }

private:
	static constexpr uint32_t kClosed = 1u << 31;
	std::atomic<uint32_t> state_ = 0;
};

/* The device and what belongs to it as a whole. */
struct Device {
	ibv_context *ctx = nullptr;
	ibv_pd *pd = nullptr;
	ibv_mr *mr = nullptr;
	char *mem = nullptr;
	ibv_gid gid{};
	int gid_index = -1;

	static constexpr uint32_t kMemory = 1 << 17;

	void open();
	void close();
	/* RESET to RTS, both ends. */
	void connect(ibv_qp *a, ibv_qp *b) const;
	void to_state(ibv_qp *qp, ibv_qp_state state) const;

private:
	void to_rts(ibv_qp *qp, uint32_t dest) const;
};

extern Device device;

} // namespace torture
