/* SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB */
/* Faults on purpose (docs/faults.md): receive queues that look empty, and WRs that end as they are told to. */
#include "fault.h"

using namespace conformance;

/* -------------------------------------------------------------- RNR, by QP -- */

/* The next N requests that need a receive WR find none: N RNR NAKs, then it goes through, in order. */
TEST_F(FaultTest, RnrSoManyTimes)
{
	Path path;
	path.rnr_retry = 6;
	Pair p = make_pair({}, path);
	const uint64_t before = counter("rnr_sent");

	recv(p.b, p.b.mem, 0, 64, 10);
	recv(p.b, p.b.mem, 64, 64, 11);
	fault("rnr " + qpn(p.b) + " 5");
	p.a.mem.fill(1, 0, 64);
	/* needs none: is not concerned */
	Send(IBV_WR_RDMA_WRITE, 1).from(p.a.mem, 0, 8).to(p.b.mem, 4096).post(p.a);
	expect_ok(p.a.scq, 1);
	EXPECT_EQ(counter("rnr_sent"), before);
	Send(IBV_WR_SEND, 2).from(p.a.mem, 0, 64).post(p.a);
	Send(IBV_WR_SEND, 3).from(p.a.mem, 0, 64).post(p.a);
	expect_ok(p.a.scq, 2);
	expect_ok(p.a.scq, 3);
	expect_ok(p.b.rcq, 10);
	expect_ok(p.b.rcq, 11);
	EXPECT_EQ(counter("rnr_sent") - before, 5u);
	EXPECT_EQ(differs(p.a.mem.data(), p.b.mem.data(), 64), -1);
	EXPECT_EQ(the_fault().at("left"), "0");
	EXPECT_EQ(the_fault().at("struck"), "5");
}

/* More often than the QP retries: the status that says so, and the receive WR stays where it is. */
TEST_F(FaultTest, RnrUntilTheRetriesAreUsedUp)
{
	Path path;
	path.rnr_retry = 2;
	Pair p = make_pair({}, path);

	recv(p.b, p.b.mem, 0, 64, 10);
	fault("rnr " + qpn(p.b) + " 1000");
	Send(IBV_WR_SEND, 1).from(p.a.mem, 0, 8).post(p.a);
	expect_wc(p.a.scq, IBV_WC_RNR_RETRY_EXC_ERR, 1);
	EXPECT_EQ(state_of(p.a), IBV_QPS_ERR);
	EXPECT_EQ(state_of(p.b), IBV_QPS_RTS);
	EXPECT_EQ(the_fault().at("struck"), "3");
	expect_empty(p.b.rcq);
}

/* A datagram that finds no receive WR is dropped. */
TEST_F(FaultTest, RnrDropsDatagrams)
{
	UdEnd a(dev, pd), b(dev, pd);
	const uint64_t before = counter("ud_dropped_no_recv");

	recv(b, b.mem, 0, 256, 10);
	fault("rnr " + qpn(b) + " 1");
	for (int i = 1; i <= 2; i++) {
		Send(IBV_WR_SEND, i).from(a.mem, 0, 64).ud(a.self, b.num(), b.qkey).imm(i).post(a);
		expect_ok(a.scq, i);
	}
	expect_ok(b.rcq, 10);
	expect_stays_empty(b.rcq, Millis(20));
	EXPECT_EQ(counter("ud_dropped_no_recv") - before, 1u);
}

/* ------------------------------------------------------- WRs, by their status -- */

struct StatusRow {
	const char *name;
	ibv_wc_status status;
	bool peer_stops;
	std::optional<ibv_event_type> event;    /* the peer's */
	std::optional<ibv_wc_status> recv_with; /* what the peer's receive WR is completed with before the flushes */
};

