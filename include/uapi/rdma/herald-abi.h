/* SPDX-License-Identifier: ((GPL-2.0 WITH Linux-syscall-note) OR Linux-OpenIB) */
/*
 * The contract between herald.ko and its userspace provider.
 *
 * Everything here is little more than memory layout: rings that the kernel
 * allocates and the process maps, and the driver's part (udata) of the uverbs
 * commands.  All structures are multiples of 8 bytes and mean the same to a
 * 32-bit process.  Every field called "reserved" must be zero; the kernel
 * refuses a command in which it is not.
 *
 * Who writes what.  A ring has one producer and one consumer, each of which
 * keeps its own private index and only *publishes* it here.  Indices are free
 * running 32-bit counters; slot = index & (depth - 1); depth is a power of
 * two.  The kernel never reads back what it published and clamps what it reads
 * from the process.
 */
#ifndef HERALD_ABI_H
#define HERALD_ABI_H

#include <linux/types.h>

/* Reported as the device's abi_version; provider and module must agree. */
#define HERALD_ABI_VERSION	2

/* What the device says of itself in sysfs (hca_type), for match_device. */
#define HERALD_HCA_TYPE		"herald"

#define HERALD_CACHE_LINE	64

/* ------------------------------------------------------------- rings -- */

/*
 * Control block of a work queue ring (SQ, RQ, SRQ).  The block lies at the
 * start of the mapping, the first slot at HERALD_RING_DATA_OFFSET.
 */
struct herald_ring_ctl {
	/* written by the process */
	__u32 producer;		/* store-release after the slot is filled */
	/*
	 * Written by the kernel, seldom; here because the poster has this line
	 * anyway.  Not zero: posts may fail on purpose; the poster asks
	 * (HERALD_METHOD_POSTING) before it moves producer, and posts nothing
	 * if the answer is an error.
	 */
	__u32 ask;
	__u32 reserved0[14];
	/* written by the kernel */
	__u32 consumer;		/* RQ, SRQ: slots before it were taken and are free;
				 * SQ: slots before it have completed (see cqe_index) */
	__u32 flags;		/* enum herald_ring_flags */
	__u32 reserved1[14];
};

enum herald_ring_flags {
	/*
	 * Receive queues only: the kernel wants the doorbell after the
	 * producer index moved (the QP is in the error state and nothing else
	 * would flush the new WQEs).  The poster stores producer, issues a
	 * full barrier, then reads flags; the kernel stores flags, issues a
	 * full barrier, then reads producer.
	 */
	HERALD_RING_NEED_DOORBELL = 1 << 0,
	/*
	 * The kernel takes nothing from it again: it found the ring corrupt, or
	 * the queue has gone (with NEED_DOORBELL, so that the poster finds out).
	 */
	HERALD_RING_DEAD	  = 1 << 1,
};

#define HERALD_RING_DATA_OFFSET	128

/* Control block of a CQ, at the start of its mapping; CQEs follow it. */
struct herald_cq_ctl {
	/* written by the kernel */
	__u32 producer;		/* store-release after the CQE is filled */
	__u32 flags;		/* enum herald_cq_flags */
	__u32 arm_fired;	/* sequence number of the last arm that fired */
	__u32 reserved0[13];
	/* written by the process */
	__u64 arm;		/* HERALD_ARM(), one 64-bit store, then a full barrier */
	__u32 consumer;		/* CQEs before it were polled */
	/* for those who look at the CQ from outside; nothing depends on them */
	__u32 events_read;	/* completion events that ibv_get_cq_event gave */
	__u32 events_acked;	/* those of them that were acked, when the last one was got */
	__u32 reserved1[11];
};

enum herald_cq_flags {
	/*
	 * Overrun, or the device has gone: after the CQEs before producer,
	 * poll fails for ever.
	 */
	HERALD_CQ_DEAD		= 1 << 0,
	/* Completions are held back: announce each arm (HERALD_METHOD_ARMING). */
	HERALD_CQ_TELL_ARM	= 1 << 1,
};

#define HERALD_CQ_DATA_OFFSET	128

/*
 * The arm word: what is asked for, a sequence number that makes each arm
 * distinct from the last, the producer index that the process saw when it
 * armed, and what the arm before this one asks for.
 *
 * The kernel reads the word once for each CQE, after publishing it, and compares
 * it with the sequence number of the last arm that fired.  An arm is pending
 * until it, or the one after it, has fired.
 *
 *	CQE before seen - 1		decided already: no event
 *	CQE seen - 1			was there when the process armed, but may not
 *					have been decided: fires the previous arm,
 *					seq - 1, if that matches and is pending
 *	CQE seen, and later		fires this arm, seq, if that, or the previous
 *					one if it is still pending, matches
 *
 * prev is 0 if nothing was pending when the process armed.  A process that arms
 * while its last arm is pending and no CQE has come since keeps the number and
 * seen, and asks for the more of both.  The number is 28 bits wide, wraps, and
 * never meets that of the last arm that fired; the first arm uses 1.
 */
