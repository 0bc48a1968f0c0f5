/* SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB */
/* What the device, its port and its tables say of themselves. */
#include "pair.h"

#include <net/if.h>

#include <fstream>
#include <set>

using namespace conformance;

class DeviceTest : public Verbs {};

/* CASES 40: an application special-cases vendor_id 0 and 0xFFFFFF. */
TEST_F(DeviceTest, Cases40_VendorIdIsReal)
{
	EXPECT_NE(dev.attr.vendor_id, 0u);
	EXPECT_NE(dev.attr.vendor_id, 0xffffffu);
}

/* ibv_query_device(3): limits are there, and are not nonsense. */
TEST_F(DeviceTest, LimitsAreThere)
{
	const ibv_device_attr &a = dev.attr;

	EXPECT_EQ(a.phys_port_cnt, 1);
	EXPECT_GT(a.max_qp, 0);
	EXPECT_GT(a.max_qp_wr, 0);
	EXPECT_GT(a.max_sge, 0);
	EXPECT_GT(a.max_sge_rd, 0);
	EXPECT_GT(a.max_cq, 0);
	EXPECT_GT(a.max_cqe, 0);
	EXPECT_GT(a.max_mr, 0);
	EXPECT_GT(a.max_pd, 0);
	EXPECT_GT(a.max_ah, 0);
	EXPECT_GT(a.max_srq, 0);
	EXPECT_GT(a.max_srq_wr, 0);
	EXPECT_GT(a.max_srq_sge, 0);
	EXPECT_GT(a.max_qp_rd_atom, 0);
	EXPECT_GT(a.max_qp_init_rd_atom, 0);
	EXPECT_GT(a.max_mcast_grp, 0);
	EXPECT_GT(a.max_mcast_qp_attach, 0);
	EXPECT_GE(a.max_total_mcast_qp_attach, a.max_mcast_qp_attach);
	EXPECT_GE(a.max_mr_size, 1ull << 30);
	EXPECT_NE(a.page_size_cap & 4096, 0u);
	EXPECT_GE(a.max_pkeys, 1);
	EXPECT_NE(a.node_guid, 0u);
}

/* ibv_query_device_ex(3) agrees with ibv_query_device(3). */
TEST_F(DeviceTest, ExtendedQueryAgrees)
{
	ibv_device_attr_ex ex{};

	ASSERT_EQ(ibv_query_device_ex(dev, nullptr, &ex), 0);
	EXPECT_EQ(ex.orig_attr.max_qp, dev.attr.max_qp);
	EXPECT_EQ(ex.orig_attr.max_cqe, dev.attr.max_cqe);
	EXPECT_EQ(ex.orig_attr.vendor_id, dev.attr.vendor_id);
	EXPECT_EQ(ex.orig_attr.device_cap_flags, dev.attr.device_cap_flags);
	/* paging on demand is not offered, so none of its parts may be */
	EXPECT_EQ(ex.odp_caps.general_caps, 0u);
}

/* The capability bits that the rest of this program relies on. */
TEST_F(DeviceTest, CapabilitiesAreAdvertised)
{
	unsigned int caps = dev.attr.device_cap_flags;

	EXPECT_TRUE(caps & IBV_DEVICE_RC_RNR_NAK_GEN);
	EXPECT_TRUE(caps & IBV_DEVICE_SYS_IMAGE_GUID);
	EXPECT_TRUE(caps & IBV_DEVICE_MEM_MGT_EXTENSIONS);
	EXPECT_NE(dev.attr.atomic_cap, IBV_ATOMIC_NONE);
}

TEST_F(DeviceTest, PortIsAnActiveEthernetPort)
{
	EXPECT_EQ(dev.port.state, IBV_PORT_ACTIVE);
	EXPECT_EQ(dev.port.link_layer, IBV_LINK_LAYER_ETHERNET);
	EXPECT_EQ(dev.port.phys_state, 5) << "LinkUp";
	EXPECT_GE(dev.port.pkey_tbl_len, 1);
	EXPECT_GT(dev.port.gid_tbl_len, 0);
	EXPECT_GE(dev.port.active_mtu, IBV_MTU_256);
	EXPECT_LE(dev.port.active_mtu, dev.port.max_mtu);
	EXPECT_GE(dev.port.max_msg_sz, 1u << 30) << "at least 1 GiB is promised";
	EXPECT_NE(dev.port.active_speed, 0);
	EXPECT_NE(dev.port.active_width, 0);
}

/* Ports are numbered from 1; the device has one. */
TEST_F(DeviceTest, QueryOfAMissingPortFails)
{
	ibv_port_attr port{};

	EXPECT_EQ(code(ibv_query_port(dev, 0, &port)), EINVAL);
	EXPECT_EQ(code(ibv_query_port(dev, 2, &port)), EINVAL);
}

