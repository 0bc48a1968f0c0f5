/* SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB */
/*
 * Nanoseconds per empty poll, per polled completion and per arm, through the
 * functions that ibv_poll_cq and ibv_req_notify_cq call, on rings in a memfd.
 *
 *	herald_poll_bench [--benchmark_filter=...]
 */
#include <benchmark/benchmark.h>

#include <cstdio>
#include <cstdlib>

#include <sys/mman.h>
#include <unistd.h>

#include "objects.h"

namespace {

constexpr uint32_t depth = 1024;

class BenchCq {
public:
	explicit BenchCq(bool alone) : handle_(herald_cq_new(alone))
	{
		const size_t length = 4096 + depth * sizeof(herald_cqe);
		const herald_ring_info info = {0, length, depth, sizeof(herald_cqe)};
		const int fd = memfd_create("herald", MFD_CLOEXEC);

		if (fd < 0 || ftruncate(fd, off_t(length)) || !handle_ || herald_cq_map(handle_, fd, &info)) {
			perror("herald_poll_bench");
			exit(1);
		}
		ctl_ = static_cast<herald_cq_ctl *>(mmap(nullptr, length, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0));
		close(fd);
	}
	~BenchCq() { herald_cq_free(handle_); }

	ibv_cq *ibv() { return ibv_cq_ex_to_cq(handle_); }

	/* The kernel's half: that many more completions (whatever is in the slots). */
	void publish(uint32_t count) { herald::store_release(ctl_->producer, ctl_->producer + count); }
	void fire() { herald::store_release(ctl_->arm_fired, __u32(HERALD_ARM_SEQ(ctl_->arm))); }

private:
	ibv_cq_ex *handle_;
	herald_cq_ctl *ctl_;
};

void empty_poll(benchmark::State &state)
{
	BenchCq cq(state.range(0));
	ibv_wc wc[16];

	for (auto _ : state)
		benchmark::DoNotOptimize(herald_poll_cq(cq.ibv(), 16, wc));
}

/* Arguments: single threaded, completions per poll. */
void poll(benchmark::State &state)
{
	BenchCq cq(state.range(0));
	const int batch = int(state.range(1));
	ibv_wc wc[64];

	for (auto _ : state) {
		cq.publish(uint32_t(batch));
		if (herald_poll_cq(cq.ibv(), batch, wc) != batch)
			state.SkipWithError("poll");
		benchmark::ClobberMemory();
	}
	state.SetItemsProcessed(state.iterations() * batch);
}

/* An arm that was consumed since the last one: the store, and the full barrier. */
void arm(benchmark::State &state)
{
	BenchCq cq(state.range(0));

	for (auto _ : state) {
		benchmark::DoNotOptimize(herald_req_notify_cq(cq.ibv(), 0));
		cq.fire();
	}
}

/* An arm while one is pending. */
void arm_again(benchmark::State &state)
{
	BenchCq cq(state.range(0));

	for (auto _ : state)
		benchmark::DoNotOptimize(herald_req_notify_cq(cq.ibv(), 0));
}

} // namespace

BENCHMARK(empty_poll)->ArgName("alone")->Arg(0)->Arg(1);
BENCHMARK(poll)->ArgNames({"alone", "batch"})->ArgsProduct({{0, 1}, {1, 16, 64}});
BENCHMARK(arm)->ArgName("alone")->Arg(0)->Arg(1);
BENCHMARK(arm_again)->ArgName("alone")->Arg(0)->Arg(1);
BENCHMARK_MAIN();
