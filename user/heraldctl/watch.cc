// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
#include "watch.h"

#include "failure.h"

#include <fmt/chrono.h>
#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <csignal>
#include <cstdio>
#include <ctime>

#include <fcntl.h>
#include <poll.h>
#include <sys/signalfd.h>
#include <sys/stat.h>
#include <unistd.h>

namespace heraldctl {

namespace {

using Clock = std::chrono::steady_clock;

constexpr const char *kEvent = "events/herald/herald_async_event";
constexpr const char *kInstance = "heraldctl-";
constexpr size_t kPageRoom = 65536; /* no kernel's pages of a ring buffer are larger by default */
constexpr int kLookMs = 1000;       /* a second look, should no wake-up come */

class Fd {
public:
	explicit Fd(int fd) : fd_(fd) {}
	Fd(Fd &&other) noexcept : fd_(std::exchange(other.fd_, -1)) {}
	Fd(const Fd &) = delete;
	Fd &operator=(const Fd &) = delete;
	Fd &operator=(Fd &&) = delete;
	~Fd()
	{
		if (fd_ >= 0)
			close(fd_);
	}
	int get() const { return fd_; }

private:
	int fd_;
};

/* A ring buffer of our own, so that nobody else's tracing is touched, nor ours by others. */
class Instance {
public:
	explicit Instance(const std::string &root) : path_(fmt::format("{}/instances/{}{}", root, kInstance, getpid()))
	{
		if (mkdir(path_.c_str(), 0700) != 0)
			throw Failure(errno == EACCES || errno == EPERM ? Exit::Denied : Exit::Failed,
				      fmt::format("{}: {}", path_, error_text(errno)));
	}
	Instance(const Instance &) = delete;
	Instance &operator=(const Instance &) = delete;
	/* in this order, for an instance in use is not removed; whoever uses it has closed its files */
	~Instance()
	{
		write_file(file(kEvent) + "/enable", "0");
		rmdir(path_.c_str());
	}
	std::string file(const std::string &name) const { return fmt::format("{}/{}", path_, name); }
	void set(const std::string &name, std::string_view value) const
	{
		const int error = write_file(file(name), value);
		if (error)
			throw Failure(Exit::Failed, fmt::format("{}: {}", file(name), error_text(error)));
	}

private:
	std::string path_;
};

/* Those of processes that were killed */
void remove_stale_instances(const std::string &root)
{
	for (const std::string &name : list_folder(root + "/instances")) {
		if (!name.starts_with(kInstance))
			continue;
		const auto pid = number(std::string_view(name).substr(std::string_view(kInstance).size()));
		if (pid && kill(static_cast<pid_t>(*pid), 0) != 0 && errno == ESRCH)
			rmdir(fmt::format("{}/instances/{}", root, name).c_str());
	}
}

void require_event(const std::string &root)
{
	if (exists(fmt::format("{}/{}/format", root, kEvent)))
		return;
	if (!exists("/sys/module/herald"))
		throw Failure(Exit::NotFound, "herald is not loaded: heraldctl load, then watch");
	throw Failure(Exit::Unsupported,
		      "the loaded herald has no tracepoint herald:herald_async_event: it is older than this "
		      "program, or was built for a kernel without event tracing");
}

} // namespace

std::string tracefs()
{
	for (const char *root : {"/sys/kernel/tracing", "/sys/kernel/debug/tracing"}) {
		if (exists(std::string(root) + "/instances"))
			return root;
		if (errno == EACCES)
			throw Failure(Exit::Denied, fmt::format("not permitted to look into {}: be root", root));
	}
	const std::string known = read_file("/proc/filesystems").value_or("");
	if (known.find("\ttracefs") == std::string::npos)
		throw Failure(Exit::Unsupported, "this kernel has no event tracing (CONFIG_EVENT_TRACING): "
						 "asynchronous events cannot be watched");
	throw Failure(Exit::Unsupported, "tracefs is not mounted: mount -t tracefs none /sys/kernel/tracing");
}

/* ---------------------------------------------------------------------------------------------------- watching -- */

namespace {

/* SIGINT and the like end a watch as the count does; nobody who reads our output any more does, too. */
Fd block_signals()
{
	sigset_t signals;

	sigemptyset(&signals);
	for (const int signal : {SIGINT, SIGTERM, SIGHUP})
		sigaddset(&signals, signal);
	pthread_sigmask(SIG_BLOCK, &signals, nullptr);
	(void)std::signal(SIGPIPE, SIG_IGN);
	return Fd(signalfd(-1, &signals, SFD_CLOEXEC));
}

struct TimedEvent {
	uint64_t time = 0;
	AsyncEvent event;
};

class Watch {
public:
	Watch(const WatchOptions &options, const std::string &root)
		: options_(options), signals_(block_signals()), instance_(root),
		  format_(EventFormat::parse(read_file(instance_.file(kEvent) + "/format").value_or(""))),
		  page_(kPageRoom)
	{
		instance_.set("trace_clock", "mono");
		/* wake up for the first event, not when half of the buffer is full */
		instance_.set("buffer_percent", "0");
		open_buffers();
		instance_.set(std::string(kEvent) + "/enable", "1");
		timespec mono{}, real{};
		clock_gettime(CLOCK_MONOTONIC, &mono);
		clock_gettime(CLOCK_REALTIME, &real);
		to_real_ = (real.tv_sec - mono.tv_sec) * 1'000'000'000LL + (real.tv_nsec - mono.tv_nsec);
	}

