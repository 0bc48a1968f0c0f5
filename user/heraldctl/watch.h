/* SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB */
/* Asynchronous events as they are raised, through a tracepoint: no application loses one by it. */
#ifndef HERALDCTL_WATCH_H
#define HERALDCTL_WATCH_H

#include "async_event.h"

namespace heraldctl {

/* Until a signal, the count or the time ends it. A Failure that says so if the kernel has no event tracing. */
void watch(const WatchOptions &options);

/* Where tracefs is mounted; a Failure if the kernel has none. */
std::string tracefs();

} // namespace heraldctl

#endif
