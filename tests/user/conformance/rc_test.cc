/* SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB */
/* What a reliable connection does when all is well. */
#include "pair.h"

#include <arpa/inet.h>

#include <thread>

using namespace conformance;

class RcOps : public RcTest {};

/* ibv_poll_cq(3): each field that a completion of this kind has. */
TEST_F(RcOps, SendAndItsCompletions)
{
	Pair p = make_pair();

	p.a.mem.fill(1);
	recv(p.b, p.b.mem, 100, 4096, 11);
	Send(IBV_WR_SEND, 12).from(p.a.mem, 50, 1000).post(p.a);
	ibv_wc s = expect_ok(p.a.scq, 12);
	ibv_wc r = expect_ok(p.b.rcq, 11);
	EXPECT_EQ(s.opcode, IBV_WC_SEND);
	EXPECT_EQ(s.qp_num, p.a.num());
	EXPECT_EQ(r.opcode, IBV_WC_RECV);
	EXPECT_EQ(r.byte_len, 1000u);
	EXPECT_EQ(r.qp_num, p.b.num());
	EXPECT_EQ(r.wc_flags, 0u);
	EXPECT_EQ(differs(p.a.mem.data() + 50, p.b.mem.data() + 100, 1000), -1);
	EXPECT_EQ(p.b.mem.data()[99], 0);
	EXPECT_EQ(p.b.mem.data()[1100], 0);
	expect_empty(p.a.rcq);
	expect_empty(p.b.scq);
}

TEST_F(RcOps, SendWithImmediate)
{
	Pair p = make_pair();

	for (uint32_t imm : {0u, 1u, 0x12345678u, 0xffffffffu}) {
		recv(p.b, p.b.mem, 0, 64, 1);
		Send(IBV_WR_SEND_WITH_IMM).from(p.a.mem, 0, 3).imm(imm).post(p.a);
		expect_ok(p.a.scq, 1);
		ibv_wc wc = expect_ok(p.b.rcq, 1);
		EXPECT_EQ(wc.opcode, IBV_WC_RECV);
		EXPECT_EQ(wc.wc_flags, (unsigned int)IBV_WC_WITH_IMM);
		EXPECT_EQ(ntohl(wc.imm_data), imm);
		EXPECT_EQ(wc.byte_len, 3u);
	}
}

TEST_F(RcOps, Write)
{
	Pair p = make_pair();

	p.a.mem.fill(2);
	Send(IBV_WR_RDMA_WRITE).from(p.a.mem, 1, 5000).to(p.b.mem, 3).post(p.a);
	ibv_wc wc = expect_ok(p.a.scq, 1);
	EXPECT_EQ(wc.opcode, IBV_WC_RDMA_WRITE);
	EXPECT_EQ(differs(p.a.mem.data() + 1, p.b.mem.data() + 3, 5000), -1);
	EXPECT_TRUE(all_bytes(p.b.mem.data(), 3, 0));
	EXPECT_EQ(p.b.mem.data()[5003], 0);
	expect_empty(p.b.rcq);
}

/* A write with immediate takes a receive WR, of any size, and leaves its memory alone. */
TEST_F(RcOps, WriteWithImmediate)
{
	Pair p = make_pair();

	p.a.mem.fill(3);
	recv(p.b, p.b.mem, 40000, 4, 20);
	Send(IBV_WR_RDMA_WRITE_WITH_IMM, 21).from(p.a.mem, 0, 3000).to(p.b.mem).imm(77).post(p.a);
	expect_ok(p.a.scq, 21);
	ibv_wc wc = expect_ok(p.b.rcq, 20);
	EXPECT_EQ(wc.opcode, IBV_WC_RECV_RDMA_WITH_IMM);
	EXPECT_EQ(wc.byte_len, 3000u);
	EXPECT_EQ(ntohl(wc.imm_data), 77u);
	EXPECT_TRUE(wc.wc_flags & IBV_WC_WITH_IMM);
	EXPECT_EQ(differs(p.a.mem.data(), p.b.mem.data(), 3000), -1);
	EXPECT_TRUE(all_bytes(p.b.mem.data() + 40000, 4, 0));
	/* a receive WR without memory will do, too */
	recv_empty(p.b, 22);
	Send(IBV_WR_RDMA_WRITE_WITH_IMM, 23).from(p.a.mem, 0, 0).to(p.b.mem).imm(78).post(p.a);
	expect_ok(p.a.scq, 23);
	EXPECT_EQ(expect_ok(p.b.rcq, 22).byte_len, 0u);
}

