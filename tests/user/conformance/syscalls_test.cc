/* SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB */
/*
 * Which verbs enter the kernel: polling, arming and posting receives do not, and ibv_post_send does so once, however many
 * WRs its list has. A child works, its parent traces its system calls; getppid() separates the parts.
 */
#include "pair.h"

#include <sys/ptrace.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

using namespace conformance;

namespace {

constexpr int kRounds = 20;

void next_part()
{
	syscall(SYS_getppid);
}

/* All that is traced; whoever fails in here ends with another status. */
int work()
{
	Device dev;
	Pd pd = make_pd(dev);
	Srq srq = make_srq(pd, kRounds);
	Pair p(dev, pd);
	ibv_wc wc;

	next_part(); /* 1: no system call */
	for (int i = 0; i < kRounds; i++) {
		ibv_poll_cq(p.a.scq, 1, &wc);
		ibv_req_notify_cq(p.a.scq, i % 2);
		recv(p.b, p.b.mem, 0, 64, i);
		srq_recv(srq, p.b.mem, 0, 64, i);
	}
	next_part(); /* 2: one for each ibv_post_send */
	for (int i = 0; i < kRounds; i++) {
		Send one(IBV_WR_RDMA_WRITE, 1), two(IBV_WR_SEND, 2), three(IBV_WR_RDMA_WRITE, 3);

		one.from(p.a.mem, 0, 64).to(p.b.mem);
		two.from(p.a.mem, 0, 64);
		three.from(p.a.mem, 0, 64).to(p.b.mem);
		one.wr.next = &two.wr;
		two.wr.next = &three.wr;
		one.post(p.a);
	}
	next_part(); /* 3: no system call */
	int sent = 0, received = 0;
	while (ibv_poll_cq(p.a.scq, 1, &wc) > 0)
		sent += wc.status == IBV_WC_SUCCESS;
	while (ibv_poll_cq(p.b.rcq, 1, &wc) > 0)
		received += wc.status == IBV_WC_SUCCESS;
	next_part();
	return sent == 3 * kRounds && received == kRounds ? 0 : 2;
}

[[noreturn]] void traced()
{
	int status = 1;

	try {
		if (ptrace(PTRACE_TRACEME, 0, nullptr, nullptr) == 0) {
			raise(SIGSTOP);
			status = work();
		}
	} catch (const std::exception &e) {
		fprintf(stderr, "%s\n", e.what());
	}
	_exit(status);
}

/* The numbers of the system calls of @pid, part by part; its exit status, or -1 if it did not exit. */
int trace(pid_t pid, std::vector<std::vector<long>> &parts)
{
	int status;

	while (waitpid(pid, &status, 0) == pid) {
		if (WIFEXITED(status))
			return WEXITSTATUS(status);
		if (WIFSIGNALED(status))
			return -1;

		const bool call = WSTOPSIG(status) == (SIGTRAP | 0x80);
		__ptrace_syscall_info info{};

		if (call && ptrace(PTRACE_GET_SYSCALL_INFO, pid, sizeof(info), &info) > 0 &&
		    info.op == PTRACE_SYSCALL_INFO_ENTRY) {
			if (info.entry.nr == SYS_getppid)
				parts.emplace_back();
			else if (!parts.empty())
				parts.back().push_back(long(info.entry.nr));
		}
		ptrace(PTRACE_SETOPTIONS, pid, nullptr, PTRACE_O_TRACESYSGOOD | PTRACE_O_EXITKILL);

		const int signal = call || WSTOPSIG(status) == SIGSTOP ? 0 : WSTOPSIG(status);

		ptrace(PTRACE_SYSCALL, pid, nullptr, signal);
	}
	return -1;
}

} // namespace

TEST(Syscalls, OnlyPostSendMakesOne)
{
	std::vector<std::vector<long>> parts;
	const pid_t pid = fork();

	ASSERT_GE(pid, 0);
	if (!pid)
		traced();
	ASSERT_EQ(trace(pid, parts), 0);
	ASSERT_EQ(parts.size(), 4u);
	EXPECT_EQ(parts[0], std::vector<long>()) << "poll, arm, post_recv, post_srq_recv";
	EXPECT_EQ(parts[1], std::vector<long>(kRounds, SYS_ioctl)) << "post_send";
	EXPECT_EQ(parts[2], std::vector<long>()) << "poll with completions there";
}
