/* SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB */
/*
 * Work requests into slots, completions out of them.  Pure: no lock, no ring,
 * no library; of verbs.h only types.
 */
#pragma once

#include <cerrno>
#include <cstddef>
#include <cstdint>
#include <cstring>

#include <infiniband/verbs.h>
#include <rdma/herald-abi.h>

#include "herald_core.h"

namespace herald {

static_assert(sizeof(herald_send_wqe) == HERALD_SEND_WQE_HDR);
static_assert(sizeof(herald_recv_wqe) == HERALD_RECV_WQE_HDR);
static_assert(sizeof(herald_cqe) == 64);
static_assert(sizeof(herald_ring_ctl) == HERALD_RING_DATA_OFFSET);
static_assert(sizeof(herald_cq_ctl) == HERALD_CQ_DATA_OFFSET);
static_assert(sizeof(herald_sge) == sizeof(ibv_sge) && offsetof(herald_sge, addr) == offsetof(ibv_sge, addr) &&
	      offsetof(herald_sge, length) == offsetof(ibv_sge, length) &&
	      offsetof(herald_sge, lkey) == offsetof(ibv_sge, lkey));

#define HERALD_SAME(ours, theirs) static_assert(static_cast<int>(ours) == static_cast<int>(theirs))
HERALD_SAME(HERALD_WR_RDMA_WRITE, IBV_WR_RDMA_WRITE);
HERALD_SAME(HERALD_WR_RDMA_WRITE_WITH_IMM, IBV_WR_RDMA_WRITE_WITH_IMM);
HERALD_SAME(HERALD_WR_SEND, IBV_WR_SEND);
HERALD_SAME(HERALD_WR_SEND_WITH_IMM, IBV_WR_SEND_WITH_IMM);
HERALD_SAME(HERALD_WR_RDMA_READ, IBV_WR_RDMA_READ);
HERALD_SAME(HERALD_WR_ATOMIC_CMP_AND_SWP, IBV_WR_ATOMIC_CMP_AND_SWP);
HERALD_SAME(HERALD_WR_ATOMIC_FETCH_AND_ADD, IBV_WR_ATOMIC_FETCH_AND_ADD);
HERALD_SAME(HERALD_WR_LOCAL_INV, IBV_WR_LOCAL_INV);
HERALD_SAME(HERALD_WR_BIND_MW, IBV_WR_BIND_MW);
HERALD_SAME(HERALD_WR_SEND_WITH_INV, IBV_WR_SEND_WITH_INV);
HERALD_SAME(HERALD_WR_FLUSH, IBV_WR_FLUSH);
HERALD_SAME(HERALD_WR_ATOMIC_WRITE, IBV_WR_ATOMIC_WRITE);
HERALD_SAME(HERALD_WR_FENCE, IBV_SEND_FENCE);
HERALD_SAME(HERALD_WR_SIGNALED, IBV_SEND_SIGNALED);
HERALD_SAME(HERALD_WR_SOLICITED, IBV_SEND_SOLICITED);
HERALD_SAME(HERALD_WR_INLINE, IBV_SEND_INLINE);
#undef HERALD_SAME

/* ---------------------------------------------------------- operations -- */

/* Which part of a WR an operation uses besides its data. */
enum class Shape : uint8_t {
	none, /* no such operation */
	send,
	rdma,
	atomic,
	flush,
	local_inv,
	bind,
};

struct Operation {
	Shape shape = Shape::none;
	uint8_t qp_types = 0; /* bits of enum ibv_qp_type */
	bool may_inline = false;
	bool imm_or_rkey = false;
	uint64_t ex_flag = 0; /* IBV_QP_EX_WITH_... */
};

inline constexpr uint8_t rc = 1 << IBV_QPT_RC, uc = 1 << IBV_QPT_UC, ud = 1 << IBV_QPT_UD;
inline constexpr uint32_t opcode_count = HERALD_WR_ATOMIC_WRITE + 1;

constexpr Operation operation_of(uint32_t opcode) noexcept
{
	switch (opcode) {
	case HERALD_WR_SEND:
		return {Shape::send, rc | uc | ud, true, false, IBV_QP_EX_WITH_SEND};
	case HERALD_WR_SEND_WITH_IMM:
		return {Shape::send, rc | uc | ud, true, true, IBV_QP_EX_WITH_SEND_WITH_IMM};
	case HERALD_WR_SEND_WITH_INV:
		return {Shape::send, rc, true, true, IBV_QP_EX_WITH_SEND_WITH_INV};
	case HERALD_WR_RDMA_WRITE:
		return {Shape::rdma, rc | uc, true, false, IBV_QP_EX_WITH_RDMA_WRITE};
	case HERALD_WR_RDMA_WRITE_WITH_IMM:
		return {Shape::rdma, rc | uc, true, true, IBV_QP_EX_WITH_RDMA_WRITE_WITH_IMM};
	case HERALD_WR_RDMA_READ:
		return {Shape::rdma, rc, false, false, IBV_QP_EX_WITH_RDMA_READ};
	case HERALD_WR_ATOMIC_CMP_AND_SWP:
		return {Shape::atomic, rc, false, false, IBV_QP_EX_WITH_ATOMIC_CMP_AND_SWP};
	case HERALD_WR_ATOMIC_FETCH_AND_ADD:
		return {Shape::atomic, rc, false, false, IBV_QP_EX_WITH_ATOMIC_FETCH_AND_ADD};
	case HERALD_WR_ATOMIC_WRITE:
		return {Shape::rdma, rc, true, false, IBV_QP_EX_WITH_ATOMIC_WRITE};
	case HERALD_WR_FLUSH:
		return {Shape::flush, rc, false, false, IBV_QP_EX_WITH_FLUSH};
	case HERALD_WR_LOCAL_INV:
		return {Shape::local_inv, rc | uc, false, true, IBV_QP_EX_WITH_LOCAL_INV};
	case HERALD_WR_BIND_MW:
		return {Shape::bind, rc | uc, false, false, IBV_QP_EX_WITH_BIND_MW};
	default:
		return {};
	}
}

constexpr bool operation_allowed(const Operation &op, uint32_t qp_type) noexcept
{
	return qp_type < 8 && (op.qp_types >> qp_type & 1);
}

/* What one QP accepts. */
struct SendLimits {
	uint32_t qp_type = 0;
	uint32_t max_sge = 0;
	uint32_t max_inline = 0;
};

/* ---------------------------------------------------------- send slots -- */

inline constexpr uint32_t plain_send_flags = IBV_SEND_FENCE | IBV_SEND_SIGNALED | IBV_SEND_SOLICITED;

/* A send slot being filled, one part after the other. */
class SendSlot {
public:
	explicit SendSlot(void *slot) noexcept : wqe_(static_cast<herald_send_wqe *>(slot)) {}

