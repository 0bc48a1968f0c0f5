// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
//
// A completion queue of librxe over plain memory: rdma-core's own source, as the build finds it, compiled here with a
// few lines round it that lay the queue out as its headers say.
#include "rxe.c"

#include <fcntl.h>

#include "rxe_cq.h"

// What libibverbs would have made at ibv_open_device(). ibv_cmd_* read their private part; zeros mean write(2), not ioctl(2).
struct bench_context {
	struct verbs_context verbs;
	char private_part[4096];
};

static struct ibv_context *make_context(void)
{
	struct bench_context *context = calloc(1, sizeof(*context));

	if (!context)
		return NULL;
	context->verbs.priv = (void *)context->private_part;
	// takes every command, and does nothing
	context->verbs.context.cmd_fd = open("/dev/null", O_WRONLY | O_CLOEXEC);
	context->verbs.context.ops.poll_cq = rxe_poll_cq;
	context->verbs.context.ops.req_notify_cq = ibv_cmd_req_notify_cq;
	return &context->verbs.context;
}

struct ibv_cq *rxe_bench_cq_new(unsigned int depth)
{
	const unsigned int log2_elem_size = 6; // as the kernel's: sizeof(struct rxe_cqe), rounded up
	struct rxe_cq *cq = calloc(1, sizeof(*cq));
	size_t size = sizeof(struct rxe_queue_buf) + ((size_t)depth << log2_elem_size);

	if (!cq)
		return NULL;
	cq->vcq.cq.context = make_context();
	cq->queue = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	if (!cq->vcq.cq.context || cq->vcq.cq.context->cmd_fd < 0 || cq->queue == MAP_FAILED)
		return NULL;
	memset(cq->queue, 0, size);
	cq->queue->log2_elem_size = log2_elem_size;
	cq->queue->index_mask = depth - 1;
	cq->wc_size = (size_t)1 << log2_elem_size;
	pthread_spin_init(&cq->lock, PTHREAD_PROCESS_PRIVATE);
	return &cq->vcq.cq;
}

void rxe_bench_publish(struct ibv_cq *cq, unsigned int count)
{
	struct rxe_queue_buf *queue = to_rcq(cq)->queue;

	store_producer_index(queue, (load_producer_index(queue) + count) & queue->index_mask);
}
