/* SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB */
/* Creating QPs, the values of their attributes, and what queries answer. */
#include "pair.h"

#include <functional>
#include <set>

using namespace conformance;

class QpAttrTest : public RcTest {
protected:
	ibv_qp_init_attr base(ibv_qp_type type = IBV_QPT_RC)
	{
		ibv_qp_init_attr init{};

		init.qp_type = type;
		init.send_cq = init.recv_cq = cq;
		init.cap = {16, 16, 1, 1, 0};
		return init;
	}
	int create_errno(ibv_qp_init_attr init)
	{
		errno = 0;
		Qp qp(ibv_create_qp(pd, &init));
		return qp ? 0 : errno;
	}
	Cq cq = make_cq(dev, 64);
};

/* ibv_create_qp(3): at least what was asked for, and init_attr says what. */
TEST_F(QpAttrTest, GrantsAtLeastWhatWasAskedFor)
{
	for (uint32_t n : {1u, 2u, 3u, 17u, 1000u}) {
		ibv_qp_init_attr init = base();

		init.cap = {n, n, 3, 2, 77};
		Qp qp(ibv_create_qp(pd, &init));
		ASSERT_NE(qp.get(), nullptr) << strerror(errno);
		EXPECT_GE(init.cap.max_send_wr, n);
		EXPECT_GE(init.cap.max_recv_wr, n);
		EXPECT_GE(init.cap.max_send_sge, 3u);
		EXPECT_GE(init.cap.max_recv_sge, 2u);
		EXPECT_GE(init.cap.max_inline_data, 77u);
	}
}

/* CASES 67: each limit works; one more does not. */
TEST_F(QpAttrTest, LimitsAndLimitsPlusOne)
{
	using Change = std::function<void(ibv_qp_init_attr &, uint32_t)>;
	struct {
		const char *name;
		uint32_t limit;
		Change set;
	} rows[] = {
		{"max_send_wr", (uint32_t)dev.attr.max_qp_wr, [](auto &i, uint32_t v) { i.cap.max_send_wr = v; }},
		{"max_recv_wr", (uint32_t)dev.attr.max_qp_wr, [](auto &i, uint32_t v) { i.cap.max_recv_wr = v; }},
		{"max_send_sge", (uint32_t)dev.attr.max_sge, [](auto &i, uint32_t v) { i.cap.max_send_sge = v; }},
		{"max_recv_sge", (uint32_t)dev.attr.max_sge, [](auto &i, uint32_t v) { i.cap.max_recv_sge = v; }},
	};
	for (auto &row : rows) {
		ibv_qp_init_attr init = base();

		row.set(init, row.limit);
		EXPECT_EQ(create_errno(init), 0) << row.name;
		init = base();
		row.set(init, row.limit + 1);
		EXPECT_EQ(create_errno(init), EINVAL) << row.name;
		init = base();
		row.set(init, ~0u);
		EXPECT_EQ(create_errno(init), EINVAL) << row.name;
	}
	ibv_qp_init_attr init = base();
	init.cap.max_inline_data = 1u << 20;
	EXPECT_EQ(create_errno(init), EINVAL);
}

/* Nobody says how large inline data may be; all that is granted must work. */
TEST_F(QpAttrTest, LargestInline)
{
	uint32_t size = 0;

	for (uint32_t bit = 1u << 15; bit; bit >>= 1) {
		ibv_qp_init_attr init = base();

		init.cap.max_inline_data = size | bit;
		if (create_errno(init) == 0)
			size |= bit;
	}
	ASSERT_GE(size, 64u);
	QpOptions o;
	o.inline_data = size;
	Pair p = make_pair(o);
	p.a.mem.fill(3);
	ibv_sge sge = {p.a.mem.addr(), size, 0};
	Send(IBV_WR_RDMA_WRITE).sge(sge).to(p.b.mem).add_flags(IBV_SEND_INLINE).post(p.a);
	expect_ok(p.a.scq, 1);
	EXPECT_EQ(differs(p.b.mem.data(), p.a.mem.data(), size), -1);
}

