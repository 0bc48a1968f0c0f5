/* SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB */
/*
 * A process that writes garbage into everything it shares with the kernel, while the device runs. Its own objects may
 * fail, and it may crash; another process must not notice, the kernel must stay silent (the lane looks at its log), and
 * nothing may be left when it is gone.
 */
#include "process.h"

#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

using namespace conformance;

namespace {

/* clang-format off */
constexpr uint64_t kNasty[] = {0, 1, ~0ull, 0x80000000, 0xffffffff, 0x7fffffff, 0x8000000000000000, 0xffffffff00000000,
			       64, 4096, 0x0101010101010101};
/* clang-format on */

uint64_t nasty(Random &rnd)
{
	uint64_t n = rnd.below(std::size(kNasty) * 2);

	return n < std::size(kNasty) ? kNasty[n] : rnd.next();
}

/* One aligned word of 1, 2, 4 or 8 bytes somewhere in the mapping. */
void scribble(const Mapping &m, Random &rnd, size_t limit)
{
	size_t width = 1u << rnd.below(4);
	size_t at = rnd.below(std::min(m.size, limit)) / width * width;
	uint64_t value = nasty(rnd);

	memcpy(m.start + at, &value, width);
}

/* Everything that can be in use: RC, SRQ, UD, windows; with work in every queue. */
struct Everything {
	Device dev;
	Pd pd = make_pd(dev);
	Srq srq = make_srq(pd, 16, 4);
	QpOptions small()
	{
		QpOptions o;

		o.send_wr = o.recv_wr = 16;
		o.cq_depth = 32;
		return o;
	}
	QpOptions shared()
	{
		QpOptions o = small();

		o.srq = srq;
		return o;
	}
	static Path quick()
	{
		Path path;

		path.timeout = 10;
		path.retry_cnt = path.rnr_retry = 1;
		return path;
	}
	Pair rc{dev, pd, small(), quick()};
	Pair on_srq{dev, pd, small(), shared(), quick()};
	UdEnd ud{dev, pd, small()};

	/* Errors do not matter here. */
	void traffic(Random &rnd)
	{
		ibv_wc wc[4];

		for (Pair *p : {&rc, &on_srq}) {
			uint32_t len = rnd.below(3000);

			if (p == &on_srq)
				try_srq_recv(srq, {p->b.mem.sge(0, 4096)}, 1);
			else
				quietly_recv(p->b, p->b.mem.sge(0, 4096));
			quietly(Send(IBV_WR_SEND).from(p->a.mem, 0, len), p->a);
			quietly(Send(IBV_WR_RDMA_WRITE).from(p->a.mem, 0, len).to(p->b.mem), p->a);
			quietly(Send(IBV_WR_RDMA_READ).from(p->a.mem, 0, len).to(p->b.mem), p->a);
			for (End *e : {&p->a, &p->b}) {
				ibv_poll_cq(e->scq, 4, wc);
				ibv_poll_cq(e->rcq, 4, wc);
				ibv_req_notify_cq(e->rcq, rnd.below(2));
			}
		}
		quietly_recv(ud, ud.mem.sge(0, 4096));
		quietly(Send().from(ud.mem, 0, 64).ud(ud.self, ud.num(), ud.qkey), ud);
		ibv_poll_cq(ud.scq, 4, wc);
		ibv_poll_cq(ud.rcq, 4, wc);
	}
	static void quietly(Send &s, ibv_qp *qp)
	{
		ibv_send_wr *bad;

		s.wr.sg_list = s.sges.data();
		s.wr.num_sge = static_cast<int>(s.sges.size());
		ibv_post_send(qp, &s.wr, &bad);
	}
	static void quietly_recv(ibv_qp *qp, ibv_sge sge)
	{
		ibv_recv_wr wr{}, *bad;

		wr.sg_list = &sge;
		wr.num_sge = 1;
		ibv_post_recv(qp, &wr, &bad);
	}
};

/* The rings of this process; a process that has none proves nothing, and says so by its status. */
constexpr int kNoRings = 99;

std::vector<Mapping> rings()
{
	auto maps = ring_mappings();

	if (maps.empty())
		_exit(kNoRings);
	return maps;
}

/* A hostile process has no duties: whatever becomes of it, it leaves at once, without tidying up. */
template <class F> int hostile(F body)
{
	freopen("/dev/null", "w", stderr);
	freopen("/dev/null", "w", stdout);
	try {
		body();
	} catch (const std::exception &) {
	}
	_exit(0);
}

} // namespace

