/* SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB */
/*
 * The QP state machine: IBTA vol. 1, 10.3.1 and the attribute table of 11.2.5.2; ibv_modify_qp(3). Every pair of
 * states, every attribute, each of the three types.
 */
#include "pair.h"

using namespace conformance;

namespace {

constexpr ibv_qp_state kStates[] = {IBV_QPS_RESET, IBV_QPS_INIT, IBV_QPS_RTR, IBV_QPS_RTS,
				    IBV_QPS_SQD,   IBV_QPS_SQE,  IBV_QPS_ERR};
constexpr const char *kNames[] = {"RESET", "INIT", "RTR", "RTS", "SQD", "SQE", "ERR"};

struct Transition {
	ibv_qp_state from, to;
	int required[3]; /* RC, UC, UD */
	int optional[3];
};

constexpr int kAddress = IBV_QP_AV | IBV_QP_PATH_MTU | IBV_QP_DEST_QPN | IBV_QP_RQ_PSN;
constexpr int kInitConn = IBV_QP_PKEY_INDEX | IBV_QP_PORT | IBV_QP_ACCESS_FLAGS;
constexpr int kInitUd = IBV_QP_PKEY_INDEX | IBV_QP_PORT | IBV_QP_QKEY;
constexpr int kTimers = IBV_QP_TIMEOUT | IBV_QP_RETRY_CNT | IBV_QP_RNR_RETRY;
constexpr int kRts[3] = {IBV_QP_CUR_STATE | IBV_QP_ACCESS_FLAGS | IBV_QP_MIN_RNR_TIMER,
			 IBV_QP_CUR_STATE | IBV_QP_ACCESS_FLAGS, IBV_QP_CUR_STATE | IBV_QP_QKEY};

/*
 * Migration (alternate path) is left out of both lists. A UC QP's address in SQD is not among what is taken, though the
 * specification has it: the core adds IBV_QP_PORT to it, which UC must not have.
 */
constexpr Transition kValid[] = {
	{IBV_QPS_RESET, IBV_QPS_RESET, {}, {}},
	{IBV_QPS_RESET, IBV_QPS_INIT, {kInitConn, kInitConn, kInitUd}, {}},
	{IBV_QPS_INIT, IBV_QPS_RESET, {}, {}},
	{IBV_QPS_INIT, IBV_QPS_ERR, {}, {}},
	{IBV_QPS_INIT, IBV_QPS_INIT, {}, {kInitConn, kInitConn, kInitUd}},
	{IBV_QPS_INIT,
	 IBV_QPS_RTR,
	 {kAddress | IBV_QP_MAX_DEST_RD_ATOMIC | IBV_QP_MIN_RNR_TIMER, kAddress, 0},
	 {IBV_QP_ACCESS_FLAGS | IBV_QP_PKEY_INDEX, IBV_QP_ACCESS_FLAGS | IBV_QP_PKEY_INDEX,
	  IBV_QP_PKEY_INDEX | IBV_QP_QKEY}},
	{IBV_QPS_RTR, IBV_QPS_RESET, {}, {}},
	{IBV_QPS_RTR, IBV_QPS_ERR, {}, {}},
	{IBV_QPS_RTR,
	 IBV_QPS_RTS,
	 {kTimers | IBV_QP_SQ_PSN | IBV_QP_MAX_QP_RD_ATOMIC, IBV_QP_SQ_PSN, IBV_QP_SQ_PSN},
	 {kRts[0], kRts[1], kRts[2]}},
	{IBV_QPS_RTS, IBV_QPS_RESET, {}, {}},
	{IBV_QPS_RTS, IBV_QPS_ERR, {}, {}},
	{IBV_QPS_RTS, IBV_QPS_RTS, {}, {kRts[0], kRts[1], kRts[2]}},
	{IBV_QPS_RTS,
	 IBV_QPS_SQD,
	 {},
	 {IBV_QP_EN_SQD_ASYNC_NOTIFY, IBV_QP_EN_SQD_ASYNC_NOTIFY, IBV_QP_EN_SQD_ASYNC_NOTIFY}},
	{IBV_QPS_SQD, IBV_QPS_RESET, {}, {}},
	{IBV_QPS_SQD, IBV_QPS_ERR, {}, {}},
	{IBV_QPS_SQD, IBV_QPS_RTS, {}, {kRts[0], kRts[1], kRts[2]}},
	{IBV_QPS_SQD,
	 IBV_QPS_SQD,
	 {},
	 {IBV_QP_PORT | IBV_QP_AV | kTimers | IBV_QP_MAX_QP_RD_ATOMIC | IBV_QP_MAX_DEST_RD_ATOMIC |
		  IBV_QP_ACCESS_FLAGS | IBV_QP_PKEY_INDEX | IBV_QP_MIN_RNR_TIMER,
	  IBV_QP_ACCESS_FLAGS | IBV_QP_PKEY_INDEX, IBV_QP_PKEY_INDEX | IBV_QP_QKEY}},
	{IBV_QPS_SQE, IBV_QPS_RESET, {}, {}},
	{IBV_QPS_SQE, IBV_QPS_ERR, {}, {}},
	{IBV_QPS_SQE, IBV_QPS_RTS, {}, {0, IBV_QP_CUR_STATE | IBV_QP_ACCESS_FLAGS, IBV_QP_CUR_STATE | IBV_QP_QKEY}},
	{IBV_QPS_ERR, IBV_QPS_RESET, {}, {}},
	{IBV_QPS_ERR, IBV_QPS_ERR, {}, {}},
};

/* What may be tried in any transition; the rest belongs to migration. */
constexpr int kBits[] = {
	IBV_QP_CUR_STATE,
	IBV_QP_EN_SQD_ASYNC_NOTIFY,
	IBV_QP_ACCESS_FLAGS,
	IBV_QP_PKEY_INDEX,
	IBV_QP_PORT,
	IBV_QP_QKEY,
	IBV_QP_AV,
	IBV_QP_PATH_MTU,
	IBV_QP_TIMEOUT,
	IBV_QP_RETRY_CNT,
	IBV_QP_RNR_RETRY,
	IBV_QP_RQ_PSN,
	IBV_QP_MAX_QP_RD_ATOMIC,
	IBV_QP_MIN_RNR_TIMER,
	IBV_QP_SQ_PSN,
	IBV_QP_MAX_DEST_RD_ATOMIC,
	IBV_QP_CAP,
	IBV_QP_DEST_QPN,
};

const Transition *find(ibv_qp_state from, ibv_qp_state to)
{
	for (auto &t : kValid) {
		if (t.from == from && t.to == to)
			return &t;
	}
	return nullptr;
}

} // namespace

