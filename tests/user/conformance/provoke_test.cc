/* SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB */
/*
 * Asynchronous events on purpose (docs/events.md; CASES 54): each event of a QP, a CQ and an SRQ, once, on the right
 * element, with its side effects; what is refused; and objects that come and go meanwhile. The port's and the device's
 * are in port_event_test.cc, the natural causes in natural_event_test.cc.
 */
#include "control.h"
#include "pair.h"

#include <atomic>
#include <map>

#include <poll.h>

using namespace conformance;

class Provoke : public RcTest {
protected:
	void SetUp() override
	{
		if (!CqControl::available(dev))
			GTEST_SKIP() << "this device's events cannot be provoked";
	}

	/* b receives through the SRQ */
	Pair srq_pair(ibv_srq *srq, const QpOptions &a = {})
	{
		QpOptions b;

		b.srq = srq;
		return Pair(dev, pd, a, b, Path());
	}

	/* Events of one kind, one for each of these elements, in any order. */
	void expect_each(ibv_event_type type, std::set<const void *> elements)
	{
		while (!elements.empty()) {
			auto got = next_async(dev, patience());

			ASSERT_TRUE(got) << "no event came; expected " << ibv_event_type_str(type);
			EXPECT_STREQ(ibv_event_type_str(got->type), ibv_event_type_str(type));
			EXPECT_EQ(elements.erase(got->element), 1u) << "an element twice, or an unknown one";
		}
	}

	/* An event is there; nobody has acked it. */
	ibv_async_event get()
	{
		ibv_async_event event{};

		require(readable(dev.ctx->async_fd, patience()), "no event");
		require_ok(ibv_get_async_event(dev, &event), "ibv_get_async_event");
		return event;
	}

	/* CASES 43: destroy() returns only once the event got is acked. */
	template <class F> void expect_waits_for_ack(ibv_async_event event, F destroy)
	{
		std::atomic<bool> done{false};
		auto t = worker([&] {
			EXPECT_EQ(destroy(), 0);
			done = true;
		});

		std::this_thread::sleep_for(quiet());
		EXPECT_FALSE(done) << "destroyed before the ack";
		ibv_ack_async_event(&event);
		t.join();
	}
};

/* ------------------------------------------------------------------ QPs -- */

struct QpRow {
	const char *name;
	ibv_event_type type;
	ibv_qp_state after;
	const char *text; /* ibv_event_type_str() */
};

const QpRow kQpRows[] = {
	{"qp-fatal", IBV_EVENT_QP_FATAL, IBV_QPS_ERR, "local work queue catastrophic error"},
	{"qp-req-err", IBV_EVENT_QP_REQ_ERR, IBV_QPS_ERR, "invalid request local work queue error"},
	{"qp-access-err", IBV_EVENT_QP_ACCESS_ERR, IBV_QPS_ERR, "local access violation work queue error"},
	{"comm-est", IBV_EVENT_COMM_EST, IBV_QPS_RTS, "communication established"},
	{"sq-drained", IBV_EVENT_SQ_DRAINED, IBV_QPS_SQD, "send queue drained"},
	{"path-mig", IBV_EVENT_PATH_MIG, IBV_QPS_RTS, "path migrated"},
	{"path-mig-err", IBV_EVENT_PATH_MIG_ERR, IBV_QPS_RTS, "path migration request error"},
};

/* One event, on its QP, whose state is what the event's natural cause leaves; the peer is not concerned. */
TEST_F(Provoke, Cases54_EveryQpEvent)
{
	for (const QpRow &row : kQpRows) {
		SCOPED_TRACE(row.name);
		Pair p = make_pair();

		recv(p.a, p.a.mem, 0, 64, 1);
		recv(p.a, p.a.mem, 0, 64, 2);
		EXPECT_STREQ(ibv_event_type_str(row.type), row.text);
		provoke(dev, row.name, p.a.num());
		expect_async(dev, row.type, p.a.qp.get());
		EXPECT_EQ(state_of(p.a), row.after);
		EXPECT_EQ(state_of(p.b), IBV_QPS_RTS);
		if (row.after == IBV_QPS_ERR) {
			expect_wc(p.a.rcq, IBV_WC_WR_FLUSH_ERR, 1);
			expect_wc(p.a.rcq, IBV_WC_WR_FLUSH_ERR, 2);
		}
		expect_empty(p.a.rcq);
		expect_no_async(dev, Millis(20));
		EXPECT_EQ(qp_row(dev, p.a.num()).at("events"), "1");
	}
}

