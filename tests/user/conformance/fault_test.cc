/* SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB */
/*
 * Faults on purpose (docs/faults.md): receive queues that look empty, WRs that end as they are told to, verbs that fail. What
 * happens to messages on their way is in fault_message_test.cc.
 */
#include "fault.h"

using namespace conformance;

class FaultTest : public FaultRcTest {
protected:
	int try_fault(const std::string &what) { return try_control(dev, "fault " + what); }
	void fault(const std::string &what) { require_ok(try_fault(what), "fault " + what); }
};

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

/* ------------------------------------------------------------------- verbs -- */

/* Exactly the Nth call, with this errno; before and after it, it works. Nothing is left behind by what failed. */
template <class F> void expect_nth_fails(FaultRcTest &test, const Device &dev, const std::string &verb, F call)
{
	SCOPED_TRACE(verb);
	require_ok(try_control(dev, "fault verb " + verb + " 2 EBUSY"), verb);
	EXPECT_EQ(call(), 0) << "the first";
	EXPECT_EQ(call(), EBUSY) << "the second";
	EXPECT_EQ(call(), 0) << "the third";
	require_ok(try_control(dev, "fault verb " + verb + " 1 77 times 2"), verb);
	EXPECT_EQ(call(), 77);
	EXPECT_EQ(call(), 77);
	EXPECT_EQ(call(), 0);
	test.expect_all_over();
	require_ok(try_control(dev, "fault clear"), "clear");
	EXPECT_EQ(call(), 0);
}

/* 0 or errno of a function that makes an object */
template <class T, class F> int make(F f)
{
	errno = 0;
	T object(f());
	return object.get() ? 0 : errno;
}

TEST_F(FaultTest, CreateVerbs)
{
	Cq cq = make_cq(dev, 16);
	Region mem(pd, 4096);
	const ibv_gid gid = dev.gid(dev.gid_index());

	expect_nth_fails(*this, dev, "alloc-pd", [&] { return make<Pd>([&] { return ibv_alloc_pd(dev); }); });
	expect_nth_fails(*this, dev, "create-cq",
			 [&] { return make<Cq>([&] { return ibv_create_cq(dev, 8, nullptr, nullptr, 0); }); });
	expect_nth_fails(*this, dev, "create-srq", [&] {
		ibv_srq_init_attr init{};
		init.attr.max_wr = 4;
		init.attr.max_sge = 1;
		return make<Srq>([&] { return ibv_create_srq(pd, &init); });
	});
	expect_nth_fails(*this, dev, "create-qp", [&] {
		ibv_qp_init_attr init{};
		init.send_cq = init.recv_cq = cq;
		init.cap = {4, 4, 1, 1, 0};
		init.qp_type = IBV_QPT_RC;
		return make<Qp>([&] { return ibv_create_qp(pd, &init); });
	});
	expect_nth_fails(*this, dev, "reg-mr", [&] {
		return make<Mr>([&] { return ibv_reg_mr(pd, mem.data(), 4096, IBV_ACCESS_LOCAL_WRITE); });
	});
	expect_nth_fails(*this, dev, "create-ah", [&] {
		ibv_ah_attr attr{};
		attr.is_global = 1;
		attr.grh.dgid = gid;
		attr.grh.sgid_index = static_cast<uint8_t>(dev.gid_index());
		attr.grh.hop_limit = 4;
		attr.port_num = 1;
		return make<Ah>([&] { return ibv_create_ah(pd, &attr); });
	});
}

/* The QP stays as it was. */
TEST_F(FaultTest, ModifyQp)
{
	End end(dev, pd);
	const Attr init = init_attr(IBV_QPT_RC, Path());

	expect_nth_fails(*this, dev, "modify-qp", [&] {
		const ibv_qp_state before = state_of(end);
		const int error = try_modify(end, before == IBV_QPS_RESET ? init : state_attr(IBV_QPS_RESET));

		EXPECT_EQ(state_of(end) != before, error == 0);
		return error;
	});
	/* a reset that fails leaves the rings alone, too */
	Pair p = make_pair();
	recv(p.b, p.b.mem, 0, 64, 10);
	fault("verb modify-qp 1 ENOMEM");
	EXPECT_EQ(try_modify(p.b, state_attr(IBV_QPS_RESET)), ENOMEM);
	Send(IBV_WR_SEND, 1).from(p.a.mem, 0, 8).post(p.a);
	expect_ok(p.a.scq, 1);
	expect_ok(p.b.rcq, 10);
}

