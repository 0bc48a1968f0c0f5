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
#include "fault.h"
#include "hints.h"
#include "limits.h"

struct herald_av;
struct herald_qp;
struct herald_wire_net;

struct herald_ucontext {
	struct ib_ucontext ib;
};

struct herald_pd {
	struct ib_pd ib;
};

/* The GIDs of the port, kept by add_gid/del_gid so that the data path needs no core lock. */
struct herald_gid_slot {
	union ib_gid gid;
	int ifindex;	/* of the interface that has the address */
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
 * @srqs: the SRQs, see herald_srqs_each()
 * @srqs_mutex: protects @srqs; who has found an SRQ there holds it
 * @gid_lock: writers serialise, readers retry (irq-safe)
 * @gids: the GID table; see herald_dev_has_gid
 * @gids_used: slots from here on are empty
 * @gsi: the GSI QP (QPN 1), RCU
 * @mcast: the multicast groups, see mcast.c
 * @wire: its namespace's sockets; NULL if it has none (RCU)
 * @routes: those that its QPs and AHs remember, see wire_route.c
 * @counters: per CPU
 * @vector_cpus: the CPUs that were online when the device was made, one for each
 *	completion vector
 * @registered: ib_register_device is done (under RTNL)
 * @port: see port.c; written under RTNL
 * @port.up: what was last reported, and what the data path goes by
 * @port.link: the interface is up and has a carrier
 * @port.stopped: PORT_ERR was provoked: down, whatever the interface says
 * @port.new: active since @port.speed was looked at: it has no speed to differ from
 * @port.speed: of the interface in Mbit/s, 0 if it does not say
 * @port.speed_work: looks for a change of it
 * @port.pkeys: the P_Key table; 0: an empty entry
 * @dead: being removed
 * @allow: commands to its control file are taken, see control.h
 * @faults: what breaks on purpose, see fault.h; the data path reads the first word
 * @fatal: DEVICE_FATAL was provoked: nothing can be made or modified any more
 * @debugfs: its files, see control.h
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
	struct list_head srqs;
	struct mutex srqs_mutex;

	seqlock_t gid_lock;
	struct herald_gid_slot *gids;	/* HERALD_GID_TABLE_LEN */
	unsigned int gids_used;

	spinlock_t gsi_lock;	/* writers of @gsi */
	struct herald_qp __rcu *gsi;

	struct {
		spinlock_t lock;	/* this struct and all groups; irq-safe; a leaf */
		DECLARE_HASHTABLE(groups, 6);
		u32 ngroups;
		u64 attached;	/* so many QPs ever were */
	} mcast;

	struct herald_wire_net __rcu *wire;
	struct {
		spinlock_t lock;	/* irq-safe; a leaf */
		struct list_head list;
	} routes;

	struct herald_counters __percpu *counters;
	struct cpumask vector_cpus;
	bool registered;
	struct {
		bool up;
		bool link;
		bool stopped;
		bool new;
		u32 speed;
		struct work_struct speed_work;
		u16 pkeys[HERALD_PKEY_TABLE_LEN];
	} port;
	bool dead;
	bool allow;
	struct herald_faults faults;
	atomic_t fatal;