	void begin(uint64_t wr_id, uint32_t opcode, uint32_t flags) noexcept
	{
		*wqe_ = {};
		wqe_->wr_id = wr_id;
		wqe_->opcode = static_cast<uint8_t>(opcode);
		wqe_->flags = static_cast<uint16_t>(flags & plain_send_flags);
	}

	void imm_or_rkey(uint32_t value) noexcept { wqe_->imm_or_rkey = value; }

	void rdma(uint64_t remote_addr, uint32_t rkey) noexcept
	{
		wqe_->rdma.remote_addr = remote_addr;
		wqe_->rdma.rkey = rkey;
	}

	void atomic(uint64_t remote_addr, uint32_t rkey, uint64_t compare_add, uint64_t swap) noexcept
	{
		wqe_->atomic.remote_addr = remote_addr;
		wqe_->atomic.compare_add = compare_add;
		wqe_->atomic.swap = swap;
		wqe_->atomic.rkey = rkey;
	}

	void flush(uint64_t remote_addr, uint32_t rkey, uint32_t length, uint32_t placement, uint32_t level) noexcept
	{
		wqe_->flush.remote_addr = remote_addr;
		wqe_->flush.rkey = rkey;
		wqe_->flush.length = length;
		wqe_->flush.placement = placement;
		wqe_->flush.selectivity = level;
	}

	void ud(const ibv_ah *ah, uint32_t remote_qpn, uint32_t remote_qkey) noexcept
	{
		wqe_->ud.ah = reinterpret_cast<const herald_uah *>(ah)->number;
		wqe_->ud.remote_qpn = remote_qpn;
		wqe_->ud.remote_qkey = remote_qkey;
	}

	void bind(const ibv_mw &mw, uint32_t new_rkey, const ibv_mw_bind_info &info) noexcept
	{
		wqe_->bind.addr = info.addr;
		wqe_->bind.length = info.length;
		wqe_->bind.mr_lkey = info.mr ? info.mr->lkey : 0;
		wqe_->bind.mw_rkey = mw.rkey;
		wqe_->bind.new_rkey = new_rkey;
		wqe_->bind.access = info.mw_access_flags;
	}

	void sges(const ibv_sge *list, uint32_t count) noexcept
	{
		wqe_->num_sge = static_cast<uint8_t>(count);
		if (count)
			std::memcpy(data(), list, count * sizeof(herald_sge));
	}

	/* Append inline data; the caller has checked that all of it fits. */
	void append_inline(const void *from, size_t length) noexcept
	{
		wqe_->flags |= HERALD_WR_INLINE;
		if (length)
			std::memcpy(data() + wqe_->inline_len, from, length);
		wqe_->inline_len += static_cast<uint32_t>(length);
	}

private:
	std::byte *data() const noexcept { return reinterpret_cast<std::byte *>(wqe_ + 1); }

