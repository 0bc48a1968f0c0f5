/* SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB */
/* librxe's CQ without a device, for poll_bench.cc.  Lives until the process ends. */
#ifndef HERALD_BENCH_RXE_CQ_H
#define HERALD_BENCH_RXE_CQ_H

#include <infiniband/verbs.h>

#ifdef __cplusplus
extern "C" {
#endif

/* @depth: a power of two; one less fit.  NULL if there is no memory. */
struct ibv_cq *rxe_bench_cq_new(unsigned int depth);

/* The kernel's half: @count more completions, whatever is in their slots. */
void rxe_bench_publish(struct ibv_cq *cq, unsigned int count);

#ifdef __cplusplus
}
#endif

#endif
