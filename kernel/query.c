// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/* What the device and its port say of themselves. */
#include <linux/ethtool.h>
#include <rdma/ib_addr.h>
#include <rdma/ib_mad.h>
#include <rdma/herald-abi.h>

#include "device.h"
#include "udata.h"
#include "version.h"

/* A locally administered OUI: nobody's, and none that applications special-case. */
#define HERALD_VENDOR_ID	0x024845
#define HERALD_VENDOR_PART_ID	1
#define HERALD_HW_VER		1

/* 4.096 us << 15: a busy host answers within 134 ms */
#define HERALD_CA_ACK_DELAY	15

/* Completion timestamps are in nanoseconds. */
#define HERALD_CLOCK_KHZ	1000000

static u64 herald_fw_ver(void)
{
	return (u64)HERALD_VERSION_MAJOR << 32 | HERALD_VERSION_MINOR << 16 |
	       HERALD_VERSION_PATCH;
}

static void herald_query_limits(struct ib_device_attr *attr)
{
	attr->max_mr_size = U64_MAX;
	attr->page_size_cap = GENMASK_ULL(31, PAGE_SHIFT);
	attr->max_qp = HERALD_MAX_QP;
	attr->max_qp_wr = HERALD_MAX_QP_WR;
	attr->max_send_sge = HERALD_MAX_SGE;
	attr->max_recv_sge = HERALD_MAX_SGE;
	attr->max_sge_rd = HERALD_MAX_SGE;
	attr->max_cq = HERALD_MAX_CQ;
	attr->max_cqe = HERALD_MAX_CQE;
	attr->max_mr = HERALD_MAX_MR;
	attr->max_mw = HERALD_MAX_MW;
	attr->max_pd = HERALD_MAX_PD;
	attr->max_ah = HERALD_MAX_AH;
	attr->max_srq = HERALD_MAX_SRQ;
	attr->max_srq_wr = HERALD_MAX_SRQ_WR;
	attr->max_srq_sge = HERALD_MAX_SGE;
	attr->max_qp_rd_atom = HERALD_MAX_RD_ATOMIC;
	attr->max_qp_init_rd_atom = HERALD_MAX_RD_ATOMIC;
	attr->max_res_rd_atom = HERALD_MAX_RD_ATOMIC * HERALD_MAX_QP;
	attr->max_mcast_grp = HERALD_MAX_MCAST_GRP;
	attr->max_mcast_qp_attach = HERALD_MAX_MCAST_QP;
	attr->max_total_mcast_qp_attach = HERALD_MAX_MCAST_GRP * HERALD_MAX_MCAST_QP;
	attr->max_fast_reg_page_list_len = HERALD_MAX_FAST_REG;
	attr->max_pkeys = HERALD_PKEY_TABLE_LEN;
}

int herald_query_device(struct ib_device *ibdev, struct ib_device_attr *attr,
			struct ib_udata *udata)
{
	int err = herald_udata_zero(udata);

	if (err)
		return err;
	herald_query_limits(attr);
	attr->fw_ver = herald_fw_ver();
	attr->sys_image_guid = ibdev->node_guid;
	attr->vendor_id = HERALD_VENDOR_ID;
	attr->vendor_part_id = HERALD_VENDOR_PART_ID;
	attr->hw_ver = HERALD_HW_VER;
	attr->device_cap_flags = IB_DEVICE_AUTO_PATH_MIG |
		IB_DEVICE_BAD_PKEY_CNTR | IB_DEVICE_BAD_QKEY_CNTR |
		IB_DEVICE_UD_AV_PORT_ENFORCE | IB_DEVICE_CURR_QP_STATE_MOD |
		IB_DEVICE_PORT_ACTIVE_EVENT | IB_DEVICE_SYS_IMAGE_GUID |
		IB_DEVICE_RC_RNR_NAK_GEN | IB_DEVICE_MEM_MGT_EXTENSIONS |
		IB_DEVICE_MEM_WINDOW | IB_DEVICE_MEM_WINDOW_TYPE_2B |
		IB_DEVICE_FLUSH_GLOBAL | IB_DEVICE_ATOMIC_WRITE;
	if (IS_ENABLED(CONFIG_ARCH_HAS_PMEM_API))
		attr->device_cap_flags |= IB_DEVICE_FLUSH_PERSISTENT;
	attr->kernel_cap_flags = IBK_LOCAL_DMA_LKEY | IBK_ALLOW_USER_UNREG;
	attr->atomic_cap = IB_ATOMIC_GLOB;
	attr->masked_atomic_cap = IB_ATOMIC_NONE;
	attr->local_ca_ack_delay = HERALD_CA_ACK_DELAY;
	attr->timestamp_mask = U64_MAX;
	attr->cq_caps.max_cq_moderation_count = U16_MAX;
	attr->cq_caps.max_cq_moderation_period = U16_MAX;
	attr->hca_core_clock = HERALD_CLOCK_KHZ;
	return 0;
}

