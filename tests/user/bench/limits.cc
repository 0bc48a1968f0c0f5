// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
//
// What the machine itself can do: the bounds that a software device's speed is compared with.
//
//	bench_limits [SECONDS]
//
// Prints lines `TEST SIZE NAME VALUE UNIT`. Each measurement takes about SECONDS (0.5). Latencies
// are half a round trip, as perftest's are.

#include <atomic>
#include <cerrno>
#include <chrono>
#include <csignal>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <functional>
#include <memory>
#include <thread>

#include <sched.h>
#include <sys/eventfd.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <sys/wait.h>
#include <unistd.h>

namespace {

using Clock = std::chrono::steady_clock;

double g_seconds = 0.5;

[[noreturn]] void die(const char *what)
{
	std::perror(what);
	std::exit(1);
}

// A child that runs `body` until it ends or is killed with its parent's Child object.
class Child {
public:
	explicit Child(const std::function<void()> &body) : pid_(fork())
	{
		if (pid_ < 0)
			die("fork");
		if (pid_ == 0) {
			body();
			_exit(0);
		}
	}
	~Child()
	{
		kill(pid_, SIGKILL);
		waitpid(pid_, nullptr, 0);
	}
	Child(const Child &) = delete;
	Child &operator=(const Child &) = delete;
	pid_t pid() const { return pid_; }

private:
	pid_t pid_;
};

// Seconds that one call of `once` takes, over about g_seconds after a short warm-up.
template <typename F> double seconds_per_call(F &&once)
{
	const auto run = [&](uint64_t n) {
		const auto start = Clock::now();
		for (uint64_t i = 0; i < n; i++)
			once();
		return std::chrono::duration<double>(Clock::now() - start).count();
	};
	uint64_t n = 1;
	double took = run(n);

	while (took < g_seconds / 20) {
		n *= 2;
		took = run(n);
	}
	n = static_cast<uint64_t>(n * g_seconds / took) + 1;
	return run(n) / n;
}

void report(const char *test, size_t size, const char *name, double value, const char *unit)
{
	std::printf("%s %zu %s %.6g %s\n", test, size, name, value, unit);
	std::fflush(stdout);
}

// Memory as perftest allocates it: page aligned, private, touched.
std::unique_ptr<char, decltype(&std::free)> buffer(size_t size)
{
	void *memory = std::aligned_alloc(4096, size);

	if (!memory)
		die("aligned_alloc");
	std::memset(memory, 0x5a, size);
	return {static_cast<char *>(memory), &std::free};
}

double mib_per_second(size_t size, double seconds)
{
	return size / seconds / (1 << 20);
}

void copy_within(size_t size)
{
	const auto from = buffer(size), to = buffer(size);
	const double seconds = seconds_per_call([&] {
		std::memcpy(to.get(), from.get(), size);
		asm volatile("" : : "r"(to.get()) : "memory");
	});

	report("bw", size, "memcpy", mib_per_second(size, seconds), "MiB/s");
}

void copy_between_processes(size_t size)
{
	const auto from = buffer(size), to = buffer(size);
	// the child has both buffers at the same addresses; touching makes its own copies of the pages
	const Child child([&] {
		std::memset(to.get(), 1, size);
		for (;;)
			pause();
	});
	const iovec local{from.get(), size}, remote{to.get(), size};
	const double seconds = seconds_per_call([&] {
		if (process_vm_writev(child.pid(), &local, 1, &remote, 1, 0) != static_cast<ssize_t>(size))
			die("process_vm_writev");
	});

	report("bw", size, "process_vm_writev", mib_per_second(size, seconds), "MiB/s");
}

struct EventPair {
	int ping = eventfd(0, EFD_CLOEXEC);
	int pong = eventfd(0, EFD_CLOEXEC);

	~EventPair()
	{
		close(ping);
		close(pong);
	}
	static void put(int fd, uint64_t value = 1)
	{
		if (write(fd, &value, sizeof(value)) != sizeof(value))
			die("write to eventfd");
	}
	static uint64_t get(int fd)
	{
		uint64_t value;

		if (read(fd, &value, sizeof(value)) != sizeof(value))
			die("read from eventfd");
		return value;
	}
	// answers until it gets more than 1
	void echo() const
	{
		while (get(ping) == 1)
			put(pong);
	}
	void round_trip() const
	{
		put(ping);
		get(pong);
	}
};

void events_between_processes()
{
	const EventPair pair;
	const Child child([&] { pair.echo(); });

	report("lat_event", 0, "eventfd_processes", seconds_per_call([&] { pair.round_trip(); }) / 2 * 1e6, "us");
}

void events_between_threads()
{
	const EventPair pair;
	std::thread thread([&] { pair.echo(); });

	report("lat_event", 0, "eventfd_threads", seconds_per_call([&] { pair.round_trip(); }) / 2 * 1e6, "us");
	EventPair::put(pair.ping, 2);
	thread.join();
}

void polling_between_processes()
{
	using Word = std::atomic<uint64_t>;
	void *memory = mmap(nullptr, 4096, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);

	if (memory == MAP_FAILED)
		die("mmap");
	auto *ping = new (memory) Word(0);
	auto *pong = new (static_cast<char *>(memory) + 1024) Word(0);
	{
		const Child child([&] {
			for (uint64_t n = 1;; n++) {
				while (ping->load(std::memory_order_acquire) != n)
					;
				pong->store(n, std::memory_order_release);
			}
		});
		uint64_t n = 0;

		auto round_trip = [&] {
			ping->store(++n, std::memory_order_release);
			while (pong->load(std::memory_order_acquire) != n)
				;
		};
		report("lat_poll", 0, "shared_memory", seconds_per_call(round_trip) / 2 * 1e6, "us");
	}
	munmap(memory, 4096);
}

void empty_system_call()
{
	const double seconds = seconds_per_call([] { syscall(SYS_getppid); });

	report("rate", 0, "system_call", 1e-6 / seconds, "M/s");
}

} // namespace

int main(int argc, char **argv)
{
	if (argc > 1)
		g_seconds = std::strtod(argv[1], nullptr);
	if (argc > 2 || !(g_seconds > 0)) {
		std::fprintf(stderr, "usage: %s [SECONDS]\n", argv[0]);
		return 2;
	}
	for (const size_t size : {size_t{64} << 10, size_t{1} << 20}) {
		copy_within(size);
		copy_between_processes(size);
	}
	empty_system_call();
	polling_between_processes();
	events_between_processes();
	events_between_threads();
	return 0;
}
