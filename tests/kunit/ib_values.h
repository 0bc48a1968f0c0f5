/* SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB */
/*
 * The values of the kernel's verbs enums that the pure files use.  The host
 * tests get their <rdma/ib_verbs.h> from this list; the KUnit module asserts
 * that the real one has the same values.
 */
#ifndef HERALD_TEST_IB_VALUES_H
#define HERALD_TEST_IB_VALUES_H

#define HERALD_IB_VALUES(X)			\
	X(IB_QPS_RESET, 0)			\
	X(IB_QPS_INIT, 1)			\
	X(IB_QPS_RTR, 2)			\
	X(IB_QPS_RTS, 3)			\
	X(IB_QPS_SQD, 4)			\
	X(IB_QPS_SQE, 5)			\
	X(IB_QPS_ERR, 6)			\
	X(IB_QPT_SMI, 0)			\
	X(IB_QPT_GSI, 1)			\
	X(IB_QPT_RC, 2)				\
	X(IB_QPT_UC, 3)				\
	X(IB_QPT_UD, 4)				\
	X(IB_MIG_MIGRATED, 0)			\
	X(IB_MIG_REARM, 1)			\
	X(IB_MIG_ARMED, 2)			\
	X(IB_WC_SUCCESS, 0)			\
	X(IB_WC_LOC_LEN_ERR, 1)			\
	X(IB_WC_LOC_QP_OP_ERR, 2)		\
	X(IB_WC_LOC_EEC_OP_ERR, 3)		\
	X(IB_WC_LOC_PROT_ERR, 4)		\
	X(IB_WC_WR_FLUSH_ERR, 5)		\
	X(IB_WC_MW_BIND_ERR, 6)			\
	X(IB_WC_BAD_RESP_ERR, 7)		\
	X(IB_WC_LOC_ACCESS_ERR, 8)		\
	X(IB_WC_REM_INV_REQ_ERR, 9)		\
	X(IB_WC_REM_ACCESS_ERR, 10)		\
	X(IB_WC_REM_OP_ERR, 11)			\
	X(IB_WC_RETRY_EXC_ERR, 12)		\
	X(IB_WC_RNR_RETRY_EXC_ERR, 13)		\
	X(IB_WC_FATAL_ERR, 19)			\
	X(IB_WC_RESP_TIMEOUT_ERR, 20)		\
	X(IB_WC_GENERAL_ERR, 21)		\
	X(IB_WC_SEND, 0)			\
	X(IB_WC_RDMA_WRITE, 1)			\
	X(IB_WC_RDMA_READ, 2)			\
	X(IB_WC_COMP_SWAP, 3)			\
	X(IB_WC_FETCH_ADD, 4)			\
	X(IB_WC_BIND_MW, 5)			\
	X(IB_WC_LOCAL_INV, 6)			\
	X(IB_WC_FLUSH, 8)			\
	X(IB_WC_ATOMIC_WRITE, 9)		\
	X(IB_WC_REG_MR, 10)			\
	X(IB_WC_RECV, 128)			\
	X(IB_WC_RECV_RDMA_WITH_IMM, 129)	\
	X(IB_ACCESS_LOCAL_WRITE, 1)		\
	X(IB_ACCESS_REMOTE_WRITE, 2)		\
	X(IB_ACCESS_REMOTE_READ, 4)		\
	X(IB_ACCESS_REMOTE_ATOMIC, 8)		\
	X(IB_ACCESS_MW_BIND, 16)		\
	X(IB_ACCESS_FLUSH_GLOBAL, 256)		\
	X(IB_ACCESS_FLUSH_PERSISTENT, 512)	\
	X(IB_EVENT_CQ_ERR, 0)			\
	X(IB_EVENT_QP_FATAL, 1)			\
	X(IB_EVENT_QP_REQ_ERR, 2)		\
	X(IB_EVENT_QP_ACCESS_ERR, 3)		\
	X(IB_EVENT_COMM_EST, 4)			\
	X(IB_EVENT_SQ_DRAINED, 5)		\
	X(IB_EVENT_SRQ_ERR, 14)			\
	X(IB_EVENT_SRQ_LIMIT_REACHED, 15)	\
	X(IB_EVENT_QP_LAST_WQE_REACHED, 16)

#endif /* HERALD_TEST_IB_VALUES_H */
