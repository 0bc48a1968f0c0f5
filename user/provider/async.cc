/* SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB */
/*
 * Destroying an object waits for the acks of all its events that the application has got: whoever has one in hand will
 * touch the object. The kernel's answer to the destroy command says how many they are, and libibverbs waits. A destroy that
 * meets the device's removal may get EIO instead of an answer; so they are counted here, too. (An event between the read
 * of the file and our count is not seen: then there is nothing to know of it.)
 */
#include "objects.h"

using namespace herald;

static void got(std::atomic<uint32_t> &counter) noexcept
{
	counter.fetch_add(1, std::memory_order_relaxed);
}

void herald_async_event(struct ibv_context *, struct ibv_async_event *event) noexcept
{
	switch (event->event_type) {
	case IBV_EVENT_CQ_ERR:
		got(Cq::of(event->element.cq).async_read);
		break;
	case IBV_EVENT_QP_FATAL:
	case IBV_EVENT_QP_REQ_ERR:
	case IBV_EVENT_QP_ACCESS_ERR:
	case IBV_EVENT_COMM_EST:
	case IBV_EVENT_SQ_DRAINED:
	case IBV_EVENT_PATH_MIG:
	case IBV_EVENT_PATH_MIG_ERR:
	case IBV_EVENT_QP_LAST_WQE_REACHED:
		got(Qp::of(event->element.qp).async_read);
		break;
	case IBV_EVENT_SRQ_ERR:
	case IBV_EVENT_SRQ_LIMIT_REACHED:
		got(Srq::of(event->element.srq).async_read);
		break;
	default: /* of the port or the device: nothing waits for its ack */
		break;
	}
}

/* Whoever acks signals @object's condition, libibverbs does. */
template <class T>
static void await_acks(T *object, const uint32_t &completed, const std::atomic<uint32_t> &counter) noexcept
{
	pthread_mutex_lock(&object->mutex);
	while (static_cast<int32_t>(counter.load(std::memory_order_relaxed) - completed) > 0)
		pthread_cond_wait(&object->cond, &object->mutex);
	pthread_mutex_unlock(&object->mutex);
}

void herald_cq_await_acks(struct ibv_cq *cq) noexcept
{
	await_acks(cq, cq->comp_events_completed, Cq::of(cq).events_read);
	await_acks(cq, cq->async_events_completed, Cq::of(cq).async_read);
}

void herald_qp_await_acks(struct ibv_qp *qp) noexcept
{
	await_acks(qp, qp->events_completed, Qp::of(qp).async_read);
}

void herald_srq_await_acks(struct ibv_srq *srq) noexcept
{
	await_acks(srq, srq->events_completed, Srq::of(srq).async_read);
}