#define HERALD_ARM_SOLICITED	1u
#define HERALD_ARM_NEXT		2u
#define HERALD_ARM_KIND_MASK	3u
#define HERALD_ARM_PREV_SHIFT	2
#define HERALD_ARM_SEQ_SHIFT	4
#define HERALD_ARM_SEQ_MASK	0xfffffffu
#define HERALD_ARM(seen, seq, prev, kind)				\
	(((__u64)(seen) << 32) |					\
	 (((__u64)(seq) & HERALD_ARM_SEQ_MASK) << HERALD_ARM_SEQ_SHIFT) | \
	 ((prev) << HERALD_ARM_PREV_SHIFT) | (kind))
#define HERALD_ARM_SEEN(arm)	((__u32)((arm) >> 32))
#define HERALD_ARM_SEQ(arm)						\
	(((__u32)(arm) >> HERALD_ARM_SEQ_SHIFT) & HERALD_ARM_SEQ_MASK)
#define HERALD_ARM_PREV(arm)						\
	(((__u32)(arm) >> HERALD_ARM_PREV_SHIFT) & HERALD_ARM_KIND_MASK)
#define HERALD_ARM_KIND(arm)	((__u32)(arm) & HERALD_ARM_KIND_MASK)

/* --------------------------------------------------------------- CQE -- */

/*
 * One completion, 64 bytes.  It begins as struct ibv_wc does, member by member,
 * so that polling is copying.  status and opcode hold the values of enum
 * ib_uverbs_wc_status / ibv_wc_status and enum ibv_wc_opcode; wc_flags those
 * of enum ibv_wc_flags (which differ from the kernel's ib_wc_flags).
 */
struct herald_cqe {
	__u64 wr_id;
	__u32 status;
	__u32 opcode;
	__u32 vendor_err;
	__u32 byte_len;
	__u32 imm_or_rkey;	/* be32 immediate, or the invalidated rkey (host order) */
	__u32 qp_num;
	__u32 src_qp;
	__u32 wc_flags;
	__u16 pkey_index;
	__u16 slid;
	__u8  sl;
	__u8  dlid_path_bits;
	__u8  port_num;		/* from here on ibv_wc has nothing */
	__u8  queue;		/* enum herald_cqe_queue */
	__u32 wqe_index;	/* free running index of the WQE in its queue */
	__u8  net_type;		/* enum rdma_network_type of a datagram's header */
	__u8  reserved[3];
	__u64 timestamp;	/* ns, CLOCK_MONOTONIC; 0 if the CQ did not ask */
};

enum herald_cqe_queue {
	HERALD_CQE_SQ	= 0,
	HERALD_CQE_RQ	= 1,
	HERALD_CQE_SRQ	= 2,
};

/* --------------------------------------------------------------- WQE -- */

struct herald_sge {
	__u64 addr;
	__u32 length;
	__u32 lkey;
};

/* Values equal enum ibv_wr_opcode where that has the operation. */
enum herald_wr_opcode {
	HERALD_WR_RDMA_WRITE		= 0,
	HERALD_WR_RDMA_WRITE_WITH_IMM	= 1,
	HERALD_WR_SEND			= 2,
	HERALD_WR_SEND_WITH_IMM		= 3,
	HERALD_WR_RDMA_READ		= 4,
	HERALD_WR_ATOMIC_CMP_AND_SWP	= 5,
	HERALD_WR_ATOMIC_FETCH_AND_ADD	= 6,
	HERALD_WR_LOCAL_INV		= 7,
	HERALD_WR_BIND_MW		= 8,
	HERALD_WR_SEND_WITH_INV		= 9,
	HERALD_WR_FLUSH			= 14,
	HERALD_WR_ATOMIC_WRITE		= 15,
	/* kernel consumers only; refused in a process's ring */
	HERALD_WR_REG_MR		= 32,
	HERALD_WR_OPCODE_MAX		= 33,
};

/* Values equal enum ibv_send_flags. */
enum herald_wr_flags {
	HERALD_WR_FENCE			= 1 << 0,
	HERALD_WR_SIGNALED		= 1 << 1,
	HERALD_WR_SOLICITED		= 1 << 2,
	HERALD_WR_INLINE		= 1 << 3,
};

/*
 * A send queue slot: this header, then num_sge struct herald_sge, or with
 * HERALD_WR_INLINE the data itself (inline_len bytes).
 */