/* What is in flight is flushed as by any error, all of it, in order (rule C13). */
TEST_F(Provoke, ErrorsFlushWhatIsInFlight)
{
	for (const char *name : {"qp-fatal", "qp-req-err", "qp-access-err"}) {
		SCOPED_TRACE(name);
		Pair p = make_pair();

		/* no receive WR: they wait */
		for (int i = 0; i < 20; i++)
			Send(IBV_WR_SEND, i).from(p.a.mem, 0, 8).post(p.a);
		provoke(dev, name, p.a.num());
		for (int i = 0; i < 20; i++)
			expect_wc(p.a.scq, IBV_WC_WR_FLUSH_ERR, i);
		ASSERT_TRUE(next_async(dev, patience()));
		/* posted now, it is flushed, too; and reset makes it as new */
		Send(IBV_WR_SEND, 99).from(p.a.mem, 0, 8).post(p.a);
		expect_wc(p.a.scq, IBV_WC_WR_FLUSH_ERR, 99);
		modify(p.a, IBV_QPS_RESET);
		modify(p.b, IBV_QPS_RESET);
		p.connect(dev, {});
		Send(IBV_WR_RDMA_WRITE, 5).from(p.a.mem, 0, 8).to(p.b.mem).post(p.a);
		expect_ok(p.a.scq, 5);
		provoke(dev, name, p.a.num());
		ASSERT_TRUE(next_async(dev, patience())) << "a new stay in the error state is a new cause";
	}
}

/* The one of a QP that has an SRQ: it goes to ERR, and the event comes after its last completion. */
TEST_F(Provoke, Cases54_LastWqeReached)
{
	Srq srq = make_srq(pd, 16);
	Pair p = srq_pair(srq);
	Region mem(pd, 4096);

	srq_recv(srq, mem, 0, 64, 7);
	Send(IBV_WR_SEND, 1).from(p.a.mem, 0, 8).post(p.a);
	expect_ok(p.a.scq, 1);
	provoke(dev, "qp-last-wqe-reached", p.b.num());
	expect_async(dev, IBV_EVENT_QP_LAST_WQE_REACHED, p.b.qp.get());
	ibv_wc wc{};
	ASSERT_EQ(ibv_poll_cq(p.b.rcq, 1, &wc), 1) << "the event came before the last completion";
	EXPECT_EQ(wc.wr_id, 7u);
	EXPECT_EQ(state_of(p.b), IBV_QPS_ERR);
	expect_no_async(dev);
	EXPECT_EQ(try_provoke(dev, "qp-last-wqe-reached", p.b.num()), EINVAL);
	EXPECT_EQ(try_provoke(dev, "qp-last-wqe-reached", p.a.num()), EINVAL) << "this one has no SRQ";
	expect_no_async(dev, Millis(20));
}

/* As after a modify that asks for it: after the completion of what was started; and again in SQD. */
TEST_F(Provoke, SqDrainedWaitsForWhatWasStarted)
{
	Pair p = make_pair();

	Send(IBV_WR_SEND, 1).from(p.a.mem, 0, 8).post(p.a);
	provoke(dev, "sq-drained", p.a.num());
	expect_no_async(dev);
	recv(p.b, p.b.mem, 0, 64, 2);
	expect_async(dev, IBV_EVENT_SQ_DRAINED, p.a.qp.get());
	ibv_wc wc{};
	ASSERT_EQ(ibv_poll_cq(p.a.scq, 1, &wc), 1) << "drained before the completion";
	EXPECT_EQ(wc.status, IBV_WC_SUCCESS);
	EXPECT_EQ(qp_row(dev, p.a.num()).at("sq_state"), "drained");
	provoke(dev, "sq-drained", p.a.num());
	expect_async(dev, IBV_EVENT_SQ_DRAINED, p.a.qp.get());
	expect_no_async(dev, Millis(20));
	modify(p.a, IBV_QPS_RTS);
	Send(IBV_WR_RDMA_WRITE, 3).from(p.a.mem, 0, 8).to(p.b.mem).post(p.a);
	expect_ok(p.a.scq, 3);
}

