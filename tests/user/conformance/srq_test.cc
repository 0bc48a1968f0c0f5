/* SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB */
/* Shared receive queues: ibv_create_srq(3), ibv_modify_srq(3), the limit event (CASES 51). */
#include "pair.h"

using namespace conformance;

class SrqTest : public RcTest {
protected:
	QpOptions with(ibv_srq *srq)
	{
		QpOptions o;

		o.srq = srq;
		return o;
	}
	/* a plain sender and a receiver on the SRQ */
	Pair make_srq_pair(ibv_srq *srq) { return Pair(dev, pd, QpOptions(), with(srq), Path()); }
	uint32_t limit_of(ibv_srq *srq)
	{
		ibv_srq_attr a{};

		EXPECT_EQ(ibv_query_srq(srq, &a), 0);
		return a.srq_limit;
	}
	int set_limit(ibv_srq *srq, uint32_t limit)
	{
		ibv_srq_attr a{};

		a.srq_limit = limit;
		return code(ibv_modify_srq(srq, &a, IBV_SRQ_LIMIT));
	}
	void send(Pair &p, uint32_t len = 16)
	{
		Send().from(p.a.mem, 0, len).post(p.a);
		expect_ok(p.a.scq, 1);
	}
	Region mem{pd, 65536};
};

TEST_F(SrqTest, GrantsAndAnswers)
{
	ibv_srq_init_attr init{};

	init.attr.max_wr = 100;
	init.attr.max_sge = 3;
	Srq srq(ibv_create_srq(pd, &init));
	ASSERT_NE(srq.get(), nullptr);
	EXPECT_GE(init.attr.max_wr, 100u);
	EXPECT_GE(init.attr.max_sge, 3u);
	ibv_srq_attr a{};
	ASSERT_EQ(ibv_query_srq(srq, &a), 0);
	EXPECT_EQ(a.max_wr, init.attr.max_wr);
	EXPECT_EQ(a.max_sge, init.attr.max_sge);
	EXPECT_EQ(a.srq_limit, 0u);
}

/* CASES 67. */
TEST_F(SrqTest, LimitsAndLimitsPlusOne)
{
	auto create = [&](uint32_t wr, uint32_t sge, uint32_t limit) {
		ibv_srq_init_attr init{};

		init.attr = {wr, sge, limit};
		errno = 0;
		Srq srq(ibv_create_srq(pd, &init));
		return srq ? 0 : errno;
	};
	uint32_t max_wr = dev.attr.max_srq_wr, max_sge = dev.attr.max_srq_sge;

	EXPECT_EQ(create(max_wr, 1, 0), 0);
	EXPECT_EQ(create(max_wr + 1, 1, 0), EINVAL);
	EXPECT_EQ(create(16, max_sge, 0), 0);
	EXPECT_EQ(create(16, max_sge + 1, 0), EINVAL);
	EXPECT_EQ(create(0, 1, 0), EINVAL);
	EXPECT_EQ(create(~0u, 1, 0), EINVAL);
	EXPECT_EQ(create(16, ~0u, 0), EINVAL);
}

/* Several QPs draw from one queue, in its order. */
TEST_F(SrqTest, ManyQpsShareIt)
{
	Srq srq = make_srq(pd, 64);
	Cq cq = make_cq(dev, 256);
	QpOptions o = with(srq);
	std::vector<Pair> pairs;

	o.recv_cq = cq;
	for (int i = 0; i < 4; i++)
		pairs.emplace_back(dev, pd, QpOptions(), o, Path());
	for (int i = 0; i < 32; i++)
		srq_recv(srq, mem, i * 64, 64, i);
	for (int i = 0; i < 32; i++) {
		Pair &p = pairs[i % 4];

		p.a.mem.data()[0] = static_cast<uint8_t>(i + 1);
		send(p, 1);
		ibv_wc wc = expect_ok(cq, i);
		EXPECT_EQ(wc.qp_num, p.b.num());
		EXPECT_EQ(mem.data()[i * 64], i + 1);
	}
	pairs.clear();
}

TEST_F(SrqTest, FullAndFreeAgain)
{
	Srq srq = make_srq(pd, 8);
	Pair p = make_srq_pair(srq);
	int n = 0, rc;

	while (!(rc = try_srq_recv(srq, {mem.sge(0, 64)}, n)))
		n++;
	EXPECT_EQ(rc, ENOMEM);
	EXPECT_GE(n, 8);
	for (int i = 0; i < 3 * n; i++) {
		send(p);
		expect_ok(p.b.rcq, i);
		EXPECT_EQ(try_srq_recv(srq, {mem.sge(0, 64)}, n + i), 0);
		EXPECT_EQ(try_srq_recv(srq, {mem.sge(0, 64)}, n + i), ENOMEM);
	}
}

