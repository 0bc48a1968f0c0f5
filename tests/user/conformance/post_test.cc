/* SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB */
/* Posting: what is refused at once, what bad_wr says, when a queue is full and when it has room again. */
#include "pair.h"

using namespace conformance;

class PostTest : public RcTest {
protected:
	/* Post to a send queue until it is full; how many went in. */
	int fill_send(End &end, const Region &remote, unsigned int flags)
	{
		int n = 0, rc;

		while (!(rc = Send(IBV_WR_RDMA_WRITE, n).from(end.mem, 0, 1).to(remote).flags(flags).try_post(end)))
			n++;
		EXPECT_EQ(rc, ENOMEM);
		return n;
	}
};

/* IBTA 10.3.1: no sends before RTS, no receives in RESET. */
TEST_F(PostTest, StatesThatRefuse)
{
	QpOptions o;
	End e(dev, pd, o), peer(dev, pd, o);

	EXPECT_EQ(Send().from(e.mem, 0, 1).try_post(e), EINVAL);
	EXPECT_EQ(try_recv(e, {e.mem.sge(0, 8)}, 1), EINVAL);
	to_init(e);
	EXPECT_EQ(Send().from(e.mem, 0, 1).try_post(e), EINVAL);
	EXPECT_EQ(try_recv(e, {e.mem.sge(0, 8)}, 1), 0);
	to_rtr(dev, e, peer.num());
	EXPECT_EQ(Send().from(e.mem, 0, 1).try_post(e), EINVAL);
	EXPECT_EQ(try_recv(e, {e.mem.sge(0, 8)}, 2), 0);
	to_rts(dev, e);
	EXPECT_EQ(try_recv(e, {e.mem.sge(0, 8)}, 3), 0);
	modify(e, IBV_QPS_SQD);
	EXPECT_EQ(Send().from(e.mem, 0, 1).try_post(e), 0);
	EXPECT_EQ(try_recv(e, {e.mem.sge(0, 8)}, 4), 0);
	to_error(e);
	EXPECT_EQ(Send().from(e.mem, 0, 1).try_post(e), 0);
	EXPECT_EQ(try_recv(e, {e.mem.sge(0, 8)}, 5), 0);
	poll_n(e.scq, 2);
	poll_n(e.rcq, 5);
	modify(e, IBV_QPS_RESET);
	EXPECT_EQ(Send().from(e.mem, 0, 1).try_post(e), EINVAL);
	EXPECT_EQ(try_recv(e, {e.mem.sge(0, 8)}, 1), EINVAL);
}

/* ibv_post_send(3): processing stops at the first bad WR; those before it are posted. */
TEST_F(PostTest, BadWrInAList)
{
	Pair p = make_pair();
	ibv_sge sge = p.a.mem.sge(0, 8);
	ibv_send_wr wr[4]{}, *bad = nullptr;

	for (int i = 0; i < 4; i++) {
		wr[i].wr_id = i;
		wr[i].next = i < 3 ? &wr[i + 1] : nullptr;
		wr[i].sg_list = &sge;
		wr[i].num_sge = 1;
		wr[i].opcode = IBV_WR_RDMA_WRITE;
		wr[i].send_flags = IBV_SEND_SIGNALED;
		wr[i].wr.rdma.remote_addr = p.b.mem.addr();
		wr[i].wr.rdma.rkey = p.b.mem.mr->rkey;
	}
	wr[2].opcode = static_cast<ibv_wr_opcode>(77);
	EXPECT_EQ(code(ibv_post_send(p.a, wr, &bad)), EINVAL);
	EXPECT_EQ(bad, &wr[2]);
	expect_ok(p.a.scq, 0);
	expect_ok(p.a.scq, 1);
	expect_stays_empty(p.a.scq);
	/* the refused WR left nothing behind */
	wr[2].opcode = IBV_WR_RDMA_WRITE;
	EXPECT_EQ(ibv_post_send(p.a, &wr[2], &bad), 0);
	expect_ok(p.a.scq, 2);
	expect_ok(p.a.scq, 3);
}