class QpStateTest : public RcTest, public ::testing::WithParamInterface<ibv_qp_type> {
protected:
	/* A QP in any state; its peer exists, so that an address can be given. */
	std::unique_ptr<End> in_state(ibv_qp_state state)
	{
		QpOptions o;

		o.type = GetParam();
		auto end = std::make_unique<End>(dev, pd, o);
		if (state == IBV_QPS_RESET)
			return end;
		to_init(*end);
		if (state == IBV_QPS_INIT)
			return end;
		to_rtr(dev, *end, peer.num());
		if (state == IBV_QPS_RTR)
			return end;
		to_rts(dev, *end);
		if (state == IBV_QPS_SQD || state == IBV_QPS_ERR)
			modify(*end, state);
		if (state == IBV_QPS_SQE)
			break_send_queue(*end);
		EXPECT_EQ(state_of(*end), state);
		return end;
	}

	void break_send_queue(End &end)
	{
		Ah ah = make_ah(dev, pd, dev.gid_index(), dev.gid(dev.gid_index()));

		Send s;
		s.sge({end.mem.addr(), 8, end.mem.mr->lkey ^ 0x5500});
		if (GetParam() == IBV_QPT_UD)
			s.ud(ah, end.num(), 0);
		s.post(end);
		expect_wc(end.scq, IBV_WC_LOC_PROT_ERR, 1);
	}

