/* SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB */
/* Alternate paths and migration states as attributes of a QP: ibv_modify_qp(3), ibv_query_qp(3), and requests that lie. */
#include "migration.h"

#include <rdma/herald-abi.h>
#include <rdma/ib_user_verbs.h>
#include <unistd.h>

using namespace conformance;

/* ibv_query_qp(3) answers what was loaded, and then what became of it. */
TEST_F(MigrationTest, QueryAnswersWhatWasLoaded)
{
	Pair p(dev, pd, {}, quick());
	Attr alt = alt_of_a(11);

	for (End *end : {&p.a, &p.b})
		modify(*end, IBV_QPS_RESET);
	connect(p);
	alt.a.alt_ah_attr.sl = 3;
	alt.a.alt_ah_attr.grh.flow_label = 0x12345;
	alt.a.alt_ah_attr.grh.traffic_class = 8;
	modify(p.a, alt);
	expect_mig_state(p.a, IBV_MIG_MIGRATED);
	modify(p.a, mig_attr(IBV_MIG_REARM));
	ibv_qp_attr a = query_path(p.a);
	EXPECT_STREQ(mig_name(a.path_mig_state), "REARM");
	EXPECT_EQ(a.alt_port_num, 1);
	EXPECT_EQ(a.alt_timeout, 11);
	EXPECT_EQ(a.alt_pkey_index, 0);
	EXPECT_EQ(a.alt_ah_attr.is_global, 1);
	EXPECT_EQ(a.alt_ah_attr.port_num, 1);
	EXPECT_EQ(a.alt_ah_attr.sl, 3);
	EXPECT_EQ(a.alt_ah_attr.grh.flow_label, 0x12345u);
	EXPECT_EQ(a.alt_ah_attr.grh.traffic_class, 8);
	EXPECT_EQ(a.alt_ah_attr.grh.hop_limit, 64);
	EXPECT_EQ(a.alt_ah_attr.grh.sgid_index, gid[3]);
	EXPECT_EQ(memcmp(&a.alt_ah_attr.grh.dgid, &alt.a.alt_ah_attr.grh.dgid, 16), 0);
	EXPECT_EQ(a.timeout, 8);
	EXPECT_EQ(a.ah_attr.grh.dgid.raw[15], 2);

	modify(p.b, rearm_attr(alt_of_b()));
	exchange(p);
	modify(p.a, mig_attr(IBV_MIG_MIGRATED));
	a = query_path(p.a);
	EXPECT_EQ(a.timeout, 11);
	EXPECT_EQ(a.ah_attr.sl, 3);
	EXPECT_EQ(a.ah_attr.grh.flow_label, 0x12345u);
	EXPECT_EQ(a.ah_attr.grh.dgid.raw[15], 4);
}

/* A path names its address wherever that is in the table, and no other that has its place now. */
TEST_F(MigrationTest, QueryFindsTheAddress)
{
	Pair p(dev, pd, {}, quick());
	auto alt_index = [&] { return query_path(p.a).alt_ah_attr.grh.sgid_index; };

	for (End *end : {&p.a, &p.b})
		modify(*end, IBV_QPS_RESET);
	connect(p);
	modify(p.a, alt_of_a());
	EXPECT_EQ(alt_index(), gid[3]);
	remove(3);
	EXPECT_EQ(alt_index(), 255) << "it is nowhere";
	const Address five(link.netdev(), "10.77.0.5");
	ASSERT_EQ(five.index(dev), gid[3]) << "the place is taken";
	EXPECT_EQ(alt_index(), 255);
	addresses[2].add();
	ASSERT_NE(addresses[2].index(dev), gid[3]);
	EXPECT_EQ(alt_index(), addresses[2].index(dev));
}

/* A reset forgets the alternate path, and whether it was armed. */
TEST_F(MigrationTest, ResetForgets)
{
	Pair p = armed_pair();

	for (End *end : {&p.a, &p.b})
		modify(*end, IBV_QPS_RESET);
	connect(p);
	expect_path(p.a, 1, 2);
	EXPECT_EQ(query_path(p.a).alt_port_num, 0);
	EXPECT_EQ(try_modify(p.a, mig_attr(IBV_MIG_REARM)), EINVAL);
	EXPECT_EQ(events(), Counts());
}