const StatusRow kStatusRows[] = {
	{"loc-len-err", IBV_WC_LOC_LEN_ERR, false, {}, {}},
	{"loc-qp-op-err", IBV_WC_LOC_QP_OP_ERR, false, {}, {}},
	{"loc-eec-op-err", IBV_WC_LOC_EEC_OP_ERR, false, {}, {}},
	{"loc-prot-err", IBV_WC_LOC_PROT_ERR, false, {}, {}},
	{"mw-bind-err", IBV_WC_MW_BIND_ERR, false, {}, {}},
	{"bad-resp-err", IBV_WC_BAD_RESP_ERR, false, {}, {}},
	{"loc-access-err", IBV_WC_LOC_ACCESS_ERR, false, {}, {}},
	{"rem-inv-req-err", IBV_WC_REM_INV_REQ_ERR, true, IBV_EVENT_QP_REQ_ERR, {}},
	{"rem-access-err", IBV_WC_REM_ACCESS_ERR, true, IBV_EVENT_QP_ACCESS_ERR, {}},
	{"rem-op-err", IBV_WC_REM_OP_ERR, true, {}, IBV_WC_LOC_PROT_ERR},
	{"retry-exc-err", IBV_WC_RETRY_EXC_ERR, false, {}, {}},
	{"rnr-retry-exc-err", IBV_WC_RNR_RETRY_EXC_ERR, false, {}, {}},
	{"loc-rdd-viol-err", IBV_WC_LOC_RDD_VIOL_ERR, false, {}, {}},
	{"rem-inv-rd-req-err", IBV_WC_REM_INV_RD_REQ_ERR, false, {}, {}},
	{"rem-abort-err", IBV_WC_REM_ABORT_ERR, false, {}, {}},
	{"inv-eecn-err", IBV_WC_INV_EECN_ERR, false, {}, {}},
	{"inv-eec-state-err", IBV_WC_INV_EEC_STATE_ERR, false, {}, {}},
	{"fatal-err", IBV_WC_FATAL_ERR, false, {}, {}},
	{"resp-timeout-err", IBV_WC_RESP_TIMEOUT_ERR, false, {}, {}},
	{"general-err", IBV_WC_GENERAL_ERR, false, {}, {}},
};

/* Exactly the Nth, with this status; the QP in ERR, the rest flushed in order (C13); the peer as if it had been so. */
TEST_F(FaultTest, StatusOfTheNthWr)
{
	for (const StatusRow &row : kStatusRows) {
		SCOPED_TRACE(row.name);
		Pair p = make_pair();

		for (int i = 10; i < 14; i++)
			recv(p.b, p.b.mem, 0, 64, i);
		fault("wr " + qpn(p.a) + " 3 " + row.name);
		for (int i = 1; i <= 4; i++)
			Send(IBV_WR_SEND, i).from(p.a.mem, 0, 8).post(p.a);
		expect_ok(p.a.scq, 1);
		expect_ok(p.a.scq, 2);
		expect_wc(p.a.scq, row.status, 3);
		expect_wc(p.a.scq, IBV_WC_WR_FLUSH_ERR, 4);
		EXPECT_EQ(state_of(p.a), IBV_QPS_ERR);
		expect_ok(p.b.rcq, 10);
		expect_ok(p.b.rcq, 11);
		if (row.recv_with)
			expect_wc(p.b.rcq, *row.recv_with, 12);
		else if (row.peer_stops)
			expect_wc(p.b.rcq, IBV_WC_WR_FLUSH_ERR, 12);
		if (row.peer_stops)
			expect_wc(p.b.rcq, IBV_WC_WR_FLUSH_ERR, 13);
		expect_state(p.b, row.peer_stops ? IBV_QPS_ERR : IBV_QPS_RTS);
		expect_empty(p.b.rcq);
		if (row.event)
			expect_async(dev, *row.event, p.b.qp.get());
		expect_no_async(dev, Millis(20));
		EXPECT_EQ(the_fault().at("struck"), "1");
		fault("clear");
	}
}

/* What needs no receive WR: nothing is written, and a remote operation error is the peer's own fatal error. */
TEST_F(FaultTest, StatusOfAWrite)
{
	struct {
		const char *name;
		ibv_wc_status status;
		ibv_event_type event;
	} rows[] = {{"rem-op-err", IBV_WC_REM_OP_ERR, IBV_EVENT_QP_FATAL},
		    {"rem-access-err", IBV_WC_REM_ACCESS_ERR, IBV_EVENT_QP_ACCESS_ERR}};

	for (auto &row : rows) {
		Pair p = make_pair();

		p.a.mem.fill(7);
		fault("wr " + qpn(p.a) + " 1 " + row.name);
		/* a completion in error is there whether it was asked for or not */
		Send(IBV_WR_RDMA_WRITE, 1).from(p.a.mem, 0, 65536).to(p.b.mem).unsignaled().post(p.a);
		expect_wc(p.a.scq, row.status, 1);
		EXPECT_TRUE(all_bytes(p.b.mem.data(), 65536, 0));
		expect_state(p.b, IBV_QPS_ERR);
		expect_async(dev, row.event, p.b.qp.get());
		expect_no_async(dev, Millis(20));
	}
}

