/* SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB */
/*
 * The provider as rdma-core sees it: tables, and the commands to the kernel.
 * The only file that includes the private driver.h, which is not C++.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include <ccan/str.h>
#include <infiniband/driver.h>
#include <infiniband/kern-abi.h>

#include "herald_core.h"

/* rdma-core's own build would make anonymous members of a driver's structures; drv_payload is enough. */
#define _STRUCT_herald_alloc_ucontext_resp                                                                             \
	struct {}
#define _STRUCT_herald_create_cq_req                                                                                   \
	struct {}
#define _STRUCT_herald_create_cq_resp                                                                                  \
	struct {}
#define _STRUCT_herald_resize_cq_resp                                                                                  \
	struct {}
#define _STRUCT_herald_create_qp_req                                                                                   \
	struct {}
#define _STRUCT_herald_create_qp_resp                                                                                  \
	struct {}
#define _STRUCT_herald_modify_qp_req                                                                                   \
	struct {}
#define _STRUCT_herald_create_srq_req                                                                                  \
	struct {}
#define _STRUCT_herald_create_srq_resp                                                                                 \
	struct {}
#define _STRUCT_herald_create_ah_resp                                                                                  \
	struct {}

DECLARE_DRV_CMD(herald_cmd_get_context, IB_USER_VERBS_CMD_GET_CONTEXT, empty, herald_alloc_ucontext_resp);
DECLARE_DRV_CMD(herald_cmd_create_cq, IB_USER_VERBS_EX_CMD_CREATE_CQ, herald_create_cq_req, herald_create_cq_resp);
DECLARE_DRV_CMD(herald_cmd_resize_cq, IB_USER_VERBS_CMD_RESIZE_CQ, empty, herald_resize_cq_resp);
DECLARE_DRV_CMD(herald_cmd_create_qp, IB_USER_VERBS_CMD_CREATE_QP, herald_create_qp_req, herald_create_qp_resp);
DECLARE_DRV_CMD(herald_cmd_modify_qp, IB_USER_VERBS_EX_CMD_MODIFY_QP, herald_modify_qp_req, empty);
DECLARE_DRV_CMD(herald_cmd_create_srq, IB_USER_VERBS_CMD_CREATE_SRQ, herald_create_srq_req, herald_create_srq_resp);
DECLARE_DRV_CMD(herald_cmd_create_ah, IB_USER_VERBS_CMD_CREATE_AH, empty, herald_create_ah_resp);

static_assert(sizeof(struct verbs_cq) == sizeof(struct ibv_cq_ex), "the core allocates a struct ibv_cq_ex");
static_assert(sizeof(struct verbs_qp) <= HERALD_VERBS_QP_ROOM, "struct verbs_qp does not fit");

struct herald_context {
	struct verbs_context verbs;
	bool single_threaded;
};

static bool single_threaded(struct ibv_context *context)
{
	return container_of(context, struct herald_context, verbs.context)->single_threaded;
}

/*
 * EIO: the device is going, and the kernel destroys all objects by itself: what
 * is left to destroy is ours.
 */
static int destroyed(int ret)
{
	return ret == EIO ? 0 : ret;
}

/* A create function's failure. */
static void *fail(int error)
{
	errno = error;
	return NULL;
}

/* -------------------------------------------------------------- device -- */

static int query_device_ex(struct ibv_context *context, const struct ibv_query_device_ex_input *input,
			   struct ibv_device_attr_ex *attr, size_t attr_size)
{
	struct ib_uverbs_ex_query_device_resp resp;
	size_t resp_size = sizeof(resp);
	int ret = ibv_cmd_query_device_any(context, input, attr, attr_size, &resp, &resp_size);
	uint64_t version;

	if (ret)
		return ret;
	version = resp.base.fw_ver;
	snprintf(attr->orig_attr.fw_ver, sizeof(attr->orig_attr.fw_ver), "%u.%u.%u", (unsigned int)(version >> 32),
		 (unsigned int)(version >> 16 & 0xffff), (unsigned int)(version & 0xffff));
	return 0;
}