	/* written often, unlike what is above */
	atomic_t num_qp ____cacheline_aligned_in_smp;
	atomic_t num_cq, num_srq, num_mr, num_mw, num_pd, num_ah;
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

/* ------------------------------------------------------------- port.c -- */

void herald_port_init(struct herald_dev *dev);
void herald_port_exit(struct herald_dev *dev);	/* nobody looks at the interface any more */

/* Note how the interface is, and report nothing.  Context: RTNL held. */
void herald_port_attach(struct herald_dev *dev);

/* Report what the interface's state makes of the port's, if that changed.  Context: RTNL held. */
void herald_port_update(struct herald_dev *dev);

/* The interface has gone.  Context: RTNL held. */
void herald_port_gone(struct herald_dev *dev);

/*
 * Provoked: the port goes down until herald_port_start(), or until the
 * interface goes down and comes up again.  herald_port_start() gives -EINVAL if
 * the interface itself is down.  Context: may sleep.
 */
int herald_port_stop(struct herald_dev *dev);
int herald_port_start(struct herald_dev *dev);

/* Provoked: the second entry of the P_Key table comes or goes.  Context: may sleep. */
int herald_port_change_pkeys(struct herald_dev *dev);

static inline u16 herald_dev_pkey(const struct herald_dev *dev, u16 index)
{
	return index < HERALD_PKEY_TABLE_LEN ? READ_ONCE(dev->port.pkeys[index]) : 0;
}

/* --------------------------------------------------------------------- */

/* The interface is being unregistered: so is its device, soon.  Context: RTNL held. */
void herald_device_netdev_gone(struct net_device *ndev);

/* -EIO after a fatal error, which only a new device mends; else 0.  Context: any. */
static inline int herald_dev_check(const struct herald_dev *dev)
{
	return unlikely(atomic_read(&dev->fatal)) ? -EIO : 0;
}

/* Count one more object against a limit; -ENOMEM if there are @max already. */
static inline int herald_object_count(struct herald_dev *dev, atomic_t *counter, int max)
{
	int ret = herald_dev_check(dev);

	if (ret)
		return ret;
	return atomic_add_unless(counter, 1, max) ? 0 : -ENOMEM;
}

/* Is the port active, as was last reported?  Context: any. */
static inline bool herald_dev_port_up(const struct herald_dev *dev)
{
	return READ_ONCE(dev->port.up);
}

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
/* Its place in the table, @hint if that is one; or -1.  Context: any. */
int herald_dev_gid_index(struct herald_dev *dev, const union ib_gid *gid, u8 hint);

/*
 * The number of the interface that has the source address of @av, or 0.  If several have
 * it, that of the entry @av->sgid_index if it is one of them.  Context: any.
 */
int herald_dev_av_ifindex(struct herald_dev *dev, const struct herald_av *av);

/* Does an interface have an address that is a GID of the device?  Context: any. */
bool herald_dev_has_ifindex(struct herald_dev *dev, int ifindex);

/**
 * herald_dev_is_at - would the stack bring packets for an address to the device?
 * @dev: the device
 * @net: the network namespace it must be in
 * @gid: the address
 * @from: the number of the interface by which they leave or have come, 0 for any
 *
 * A link-local address is one of that link only, any other one of the L3 domain (VRF)
 * that the interface belongs to.
 *
 * Context: any, inside rcu_read_lock().
 */
bool herald_dev_is_at(struct herald_dev *dev, struct net *net, const union ib_gid *gid, int from);

/**
 * herald_dev_find_by_gid - the device of this host that owns a GID
 * @net: the network namespace it must be in
 * @gid: the GID
 * @from: as for herald_dev_is_at()
 *
 * A GID can be on several: a VLAN's device has those of the interface below as well.  @hint
 * (may be NULL) is preferred, then the oldest, which is where RDMA CM listens.
 * Return: the device, valid until rcu_read_unlock(), or NULL.
 * Context: any, inside rcu_read_lock().
 */
struct herald_dev *herald_dev_find_by_gid(struct net *net, const union ib_gid *gid, int from,
					  struct herald_dev *hint);

/* Any device of a namespace, or NULL; as herald_dev_find_by_gid(). */
struct herald_dev *herald_dev_first(struct net *net);

/*
 * Call @fn for every device of a namespace that has a GID of an interface.
 * Context: any, inside rcu_read_lock().
 */
void herald_devs_on_interface(struct net *net, int ifindex,
			      void (*fn)(struct herald_dev *dev, void *arg), void *arg);

/* The network namespace of the device's interface; inside rcu_read_lock(). NULL if it is gone. */
struct net *herald_dev_net(struct herald_dev *dev);

/* Active MTU of the port in bytes (256..4096).  Context: any. */
u32 herald_dev_mtu(struct herald_dev *dev);

#endif /* HERALD_DEVICE_H */
