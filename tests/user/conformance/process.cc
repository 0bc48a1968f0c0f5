/* SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB */
#include "process.h"

#include <poll.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <sstream>
#include <thread>

namespace conformance {

Child::Child(const Body &body)
{
	int down[2], up[2];

	require(pipe(down) == 0 && pipe(up) == 0, "pipe");
	fflush(nullptr);
	pid_ = fork();
	require(pid_ >= 0, "fork");
	if (pid_ == 0) {
		int rc = 125;

		close(down[1]);
		close(up[0]);
		try {
			rc = body(down[0], up[1]);
		} catch (const std::exception &e) {
			fprintf(stderr, "child: %s\n", e.what());
		}
		if (::testing::Test::HasFailure())
			rc = 124;
		fflush(nullptr);
		_exit(rc);
	}
	close(down[0]);
	close(up[1]);
	to_ = down[1];
	from_ = up[0];
}

Child::~Child()
{
	if (!reaped_) {
		::kill(pid_, SIGKILL);
		waitpid(pid_, nullptr, 0);
	}
	close(to_);
	close(from_);
}

void Child::tell(const void *data, size_t len)
{
	put(to_, data, len);
}

void Child::get(int in, void *data, size_t len)
{
	for (auto *p = static_cast<char *>(data); len;) {
		ssize_t n = read(in, p, len);

		if (n <= 0)
			fail("the other process has gone");
		p += n;
		len -= n;
	}
}

void Child::put(int out, const void *data, size_t len)
{
	require(write(out, data, len) == static_cast<ssize_t>(len), "write to a pipe");
}

bool Child::hear(void *data, size_t len, Millis limit)
{
	auto end = Clock::now() + limit;
	auto *p = static_cast<char *>(data);

	while (len) {
		auto left = std::chrono::duration_cast<Millis>(end - Clock::now());

		if (left.count() <= 0 || !readable(from_, left))
			return false;
		ssize_t n = read(from_, p, len);
		if (n <= 0)
			return false;
		p += n;
		len -= n;
	}
	return true;
}

void Child::kill(int signal)
{
	::kill(pid_, signal);
}

int Child::wait(Millis limit)
{
	auto end = Clock::now() + limit;

	while (!reaped_) {
		pid_t got = waitpid(pid_, &status_, WNOHANG);

		if (got == pid_)
			reaped_ = true;
		else if (Clock::now() > end)
			return -1;
		else
			usleep(1000); /* there is no event to wait for but SIGCHLD */
	}
	return WIFEXITED(status_) ? WEXITSTATUS(status_) : 128 + WTERMSIG(status_);
}

void Child::expect_stopped()
{
	int status = 0;

	require(waitpid(pid_, &status, WUNTRACED) == pid_ && WIFSTOPPED(status), "it did not stop");
}

/* --------------------------------------------------------------- victim -- */

/* One round: a message there, an RDMA read back, both compared. */
static void round_trip(Pair &p, uint64_t n)
{
	uint32_t len = 1 + (n * 37) % 4000;

	p.a.mem.fill(static_cast<uint32_t>(n), 0, len);
	recv(p.b, p.b.mem, 0, 4096, n);
	Send(IBV_WR_SEND, n).from(p.a.mem, 0, len).post(p.a);
	ibv_wc s = expect_ok(p.a.scq, n), r = expect_ok(p.b.rcq, n);
	if (s.status || r.status || r.byte_len != len)
		fail("a bad completion");
	Send(IBV_WR_RDMA_READ, n).from(p.a.mem, 8192, len).to(p.b.mem).post(p.a);
	s = expect_ok(p.a.scq, n);
	if (s.status || differs(p.a.mem.data(), p.a.mem.data() + 8192, len) != -1)
		fail("bad data");
}

static int victim_body(int in, int out)
{
	Device dev;
	Pd pd = make_pd(dev);
	Pair p(dev, pd);
	uint64_t n = 0;

	for (;;) {
		round_trip(p, ++n);
		if (readable(in, Millis(0))) {
			char c;

			if (read(in, &c, 1) != 1)
				return 0;
			if (write(out, &n, sizeof(n)) != sizeof(n))
				return 1;
		}
	}
}

Victim::Victim() : child_(victim_body)
{
	check();
}

void Victim::check()
{
	auto end = Clock::now() + patience();
	uint64_t n;

	do {
		child_.tell('?');
		if (!child_.hear(&n, sizeof(n)))
			fail("the innocent process has failed or stands still");
	} while (n == rounds_ && Clock::now() < end);
	if (n == rounds_)
		fail("the innocent process makes no progress");
	rounds_ = n;
}

/* ------------------------------------------------------------- mappings -- */

std::vector<Mapping> ring_mappings()
{
	std::vector<Mapping> all;
	FILE *maps = fopen("/proc/self/maps", "r");
	char line[1024];

	require(maps, "/proc/self/maps");
	while (fgets(line, sizeof(line), maps)) {
		unsigned long long start, end, offset;
		char perms[8];

		if (!strstr(line, "uverbs"))
			continue;
		if (sscanf(line, "%llx-%llx %7s %llx", &start, &end, perms, &offset) == 4)
			all.push_back({reinterpret_cast<uint8_t *>(start), static_cast<size_t>(end - start), offset});
	}
	fclose(maps);
	return all;
}

/* ------------------------------------------------------------ resources -- */

std::map<std::string, int> resources(const std::string &device)
{
	std::map<std::string, int> counts;
	FILE *pipe = popen(("rdma resource show " + device + " 2>/dev/null").c_str(), "r");
	char line[512];

	if (!pipe)
		return counts;
	/* 0: herald0: pd 1 cq 1 qp 1 cm_id 0 mr 0 ctx 0 srq 0 */
	while (fgets(line, sizeof(line), pipe)) {
		std::istringstream words(line);
		std::string word;
		int n;

		words >> word >> word;
		while (words >> word >> n)
			counts[word] = n;
	}
	pclose(pipe);
	return counts;
}

void expect_resources(const std::string &device, const std::map<std::string, int> &before)
{
	auto end = Clock::now() + patience();
	auto now = resources(device);

	while (now != before && Clock::now() < end) {
		std::this_thread::yield();
		now = resources(device);
	}
	EXPECT_EQ(now, before) << "objects were left behind";
}

} // namespace conformance