TEST_F(RcOps, Read)
{
	Pair p = make_pair();

	p.b.mem.fill(4);
	Send(IBV_WR_RDMA_READ).from(p.a.mem, 5, 7000).to(p.b.mem, 9).post(p.a);
	ibv_wc wc = expect_ok(p.a.scq, 1);
	EXPECT_EQ(wc.opcode, IBV_WC_RDMA_READ);
	EXPECT_EQ(differs(p.a.mem.data() + 5, p.b.mem.data() + 9, 7000), -1);
	EXPECT_TRUE(all_bytes(p.a.mem.data(), 5, 0));
	EXPECT_EQ(p.a.mem.data()[7005], 0);
}

/* IBTA 9.4.5. */
TEST_F(RcOps, CompareAndSwap)
{
	Pair p = make_pair();
	auto *target = reinterpret_cast<uint64_t *>(p.b.mem.data());
	auto *old = reinterpret_cast<uint64_t *>(p.a.mem.data());

	*target = 0x1122334455667788;
	Send(IBV_WR_ATOMIC_CMP_AND_SWP, 1).from(p.a.mem, 0, 8).to(p.b.mem).operands(5, 6).post(p.a);
	EXPECT_EQ(expect_ok(p.a.scq, 1).opcode, IBV_WC_COMP_SWAP);
	EXPECT_EQ(*old, 0x1122334455667788u);
	EXPECT_EQ(*target, 0x1122334455667788u) << "must not swap";
	Send(IBV_WR_ATOMIC_CMP_AND_SWP, 2).from(p.a.mem, 0, 8).to(p.b.mem).operands(0x1122334455667788, 42).post(p.a);
	expect_ok(p.a.scq, 2);
	EXPECT_EQ(*old, 0x1122334455667788u);
	EXPECT_EQ(*target, 42u);
}

TEST_F(RcOps, FetchAndAdd)
{
	Pair p = make_pair();
	auto *target = reinterpret_cast<uint64_t *>(p.b.mem.data() + 8);
	auto *old = reinterpret_cast<uint64_t *>(p.a.mem.data() + 16);

	*target = ~0ull;
	Send(IBV_WR_ATOMIC_FETCH_AND_ADD, 1).from(p.a.mem, 16, 8).to(p.b.mem, 8).operands(3).post(p.a);
	EXPECT_EQ(expect_ok(p.a.scq, 1).opcode, IBV_WC_FETCH_ADD);
	EXPECT_EQ(*old, ~0ull);
	EXPECT_EQ(*target, 2u) << "wraps round";
}

/* Atomics of two QPs and of this host's own CPU on one word (atomic_cap says what holds). */
TEST_F(RcOps, AtomicsAreAtomic)
{
	Pair p = make_pair(), q = make_pair();
	Region word(p.at_b.pd, 4096);
	auto *target = reinterpret_cast<uint64_t *>(word.data());
	const int n = 2000;
	auto work = [&](Pair &pair) {
		for (int i = 0; i < n; i++) {
			Send(IBV_WR_ATOMIC_FETCH_AND_ADD, i).from(pair.a.mem, 0, 8).to(word).operands(1).post(pair.a);
			expect_ok(pair.a.scq, i);
		}
	};
	auto one = worker([&] { work(p); }), two = worker([&] { work(q); });
	uint64_t own = 0;
	if (dev.attr.atomic_cap == IBV_ATOMIC_GLOB) {
		for (; own < n; own++)
			__atomic_fetch_add(target, 1, __ATOMIC_SEQ_CST);
	}
	one.join();
	two.join();
	EXPECT_EQ(*target, 2u * n + own);
}

/* Scatter and gather over uneven pieces, empty ones among them. */
TEST_F(RcOps, ScatterGather)
{
	Pair p = make_pair();

	p.a.mem.fill(5);
	std::vector<ibv_sge> into = {p.b.mem.sge(1, 7), p.b.mem.sge(1000, 0), p.b.mem.sge(2000, 4093),
				     p.b.mem.sge(10000, 5000)};
	ASSERT_EQ(try_recv(p.b, into, 1), 0);
	Send(IBV_WR_SEND, 2)
		.from(p.a.mem, 3, 4001)
		.from(p.a.mem, 20000, 0)
		.from(p.a.mem, 9001, 1)
		.from(p.a.mem, 30000, 998)
		.post(p.a);
	expect_ok(p.a.scq, 2);
	EXPECT_EQ(expect_ok(p.b.rcq, 1).byte_len, 5000u);

	std::vector<uint8_t> sent, got;
	auto add = [](std::vector<uint8_t> &v, const Region &r, size_t off, size_t len) {
		v.insert(v.end(), r.data() + off, r.data() + off + len);
	};
	add(sent, p.a.mem, 3, 4001);
	add(sent, p.a.mem, 9001, 1);
	add(sent, p.a.mem, 30000, 998);
	add(got, p.b.mem, 1, 7);
	add(got, p.b.mem, 2000, 4093);
	add(got, p.b.mem, 10000, 900);
	EXPECT_EQ(sent, got);
	EXPECT_EQ(p.b.mem.data()[10900], 0);
}

