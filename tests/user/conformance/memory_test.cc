/* SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB */
/* Protection domains and memory regions. */
#include "pair.h"

#include <sys/mman.h>
#include <unistd.h>

#include <set>

using namespace conformance;

class MemoryTest : public RcTest {};

TEST_F(MemoryTest, ManyPds)
{
	std::vector<Pd> pds;

	for (int i = 0; i < 256; i++)
		pds.push_back(make_pd(dev));
}

/* Keys are distinct; lkey and rkey are there. */
TEST_F(MemoryTest, KeysAreDistinct)
{
	std::vector<Region> regions;
	std::set<uint32_t> keys;

	for (int i = 0; i < 200; i++) {
		regions.emplace_back(pd, 4096);
		EXPECT_TRUE(keys.insert(regions.back().mr->lkey).second);
	}
}

/* A key is not given again at once: a stale key must be refused (keys carry a changing byte). */
TEST_F(MemoryTest, KeyOfADeadRegionIsNotReusedAtOnce)
{
	std::set<uint32_t> keys;

	for (int i = 0; i < 64; i++) {
		Region r(pd, 4096);

		EXPECT_TRUE(keys.insert(r.mr->rkey).second) << "round " << i;
	}
}

/* ibv_reg_mr(3): remote write and remote atomic want local write. */
TEST_F(MemoryTest, RemoteWriteNeedsLocalWrite)
{
	static uint8_t buffer[4096];

	for (int access : {(int)IBV_ACCESS_REMOTE_WRITE, (int)IBV_ACCESS_REMOTE_ATOMIC}) {
		errno = 0;
		Mr mr(ibv_reg_mr(pd, buffer, sizeof(buffer), access));
		EXPECT_EQ(mr.get(), nullptr) << access;
		EXPECT_EQ(errno, EINVAL) << access;
	}
}

TEST_F(MemoryTest, UnknownAccessBitsAreRefused)
{
	static uint8_t buffer[4096];

	Mr mr(ibv_reg_mr(pd, buffer, sizeof(buffer), IBV_ACCESS_LOCAL_WRITE | 1 << 15));
	EXPECT_EQ(mr.get(), nullptr);
	/* not advertised, so not taken */
	Mr odp(ibv_reg_mr(pd, buffer, sizeof(buffer), IBV_ACCESS_ON_DEMAND));
	EXPECT_EQ(odp.get(), nullptr);
}

/* Relaxed ordering is a permission, not a demand: it may be given to any device. */
TEST_F(MemoryTest, RelaxedOrderingIsTaken)
{
	Region r(pd, 4096, kAllAccess | IBV_ACCESS_RELAXED_ORDERING);
}

/* Any address, any length: regions need no alignment. */
TEST_F(MemoryTest, OddAddressesAndLengths)
{
	std::vector<uint8_t> buffer(64 * 1024);

	for (size_t off : {0, 1, 7, 4095, 4097}) {
		for (size_t len : {1, 2, 4095, 4096, 4097, 40000}) {
			Mr mr(ibv_reg_mr(pd, buffer.data() + off, len, kAllAccess));
			EXPECT_NE(mr.get(), nullptr) << off << " " << len << ": " << strerror(errno);
		}
	}
}

