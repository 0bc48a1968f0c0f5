/* SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB */
/* Completion queues: create, limits, resize, overrun, what destroying a QP leaves behind. */
#include "pair.h"

#include <climits>
#include <map>

using namespace conformance;

class CqTest : public RcTest {
protected:
	/* One QP_FATAL of each of these, in any order, and nothing else. */
	void expect_fatal(std::set<void *> qps)
	{
		while (!qps.empty()) {
			auto event = next_async(dev, patience());

			if (!event)
				fail("no event of a QP");
			EXPECT_STREQ(ibv_event_type_str(event->type), ibv_event_type_str(IBV_EVENT_QP_FATAL));
			EXPECT_EQ(qps.erase(event->element), 1u) << "not once";
		}
		expect_no_async(dev);
	}
	/* n signaled writes of one byte; ids count up from first */
	void writes(Pair &p, int n, uint64_t first = 1)
	{
		for (int i = 0; i < n; i++)
			Send(IBV_WR_RDMA_WRITE, first + i).from(p.a.mem, 0, 1).to(p.b.mem).post(p.a);
	}
	void expect_ids(ibv_cq *cq, int n, uint64_t first = 1)
	{
		auto wcs = poll_n(cq, n);

		for (int i = 0; i < n; i++) {
			EXPECT_EQ(wcs[i].wr_id, first + i);
			EXPECT_EQ(wcs[i].status, IBV_WC_SUCCESS);
		}
	}
};

/* ibv_create_cq(3): at least as many entries as asked for. */
TEST_F(CqTest, GrantsWhatWasAskedFor)
{
	for (int n : {1, 2, 3, 7, 8, 9, 255, 256, 257, 5000}) {
		Cq cq = make_cq(dev, n);

		EXPECT_GE(cq->cqe, n);
	}
}

TEST_F(CqTest, ZeroEntriesAreRefused)
{
	errno = 0;
	Cq cq(ibv_create_cq(dev, 0, nullptr, nullptr, 0));
	EXPECT_EQ(cq.get(), nullptr);
	EXPECT_EQ(errno, EINVAL);
}

/* CASES 67: the limit works, one more does not. */
TEST_F(CqTest, LimitPlusOneIsRefused)
{
	Cq largest(ibv_create_cq(dev, dev.attr.max_cqe, nullptr, nullptr, 0));

	if (!largest) {
		EXPECT_EQ(errno, ENOMEM) << "max_cqe refused for another reason than memory";
	}
	errno = 0;
	Cq larger(ibv_create_cq(dev, dev.attr.max_cqe + 1, nullptr, nullptr, 0));
	EXPECT_EQ(larger.get(), nullptr);
	EXPECT_EQ(errno, EINVAL);
	errno = 0;
	Cq huge(ibv_create_cq(dev, INT_MAX, nullptr, nullptr, 0));
	EXPECT_EQ(huge.get(), nullptr);
	EXPECT_EQ(errno, EINVAL);
	Cq negative(ibv_create_cq(dev, -1, nullptr, nullptr, 0));
	EXPECT_EQ(negative.get(), nullptr);
}

/* A CQ holds as many entries as it says. */
TEST_F(CqTest, HoldsWhatItSays)
{
	Cq cq = make_cq(dev, 10);
	QpOptions o;

	o.send_cq = cq;
	o.send_wr = 256;
	Pair p = make_pair(o);
	writes(p, cq->cqe);
	expect_ids(cq, cq->cqe);
	expect_no_async(dev, Millis(0));
	EXPECT_EQ(state_of(p.a), IBV_QPS_RTS);
}

/* ibv_poll_cq(3): asking for nothing gives nothing; asking for more than there is gives what there is. */
TEST_F(CqTest, PollCounts)
{
	Pair p = make_pair();
	ibv_wc wc[8];

	EXPECT_EQ(ibv_poll_cq(p.a.scq, 8, wc), 0);
	writes(p, 5);
	expect_ok(p.a.scq, 1);
	EXPECT_EQ(ibv_poll_cq(p.a.scq, 0, wc), 0);
	expect_ids(p.a.scq, 4, 2);
	EXPECT_EQ(ibv_poll_cq(p.a.scq, 8, wc), 0);
}

