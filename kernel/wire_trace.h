/* SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB */
/*
 * Tracepoints of the wire (system herald): every train that is sent, and every run
 * of packets that is received, with what becomes of it.
 */
#undef TRACE_SYSTEM
#define TRACE_SYSTEM herald

#if !defined(HERALD_WIRE_TRACE_H) || defined(TRACE_HEADER_MULTI_READ)
#define HERALD_WIRE_TRACE_H

#include <linux/tracepoint.h>
#include <linux/unaligned.h>

#include "device.h"
#include "pkt.h"

#ifndef HERALD_WIRE_VERDICTS
#define HERALD_WIRE_VERDICTS
enum herald_wire_verdict {
	/* sent */
	HERALD_WIRE_SENT,
	HERALD_WIRE_REPEATED,		/* its first packet was sent before */
	HERALD_WIRE_DAMAGED,		/* sent, and damaged on purpose */
	HERALD_WIRE_NO_ROUTE,
	HERALD_WIRE_TOO_BIG,
	/* sent or received */
	HERALD_WIRE_DOWN,
	/* received */
	HERALD_WIRE_DELIVERED,		/* to the QP */
	HERALD_WIRE_TO_GROUP,
	HERALD_WIRE_CNP,
	HERALD_WIRE_NO_QP,
	HERALD_WIRE_BAD_ICRC,
	HERALD_WIRE_MALFORMED,
};
#endif

#define herald_show_wire_verdict(verdict)				\
	__print_symbolic(verdict,					\
			 { HERALD_WIRE_SENT, "sent" },			\
			 { HERALD_WIRE_REPEATED, "repeated" },		\
			 { HERALD_WIRE_DAMAGED, "damaged" },		\
			 { HERALD_WIRE_NO_ROUTE, "no-route" },		\
			 { HERALD_WIRE_TOO_BIG, "too-big" },		\
			 { HERALD_WIRE_DOWN, "down" },			\
			 { HERALD_WIRE_DELIVERED, "delivered" },	\
			 { HERALD_WIRE_TO_GROUP, "to-group" },		\
			 { HERALD_WIRE_CNP, "cnp" },			\
			 { HERALD_WIRE_NO_QP, "no-qp" },		\
			 { HERALD_WIRE_BAD_ICRC, "bad-icrc" },		\
			 { HERALD_WIRE_MALFORMED, "malformed" })

TRACE_DEFINE_ENUM(HERALD_WIRE_SENT);
TRACE_DEFINE_ENUM(HERALD_WIRE_REPEATED);
TRACE_DEFINE_ENUM(HERALD_WIRE_DAMAGED);
TRACE_DEFINE_ENUM(HERALD_WIRE_NO_ROUTE);
TRACE_DEFINE_ENUM(HERALD_WIRE_TOO_BIG);
TRACE_DEFINE_ENUM(HERALD_WIRE_DOWN);
TRACE_DEFINE_ENUM(HERALD_WIRE_DELIVERED);
TRACE_DEFINE_ENUM(HERALD_WIRE_TO_GROUP);
TRACE_DEFINE_ENUM(HERALD_WIRE_CNP);
TRACE_DEFINE_ENUM(HERALD_WIRE_NO_QP);
TRACE_DEFINE_ENUM(HERALD_WIRE_BAD_ICRC);
TRACE_DEFINE_ENUM(HERALD_WIRE_MALFORMED);

/* @bth: of the first packet; @bytes: of all, from the first BTH to the last iCRC */
TRACE_EVENT(herald_wire_send,
	    TP_PROTO(struct herald_dev *dev, u32 qpn, const u8 *bth, u32 packets, u32 bytes,
		     u8 verdict),
	    TP_ARGS(dev, qpn, bth, packets, bytes, verdict),

	    TP_STRUCT__entry(__string(device, dev_name(&dev->ib.dev))
			     __string(opcode, herald_pkt_row(bth[0])->name)
			     __field(u32, qpn)
			     __field(u32, dest_qpn)
			     __field(u32, psn)
			     __field(u32, packets)
			     __field(u32, bytes)
			     __field(u8, verdict)
	    ),

	    TP_fast_assign(__assign_str(device);
			   __assign_str(opcode);
			   __entry->qpn = qpn;
			   __entry->dest_qpn = get_unaligned_be24(bth + 5);
			   __entry->psn = get_unaligned_be24(bth + 9);
			   __entry->packets = packets;
			   __entry->bytes = bytes;
			   __entry->verdict = verdict;
	    ),

	    TP_printk("device=%s qpn=%u dest_qpn=%u opcode=%s psn=%u packets=%u bytes=%u verdict=%s",
		      __get_str(device), __entry->qpn, __entry->dest_qpn, __get_str(opcode),
		      __entry->psn, __entry->packets, __entry->bytes,
		      herald_show_wire_verdict(__entry->verdict))
);

/* @dev: NULL if none has the destination address */
TRACE_EVENT(herald_wire_receive,
	    TP_PROTO(struct herald_dev *dev, const u8 *bth, u32 packets, u32 bytes, u8 verdict),
	    TP_ARGS(dev, bth, packets, bytes, verdict),

	    TP_STRUCT__entry(__string(device, dev ? dev_name(&dev->ib.dev) : "-")
			     __string(opcode, herald_pkt_row(bth[0])->name)
			     __field(u32, dest_qpn)
			     __field(u32, psn)
			     __field(u32, packets)
			     __field(u32, bytes)
			     __field(u8, verdict)
	    ),

	    TP_fast_assign(__assign_str(device);
			   __assign_str(opcode);
			   __entry->dest_qpn = get_unaligned_be24(bth + 5);
			   __entry->psn = get_unaligned_be24(bth + 9);
			   __entry->packets = packets;
			   __entry->bytes = bytes;
			   __entry->verdict = verdict;
	    ),

	    TP_printk("device=%s dest_qpn=%u opcode=%s psn=%u packets=%u bytes=%u verdict=%s",
		      __get_str(device), __entry->dest_qpn, __get_str(opcode), __entry->psn,
		      __entry->packets, __entry->bytes,
		      herald_show_wire_verdict(__entry->verdict))
);

#endif /* HERALD_WIRE_TRACE_H */

#undef TRACE_INCLUDE_PATH
#define TRACE_INCLUDE_PATH .
#undef TRACE_INCLUDE_FILE
#define TRACE_INCLUDE_FILE wire_trace
#include <trace/define_trace.h>