/* ---------------------------------------------------------- CQs and SRQs -- */

/* As an overrun (rule C11): CQ_ERR first, then QP_FATAL on every QP attached; what is in it can be polled. */
TEST_F(Provoke, Cases54_CqError)
{
	Cq cq = make_cq(dev, 61);
	QpOptions o;

	o.send_cq = cq;
	Pair p(dev, pd, o, QpOptions(), {});
	End idle(dev, pd, o);
	CqControl control(dev, cq);

	Send(IBV_WR_RDMA_WRITE, 1).from(p.a.mem, 0, 8).to(p.b.mem).post(p.a);
	while (control.number("unpolled") == 0)
		std::this_thread::yield();
	provoke(dev, "cq-err", control.cqn());
	EXPECT_STREQ(ibv_event_type_str(IBV_EVENT_CQ_ERR), "CQ error");
	expect_async(dev, IBV_EVENT_CQ_ERR, cq.get());
	expect_each(IBV_EVENT_QP_FATAL, {p.a.qp.get(), idle.qp.get()});
	expect_no_async(dev);
	EXPECT_EQ(state_of(p.a), IBV_QPS_ERR);
	EXPECT_EQ(state_of(idle), IBV_QPS_ERR);
	EXPECT_EQ(state_of(p.b), IBV_QPS_RTS);
	expect_ok(cq, 1);
	ibv_wc wc{};
	EXPECT_LT(ibv_poll_cq(cq, 1, &wc), 0);
	EXPECT_EQ(control.row().at("state"), "dead");
	EXPECT_EQ(try_provoke(dev, "cq-err", control.cqn()), EINVAL) << "it is dead already";
	expect_no_async(dev, Millis(20));
}

/* The queue is dead, as with a corrupt ring: whoever receives from it next fails. */
TEST_F(Provoke, Cases54_SrqError)
{
	Srq srq = make_srq(pd, 16);
	Pair p = srq_pair(srq);
	Region mem(pd, 4096);
	const uint32_t srqn = srq_number(dev);

	srq_recv(srq, mem, 0, 64, 1);
	EXPECT_EQ(own_rows(dev, "srqs").at(0).at("posted"), "1");
	EXPECT_STREQ(ibv_event_type_str(IBV_EVENT_SRQ_ERR), "SRQ catastrophic error");
	provoke(dev, "srq-err", srqn);
	expect_async(dev, IBV_EVENT_SRQ_ERR, srq.get());
	expect_no_async(dev);
	EXPECT_EQ(state_of(p.b), IBV_QPS_RTS);
	EXPECT_EQ(try_provoke(dev, "srq-err", srqn), EINVAL) << "it is dead already";

	Send(IBV_WR_SEND, 2).from(p.a.mem, 0, 8).post(p.a);
	expect_wc(p.a.scq, IBV_WC_REM_OP_ERR, 2);
	EXPECT_EQ(state_of(p.b), IBV_QPS_ERR);
	std::map<ibv_event_type, int> got;
	for (int i = 0; i < 2; i++) {
		auto event = next_async(dev, patience());
		ASSERT_TRUE(event);
		EXPECT_EQ(event->element, p.b.qp.get());
		got[event->type]++;
	}
	EXPECT_EQ(got[IBV_EVENT_QP_FATAL], 1);
	EXPECT_EQ(got[IBV_EVENT_QP_LAST_WQE_REACHED], 1);
	expect_no_async(dev, Millis(20));
}

