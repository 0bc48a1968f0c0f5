/* SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB */
/*
 * The boundary between herald_glue.c, which knows rdma-core's private driver.h,
 * and the C++ behind it, which knows the public verbs.h only.  No exception
 * crosses it and none is thrown behind it.
 *
 * Objects live in one allocation that begins with libibverbs' own structure
 * (struct verbs_cq, verbs_qp, ibv_srq), so that a handle of the application
 * is the address of ours.  The life of an object:
 *
 *	herald_x_new()		memory, zeroed
 *	ibv_cmd_create_x()	the kernel's half
 *	herald_x_map()		its rings
 *	...
 *	ibv_cmd_destroy_x()
 *	herald_x_free()
 *
 * Functions that return int return 0 or a positive errno, unless libibverbs
 * wants it otherwise (herald_poll_cq).
 */
#ifndef HERALD_CORE_H
#define HERALD_CORE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <infiniband/verbs.h>
#include <rdma/herald-abi.h>

#ifdef __cplusplus
#define HERALD_NOEXCEPT noexcept
extern "C" {
#else
#define HERALD_NOEXCEPT
#endif

/* Room for the private tail of struct verbs_qp; the glue asserts that it fits. */
#define HERALD_VERBS_QP_ROOM (sizeof(struct ibv_qp_ex) + 64)

struct herald_uah {
	struct ibv_ah ibv;
	uint32_t number; /* what a WQE calls it */
};

/* Before any queue is made; again does nothing. */
void herald_locks_init(void) HERALD_NOEXCEPT;

/* ------------------------------------------------------------------ CQ -- */

struct ibv_cq_ex *herald_cq_new(bool single_threaded) HERALD_NOEXCEPT;
int herald_cq_map(struct ibv_cq_ex *cq, int fd, const struct herald_ring_info *info) HERALD_NOEXCEPT;
void herald_cq_set_id(struct ibv_cq_ex *cq, uint32_t id) HERALD_NOEXCEPT; /* what the kernel calls it */
void herald_cq_free(struct ibv_cq_ex *cq) HERALD_NOEXCEPT;

/* Is it a QP's?  The kernel knows, too, and refuses to destroy it, as long as there is a device. */
bool herald_cq_in_use(struct ibv_cq *cq) HERALD_NOEXCEPT;

/* wc_flags that ibv_create_cq_ex may ask for, and the readers for those it did ask for. */
bool herald_cq_ex_supports(uint64_t wc_flags) HERALD_NOEXCEPT;
void herald_cq_set_ex(struct ibv_cq_ex *cq, uint64_t wc_flags) HERALD_NOEXCEPT;

/* The resize command runs between these two (if the first succeeds), with the CQ locked; info is NULL if it failed. */
int herald_cq_resize_begin(struct ibv_cq *cq) HERALD_NOEXCEPT;
int herald_cq_resize_end(struct ibv_cq *cq, int fd, const struct herald_ring_info *info) HERALD_NOEXCEPT;

int herald_poll_cq(struct ibv_cq *cq, int num_entries, struct ibv_wc *wc) HERALD_NOEXCEPT;
int herald_req_notify_cq(struct ibv_cq *cq, int solicited_only) HERALD_NOEXCEPT;

/* The application has got an event of the CQ. */
void herald_cq_event(struct ibv_cq *cq) HERALD_NOEXCEPT;

/* -------------------------------------------------- asynchronous events -- */

/* The application has got one. */
void herald_async_event(struct ibv_context *context, struct ibv_async_event *event) HERALD_NOEXCEPT;

/* Until all events of the object that the application has got are acked: before it is freed. */
void herald_cq_await_acks(struct ibv_cq *cq) HERALD_NOEXCEPT;
void herald_qp_await_acks(struct ibv_qp *qp) HERALD_NOEXCEPT;
void herald_srq_await_acks(struct ibv_srq *srq) HERALD_NOEXCEPT;

/* ------------------------------------------------------------------ QP -- */

/* The send_ops_flags that a QP of this type can have. */
uint64_t herald_qp_ex_ops(enum ibv_qp_type type) HERALD_NOEXCEPT;

struct ibv_qp_ex *herald_qp_new(bool single_threaded) HERALD_NOEXCEPT;
int herald_qp_map(struct ibv_qp_ex *qp, const struct herald_create_qp_resp *resp,
		  const struct ibv_qp_cap *cap) HERALD_NOEXCEPT;
void herald_qp_set_ex(struct ibv_qp_ex *qp, uint64_t send_ops_flags) HERALD_NOEXCEPT;
void herald_qp_set_state(struct ibv_qp *qp, enum ibv_qp_state state) HERALD_NOEXCEPT;

/* The modification to RESET runs between these two: nothing can be posted meanwhile. */
void herald_qp_reset_begin(struct ibv_qp *qp) HERALD_NOEXCEPT;
void herald_qp_reset_end(struct ibv_qp *qp, bool done) HERALD_NOEXCEPT;

/* After the kernel's half is gone: removes its completions from its CQs, too. */
void herald_qp_free(struct ibv_qp *qp) HERALD_NOEXCEPT;

int herald_post_send(struct ibv_qp *qp, struct ibv_send_wr *wr, struct ibv_send_wr **bad_wr) HERALD_NOEXCEPT;
int herald_post_recv(struct ibv_qp *qp, struct ibv_recv_wr *wr, struct ibv_recv_wr **bad_wr) HERALD_NOEXCEPT;
int herald_bind_mw(struct ibv_qp *qp, struct ibv_mw *mw, struct ibv_mw_bind *bind) HERALD_NOEXCEPT;

/* ----------------------------------------------------------------- SRQ -- */

struct ibv_srq *herald_srq_new(bool single_threaded) HERALD_NOEXCEPT;
int herald_srq_map(struct ibv_srq *srq, int fd, const struct herald_ring_info *info, uint32_t max_wr,
		   uint32_t max_sge) HERALD_NOEXCEPT;
void herald_srq_set_number(struct ibv_srq *srq, uint32_t number) HERALD_NOEXCEPT; /* what the kernel calls it */
void herald_srq_free(struct ibv_srq *srq) HERALD_NOEXCEPT;
int herald_post_srq_recv(struct ibv_srq *srq, struct ibv_recv_wr *wr, struct ibv_recv_wr **bad_wr) HERALD_NOEXCEPT;

#ifdef __cplusplus
}
#endif

#endif /* HERALD_CORE_H */