/* Without acknowledgements nobody is told: the send queue alone is in error (SQE), the peer is well. */
TEST_F(FaultTest, StatusWithoutConnection)
{
	UdEnd a(dev, pd), b(dev, pd);

	recv(b, b.mem, 0, 256, 10);
	for (const char *name : {"loc-qp-op-err", "rem-access-err"}) {
		fault("wr " + qpn(a) + " 1 " + name);
		Send(IBV_WR_SEND, 1).from(a.mem, 0, 64).ud(a.self, b.num(), b.qkey).post(a);
		const ibv_wc wc = poll_one(a.scq);
		EXPECT_NE(wc.status, IBV_WC_SUCCESS);
		EXPECT_EQ(state_of(a), IBV_QPS_SQE);
		modify(a, IBV_QPS_RTS);
	}
	expect_empty(b.rcq);
	Send(IBV_WR_SEND, 2).from(a.mem, 0, 64).ud(a.self, b.num(), b.qkey).post(a);
	expect_ok(a.scq, 2);
	expect_ok(b.rcq, 10);
	expect_no_async(dev, Millis(20));
}

/* WRs that are flushed are not among those that are counted. */
TEST_F(FaultTest, FlushedWrsDoNotCount)
{
	Pair p = make_pair();

	fault("wr " + qpn(p.a) + " 2 general-err");
	to_error(p.a);
	for (int i = 1; i <= 3; i++) {
		Send(IBV_WR_RDMA_WRITE, i).from(p.a.mem, 0, 8).to(p.b.mem).post(p.a);
		expect_wc(p.a.scq, IBV_WC_WR_FLUSH_ERR, i);
	}
	EXPECT_EQ(the_fault().at("seen"), "0");
}

struct RecvRow {
	const char *name;
	ibv_wc_status recv_with, send_with;
	std::optional<ibv_event_type> event;
};

/* Exactly the Nth receive WR that is taken, of the queue of its own and of a shared one. */
TEST_F(FaultTest, StatusOfTheNthReceive)
{
	const RecvRow rows[] = {
		{"loc-len-err", IBV_WC_LOC_LEN_ERR, IBV_WC_REM_INV_REQ_ERR, {}},
		{"loc-prot-err", IBV_WC_LOC_PROT_ERR, IBV_WC_REM_OP_ERR, {}},
		{"loc-access-err", IBV_WC_LOC_ACCESS_ERR, IBV_WC_REM_ACCESS_ERR, IBV_EVENT_QP_ACCESS_ERR},
		{"rem-inv-req-err", IBV_WC_REM_INV_REQ_ERR, IBV_WC_REM_ACCESS_ERR, {}},
	};

	for (const RecvRow &row : rows) {
		SCOPED_TRACE(row.name);
		Pair p = make_pair();

		for (int i = 10; i < 13; i++)
			recv(p.b, p.b.mem, 0, 64, i);
		fault("recv " + qpn(p.b) + " 2 " + row.name);
		for (int i = 1; i <= 3; i++)
			Send(IBV_WR_SEND, i).from(p.a.mem, 0, 8).post(p.a);
		expect_ok(p.a.scq, 1);
		expect_wc(p.a.scq, row.send_with, 2);
		expect_wc(p.a.scq, IBV_WC_WR_FLUSH_ERR, 3);
		expect_ok(p.b.rcq, 10);
		expect_wc(p.b.rcq, row.recv_with, 11);
		expect_wc(p.b.rcq, IBV_WC_WR_FLUSH_ERR, 12);
		expect_state(p.b, IBV_QPS_ERR);
		if (row.event)
			expect_async(dev, *row.event, p.b.qp.get());
		expect_no_async(dev, Millis(20));
		fault("clear");
	}
}

TEST_F(FaultTest, StatusOfASharedReceive)
{
	Srq srq = make_srq(pd, 8);
	QpOptions with;
	with.srq = srq;
	Pair p(dev, pd, QpOptions(), with, Path());

	srq_recv(srq, p.b.mem, 0, 64, 10);
	fault("recv " + qpn(p.b) + " 1 loc-prot-err");
	Send(IBV_WR_SEND, 1).from(p.a.mem, 0, 8).post(p.a);
	expect_wc(p.a.scq, IBV_WC_REM_OP_ERR, 1);
	expect_wc(p.b.rcq, IBV_WC_LOC_PROT_ERR, 10);
	expect_async(dev, IBV_EVENT_QP_LAST_WQE_REACHED, p.b.qp.get());
}
