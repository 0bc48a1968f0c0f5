/* SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB */
/* Faults on purpose: what is armed on the device, and what it has counted. */
#pragma once

#include "control.h"
#include "pair.h"

namespace conformance {

/* None is armed before or after. */
class FaultRcTest : public RcTest {
public:
	/* All faults that there are have struck as often as they were to. */
	void expect_all_over() const
	{
		for (const TableRow &row : faults())
			EXPECT_EQ(row.at("left"), "0") << row.at("kind") << " " << row.at("what");
	}

protected:
	void SetUp() override
	{
		if (!CqControl::available(dev))
			GTEST_SKIP() << "this device has no faults on purpose";
		require_ok(try_control(dev, "fault clear"), "fault clear");
	}
	void TearDown() override
	{
		if (CqControl::available(dev)) {
			EXPECT_EQ(try_control(dev, "fault clear"), 0);
		}
	}

	std::vector<TableRow> faults() const { return all_rows(dev, "faults"); }
	/* the only one */
	TableRow the_fault() const
	{
		const auto rows = faults();

		require(rows.size() == 1, std::to_string(rows.size()) + " faults are armed");
		return rows[0];
	}
	uint64_t counter(const std::string &name) const { return device_counter(dev, name); }
	static std::string qpn(ibv_qp *qp) { return std::to_string(qp->qp_num); }
};

class FaultTest : public FaultRcTest {
protected:
	int try_fault(const std::string &what) { return try_control(dev, "fault " + what); }
	void fault(const std::string &what) { require_ok(try_fault(what), "fault " + what); }
};

/* 0 or errno of a function that makes an object */
template <class T, class F> int make(F f)
{
	errno = 0;
	T object(f());
	return object.get() ? 0 : errno;
}

} // namespace conformance