	/* Valid values for all attributes at once. */
	Attr everything(ibv_qp_state from, ibv_qp_state to)
	{
		Path path;
		Attr all = rtr_attr(dev, IBV_QPT_RC, path, peer.num());
		Attr init = init_attr(GetParam(), path);
		Attr rts = rts_attr(dev, IBV_QPT_RC, path);

		all.a.qp_state = to;
		all.a.cur_qp_state = from;
		all.a.port_num = init.a.port_num;
		all.a.pkey_index = 0;
		all.a.qp_access_flags = init.a.qp_access_flags;
		all.a.qkey = path.qkey;
		all.a.timeout = rts.a.timeout;
		all.a.retry_cnt = rts.a.retry_cnt;
		all.a.rnr_retry = rts.a.rnr_retry;
		all.a.max_rd_atomic = rts.a.max_rd_atomic;
		all.a.cap = {16, 16, 1, 1, 0};
		all.mask = IBV_QP_STATE;
		return all;
	}

	int column() const { return GetParam() == IBV_QPT_RC ? 0 : GetParam() == IBV_QPT_UC ? 1 : 2; }
	bool reachable(ibv_qp_state s) const { return s != IBV_QPS_SQE || GetParam() != IBV_QPT_RC; }

	QpOptions peer_options()
	{
		QpOptions o;

		o.type = GetParam();
		return o;
	}
	End peer{dev, pd, peer_options()};
};

INSTANTIATE_TEST_SUITE_P(Types, QpStateTest, ::testing::Values(IBV_QPT_RC, IBV_QPT_UC, IBV_QPT_UD), [](const auto &i) {
	return i.param == IBV_QPT_RC ? "Rc" : i.param == IBV_QPT_UC ? "Uc" : "Ud";
});

TEST_P(QpStateTest, ValidTransitionsWithWhatTheyRequire)
{
	for (auto &t : kValid) {
		if (!reachable(t.from))
			continue;
		SCOPED_TRACE(std::string(kNames[t.from]) + " to " + kNames[t.to]);
		auto end = in_state(t.from);
		Attr at = everything(t.from, t.to);
		at.mask |= t.required[column()];
		EXPECT_EQ(try_modify(*end, at), 0);
		EXPECT_EQ(state_of(*end), t.to);
		EXPECT_EQ(end->qp->state, t.to) << "the library's own idea of the state";
	}
}

TEST_P(QpStateTest, OtherTransitionsAreRefused)
{
	for (auto from : kStates) {
		if (!reachable(from))
			continue;
		auto end = in_state(from);
		for (auto to : kStates) {
			if (find(from, to))
				continue;
			SCOPED_TRACE(std::string(kNames[from]) + " to " + kNames[to]);
			Attr at = to == IBV_QPS_INIT  ? init_attr(GetParam(), {})
				  : to == IBV_QPS_RTR ? rtr_attr(dev, GetParam(), {}, peer.num())
				  : to == IBV_QPS_RTS ? rts_attr(dev, GetParam(), {})
						      : state_attr(to);
			EXPECT_EQ(try_modify(*end, at), EINVAL);
			EXPECT_EQ(state_of(*end), from);
		}
	}
}

TEST_P(QpStateTest, EachRequiredAttributeIsRequired)
{
	for (auto &t : kValid) {
		int required = t.required[column()];

		if (!required)
			continue;
		auto end = in_state(t.from);
		for (int bit : kBits) {
			if (!(required & bit))
				continue;
			SCOPED_TRACE(std::string(kNames[t.from]) + " to " + kNames[t.to] + " without bit " +
				     std::to_string(bit));
			Attr at = everything(t.from, t.to);
			at.mask |= required & ~bit;
			EXPECT_EQ(try_modify(*end, at), EINVAL);
			EXPECT_EQ(state_of(*end), t.from);
		}
	}
}

