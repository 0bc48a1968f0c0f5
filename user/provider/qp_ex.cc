/* SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB */
/*
 * Queue pairs: posting by ibv_wr_start ... ibv_wr_complete.  The send lock is
 * held in between; the first error is remembered and undoes all of it.
 */
#include "ioctl.h"
#include "objects.h"

using namespace herald;

namespace {

/* ------------------------------------------------------------ sections -- */

void wr_start(ibv_qp_ex *handle) noexcept
{
	Qp &qp = Qp::of(handle);

	qp.sq_lock.lock();
	qp.build = {qp.sq.head(), qp.may_post_send() ? 0 : EINVAL, nullptr};
}

void wr_abort(ibv_qp_ex *handle) noexcept
{
	Qp &qp = Qp::of(handle);

	qp.sq.rewind(qp.build.first);
	qp.build.slot = nullptr;
	qp.sq_lock.unlock();
}

int wr_complete(ibv_qp_ex *handle) noexcept
{
	Qp &qp = Qp::of(handle);

	if (int error = qp.build.error) {
		wr_abort(handle);
		return error;
	}

	const bool any = qp.sq.head() != qp.build.first;

	if (any && qp.sq.asks()) [[unlikely]] {
		if (int refused = qp.may_post(HERALD_POSTING_SEND)) {
			wr_abort(handle);
			return refused;
		}
	}
	if (any)
		qp.sq.publish();
	qp.build.slot = nullptr;
	qp.sq_lock.unlock();
	return any ? ring_doorbell(handle->qp_base, HERALD_DOORBELL_SEND) : 0;
}

void refuse(Qp &qp, int error) noexcept
{
	if (!qp.build.error)
		qp.build.error = error;
	qp.build.slot = nullptr;
}

/* ------------------------------------------------------------ builders -- */

/* Begin the next WR and let @write put its own part; nothing once there was an error. */
template <class Write> void build(ibv_qp_ex *handle, uint32_t opcode, Write &&write) noexcept
{
	Qp &qp = Qp::of(handle);

	if (qp.build.error)
		return;
	if (!operation_allowed(operation_of(opcode), qp.limits.qp_type) ||
	    (handle->wr_flags & ~(plain_send_flags | IBV_SEND_INLINE)))
		return refuse(qp, EINVAL);
	if (!qp.sq.has_room(qp.send_cq().ring))
		return refuse(qp, ENOMEM);

	SendSlot slot(qp.sq.next_slot());

	qp.build.slot = static_cast<herald_send_wqe *>(qp.sq.next_slot());
	qp.sq.push();
	slot.begin(handle->wr_id, opcode, handle->wr_flags);
	write(slot);
}

void wr_send(ibv_qp_ex *qp) noexcept
{
	build(qp, HERALD_WR_SEND, [](SendSlot &) noexcept {});
}

void wr_send_imm(ibv_qp_ex *qp, __be32 imm) noexcept
{
	build(qp, HERALD_WR_SEND_WITH_IMM, [=](SendSlot &slot) noexcept { slot.imm_or_rkey(imm); });
}

void wr_send_inv(ibv_qp_ex *qp, uint32_t rkey) noexcept
{
	build(qp, HERALD_WR_SEND_WITH_INV, [=](SendSlot &slot) noexcept { slot.imm_or_rkey(rkey); });
}

void wr_rdma_write(ibv_qp_ex *qp, uint32_t rkey, uint64_t addr) noexcept
{
	build(qp, HERALD_WR_RDMA_WRITE, [=](SendSlot &slot) noexcept { slot.rdma(addr, rkey); });
}

void wr_rdma_write_imm(ibv_qp_ex *qp, uint32_t rkey, uint64_t addr, __be32 imm) noexcept
{
	build(qp, HERALD_WR_RDMA_WRITE_WITH_IMM, [=](SendSlot &slot) noexcept {
		slot.rdma(addr, rkey);
		slot.imm_or_rkey(imm);
	});
}

void wr_rdma_read(ibv_qp_ex *qp, uint32_t rkey, uint64_t addr) noexcept
{
	build(qp, HERALD_WR_RDMA_READ, [=](SendSlot &slot) noexcept { slot.rdma(addr, rkey); });
}

void wr_atomic_cmp_swp(ibv_qp_ex *qp, uint32_t rkey, uint64_t addr, uint64_t compare, uint64_t swap) noexcept
{
	build(qp, HERALD_WR_ATOMIC_CMP_AND_SWP,
	      [=](SendSlot &slot) noexcept { slot.atomic(addr, rkey, compare, swap); });
}

void wr_atomic_fetch_add(ibv_qp_ex *qp, uint32_t rkey, uint64_t addr, uint64_t add) noexcept
{
	build(qp, HERALD_WR_ATOMIC_FETCH_AND_ADD, [=](SendSlot &slot) noexcept { slot.atomic(addr, rkey, add, 0); });
}

/* The 8 bytes go into the slot: into an SGE's room, if there is none for inline data. */
void wr_atomic_write(ibv_qp_ex *handle, uint32_t rkey, uint64_t addr, const void *value) noexcept
{
	Qp &qp = Qp::of(handle);

	if (!qp.limits.max_sge && qp.limits.max_inline < 8)
		return refuse(qp, EINVAL);
	build(handle, HERALD_WR_ATOMIC_WRITE, [=](SendSlot &slot) noexcept {
		slot.rdma(addr, rkey);
		slot.append_inline(value, 8);
	});
}

void wr_flush(ibv_qp_ex *handle, uint32_t rkey, uint64_t addr, size_t length, uint8_t type, uint8_t level) noexcept
{
	if (length > UINT32_MAX)
		return refuse(Qp::of(handle), EINVAL);
	build(handle, HERALD_WR_FLUSH,
	      [=](SendSlot &slot) noexcept { slot.flush(addr, rkey, static_cast<uint32_t>(length), type, level); });
}

void wr_local_inv(ibv_qp_ex *qp, uint32_t rkey) noexcept
{
	build(qp, HERALD_WR_LOCAL_INV, [=](SendSlot &slot) noexcept { slot.imm_or_rkey(rkey); });
}

void wr_bind_mw(ibv_qp_ex *qp, ibv_mw *mw, uint32_t rkey, const ibv_mw_bind_info *info) noexcept
{
	build(qp, HERALD_WR_BIND_MW, [=](SendSlot &slot) noexcept { slot.bind(*mw, rkey, *info); });
}

/* ------------------------------------------------------------- setters -- */

/* The WR that a setter applies to, or nullptr after an error. */
herald_send_wqe *wr_of(Qp &qp) noexcept
{
	return qp.build.error ? nullptr : qp.build.slot;
}

void wr_set_ud_addr(ibv_qp_ex *handle, ibv_ah *ah, uint32_t remote_qpn, uint32_t remote_qkey) noexcept
{
	Qp &qp = Qp::of(handle);
	herald_send_wqe *wqe = wr_of(qp);

	if (!wqe)
		return;
	if (!ah)
		return refuse(qp, EINVAL);
	SendSlot(wqe).ud(ah, remote_qpn, remote_qkey);
}

void wr_set_sge_list(ibv_qp_ex *handle, size_t count, const ibv_sge *list) noexcept
{
	Qp &qp = Qp::of(handle);
	herald_send_wqe *wqe = wr_of(qp);

	if (!wqe)
		return;
	if (count > qp.limits.max_sge)
		return refuse(qp, EINVAL);
	SendSlot(wqe).sges(list, static_cast<uint32_t>(count));
}

void wr_set_sge(ibv_qp_ex *handle, uint32_t lkey, uint64_t addr, uint32_t length) noexcept
{
	const ibv_sge sge = {addr, length, lkey};

	wr_set_sge_list(handle, 1, &sge);
}

void wr_set_inline_data_list(ibv_qp_ex *handle, size_t count, const ibv_data_buf *list) noexcept
{
	Qp &qp = Qp::of(handle);
	herald_send_wqe *wqe = wr_of(qp);
	size_t room = qp.limits.max_inline;

	if (!wqe)
		return;
	for (size_t i = 0; i < count; i++) {
		if (list[i].length > room)
			return refuse(qp, EINVAL);
		room -= list[i].length;
	}
	if (!operation_of(wqe->opcode).may_inline)
		return refuse(qp, EINVAL);

	SendSlot slot(wqe);

	slot.append_inline(nullptr, 0);
	for (size_t i = 0; i < count; i++)
		slot.append_inline(list[i].addr, list[i].length);
}

void wr_set_inline_data(ibv_qp_ex *handle, void *addr, size_t length) noexcept
{
	const ibv_data_buf buf = {addr, length};

	wr_set_inline_data_list(handle, 1, &buf);
}

} // namespace

