/* SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB */
/* The device: one per network interface, and the tables of what lives on it. */
#ifndef HERALD_DEVICE_H
#define HERALD_DEVICE_H

#include <linux/cpumask.h>
#include <linux/hashtable.h>
#include <linux/list.h>
#include <linux/mutex.h>
#include <linux/netdevice.h>
#include <linux/percpu.h>
#include <linux/seqlock.h>
#include <linux/spinlock.h>
#include <linux/workqueue.h>
#include <linux/xarray.h>
#include <rdma/ib_verbs.h>

#include "counters.h"
#include "hints.h"
#include "limits.h"

struct herald_qp;

struct herald_ucontext {
	struct ib_ucontext ib;
};

struct herald_pd {
	struct ib_pd ib;
};

/* The GIDs of the port, kept by add_gid/del_gid so that the data path needs no core lock. */
struct herald_gid_slot {
	union ib_gid gid;
	bool valid;
};

/**
 * struct herald_dev - one software RDMA NIC
 * @ib: the core's half; allocated by ib_alloc_device
 * @node: in the list of all devices (device.c; RCU)
 * @ndev: the interface; set to NULL when it is unregistered, so RCU readers
 *	need no reference
 * @reap: frees what RCU readers may still see
 * @keys: memory keys: index (key >> 8) to struct herald_key, see mr.h
 * @key_hints: in front of @keys
 * @next_key: where to look for a free index next (protected by the lock of @keys)
 * @key_seq: variant of the last key that was made
 * @ahs: AH number to struct herald_ah, for a process's WQEs
 * @cqs: herald_cq.id to CQ, see cq_table.h
 * @cqs_mutex: a CQ is found there, or goes; @next_cq: where the next number is looked for
 * @gid_lock: writers serialise, readers retry (irq-safe)
 * @gids: the GID table; see herald_dev_has_gid
 * @gids_used: slots from here on are empty
 * @gsi: the GSI QP (QPN 1), RCU
 * @mcast: the multicast groups, see mcast.c
 * @counters: per CPU
 * @vector_cpus: the CPUs that were online when the device was made, one for each
 *	completion vector
 * @registered: ib_register_device is done (under RTNL)
 * @port_up: last carrier and administrative state reported (under RTNL)
 * @dead: being removed
 * @debugfs: its files, see fault.h
 */
struct herald_dev {
	struct ib_device ib;
	struct list_head node;
	struct net_device __rcu *ndev;
	struct work_struct reap;

	struct xarray keys;
	struct herald_hints key_hints;
	u32 next_key;
	atomic_t key_seq;
	struct xarray ahs;
	struct xarray cqs;
	struct mutex cqs_mutex;
	u32 next_cq;

	seqlock_t gid_lock;
	struct herald_gid_slot *gids;	/* HERALD_GID_TABLE_LEN */
	unsigned int gids_used;

	spinlock_t gsi_lock;	/* writers of @gsi */
	struct herald_qp __rcu *gsi;

	struct {
		spinlock_t lock;	/* this struct and all groups; irq-safe; a leaf */
		DECLARE_HASHTABLE(groups, 6);
		u32 ngroups;
	} mcast;

	struct herald_counters __percpu *counters;
	struct cpumask vector_cpus;
	bool registered;
	bool port_up;
	bool dead;

	atomic_t num_qp, num_cq, num_srq, num_mr, num_mw, num_pd, num_ah;
	struct dentry *debugfs;
};

static inline struct herald_dev *to_hdev(struct ib_device *ibdev)
{
	return container_of(ibdev, struct herald_dev, ib);
}

static inline struct herald_pd *to_hpd(struct ib_pd *ibpd)
{
	return container_of(ibpd, struct herald_pd, ib);
}

static inline struct herald_ucontext *to_huctx(struct ib_ucontext *ibuctx)
{
	return container_of(ibuctx, struct herald_ucontext, ib);
}

int herald_device_module_init(void);
void herald_device_module_exit(void);	/* after herald_device_remove_all() */

/* The module's work queue: engines that outlast their caller's context run here. */
extern struct workqueue_struct *herald_wq;

/* All operations but those in compat/ops.c */
extern const struct ib_device_ops herald_dev_ops;

/**
 * herald_device_create - make and register a device on a network interface
 * @name: the device's name, or NULL or a %d pattern as ib_register_device takes
 * @ndev: the interface
 *
 * When it returns, the GIDs of the interface's present addresses are there.
 * Return: 0 or an errno; no message is printed.
 * Context: process, may sleep; not under RTNL.
 */
int herald_device_create(const char *name, struct net_device *ndev);

/*
 * Unregister every device and wait until none of their code runs (module exit;
 * nobody may create one any more).  Context: process, may sleep.
 */
void herald_device_remove_all(void);

/* The interface changed: report what became of the port.  Context: RTNL held. */
void herald_device_port_changed(struct net_device *ndev);

/* The interface is being unregistered: so is its device, soon.  Context: RTNL held. */
void herald_device_netdev_gone(struct net_device *ndev);

/* Count one more object against a limit; false if there are @max already. */
static inline bool herald_object_count(atomic_t *counter, int max)
{
	return atomic_add_unless(counter, 1, max);
}

/* Is the port's interface up, with a carrier?  Context: any. */
bool herald_dev_port_up(struct herald_dev *dev);

/* ib_device_ops; gid.c */
int herald_add_gid(const struct ib_gid_attr *attr, void **context);
int herald_del_gid(const struct ib_gid_attr *attr, void **context);

/* ib_device_ops; query.c */
int herald_query_device(struct ib_device *ibdev, struct ib_device_attr *attr,
			struct ib_udata *udata);
int herald_modify_device(struct ib_device *ibdev, int mask, struct ib_device_modify *modify);
int herald_query_port(struct ib_device *ibdev, u32 port, struct ib_port_attr *attr);
int herald_query_pkey(struct ib_device *ibdev, u32 port, u16 index, u16 *pkey);
int herald_get_port_immutable(struct ib_device *ibdev, u32 port, struct ib_port_immutable *imm);
enum rdma_link_layer herald_get_link_layer(struct ib_device *ibdev, u32 port);
void herald_get_dev_fw_str(struct ib_device *ibdev, char *str);
extern const struct attribute_group herald_attr_group;	/* hca_type, parent */

/* Is @gid one of the device's own?  Context: any. */
bool herald_dev_has_gid(struct herald_dev *dev, const union ib_gid *gid);

/**
 * herald_dev_find_by_gid - the device of this host that owns a GID
 * @net: the network namespace it must be in
 * @gid: the GID
 *
 * Prefers @hint (may be NULL) if that owns it too: a GID can be on several.
 * Return: the device, valid until rcu_read_unlock(), or NULL.
 * Context: any, inside rcu_read_lock().
 */
struct herald_dev *herald_dev_find_by_gid(struct net *net, const union ib_gid *gid,
					  struct herald_dev *hint);

/* The network namespace of the device's interface; inside rcu_read_lock(). NULL if it is gone. */
struct net *herald_dev_net(struct herald_dev *dev);

/* Active MTU of the port in bytes (256..4096).  Context: any. */
u32 herald_dev_mtu(struct herald_dev *dev);

#endif /* HERALD_DEVICE_H */
