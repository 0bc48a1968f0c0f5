// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/* Address handles. */
#include <rdma/ib_cache.h>
#include <rdma/ib_verbs.h>
#include <rdma/uverbs_ioctl.h>
#include <rdma/herald-abi.h>

#include "ah.h"
#include "device.h"
#include "udata.h"

int herald_av_from_attr(struct herald_av *av, const struct rdma_ah_attr *attr)
{
	const struct ib_global_route *grh = rdma_ah_read_grh(attr);

	/* RoCE has no local route header: IBTA Annex A16 */
	if (attr->type != RDMA_AH_ATTR_TYPE_ROCE || !(rdma_ah_get_ah_flags(attr) & IB_AH_GRH) ||
	    !grh->sgid_attr)
		return -EINVAL;

	memset(av, 0, sizeof(*av));
	av->net_type = rdma_gid_attr_network_type(grh->sgid_attr);
	if (av->net_type != RDMA_NETWORK_IPV4 && av->net_type != RDMA_NETWORK_IPV6)
		return -EINVAL;
	av->dgid = grh->dgid;
	av->sgid = grh->sgid_attr->gid;
	av->sgid_index = grh->sgid_attr->index;
	av->hop_limit = grh->hop_limit;
	av->traffic_class = grh->traffic_class;
	av->flow_label = grh->flow_label;
	av->sl = rdma_ah_get_sl(attr);
	return 0;
}

/* Addresses go, and others get their places in the table: the old index may name another. */
static u8 sgid_index_now(struct herald_dev *dev, const struct herald_av *av)
{
	int index = herald_dev_gid_index(dev, &av->sgid, av->sgid_index);

	return index < 0 || index > HERALD_SGID_NOWHERE ? HERALD_SGID_NOWHERE : index;
}

void herald_av_to_attr(struct herald_dev *dev, const struct herald_av *av,
		       struct rdma_ah_attr *attr)
{
	union ib_gid dgid = av->dgid;

	memset(attr, 0, sizeof(*attr));
	attr->type = RDMA_AH_ATTR_TYPE_ROCE;
	rdma_ah_set_port_num(attr, 1);
	rdma_ah_set_sl(attr, av->sl);
	rdma_ah_set_grh(attr, &dgid, av->flow_label, sgid_index_now(dev, av), av->hop_limit,
			av->traffic_class);
}

struct herald_ah *herald_ah_get(struct herald_dev *dev, struct ib_pd *pd, u32 number)
{
	struct herald_ah *ah;

	rcu_read_lock();
	ah = xa_load(&dev->ahs, number);
	if (ah && (ah->pd != pd || !refcount_inc_not_zero(&ah->refs)))
		ah = NULL;
	rcu_read_unlock();
	return ah;
}

void herald_ah_ref(struct herald_ah *ah)
{
	refcount_inc(&ah->refs);
}

void herald_ah_put(struct herald_ah *ah)
{
	if (refcount_dec_and_test(&ah->refs))
		kfree_rcu(ah, rcu);
}

/* Give a process's AH its number, and tell it. */
static int herald_ah_publish(struct herald_ah *ah, struct ib_udata *udata)
{
	struct herald_create_ah_resp resp = {};
	struct herald_dev *dev = ah->dev;
	int err;

	err = xa_alloc(&dev->ahs, &ah->number, ah, xa_limit_32b, GFP_KERNEL);
	if (err)
		return err;
	resp.ah = ah->number;
	err = ib_copy_to_udata(udata, &resp, min(sizeof(resp), udata->outlen));
	if (err)
		xa_erase(&dev->ahs, ah->number);
	return err;
}

int herald_create_ah(struct ib_ah *ibah, struct rdma_ah_init_attr *init, struct ib_udata *udata)
{
	struct herald_ah_object *object = container_of(ibah, struct herald_ah_object, ib);
	gfp_t gfp = init->flags & RDMA_CREATE_AH_SLEEPABLE ? GFP_KERNEL_ACCOUNT : GFP_ATOMIC;
	struct herald_dev *dev = to_hdev(ibah->device);
	struct herald_ah *ah;
	int err = herald_fault_verb(&dev->faults, HERALD_FAULT_CREATE_AH) ?:
		  herald_udata_zero(udata);

	if (err)
		return err;
	err = herald_object_count(dev, &dev->num_ah, HERALD_MAX_AH);
	if (err)
		return err;
	err = -ENOMEM;
	ah = kzalloc_obj(*ah, gfp);
	if (!ah)
		goto uncount;

	ah->dev = dev;
	ah->pd = ibah->pd;
	refcount_set(&ah->refs, 1);
	err = herald_av_from_attr(&ah->av, init->ah_attr);
	if (!err && udata)
		err = herald_ah_publish(ah, udata);
	if (err)
		goto put;
	object->ah = ah;
	return 0;

put:
	herald_ah_put(ah);	/* a doorbell may have seen its number already */
uncount:
	atomic_dec(&dev->num_ah);
	return err;
}

int herald_query_ah(struct ib_ah *ibah, struct rdma_ah_attr *attr)
{
	struct herald_ah *ah = to_hah(ibah);

	herald_av_to_attr(ah->dev, &ah->av, attr);
	return 0;
}

int herald_destroy_ah(struct ib_ah *ibah, u32 flags)
{
	struct herald_ah *ah = to_hah(ibah);
	struct herald_dev *dev = ah->dev;

	if (ah->number)
		xa_erase(&dev->ahs, ah->number);
	herald_ah_put(ah);
	atomic_dec(&dev->num_ah);
	return 0;
}