/* On the way to RTR and to RTS, too. */
TEST_F(MigrationTest, LoadedOnTheWay)
{
	Pair p(dev, pd, {}, quick());
	Path path = quick();

	for (End *end : {&p.a, &p.b})
		modify(*end, IBV_QPS_RESET);
	to_init(p.a, path);
	path.gid_index = gid[1];
	Attr rtr = rtr_attr(dev, IBV_QPT_RC, path, p.b.num(), gid[2]), alt = alt_of_a();
	alt.a.qp_state = IBV_QPS_RTR;
	rtr.a.alt_ah_attr = alt.a.alt_ah_attr;
	rtr.a.alt_port_num = 1;
	rtr.a.alt_timeout = 9;
	rtr.mask |= IBV_QP_ALT_PATH;
	modify(p.a, rtr);
	EXPECT_EQ(query_path(p.a).alt_timeout, 9);
	Attr rts = rts_attr(dev, IBV_QPT_RC, path);
	rts.a.path_mig_state = IBV_MIG_REARM;
	rts.mask |= IBV_QP_PATH_MIG_STATE;
	modify(p.a, rts);
	expect_mig_state(p.a, IBV_MIG_REARM);
	EXPECT_EQ(state_of(p.a), IBV_QPS_RTS);
}

/* What is wrong is refused, and leaves the QP as it was. */
TEST_F(MigrationTest, RefusesBadAlternatePaths)
{
	const struct {
		const char *name;
		void (*spoil)(ibv_qp_attr &);
	} rows[] = {
		{"port 0", [](auto &a) { a.alt_port_num = 0; }},
		{"port 2", [](auto &a) { a.alt_port_num = 2; }},
		{"port 255", [](auto &a) { a.alt_port_num = 255; }},
		{"AV port 0", [](auto &a) { a.alt_ah_attr.port_num = 0; }},
		{"AV port 2", [](auto &a) { a.alt_ah_attr.port_num = 2; }},
		{"timeout", [](auto &a) { a.alt_timeout = 32; }},
		{"largest timeout", [](auto &a) { a.alt_timeout = 255; }},
		{"empty P_Key", [](auto &a) { a.alt_pkey_index = 1; }},
		{"P_Key index", [](auto &a) { a.alt_pkey_index = 0xffff; }},
		{"empty GID", [](auto &a) { a.alt_ah_attr.grh.sgid_index = 200; }},
		{"GID index", [](auto &a) { a.alt_ah_attr.grh.sgid_index = 255; }},
		{"no GRH", [](auto &a) { a.alt_ah_attr.is_global = 0; }},
	};
	Pair p(dev, pd, {}, quick());

	for (End *end : {&p.a, &p.b})
		modify(*end, IBV_QPS_RESET);
	connect(p);
	for (const auto &row : rows) {
		SCOPED_TRACE(row.name);
		Attr at = rearm_attr(alt_of_a());

		row.spoil(at.a);
		EXPECT_EQ(try_modify(p.a, at), EINVAL);
		expect_path(p.a, 1, 2);
		EXPECT_EQ(query_path(p.a).alt_port_num, 0);
	}
	UdEnd ud(dev, pd);
	EXPECT_EQ(try_modify(ud, alt_of_a()), EINVAL) << "a datagram QP has no path";
	Attr with_state = alt_of_a();
	with_state.a.qp_state = IBV_QPS_ERR;
	with_state.mask |= IBV_QP_STATE;
	EXPECT_EQ(try_modify(p.a, with_state), EINVAL) << "not on the way to ERR";
	exchange(p);
}

TEST_F(MigrationTest, RefusesBadStates)
{
	Pair p(dev, pd, {}, quick());
	auto refused = [&](int state) {
		EXPECT_EQ(try_modify(p.a, mig_attr(static_cast<ibv_mig_state>(state))), EINVAL) << state;
	};

	for (End *end : {&p.a, &p.b})
		modify(*end, IBV_QPS_RESET);
	connect(p);
	EXPECT_EQ(try_modify(p.a, mig_attr(IBV_MIG_MIGRATED)), 0) << "what it is already";
	for (int state : {IBV_MIG_REARM, IBV_MIG_ARMED, static_cast<ibv_mig_state>(3), static_cast<ibv_mig_state>(255)})
		refused(state);
	modify(p.a, rearm_attr(alt_of_a()));
	for (int state : {0, 1, 2, 3, 255})
		refused(state);
	expect_mig_state(p.a, IBV_MIG_REARM);
	modify(p.b, rearm_attr(alt_of_b()));
	exchange(p);
	for (int state : {1, 2, 3, 255})
		refused(state);
	expect_path(p.a, 1, 2, IBV_MIG_ARMED);
	EXPECT_EQ(events(), Counts());
}

