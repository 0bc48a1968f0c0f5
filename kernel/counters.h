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
	X(cq_missed_hints)         /* answers 1 of an arm with REPORT_MISSED_EVENTS */ \
	X(cq_overruns)             /* CQs that died because they were full */ \
	X(cq_dropped_cqes)         /* completions that found such a CQ */ \
	X(cq_events_read)          /* got by ibv_get_cq_event */ \
	X(cq_events_acked)         /* less than read: some are not acked yet */ \
	X(cq_held)                 /* completions held back on purpose */ \
	X(cq_hold_failed)          /* ... that could not be, for want of memory */ \
	X(async_events)			\
	X(sends_posted)            /* WRs that were looked at */ \
	X(sends_completed)		\
	X(recvs_completed)		\
	X(flushed)                 /* completions with WR_FLUSH_ERR */ \
	X(bytes_moved)			\
	X(local_messages)          /* between QPs of one namespace, not over the wire */ \
	X(no_peer)                 /* no such QP, or not connected back: no answer */ \
	X(peer_not_ready)          /* it is in a state that takes nothing: no answer */ \
	X(rnr_sent)                /* a request found no receive WR */ \
	X(rnr_exceeded)            /* WRs that ended for that */ \
	X(retries)                 /* no answer within the ACK timeout, or a sequence NAK */ \
	X(retries_exceeded)        /* WRs that ended for that */ \
	X(path_migrations)         /* docs/events.md, automatic path migration */ \
	X(path_migration_errors)   /* ... that should have, and could not */ \
	X(nak_sequence)            /* what came later came first, and was asked for again */ \
	X(duplicates)              /* seen again and not executed */ \
	X(icrc_dropped)            /* damaged on the way (or by a fault) */ \
	X(nak_invalid_request)     /* refused: what the QP does not offer, or too long */ \
	X(nak_access)              /* refused: remote key, range or rights */ \
	X(nak_operation)           /* refused: the responder's own memory */ \
	X(ud_dropped_qkey)         /* datagrams with the wrong Q_Key */ \
	X(ud_dropped_pkey)         /* ... of another partition */ \
	X(ud_dropped_no_recv)      /* ... that found no receive WR */ \
	X(ud_dropped_too_long)     /* ... longer than the receive WR */ \
	X(uc_dropped)              /* messages of UC that found no receive WR, or were refused */ \
	X(mcast_delivered)		\
	X(mcast_no_member)         /* sent to a group without members */ \
	X(bad_send_wqe)            /* work requests that make no sense */ \
	X(bad_recv_wqe)			\
	X(bad_ring_index)          /* rings whose index makes no sense: the QP is in error */ \
	X(bad_key)                 /* local or remote keys that were refused */ \
	X(events_coalesced)        /* asynchronous events that one not yet delivered stands for */ \
	X(faults_struck)           /* docs/faults.md */ \
	X(wire_tx_trains)          /* skbs; of several packets if there was more to send */ \
	X(wire_tx_packets)         /* ... and the packets in them */ \
	X(wire_tx_down)            /* packets that did not leave: the port, or no socket */ \
	X(wire_tx_no_route)        /* ... no route, or no such address of ours */ \
	X(wire_tx_too_big)         /* ... larger than the path's MTU */ \
	X(wire_tx_dropped)         /* ... by the stack or the interface's queue */ \
	X(wire_rx_trains)          /* skbs */ \
	X(wire_rx_packets)         /* ... and the packets in them, good or bad */ \
	X(wire_rx_copied)          /* trains that were in pieces in memory */ \
	X(wire_rx_whole)           /* trains that were never out of this host's memory */ \
	X(wire_rx_down)            /* packets that came while the port was down */ \
	X(wire_rx_malformed)       /* ... with wrong lengths, or with IP options */ \
	X(wire_rx_fragmented)      /* ... that somebody had fragmented */ \
	X(wire_rx_no_qp)           /* ... for a QP that is not there, or not of this device */ \
	X(wire_rx_no_memory)	\
	X(wire_rx_cnp)             /* congestion notifications: not acted on */ \
	X(wire_icmp_errors)        /* ICMP says that a packet did not get there: not acted on */ \
	X(wire_out_of_sequence)    /* packets that came too early: some before them are missing */ \
	X(wire_responses_lost)     /* answers with data that were asked for again */ \
	X(wire_naks_received)		\
	X(wire_rnr_received)		\
	X(wire_ghosts)             /* answers to what was done already, or never asked */ \
	X(wire_bad_response)       /* answers that are not what was asked for: the WR failed */ \
	X(wire_wrong_service)      /* ... of a service that the QP is not of */ \
	X(wire_wrong_path)         /* ... from elsewhere, or of another partition */ \
	X(wire_deferred)           /* trains that wait for the rest of a QP's longer turn */ \
	X(wire_queue_full)         /* trains that came faster than they were taken */ \
	X(wire_no_memory)          /* answers not sent for want of it */

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