TEST_F(QpAttrTest, UnsupportedTypesAreRefused)
{
	for (auto type : {IBV_QPT_RAW_PACKET, IBV_QPT_DRIVER, static_cast<ibv_qp_type>(77)})
		EXPECT_NE(create_errno(base(type)), 0) << type;
}

/* QP numbers are 24 bits, not those of the special QPs, and distinct on the whole host. */
TEST_F(QpAttrTest, NumbersAreDistinct)
{
	std::vector<Qp> qps;
	std::set<uint32_t> numbers;

	for (int i = 0; i < 300; i++) {
		ibv_qp_init_attr init = base(i % 2 ? IBV_QPT_UD : IBV_QPT_RC);
		qps.emplace_back(ibv_create_qp(pd, &init));
		ASSERT_NE(qps.back().get(), nullptr);
		EXPECT_GT(qps.back()->qp_num, 1u);
		EXPECT_LT(qps.back()->qp_num, 0xffffffu);
		EXPECT_TRUE(numbers.insert(qps.back()->qp_num).second);
	}
}

/* A QP without a send or without a receive queue. */
TEST_F(QpAttrTest, QueuesOfNoLength)
{
	ibv_qp_init_attr init = base();

	init.cap.max_recv_wr = 0;
	init.cap.max_recv_sge = 0;
	Qp sender(ibv_create_qp(pd, &init));
	ASSERT_NE(sender.get(), nullptr) << strerror(errno);
	init = base();
	init.cap.max_send_wr = 0;
	init.cap.max_send_sge = 0;
	Qp receiver(ibv_create_qp(pd, &init));
	ASSERT_NE(receiver.get(), nullptr) << strerror(errno);

	to_init(sender);
	to_init(receiver);
	to_rtr(dev, sender, receiver->qp_num);
	to_rtr(dev, receiver, sender->qp_num);
	to_rts(dev, sender);
	to_rts(dev, receiver);
	Region mem(pd, 4096);
	recv(receiver, mem, 2048, 64, 5);
	int rc = Send().from(mem, 0, 64).try_post(receiver);
	EXPECT_TRUE(rc == EINVAL || rc == ENOMEM) << rc;
	rc = try_recv(sender, {mem.sge(0, 64)}, 1);
	EXPECT_TRUE(rc == EINVAL || rc == ENOMEM) << rc;
	Send(IBV_WR_SEND, 6).from(mem, 0, 64).post(sender);
	for (auto &wc : poll_n(cq, 2))
		EXPECT_EQ(wc.status, IBV_WC_SUCCESS);
}

/* ------------------------------------------------------------- values -- */

struct BadValue {
	const char *name;
	int bit;
	std::function<void(ibv_qp_attr &, const Device &)> set;
};

static const BadValue kBadInit[] = {
	{"port 0", IBV_QP_PORT, [](auto &a, auto &) { a.port_num = 0; }},
	{"port 2", IBV_QP_PORT, [](auto &a, auto &) { a.port_num = 2; }},
	{"pkey_index", IBV_QP_PKEY_INDEX, [](auto &a, auto &d) { a.pkey_index = d.port.pkey_tbl_len; }},
	{"access bit", IBV_QP_ACCESS_FLAGS, [](auto &a, auto &) { a.qp_access_flags = 1 << 19; }},
};