/* The CQ keeps its size and what is in it. */
TEST_F(FaultTest, ResizeCq)
{
	Pair p = make_pair();
	int size = 100;

	Send(IBV_WR_RDMA_WRITE, 1).from(p.a.mem, 0, 8).to(p.b.mem).post(p.a);
	expect_nth_fails(*this, dev, "resize-cq", [&] {
		const int before = p.a.scq->cqe, error = code(ibv_resize_cq(p.a.scq, size));

		EXPECT_EQ(p.a.scq->cqe, error ? before : size);
		size++;
		return error;
	});
	expect_ok(p.a.scq, 1);
}

/* A post that fails names the first WR, and nothing of it is ever done. */
TEST_F(FaultTest, PostSend)
{
	Pair p = make_pair();
	uint64_t id = 0, posted = 0;
	auto post = [&] {
		const int error = Send(IBV_WR_RDMA_WRITE, ++id).from(p.a.mem, 0, 8).to(p.b.mem).try_post(p.a);

		if (!error) {
			expect_ok(p.a.scq, id);
			posted++;
		}
		expect_empty(p.a.scq);
		return error;
	};

	expect_nth_fails(*this, dev, "post-send", post);
	/* of a list, all or nothing */
	Send one(IBV_WR_RDMA_WRITE, 100), two(IBV_WR_RDMA_WRITE, 101);
	ibv_send_wr *bad = nullptr;
	for (Send *s : {&one, &two}) {
		s->from(p.a.mem, 0, 8).to(p.b.mem);
		s->wr.sg_list = s->sges.data();
		s->wr.num_sge = 1;
	}
	one.wr.next = &two.wr;
	fault("verb post-send 1 ENOBUFS");
	EXPECT_EQ(code(ibv_post_send(p.a, &one.wr, &bad)), ENOBUFS);
	EXPECT_EQ(bad, &one.wr);
	EXPECT_EQ(code(ibv_post_send(p.a, &one.wr, &bad)), 0);
	expect_ok(p.a.scq, 100);
	expect_ok(p.a.scq, 101);
	expect_empty(p.a.scq);
	EXPECT_EQ(posted, 4u);
}

/* The other way to post: nothing of what is between start and complete happens. */
TEST_F(FaultTest, PostSendByWrComplete)
{
	End end(dev, pd);
	ibv_qp_init_attr_ex init{};

	init.qp_type = IBV_QPT_RC;
	init.send_cq = end.scq;
	init.recv_cq = end.rcq;
	init.cap = {8, 8, 1, 1, 0};
	init.comp_mask = IBV_QP_INIT_ATTR_PD | IBV_QP_INIT_ATTR_SEND_OPS_FLAGS;
	init.pd = pd;
	init.send_ops_flags = IBV_QP_EX_WITH_RDMA_WRITE;
	Qp qp(ibv_create_qp_ex(dev, &init));
	ASSERT_TRUE(qp.get());
	to_init(qp);
	to_init(end);
	to_rtr(dev, qp, end.num());
	to_rtr(dev, end, qp->qp_num);
	to_rts(dev, qp);
	to_rts(dev, end);

	ibv_qp_ex *ex = ibv_qp_to_qp_ex(qp);
	auto write = [&](uint64_t id) {
		ibv_wr_start(ex);
		ex->wr_id = id;
		ex->wr_flags = IBV_SEND_SIGNALED;
		ibv_wr_rdma_write(ex, end.mem.mr->rkey, end.mem.addr());
		ibv_wr_set_sge(ex, end.mem.mr->lkey, end.mem.addr(1024), 8);
		return code(ibv_wr_complete(ex));
	};
	fault("verb post-send 2 EIO");
	EXPECT_EQ(write(1), 0);
	EXPECT_EQ(write(2), EIO);
	EXPECT_EQ(write(3), 0);
	expect_ok(end.scq, 1);
	expect_ok(end.scq, 3);
	expect_empty(end.scq);
}