static int query_port(struct ibv_context *context, uint8_t port, struct ibv_port_attr *attr)
{
	struct ibv_query_port cmd;

	return ibv_cmd_query_port(context, port, attr, &cmd, sizeof(cmd));
}

/* The clock of completion timestamps. */
static int query_rt_values(struct ibv_context *context, struct ibv_values_ex *values)
{
	(void)context;
	if (values->comp_mask & IBV_VALUES_MASK_RAW_CLOCK)
		clock_gettime(CLOCK_MONOTONIC, &values->raw_clock);
	values->comp_mask &= IBV_VALUES_MASK_RAW_CLOCK;
	return 0;
}

/* ------------------------------------------------------- PD, MR, MW, AH -- */

static struct ibv_pd *alloc_pd(struct ibv_context *context)
{
	struct ib_uverbs_alloc_pd_resp resp;
	struct ibv_alloc_pd cmd;
	struct ibv_pd *pd = calloc(1, sizeof(*pd));
	int ret;

	if (!pd)
		return fail(ENOMEM);
	ret = ibv_cmd_alloc_pd(context, pd, &cmd, sizeof(cmd), &resp, sizeof(resp));
	if (ret) {
		free(pd);
		return fail(ret);
	}
	return pd;
}

static int dealloc_pd(struct ibv_pd *pd)
{
	int ret = destroyed(ibv_cmd_dealloc_pd(pd));

	if (!ret)
		free(pd);
	return ret;
}

static struct ibv_mr *reg_mr(struct ibv_pd *pd, void *addr, size_t length, uint64_t hca_va, int access)
{
	struct ib_uverbs_reg_mr_resp resp;
	struct ibv_reg_mr cmd;
	struct verbs_mr *mr = calloc(1, sizeof(*mr));
	int ret;

	if (!mr)
		return fail(ENOMEM);
	ret = ibv_cmd_reg_mr(pd, addr, length, hca_va, access, mr, &cmd, sizeof(cmd), &resp, sizeof(resp));
	if (ret) {
		free(mr);
		return fail(ret);
	}
	return &mr->ibv_mr;
}

static int rereg_mr(struct verbs_mr *mr, int flags, struct ibv_pd *pd, void *addr, size_t length, int access)
{
	struct ib_uverbs_rereg_mr_resp resp;
	struct ibv_rereg_mr cmd;

	return ibv_cmd_rereg_mr(mr, flags, addr, length, (uintptr_t)addr, access, pd, &cmd, sizeof(cmd), &resp,
				sizeof(resp));
}

static int dereg_mr(struct verbs_mr *mr)
{
	int ret = destroyed(ibv_cmd_dereg_mr(mr));

	if (!ret)
		free(mr);
	return ret;
}

static struct ibv_mw *alloc_mw(struct ibv_pd *pd, enum ibv_mw_type type)
{
	struct ib_uverbs_alloc_mw_resp resp;
	struct ibv_alloc_mw cmd;
	struct ibv_mw *mw = calloc(1, sizeof(*mw));
	int ret;

	if (!mw)
		return fail(ENOMEM);
	ret = ibv_cmd_alloc_mw(pd, type, mw, &cmd, sizeof(cmd), &resp, sizeof(resp));
	if (ret) {
		free(mw);
		return fail(ret);
	}
	return mw;
}

static int dealloc_mw(struct ibv_mw *mw)
{
	int ret = destroyed(ibv_cmd_dealloc_mw(mw));

	if (!ret)
		free(mw);
	return ret;
}

static struct ibv_ah *create_ah(struct ibv_pd *pd, struct ibv_ah_attr *attr)
{
	struct herald_cmd_create_ah_resp resp = {};
	struct herald_uah *ah = calloc(1, sizeof(*ah));
	int ret;

	if (!ah)
		return fail(ENOMEM);
	ret = ibv_cmd_create_ah(pd, &ah->ibv, attr, &resp.ibv_resp, sizeof(resp));
	if (ret) {
		free(ah);
		return fail(ret);
	}
	ah->number = resp.drv_payload.ah;
	return &ah->ibv;
}

