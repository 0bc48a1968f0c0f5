/* SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB */
/* Two RC QPs of one device, from RESET to RTS: for the test modules. */
#ifndef HERALD_TEST_CONNECT_H
#define HERALD_TEST_CONNECT_H

#include <rdma/ib_cache.h>
#include <rdma/ib_verbs.h>

static inline int connect_find_gid(struct ib_device *dev, union ib_gid *gid)
{
	static const union ib_gid none;
	int i;

	for (i = 0; i < 64; i++) {
		if (!rdma_query_gid(dev, 1, i, gid) && memcmp(gid, &none, sizeof(none)))
			return i;
	}
	return -ENOENT;
}

static inline int connect_to_rts(struct ib_qp *qp, u32 dest, const union ib_gid *gid, int index,
				 u8 timeout)
{
	struct ib_qp_attr a = {
		.qp_state = IB_QPS_INIT,
		.port_num = 1,
		.qp_access_flags = IB_ACCESS_REMOTE_WRITE | IB_ACCESS_REMOTE_READ,
		.path_mtu = IB_MTU_1024,
		.dest_qp_num = dest,
		.max_dest_rd_atomic = 4,
		.max_rd_atomic = 4,
		.min_rnr_timer = 1,
		.timeout = timeout,
		.retry_cnt = 7,
		.rnr_retry = 7,
	};
	int rc;

	rc = ib_modify_qp(qp, &a, IB_QP_STATE | IB_QP_PKEY_INDEX | IB_QP_PORT | IB_QP_ACCESS_FLAGS);
	if (rc)
		return rc;
	a.qp_state = IB_QPS_RTR;
	a.ah_attr.type = RDMA_AH_ATTR_TYPE_ROCE;
	rdma_ah_set_port_num(&a.ah_attr, 1);
	rdma_ah_set_grh(&a.ah_attr, NULL, 0, index, 64, 0);
	rdma_ah_set_dgid_raw(&a.ah_attr, (void *)gid->raw);
	rc = ib_modify_qp(qp, &a, IB_QP_STATE | IB_QP_AV | IB_QP_PATH_MTU | IB_QP_DEST_QPN |
			  IB_QP_RQ_PSN | IB_QP_MAX_DEST_RD_ATOMIC | IB_QP_MIN_RNR_TIMER);
	if (rc)
		return rc;
	a.qp_state = IB_QPS_RTS;
	return ib_modify_qp(qp, &a, IB_QP_STATE | IB_QP_SQ_PSN | IB_QP_TIMEOUT | IB_QP_RETRY_CNT |
			    IB_QP_RNR_RETRY | IB_QP_MAX_QP_RD_ATOMIC);
}

/* @timeout: of the QPs, as in struct ib_qp_attr.  Context: may sleep. */
static inline int connect_qps(struct ib_device *dev, struct ib_qp *a, struct ib_qp *b, u8 timeout)
{
	union ib_gid gid;
	int index = connect_find_gid(dev, &gid);

	if (index < 0)
		return index;
	return connect_to_rts(a, b->qp_num, &gid, index, timeout) ?:
	       connect_to_rts(b, a->qp_num, &gid, index, timeout);
}

#endif /* HERALD_TEST_CONNECT_H */
