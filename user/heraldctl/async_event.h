/* SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB */
/* An asynchronous event: out of a record of the tracepoint, and into a line. */
#ifndef HERALDCTL_ASYNC_EVENT_H
#define HERALDCTL_ASYNC_EVENT_H

#include "event_format.h"

namespace heraldctl {

struct WatchOptions {
	std::string device; /* empty: all */
	bool json = false;
	bool all = false;        /* all verdicts; else what was raised, and what was merged into one that waited */
	unsigned long count = 0; /* end after so many; 0: never */
	double seconds = 0;      /* end after so long; 0: never */
};

/* An event as the tracepoint has it. What a module's tracepoint does not have is empty. */
struct AsyncEvent {
	std::string device;
	std::string event;
	std::string object; /* qp, cq, srq, port, device */
	std::optional<int64_t> number;
	std::string cause;   /* natural, provoked */
	int64_t pid = 0;     /* of the owner; 0: the kernel */
	std::string verdict; /* raised, delivered, coalesced */
};

AsyncEvent decode_event(const EventFormat &format, Bytes record);

bool wanted(const AsyncEvent &event, const WatchOptions &options);

/* One line, without the time; COMMAND is the owner's name. */
std::string event_line(const AsyncEvent &event, const std::string &command);

} // namespace heraldctl

#endif