/* IBTA 10.9.1.2: the default P_Key; the second entry is for the tests' PKEY_CHANGE. */
TEST_F(DeviceTest, PkeyTableHoldsTheDefaultKey)
{
	__be16 pkey = 0;

	ASSERT_EQ(ibv_query_pkey(dev, 1, 0, &pkey), 0);
	EXPECT_EQ(pkey, htobe16(0xffff));
	EXPECT_EQ(dev.attr.max_pkeys, dev.port.pkey_tbl_len);
	EXPECT_NE(ibv_query_pkey(dev, 1, dev.port.pkey_tbl_len, &pkey), 0);
}

/* CASES 87, 89: GIDs are RoCEv2, distinct, and name their interface. */
TEST_F(DeviceTest, GidTableIsConsistent)
{
	std::set<std::string> seen;
	int found = 0;

	for (int i = 0; i < dev.port.gid_tbl_len; i++) {
		ibv_gid_entry entry{};
		char ifname[IF_NAMESIZE];

		if (ibv_query_gid_ex(dev, 1, i, &entry, 0))
			continue;
		found++;
		EXPECT_EQ(entry.gid_type, IBV_GID_TYPE_ROCE_V2) << "index " << i;
		EXPECT_EQ(entry.gid_index, static_cast<uint32_t>(i));
		EXPECT_EQ(entry.port_num, 1u);
		EXPECT_NE(if_indextoname(entry.ndev_ifindex, ifname), nullptr) << "index " << i;
		std::string raw(reinterpret_cast<char *>(entry.gid.raw), 16);
		raw += std::to_string(entry.ndev_ifindex);
		EXPECT_TRUE(seen.insert(raw).second) << "GID " << i << " is there twice";

		ibv_gid plain{};
		EXPECT_EQ(ibv_query_gid(dev, 1, i, &plain), 0);
		EXPECT_EQ(memcmp(plain.raw, entry.gid.raw, 16), 0);
	}
	EXPECT_GT(found, 0);
}

TEST_F(DeviceTest, GidTableQueryAgrees)
{
	std::vector<ibv_gid_entry> table(dev.port.gid_tbl_len);
	ssize_t n = ibv_query_gid_table(dev, table.data(), table.size(), 0);

	ASSERT_GT(n, 0);
	for (ssize_t i = 0; i < n; i++)
		EXPECT_EQ(memcmp(dev.gid(table[i].gid_index).raw, table[i].gid.raw, 16), 0);
}

TEST_F(DeviceTest, GidIndexOutOfRangeFails)
{
	ibv_gid gid{};

	EXPECT_NE(ibv_query_gid(dev, 1, dev.port.gid_tbl_len, &gid), 0);
	EXPECT_NE(ibv_query_gid(dev, 1, -1, &gid), 0);
}

/* ibv_event_type_str(3), ibv_wc_status_str(3): the strings exist for all that this device raises. */
TEST_F(DeviceTest, NodeIsAChannelAdapter)
{
	EXPECT_EQ(dev.ctx->device->node_type, IBV_NODE_CA);
	EXPECT_EQ(dev.ctx->device->transport_type, IBV_TRANSPORT_IB);
	EXPECT_NE(ibv_get_device_guid(dev.ctx->device), 0u);
}

/* sysfs and ibverbs tell the same story. */
TEST_F(DeviceTest, SysfsAgrees)
{
	std::ifstream state("/sys/class/infiniband/" + dev.name + "/ports/1/state");
	std::ifstream layer("/sys/class/infiniband/" + dev.name + "/ports/1/link_layer");
	std::string line;

	ASSERT_TRUE(std::getline(state, line));
	EXPECT_EQ(line, "4: ACTIVE");
	ASSERT_TRUE(std::getline(layer, line));
	EXPECT_EQ(line, "Ethernet");
}

/* Many contexts of one device at once, each with objects, closed in any order. */
TEST_F(DeviceTest, ManyContexts)
{
	std::vector<std::pair<Context, Pd>> all;

	for (int i = 0; i < 32; i++) {
		Context ctx = open_device(dev.name);
		Pd p = make_pd(ctx);

		all.emplace_back(std::move(ctx), std::move(p));
	}
	for (size_t i = 0; i < all.size(); i += 2) {
		EXPECT_EQ(all[i].second.destroy(), 0);
		EXPECT_EQ(all[i].first.destroy(), 0);
	}
	while (!all.empty()) {
		all.back().second.reset();
		all.back().first.reset();
		all.pop_back();
	}
}

/* num_comp_vectors is honest: each vector works, the next one does not (CASES 38, rule C12). */
TEST_F(DeviceTest, Cases38_CompletionVectorsAreHonest)
{
	ASSERT_GT(dev.ctx->num_comp_vectors, 0);
	for (int v = 0; v < dev.ctx->num_comp_vectors; v++)
		make_cq(dev, 1, nullptr, nullptr, v);
	for (int v : {dev.ctx->num_comp_vectors, dev.ctx->num_comp_vectors + 7, -1}) {
		errno = 0;
		Cq cq(ibv_create_cq(dev, 1, nullptr, nullptr, v));
		EXPECT_EQ(cq.get(), nullptr) << "vector " << v;
		EXPECT_EQ(errno, EINVAL) << "vector " << v;
	}
}
