/* SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB */
/* CASES 68: message sizes, from nothing to the largest; every byte compared, and those around. */
#include "pair.h"

#include <fstream>
#include <string>

#include <sys/mman.h>
#include <unistd.h>

using namespace conformance;

namespace {

constexpr size_t kLargest = 64u << 20;
constexpr size_t kGuard = 64;

/* 0, 1, around each power of two and around each MTU's multiples. */
std::vector<size_t> sizes(size_t largest)
{
	std::vector<size_t> s = {0, 1, 2, 3};

	for (size_t p = 4; p <= largest; p *= 2) {
		/* beyond a few MiB each costs time, and only the pieces' ends are new */
		if (p > (4u << 20) && p != largest)
			continue;
		s.push_back(p - 1);
		s.push_back(p);
		if (p < largest)
			s.push_back(p + 1);
	}
	for (size_t k : {3, 16, 17})
		s.push_back(k * 1024 + 7);
	return s;
}

} // namespace

class SizesTest : public RcTest {
protected:
	void SetUp() override
	{
		src.emplace(pd, kLargest + 2 * kGuard);
		dst.emplace(pd, kLargest + 2 * kGuard);
		src->fill(1);
	}

	/* The destination is clean, then has the message, and nothing beside it. */
	void prepare(size_t len) { memset(dst->data(), 0xee, len + 2 * kGuard); }
	void compare(const Region &from, const Region &to, size_t len, size_t shift)
	{
		EXPECT_EQ(differs(from.data() + shift, to.data() + kGuard, len), -1) << len;
		EXPECT_TRUE(all_bytes(to.data(), kGuard, 0xee)) << len;
		EXPECT_TRUE(all_bytes(to.data() + kGuard + len, kGuard, 0xee)) << len;
	}

	std::optional<Region> src, dst;
};

TEST_F(SizesTest, Write)
{
	Pair p = make_pair();

	for (size_t len : sizes(kLargest)) {
		prepare(len);
		Send(IBV_WR_RDMA_WRITE).from(*src, len % 13, len).to(*dst, kGuard).post(p.a);
		expect_ok(p.a.scq, 1);
		compare(*src, *dst, len, len % 13);
	}
}

TEST_F(SizesTest, Read)
{
	Pair p = make_pair();

	for (size_t len : sizes(kLargest)) {
		prepare(len);
		Send(IBV_WR_RDMA_READ).from(*dst, kGuard, len).to(*src, len % 13).post(p.a);
		expect_ok(p.a.scq, 1);
		compare(*src, *dst, len, len % 13);
	}
}

TEST_F(SizesTest, Send)
{
	Pair p = make_pair();

	for (size_t len : sizes(kLargest)) {
		prepare(len);
		recv(p.b, *dst, kGuard, len, 7);
		Send().from(*src, len % 13, len).post(p.a);
		expect_ok(p.a.scq, 1);
		EXPECT_EQ(expect_ok(p.b.rcq, 7).byte_len, len);
		compare(*src, *dst, len, len % 13);
	}
}

TEST_F(SizesTest, UcSendAndWrite)
{
	QpOptions o;

	o.type = IBV_QPT_UC;
	Pair p = make_pair(o);
	for (size_t len : sizes(1u << 20)) {
		prepare(len);
		recv(p.b, *dst, kGuard, len, 7);
		Send().from(*src, len % 13, len).post(p.a);
		expect_ok(p.a.scq, 1);
		EXPECT_EQ(expect_ok(p.b.rcq, 7).byte_len, len);
		compare(*src, *dst, len, len % 13);
		prepare(len);
		Send(IBV_WR_RDMA_WRITE, 2).from(*src, len % 11, len).to(*dst, kGuard).post(p.a);
		expect_ok(p.a.scq, 2);
		compare(*src, *dst, len, len % 11);
	}
}

/* Many SGEs over a long message, at uneven places. */
TEST_F(SizesTest, LongMessagesInManyPieces)
{
	Pair p = make_pair();
	const uint32_t pieces[4] = {1000001, 65537, 3, 2000003};
	size_t total = 0;

	for (uint32_t n : pieces)
		total += n;
	prepare(total);
	class Send s(IBV_WR_RDMA_WRITE);
	size_t off = 0;
	for (uint32_t n : pieces) {
		s.from(*src, off, n);
		off += n;
	}
	s.to(*dst, kGuard).post(p.a);
	expect_ok(p.a.scq, 1);
	compare(*src, *dst, total, 0);
}

/* ------------------------------------------------------------------ huge -- */