TEST_P(QpStateTest, EachOptionalAttributeIsTaken)
{
	for (auto &t : kValid) {
		for (int bit : kBits) {
			if (!(t.optional[column()] & bit) || !reachable(t.from))
				continue;
			SCOPED_TRACE(std::string(kNames[t.from]) + " to " + kNames[t.to] + " with bit " +
				     std::to_string(bit));
			auto end = in_state(t.from);
			Attr at = everything(t.from, t.to);
			at.mask |= t.required[column()] | bit;
			EXPECT_EQ(try_modify(*end, at), 0);
			EXPECT_EQ(state_of(*end), t.to);
		}
	}
}

TEST_P(QpStateTest, NoOtherAttributeIsTaken)
{
	for (auto &t : kValid) {
		int known = t.required[column()] | t.optional[column()];

		if (!reachable(t.from))
			continue;
		auto end = in_state(t.from);
		for (int bit : kBits) {
			if (known & bit)
				continue;
			SCOPED_TRACE(std::string(kNames[t.from]) + " to " + kNames[t.to] + " with bit " +
				     std::to_string(bit));
			Attr at = everything(t.from, t.to);
			at.mask |= t.required[column()] | bit;
			EXPECT_EQ(try_modify(*end, at), EINVAL);
			EXPECT_EQ(state_of(*end), t.from);
		}
	}
}

/* IB_QP_CUR_STATE: the caller's idea of the state has to be right. */
TEST_P(QpStateTest, WrongCurrentStateIsRefused)
{
	auto end = in_state(IBV_QPS_RTS);
	Attr at = state_attr(IBV_QPS_RTS);

	at.mask |= IBV_QP_CUR_STATE;
	at.a.cur_qp_state = IBV_QPS_SQD;
	EXPECT_EQ(try_modify(*end, at), EINVAL);
	at.a.cur_qp_state = IBV_QPS_RTS;
	EXPECT_EQ(try_modify(*end, at), 0);
	at.a.cur_qp_state = static_cast<ibv_qp_state>(42);
	EXPECT_EQ(try_modify(*end, at), EINVAL);
}

TEST_P(QpStateTest, ImpossibleStatesAreRefused)
{
	auto end = in_state(IBV_QPS_INIT);

	for (int s : {7, 8, 100, -1})
		EXPECT_EQ(try_modify(*end, state_attr(static_cast<ibv_qp_state>(s))), EINVAL) << s;
	EXPECT_EQ(state_of(*end), IBV_QPS_INIT);
}

/* A modify without a state keeps the state and checks the attributes as for state to itself. */
TEST_P(QpStateTest, AttributesWithoutAState)
{
	auto end = in_state(IBV_QPS_INIT);
	Attr at = everything(IBV_QPS_INIT, IBV_QPS_INIT);

	at.mask = IBV_QP_PKEY_INDEX;
	EXPECT_EQ(try_modify(*end, at), 0);
	at.mask = IBV_QP_SQ_PSN;
	EXPECT_EQ(try_modify(*end, at), EINVAL);
	EXPECT_EQ(state_of(*end), IBV_QPS_INIT);
}

/* Round and round: a QP that was reset is as good as new. */
TEST_P(QpStateTest, ResetAndUseAgain)
{
	QpOptions o;
	o.type = GetParam();
	End a(dev, pd, o), b(dev, pd, o);
	Ah ah = make_ah(dev, pd, dev.gid_index(), dev.gid(dev.gid_index()));

	for (int round = 0; round < 20; round++) {
		for (End *e : {&a, &b}) {
			to_init(*e);
			to_rtr(dev, *e, e == &a ? b.num() : a.num());
			to_rts(dev, *e);
		}
		recv(b, b.mem, 0, 1024, round);
		Send s(IBV_WR_SEND, round);
		s.from(a.mem, 0, 100);
		if (GetParam() == IBV_QPT_UD)
			s.ud(ah, b.num(), Path().qkey);
		s.post(a);
		expect_ok(a.scq, round);
		expect_ok(b.rcq, round);
		if (round % 2) {
			/* by way of ERR, with receives that are forgotten */
			recv(b, b.mem, 0, 1024, 1000);
			to_error(b);
		}
		modify(a, IBV_QPS_RESET);
		modify(b, IBV_QPS_RESET);
		expect_empty(a.scq);
		expect_empty(b.rcq);
	}
}