/* The ring wraps many times and loses nothing. */
TEST_F(CqTest, WrapsAtEveryDepth)
{
	for (int depth : {1, 2, 3, 4, 7, 8}) {
		Cq cq = make_cq(dev, depth);
		QpOptions o;

		o.send_cq = cq;
		Pair p = make_pair(o);
		for (uint64_t i = 0; i < 100; i += depth) {
			writes(p, depth, i);
			expect_ids(cq, depth, i);
		}
		expect_empty(cq);
	}
}

/* One CQ for both queues of several QPs: each completion names its QP. */
TEST_F(CqTest, SharedByManyQps)
{
	Cq cq = make_cq(dev, 1024);
	QpOptions o;
	std::vector<Pair> pairs;
	std::map<uint32_t, int> seen;

	o.send_cq = o.recv_cq = cq;
	for (int i = 0; i < 8; i++)
		pairs.push_back(make_pair(o));
	for (auto &p : pairs) {
		recv(p.b, p.b.mem, 0, 64, 100);
		Send(IBV_WR_SEND, 200).from(p.a.mem, 0, 64).post(p.a);
	}
	for (auto &wc : poll_n(cq, 16)) {
		EXPECT_EQ(wc.status, IBV_WC_SUCCESS);
		EXPECT_EQ(wc.wr_id, wc.opcode & IBV_WC_RECV ? 100u : 200u);
		seen[wc.qp_num]++;
	}
	EXPECT_EQ(seen.size(), 16u);
	pairs.clear();
}

/* -------------------------------------------------------------- resize -- */

/* ibv_resize_cq(3), rule C10. */
TEST_F(CqTest, ResizeKeepsEntriesInOrder)
{
	Cq cq = make_cq(dev, 16);
	QpOptions o;

	o.send_cq = cq;
	Pair p = make_pair(o);
	/* so that the entries lie across the ring's end */
	writes(p, 10);
	expect_ids(cq, 10);
	writes(p, 10, 11);
	ASSERT_EQ(ibv_resize_cq(cq, 100), 0);
	EXPECT_GE(cq->cqe, 100);
	writes(p, 50, 21);
	expect_ids(cq, 60, 11);
	ASSERT_EQ(ibv_resize_cq(cq, 4), 0);
	EXPECT_GE(cq->cqe, 4);
	writes(p, 4, 71);
	expect_ids(cq, 4, 71);
	expect_empty(cq);
}

TEST_F(CqTest, ResizeBelowItsContentIsRefused)
{
	Cq cq = make_cq(dev, 64);
	QpOptions o;

	o.send_cq = cq;
	Pair p = make_pair(o);
	writes(p, 40);
	/* a message that follows them has arrived, so all are there */
	recv_empty(p.b, 1);
	Send().unsignaled().post(p.a);
	expect_ok(p.b.rcq, 1);
	int before = cq->cqe;
	EXPECT_EQ(code(ibv_resize_cq(cq, 8)), EINVAL);
	EXPECT_EQ(cq->cqe, before);
	expect_ids(cq, 40);
	EXPECT_EQ(code(ibv_resize_cq(cq, 0)), EINVAL);
	EXPECT_EQ(code(ibv_resize_cq(cq, dev.attr.max_cqe + 1)), EINVAL);
	writes(p, 5, 41);
	expect_ids(cq, 5, 41);
}

/* Rule C10: the armed state survives. */
TEST_F(CqTest, ResizeKeepsTheArm)
{
	Channel channel = make_channel(dev);
	Cq cq = make_cq(dev, 16, channel);
	QpOptions o;

	o.send_cq = cq;
	Pair p = make_pair(o);
	for (int n : {64, 8}) {
		arm(cq);
		ASSERT_EQ(ibv_resize_cq(cq, n), 0);
		expect_no_event(channel);
		writes(p, 1);
		expect_event(channel, cq);
		expect_ids(cq, 1);
		/* and stays consumed */
		ASSERT_EQ(ibv_resize_cq(cq, n * 2), 0);
		writes(p, 1);
		expect_ids(cq, 1);
		expect_no_event(channel);
	}
}