/* Messages of no bytes: no memory is looked at, not even an absurd key. */
TEST_F(RcOps, EmptyMessages)
{
	Pair p = make_pair();

	recv_empty(p.b, 1);
	Send(IBV_WR_SEND, 1).post(p.a);
	expect_ok(p.a.scq, 1);
	EXPECT_EQ(expect_ok(p.b.rcq, 1).byte_len, 0u);
	Send(IBV_WR_RDMA_WRITE, 2).to(0xdead0000, 0x12345678).post(p.a);
	expect_ok(p.a.scq, 2);
	Send(IBV_WR_RDMA_READ, 3).to(0xdead0000, 0x12345678).post(p.a);
	expect_ok(p.a.scq, 3);
	recv(p.b, p.b.mem, 0, 16, 4);
	Send(IBV_WR_SEND_WITH_IMM, 4).sge({0xdead, 0, 0x777}).imm(9).post(p.a);
	expect_ok(p.a.scq, 4);
	EXPECT_EQ(expect_ok(p.b.rcq, 4).byte_len, 0u);
}

/* A QP connected to itself. */
TEST_F(RcOps, ConnectedToItself)
{
	QpOptions o;
	End e(dev, pd, o);

	to_init(e);
	to_rtr(dev, e, e.num());
	to_rts(dev, e);
	e.mem.fill(6, 0, 1000);
	recv(e, e.mem, 2000, 1000, 1);
	Send(IBV_WR_SEND, 2).from(e.mem, 0, 1000).post(e);
	expect_ok(e.scq, 2);
	expect_ok(e.rcq, 1);
	EXPECT_EQ(differs(e.mem.data(), e.mem.data() + 2000, 1000), -1);
	Send(IBV_WR_RDMA_READ, 3).from(e.mem, 4000, 1000).to(e.mem, 2000).post(e);
	expect_ok(e.scq, 3);
	EXPECT_EQ(differs(e.mem.data(), e.mem.data() + 4000, 1000), -1);
}

/* IPv4 and IPv6 addresses alike. */
TEST_F(RcOps, BothAddressFamilies)
{
	for (Family family : {Family::v4, Family::v6}) {
		auto index = dev.find_gid(family);

		if (!index)
			continue;
		Path path;
		path.gid_index = *index;
		Pair p = make_pair({}, path);
		p.a.mem.fill(7);
		Send(IBV_WR_RDMA_WRITE).from(p.a.mem, 0, 4096).to(p.b.mem).post(p.a);
		expect_ok(p.a.scq, 1);
		EXPECT_EQ(differs(p.a.mem.data(), p.b.mem.data(), 4096), -1);
	}
}

/* Rule C13: completions of a queue come in posting order, whatever the operations. */
TEST_F(RcOps, MixedOperationsCompleteInOrder)
{
	Pair p = make_pair();

	for (int round = 0; round < 10; round++) {
		for (int i = 0; i < 12; i++)
			recv(p.b, p.b.mem, 60000, 64, i);
		for (int i = 0; i < 60; i++) {
			static const ibv_wr_opcode ops[] = {IBV_WR_RDMA_READ, IBV_WR_SEND, IBV_WR_RDMA_WRITE,
							    IBV_WR_ATOMIC_FETCH_AND_ADD, IBV_WR_RDMA_WRITE_WITH_IMM};
			ibv_wr_opcode op = ops[i % 5];
			if (op == IBV_WR_RDMA_WRITE_WITH_IMM && i >= 30)
				op = IBV_WR_RDMA_READ;
			Send(op, i).from(p.a.mem, 0, op == IBV_WR_SEND && i >= 30 ? 0 : 8).to(p.b.mem).post(p.a);
			if (op == IBV_WR_SEND && i >= 30)
				recv_empty(p.b, 100);
		}
		auto wcs = poll_n(p.a.scq, 60);
		for (int i = 0; i < 60; i++) {
			EXPECT_EQ(wcs[i].wr_id, (uint64_t)i);
			EXPECT_EQ(wcs[i].status, IBV_WC_SUCCESS);
		}
		poll_n(p.b.rcq, 18);
	}
}