static const BadValue kBadRtr[] = {
	{"mtu 0", IBV_QP_PATH_MTU, [](auto &a, auto &) { a.path_mtu = static_cast<ibv_mtu>(0); }},
	{"mtu 6", IBV_QP_PATH_MTU, [](auto &a, auto &) { a.path_mtu = static_cast<ibv_mtu>(6); }},
	{"dest_qp_num", IBV_QP_DEST_QPN, [](auto &a, auto &) { a.dest_qp_num = 1 << 24; }},
	{"max_dest_rd_atomic", IBV_QP_MAX_DEST_RD_ATOMIC,
	 [](auto &a, auto &d) { a.max_dest_rd_atomic = static_cast<uint8_t>(d.attr.max_qp_rd_atom + 1); }},
	{"min_rnr_timer", IBV_QP_MIN_RNR_TIMER, [](auto &a, auto &) { a.min_rnr_timer = 32; }},
	{"sgid_index", IBV_QP_AV, [](auto &a, auto &) { a.ah_attr.grh.sgid_index = 255; }},
	{"no GRH", IBV_QP_AV, [](auto &a, auto &) { a.ah_attr.is_global = 0; }},
	{"AV port", IBV_QP_AV, [](auto &a, auto &) { a.ah_attr.port_num = 2; }},
};

static const BadValue kBadRts[] = {
	{"timeout", IBV_QP_TIMEOUT, [](auto &a, auto &) { a.timeout = 32; }},
	{"retry_cnt", IBV_QP_RETRY_CNT, [](auto &a, auto &) { a.retry_cnt = 8; }},
	{"rnr_retry", IBV_QP_RNR_RETRY, [](auto &a, auto &) { a.rnr_retry = 8; }},
	{"max_rd_atomic", IBV_QP_MAX_QP_RD_ATOMIC,
	 [](auto &a, auto &d) { a.max_rd_atomic = static_cast<uint8_t>(d.attr.max_qp_init_rd_atom + 1); }},
};

/* 11.2.5.2: a value out of range leaves the QP as it was. */
TEST_F(QpAttrTest, ValuesOutOfRangeAreRefused)
{
	QpOptions o;
	End end(dev, pd, o), peer(dev, pd, o);
	auto refuse = [&](const Attr &good, std::span<const BadValue> bad) {
		ibv_qp_state before = state_of(end);

		for (auto &b : bad) {
			Attr at = good;

			b.set(at.a, dev);
			int rc = try_modify(end, at);
			/* the core says ENODATA of an empty place in the GID table */
			EXPECT_TRUE(rc == EINVAL || (b.bit == IBV_QP_AV && rc == ENODATA)) << b.name << ": " << rc;
			EXPECT_EQ(state_of(end), before) << b.name;
		}
		EXPECT_EQ(try_modify(end, good), 0);
	};
	refuse(init_attr(IBV_QPT_RC, {}), kBadInit);
	refuse(rtr_attr(dev, IBV_QPT_RC, {}, peer.num()), kBadRtr);
	refuse(rts_attr(dev, IBV_QPT_RC, {}), kBadRts);
}

/* A path MTU above the port's active one is refused. */
TEST_F(QpAttrTest, MtuAboveThePorts)
{
	if (dev.port.active_mtu == IBV_MTU_4096)
		GTEST_SKIP() << "the port's MTU is the largest there is";
	QpOptions o;
	End end(dev, pd, o);
	to_init(end);
	Attr at = rtr_attr(dev, IBV_QPT_RC, {}, end.num());
	at.a.path_mtu = IBV_MTU_4096;
	EXPECT_EQ(try_modify(end, at), EINVAL);
}