	herald_send_wqe *wqe_;
};

/* The operation's own part of a WR, as ibv_post_send() passes it. */
inline int encode_operation(SendSlot &slot, const ibv_send_wr &wr, Shape shape, const SendLimits &limits) noexcept
{
	switch (shape) {
	case Shape::send:
		if (limits.qp_type != IBV_QPT_UD)
			return 0;
		if (!wr.wr.ud.ah)
			return EINVAL;
		slot.ud(wr.wr.ud.ah, wr.wr.ud.remote_qpn, wr.wr.ud.remote_qkey);
		return 0;
	case Shape::rdma:
		slot.rdma(wr.wr.rdma.remote_addr, wr.wr.rdma.rkey);
		return 0;
	case Shape::atomic:
		slot.atomic(wr.wr.atomic.remote_addr, wr.wr.atomic.rkey, wr.wr.atomic.compare_add, wr.wr.atomic.swap);
		return 0;
	case Shape::bind:
		if (!wr.bind_mw.mw)
			return EINVAL;
		slot.bind(*wr.bind_mw.mw, wr.bind_mw.rkey, wr.bind_mw.bind_info);
		return 0;
	case Shape::local_inv:
		return 0;
	default: /* struct ibv_send_wr has no room for a flush */
		return EINVAL;
	}
}

inline int encode_data(SendSlot &slot, const ibv_send_wr &wr, const SendLimits &limits) noexcept
{
	if (!(wr.send_flags & IBV_SEND_INLINE)) {
		slot.sges(wr.sg_list, static_cast<uint32_t>(wr.num_sge));
		return 0;
	}

	uint64_t total = 0;

	for (int i = 0; i < wr.num_sge; i++)
		total += wr.sg_list[i].length;
	if (total > limits.max_inline)
		return EINVAL;
	slot.append_inline(nullptr, 0);
	for (int i = 0; i < wr.num_sge; i++)
		slot.append_inline(reinterpret_cast<const void *>(static_cast<uintptr_t>(wr.sg_list[i].addr)),
				   wr.sg_list[i].length);
	return 0;
}

/* Write a WR into a slot.  0 or EINVAL; the slot is then rubbish and must not be published. */
inline int encode_send(void *memory, const ibv_send_wr &wr, const SendLimits &limits) noexcept
{
	const Operation op = operation_of(wr.opcode);
	const uint32_t known = plain_send_flags | (op.may_inline ? IBV_SEND_INLINE : 0);

	if (!operation_allowed(op, limits.qp_type) || (wr.send_flags & ~known) || wr.num_sge < 0 ||
	    static_cast<uint32_t>(wr.num_sge) > limits.max_sge) [[unlikely]]
		return EINVAL;

	SendSlot slot(memory);

	slot.begin(wr.wr_id, wr.opcode, wr.send_flags);
	if (op.imm_or_rkey)
		slot.imm_or_rkey(wr.invalidate_rkey);
	if (int error = encode_operation(slot, wr, op.shape, limits)) [[unlikely]]
		return error;
	if (op.shape == Shape::bind || op.shape == Shape::local_inv)
		return 0;
	return encode_data(slot, wr, limits);
}

/* ------------------------------------------------------- receive slots -- */

inline int encode_recv(void *memory, const ibv_recv_wr &wr, uint32_t max_sge) noexcept
{
	auto *wqe = static_cast<herald_recv_wqe *>(memory);

	if (wr.num_sge < 0 || static_cast<uint32_t>(wr.num_sge) > max_sge) [[unlikely]]
		return EINVAL;
	wqe->wr_id = wr.wr_id;
	wqe->num_sge = static_cast<uint32_t>(wr.num_sge);
	wqe->reserved = 0;
	if (wr.num_sge)
		std::memcpy(static_cast<void *>(wqe + 1), wr.sg_list, wqe->num_sge * sizeof(herald_sge));
	return 0;
}

/* --------------------------------------------------------- completions -- */

#define HERALD_SAME(member, wc_member)                                                                                 \
	static_assert(offsetof(herald_cqe, member) == offsetof(ibv_wc, wc_member) &&                                   \
		      sizeof(herald_cqe::member) == sizeof(ibv_wc::wc_member))
HERALD_SAME(wr_id, wr_id);
HERALD_SAME(status, status);
HERALD_SAME(opcode, opcode);
HERALD_SAME(vendor_err, vendor_err);
HERALD_SAME(byte_len, byte_len);
HERALD_SAME(imm_or_rkey, imm_data);
HERALD_SAME(qp_num, qp_num);
HERALD_SAME(src_qp, src_qp);
HERALD_SAME(wc_flags, wc_flags);
HERALD_SAME(pkey_index, pkey_index);
HERALD_SAME(slid, slid);
HERALD_SAME(sl, sl);
HERALD_SAME(dlid_path_bits, dlid_path_bits);
#undef HERALD_SAME
static_assert(sizeof(ibv_wc) == 48);

/* What the CQE has where ibv_wc has padding is copied along: whole words are faster. */
inline void decode_cqe(const herald_cqe &cqe, ibv_wc &wc) noexcept
{
	std::memcpy(static_cast<void *>(&wc), &cqe, sizeof(wc));
}

} // namespace herald
