// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/* The code of the wire's tracepoints. */
#define CREATE_TRACE_POINTS
#include "wire_trace.h"