static int destroy_ah(struct ibv_ah *ibah)
{
	int ret = destroyed(ibv_cmd_destroy_ah(ibah));

	if (!ret)
		free(container_of(ibah, struct herald_uah, ibv));
	return ret;
}

/* ------------------------------------------------------------------ CQ -- */

static struct ibv_cq_ex *make_cq(struct ibv_context *context, struct ibv_cq_init_attr_ex *attr, bool alone)
{
	struct herald_cmd_create_cq_resp resp = {};
	struct herald_cmd_create_cq cmd = {};
	struct ibv_cq_ex *cq = herald_cq_new(alone);
	int ret;

	if (!cq)
		return fail(ENOMEM);
	ret = ibv_cmd_create_cq_ex(context, attr, container_of(cq, struct verbs_cq, cq_ex), &cmd.ibv_cmd, sizeof(cmd),
				   &resp.ibv_resp, sizeof(resp), 0);
	if (ret)
		goto err;
	ret = herald_cq_map(cq, context->cmd_fd, &resp.drv_payload.ring);
	if (ret) {
		ibv_cmd_destroy_cq(ibv_cq_ex_to_cq(cq));
		goto err;
	}
	herald_cq_set_id(cq, resp.drv_payload.cq_id);
	return cq;
err:
	herald_cq_free(cq);
	return fail(ret);
}

static struct ibv_cq *create_cq(struct ibv_context *context, int cqe, struct ibv_comp_channel *channel, int comp_vector)
{
	struct ibv_cq_init_attr_ex attr = {
		.cqe = cqe,
		.channel = channel,
		.comp_vector = comp_vector,
	};
	struct ibv_cq_ex *cq;

	if (cqe <= 0)
		return fail(EINVAL);
	cq = make_cq(context, &attr, single_threaded(context));
	return cq ? ibv_cq_ex_to_cq(cq) : NULL;
}

static struct ibv_cq_ex *create_cq_ex(struct ibv_context *context, struct ibv_cq_init_attr_ex *attr)
{
	uint32_t flags = attr->comp_mask & IBV_CQ_INIT_ATTR_MASK_FLAGS ? attr->flags : 0;
	struct ibv_cq_ex *cq;

	if (!check_comp_mask(attr->comp_mask, IBV_CQ_INIT_ATTR_MASK_FLAGS) ||
	    (flags & ~IBV_CREATE_CQ_ATTR_SINGLE_THREADED) || !herald_cq_ex_supports(attr->wc_flags))
		return fail(EOPNOTSUPP);
	cq = make_cq(context, attr, single_threaded(context) || (flags & IBV_CREATE_CQ_ATTR_SINGLE_THREADED));
	if (cq)
		herald_cq_set_ex(cq, attr->wc_flags);
	return cq;
}

static int modify_cq(struct ibv_cq *cq, struct ibv_modify_cq_attr *attr)
{
	struct ibv_modify_cq cmd;

	return ibv_cmd_modify_cq(cq, attr, &cmd, sizeof(cmd));
}

static int resize_cq(struct ibv_cq *cq, int cqe)
{
	struct herald_cmd_resize_cq_resp resp = {};
	struct ibv_resize_cq cmd;
	int ret, ret2;

	if (cqe <= 0)
		return EINVAL;
	ret = herald_cq_resize_begin(cq);
	if (ret)
		return ret;
	ret = ibv_cmd_resize_cq(cq, cqe, &cmd, sizeof(cmd), &resp.ibv_resp, sizeof(resp));
	ret2 = herald_cq_resize_end(cq, cq->context->cmd_fd, ret ? NULL : &resp.drv_payload.ring);
	return ret ? ret : ret2;
}

static int destroy_cq(struct ibv_cq *cq)
{
	int ret = ibv_cmd_destroy_cq(cq);

	if (ret == EIO && herald_cq_in_use(cq))
		return EBUSY;
	ret = destroyed(ret);
	if (!ret) {
		herald_cq_await_acks(cq);
		herald_cq_free((struct ibv_cq_ex *)cq);
	}
	return ret;
}

/* ----------------------------------------------------------------- SRQ -- */

