/* SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB */
/* Unreliable connections: what they have, what they have not, and that loss is silent. */
#include "pair.h"

#include <arpa/inet.h>

using namespace conformance;

class UcTest : public RcTest {
protected:
	QpOptions uc()
	{
		QpOptions o;

		o.type = IBV_QPT_UC;
		return o;
	}
	void expect_works(Pair &p)
	{
		recv(p.b, p.b.mem, 0, 4096, 900);
		Send(IBV_WR_SEND, 901).from(p.a.mem, 0, 64).post(p.a);
		expect_ok(p.a.scq, 901);
		expect_ok(p.b.rcq, 900);
	}
};

TEST_F(UcTest, Operations)
{
	Pair p = make_pair(uc());

	p.a.mem.fill(1);
	recv(p.b, p.b.mem, 0, 4096, 1);
	Send(IBV_WR_SEND, 2).from(p.a.mem, 0, 3000).post(p.a);
	expect_ok(p.a.scq, 2);
	ibv_wc wc = expect_ok(p.b.rcq, 1);
	EXPECT_EQ(wc.byte_len, 3000u);
	EXPECT_EQ(wc.opcode, IBV_WC_RECV);
	EXPECT_EQ(differs(p.a.mem.data(), p.b.mem.data(), 3000), -1);

	recv(p.b, p.b.mem, 0, 4096, 3);
	Send(IBV_WR_SEND_WITH_IMM, 4).from(p.a.mem, 0, 8).imm(9).post(p.a);
	expect_ok(p.a.scq, 4);
	EXPECT_EQ(ntohl(expect_ok(p.b.rcq, 3).imm_data), 9u);

	Send(IBV_WR_RDMA_WRITE, 5).from(p.a.mem, 100, 1000).to(p.b.mem, 8192).post(p.a);
	expect_ok(p.a.scq, 5);
	EXPECT_EQ(differs(p.a.mem.data() + 100, p.b.mem.data() + 8192, 1000), -1);

	recv_empty(p.b, 6);
	Send(IBV_WR_RDMA_WRITE_WITH_IMM, 7).from(p.a.mem, 0, 100).to(p.b.mem, 16384).imm(10).post(p.a);
	expect_ok(p.a.scq, 7);
	wc = expect_ok(p.b.rcq, 6);
	EXPECT_EQ(wc.opcode, IBV_WC_RECV_RDMA_WITH_IMM);
	EXPECT_EQ(wc.byte_len, 100u);
}

/* IBTA table 38 (9.4): UC has no reads and no atomics, nothing to invalidate. */
TEST_F(UcTest, OperationsItHasNot)
{
	Pair p = make_pair(uc());

	for (auto op : {IBV_WR_RDMA_READ, IBV_WR_ATOMIC_CMP_AND_SWP, IBV_WR_ATOMIC_FETCH_AND_ADD, IBV_WR_SEND_WITH_INV})
		EXPECT_EQ(Send(op).from(p.a.mem, 0, 8).to(p.b.mem).try_post(p.a), EINVAL) << op;
	expect_empty(p.a.scq);
	EXPECT_EQ(state_of(p.a), IBV_QPS_RTS);
	expect_works(p);
}

/* Nobody listens: the send succeeds, nothing arrives, both QPs live on. */
TEST_F(UcTest, NoReceiveWr)
{
	Pair p = make_pair(uc());

	for (int i = 0; i < 5; i++) {
		Send(IBV_WR_SEND, i).from(p.a.mem, 0, 64).post(p.a);
		expect_ok(p.a.scq, i);
	}
	expect_stays_empty(p.b.rcq);
	expect_works(p);
}

/* 9.8.2: what the responder cannot take is dropped; the connection stays. */
TEST_F(UcTest, BadRkeyIsSilent)
{
	Pair p = make_pair(uc());

	p.b.mem.fill(2);
	std::vector<uint8_t> before(p.b.mem.data(), p.b.mem.data() + 64);
	p.a.mem.fill(3);
	Send(IBV_WR_RDMA_WRITE, 1).from(p.a.mem, 0, 64).to(p.b.mem.addr(), p.b.mem.mr->rkey ^ 0x300).post(p.a);
	expect_ok(p.a.scq, 1);
	EXPECT_EQ(differs(before.data(), p.b.mem.data(), 64), -1);
	EXPECT_EQ(state_of(p.a), IBV_QPS_RTS);
	EXPECT_EQ(state_of(p.b), IBV_QPS_RTS);
	expect_no_async(p.at_b.dev);
	expect_works(p);
}

TEST_F(UcTest, PeerThatIsNotThere)
{
	Pair p = make_pair(uc());

	modify(p.b, IBV_QPS_RESET);
	Send(IBV_WR_SEND, 1).from(p.a.mem, 0, 64).post(p.a);
	expect_ok(p.a.scq, 1);
	p.b.qp.reset();
	Send(IBV_WR_RDMA_WRITE, 2).from(p.a.mem, 0, 64).to(p.b.mem).post(p.a);
	expect_ok(p.a.scq, 2);
	EXPECT_EQ(state_of(p.a), IBV_QPS_RTS);
}

/* 10.3.1.6: a local error puts the send queue alone into error; RTS again by modify, receives go on meanwhile. */
TEST_F(UcTest, SendQueueError)
{
	Pair p = make_pair(uc());

	Send(IBV_WR_SEND, 1).sge({p.a.mem.addr(), 64, p.a.mem.mr->lkey ^ 0x100}).post(p.a);
	expect_wc(p.a.scq, IBV_WC_LOC_PROT_ERR, 1);
	EXPECT_EQ(state_of(p.a), IBV_QPS_SQE);
	Send(IBV_WR_SEND, 2).from(p.a.mem, 0, 64).post(p.a);
	expect_wc(p.a.scq, IBV_WC_WR_FLUSH_ERR, 2);
	recv(p.a, p.a.mem, 0, 64, 3);
	Send(IBV_WR_SEND, 4).from(p.b.mem, 0, 64).post(p.b);
	expect_ok(p.b.scq, 4);
	expect_ok(p.a.rcq, 3);
	modify(p.a, state_attr(IBV_QPS_RTS));
	expect_works(p);
	expect_no_async(dev);
}

TEST_F(UcTest, SolicitedAndInline)
{
	Pair p = make_pair(uc());

	p.a.mem.fill(4);
	recv(p.b, p.b.mem, 0, 64, 1);
	Send(IBV_WR_SEND, 2).from(p.a.mem, 0, 32).add_flags(IBV_SEND_INLINE | IBV_SEND_SOLICITED).post(p.a);
	expect_ok(p.a.scq, 2);
	expect_ok(p.b.rcq, 1);
	EXPECT_EQ(differs(p.a.mem.data(), p.b.mem.data(), 32), -1);
}
