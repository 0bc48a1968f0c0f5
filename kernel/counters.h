/* SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB */
/* One counter per thing that may surprise; shown by `rdma statistic`, and the tests' oracles. */
#ifndef HERALD_COUNTERS_H
#define HERALD_COUNTERS_H

#include <linux/types.h>

/* X(identifier): the name in rdma statistic is the identifier */
#define HERALD_COUNTERS(X)		\
	X(cqes_posted)			\
	X(cq_arms)			\
	X(cq_events)			\
	X(cq_unarmed)			\
	X(cq_unsolicited)		\
	X(cq_missed_hints)		\
	X(cq_overruns)			\
	X(cq_dropped_cqes)		\
	X(cq_events_read)		\
	X(cq_events_acked)		\
	X(cq_held)			\
	X(cq_hold_failed)		\
	X(async_events)			\
	X(sends_posted)			\
	X(sends_completed)		\
	X(recvs_completed)		\
	X(flushed)			\
	X(bytes_moved)			\
	X(local_messages)		\
	X(no_peer)			\
	X(peer_not_ready)		\
	X(rnr_sent)			\
	X(rnr_exceeded)			\
	X(retries)			\
	X(retries_exceeded)		\
	X(nak_sequence)			\
	X(duplicates)			\
	X(icrc_dropped)			\
	X(nak_invalid_request)		\
	X(nak_access)			\
	X(nak_operation)		\
	X(ud_dropped_qkey)		\
	X(ud_dropped_pkey)		\
	X(ud_dropped_no_recv)		\
	X(ud_dropped_too_long)		\
	X(uc_dropped)			\
	X(mcast_delivered)		\
	X(mcast_no_member)		\
	X(bad_send_wqe)			\
	X(bad_recv_wqe)			\
	X(bad_ring_index)		\
	X(bad_key)			\
	X(events_coalesced)		\
	X(faults_struck)

enum herald_counter {
#define HERALD_COUNTER_ENUM(name) HERALD_CTR_##name,
	HERALD_COUNTERS(HERALD_COUNTER_ENUM)
#undef HERALD_COUNTER_ENUM
	HERALD_CTR_MAX
};

struct herald_counters {
	u64 v[HERALD_CTR_MAX];
};

struct herald_dev;
struct ib_device;
struct rdma_hw_stats;

/* Add to a counter of the device.  Context: any. */
void herald_count_add(struct herald_dev *dev, enum herald_counter c, u64 n);

static inline void herald_count(struct herald_dev *dev, enum herald_counter c)
{
	herald_count_add(dev, c, 1);
}

/* The sum over all CPUs.  Context: any. */
u64 herald_counter_read(struct herald_dev *dev, enum herald_counter c);

/* ib_device_ops */
struct rdma_hw_stats *herald_alloc_hw_port_stats(struct ib_device *ibdev, u32 port);
int herald_get_hw_stats(struct ib_device *ibdev, struct rdma_hw_stats *stats, u32 port, int index);

#endif /* HERALD_COUNTERS_H */
