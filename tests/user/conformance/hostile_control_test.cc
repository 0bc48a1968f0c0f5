/* SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB */
/*
 * Garbage for the control file (docs/events.md), on a device of the test's own: what is not understood is refused, what is
 * understood by accident happens, and the kernel stays silent (the lane looks at its log).
 */
#include "control.h"
#include "process.h"

#include <fcntl.h>
#include <sys/syscall.h>
#include <unistd.h>

using namespace conformance;

class HostileControl : public ::testing::Test {
protected:
	TempLink link;
	Device dev;
	Pd pd = make_pd(dev);
	int fd = -1;

	void SetUp() override
	{
		if (!CqControl::available(dev))
			GTEST_SKIP() << "this device has no control file";
		fd = open((control_dir(dev) + "/control").c_str(), O_WRONLY | O_CLOEXEC);
		require(fd >= 0, "control");
	}
	~HostileControl() override
	{
		if (fd >= 0)
			close(fd);
	}

	/* 0 or an errno */
	int put(const std::string &line) const
	{
		const ssize_t n = write(fd, line.data(), line.size());

		if (n < 0)
			return errno;
		EXPECT_EQ(static_cast<size_t>(n), line.size()) << "taken in part";
		return 0;
	}
};

TEST_F(HostileControl, NothingOfThis)
{
	Pair p(dev, pd);
	const std::string fatal = "provoke qp-fatal " + std::to_string(p.a.num());
	const std::vector<std::string> nonsense = {
		" ",
		"\n",
		std::string(1, '\0'),
		std::string(63, '\0'),
		fatal + std::string(1, '\0'),
		fatal + std::string("\0 1", 3),
		std::string("\0", 1) + fatal,
		fatal + "\n" + fatal,
		std::string(127, 'x'),
		std::string(128, 'x'),
		std::string(100000, ' '),
		fatal + std::string(128, ' '),
		"provoke\tqp-fatal " + std::to_string(p.a.num()),
		"provoke qp-fatal 0x" + std::to_string(p.a.num()),
		"provoke qp-fatal 99999999999999999999999999",
		"hold",
		"hold -1",
		"hold 4294967296",
		"release 1 18446744073709551616",
		"\xff\xfe\xfd",
		"%s%n%p",
		"fault",
		"fault ",
		"fault\nmessage lose",
		"fault message lose nth 18446744073709551617",
		"fault message lose nth 0x1",
		"fault message lose " + std::string(100, 'x'),
		"fault verb post-send 1 -1",
		"fault verb create-qp 1 25", /* ENOTTY and EPROTONOSUPPORT: no such command */
		"fault verb create-qp 1 93",
		"fault verb \xff 1 EIO",
		"fault wr " + std::to_string(p.a.num()) + " 1 rem-access-err" + std::string(1, 0),
		"fault wr " + std::to_string(p.a.num()) + " 1 rem-access-err\tx",
	};

	for (size_t i = 0; i < nonsense.size(); i++)
		EXPECT_EQ(put(nonsense[i]), EINVAL) << i;
	EXPECT_EQ(syscall(SYS_write, fd, 64ul, 10ul), -1);
	EXPECT_EQ(errno, EFAULT);
	expect_no_async(dev, Millis(50));
	EXPECT_EQ(state_of(p.a), IBV_QPS_RTS);
	/* and it still works */
	EXPECT_EQ(put(fatal + " \n"), 0);
	expect_async(dev, IBV_EVENT_QP_FATAL, p.a.qp.get());
}