/* ------------------------------------------------------------- overrun -- */

/* Rule C11, CASES 12 and 52: one CQ_ERR; the good entries, then an error; every QP in ERR with one QP_FATAL. */
TEST_F(CqTest, Cases12_OverrunKillsTheCqAndItsQps)
{
	Cq cq = make_cq(dev, 4);
	QpOptions o;

	o.send_cq = cq;
	o.send_wr = 256;
	Pair p(dev, pd, o, QpOptions(), {});
	End idle(dev, pd, o);
	int good = cq->cqe;

	writes(p, good + 12);
	expect_async(dev, IBV_EVENT_CQ_ERR, cq.get());
	expect_fatal({p.a.qp.get(), idle.qp.get()});
	expect_state(p.a, IBV_QPS_ERR);
	expect_state(idle, IBV_QPS_ERR);
	/* the peer, whose CQs are others, is well */
	EXPECT_EQ(state_of(p.b), IBV_QPS_RTS);

	ibv_wc wc{};
	for (int i = 0; i < good; i++) {
		ASSERT_EQ(ibv_poll_cq(cq, 1, &wc), 1) << i;
		EXPECT_EQ(wc.wr_id, 1u + i);
		EXPECT_EQ(wc.status, IBV_WC_SUCCESS);
	}
	for (int i = 0; i < 3; i++)
		EXPECT_LT(ibv_poll_cq(cq, 1, &wc), 0);
	/* and so it stays: what is flushed now would find room */
	writes(p, 1, 100);
	expect_no_async(dev);
	EXPECT_LT(ibv_poll_cq(cq, 1, &wc), 0);
}

/* One overrun, one event, whichever queue and however many QPs keep trying. */
TEST_F(CqTest, Cases52_OverrunOfAReceiveCq)
{
	Cq cq = make_cq(dev, 4);
	QpOptions oa, ob;

	ob.recv_cq = cq;
	Pair p(dev, pd, oa, ob, {});
	int n = cq->cqe + 1;
	for (int i = 0; i < n; i++)
		recv(p.b, p.b.mem, 0, 16, i);
	for (int i = 0; i < n; i++)
		Send(IBV_WR_SEND, i).from(p.a.mem, 0, 16).post(p.a);
	expect_async(dev, IBV_EVENT_CQ_ERR, cq.get());
	expect_async(dev, IBV_EVENT_QP_FATAL, p.b.qp.get());
	expect_no_async(dev);
	expect_state(p.b, IBV_QPS_ERR);
}

/* Rule C11 says every QP attached: also one that was in the error state already, whose flushes may be what is lost. */
TEST_F(CqTest, OverrunIsToldOfAQpInErrorToo)
{
	Cq cq = make_cq(dev, 4);
	QpOptions o;

	o.send_cq = cq;
	Pair p(dev, pd, o, QpOptions(), {});
	End failed(dev, pd, o);

	to_init(failed);
	to_error(failed);
	writes(p, cq->cqe + 3);
	expect_async(dev, IBV_EVENT_CQ_ERR, cq.get());
	expect_fatal({p.a.qp.get(), failed.qp.get()});
}

/* ------------------------------------------------- what destroy leaves -- */

/* Rule C14: a destroyed QP's entries go, and their room is free again. */
TEST_F(CqTest, DestroyRemovesTheQpsEntries)
{
	Cq cq = make_cq(dev, 32);
	QpOptions o;

	o.send_cq = cq;
	Pair keep = make_pair(o);
	{
		Pair gone = make_pair(o);
		for (int i = 0; i < 10; i++) {
			writes(keep, 1, 1000 + i);
			writes(gone, 1, 2000 + i);
		}
		/* both have completed when their last is there: destroying waits for no CQE */
		expect_state(gone.a, IBV_QPS_RTS);
	}
	expect_ids(cq, 10, 1000);
	expect_empty(cq);
	for (int i = 0; i < 3; i++) {
		writes(keep, cq->cqe, 1);
		expect_ids(cq, cq->cqe, 1);
	}
	expect_no_async(dev, Millis(0));
}