TEST_F(MemoryTest, MemoryThatIsNotThereIsRefused)
{
	void *hole = mmap(nullptr, 3 * 4096, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	ASSERT_NE(hole, MAP_FAILED);
	ASSERT_EQ(munmap(static_cast<uint8_t *>(hole) + 4096, 4096), 0);
	Mr mr(ibv_reg_mr(pd, hole, 3 * 4096, kAllAccess));
	EXPECT_EQ(mr.get(), nullptr);
	EXPECT_EQ(errno, EFAULT);
	munmap(hole, 4096);
	munmap(static_cast<uint8_t *>(hole) + 2 * 4096, 4096);
}

/* Write access to read-only memory: refused; read access: fine. */
TEST_F(MemoryTest, ReadOnlyMemory)
{
	void *p = mmap(nullptr, 4096, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	ASSERT_NE(p, MAP_FAILED);
	Mr writable(ibv_reg_mr(pd, p, 4096, IBV_ACCESS_LOCAL_WRITE));
	EXPECT_EQ(writable.get(), nullptr);
	Mr readable(ibv_reg_mr(pd, p, 4096, IBV_ACCESS_REMOTE_READ));
	EXPECT_NE(readable.get(), nullptr);
	readable.reset();
	munmap(p, 4096);
}

/* Length plus address overflows; length beyond max_mr_size. */
TEST_F(MemoryTest, LengthsThatOverflowAreRefused)
{
	auto *high = reinterpret_cast<void *>(~0ull - 4095);

	EXPECT_EQ(ibv_reg_mr(pd, high, 8192, kAllAccess), nullptr);
	EXPECT_EQ(ibv_reg_mr(pd, reinterpret_cast<void *>(4096), ~0ull, kAllAccess), nullptr);
	EXPECT_EQ(ibv_reg_mr(pd, reinterpret_cast<void *>(4096), ~0ull - 4096, kAllAccess), nullptr);
	if (dev.attr.max_mr_size != ~0ull) {
		EXPECT_EQ(ibv_reg_mr(pd, reinterpret_cast<void *>(4096), dev.attr.max_mr_size + 1, kAllAccess),
			  nullptr);
	}
}

/* A region whose pages are shared, as those of memfd are; the peer sees what the other mapping writes. */
TEST_F(MemoryTest, SharedPages)
{
	int fd = memfd_create("conformance", 0);

	ASSERT_GE(fd, 0);
	ASSERT_EQ(ftruncate(fd, 8192), 0);
	auto *one = static_cast<uint8_t *>(mmap(nullptr, 8192, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0));
	auto *two = static_cast<uint8_t *>(mmap(nullptr, 8192, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0));
	ASSERT_NE(one, MAP_FAILED);
	ASSERT_NE(two, MAP_FAILED);
	Mr mr(ibv_reg_mr(pd, one, 8192, kAllAccess));
	ASSERT_NE(mr.get(), nullptr);
	Pair p = make_pair();
	memset(p.a.mem.data(), 0xab, 8192);
	Send(IBV_WR_RDMA_WRITE).from(p.a.mem, 0, 8192).to(mr->addr ? (uint64_t)one : 0, mr->rkey).post(p.a);
	expect_ok(p.a.scq, 1);
	EXPECT_TRUE(all_bytes(two, 8192, 0xab));
	mr.reset();
	munmap(one, 8192);
	munmap(two, 8192);
	close(fd);
}

/* ibv_reg_mr_iova(3): addresses on the wire are the caller's. */
TEST_F(MemoryTest, Iova)
{
	Pair p = make_pair();
	Region r(pd, 8192);
	Mr mr(ibv_reg_mr_iova(pd, r.data() + 100, 4096, 0x1234500064, kAllAccess));

	ASSERT_NE(mr.get(), nullptr) << strerror(errno);
	p.a.mem.fill(1);
	Send(IBV_WR_RDMA_WRITE).from(p.a.mem, 0, 64).to(0x1234500064 + 10, mr->rkey).post(p.a);
	expect_ok(p.a.scq, 1);
	EXPECT_EQ(differs(r.data() + 110, p.a.mem.data(), 64), -1);
	/* and local ones too */
	Send(IBV_WR_RDMA_WRITE, 2).sge({0x1234500064, 64, mr->lkey}).to(p.b.mem).post(p.a);
	expect_ok(p.a.scq, 2);
	EXPECT_EQ(differs(p.b.mem.data(), r.data() + 100, 64), -1);
	Send(IBV_WR_RDMA_WRITE, 3).from(p.a.mem, 0, 64).to(r.addr(110), mr->rkey).post(p.a);
	expect_wc(p.a.scq, IBV_WC_REM_ACCESS_ERR, 3);
}

/* Zero-based: the first byte is address 0. */
TEST_F(MemoryTest, ZeroBased)
{
	Region r(pd, 8192);
	Mr mr(ibv_reg_mr(pd, r.data(), 4096, kAllAccess | IBV_ACCESS_ZERO_BASED));

	if (!mr)
		GTEST_SKIP() << "zero-based regions are refused: " << strerror(errno);
	Pair p = make_pair();
	p.a.mem.fill(2);
	Send(IBV_WR_RDMA_WRITE).from(p.a.mem, 0, 64).to(16, mr->rkey).post(p.a);
	expect_ok(p.a.scq, 1);
	EXPECT_EQ(differs(r.data() + 16, p.a.mem.data(), 64), -1);
}

/* ------------------------------------------------------------- rereg -- */

class ReregTest : public MemoryTest {
protected:
	/* Does a remote write of 8 bytes to addr/key work? */
	bool writable(uint64_t addr, uint32_t rkey, ibv_pd *target_pd)
	{
		QpOptions o;
		End a(dev, pd, o), b(dev, target_pd, o);

		to_init(a);
		to_init(b);
		to_rtr(dev, a, b.num());
		to_rtr(dev, b, a.num());
		to_rts(dev, a);
		to_rts(dev, b);
		Send(IBV_WR_RDMA_WRITE).from(a.mem, 0, 8).to(addr, rkey).post(a);
		ibv_wc wc = poll_one(a.scq);
		EXPECT_TRUE(wc.status == IBV_WC_SUCCESS || wc.status == IBV_WC_REM_ACCESS_ERR)
			<< ibv_wc_status_str(wc.status);
		return wc.status == IBV_WC_SUCCESS;
	}
};

TEST_F(ReregTest, ChangesAccess)
{
	Region r(pd, 4096, IBV_ACCESS_LOCAL_WRITE);

	EXPECT_FALSE(writable(r.addr(), r.mr->rkey, pd));
	ASSERT_EQ(ibv_rereg_mr(r.mr, IBV_REREG_MR_CHANGE_ACCESS, nullptr, nullptr, 0, kAllAccess), 0);
	EXPECT_TRUE(writable(r.addr(), r.mr->rkey, pd));
	ASSERT_EQ(ibv_rereg_mr(r.mr, IBV_REREG_MR_CHANGE_ACCESS, nullptr, nullptr, 0, IBV_ACCESS_LOCAL_WRITE), 0);
	EXPECT_FALSE(writable(r.addr(), r.mr->rkey, pd));
}

TEST_F(ReregTest, ChangesPd)
{
	Pd other = make_pd(dev);

	{
		Region r(pd, 4096);

		EXPECT_TRUE(writable(r.addr(), r.mr->rkey, pd));
		EXPECT_FALSE(writable(r.addr(), r.mr->rkey, other));
		ASSERT_EQ(ibv_rereg_mr(r.mr, IBV_REREG_MR_CHANGE_PD, other, nullptr, 0, 0), 0);
		EXPECT_FALSE(writable(r.addr(), r.mr->rkey, pd));
		EXPECT_TRUE(writable(r.addr(), r.mr->rkey, other));
		/* the PD that it left is free of it, the one it joined is in use */
		EXPECT_EQ(other.destroy(), EBUSY);
	}
	EXPECT_EQ(other.destroy(), 0);
}

TEST_F(ReregTest, ChangesTranslation)
{
	Region one(pd, 4096);
	auto *two =
		static_cast<uint8_t *>(mmap(nullptr, 8192, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0));

	ASSERT_NE(two, MAP_FAILED);
	ASSERT_EQ(ibv_rereg_mr(one.mr, IBV_REREG_MR_CHANGE_TRANSLATION, nullptr, two, 8192, 0), 0);
	EXPECT_TRUE(writable(reinterpret_cast<uintptr_t>(two) + 8184, one.mr->rkey, pd));
	EXPECT_FALSE(writable(one.addr(), one.mr->rkey, pd));
	one.mr.reset();
	munmap(two, 8192);
}

/* ibv_rereg_mr(3): IBV_REREG_MR_ERR_INPUT, the region is unchanged. */
TEST_F(ReregTest, BadInputLeavesTheRegionAsItWas)
{
	Region r(pd, 4096);

	EXPECT_NE(ibv_rereg_mr(r.mr, 0, nullptr, nullptr, 0, 0), 0);
	EXPECT_NE(ibv_rereg_mr(r.mr, 1 << 10, nullptr, nullptr, 0, 0), 0);
	EXPECT_NE(ibv_rereg_mr(r.mr, IBV_REREG_MR_CHANGE_ACCESS, nullptr, nullptr, 0, IBV_ACCESS_REMOTE_WRITE), 0);
	EXPECT_TRUE(writable(r.addr(), r.mr->rkey, pd));
}