/* ibv_query_qp(3) answers what was set. */
TEST_F(QpAttrTest, QueryAnswersWhatWasSet)
{
	QpOptions o;
	Path path;
	o.sig_all = true;
	path.timeout = 9;
	path.retry_cnt = 3;
	path.rnr_retry = 5;
	path.min_rnr_timer = 12;
	path.rd_atomic = 2;
	path.mtu = IBV_MTU_512;
	Pair p = make_pair(o, path);
	ibv_qp_attr a{};
	ibv_qp_init_attr init{};
	int all = IBV_QP_STATE | IBV_QP_CUR_STATE | IBV_QP_ACCESS_FLAGS | IBV_QP_PKEY_INDEX | IBV_QP_PORT | IBV_QP_AV |
		  IBV_QP_PATH_MTU | IBV_QP_TIMEOUT | IBV_QP_RETRY_CNT | IBV_QP_RNR_RETRY | IBV_QP_RQ_PSN |
		  IBV_QP_MAX_QP_RD_ATOMIC | IBV_QP_MIN_RNR_TIMER | IBV_QP_SQ_PSN | IBV_QP_MAX_DEST_RD_ATOMIC |
		  IBV_QP_CAP | IBV_QP_DEST_QPN;

	ASSERT_EQ(ibv_query_qp(p.a, &a, all, &init), 0);
	EXPECT_EQ(a.qp_state, IBV_QPS_RTS);
	EXPECT_EQ(a.cur_qp_state, IBV_QPS_RTS);
	EXPECT_EQ(a.port_num, 1);
	EXPECT_EQ(a.pkey_index, 0);
	EXPECT_EQ(a.dest_qp_num, p.b.num());
	EXPECT_EQ(a.path_mtu, IBV_MTU_512);
	EXPECT_EQ(a.timeout, 9);
	EXPECT_EQ(a.retry_cnt, 3);
	EXPECT_EQ(a.rnr_retry, 5);
	EXPECT_EQ(a.min_rnr_timer, 12);
	EXPECT_EQ(a.max_rd_atomic, 2);
	EXPECT_EQ(a.max_dest_rd_atomic, 2);
	EXPECT_EQ((int)a.qp_access_flags, path.access);
	EXPECT_EQ(a.sq_draining, 0);
	EXPECT_TRUE(a.ah_attr.is_global);
	EXPECT_EQ(memcmp(a.ah_attr.grh.dgid.raw, dev.gid(dev.gid_index()).raw, 16), 0);
	EXPECT_EQ(a.ah_attr.grh.sgid_index, dev.gid_index());
	EXPECT_EQ(a.ah_attr.grh.hop_limit, 64);
	EXPECT_GE(a.cap.max_send_wr, o.send_wr);
	EXPECT_GE(a.cap.max_recv_sge, o.sge);
	EXPECT_EQ(init.send_cq, p.a.scq);
	EXPECT_EQ(init.recv_cq, p.a.rcq);
	EXPECT_EQ(init.srq, nullptr);
	EXPECT_EQ(init.qp_type, IBV_QPT_RC);
	EXPECT_EQ(init.sq_sig_all, 1);
}

/* CUR_STATE and the attributes are there in the error state, too. */
TEST_F(QpAttrTest, QueryInError)
{
	Pair p = make_pair();
	ibv_qp_attr a{};
	ibv_qp_init_attr init{};

	to_error(p.a);
	ASSERT_EQ(ibv_query_qp(p.a, &a, IBV_QP_STATE | IBV_QP_DEST_QPN, &init), 0);
	EXPECT_EQ(a.qp_state, IBV_QPS_ERR);
	EXPECT_EQ(a.dest_qp_num, p.b.num());
}

/* -------------------------------------------------------- address handles -- */

TEST_F(QpAttrTest, AddressHandles)
{
	int index = dev.gid_index();
	std::vector<Ah> many;

	for (int i = 0; i < 200; i++)
		many.push_back(make_ah(dev, pd, index, dev.gid(index)));

	ibv_ah_attr attr{};
	attr.port_num = 1;
	attr.is_global = 0;
	EXPECT_EQ(ibv_create_ah(pd, &attr), nullptr) << "RoCE has no addresses but GIDs";
	attr.is_global = 1;
	attr.grh.dgid = dev.gid(index);
	attr.grh.sgid_index = static_cast<uint8_t>(index);
	attr.port_num = 2;
	EXPECT_EQ(ibv_create_ah(pd, &attr), nullptr) << "no such port";
	attr.port_num = 1;
	attr.grh.sgid_index = 255;
	EXPECT_EQ(ibv_create_ah(pd, &attr), nullptr) << "no such GID";
}
