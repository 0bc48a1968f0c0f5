/* SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB */
/*
 * Tracepoints (system herald): every event that is raised, delivered or
 * suppressed.  Kernels without event tracing have none; docs/events.md says how
 * to look at them.
 */
#undef TRACE_SYSTEM
#define TRACE_SYSTEM herald

#if !defined(HERALD_TRACE_H) || defined(TRACE_HEADER_MULTI_READ)
#define HERALD_TRACE_H

#include <linux/tracepoint.h>

#include "cq.h"
#include "device.h"
#include "event.h"
#include "provoke.h"

#ifndef HERALD_TRACE_VERDICTS
#define HERALD_TRACE_VERDICTS
enum herald_trace_verdict {
	HERALD_TRACE_RAISED,
	HERALD_TRACE_DELIVERED,		/* to the core, which may drop it for want of memory */
	HERALD_TRACE_COALESCED,		/* one of this kind waits already */
	HERALD_TRACE_UNARMED,
	HERALD_TRACE_UNSOLICITED,
};
#endif

#define herald_show_verdict(verdict)				\
	__print_symbolic(verdict,				\
			 { HERALD_TRACE_RAISED, "raised" },	\
			 { HERALD_TRACE_DELIVERED, "delivered" },	\
			 { HERALD_TRACE_COALESCED, "coalesced" },	\
			 { HERALD_TRACE_UNARMED, "unarmed" },	\
			 { HERALD_TRACE_UNSOLICITED, "unsolicited" })

#define herald_show_object(object)				\
	__print_symbolic(object,				\
			 { HERALD_OBJECT_QP, "qp" },		\
			 { HERALD_OBJECT_CQ, "cq" },		\
			 { HERALD_OBJECT_SRQ, "srq" },		\
			 { HERALD_OBJECT_PORT, "port" },	\
			 { HERALD_OBJECT_DEVICE, "device" })

TRACE_DEFINE_ENUM(HERALD_TRACE_RAISED);
TRACE_DEFINE_ENUM(HERALD_TRACE_DELIVERED);
TRACE_DEFINE_ENUM(HERALD_TRACE_COALESCED);
TRACE_DEFINE_ENUM(HERALD_TRACE_UNARMED);
TRACE_DEFINE_ENUM(HERALD_TRACE_UNSOLICITED);
TRACE_DEFINE_ENUM(HERALD_OBJECT_QP);
TRACE_DEFINE_ENUM(HERALD_OBJECT_CQ);
TRACE_DEFINE_ENUM(HERALD_OBJECT_SRQ);
TRACE_DEFINE_ENUM(HERALD_OBJECT_PORT);
TRACE_DEFINE_ENUM(HERALD_OBJECT_DEVICE);

TRACE_EVENT(herald_async_event,
	    TP_PROTO(struct herald_dev *dev, int type, u8 object, u32 number, bool provoked,
		     int pid, u8 verdict),
	    TP_ARGS(dev, type, object, number, provoked, pid, verdict),

	    TP_STRUCT__entry(__string(device, dev_name(&dev->ib.dev))
			     __string(name, herald_event_name(type))
			     __field(int, event)
			     __field(u32, number)
			     __field(int, pid)
			     __field(u8, object)
			     __field(bool, provoked)
			     __field(u8, verdict)
	    ),

	    TP_fast_assign(__assign_str(device);
			   __assign_str(name);
			   __entry->event = type;
			   __entry->number = number;
			   __entry->pid = pid;
			   __entry->object = object;
			   __entry->provoked = provoked;
			   __entry->verdict = verdict;
	    ),

	    TP_printk("device=%s event=%d name=%s object=%s number=%u cause=%s pid=%d verdict=%s",
		      __get_str(device), __entry->event, __get_str(name),
		      herald_show_object(__entry->object), __entry->number,
		      __entry->provoked ? "provoked" : "natural", __entry->pid,
		      herald_show_verdict(__entry->verdict))
);

TRACE_EVENT(herald_comp_event,
	    TP_PROTO(struct herald_cq *cq, u8 verdict),
	    TP_ARGS(cq, verdict),

	    TP_STRUCT__entry(__string(device, dev_name(&cq->dev->ib.dev))
			     __field(u32, cqn)
			     __field(int, pid)
			     __field(u8, verdict)
	    ),

	    TP_fast_assign(__assign_str(device);
			   __entry->cqn = cq->ib.res.id;
			   __entry->pid = cq->pid;
			   __entry->verdict = verdict;
	    ),

	    TP_printk("device=%s cqn=%u pid=%d verdict=%s", __get_str(device), __entry->cqn,
		      __entry->pid, herald_show_verdict(__entry->verdict))
);

#endif /* HERALD_TRACE_H */

#undef TRACE_INCLUDE_PATH
#define TRACE_INCLUDE_PATH .
#undef TRACE_INCLUDE_FILE
#define TRACE_INCLUDE_FILE trace
#include <trace/define_trace.h>