namespace {

/* A large range of addresses with few pages under it: page n is page n % period of a file. */
class Mirror {
public:
	Mirror(ibv_pd *pd, size_t size, size_t period) : size_(size), period_(period)
	{
		int fd = memfd_create("mirror", 0);

		require(fd >= 0 && ftruncate(fd, period) == 0, "memfd");
		base_ = static_cast<uint8_t *>(mmap(nullptr, size, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0));
		require(base_ != MAP_FAILED, "mmap");
		for (size_t off = 0; off < size; off += period) {
			void *p = mmap(base_ + off, std::min(period, size - off), PROT_READ | PROT_WRITE,
				       MAP_SHARED | MAP_FIXED, fd, 0);
			require(p != MAP_FAILED, "mmap");
		}
		close(fd);
		mr = Mr(ibv_reg_mr(pd, base_, size, kAllAccess));
		if (!mr)
			munmap(base_, size);
		require(mr, "ibv_reg_mr");
	}
	~Mirror()
	{
		mr.reset();
		munmap(base_, size_);
	}
	Mirror(const Mirror &) = delete;

	uint8_t *data() { return base_; }
	uint64_t addr() { return reinterpret_cast<uintptr_t>(base_); }
	size_t period() const { return period_; }

private:
	uint8_t *base_;
	size_t size_, period_;

public:
	Mr mr;
};

} // namespace

/* A process in a UML kernel has each page mapped on its own by the host, which allows some 65,000 mappings. */
static bool in_uml()
{
	std::ifstream cpuinfo("/proc/cpuinfo");
	std::string line;

	while (std::getline(cpuinfo, line)) {
		if (line.find("User Mode Linux") != std::string::npos)
			return true;
	}
	return false;
}

class HugeTest : public RcTest {
protected:
	/* After a copy of all of src: a place of dst's file holds what the last write to it brought. */
	void compare(Mirror &src, Mirror &dst, size_t size)
	{
		size_t last = (size - 1) / dst.period() * dst.period();

		for (size_t off = 0; off < dst.period(); off += 4096) {
			size_t from = last + off < size ? last + off : last + off - dst.period();
			ASSERT_EQ(differs(src.data() + from, dst.data() + off, 4096), -1) << "at " << from;
		}
	}
	void fill(Mirror &m)
	{
		for (size_t i = 0; i < m.period(); i += 8) {
			uint64_t v = i * 0x9e3779b97f4a7c15ull;
			memcpy(m.data() + i, &v, 8);
		}
	}
	void run(size_t size)
	{
		Mirror src(pd, size, 12u << 20), dst(pd, size, 8u << 20);
		Pair p = make_pair();

		fill(src);
		auto len = static_cast<uint32_t>(size);
		Send(IBV_WR_RDMA_WRITE, 1).sge({src.addr(), len, src.mr->lkey}).to(dst.addr(), dst.mr->rkey).post(p.a);
		expect_ok(p.a.scq, 1);
		compare(src, dst, size);
		memset(dst.data(), 0, dst.period());
		Send(IBV_WR_RDMA_READ, 2).sge({dst.addr(), len, dst.mr->lkey}).to(src.addr(), src.mr->rkey).post(p.a);
		expect_ok(p.a.scq, 2);
		compare(src, dst, size);
		memset(dst.data(), 0, dst.period());
		require_ok(try_recv(p.b, {{dst.addr(), len, dst.mr->lkey}}, 3), "ibv_post_recv");
		Send(IBV_WR_SEND, 4).sge({src.addr(), len, src.mr->lkey}).post(p.a);
		expect_ok(p.a.scq, 4);
		EXPECT_EQ(expect_ok(p.b.rcq, 3).byte_len, len);
		compare(src, dst, size);
	}
};

/* At least 1 GiB is promised. */
TEST_F(HugeTest, OneGibibyte)
{
	if (in_uml())
		GTEST_SKIP() << "a process in UML cannot map that much";
	ASSERT_GE(dev.port.max_msg_sz, 1u << 30);
	run(1u << 30);
}

/*
 * SGEs whose lengths add up beyond the limit, and beyond 32 bits: no wrap. Either check may come first, that of the
 * length or that of the memory (which is shorter than it says).
 */
TEST_F(HugeTest, MessageOverTheLimit)
{
	struct {
		uint32_t a, b, c;
	} rows[] = {{1u << 31, 1, 0}, {1u << 31, 1u << 31, 0}, {1u << 31, 1u << 31, 64}, {~0u, ~0u, 0}, {~0u, 1, 64}};

	for (auto &r : rows) {
		Pair p = make_pair();
		p.b.mem.fill(3);
		std::vector<uint8_t> before(p.b.mem.data(), p.b.mem.data() + p.b.mem.size());
		Send s(IBV_WR_RDMA_WRITE);
		for (uint32_t len : {r.a, r.b, r.c}) {
			if (len)
				s.sge({p.a.mem.addr(), len, p.a.mem.mr->lkey});
		}
		int rc = s.to(p.b.mem).try_post(p.a);
		if (rc) {
			EXPECT_EQ(rc, EINVAL);
			continue;
		}
		ibv_wc wc = poll_one(p.a.scq);
		EXPECT_TRUE(wc.status == IBV_WC_LOC_LEN_ERR || wc.status == IBV_WC_LOC_PROT_ERR)
			<< ibv_wc_status_str(wc.status);
		EXPECT_EQ(state_of(p.a), IBV_QPS_ERR);
		EXPECT_EQ(differs(before.data(), p.b.mem.data(), before.size()), -1) << "something was written";
	}
}
