/* SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB */
#include "migration.h"

#include <arpa/inet.h>

namespace conformance {

Attr alt_attr(const Device &dev, int sgid_index, int dgid_index, uint8_t timeout, uint16_t pkey_index)
{
	Attr at;

	at.mask = IBV_QP_ALT_PATH;
	at.a.alt_port_num = Device::port_num;
	at.a.alt_timeout = timeout;
	at.a.alt_pkey_index = pkey_index;
	at.a.alt_ah_attr.is_global = 1;
	at.a.alt_ah_attr.port_num = Device::port_num;
	at.a.alt_ah_attr.grh.dgid = dev.gid(dgid_index);
	at.a.alt_ah_attr.grh.sgid_index = static_cast<uint8_t>(sgid_index);
	at.a.alt_ah_attr.grh.hop_limit = 64;
	return at;
}

Attr mig_attr(ibv_mig_state state)
{
	Attr at;

	at.mask = IBV_QP_PATH_MIG_STATE;
	at.a.path_mig_state = state;
	return at;
}

Attr rearm_attr(Attr alt)
{
	alt.mask |= IBV_QP_PATH_MIG_STATE;
	alt.a.path_mig_state = IBV_MIG_REARM;
	return alt;
}

ibv_qp_attr query_path(ibv_qp *qp)
{
	ibv_qp_attr attr{};
	ibv_qp_init_attr init{};

	require_ok(ibv_query_qp(qp, &attr,
				IBV_QP_STATE | IBV_QP_AV | IBV_QP_PKEY_INDEX | IBV_QP_TIMEOUT | IBV_QP_ALT_PATH |
					IBV_QP_PATH_MIG_STATE,
				&init),
		   "ibv_query_qp");
	return attr;
}

ibv_mig_state mig_state(ibv_qp *qp)
{
	return query_path(qp).path_mig_state;
}

const char *mig_name(ibv_mig_state state)
{
	switch (state) {
	case IBV_MIG_MIGRATED:
		return "MIGRATED";
	case IBV_MIG_REARM:
		return "REARM";
	case IBV_MIG_ARMED:
		return "ARMED";
	}
	return "?";
}

void expect_mig_state(ibv_qp *qp, ibv_mig_state state)
{
	EXPECT_STREQ(mig_name(mig_state(qp)), mig_name(state));
}

/* ------------------------------------------------------------ addresses -- */

Address::Address(std::string netdev, std::string address) : netdev_(std::move(netdev)), address_(std::move(address))
{
	add();
}

Address::Address(Address &&o) noexcept
	: netdev_(std::move(o.netdev_)), address_(std::move(o.address_)), there_(std::exchange(o.there_, false))
{
}

Address::~Address()
{
	if (there_) {
		EXPECT_EQ(system(("ip addr del " + address_ + "/32 dev " + netdev_).c_str()), 0);
	}
}

void Address::add()
{
	require_ok(system(("ip addr add " + address_ + "/32 dev " + netdev_).c_str()), "ip addr add");
	there_ = true;
}

std::optional<int> Address::look(const Device &dev) const
{
	ibv_gid gid{};
	std::vector<ibv_gid_entry> entries(static_cast<size_t>(dev.port.gid_tbl_len));

	gid.raw[10] = gid.raw[11] = 0xff;
	require(inet_pton(AF_INET, address_.c_str(), gid.raw + 12) == 1, address_);
	const ssize_t n = ibv_query_gid_table(dev.get(), entries.data(), entries.size(), 0);
	require(n >= 0, "ibv_query_gid_table");
	for (const ibv_gid_entry &e : std::span(entries).first(static_cast<size_t>(n)))
		if (e.gid_type == IBV_GID_TYPE_ROCE_V2 && !memcmp(&e.gid, &gid, sizeof(gid)))
			return static_cast<int>(e.gid_index);
	return {};
}

int Address::index(const Device &dev) const
{
	const auto end = Clock::now() + patience();

	while (Clock::now() < end) {
		if (auto i = look(dev))
			return *i;
		std::this_thread::yield();
	}
	fail(address_ + " does not come into the GID table");
}

void Address::remove(const Device &dev)
{
	const auto end = Clock::now() + patience();

	require_ok(system(("ip addr del " + address_ + "/32 dev " + netdev_).c_str()), "ip addr del");
	there_ = false;
	while (look(dev)) {
		if (Clock::now() > end)
			fail(address_ + " stays in the GID table");
		std::this_thread::yield();
	}
}

} // namespace conformance