TEST_F(PostTest, BadWrInAReceiveList)
{
	Pair p = make_pair();
	std::vector<ibv_sge> sges(200, p.b.mem.sge(0, 8));
	ibv_recv_wr wr[3]{}, *bad = nullptr;

	for (int i = 0; i < 3; i++) {
		wr[i].wr_id = i;
		wr[i].next = i < 2 ? &wr[i + 1] : nullptr;
		wr[i].sg_list = sges.data();
		wr[i].num_sge = i == 1 ? 200 : 1;
	}
	int rc = code(ibv_post_recv(p.b, wr, &bad));
	EXPECT_TRUE(rc == EINVAL || rc == ENOMEM) << rc;
	EXPECT_EQ(bad, &wr[1]);
	Send().from(p.a.mem, 0, 8).post(p.a);
	expect_ok(p.b.rcq, 0);
	to_error(p.b);
	expect_stays_empty(p.b.rcq);
}

/* More SGEs than the queue was made for. */
TEST_F(PostTest, SgeLimit)
{
	Pair p = make_pair();
	ibv_qp_attr a{};
	ibv_qp_init_attr init{};

	ASSERT_EQ(ibv_query_qp(p.a, &a, IBV_QP_CAP, &init), 0);
	Send most(IBV_WR_RDMA_WRITE, 5);
	for (uint32_t i = 0; i < init.cap.max_send_sge; i++)
		most.from(p.a.mem, i * 16, 16);
	p.a.mem.fill(4);
	most.to(p.b.mem).post(p.a);
	expect_ok(p.a.scq, 5);
	EXPECT_EQ(differs(p.a.mem.data(), p.b.mem.data(), init.cap.max_send_sge * 16), -1);
	most.from(p.a.mem, 0, 16);
	int rc = most.try_post(p.a);
	EXPECT_TRUE(rc == EINVAL || rc == ENOMEM) << rc;
	std::vector<ibv_sge> sges(init.cap.max_recv_sge + 1, p.a.mem.sge(0, 16));
	rc = try_recv(p.a, sges, 1);
	EXPECT_TRUE(rc == EINVAL || rc == ENOMEM) << rc;
	sges.pop_back();
	EXPECT_EQ(try_recv(p.a, sges, 1), 0);
}

TEST_F(PostTest, NegativeAndHugeSgeCounts)
{
	Pair p = make_pair();
	ibv_sge sge = p.a.mem.sge(0, 8);

	for (int n : {-1, 1 << 30}) {
		ibv_send_wr wr{}, *bad = nullptr;
		ibv_recv_wr rwr{}, *rbad = nullptr;

		wr.sg_list = rwr.sg_list = &sge;
		wr.num_sge = rwr.num_sge = n;
		wr.opcode = IBV_WR_SEND;
		EXPECT_NE(ibv_post_send(p.a, &wr, &bad), 0) << n;
		EXPECT_EQ(bad, &wr);
		EXPECT_NE(ibv_post_recv(p.a, &rwr, &rbad), 0) << n;
		EXPECT_EQ(rbad, &rwr);
	}
	expect_empty(p.a.scq);
}