TEST_F(SrqTest, SgeLimitAndBadWr)
{
	Srq srq = make_srq(pd, 8, 2);
	std::vector<ibv_sge> many(200, mem.sge(0, 8));
	ibv_sge one = mem.sge(0, 8);
	ibv_recv_wr wr[2]{}, *bad = nullptr;

	wr[0].next = &wr[1];
	wr[0].sg_list = &one;
	wr[0].num_sge = 1;
	wr[1].sg_list = many.data();
	wr[1].num_sge = 200;
	int rc = code(ibv_post_srq_recv(srq, wr, &bad));
	EXPECT_TRUE(rc == EINVAL || rc == ENOMEM) << rc;
	EXPECT_EQ(bad, &wr[1]);
}

/* A QP with an SRQ has no receive queue of its own. */
TEST_F(SrqTest, PostRecvOnItsQpIsRefused)
{
	Srq srq = make_srq(pd, 8);
	Pair p = make_srq_pair(srq);

	EXPECT_NE(try_recv(p.b, {mem.sge(0, 8)}, 1), 0);
}

/* No WR there: RNR, until one comes. */
TEST_F(SrqTest, LateReceiver)
{
	Srq srq = make_srq(pd, 8);
	Pair p = make_srq_pair(srq);

	Send().from(p.a.mem, 0, 16).post(p.a);
	expect_stays_empty(p.a.scq, Millis(20));
	srq_recv(srq, mem, 0, 64, 5);
	expect_ok(p.a.scq, 1);
	expect_ok(p.b.rcq, 5);
}

/* CASES 51: limit 4, 8 WRs, consume 5: one event; the limit reads 0; more: none; armed again: again. */
TEST_F(SrqTest, Cases51_LimitEvent)
{
	Srq srq = make_srq(pd, 16);
	Pair p = make_srq_pair(srq);

	for (int i = 0; i < 8; i++)
		srq_recv(srq, mem, 0, 64, i);
	ASSERT_EQ(set_limit(srq, 4), 0);
	EXPECT_EQ(limit_of(srq), 4u);
	for (int i = 0; i < 4; i++)
		send(p);
	expect_no_async(dev);
	EXPECT_EQ(limit_of(srq), 4u);
	send(p);
	expect_async(dev, IBV_EVENT_SRQ_LIMIT_REACHED, srq.get());
	EXPECT_EQ(limit_of(srq), 0u);
	send(p);
	expect_no_async(dev);
	for (int i = 0; i < 6; i++)
		srq_recv(srq, mem, 0, 64, i);
	ASSERT_EQ(set_limit(srq, 8), 0);
	send(p);
	expect_async(dev, IBV_EVENT_SRQ_LIMIT_REACHED, srq.get());
	EXPECT_EQ(limit_of(srq), 0u);
	expect_no_async(dev);
	poll_n(p.b.rcq, 7);
}

/* Armed when fewer than the limit are there already: the event is due at once (IBTA 10.2.9.2: below it). */
TEST_F(SrqTest, LimitArmedBelowIt)
{
	Srq srq = make_srq(pd, 16);
	Pair p = make_srq_pair(srq);

	for (int i = 0; i < 3; i++)
		srq_recv(srq, mem, 0, 64, i);
	ASSERT_EQ(set_limit(srq, 4), 0);
	send(p);
	expect_async(dev, IBV_EVENT_SRQ_LIMIT_REACHED, srq.get());
	expect_no_async(dev);
}

/* CASES 51: a limit beyond the size is EINVAL. */
TEST_F(SrqTest, Cases51_LimitRules)
{
	Srq srq = make_srq(pd, 16);
	ibv_srq_attr a{};

	ASSERT_EQ(ibv_query_srq(srq, &a), 0);
	EXPECT_EQ(set_limit(srq, a.max_wr + 1), EINVAL);
	EXPECT_EQ(set_limit(srq, ~0u), EINVAL);
	EXPECT_EQ(limit_of(srq), 0u);
	EXPECT_EQ(set_limit(srq, a.max_wr), 0);
	EXPECT_EQ(set_limit(srq, 0), 0);
	EXPECT_EQ(limit_of(srq), 0u);
	EXPECT_EQ(code(ibv_modify_srq(srq, &a, 1 << 5)), EINVAL) << "an attribute nobody defined";
}

/* Resizing is a capability. */
TEST_F(SrqTest, ResizeOnlyIfAdvertised)
{
	Srq srq = make_srq(pd, 16);
	ibv_srq_attr a{};

	a.max_wr = 64;
	int rc = code(ibv_modify_srq(srq, &a, IBV_SRQ_MAX_WR));
	if (dev.attr.device_cap_flags & IBV_DEVICE_SRQ_RESIZE)
		EXPECT_EQ(rc, 0);
	else
		EXPECT_NE(rc, 0);
}