/* It uses up the limit if one is armed; if none is, it is the event alone. */
TEST_F(Provoke, Cases54_SrqLimitReached)
{
	Srq srq = make_srq(pd, 16);
	Region mem(pd, 4096);
	ibv_srq_attr attr{};
	const uint32_t srqn = srq_number(dev);

	for (int i = 0; i < 8; i++)
		srq_recv(srq, mem, 0, 64, i);
	attr.srq_limit = 4;
	ASSERT_EQ(ibv_modify_srq(srq, &attr, IBV_SRQ_LIMIT), 0);
	EXPECT_STREQ(ibv_event_type_str(IBV_EVENT_SRQ_LIMIT_REACHED), "SRQ limit reached");
	for (int i = 1; i <= 2; i++) {
		provoke(dev, "srq-limit-reached", srqn);
		expect_async(dev, IBV_EVENT_SRQ_LIMIT_REACHED, srq.get());
		ASSERT_EQ(ibv_query_srq(srq, &attr), 0);
		EXPECT_EQ(attr.srq_limit, 0u);
		EXPECT_EQ(own_rows(dev, "srqs").at(0).at("events"), std::to_string(i));
	}
	expect_no_async(dev);
	/* the queue itself is well */
	Pair p = srq_pair(srq);
	Send(IBV_WR_SEND, 2).from(p.a.mem, 0, 8).post(p.a);
	expect_ok(p.b.rcq, 0);
}

/* CASES 43, of each kind of object: destroy waits for the ack of what was got. */
TEST_F(Provoke, Cases43_QpWaitsForItsAck)
{
	Pair p = make_pair();

	provoke(dev, "comm-est", p.a.num());
	ibv_async_event event = get();
	EXPECT_EQ(event.element.qp, p.a.qp.get());
	expect_waits_for_ack(event, [&] { return p.a.qp.destroy(); });
}

TEST_F(Provoke, Cases43_CqWaitsForItsAck)
{
	Cq cq = make_cq(dev, 62), other = make_cq(dev, 63);

	provoke(dev, "cq-err", CqControl(dev, cq).cqn());
	ibv_async_event event = get();
	EXPECT_EQ(event.element.cq, cq.get());
	provoke(dev, "cq-err", CqControl(dev, other).cqn());
	expect_async(dev, IBV_EVENT_CQ_ERR, other.get());
	expect_waits_for_ack(event, [&] { return cq.destroy(); });
}

TEST_F(Provoke, Cases43_SrqWaitsForItsAck)
{
	Srq srq = make_srq(pd, 16);

	provoke(dev, "srq-limit-reached", srq_number(dev));
	ibv_async_event event = get();
	EXPECT_EQ(event.element.srq, srq.get());
	expect_waits_for_ack(event, [&] { return srq.destroy(); });
}

/* Unread, they vanish with their object. */
TEST_F(Provoke, UnreadEventsVanish)
{
	{
		Srq srq = make_srq(pd, 16);
		Cq cq = make_cq(dev, 62);
		Pair p = make_pair();

		provoke(dev, "srq-err", srq_number(dev));
		provoke(dev, "cq-err", CqControl(dev, cq).cqn());
		provoke(dev, "path-mig", p.a.num());
		provoke(dev, "comm-est", p.a.num());
		ASSERT_TRUE(readable(dev.ctx->async_fd, patience()));
	}
	expect_no_async(dev, Millis(20));
}

/* ------------------------------------------------------------- refusals -- */

TEST_F(Provoke, WhatIsRefused)
{
	Pair p = make_pair();
	End fresh(dev, pd);
	const std::string qpn = std::to_string(p.a.num());

	/* no such object; a CQ's number is no QP's */
	EXPECT_EQ(try_provoke(dev, "qp-fatal", 0xfffffff), ENOENT);
	EXPECT_EQ(try_provoke(dev, "qp-fatal", 0), ENOENT);
	EXPECT_EQ(try_provoke(dev, "cq-err", 0xfffffff), ENOENT);
	EXPECT_EQ(try_provoke(dev, "srq-err", 0xfffffff), ENOENT);
	EXPECT_EQ(try_provoke(dev, "srq-limit-reached", 0xfffffff), ENOENT);
	/* there are no work queues */
	EXPECT_EQ(try_provoke(dev, "wq-fatal", 1), EOPNOTSUPP);
	EXPECT_EQ(try_provoke(dev, "wq-fatal"), EOPNOTSUPP);
	/* not understood */
	const std::vector<std::string> nonsense = {
		"provoke",
		"provoke ",
		"provoke qp-fatal",
		"provoke QP-FATAL " + qpn,
		"provoke qp-fatal -1",
		"provoke qp-fatal " + qpn + "x",
		"provoke qp-fatal " + qpn + " 1",
		"provoke qp-fatal 4294967296",
		"provoke  qp-fatal " + qpn,
		"provoke lid-change 1",
		"provoke qp_fatal " + qpn,
		"provoke ? 1",
		"provoked qp-fatal " + qpn,
	};
	for (const std::string &line : nonsense)
		EXPECT_EQ(try_control(dev, line), EINVAL) << line;
	/* not in this state */
	EXPECT_EQ(try_provoke(dev, "sq-drained", fresh.num()), EINVAL);
	expect_no_async(dev, Millis(20));
	EXPECT_EQ(state_of(p.a), IBV_QPS_RTS);
	provoke(dev, "qp-fatal", p.a.num());
	expect_async(dev, IBV_EVENT_QP_FATAL, p.a.qp.get());
	for (const char *name : {"qp-fatal", "qp-req-err", "qp-access-err", "sq-drained"})
		EXPECT_EQ(try_provoke(dev, name, p.a.num()), EINVAL) << name;
	expect_no_async(dev);
}

