/* SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB */
/* Address handles, and the address vector that they and connected QPs share. */
#ifndef HERALD_AH_H
#define HERALD_AH_H

#include <linux/refcount.h>
#include <linux/rcupdate.h>
#include <rdma/ib_verbs.h>

struct herald_dev;
struct herald_pd;

static inline bool herald_gid_equal(const union ib_gid *a, const union ib_gid *b)
{
	return a->global.subnet_prefix == b->global.subnet_prefix &&
	       a->global.interface_id == b->global.interface_id;
}

/**
 * struct herald_av - where a datagram or a connection goes
 * @dgid: the destination
 * @sgid: our own, copied from the GID table at creation
 * @net_type: RDMA_NETWORK_IPV4 or RDMA_NETWORK_IPV6
 */
struct herald_av {
	union ib_gid dgid;
	union ib_gid sgid;
	u8 net_type;
	u8 sgid_index;
	u8 hop_limit;
	u8 traffic_class;
	u8 sl;
	u32 flow_label;
};

/**
 * struct herald_ah - what an address handle says, for as long as somebody uses it
 * @pd: the protection domain; only compared, and only by those who have one
 * @number: in herald_dev.ahs; 0 for a kernel consumer's
 * @refs: one for the object, one per op in flight.  Outlives the core's
 *	struct ib_ah, so that destroying one never waits, in whatever context.
 */
struct herald_ah {
	struct herald_dev *dev;
	struct ib_pd *pd;
	u32 number;
	struct herald_av av;
	refcount_t refs;
	struct rcu_head rcu;
};

/* The core's half. */
struct herald_ah_object {
	struct ib_ah ib;
	struct herald_ah *ah;
};

/* The AH of a kernel consumer's WR; valid until it is destroyed, or referenced. */
static inline struct herald_ah *to_hah(struct ib_ah *ibah)
{
	return container_of(ibah, struct herald_ah_object, ib)->ah;
}

/* Is one of them the way back of the other? */
static inline bool herald_av_mirrors(const struct herald_av *a, const struct herald_av *b)
{
	return herald_gid_equal(&a->dgid, &b->sgid) && herald_gid_equal(&a->sgid, &b->dgid);
}

/* Fill @av from a checked attribute (RoCE: must have a GRH and an sgid_attr); 0 or -EINVAL. */
int herald_av_from_attr(struct herald_av *av, const struct rdma_ah_attr *attr);
/* The other way round, for queries.  The source GID is where it is now, if anywhere. */
#define HERALD_SGID_NOWHERE	0xff
void herald_av_to_attr(struct herald_dev *dev, const struct herald_av *av,
		       struct rdma_ah_attr *attr);

/*
 * The AH of a process's WQE: a reference, or NULL if the number is no live AH
 * of @pd.  Context: any.
 */
struct herald_ah *herald_ah_get(struct herald_dev *dev, struct ib_pd *pd, u32 number);
void herald_ah_ref(struct herald_ah *ah);
void herald_ah_put(struct herald_ah *ah);

/* ib_device_ops; also create_user_ah (udata != NULL).  Both may be called in atomic context. */
int herald_create_ah(struct ib_ah *ibah, struct rdma_ah_init_attr *init, struct ib_udata *udata);
int herald_query_ah(struct ib_ah *ibah, struct rdma_ah_attr *attr);
int herald_destroy_ah(struct ib_ah *ibah, u32 flags);

#endif /* HERALD_AH_H */