/* Datagrams from a shared queue. */
TEST_F(SrqTest, Datagrams)
{
	Srq srq = make_srq(pd, 16);
	UdEnd a(dev, pd), b(dev, pd, with(srq));

	a.mem.fill(1);
	srq_recv(srq, mem, 0, 4096, 5);
	Send().from(a.mem, 0, 32).ud(a.self, b.num(), b.qkey).post(a);
	expect_ok(a.scq, 1);
	ibv_wc wc = expect_ok(b.rcq, 5);
	EXPECT_EQ(wc.byte_len, 72u);
	EXPECT_EQ(differs(a.mem.data(), mem.data() + 40, 32), -1);
}

/* Destroying one QP leaves the queue's WRs to the others. */
TEST_F(SrqTest, WrsOutliveAQp)
{
	Srq srq = make_srq(pd, 16);
	Pair keep = make_srq_pair(srq);

	for (int i = 0; i < 4; i++)
		srq_recv(srq, mem, 0, 64, i);
	{
		Pair gone = make_srq_pair(srq);
		send(gone);
		expect_ok(gone.b.rcq, 0);
	}
	for (int i = 1; i < 4; i++) {
		send(keep);
		expect_ok(keep.b.rcq, i);
	}
}

/* CASES 40: QP on an SRQ to ERR: one LAST_WQE_REACHED, and the queue's WRs are not flushed. */
TEST_F(SrqTest, Cases40_LastWqeReached)
{
	Srq srq = make_srq(pd, 16);
	Pair p = make_srq_pair(srq);

	for (int i = 0; i < 4; i++)
		srq_recv(srq, mem, 0, 64, i);
	send(p);
	to_error(p.b);
	expect_async(dev, IBV_EVENT_QP_LAST_WQE_REACHED, p.b.qp.get());
	to_error(p.b);
	expect_no_async(dev);
	expect_ok(p.b.rcq, 0);
	expect_stays_empty(p.b.rcq);
	/* once more after a reset: a new transition, a new event */
	modify(p.a, IBV_QPS_RESET);
	modify(p.b, IBV_QPS_RESET);
	p.connect(dev, {});
	send(p);
	expect_ok(p.b.rcq, 1);
	to_error(p.b);
	expect_async(dev, IBV_EVENT_QP_LAST_WQE_REACHED, p.b.qp.get());
	expect_no_async(dev);
}

/* CASES 40: an error of the message itself: the event comes after the CQE that explains it. */
TEST_F(SrqTest, Cases40_LastWqeAfterTheLastCompletion)
{
	Channel channel = make_channel(dev);
	Srq srq = make_srq(pd, 16);
	QpOptions o = with(srq);
	o.channel = channel;
	Pair p(dev, pd, QpOptions(), o, Path());

	srq_recv(srq, mem, 0, 64, 1);
	srq_recv(srq, mem, 0, 64, 2);
	Send().from(p.a.mem, 0, 65).post(p.a);
	expect_async(dev, IBV_EVENT_QP_LAST_WQE_REACHED, p.b.qp.get());
	ibv_wc wc{};
	ASSERT_EQ(ibv_poll_cq(p.b.rcq, 1, &wc), 1) << "the event came before its completion";
	EXPECT_EQ(wc.status, IBV_WC_LOC_LEN_ERR);
	EXPECT_EQ(wc.wr_id, 1u);
	expect_no_async(dev);
	expect_stays_empty(p.b.rcq);
}

/* CASES 40 (b): to the error state in the middle of a message: the event comes after the CQE of the WR it was filling. */
TEST_F(SrqTest, Cases40_LastWqeInTheMiddleOfAMessage)
{
	constexpr uint32_t len = 32 << 20;
	QpOptions plain;
	Srq srq = make_srq(pd, 16);
	QpOptions o = with(srq);
	int in_the_middle = 0;

	plain.memory = o.memory = len;
	for (int round = 0; round < 20 && !in_the_middle; round++) {
		Pair p(dev, pd, plain, o, Path());
		auto *first = static_cast<volatile uint8_t *>(p.b.mem.data());

		srq_recv(srq, p.b.mem, 0, len, 1);
		memset(p.a.mem.data(), 0xff, len);
		auto sender = worker([&] { Send().from(p.a.mem, 0, len).post(p.a); });
		while (!*first)
			std::this_thread::yield();
		to_error(p.b);
		expect_async(dev, IBV_EVENT_QP_LAST_WQE_REACHED, p.b.qp.get());
		ibv_wc wc{};
		ASSERT_EQ(ibv_poll_cq(p.b.rcq, 1, &wc), 1) << "the event came before its completion";
		EXPECT_EQ(wc.wr_id, 1u);
		EXPECT_TRUE(wc.status == IBV_WC_WR_FLUSH_ERR || wc.status == IBV_WC_SUCCESS)
			<< ibv_wc_status_str(wc.status);
		in_the_middle += wc.status != IBV_WC_SUCCESS;
		expect_stays_empty(p.b.rcq, Millis(0));
		expect_no_async(dev, Millis(0));
		sender.join();
	}
	EXPECT_GT(in_the_middle, 0) << "every message was over before the QP was in error";
}
