/* SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB */
/* Faults on purpose (docs/faults.md): verbs that fail, those of processes that make no system call, too. */
#include "fault.h"

using namespace conformance;

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
