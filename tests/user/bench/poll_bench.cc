/* SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB */
/*
 * Nanoseconds per empty poll, per polled completion and per arm, by
 * ibv_poll_cq and ibv_req_notify_cq on rings in memory: herald's, herald's
 * with IBV_CREATE_CQ_ATTR_SINGLE_THREADED ("alone"), and librxe's if the
 * build found its source.  scripts/bench-native.sh runs it.  With
 * HERALD_BENCH_SHARED set, locks have no owner (lock.h), as those of a queue
 * that several threads use.
 *
 *	herald_poll_bench [--benchmark_filter=...]
 */
#include <benchmark/benchmark.h>

#include <cstdio>
#include <cstdlib>

#include <sys/mman.h>
#include <unistd.h>

#include "objects.h"
#ifdef HERALD_BENCH_RXE
#include "rxe_cq.h"
#endif

namespace {

constexpr uint32_t depth = 256;

/* More are published at once, so that the producer's store hardly counts. */
constexpr uint32_t published = depth / 2;

[[noreturn]] void die(const char *what)
{
	perror(what);
	exit(1);
}

template <bool alone> class HeraldCq {
public:
	HeraldCq() : handle_(herald_cq_new(alone))
	{
		const size_t length = 4096 + depth * sizeof(herald_cqe);
		const herald_ring_info info = {0, length, depth, sizeof(herald_cqe)};
		const int fd = memfd_create("herald", MFD_CLOEXEC);

		if (fd < 0 || ftruncate(fd, off_t(length)) || !handle_ || herald_cq_map(handle_, fd, &info))
			die("herald");
		close(fd);
		context_.ops.poll_cq = herald_poll_cq;
		context_.ops.req_notify_cq = herald_req_notify_cq;
		ibv()->context = &context_;
		/*
		 * The provider's own mapping: a store by another address is
		 * not forwarded to the loads behind it, which no kernel on
		 * another core would cost.
		 */
		ctl_ = static_cast<herald_cq_ctl *>(herald::Cq::of(handle_).mapping.base());
	}
	~HeraldCq() { herald_cq_free(handle_); }

	ibv_cq *ibv() { return ibv_cq_ex_to_cq(handle_); }

	/* The kernel's half: that many more completions (whatever is in the slots). */
	void publish(uint32_t count) { herald::store_release(ctl_->producer, ctl_->producer + count); }

	/* ... and the last arm fires.  There was one since the last call. */
	void fire() { herald::store_release(ctl_->arm_fired, __u32(++fired_)); }

private:
	ibv_context context_ = {};
	ibv_cq_ex *handle_;
	herald_cq_ctl *ctl_;
	uint32_t fired_ = 0;
};

using herald_cq = HeraldCq<false>;
using herald_alone = HeraldCq<true>;

#ifdef HERALD_BENCH_RXE
/* Its arm is a system call; here /dev/null takes it, so that is the least that one can cost. */
class librxe {
public:
	librxe() : cq_(rxe_bench_cq_new(depth))
	{
		if (!cq_)
			die("librxe");
	}

	ibv_cq *ibv() { return cq_; }
	void publish(uint32_t count) { rxe_bench_publish(cq_, count); }
	void fire() {}

private:
	ibv_cq *cq_;
};
#endif

template <class Cq> void empty_poll(benchmark::State &state)
{
	Cq cq;
	ibv_wc wc[16];

	for (auto _ : state)
		benchmark::DoNotOptimize(ibv_poll_cq(cq.ibv(), 16, wc));
}

/* Argument: completions per poll. */
template <class Cq> void poll(benchmark::State &state)
{
	Cq cq;
	const int batch = int(state.range(0));
	uint32_t left = 0;
	ibv_wc wc[64];

	for (auto _ : state) {
		if (!left) {
			cq.publish(published);
			left = published;
		}
		if (ibv_poll_cq(cq.ibv(), batch, wc) != batch)
			state.SkipWithError("poll");
		left -= uint32_t(batch);
		benchmark::ClobberMemory();
	}
	state.SetItemsProcessed(state.iterations() * batch);
}

/* An arm that was consumed since the last one. */
template <class Cq> void arm(benchmark::State &state)
{
	Cq cq;

	for (auto _ : state) {
		if (ibv_req_notify_cq(cq.ibv(), 0))
			state.SkipWithError("arm");
		cq.fire();
	}
}

/* An arm while one is pending. */
template <class Cq> void arm_again(benchmark::State &state)
{
	Cq cq;

	for (auto _ : state)
		if (ibv_req_notify_cq(cq.ibv(), 0))
			state.SkipWithError("arm");
}

} // namespace

#define HERALD_BENCH(Cq)                                                                                               \
	BENCHMARK(empty_poll<Cq>)->Name("empty_poll/" #Cq);                                                            \
	BENCHMARK(poll<Cq>)->Name("poll/" #Cq)->Arg(1)->Arg(16)->Arg(64);                                              \
	BENCHMARK(arm<Cq>)->Name("arm/" #Cq);                                                                          \
	BENCHMARK(arm_again<Cq>)->Name("arm_again/" #Cq)

HERALD_BENCH(herald_cq);
HERALD_BENCH(herald_alone);
#ifdef HERALD_BENCH_RXE
HERALD_BENCH(librxe);
#endif

int main(int argc, char **argv)
{
	if (!getenv("HERALD_BENCH_SHARED"))
		herald_locks_init();
	benchmark::Initialize(&argc, argv);
	if (benchmark::ReportUnrecognizedArguments(argc, argv))
		return 2;
	benchmark::RunSpecifiedBenchmarks();
	return 0;
}