/* A QP that has gone, by number. */
TEST_F(Provoke, GoneIsGone)
{
	uint32_t qpn;
	{
		Pair p = make_pair();
		qpn = p.a.num();
	}
	EXPECT_EQ(try_provoke(dev, "qp-fatal", qpn), ENOENT);
}

/* Nothing happens without leave. */
TEST_F(Provoke, NeedsLeave)
{
	struct Revoked {
		explicit Revoked(std::string path) : path(std::move(path))
		{
			require_ok(write_line(this->path, "0"), this->path);
		}
		~Revoked() { EXPECT_EQ(write_line(path, "1"), 0); }
		std::string path;
	};
	Pair p = make_pair();
	Cq cq = make_cq(dev, 62);
	CqControl control(dev, cq);
	const std::string allow = control_dir(dev) + "/allow";

	{
		Revoked revoked(allow);

		EXPECT_EQ(try_provoke(dev, "qp-fatal", p.a.num()), EPERM);
		EXPECT_EQ(try_provoke(dev, "port-err"), EPERM);
		EXPECT_EQ(try_provoke(dev, "device-fatal"), EPERM);
		EXPECT_EQ(control.try_do("hold"), EPERM);
		EXPECT_EQ(try_control(dev, "nonsense"), EPERM);
		expect_no_async(dev);
		EXPECT_EQ(state_of(p.a), IBV_QPS_RTS);
		ibv_port_attr port{};
		ASSERT_EQ(ibv_query_port(dev, 1, &port), 0);
		EXPECT_EQ(port.state, IBV_PORT_ACTIVE);
		/* it may still be looked at */
		EXPECT_EQ(qp_row(dev, p.a.num()).at("state"), "RTS");
	}
	EXPECT_EQ(write_line(allow, "2"), EINVAL);
	EXPECT_NE(write_line(allow, "x"), 0);
	provoke(dev, "qp-fatal", p.a.num());
	expect_async(dev, IBV_EVENT_QP_FATAL, p.a.qp.get());
}

/* ---------------------------------------------------------------- tables -- */

/* The table says of a QP what it is. */
TEST_F(Provoke, TableOfQps)
{
	Srq srq = make_srq(pd, 16);
	Cq send_cq = make_cq(dev, 61);
	QpOptions a;
	a.send_cq = send_cq;
	Pair p = srq_pair(srq, a);
	const auto ra = qp_row(dev, p.a.num()), rb = qp_row(dev, p.b.num());

	EXPECT_EQ(ra.at("type"), "RC");
	EXPECT_EQ(ra.at("state"), "RTS");
	EXPECT_EQ(ra.at("sq_state"), "-");
	EXPECT_EQ(ra.at("scqn"), std::to_string(CqControl(dev, send_cq).cqn()));
	EXPECT_EQ(ra.at("srqn"), "-");
	EXPECT_EQ(ra.at("events"), "0");
	EXPECT_EQ(rb.at("srqn"), std::to_string(srq_number(dev)));
	EXPECT_EQ(own_rows(dev, "qps").size(), 2u);
	UdEnd ud(dev, pd);
	EXPECT_EQ(qp_row(dev, ud.num()).at("type"), "UD");
}