/* ------------------------------------------------------------ creation -- */

uint64_t herald_qp_ex_ops(enum ibv_qp_type type) noexcept
{
	uint64_t flags = 0;

	for (uint32_t opcode = 0; opcode < opcode_count; opcode++) {
		const Operation op = operation_of(opcode);

		if (operation_allowed(op, type))
			flags |= op.ex_flag;
	}
	return flags;
}

void herald_qp_set_ex(struct ibv_qp_ex *qp, uint64_t ops) noexcept
{
	auto set = [ops](auto &member, auto function, uint64_t flag) noexcept {
		if (ops & flag)
			member = function;
	};

	qp->wr_start = wr_start;
	qp->wr_complete = wr_complete;
	qp->wr_abort = wr_abort;
	qp->wr_set_ud_addr = wr_set_ud_addr;
	qp->wr_set_sge = wr_set_sge;
	qp->wr_set_sge_list = wr_set_sge_list;
	qp->wr_set_inline_data = wr_set_inline_data;
	qp->wr_set_inline_data_list = wr_set_inline_data_list;

	set(qp->wr_send, wr_send, IBV_QP_EX_WITH_SEND);
	set(qp->wr_send_imm, wr_send_imm, IBV_QP_EX_WITH_SEND_WITH_IMM);
	set(qp->wr_send_inv, wr_send_inv, IBV_QP_EX_WITH_SEND_WITH_INV);
	set(qp->wr_rdma_write, wr_rdma_write, IBV_QP_EX_WITH_RDMA_WRITE);
	set(qp->wr_rdma_write_imm, wr_rdma_write_imm, IBV_QP_EX_WITH_RDMA_WRITE_WITH_IMM);
	set(qp->wr_rdma_read, wr_rdma_read, IBV_QP_EX_WITH_RDMA_READ);
	set(qp->wr_atomic_cmp_swp, wr_atomic_cmp_swp, IBV_QP_EX_WITH_ATOMIC_CMP_AND_SWP);
	set(qp->wr_atomic_fetch_add, wr_atomic_fetch_add, IBV_QP_EX_WITH_ATOMIC_FETCH_AND_ADD);
	set(qp->wr_atomic_write, wr_atomic_write, IBV_QP_EX_WITH_ATOMIC_WRITE);
	set(qp->wr_flush, wr_flush, IBV_QP_EX_WITH_FLUSH);
	set(qp->wr_local_inv, wr_local_inv, IBV_QP_EX_WITH_LOCAL_INV);
	set(qp->wr_bind_mw, wr_bind_mw, IBV_QP_EX_WITH_BIND_MW);
}