static struct ibv_srq *create_srq(struct ibv_pd *pd, struct ibv_srq_init_attr *attr)
{
	struct herald_cmd_create_srq_resp resp = {};
	struct herald_cmd_create_srq cmd = {};
	struct ibv_srq *srq = herald_srq_new(single_threaded(pd->context));
	int ret;

	if (!srq)
		return fail(ENOMEM);
	ret = ibv_cmd_create_srq(pd, srq, attr, &cmd.ibv_cmd, sizeof(cmd), &resp.ibv_resp, sizeof(resp));
	if (ret)
		goto err;
	ret = herald_srq_map(srq, pd->context->cmd_fd, &resp.drv_payload.rq, attr->attr.max_wr, attr->attr.max_sge);
	if (ret) {
		ibv_cmd_destroy_srq(srq);
		goto err;
	}
	herald_srq_set_number(srq, resp.drv_payload.srq_num);
	return srq;
err:
	herald_srq_free(srq);
	return fail(ret);
}

static int modify_srq(struct ibv_srq *srq, struct ibv_srq_attr *attr, int mask)
{
	struct ibv_modify_srq cmd;

	return ibv_cmd_modify_srq(srq, attr, mask, &cmd, sizeof(cmd));
}

static int query_srq(struct ibv_srq *srq, struct ibv_srq_attr *attr)
{
	struct ibv_query_srq cmd;

	return ibv_cmd_query_srq(srq, attr, &cmd, sizeof(cmd));
}

static int destroy_srq(struct ibv_srq *srq)
{
	int ret = destroyed(ibv_cmd_destroy_srq(srq));

	if (!ret) {
		herald_srq_await_acks(srq);
		herald_srq_free(srq);
	}
	return ret;
}

/* ------------------------------------------------------------------ QP -- */

static struct ibv_qp *make_qp(struct ibv_context *context, struct ibv_qp_init_attr_ex *attr)
{
	struct herald_cmd_create_qp_resp resp = {};
	struct herald_cmd_create_qp cmd = {};
	struct ibv_qp_ex *qp = herald_qp_new(single_threaded(context));
	int ret;

	if (!qp)
		return fail(ENOMEM);
	ret = ibv_cmd_create_qp_ex(context, container_of(qp, struct verbs_qp, qp_ex), attr, &cmd.ibv_cmd, sizeof(cmd),
				   &resp.ibv_resp, sizeof(resp));
	if (ret)
		goto err;
	ret = herald_qp_map(qp, &resp.drv_payload, &attr->cap);
	if (ret) {
		ibv_cmd_destroy_qp(&qp->qp_base);
		goto err;
	}
	return &qp->qp_base;
err:
	herald_qp_free(&qp->qp_base);
	return fail(ret);
}

static struct ibv_qp *create_qp(struct ibv_pd *pd, struct ibv_qp_init_attr *attr)
{
	struct ibv_qp_init_attr_ex ex = {
		.qp_context = attr->qp_context,
		.send_cq = attr->send_cq,
		.recv_cq = attr->recv_cq,
		.srq = attr->srq,
		.cap = attr->cap,
		.qp_type = attr->qp_type,
		.sq_sig_all = attr->sq_sig_all,
		.comp_mask = IBV_QP_INIT_ATTR_PD,
		.pd = pd,
	};
	struct ibv_qp *qp = make_qp(pd->context, &ex);

	if (qp)
		attr->cap = ex.cap;
	return qp;
}

static struct ibv_qp *create_qp_ex(struct ibv_context *context, struct ibv_qp_init_attr_ex *attr)
{
	uint32_t mask = attr->comp_mask;
	bool with_ops = mask & IBV_QP_INIT_ATTR_SEND_OPS_FLAGS;
	struct verbs_qp *vqp;
	struct ibv_qp *qp;