	void run()
	{
		const auto end = Clock::now() + std::chrono::duration<double>(options_.seconds);

		while (!done_) {
			int wait = kLookMs;
			if (options_.seconds > 0) {
				const auto left =
					std::chrono::duration_cast<std::chrono::milliseconds>(end - Clock::now());
				wait = static_cast<int>(std::clamp<long long>(left.count() + 1, 0, kLookMs));
				done_ = Clock::now() >= end;
			}
			wait_for_news(wait);
			show(take());
		}
	}

private:
	void open_buffers()
	{
		for (const std::string &cpu : list_folder(instance_.file("per_cpu"))) {
			const std::string file = instance_.file(fmt::format("per_cpu/{}/trace_pipe_raw", cpu));
			Fd fd(open(file.c_str(), O_RDONLY | O_NONBLOCK | O_CLOEXEC));
			if (fd.get() < 0)
				throw Failure(Exit::Failed, fmt::format("{}: {}", file, error_text(errno)));
			buffers_.push_back(std::move(fd));
		}
	}

	void wait_for_news(int ms)
	{
		std::vector<pollfd> fds = {{.fd = signals_.get(), .events = POLLIN, .revents = 0}};

		for (const Fd &buffer : buffers_)
			fds.push_back({.fd = buffer.get(), .events = POLLIN, .revents = 0});
		if (poll(fds.data(), fds.size(), ms) > 0 && fds[0].revents)
			done_ = true;
	}

	/* What all CPUs have, in the order of time */
	std::vector<TimedEvent> take()
	{
		std::vector<TimedEvent> events;

		for (const Fd &buffer : buffers_) {
			ssize_t n = 0;
			while ((n = read(buffer.get(), page_.data(), page_.size())) > 0) {
				const TracePage page = parse_trace_page(Bytes(page_).first(static_cast<size_t>(n)));
				if (page.lost)
					fmt::print(stderr, "heraldctl: some events were lost: too many at once\n");
				for (const TraceRecord &record : page.records) {
					if (format_.matches(record.data))
						events.push_back({record.time, decode_event(format_, record.data)});
				}
			}
		}
		std::stable_sort(events.begin(), events.end(),
				 [](const TimedEvent &a, const TimedEvent &b) { return a.time < b.time; });
		return events;
	}

	void show(const std::vector<TimedEvent> &events)
	{
		for (const auto &[time, event] : events) {
			if (!wanted(event, options_))
				continue;
			const auto real = std::chrono::nanoseconds(static_cast<long long>(time) + to_real_);
			fmt::print("{}\n", options_.json ? json(real, event) : text(real, event));
			if (options_.count && ++shown_ == options_.count) {
				done_ = true;
				break;
			}
		}
		if (std::fflush(stdout) != 0)
			done_ = true;
	}

	static std::string text(std::chrono::nanoseconds real, const AsyncEvent &event)
	{
		const auto seconds = std::chrono::duration_cast<std::chrono::seconds>(real);

		return fmt::format("{:%H:%M:%S}.{:06} {}", fmt::localtime(seconds.count()),
				   std::chrono::duration_cast<std::chrono::microseconds>(real - seconds).count(),
				   event_line(event, event.pid ? command_of(event.pid) : ""));
	}

	static std::string json(std::chrono::nanoseconds real, const AsyncEvent &event)
	{
		nlohmann::ordered_json json = {{"time", std::chrono::duration<double>(real).count()},
					       {"device", event.device},
					       {"event", event.event},
					       {"object", event.object}};

		json["number"] = nullptr;
		if (event.number)
			json["number"] = *event.number;
		json["cause"] = event.cause;
		json["pid"] = event.pid;
		json["command"] = event.pid ? command_of(event.pid) : "";
		json["verdict"] = event.verdict;
		return json.dump();
	}

	const WatchOptions &options_;
	Fd signals_;
	Instance instance_; /* goes after what was opened in it */
	EventFormat format_;
	std::vector<std::byte> page_;
	std::vector<Fd> buffers_;
	long long to_real_ = 0;
	unsigned long shown_ = 0;
	bool done_ = false;
};

} // namespace

void watch(const WatchOptions &options)
{
	const std::string root = tracefs();

	require_event(root);
	remove_stale_instances(root);
	Watch(options, root).run();
}

} // namespace heraldctl