/* More inline data than was granted; inline where there is nothing to send from. */
TEST_F(PostTest, InlineRules)
{
	Pair p = make_pair();
	ibv_qp_attr a{};
	ibv_qp_init_attr init{};

	ASSERT_EQ(ibv_query_qp(p.a, &a, IBV_QP_CAP, &init), 0);
	uint32_t most = init.cap.max_inline_data;
	ASSERT_GE(most, 64u);
	int rc = Send(IBV_WR_RDMA_WRITE)
			 .sge({p.a.mem.addr(), most + 1, 0})
			 .to(p.b.mem)
			 .add_flags(IBV_SEND_INLINE)
			 .try_post(p.a);
	EXPECT_TRUE(rc == EINVAL || rc == ENOMEM) << rc;
	EXPECT_EQ(Send(IBV_WR_RDMA_READ).from(p.a.mem, 0, 8).to(p.b.mem).add_flags(IBV_SEND_INLINE).try_post(p.a),
		  EINVAL);
	EXPECT_EQ(Send(IBV_WR_ATOMIC_FETCH_AND_ADD)
			  .from(p.a.mem, 0, 8)
			  .to(p.b.mem)
			  .add_flags(IBV_SEND_INLINE)
			  .try_post(p.a),
		  EINVAL);
	expect_stays_empty(p.a.scq);
	EXPECT_EQ(state_of(p.a), IBV_QPS_RTS);
}

/* Inline data may be changed as soon as post_send has returned; its lkey is not looked at. */
TEST_F(PostTest, InlineDataIsTakenAtPost)
{
	Pair p = make_pair();

	for (int i = 0; i < 32; i++)
		recv(p.b, p.b.mem, i * 64, 64, i);
	for (int i = 0; i < 32; i++) {
		uint8_t stack[40];

		memset(stack, i + 1, sizeof(stack));
		Send(IBV_WR_SEND, i)
			.sge({reinterpret_cast<uintptr_t>(stack), 20, 0xdeadbeef})
			.sge({reinterpret_cast<uintptr_t>(stack) + 20, 20, 0})
			.add_flags(IBV_SEND_INLINE)
			.post(p.a);
		memset(stack, 0xff, sizeof(stack));
	}
	poll_n(p.b.rcq, 32);
	for (int i = 0; i < 32; i++)
		EXPECT_TRUE(all_bytes(p.b.mem.data() + i * 64, 40, i + 1)) << i;
}

/* Flags that nobody defined. */
TEST_F(PostTest, OperationsThatAnRcQpHasNot)
{
	Pair p = make_pair();

	for (int op : {12, 13, 30, 31, 32, 33, 255, -1})
		EXPECT_EQ(Send(static_cast<ibv_wr_opcode>(op)).from(p.a.mem, 0, 8).to(p.b.mem).try_post(p.a), EINVAL)
			<< op;
	expect_stays_empty(p.a.scq);
	EXPECT_EQ(state_of(p.a), IBV_QPS_RTS);
}

/* ibv_post_send(3): a full queue is ENOMEM; polling makes room. */
TEST_F(PostTest, AFullSendQueue)
{
	QpOptions o;

	o.send_wr = 8;
	Pair p = make_pair(o);
	int n = fill_send(p.a, p.b.mem, IBV_SEND_SIGNALED);
	EXPECT_GE(n, 8);
	poll_n(p.a.scq, n);
	for (int round = 0; round < 5; round++) {
		EXPECT_EQ(fill_send(p.a, p.b.mem, IBV_SEND_SIGNALED), n);
		auto wcs = poll_n(p.a.scq, n);
		for (int i = 0; i < n; i++)
			EXPECT_EQ(wcs[i].wr_id, (uint64_t)i);
	}
	/* one polled: one place */
	fill_send(p.a, p.b.mem, IBV_SEND_SIGNALED);
	expect_ok(p.a.scq, 0);
	EXPECT_EQ(fill_send(p.a, p.b.mem, IBV_SEND_SIGNALED), 1);
	poll_n(p.a.scq, n);
}

