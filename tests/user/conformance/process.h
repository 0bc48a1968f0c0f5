/* SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB */
/* Child processes: some work well and are watched, some misbehave and are killed. */
#pragma once

#include "pair.h"

#include <sys/types.h>

#include <functional>
#include <map>

namespace conformance {

/*
 * A forked child that runs a function and exits with its answer. Fork happens before the child opens any device; what
 * the parent has open is not the child's to use. The child is killed when its object goes.
 */
class Child {
public:
	/* in and out: the child's ends of two pipes */
	using Body = std::function<int(int in, int out)>;

	explicit Child(const Body &body);
	~Child();
	Child(const Child &) = delete;

	void tell(char c) { tell(&c, 1); }
	void tell(const void *data, size_t len);
	/* What the child writes next; false if it ends instead, or says nothing in time. */
	bool hear(void *data, size_t len, Millis limit = patience());
	void kill(int signal);
	/* Its exit status, or 128 + signal; -1 if it does not end in time. */
	int wait(Millis limit = patience());
	/* Waits until it has stopped itself. */
	void expect_stopped();
	pid_t pid() const { return pid_; }

	/* For the child's body. */
	static void get(int in, void *data, size_t len);
	static void put(int out, const void *data, size_t len);

private:
	pid_t pid_ = -1;
	int to_ = -1, from_ = -1;
	bool reaped_ = false;
	int status_ = 0;
};

/*
 * A well-behaved process with traffic of its own, all the time, every byte checked. check() throws unless it has made
 * progress since the last time.
 */
class Victim {
public:
	Victim();
	void check();

private:
	Child child_;
	uint64_t rounds_ = 0;
};

/* A mapping of the uverbs device in this process. */
struct Mapping {
	uint8_t *start;
	size_t size;
	uint64_t offset;
};

std::vector<Mapping> ring_mappings();

/* What `rdma resource show` counts on the device, by kind: pd, cq, qp, mr, srq, ctx, cm_id. Empty without the tool. */
std::map<std::string, int> resources(const std::string &device);
/* Waits until the counts are those of before. */
void expect_resources(const std::string &device, const std::map<std::string, int> &before);

/* A small generator, so that a seed repeats a run. */
class Random {
public:
	explicit Random(uint64_t seed) : x_(seed * 0x9e3779b97f4a7c15ull + 1) {}
	uint64_t next()
	{
		x_ ^= x_ << 13;
		x_ ^= x_ >> 7;
		x_ ^= x_ << 17;
		return x_;
	}
	uint64_t below(uint64_t n) { return next() % n; }

private:
	uint64_t x_;
};

} // namespace conformance
