// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/* The table of the device's operations, and the objects that have no file of their own. */
#include <rdma/ib_user_verbs.h>
#include <rdma/ib_verbs.h>
#include <rdma/uverbs_ioctl.h>
#include <rdma/herald-abi.h>

#include "ah.h"
#include "cq.h"
#include "device.h"
#include "mcast.h"
#include "mr.h"
#include "qp.h"
#include "ring.h"
#include "srq.h"
#include "udata.h"

static int herald_alloc_ucontext(struct ib_ucontext *uctx, struct ib_udata *udata)
{
	struct herald_alloc_ucontext_resp resp = {
		.abi_version = HERALD_ABI_VERSION,
		.max_inline = HERALD_MAX_INLINE,
	};
	int err = herald_udata_zero(udata) ?: herald_dev_check(to_hdev(uctx->device));

	if (err)
		return err;
	return ib_copy_to_udata(udata, &resp, min(sizeof(resp), udata->outlen));
}

/* Its rings have gone with the objects that they belonged to. */
static void herald_dealloc_ucontext(struct ib_ucontext *uctx)
{
}

/*
 * Nothing to do: what a process has mapped is memory of its own kind, and stays
 * valid without the device.  That the operation is there lets a device be
 * removed while processes have it open.
 */
static void herald_disassociate_ucontext(struct ib_ucontext *uctx)
{
}

static int herald_alloc_pd(struct ib_pd *ibpd, struct ib_udata *udata)
{
	struct herald_dev *dev = to_hdev(ibpd->device);
	int err = herald_fault_verb(&dev->faults, HERALD_FAULT_ALLOC_PD) ?:
		  herald_udata_zero(udata);

	if (err)
		return err;
	return herald_object_count(dev, &dev->num_pd, HERALD_MAX_PD);
}

static int herald_dealloc_pd(struct ib_pd *ibpd, struct ib_udata *udata)
{
	atomic_dec(&to_hdev(ibpd->device)->num_pd);
	return 0;
}

const struct ib_device_ops herald_dev_ops = {
	.owner = THIS_MODULE,
	.driver_id = RDMA_DRIVER_UNKNOWN,
	.uverbs_abi_ver = HERALD_ABI_VERSION,
	.device_group = &herald_attr_group,

	.query_device = herald_query_device,
	.modify_device = herald_modify_device,
	.get_dev_fw_str = herald_get_dev_fw_str,
	.query_port = herald_query_port,
	.query_pkey = herald_query_pkey,
	.get_port_immutable = herald_get_port_immutable,
	.get_link_layer = herald_get_link_layer,
	.add_gid = herald_add_gid,
	.del_gid = herald_del_gid,
	.alloc_hw_port_stats = herald_alloc_hw_port_stats,
	.get_hw_stats = herald_get_hw_stats,

	.alloc_ucontext = herald_alloc_ucontext,
	.dealloc_ucontext = herald_dealloc_ucontext,
	.disassociate_ucontext = herald_disassociate_ucontext,
	.mmap = herald_mmap,
	.mmap_free = herald_mmap_free,
	.alloc_pd = herald_alloc_pd,
	.dealloc_pd = herald_dealloc_pd,

	.create_ah = herald_create_ah,
	.create_user_ah = herald_create_ah,
	.query_ah = herald_query_ah,
	.destroy_ah = herald_destroy_ah,

	.create_cq = herald_create_cq,
	.pre_destroy_cq = herald_pre_destroy_cq,
	.destroy_cq = herald_destroy_cq,
	.modify_cq = herald_modify_cq,
	.fill_res_cq_entry = herald_fill_res_cq_entry,
	.poll_cq = herald_poll_cq,
	.req_notify_cq = herald_req_notify_cq,

	.create_srq = herald_create_srq,
	.modify_srq = herald_modify_srq,
	.query_srq = herald_query_srq,
	.destroy_srq = herald_destroy_srq,
	.post_srq_recv = herald_post_srq_recv,

	.create_qp = herald_create_qp,
	.modify_qp = herald_modify_qp,
	.query_qp = herald_query_qp,
	.destroy_qp = herald_destroy_qp,
	.post_send = herald_post_send,
	.post_recv = herald_post_recv,
	.attach_mcast = herald_attach_mcast,
	.detach_mcast = herald_detach_mcast,

	.get_dma_mr = herald_get_dma_mr,
	.rereg_user_mr = herald_rereg_user_mr,
	.dereg_mr = herald_dereg_mr,
	.alloc_mr = herald_alloc_mr,
	.map_mr_sg = herald_map_mr_sg,
	.alloc_mw = herald_alloc_mw,
	.dealloc_mw = herald_dealloc_mw,

	INIT_RDMA_OBJ_SIZE(ib_ah, herald_ah_object, ib),
	INIT_RDMA_OBJ_SIZE(ib_cq, herald_cq, ib),
	INIT_RDMA_OBJ_SIZE(ib_mw, herald_mw, ib),
	INIT_RDMA_OBJ_SIZE(ib_pd, herald_pd, ib),
	INIT_RDMA_OBJ_SIZE(ib_qp, herald_qp, ib),
	INIT_RDMA_OBJ_SIZE(ib_srq, herald_srq, ib),
	INIT_RDMA_OBJ_SIZE(ib_ucontext, herald_ucontext, ib),
};