class HostileTest : public ::testing::Test {
protected:
	/*
	 * So many children, or half of them but in the long form, with one seed each; the victim is well after each of
	 * them, and they leave nothing.
	 */
	template <class F> void run(int children, Millis each, F body)
	{
		if (!long_form())
			children /= 2;

		std::string name = Device().name;
		Victim victim;
		auto before = resources(name);

		for (int seed = 1; seed <= children; seed++) {
			SCOPED_TRACE("seed " + std::to_string(seed));
			Child child([&](int, int) { return hostile([&] { body(seed, each); }); });
			int status = child.wait(each * 5);

			EXPECT_NE(status, kNoRings) << "there were no rings to spoil";
			if (status < 0) {
				/* its own library may well loop over what it reads */
				child.kill(SIGKILL);
				EXPECT_GE(child.wait(), 0) << "it cannot be killed";
			}
			victim.check();
		}
		if (!before.empty())
			expect_resources(name, before);
	}
};

/* Garbage into every page, all the time, from a second thread. */
TEST_F(HostileTest, GarbageWhileTrafficRuns)
{
	run(6, Millis(1000), [](int seed, Millis each) {
		Everything all;
		auto maps = rings();
		Random rnd(seed);
		auto end = Clock::now() + each;

		auto scribbler = std::jthread([maps, seed](std::stop_token stop) {
			Random own(seed + 1000);

			while (!stop.stop_requested()) {
				for (auto &m : maps) {
					/* the control blocks at the start more often than the slots */
					scribble(m, own, own.below(2) ? 128 : m.size);
				}
			}
		});
		while (Clock::now() < end)
			all.traffic(rnd);
		_exit(0);
	});
}

/* Whole pages of random bytes at once. */
TEST_F(HostileTest, PagesOfNoise)
{
	run(6, Millis(500), [](int seed, Millis each) {
		Everything all;
		auto maps = rings();
		Random rnd(seed);
		auto end = Clock::now() + each;

		while (Clock::now() < end) {
			for (auto &m : maps) {
				for (size_t i = 0; i + 8 <= m.size; i += 8) {
					uint64_t v = rnd.next();
					memcpy(m.start + i, &v, 8);
				}
			}
			all.traffic(rnd);
		}
		_exit(0);
	});
}

/*
 * Work requests that wait in the send queue (SQD), spoiled one or a few words at a time, and then let go: the rest of
 * each is valid, so the kernel gets as far into it as can be. Receives the same way.
 */
TEST_F(HostileTest, SpoiledWorkRequests)
{
	run(8, Millis(2000), [](int seed, Millis each) {
		Random rnd(seed);
		auto end = Clock::now() + each;

		while (Clock::now() < end) {
			Everything all;
			auto maps = rings();

			for (Pair *p : {&all.rc, &all.on_srq})
				modify(p->a, IBV_QPS_SQD);
			modify(all.ud, IBV_QPS_SQD);
			for (int i = 0; i < 3; i++)
				all.traffic(rnd);
			for (uint64_t n = 1 + rnd.below(3); n; n--) {
				auto &m = maps[rnd.below(maps.size())];

				scribble(m, rnd, 1024);
			}
			for (Pair *p : {&all.rc, &all.on_srq})
				try_modify(p->a, state_attr(IBV_QPS_RTS));
			try_modify(all.ud, state_attr(IBV_QPS_RTS));
			for (int i = 0; i < 3; i++)
				all.traffic(rnd);
			/* receives in ERR are flushed from the ring: spoil those, too */
			scribble(maps[rnd.below(maps.size())], rnd, 1024);
			try_modify(all.rc.b, state_attr(IBV_QPS_ERR));
			try_modify(all.on_srq.b, state_attr(IBV_QPS_ERR));
			all.traffic(rnd);
		}
	});
}

/* Control blocks alone: impossible indices, flags and arm words. */
TEST_F(HostileTest, SpoiledControlBlocks)
{
	run(6, Millis(1000), [](int seed, Millis each) {
		Random rnd(seed);
		auto end = Clock::now() + each;

		while (Clock::now() < end) {
			Everything all;
			auto maps = rings();

			all.traffic(rnd);
			for (auto &m : maps) {
				uint64_t value = nasty(rnd);
				memcpy(m.start + rnd.below(16) * 8, &value, 8);
			}
			for (int i = 0; i < 4; i++)
				all.traffic(rnd);
			ibv_resize_cq(all.rc.a.own_send_cq, 1 + static_cast<int>(rnd.below(500)));
			try_modify(all.rc.a, state_attr(IBV_QPS_ERR));
			all.traffic(rnd);
			try_modify(all.rc.a, state_attr(IBV_QPS_RESET));
		}
	});
}

