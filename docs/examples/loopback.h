// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
//
// What the examples with a bug in them have in common: a device, and two queue pairs of one process that are connected to
// each other. Nothing in here is wrong on purpose.
#pragma once

#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>

#include <infiniband/verbs.h>

namespace loopback {

[[noreturn]] inline void die(const char *what)
{
	std::perror(what);
	std::exit(1);
}

inline void must(int rc, const char *what)
{
	if (rc)
		die(what);
}

template <class T> T *made(T *object, const char *what)
{
	if (!object)
		die(what);
	return object;
}

inline ibv_context *open_device(const char *name)
{
	ibv_device **list = made(ibv_get_device_list(nullptr), "ibv_get_device_list");
	ibv_context *context = nullptr;

	for (int i = 0; list[i]; i++) {
		if (!std::strcmp(ibv_get_device_name(list[i]), name))
			context = ibv_open_device(list[i]);
	}
	ibv_free_device_list(list);
	return made(context, name);
}

inline ibv_qp *create_qp(ibv_pd *pd, ibv_cq *send_cq, ibv_cq *recv_cq, ibv_srq *srq = nullptr)
{
	ibv_qp_init_attr init{};

	init.qp_type = IBV_QPT_RC;
	init.send_cq = send_cq;
	init.recv_cq = recv_cq;
	init.srq = srq;
	init.cap.max_send_wr = init.cap.max_recv_wr = 16;
	init.cap.max_send_sge = init.cap.max_recv_sge = 1;
	init.sq_sig_all = 1;
	return made(ibv_create_qp(pd, &init), "ibv_create_qp");
}

// RESET to RTS, connected to `peer` on the same device, by the first RoCEv2 address of its port.
inline void connect(ibv_qp *qp, const ibv_qp *peer)
{
	ibv_gid_entry gid{};
	ibv_qp_attr attr{};
	int index = -1;

	do
		must(ibv_query_gid_ex(qp->context, 1, static_cast<uint32_t>(++index), &gid, 0), "ibv_query_gid_ex");
	while (gid.gid_type != IBV_GID_TYPE_ROCE_V2);

	attr.qp_state = IBV_QPS_INIT;
	attr.port_num = 1;
	attr.qp_access_flags = IBV_ACCESS_REMOTE_WRITE;
	must(ibv_modify_qp(qp, &attr, IBV_QP_STATE | IBV_QP_PKEY_INDEX | IBV_QP_PORT | IBV_QP_ACCESS_FLAGS), "INIT");

	attr.qp_state = IBV_QPS_RTR;
	attr.path_mtu = IBV_MTU_1024;
	attr.dest_qp_num = peer->qp_num;
	attr.max_dest_rd_atomic = attr.max_rd_atomic = 1;
	attr.min_rnr_timer = 12;
	attr.ah_attr.is_global = 1;
	attr.ah_attr.port_num = 1;
	attr.ah_attr.grh.dgid = gid.gid;
	attr.ah_attr.grh.sgid_index = static_cast<uint8_t>(index);
	attr.ah_attr.grh.hop_limit = 1;
	must(ibv_modify_qp(qp, &attr,
			   IBV_QP_STATE | IBV_QP_AV | IBV_QP_PATH_MTU | IBV_QP_DEST_QPN | IBV_QP_RQ_PSN |
				   IBV_QP_MAX_DEST_RD_ATOMIC | IBV_QP_MIN_RNR_TIMER),
	     "RTR");

	attr.qp_state = IBV_QPS_RTS;
	attr.timeout = 14;
	attr.retry_cnt = attr.rnr_retry = 7;
	must(ibv_modify_qp(qp, &attr,
			   IBV_QP_STATE | IBV_QP_TIMEOUT | IBV_QP_RETRY_CNT | IBV_QP_RNR_RETRY | IBV_QP_SQ_PSN |
				   IBV_QP_MAX_QP_RD_ATOMIC),
	     "RTS");
}

inline void connect_both(ibv_qp *a, ibv_qp *b)
{
	connect(b, a);
	connect(a, b);
}

// Messages are numbers, and without a payload: the number is the immediate data.
inline void send(ibv_qp *qp, uint32_t number)
{
	ibv_send_wr wr{}, *bad = nullptr;

	wr.opcode = IBV_WR_SEND_WITH_IMM;
	wr.imm_data = number;
	must(ibv_post_send(qp, &wr, &bad), "ibv_post_send");
}

inline void receive(ibv_qp *qp)
{
	ibv_recv_wr wr{}, *bad = nullptr;

	must(ibv_post_recv(qp, &wr, &bad), "ibv_post_recv");
}

// `EXAMPLE DEVICE`, or `EXAMPLE DEVICE --fixed` for the program as it should be.
inline bool wants_fixed(int argc, char **argv)
{
	if (argc < 2 || argc > 3 || (argc == 3 && std::strcmp(argv[2], "--fixed"))) {
		std::fprintf(stderr, "usage: %s DEVICE [--fixed]\n", argv[0]);
		std::exit(2);
	}
	std::setvbuf(stdout, nullptr, _IOLBF, 0);
	return argc == 3;
}

// The next line of the standard input; false at its end.
inline bool next_line()
{
	int c;

	while ((c = std::getchar()) != '\n') {
		if (c == EOF)
			return false;
	}
	return true;
}

} // namespace loopback