	if (!check_comp_mask(mask,
			     IBV_QP_INIT_ATTR_PD | IBV_QP_INIT_ATTR_CREATE_FLAGS | IBV_QP_INIT_ATTR_SEND_OPS_FLAGS) ||
	    ((mask & IBV_QP_INIT_ATTR_CREATE_FLAGS) && attr->create_flags))
		return fail(EOPNOTSUPP);
	if (!(mask & IBV_QP_INIT_ATTR_PD))
		return fail(EINVAL);
	if (with_ops && (attr->send_ops_flags & ~herald_qp_ex_ops(attr->qp_type)))
		return fail(EOPNOTSUPP);
	/* no flags is what the command without them says; it does not take the bit */
	attr->comp_mask &= ~(uint32_t)IBV_QP_INIT_ATTR_CREATE_FLAGS;
	qp = make_qp(context, attr);
	attr->comp_mask = mask;
	if (qp && with_ops) {
		vqp = container_of(qp, struct verbs_qp, qp);
		herald_qp_set_ex(&vqp->qp_ex, attr->send_ops_flags);
		vqp->comp_mask |= VERBS_QP_EX;
	}
	return qp;
}

static int query_qp(struct ibv_qp *qp, struct ibv_qp_attr *attr, int mask, struct ibv_qp_init_attr *init)
{
	struct ibv_query_qp cmd;
	int ret = ibv_cmd_query_qp(qp, attr, mask, init, &cmd, sizeof(cmd));

	if (!ret && (mask & IBV_QP_STATE))
		herald_qp_set_state(qp, attr->qp_state);
	return ret;
}

/* The core refuses alternate paths on RoCE ports: this one goes past it. */
static int modify_qp_with_alt_path(struct ibv_qp *qp, struct ibv_qp_attr *attr, int mask)
{
	const struct ibv_ah_attr *ah = &attr->alt_ah_attr;
	struct herald_cmd_modify_qp cmd = {};
	struct herald_cmd_modify_qp_resp resp = {};
	struct herald_modify_qp_req *req = &cmd.drv_payload;

	req->flags = HERALD_MODIFY_ALT_PATH;
	req->pkey_index = attr->alt_pkey_index;
	req->port_num = attr->alt_port_num;
	req->timeout = attr->alt_timeout;
	req->av_port_num = ah->port_num;
	req->is_global = ah->is_global;
	req->flow_label = ah->grh.flow_label;
	req->sgid_index = ah->grh.sgid_index;
	req->hop_limit = ah->grh.hop_limit;
	req->traffic_class = ah->grh.traffic_class;
	req->sl = ah->sl;
	memcpy(req->dgid, ah->grh.dgid.raw, sizeof(req->dgid));
	return ibv_cmd_modify_qp_ex(qp, attr, mask & ~IBV_QP_ALT_PATH, &cmd.ibv_cmd, sizeof(cmd), &resp.ibv_resp,
				    sizeof(resp));
}

static int modify_qp_attr(struct ibv_qp *qp, struct ibv_qp_attr *attr, int mask)
{
	struct ibv_modify_qp cmd = {};

	if (mask & IBV_QP_ALT_PATH)
		return modify_qp_with_alt_path(qp, attr, mask);
	return ibv_cmd_modify_qp(qp, attr, mask, &cmd, sizeof(cmd));
}

static int modify_qp(struct ibv_qp *qp, struct ibv_qp_attr *attr, int mask)
{
	bool reset = (mask & IBV_QP_STATE) && attr->qp_state == IBV_QPS_RESET;
	int ret;

	if (reset)
		herald_qp_reset_begin(qp);
	ret = modify_qp_attr(qp, attr, mask);
	if (reset)
		herald_qp_reset_end(qp, !ret);
	else if (!ret && (mask & IBV_QP_STATE))
		herald_qp_set_state(qp, attr->qp_state);
	return ret;
}

static int destroy_qp(struct ibv_qp *qp)
{
	int ret = destroyed(ibv_cmd_destroy_qp(qp));

	if (!ret) {
		herald_qp_await_acks(qp);
		herald_qp_free(qp);
	}
	return ret;
}

/* ------------------------------------------------------------- context -- */

static void free_context(struct ibv_context *context)
{
	struct herald_context *ctx = container_of(context, struct herald_context, verbs.context);

	verbs_uninit_context(&ctx->verbs);
	free(ctx);
}