struct herald_send_wqe {
	__u64 wr_id;
	__u8  opcode;		/* enum herald_wr_opcode */
	__u8  num_sge;
	__u16 flags;		/* enum herald_wr_flags */
	__u32 imm_or_rkey;	/* be32 immediate, or the rkey to invalidate (host order) */
	__u32 inline_len;	/* bytes; 0 without HERALD_WR_INLINE */
	__u32 reserved0;
	union {
		struct {	/* RDMA WRITE, READ, ATOMIC WRITE */
			__u64 remote_addr;
			__u32 rkey;
			__u32 reserved;
			__u64 reserved1[2];
		} rdma;
		struct {	/* atomics */
			__u64 remote_addr;
			__u64 compare_add;
			__u64 swap;
			__u32 rkey;
			__u32 reserved;
		} atomic;
		struct {	/* FLUSH */
			__u64 remote_addr;
			__u32 rkey;
			__u32 length;
			__u32 placement;	/* enum ibv_placement_type */
			__u32 selectivity;	/* enum ibv_selectivity_level */
			__u64 reserved;
		} flush;
		struct {	/* UD: ah is the number create_ah answered */
			__u32 ah;
			__u32 remote_qpn;
			__u32 remote_qkey;
			__u32 pkey_index;	/* GSI of the kernel only */
			__u64 kernel_ah;	/* kernel consumers only, else 0 */
			__u64 reserved;
		} ud;
		struct {	/* BIND_MW */
			__u64 addr;
			__u64 length;
			__u32 mr_lkey;
			__u32 mw_rkey;	/* the window's present rkey */
			__u32 new_rkey;	/* the rkey it will have */
			__u32 access;	/* enum ib_access_flags */
		} bind;
		struct {	/* REG_MR, kernel consumers only */
			__u64 mr;
			__u32 key;
			__u32 access;
			__u64 reserved[2];
		} reg;
		__u64 raw[4];
	};
	/*
	 * Written by the kernel before it moves consumer past this slot:
	 * whether the WR made a CQE, and that CQE's index in the send CQ.  The
	 * slot and all before it are free once the CQE was polled, that is
	 * when the CQ's consumer index has passed cqe_index.  The poster
	 * writes zero to both.
	 */
	__u32 cqe_made;
	__u32 cqe_index;
};

#define HERALD_SEND_WQE_HDR	64	/* sizeof(struct herald_send_wqe) */

/* A receive queue slot: this header, then num_sge struct herald_sge. */
struct herald_recv_wqe {
	__u64 wr_id;
	__u32 num_sge;
	__u32 reserved;
};

#define HERALD_RECV_WQE_HDR	16	/* sizeof(struct herald_recv_wqe) */

/*
 * Slot sizes, computed alike by both sides from the capabilities that
 * create_qp or create_srq answered: the header plus the SGEs (or inline data),
 * rounded up to a multiple of 64 (send) or 16 (receive) bytes.
 */

/* ---------------------------------------------- udata of the commands -- */

/* One mapped ring: pass offset to mmap(), with exactly this length. */
struct herald_ring_info {
	__u64 mmap_offset;
	__u64 mmap_length;	/* bytes, a multiple of the page size */
	__u32 depth;		/* slots, a power of two */
	__u32 stride;		/* bytes per slot */
};

struct herald_alloc_ucontext_resp {
	__u32 abi_version;	/* HERALD_ABI_VERSION */
	__u32 max_inline;	/* bytes */
	__u64 reserved;
};

struct herald_create_cq_req {
	__u64 reserved;
};

struct herald_create_cq_resp {
	struct herald_ring_info ring;
	__u32 cq_id;		/* for HERALD_METHOD_ARMING */
	__u32 reserved;
};

struct herald_resize_cq_resp {
	struct herald_ring_info ring;	/* replaces the old one; unpolled CQEs moved */
};

struct herald_create_qp_req {
	__u64 reserved;
};

struct herald_create_qp_resp {
	struct herald_ring_info sq;
	struct herald_ring_info rq;	/* all zero with an SRQ */
};

/*
 * MODIFY_QP (the extended command): IBV_QP_ALT_PATH, which must not be in the
 * command's own attr_mask on a RoCE port.  Either all zeros, or of this length.
 */
struct herald_modify_qp_req {
	__u32 flags;		/* HERALD_MODIFY_ALT_PATH */
	__u32 flow_label;	/* this and what follows: alt_ah_attr, alt_... */
	__u8  dgid[16];
	__u16 pkey_index;
	__u8  port_num;
	__u8  timeout;
	__u8  av_port_num;	/* alt_ah_attr.port_num */
	__u8  is_global;
	__u8  sgid_index;
	__u8  hop_limit;
	__u8  traffic_class;
	__u8  sl;
	__u8  reserved[6];
};

#define HERALD_MODIFY_ALT_PATH	(1u << 0)

struct herald_create_srq_req {
	__u64 reserved;
};

struct herald_create_srq_resp {
	struct herald_ring_info rq;
	__u32 srq_num;
	__u32 reserved;
};

struct herald_create_ah_resp {
	__u32 ah;		/* goes into herald_send_wqe.ud.ah */
	__u32 reserved;
};

#endif /* HERALD_ABI_H */