/* CASES 13: signal every 8th; a poll of one completion frees eight places. */
TEST_F(PostTest, Cases13_OneCompletionFreesAllBeforeIt)
{
	QpOptions o;

	o.send_wr = 16;
	Pair p = make_pair(o);
	ibv_qp_attr a{};
	ibv_qp_init_attr init{};
	ASSERT_EQ(ibv_query_qp(p.a, &a, IBV_QP_CAP, &init), 0);
	int n = init.cap.max_send_wr;
	auto post = [&](int i) {
		return Send(IBV_WR_RDMA_WRITE, i)
			.from(p.a.mem, 0, 1)
			.to(p.b.mem)
			.flags(i % 8 == 7 ? IBV_SEND_SIGNALED : 0)
			.try_post(p.a);
	};
	for (int i = 0; i < n; i++)
		ASSERT_EQ(post(i), 0) << i;
	ASSERT_EQ(post(n), ENOMEM);
	for (int i = 0; i < 100; i += 8) {
		expect_ok(p.a.scq, i + 7);
		for (int j = 0; j < 8; j++)
			ASSERT_EQ(post(n + i + j), 0) << i << " " << j;
		ASSERT_EQ(post(n + i + 8), ENOMEM);
	}
}

/* Unsignaled WRs alone never free their places: 10.8.5, the consumer must signal now and then. */
TEST_F(PostTest, UnsignaledAloneFillTheQueue)
{
	QpOptions o;

	o.send_wr = 8;
	Pair p = make_pair(o);
	int n = fill_send(p.a, p.b.mem, 0);
	expect_stays_empty(p.a.scq);
	EXPECT_EQ(Send(IBV_WR_RDMA_WRITE).from(p.a.mem, 0, 1).to(p.b.mem).try_post(p.a), ENOMEM) << n;
}

TEST_F(PostTest, AFullReceiveQueue)
{
	QpOptions o;

	o.recv_wr = 8;
	Pair p = make_pair(o);
	int n = 0, rc;
	while (!(rc = try_recv(p.b, {p.b.mem.sge(0, 16)}, n)))
		n++;
	EXPECT_EQ(rc, ENOMEM);
	EXPECT_GE(n, 8);
	for (int i = 0; i < 3 * n; i++) {
		Send().from(p.a.mem, 0, 8).post(p.a);
		expect_ok(p.a.scq, 1);
		expect_ok(p.b.rcq, i);
		EXPECT_EQ(try_recv(p.b, {p.b.mem.sge(0, 16)}, n + i), 0) << i;
		EXPECT_EQ(try_recv(p.b, {p.b.mem.sge(0, 16)}, n + i), ENOMEM) << i;
	}
}

/* sq_sig_all: every WR completes. */
TEST_F(PostTest, SignalAll)
{
	QpOptions o;

	o.sig_all = true;
	Pair p = make_pair(o);
	for (int i = 0; i < 10; i++)
		Send(IBV_WR_RDMA_WRITE, i).from(p.a.mem, 0, 1).to(p.b.mem).unsignaled().post(p.a);
	for (int i = 0; i < 10; i++)
		expect_ok(p.a.scq, i);
}

/* A long list in one call. */
TEST_F(PostTest, LongLists)
{
	Pair p = make_pair();
	std::vector<ibv_send_wr> wrs(100);
	std::vector<ibv_recv_wr> rwrs(100);
	ibv_sge src = p.a.mem.sge(0, 32), dst = p.b.mem.sge(0, 32);
	ibv_send_wr *bad;
	ibv_recv_wr *rbad;

	for (int i = 0; i < 100; i++) {
		wrs[i] = {};
		rwrs[i] = {};
		wrs[i].wr_id = rwrs[i].wr_id = i;
		wrs[i].next = i < 99 ? &wrs[i + 1] : nullptr;
		rwrs[i].next = i < 99 ? &rwrs[i + 1] : nullptr;
		wrs[i].sg_list = &src;
		rwrs[i].sg_list = &dst;
		wrs[i].num_sge = rwrs[i].num_sge = 1;
		wrs[i].opcode = IBV_WR_SEND;
		wrs[i].send_flags = IBV_SEND_SIGNALED;
	}
	ASSERT_EQ(ibv_post_recv(p.b, rwrs.data(), &rbad), 0);
	ASSERT_EQ(ibv_post_send(p.a, wrs.data(), &bad), 0);
	for (int i = 0; i < 100; i++) {
		expect_ok(p.a.scq, i);
		expect_ok(p.b.rcq, i);
	}
}