/* The same for reset. */
TEST_F(CqTest, ResetRemovesTheQpsEntries)
{
	Cq cq = make_cq(dev, 32);
	QpOptions o;

	o.send_cq = cq;
	Pair p = make_pair(o);
	writes(p, 10);
	modify(p.a, IBV_QPS_RESET);
	modify(p.b, IBV_QPS_RESET);
	expect_stays_empty(cq);
	p.connect(dev, {});
	writes(p, 3, 50);
	expect_ids(cq, 3, 50);
	expect_empty(cq);
}

/* Receive entries of a QP go with it as well; those of its neighbours on the same SRQ's CQ stay. */
TEST_F(CqTest, DestroyRemovesReceiveEntriesToo)
{
	Cq cq = make_cq(dev, 64);
	QpOptions oa, ob;

	ob.recv_cq = cq;
	Pair keep(dev, pd, oa, ob, {});
	{
		Pair gone(dev, pd, oa, ob, {});
		for (int i = 0; i < 5; i++) {
			recv(keep.b, keep.b.mem, 0, 16, 100 + i);
			recv(gone.b, gone.b.mem, 0, 16, 200 + i);
			Send().from(keep.a.mem, 0, 16).post(keep.a);
			Send().from(gone.a.mem, 0, 16).post(gone.a);
		}
		poll_n(gone.a.scq, 5);
		poll_n(keep.a.scq, 5);
	}
	expect_ids(cq, 5, 100);
	expect_empty(cq);
}

/* ------------------------------------------------------------ extended -- */

/* ibv_create_cq_ex(3): the same completions through the other interface. */
TEST_F(CqTest, ExtendedPolling)
{
	ibv_cq_init_attr_ex init{};

	init.cqe = 64;
	init.wc_flags = IBV_WC_STANDARD_FLAGS;
	ibv_cq_ex *ex = ibv_create_cq_ex(dev, &init);
	if (!ex)
		GTEST_SKIP() << "ibv_create_cq_ex: " << strerror(errno);
	Cq cq(ibv_cq_ex_to_cq(ex));
	QpOptions o;
	o.send_cq = o.recv_cq = cq;
	Pair p = make_pair(o);
	recv(p.b, p.b.mem, 0, 4096, 7);
	Send(IBV_WR_SEND_WITH_IMM, 8).from(p.a.mem, 0, 100).imm(0x12345678).post(p.a);

	int received = 0, sent = 0;
	auto end = Clock::now() + patience();
	while (received + sent < 2 && Clock::now() < end) {
		ibv_poll_cq_attr attr{};

		if (ibv_start_poll(ex, &attr))
			continue;
		do {
			EXPECT_EQ(ex->status, IBV_WC_SUCCESS);
			if (ibv_wc_read_opcode(ex) == IBV_WC_RECV) {
				received++;
				EXPECT_EQ(ex->wr_id, 7u);
				EXPECT_EQ(ibv_wc_read_byte_len(ex), 100u);
				EXPECT_EQ(ibv_wc_read_imm_data(ex), htobe32(0x12345678));
				EXPECT_TRUE(ibv_wc_read_wc_flags(ex) & IBV_WC_WITH_IMM);
				EXPECT_EQ(ibv_wc_read_qp_num(ex), p.b.num());
			} else {
				sent++;
				EXPECT_EQ(ex->wr_id, 8u);
				EXPECT_EQ(ibv_wc_read_qp_num(ex), p.a.num());
			}
		} while (ibv_next_poll(ex) == 0);
		ibv_end_poll(ex);
	}
	EXPECT_EQ(received, 1);
	EXPECT_EQ(sent, 1);
	p.a.qp.reset();
	p.b.qp.reset();
}

TEST_F(CqTest, ExtendedCreateRefusesUnknownFlags)
{
	ibv_cq_init_attr_ex init{};

	init.cqe = 16;
	init.wc_flags = 1ull << 40;
	EXPECT_EQ(ibv_create_cq_ex(dev, &init), nullptr);
	init.wc_flags = IBV_WC_STANDARD_FLAGS;
	init.comp_mask = 1u << 20;
	EXPECT_EQ(ibv_create_cq_ex(dev, &init), nullptr);
}