/* The same for faults: what is taken may break what follows, and all is well once it is cleared. */
TEST_F(HostileControl, RandomFaults)
{
	static const char *const words[] = {
		"message",
		"rnr",
		"verb",
		"wr",
		"recv",
		"clear",
		"all",
		"lose",
		"delay",
		"duplicate",
		"reorder",
		"corrupt",
		"nth",
		"every",
		"permille",
		"times",
		"seed",
		"qpn",
		"usec",
		"1",
		"2",
		"1000",
		"-1",
		"0",
		"4294967296",
		"EIO",
		"ENOMEM",
		"77",
		"create-qp",
		"post-send",
		"post-srq-recv",
		"req-notify",
		"modify-qp",
		"",
		"general-err",
		"loc-prot-err",
		"rem-access-err",
		"retry-exc-err",
		"rem-op-err",
		"loc-len-err",
		"wr-flush-err",
	};
	Random rnd(2);
	int taken = 0;

	for (int round = 0; round < 20; round++) {
		Pair p(dev, pd);

		for (int i = 0; i < 1000 / slowness(); i++) {
			std::string line = "fault";

			for (uint64_t n = rnd.below(8); n; n--) {
				line += rnd.below(5) ? std::string(" ") + words[rnd.below(std::size(words))]
						     : " " + std::to_string(p.a.num());
			}
			for (uint64_t n = rnd.below(20) ? 0 : rnd.below(5); n; n--)
				line[rnd.below(line.size())] = static_cast<char>(rnd.next());
			taken += put(line) == 0;
		}
		/* what the faults allow of this */
		for (int i = 0; i < 20; i++) {
			(void)try_recv(p.b, {p.b.mem.sge(0, 64)}, 1);
			ibv_send_wr *bad;
			Send s(i % 2 ? IBV_WR_SEND : IBV_WR_RDMA_WRITE, 1);
			s.from(p.a.mem, 0, 8).to(p.b.mem);
			s.wr.sg_list = s.sges.data();
			s.wr.num_sge = 1;
			(void)ibv_post_send(p.a, &s.wr, &bad);
			(void)ibv_req_notify_cq(p.a.scq, 0);
		}
		EXPECT_EQ(put("fault clear"), 0);
		while (next_async(dev, Millis(0)))
			;
	}
	EXPECT_GT(taken, 0);
	EXPECT_TRUE(all_rows(dev, "faults").empty());
	Pair q(dev, pd);
	Send(IBV_WR_RDMA_WRITE, 1).from(q.a.mem, 0, 8).to(q.b.mem).post(q.a);
	expect_ok(q.a.scq, 1);
}

/* Words that it knows, numbers that it may know, and dirt, in any order. */
TEST_F(HostileControl, RandomLines)
{
	static const char *const words[] = {
		"provoke",
		"qp-fatal",
		"cq-err",
		"srq-err",
		"comm-est",
		"sq-drained",
		"port-err",
		"port-active",
		"pkey-change",
		"srq-limit-reached",
		"qp-last-wqe-reached",
		"device-speed-change",
		"wq-fatal",
		"gid-change",
		"hold",
		"release",
		"release-before-arm",
		"reorder",
		"resume",
		"event",
		"",
		"\n",
		"-",
		"4294967295",
		"1",
		"2",
		"3",
	};
	Srq srq = make_srq(pd, 8);
	Pair p(dev, pd);
	Random rnd(1);
	int taken = 0;

	for (int i = 0; i < 20000 / slowness(); i++) {
		std::string line = rnd.below(3) ? "provoke" : "";

		for (uint64_t n = rnd.below(4); n; n--)
			line += (line.empty() ? "" : " ") + std::string(words[rnd.below(std::size(words))]);
		if (rnd.below(3) == 0)
			line += " " + std::to_string(rnd.below(2) ? p.a.num() : rnd.below(64));
		for (uint64_t n = rnd.below(20) ? 0 : rnd.below(5); n && !line.empty(); n--)
			line[rnd.below(line.size())] = static_cast<char>(rnd.next());
		if (line.empty())
			continue;
		taken += put(line) == 0;
		while (next_async(dev, Millis(0)))
			;
	}
	EXPECT_GT(taken, 0);
	/* whatever was done to it, a new pair is as new */
	provoke(dev, "port-active");
	Pair q(dev, pd);
	Send(IBV_WR_RDMA_WRITE, 1).from(q.a.mem, 0, 8).to(q.b.mem).post(q.a);
	expect_ok(q.a.scq, 1);
}