int herald_modify_device(struct ib_device *ibdev, int mask, struct ib_device_modify *modify)
{
	if (mask & ~IB_DEVICE_MODIFY_NODE_DESC)
		return -EOPNOTSUPP;
	if (mask & IB_DEVICE_MODIFY_NODE_DESC)
		memcpy(ibdev->node_desc, modify->node_desc, sizeof(ibdev->node_desc));
	return 0;
}

/* The interface's speed if it has one; else the least there is, without the core's warning. */
static void herald_query_speed(struct ib_device *ibdev, u32 port, struct ib_port_attr *attr)
{
	struct net_device *ndev = ib_device_get_netdev(ibdev, port);
	bool known = ndev && ndev->ethtool_ops && ndev->ethtool_ops->get_link_ksettings;

	dev_put(ndev);
	if (known && !ib_get_eth_speed(ibdev, port, &attr->active_speed, &attr->active_width))
		return;
	attr->active_speed = IB_SPEED_SDR;
	attr->active_width = IB_WIDTH_1X;
}

static u8 herald_phys_state(struct herald_dev *dev, bool up)
{
	struct net_device *ndev;
	bool running;

	if (up)
		return IB_PORT_PHYS_STATE_LINK_UP;
	rcu_read_lock();
	ndev = rcu_dereference(dev->ndev);
	running = ndev && netif_running(ndev);
	rcu_read_unlock();
	return running ? IB_PORT_PHYS_STATE_POLLING : IB_PORT_PHYS_STATE_DISABLED;
}

int herald_query_port(struct ib_device *ibdev, u32 port, struct ib_port_attr *attr)
{
	struct herald_dev *dev = to_hdev(ibdev);
	bool up = herald_dev_port_up(dev);

	attr->state = up ? IB_PORT_ACTIVE : IB_PORT_DOWN;
	attr->phys_state = herald_phys_state(dev, up);
	attr->max_mtu = IB_MTU_4096;
	attr->active_mtu = ib_mtu_int_to_enum(herald_dev_mtu(dev));
	attr->phys_mtu = herald_dev_mtu(dev);
	attr->gid_tbl_len = HERALD_GID_TABLE_LEN;
	attr->ip_gids = true;
	attr->port_cap_flags = IB_PORT_CM_SUP;
	attr->max_msg_sz = HERALD_MAX_MSG;
	attr->pkey_tbl_len = HERALD_PKEY_TABLE_LEN;
	attr->bad_pkey_cntr = herald_counter_read(dev, HERALD_CTR_ud_dropped_pkey);
	attr->qkey_viol_cntr = herald_counter_read(dev, HERALD_CTR_ud_dropped_qkey);
	attr->max_vl_num = 1;
	herald_query_speed(ibdev, port, attr);
	return 0;
}

int herald_query_pkey(struct ib_device *ibdev, u32 port, u16 index, u16 *pkey)
{
	if (index >= HERALD_PKEY_TABLE_LEN)
		return -EINVAL;
	*pkey = herald_dev_pkey(to_hdev(ibdev), index);
	return 0;
}

int herald_get_port_immutable(struct ib_device *ibdev, u32 port, struct ib_port_immutable *imm)
{
	imm->core_cap_flags = RDMA_CORE_PORT_IBA_ROCE_UDP_ENCAP;
	imm->max_mad_size = IB_MGMT_MAD_SIZE;
	imm->gid_tbl_len = HERALD_GID_TABLE_LEN;
	imm->pkey_tbl_len = HERALD_PKEY_TABLE_LEN;
	return 0;
}

enum rdma_link_layer herald_get_link_layer(struct ib_device *ibdev, u32 port)
{
	return IB_LINK_LAYER_ETHERNET;
}

void herald_get_dev_fw_str(struct ib_device *ibdev, char *str)
{
	snprintf(str, IB_FW_VERSION_NAME_MAX, "%s", HERALD_VERSION);
}

/* ------------------------------------------------------------- sysfs -- */

/* The provider knows its devices by this, whatever their names are. */
static ssize_t hca_type_show(struct device *device, struct device_attribute *attr, char *buf)
{
	return sysfs_emit(buf, "%s\n", HERALD_HCA_TYPE);
}
static DEVICE_ATTR_RO(hca_type);

/* The interface that the device was made on. */
static ssize_t parent_show(struct device *device, struct device_attribute *attr, char *buf)
{
	struct herald_dev *dev = rdma_device_to_drv_device(device, struct herald_dev, ib);
	struct net_device *ndev;
	ssize_t len = 0;

	rcu_read_lock();
	ndev = rcu_dereference(dev->ndev);
	if (ndev)
		len = sysfs_emit(buf, "%s\n", ndev->name);
	rcu_read_unlock();
	return len;
}
static DEVICE_ATTR_RO(parent);

static struct attribute *herald_attributes[] = {
	&dev_attr_hca_type.attr,
	&dev_attr_parent.attr,
	NULL,
};

const struct attribute_group herald_attr_group = {
	.attrs = herald_attributes,
};