/* What was not posted takes no message; what was before and after it does, in order. */
TEST_F(FaultTest, PostReceives)
{
	Srq srq = make_srq(pd, 8);
	QpOptions with;
	with.srq = srq;
	Pair own = make_pair();
	Pair shared(dev, pd, QpOptions(), with, Path());

	for (Pair *p : {&own, &shared}) {
		const bool is_own = p == &own;
		uint64_t id = 0;
		std::vector<uint64_t> good;
		auto post = [&] {
			id++;
			const int error = is_own ? try_recv(p->b, {p->b.mem.sge(0, 64)}, id)
						 : try_srq_recv(srq, {p->b.mem.sge(0, 64)}, id);

			if (!error)
				good.push_back(id);
			return error;
		};

		expect_nth_fails(*this, dev, is_own ? "post-recv" : "post-srq-recv", post);
		for (uint64_t want : good) {
			Send(IBV_WR_SEND, want).from(p->a.mem, 0, 8).post(p->a);
			expect_ok(p->a.scq, want);
			expect_ok(p->b.rcq, want);
		}
		EXPECT_EQ(good.size(), 4u);
	}
}

/* QPs that are made while a fault is armed, and those that were reset, ask as well. */
TEST_F(FaultTest, PostToANewQp)
{
	fault("verb post-send 3 ENOMEM");
	Pair p = make_pair();
	auto post = [&] { return Send(IBV_WR_RDMA_WRITE, 1).from(p.a.mem, 0, 8).to(p.b.mem).try_post(p.a); };

	EXPECT_EQ(post(), 0);
	modify(p.a, IBV_QPS_RESET);
	modify(p.b, IBV_QPS_RESET);
	p.connect(dev, Path());
	EXPECT_EQ(post(), 0);
	EXPECT_EQ(post(), ENOMEM);
	EXPECT_EQ(post(), 0);
	poll_n(p.a.scq, 2);
}

/* An arm that fails arms nothing. */
TEST_F(FaultTest, ReqNotify)
{
	Channel channel = make_channel(dev);
	QpOptions options;
	options.channel = channel;
	Pair p = make_pair(options);
	auto arm_once = [&] {
		const int error = code(ibv_req_notify_cq(p.a.scq, 0));

		Send(IBV_WR_RDMA_WRITE, 1).from(p.a.mem, 0, 8).to(p.b.mem).post(p.a);
		expect_ok(p.a.scq, 1);
		if (error)
			expect_no_event(channel, Millis(20));
		else
			expect_event(channel, p.a.scq);
		return error;
	};

	expect_nth_fails(*this, dev, "req-notify", arm_once);
}

/* Another device's verbs are not concerned. */
TEST_F(FaultTest, OfThisDeviceOnly)
{
	TempLink link;
	Device other;
	const uint64_t before = counter("faults_struck");

	ASSERT_NE(other.name, dev.name);
	fault("verb alloc-pd 1 EIO");
	EXPECT_EQ(make<Pd>([&] { return ibv_alloc_pd(other); }), 0);
	EXPECT_EQ(counter("faults_struck"), before);
	EXPECT_EQ(make<Pd>([&] { return ibv_alloc_pd(dev); }), EIO);
	EXPECT_EQ(counter("faults_struck") - before, 1u);
}

/* ---------------------------------------------------------------- commands -- */

TEST_F(FaultTest, WhatIsNotUnderstood)
{
	Pair p = make_pair();
	const std::string n = qpn(p.a);
	const std::vector<std::string> nonsense = {
		"",
		"message",
		"message lose nth 0",
		"message lose nth 1 nth 2",
		"message lose nth 1 every 2",
		"message lose nth",
		"message lose  nth 1",
		"message lose permille 1001",
		"message lose every 1000000001",
		"message lose usec 5",
		"message delay",
		"message delay usec 0",
		"message delay usec 10000001",
		"message lose times 0",
		"message lose qpn 0",
		"message lose qpn 16777216",
		"message lose seed -1",
		"message overtakes",
		"message pass",
		"rnr " + n,
		"rnr " + n + " 0",
		"rnr " + n + " 1 1",
		"rnr 0 1",
		"verb create-qp 1",
		"verb create-qp 1 0",
		"verb create-qp 1 134",
		"verb create-qp 1 EWHAT",
		"verb create-qp 0 EIO",
		"verb destroy-qp 1 EIO",
		"verb create-qp 1 EIO seed 1",
		"wr " + n + " 1 success",
		"wr " + n + " 1 wr-flush-err",
		"wr " + n + " 1",
		"wr " + n + " 1 general-err 1",
		"recv " + n + " 1 retry-exc-err",
		"clear some",
		"clear 0",
		"clear 1 2",
	};

	for (const std::string &line : nonsense)
		EXPECT_EQ(try_fault(line), EINVAL) << line;
	EXPECT_EQ(try_control(dev, "fault"), EINVAL);
	EXPECT_TRUE(faults().empty());
	EXPECT_EQ(try_fault("wr 16777215 1 general-err"), ENOENT);
	EXPECT_EQ(try_fault("message lose qpn 16777215"), ENOENT);
	EXPECT_EQ(try_fault("clear 4294967295"), ENOENT);
	/* unreliable ones drop what they cannot take */
	UdEnd ud(dev, pd);
	EXPECT_EQ(try_fault("recv " + qpn(ud) + " 1 loc-len-err"), EINVAL);
	EXPECT_EQ(try_fault("recv " + qpn(ud) + " 1 loc-prot-err"), 0);
}