/* Killed in the middle of it. */
TEST_F(HostileTest, KilledInTheMiddle)
{
	std::string name = Device().name;
	Victim victim;
	auto before = resources(name);
	Random rnd(99);

	for (int seed = 1; seed <= 10; seed++) {
		Child child([&](int, int out) {
			return hostile([&] {
				Everything all;
				auto maps = rings();
				Random own(seed);

				Child::put(out, "!", 1);
				for (;;) {
					for (auto &m : maps)
						scribble(m, own, m.size);
					all.traffic(own);
				}
			});
		});
		char c;
		if (child.hear(&c, 1))
			usleep(rnd.below(20000));
		child.kill(SIGKILL);
		EXPECT_GE(child.wait(), 0);
		victim.check();
	}
	if (!before.empty())
		expect_resources(name, before);
}

/* ---------------------------------------------------------------- mmap -- */

class MmapTest : public RcTest {
protected:
	static void *map(int fd, size_t size, int prot, uint64_t offset)
	{
		return mmap(nullptr, size, prot, MAP_SHARED, fd, static_cast<off_t>(offset));
	}
};

/* Offsets that were never given out, and rings of another context. */
TEST_F(MmapTest, ForeignAndInventedOffsets)
{
	Pair p = make_pair();
	auto maps = ring_mappings();
	Device second;
	Random rnd(1);

	ASSERT_FALSE(maps.empty());
	for (auto &m : maps)
		EXPECT_EQ(map(second.ctx->cmd_fd, m.size, PROT_READ | PROT_WRITE, m.offset), MAP_FAILED) << m.offset;
	for (int i = 0; i < 2000; i++) {
		uint64_t offset = (i % 2 ? rnd.next() : rnd.below(1 << 20)) << 12 & 0x7ffffffffffff000;
		EXPECT_EQ(map(second.ctx->cmd_fd, 4096u << rnd.below(6), PROT_READ, offset), MAP_FAILED) << offset;
	}
}

/* Only whole rings: no larger, no part, no private copy. */
TEST_F(MmapTest, OnlyAsGiven)
{
	Pair p = make_pair();
	auto maps = ring_mappings();

	ASSERT_FALSE(maps.empty());
	for (auto &m : maps) {
		EXPECT_EQ(map(dev.ctx->cmd_fd, m.size + 4096, PROT_READ | PROT_WRITE, m.offset), MAP_FAILED);
		EXPECT_EQ(mmap(nullptr, m.size, PROT_READ | PROT_WRITE, MAP_PRIVATE, dev.ctx->cmd_fd,
			       static_cast<off_t>(m.offset)),
			  MAP_FAILED);
		if (m.size > 4096) {
			EXPECT_EQ(map(dev.ctx->cmd_fd, m.size - 4096, PROT_READ, m.offset), MAP_FAILED);
		}
		EXPECT_EQ(mremap(m.start, m.size, m.size + 4096, MREMAP_MAYMOVE), MAP_FAILED) << "grew";
	}
}

/* Ring memory is not inherited over fork. */
TEST_F(MmapTest, NotInherited)
{
	Pair p = make_pair();

	ASSERT_FALSE(ring_mappings().empty());
	Child child([](int, int) { return static_cast<int>(ring_mappings().size()); });
	EXPECT_EQ(child.wait(), 0);
}

/* A mapping may outlive its object, and even its context's file: the memory stays, the kernel does not use it. */
TEST_F(MmapTest, MappingOutlivesItsObject)
{
	std::vector<void *> extra;
	size_t size = 0;
	{
		Pair p = make_pair();
		for (auto &m : ring_mappings()) {
			void *again = map(dev.ctx->cmd_fd, m.size, PROT_READ | PROT_WRITE, m.offset);
			size = m.size;
			if (again != MAP_FAILED)
				extra.push_back(again);
		}
	}
	/* whatever it is now, it is no longer a ring; a fault is no crash of the kernel */
	Child child([&](int, int) { return 0; });
	EXPECT_EQ(child.wait(), 0);
	for (void *p : extra)
		munmap(p, size);
	Pair again = make_pair();
	Send(IBV_WR_RDMA_WRITE).from(again.a.mem, 0, 8).to(again.b.mem).post(again.a);
	expect_ok(again.a.scq, 1);
}