namespace {

/* The extended MODIFY_QP as no library sends it: these attributes, and in the driver's part these bytes.  0 or errno. */
int raw_modify(ibv_qp *qp, uint32_t mask, ibv_qp_state state, const std::vector<uint8_t> &driver)
{
	struct {
		ib_uverbs_cmd_hdr header;
		ib_uverbs_ex_cmd_hdr more;
		ib_uverbs_ex_modify_qp core;
	} command{};
	ib_uverbs_ex_modify_qp_resp answer{};
	std::vector<uint8_t> request(sizeof(command));

	command.header.command = IB_USER_VERBS_EX_CMD_MODIFY_QP | IB_USER_VERBS_CMD_FLAG_EXTENDED;
	command.header.in_words = sizeof(command.core) / 8;
	command.header.out_words = sizeof(answer) / 8;
	command.more.response = reinterpret_cast<uintptr_t>(&answer);
	command.more.provider_in_words = static_cast<uint16_t>(driver.size() / 8);
	command.core.base.qp_handle = qp->handle;
	command.core.base.attr_mask = mask;
	command.core.base.qp_state = static_cast<uint8_t>(state);
	memcpy(request.data(), &command, sizeof(command));
	request.insert(request.end(), driver.begin(), driver.end());
	return write(qp->context->cmd_fd, request.data(), request.size()) < 0 ? errno : 0;
}

std::vector<uint8_t> bytes_of(const herald_modify_qp_req &req, size_t length = sizeof(herald_modify_qp_req))
{
	auto *first = reinterpret_cast<const uint8_t *>(&req);
	std::vector<uint8_t> bytes(first, first + sizeof(req));

	bytes.resize(length);
	return bytes;
}

} // namespace

/* The driver's part of the command is all zeros, or exactly an alternate path: whoever lies in it changes nothing. */
TEST_F(MigrationTest, RefusesRequestsThatLie)
{
	Pair p(dev, pd, {}, quick());

	for (End *end : {&p.a, &p.b})
		modify(*end, IBV_QPS_RESET);
	connect(p);
	ibv_qp *qp = p.a;
	auto sent = [&](const std::vector<uint8_t> &driver) { return raw_modify(qp, 0, IBV_QPS_RTS, driver); };
	herald_modify_qp_req good{};

	good.flags = HERALD_MODIFY_ALT_PATH;
	good.port_num = good.av_port_num = good.is_global = 1;
	good.timeout = 8;
	good.sgid_index = static_cast<uint8_t>(gid[3]);
	good.hop_limit = 64;
	memcpy(good.dgid, dev.gid(gid[4]).raw, sizeof(good.dgid));

	for (size_t i = 0; i < sizeof(good.reserved); i++) {
		herald_modify_qp_req req = good;

		req.reserved[i] = 1;
		EXPECT_EQ(sent(bytes_of(req)), EOPNOTSUPP) << "reserved " << i;
	}
	for (uint32_t flags : {2u, 3u, 0x80000000u, 0u}) {
		herald_modify_qp_req req = good;

		req.flags = flags;
		EXPECT_EQ(sent(bytes_of(req)), EOPNOTSUPP) << "flags " << flags;
	}
	for (size_t length : {8, 32, 48, 4096})
		EXPECT_EQ(sent(bytes_of(good, length)), EOPNOTSUPP) << "length " << length;
	for (int index : {200, 255}) {
		herald_modify_qp_req req = good;

		req.sgid_index = static_cast<uint8_t>(index);
		EXPECT_EQ(sent(bytes_of(req)), EINVAL) << "GID " << index;
	}
	EXPECT_EQ(raw_modify(qp, IBV_QP_ALT_PATH, IBV_QPS_RTS, bytes_of(good)), EINVAL) << "twice";
	for (ibv_qp_state state : {IBV_QPS_RESET, IBV_QPS_ERR, IBV_QPS_INIT})
		EXPECT_EQ(raw_modify(qp, IBV_QP_STATE, state, bytes_of(good)), EINVAL) << "state " << state;
	EXPECT_EQ(raw_modify(UdEnd(dev, pd), 0, IBV_QPS_RTS, bytes_of(good)), EINVAL);
	EXPECT_EQ(query_path(qp).alt_port_num, 0);
	EXPECT_EQ(sent(std::vector<uint8_t>(sizeof(good))), 0) << "all zeros";
	EXPECT_EQ(query_path(qp).alt_port_num, 0);
	EXPECT_EQ(sent(bytes_of(good)), 0);
	EXPECT_EQ(query_path(qp).alt_port_num, 1);
	exchange(p);

	/* nobody holds the GID any more: its place in the table is free at once */
	remove(3);
	addresses[2].add();
	EXPECT_EQ(addresses[2].index(dev), gid[3]);
}