/* The list says what was asked for, by numbers of its own; clearing takes one, or all. */
TEST_F(FaultTest, List)
{
	Pair p = make_pair();

	fault("message delay permille 5 times 3 seed 18446744073709551615 qpn " + qpn(p.a) + " usec 10000000");
	fault("verb create-cq 2 ENOMEM");
	fault("message corrupt every 1000000000");
	auto rows = faults();
	ASSERT_EQ(rows.size(), 3u);
	EXPECT_EQ(rows[0].at("kind") + rows[0].at("what") + rows[0].at("value"), "messagedelay10000000");
	EXPECT_EQ(rows[0].at("when") + rows[0].at("number"), "permille5");
	EXPECT_EQ(rows[0].at("seed"), "18446744073709551615");
	EXPECT_EQ(rows[0].at("qpn"), qpn(p.a));
	EXPECT_EQ(rows[0].at("left"), "3");
	EXPECT_EQ(rows[1].at("what") + rows[1].at("value") + rows[1].at("qpn"), "create-cq12-");
	EXPECT_EQ(rows[1].at("when") + rows[1].at("number") + rows[1].at("left"), "nth21");
	EXPECT_EQ(rows[2].at("left"), "-");
	fault("clear " + rows[1].at("id"));
	EXPECT_EQ(try_fault("clear " + rows[1].at("id")), ENOENT);
	ASSERT_EQ(faults().size(), 2u);
	EXPECT_EQ(faults()[1].at("id"), rows[2].at("id"));
	fault("clear all");
	EXPECT_TRUE(faults().empty());
	fault("clear all");
}

/* So many, and no more; one that is over makes room. */
TEST_F(FaultTest, SoManyAtMost)
{
	fault("verb alloc-pd 1 EIO");
	EXPECT_EQ(make<Pd>([&] { return ibv_alloc_pd(dev); }), EIO);
	for (int i = 1; i < 64; i++)
		fault("verb create-cq 1000 EIO");
	EXPECT_EQ(faults().size(), 64u);
	fault("verb create-cq 1000 EIO");
	EXPECT_EQ(faults().size(), 64u);
	EXPECT_EQ(faults()[0].at("what"), "create-cq");
	EXPECT_EQ(try_fault("verb create-cq 1000 EIO"), ENOSPC);
}

/* What is armed for a QP goes with it; what is armed for a device goes with that. */
TEST_F(FaultTest, GoesWithItsObject)
{
	{
		Pair p = make_pair();

		fault("wr " + qpn(p.a) + " 5 general-err");
		fault("rnr " + qpn(p.b) + " 5");
		fault("message lose nth 100");
		EXPECT_EQ(faults().size(), 3u);
	}
	EXPECT_EQ(faults().size(), 1u);
	TempLink link;
	{
		Device other;

		EXPECT_EQ(try_control(other, "fault verb create-cq 1 EIO times 1000"), 0);
	}
}

/* As all of control, only with leave. */
TEST_F(FaultTest, NeedsLeave)
{
	require_ok(write_line(control_dir(dev) + "/allow", "0"), "allow");
	EXPECT_EQ(try_fault("verb alloc-pd 1 EIO"), EPERM);
	require_ok(write_line(control_dir(dev) + "/allow", "1"), "allow");
	EXPECT_EQ(make<Pd>([&] { return ibv_alloc_pd(dev); }), 0);
}
