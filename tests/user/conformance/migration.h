/* SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB */
/* Alternate paths, and moving to them (ibv_modify_qp(3)). */
#pragma once

#include "control.h"
#include "pair.h"

#include <map>

namespace conformance {

/* Loads an alternate path. */
Attr alt_attr(const Device &dev, int sgid_index, int dgid_index, uint8_t timeout = 8, uint16_t pkey_index = 0);
Attr mig_attr(ibv_mig_state state);
/* Loads it and asks for REARM. */
Attr rearm_attr(Attr alt);

ibv_qp_attr query_path(ibv_qp *qp);
ibv_mig_state mig_state(ibv_qp *qp);
const char *mig_name(ibv_mig_state state);
void expect_mig_state(ibv_qp *qp, ibv_mig_state state);

/* An IPv4 address that an interface has while this lives. */
class Address {
public:
	Address(std::string netdev, std::string address);
	~Address();
	Address(Address &&o) noexcept;
	Address &operator=(Address &&) = delete;

	/* Its place in the device's GID table; waits until it is there. */
	int index(const Device &dev) const;
	/* Waits until it is gone from the table. */
	void remove(const Device &dev);
	void add();

private:
	std::optional<int> look(const Device &dev) const;

	std::string netdev_, address_;
	bool there_ = false;
};

/* QPs' events by element and kind; those of the port, which follow from its addresses, do not count. */
using Counts = std::map<std::pair<const void *, ibv_event_type>, int>;

/*
 *	a ---- .1 ---- path ------- .2 ---- b
 *	   `-- .3 ---- alternate -- .4 --'
 */
class MigrationTest : public ::testing::Test {
protected:
	TempLink link;
	Device dev;
	Pd pd = make_pd(dev);
	std::vector<Address> addresses;
	int gid[5] = {};

	void SetUp() override
	{
		if (!CqControl::available(dev))
			GTEST_SKIP() << "not this device's";
		EXPECT_TRUE(dev.attr.device_cap_flags & IBV_DEVICE_AUTO_PATH_MIG);
		for (int i = 1; i <= 4; i++) {
			addresses.emplace_back(link.netdev(), "10.77.0." + std::to_string(i));
			gid[i] = addresses.back().index(dev);
		}
	}

	void remove(int number) { addresses[static_cast<size_t>(number) - 1].remove(dev); }

	/* As short as that, and it fails only where nobody answers. */
	static Path quick()
	{
		Path path;

		path.timeout = 8;
		path.retry_cnt = 2;
		return path;
	}
	void connect(Pair &p, Path path = quick())
	{
		for (End *end : {&p.a, &p.b})
			to_init(*end, path);
		path.gid_index = gid[1];
		to_rtr(dev, p.a, p.b.num(), path, gid[2]);
		to_rts(dev, p.a, path);
		path.gid_index = gid[2];
		to_rtr(dev, p.b, p.a.num(), path, gid[1]);
		to_rts(dev, p.b, path);
	}
	/* Both ends made, connected and armed. */
	Pair armed_pair(const QpOptions &o = {})
	{
		Pair p(dev, pd, o, quick());

		for (End *end : {&p.a, &p.b})
			modify(*end, IBV_QPS_RESET);
		connect(p);
		make_armed(p);
		return p;
	}
	Attr alt_of_a(uint8_t timeout = 8) const { return alt_attr(dev, gid[3], gid[4], timeout); }
	Attr alt_of_b(uint8_t timeout = 8) const { return alt_attr(dev, gid[4], gid[3], timeout); }

	/* By what the two say to each other, no more. */
	void make_armed(Pair &p)
	{
		modify(p.a, rearm_attr(alt_of_a()));
		modify(p.b, rearm_attr(alt_of_b()));
		exchange(p);
		expect_mig_state(p.a, IBV_MIG_ARMED);
		expect_mig_state(p.b, IBV_MIG_ARMED);
	}
	static void write(End &from, End &to, uint64_t id)
	{
		Send(IBV_WR_RDMA_WRITE, id).from(from.mem, 0, 8).to(to.mem, 64).post(from);
	}
	static void exchange(Pair &p)
	{
		write(p.a, p.b, 71);
		expect_ok(p.a.scq, 71);
		write(p.b, p.a, 72);
		expect_ok(p.b.scq, 72);
	}

	/* All there are now, and none after that for a while. */
	Counts events(Millis limit = quiet())
	{
		Counts counts;

		while (auto got = next_async(dev, limit))
			if (got->element)
				counts[{got->element, got->type}]++;
		return counts;
	}
	/* The next one of a QP. */
	void expect_qp_event(ibv_event_type type, const End &end)
	{
		std::optional<Async> got;

		do
			got = next_async(dev, patience());
		while (got && !got->element);
		ASSERT_TRUE(got) << "no event came; expected " << ibv_event_type_str(type);
		EXPECT_STREQ(ibv_event_type_str(got->type), ibv_event_type_str(type));
		EXPECT_EQ(got->element, end.qp.get());
	}
	static Counts once_each(const Pair &p, ibv_event_type type)
	{
		return {{{p.a.qp.get(), type}, 1}, {{p.b.qp.get(), type}, 1}};
	}
	void expect_path(const End &end, int sgid, int dgid, ibv_mig_state state = IBV_MIG_MIGRATED)
	{
		const ibv_qp_attr a = query_path(end);

		EXPECT_STREQ(mig_name(a.path_mig_state), mig_name(state));
		EXPECT_EQ(a.ah_attr.grh.sgid_index, gid[sgid]);
		EXPECT_EQ(a.ah_attr.grh.dgid.raw[15], dgid);
		EXPECT_EQ(a.qp_state, IBV_QPS_RTS);
		if (state == IBV_MIG_MIGRATED && sgid > 2) {
			EXPECT_EQ(a.alt_port_num, 0) << "there is no alternate path any more";
			EXPECT_EQ(a.alt_ah_attr.grh.dgid.raw[15], 0);
		}
	}
	void expect_moved(const Pair &p)
	{
		expect_path(p.a, 3, 4);
		expect_path(p.b, 4, 3);
	}
	void expect_moves_of_both(const Pair &p)
	{
		Counts counts;

		while (counts.size() < 2) {
			auto got = next_async(dev, patience());

			ASSERT_TRUE(got) << "no event came";
			if (got->element)
				counts[{got->element, got->type}]++;
		}
		EXPECT_EQ(counts, once_each(p, IBV_EVENT_PATH_MIG));
	}
	/* migration_test.cc */
	void pull_path_under_traffic(const QpOptions &o, uint32_t size, bool both_ways);
};

} // namespace conformance