static const struct verbs_context_ops context_ops = {
	.alloc_mw = alloc_mw,
	.alloc_pd = alloc_pd,
	.async_event = herald_async_event,
	.attach_mcast = ibv_cmd_attach_mcast,
	.bind_mw = herald_bind_mw,
	.cq_event = herald_cq_event,
	.create_ah = create_ah,
	.create_cq = create_cq,
	.create_cq_ex = create_cq_ex,
	.create_qp = create_qp,
	.create_qp_ex = create_qp_ex,
	.create_srq = create_srq,
	.dealloc_mw = dealloc_mw,
	.dealloc_pd = dealloc_pd,
	.dereg_mr = dereg_mr,
	.destroy_ah = destroy_ah,
	.destroy_cq = destroy_cq,
	.destroy_qp = destroy_qp,
	.destroy_srq = destroy_srq,
	.detach_mcast = ibv_cmd_detach_mcast,
	.free_context = free_context,
	.modify_cq = modify_cq,
	.modify_qp = modify_qp,
	.modify_srq = modify_srq,
	.poll_cq = herald_poll_cq,
	.post_recv = herald_post_recv,
	.post_send = herald_post_send,
	.post_srq_recv = herald_post_srq_recv,
	.query_device_ex = query_device_ex,
	.query_port = query_port,
	.query_qp = query_qp,
	.query_rt_values = query_rt_values,
	.query_srq = query_srq,
	.reg_mr = reg_mr,
	.req_notify_cq = herald_req_notify_cq,
	.rereg_mr = rereg_mr,
	.resize_cq = resize_cq,
};

static struct verbs_context *alloc_context(struct ibv_device *device, int cmd_fd, void *private_data)
{
	struct herald_cmd_get_context_resp resp = {};
	struct ibv_get_context cmd = {};
	struct herald_context *ctx;
	const char *alone;

	(void)private_data;
	/* the kernel's driver_id; the ioctl commands are refused if it differs */
	ctx = verbs_init_and_alloc_context(device, cmd_fd, ctx, verbs, RDMA_DRIVER_UNKNOWN);
	if (!ctx)
		return NULL;
	if (ibv_cmd_get_context(&ctx->verbs, &cmd, sizeof(cmd), &resp.ibv_resp, sizeof(resp)))
		goto err;
	if (resp.drv_payload.abi_version != HERALD_ABI_VERSION) {
		fprintf(stderr, "libherald: %s: the module's ABI is version %u, this provider's is %u\n", device->name,
			resp.drv_payload.abi_version, HERALD_ABI_VERSION);
		errno = EPROTONOSUPPORT;
		goto err;
	}
	alone = getenv("HERALD_SINGLE_THREADED");
	ctx->single_threaded = alone && streq(alone, "1");
	herald_locks_init();
	verbs_set_ops(&ctx->verbs, &context_ops);
	return &ctx->verbs;
err:
	verbs_uninit_context(&ctx->verbs);
	free(ctx);
	return NULL;
}

/* -------------------------------------------------------------- matching -- */

/* By what the device says it is: its name is the administrator's to choose. */
static bool match_device(struct verbs_sysfs_dev *sysfs)
{
	char type[32];

	return ibv_read_ibdev_sysfs_file(type, sizeof(type), sysfs, "hca_type") > 0 && streq(type, HERALD_HCA_TYPE);
}

static struct verbs_device *alloc_device(struct verbs_sysfs_dev *sysfs)
{
	(void)sysfs;
	return calloc(1, sizeof(struct verbs_device));
}

static void uninit_device(struct verbs_device *device)
{
	free(device);
}

/* Nothing is matched by it, but libibverbs walks it for every device that has a driver_id. */
static const struct verbs_match_ent match_table[] = {
	{.kind = VERBS_MATCH_SENTINEL},
};

static const struct verbs_device_ops device_ops = {
	.name = "herald",
	.match_min_abi_version = HERALD_ABI_VERSION,
	.match_max_abi_version = HERALD_ABI_VERSION,
	.match_device = match_device,
	.match_table = match_table,
	.alloc_device = alloc_device,
	.uninit_device = uninit_device,
	.alloc_context = alloc_context,
};
PROVIDER_DRIVER(herald, device_ops);