/* CASES 63, IBTA 10.8.3.2: a fenced send waits for the reads before it. */
TEST_F(RcOps, FencedSendCarriesWhatTheReadBrought)
{
	Pair p = make_pair();

	for (int i = 0; i < 50; i++) {
		p.b.mem.fill(100 + i, 0, 30000);
		p.a.mem.clear();
		recv(p.b, p.b.mem, 32768, 32768, 1);
		Send(IBV_WR_RDMA_READ, 2).from(p.a.mem, 0, 30000).to(p.b.mem).unsignaled().post(p.a);
		Send(IBV_WR_SEND, 3).from(p.a.mem, 0, 30000).add_flags(IBV_SEND_FENCE).post(p.a);
		expect_ok(p.a.scq, 3);
		expect_ok(p.b.rcq, 1);
		EXPECT_EQ(differs(p.b.mem.data(), p.b.mem.data() + 32768, 30000), -1) << i;
	}
}

/* IBTA 9.5, 9.6: a write's data is there when a later send has arrived. */
TEST_F(RcOps, WriteIsVisibleBeforeTheSendThatFollows)
{
	Pair p = make_pair();

	for (int i = 0; i < 200; i++) {
		p.a.mem.data()[0] = static_cast<uint8_t>(i);
		recv_empty(p.b, 1);
		Send(IBV_WR_RDMA_WRITE).from(p.a.mem, 0, 1).to(p.b.mem).unsignaled().post(p.a);
		Send(IBV_WR_SEND, 2).post(p.a);
		expect_ok(p.b.rcq, 1);
		EXPECT_EQ(p.b.mem.data()[0], static_cast<uint8_t>(i));
		expect_ok(p.a.scq, 2);
	}
}

/* Both directions at once, from two threads. */
TEST_F(RcOps, BothDirectionsAtOnce)
{
	Pair p = make_pair();
	auto run = [](End &me, End &other, int id) {
		for (int i = 0; i < 500; i++) {
			Send(IBV_WR_RDMA_WRITE, i)
				.from(me.mem, id * 1000, 900)
				.to(other.mem, 10000 + id * 1000)
				.post(me);
			expect_ok(me.scq, i);
		}
	};
	p.a.mem.fill(8, 0, 10000);
	p.b.mem.fill(9, 0, 10000);
	auto t = worker([&] { run(p.a, p.b, 1); });
	run(p.b, p.a, 2);
	t.join();
	EXPECT_EQ(differs(p.a.mem.data() + 1000, p.b.mem.data() + 11000, 900), -1);
	EXPECT_EQ(differs(p.b.mem.data() + 2000, p.a.mem.data() + 12000, 900), -1);
}

/* A receiver that is late: RNR NAK, the sender waits and tries again (rnr_retry 7: for ever). */
TEST_F(RcOps, LateReceiver)
{
	Pair p = make_pair();

	p.a.mem.fill(10);
	for (int i = 0; i < 20; i++) {
		Send(IBV_WR_SEND, i).from(p.a.mem, 0, 512).post(p.a);
		expect_empty(p.a.scq);
		recv(p.b, p.b.mem, 0, 512, 100 + i);
		expect_ok(p.a.scq, i);
		expect_ok(p.b.rcq, 100 + i);
	}
	EXPECT_EQ(differs(p.a.mem.data(), p.b.mem.data(), 512), -1);
}

/* CASES 68: every path MTU that the port can do. */
TEST_F(RcOps, EveryPathMtu)
{
	for (int mtu = IBV_MTU_256; mtu <= dev.port.active_mtu; mtu++) {
		Path path;
		path.mtu = static_cast<ibv_mtu>(mtu);
		Pair p = make_pair({}, path);
		int bytes = 128 << mtu;
		for (int len : {bytes - 1, bytes, bytes + 1, 3 * bytes}) {
			p.a.mem.fill(mtu * 100 + len);
			p.b.mem.clear();
			Send(IBV_WR_RDMA_WRITE).from(p.a.mem, 0, len).to(p.b.mem).post(p.a);
			expect_ok(p.a.scq, 1);
			EXPECT_EQ(differs(p.a.mem.data(), p.b.mem.data(), len), -1) << mtu << " " << len;
			EXPECT_EQ(p.b.mem.data()[len], 0);
		}
	}
}

/* CASES 75, in small. */
TEST_F(RcOps, ManyConnections)
{
	QpOptions o;
	std::vector<Pair> pairs;

	o.send_wr = o.recv_wr = 4;
	o.sge = 1;
	o.cq_depth = 8;
	o.memory = 4096;
	for (int i = 0; i < 200; i++)
		pairs.push_back(make_pair(o));
	for (auto &p : pairs) {
		p.a.mem.fill(11, 0, 64);
		recv(p.b, p.b.mem, 0, 64, 1);
		Send().from(p.a.mem, 0, 64).post(p.a);
	}
	for (auto &p : pairs) {
		expect_ok(p.a.scq, 1);
		expect_ok(p.b.rcq, 1);
		EXPECT_EQ(differs(p.a.mem.data(), p.b.mem.data(), 64), -1);
	}
}
