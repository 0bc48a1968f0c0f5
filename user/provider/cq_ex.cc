/* SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB */
/* Completion queues: polling by ibv_start_poll, which holds the lock until ibv_end_poll. */
#include <ctime>

#include "objects.h"

using namespace herald;

namespace {

constexpr uint64_t timestamp_flags =
	IBV_WC_EX_WITH_COMPLETION_TIMESTAMP | IBV_WC_EX_WITH_COMPLETION_TIMESTAMP_WALLCLOCK;

const herald_cqe &current(ibv_cq_ex *handle) noexcept
{
	return *Cq::of(handle).current;
}

int step(Cq &cq) noexcept
{
	const herald_cqe *cqe = cq.ring.take();

	if (!cqe)
		return cq.ring.dead() ? EIO : ENOENT;
	cq.current = cqe;
	cq.verbs.wr_id = cqe->wr_id;
	cq.verbs.status = static_cast<ibv_wc_status>(cqe->status);
	return 0;
}

int start_poll(ibv_cq_ex *handle, ibv_poll_cq_attr *attr) noexcept
{
	Cq &cq = Cq::of(handle);

	if (attr->comp_mask)
		return EINVAL;
	if (cq.ring.looks_empty())
		return cq.ring.dead() ? EIO : ENOENT;
	cq.lock.lock();

	int error = step(cq);

	if (error)
		cq.lock.unlock();
	return error;
}

int next_poll(ibv_cq_ex *handle) noexcept
{
	return step(Cq::of(handle));
}

void end_poll(ibv_cq_ex *handle) noexcept
{
	Cq &cq = Cq::of(handle);

	cq.current = nullptr;
	cq.ring.publish();
	cq.lock.unlock();
}

ibv_wc_opcode read_opcode(ibv_cq_ex *cq) noexcept
{
	return static_cast<ibv_wc_opcode>(current(cq).opcode);
}

uint32_t read_vendor_err(ibv_cq_ex *cq) noexcept
{
	return current(cq).vendor_err;
}

uint32_t read_byte_len(ibv_cq_ex *cq) noexcept
{
	return current(cq).byte_len;
}

__be32 read_imm_data(ibv_cq_ex *cq) noexcept
{
	return current(cq).imm_or_rkey;
}

uint32_t read_qp_num(ibv_cq_ex *cq) noexcept
{
	return current(cq).qp_num;
}

uint32_t read_src_qp(ibv_cq_ex *cq) noexcept
{
	return current(cq).src_qp;
}

unsigned int read_wc_flags(ibv_cq_ex *cq) noexcept
{
	return current(cq).wc_flags;
}

uint32_t read_slid(ibv_cq_ex *cq) noexcept
{
	return current(cq).slid;
}

uint8_t read_sl(ibv_cq_ex *cq) noexcept
{
	return current(cq).sl;
}

uint8_t read_dlid_path_bits(ibv_cq_ex *cq) noexcept
{
	return current(cq).dlid_path_bits;
}

uint64_t read_completion_ts(ibv_cq_ex *cq) noexcept
{
	return current(cq).timestamp;
}

uint64_t now(clockid_t clock) noexcept
{
	timespec ts;

	clock_gettime(clock, &ts);
	return static_cast<uint64_t>(ts.tv_sec) * 1000000000u + static_cast<uint64_t>(ts.tv_nsec);
}

/* The device stamps with CLOCK_MONOTONIC; the wall clock is that plus their present distance. */
uint64_t read_completion_wallclock_ns(ibv_cq_ex *cq) noexcept
{
	return current(cq).timestamp + (now(CLOCK_REALTIME) - now(CLOCK_MONOTONIC));
}

} // namespace

bool herald_cq_ex_supports(uint64_t wc_flags) noexcept
{
	return !(wc_flags & ~(static_cast<uint64_t>(IBV_WC_STANDARD_FLAGS) | timestamp_flags));
}

void herald_cq_set_ex(struct ibv_cq_ex *cq, uint64_t wc_flags) noexcept
{
	cq->start_poll = start_poll;
	cq->next_poll = next_poll;
	cq->end_poll = end_poll;
	cq->read_opcode = read_opcode;
	cq->read_vendor_err = read_vendor_err;
	cq->read_wc_flags = read_wc_flags;
	cq->read_byte_len = read_byte_len;
	cq->read_imm_data = read_imm_data;
	cq->read_qp_num = read_qp_num;
	cq->read_src_qp = read_src_qp;
	cq->read_slid = read_slid;
	cq->read_sl = read_sl;
	cq->read_dlid_path_bits = read_dlid_path_bits;
	if (wc_flags & IBV_WC_EX_WITH_COMPLETION_TIMESTAMP)
		cq->read_completion_ts = read_completion_ts;
	if (wc_flags & IBV_WC_EX_WITH_COMPLETION_TIMESTAMP_WALLCLOCK)
		cq->read_completion_wallclock_ns = read_completion_wallclock_ns;
}
