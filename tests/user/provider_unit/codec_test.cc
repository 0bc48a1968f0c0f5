/* SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB */
/* Work requests into slots. */
#include <gtest/gtest.h>

#include <cstring>
#include <string>

#include "wqe_codec.h"

namespace {

using namespace herald;

struct alignas(64) Slot {
	herald_send_wqe wqe;
	std::byte data[512];

	const herald_sge &sge(int i) const { return reinterpret_cast<const herald_sge *>(data)[i]; }
};

constexpr SendLimits rc_limits = {IBV_QPT_RC, 4, 32};

class Encode : public testing::Test {
protected:
	Encode()
	{
		memset(static_cast<void *>(&slot_), 0xa5, sizeof(slot_)); /* a slot is dirty from its last use */
		wr_.wr_id = 0x1122334455667788;
		wr_.opcode = IBV_WR_SEND;
		wr_.sg_list = sges_;
		wr_.num_sge = 2;
	}

	int encode(const SendLimits &limits = rc_limits) { return encode_send(&slot_, wr_, limits); }

	Slot slot_;
	ibv_sge sges_[5] = {{0x1000, 10, 1}, {0x2000, 20, 2}, {0x3000, 30, 3}, {0x4000, 40, 4}, {0x5000, 50, 5}};
	ibv_send_wr wr_ = {};
};

TEST_F(Encode, SendHasItsSges)
{
	wr_.send_flags = IBV_SEND_SIGNALED | IBV_SEND_SOLICITED | IBV_SEND_FENCE;
	ASSERT_EQ(encode(), 0);
	EXPECT_EQ(slot_.wqe.wr_id, wr_.wr_id);
	EXPECT_EQ(slot_.wqe.opcode, HERALD_WR_SEND);
	EXPECT_EQ(slot_.wqe.num_sge, 2);
	EXPECT_EQ(slot_.wqe.flags, HERALD_WR_SIGNALED | HERALD_WR_SOLICITED | HERALD_WR_FENCE);
	EXPECT_EQ(slot_.wqe.inline_len, 0u);
	EXPECT_EQ(slot_.sge(0).addr, 0x1000u);
	EXPECT_EQ(slot_.sge(1).length, 20u);
	EXPECT_EQ(slot_.sge(1).lkey, 2u);
}

TEST_F(Encode, WhatIsNotUsedIsZero)
{
	wr_.num_sge = 0;
	ASSERT_EQ(encode(), 0);
	herald_send_wqe expected = {};
	expected.wr_id = wr_.wr_id;
	expected.opcode = HERALD_WR_SEND;
	EXPECT_EQ(memcmp(&slot_.wqe, &expected, sizeof(expected)), 0);
}

TEST_F(Encode, Rdma)
{
	for (auto opcode : {IBV_WR_RDMA_WRITE, IBV_WR_RDMA_READ, IBV_WR_ATOMIC_WRITE}) {
		wr_.opcode = opcode;
		wr_.wr.rdma = {0xdead0000beef, 77};
		ASSERT_EQ(encode(), 0);
		EXPECT_EQ(slot_.wqe.opcode, opcode);
		EXPECT_EQ(slot_.wqe.rdma.remote_addr, 0xdead0000beefu);
		EXPECT_EQ(slot_.wqe.rdma.rkey, 77u);
		EXPECT_EQ(slot_.wqe.rdma.reserved, 0u);
		EXPECT_EQ(slot_.wqe.rdma.reserved1[1], 0u);
	}
}

TEST_F(Encode, Atomic)
{
	wr_.opcode = IBV_WR_ATOMIC_CMP_AND_SWP;
	wr_.wr.atomic = {0x8000, 1, 2, 3};
	ASSERT_EQ(encode(), 0);
	EXPECT_EQ(slot_.wqe.atomic.remote_addr, 0x8000u);
	EXPECT_EQ(slot_.wqe.atomic.compare_add, 1u);
	EXPECT_EQ(slot_.wqe.atomic.swap, 2u);
	EXPECT_EQ(slot_.wqe.atomic.rkey, 3u);
}

TEST_F(Encode, ImmediateAndRkeyShareAField)
{
	wr_.imm_data = 0x01020304;
	for (auto opcode : {IBV_WR_SEND_WITH_IMM, IBV_WR_RDMA_WRITE_WITH_IMM, IBV_WR_SEND_WITH_INV, IBV_WR_LOCAL_INV}) {
		wr_.opcode = opcode;
		ASSERT_EQ(encode(), 0);
		EXPECT_EQ(slot_.wqe.imm_or_rkey, 0x01020304u);
	}
	wr_.opcode = IBV_WR_SEND;
	ASSERT_EQ(encode(), 0);
	EXPECT_EQ(slot_.wqe.imm_or_rkey, 0u);
}

TEST_F(Encode, DatagramNamesItsAddressHandle)
{
	herald_uah ah = {};
	const SendLimits limits = {IBV_QPT_UD, 4, 32};

	ah.number = 42;
	wr_.wr.ud = {&ah.ibv, 0x123456, 0x11111111};
	ASSERT_EQ(encode(limits), 0);
	EXPECT_EQ(slot_.wqe.ud.ah, 42u);
	EXPECT_EQ(slot_.wqe.ud.remote_qpn, 0x123456u);
	EXPECT_EQ(slot_.wqe.ud.remote_qkey, 0x11111111u);
	EXPECT_EQ(slot_.wqe.ud.kernel_ah, 0u);
	wr_.wr.ud.ah = nullptr;
	EXPECT_EQ(encode(limits), EINVAL);
}

TEST_F(Encode, Bind)
{
	ibv_mr mr = {};
	ibv_mw mw = {};

	mr.lkey = 5;
	mw.rkey = 0x700;
	wr_.opcode = IBV_WR_BIND_MW;
	wr_.bind_mw = {&mw, 0x701, {&mr, 0x9000, 100, IBV_ACCESS_REMOTE_READ}};
	ASSERT_EQ(encode(), 0);
	EXPECT_EQ(slot_.wqe.bind.addr, 0x9000u);
	EXPECT_EQ(slot_.wqe.bind.length, 100u);
	EXPECT_EQ(slot_.wqe.bind.mr_lkey, 5u);
	EXPECT_EQ(slot_.wqe.bind.mw_rkey, 0x700u);
	EXPECT_EQ(slot_.wqe.bind.new_rkey, 0x701u);
	EXPECT_EQ(slot_.wqe.bind.access, unsigned(IBV_ACCESS_REMOTE_READ));
	EXPECT_EQ(slot_.wqe.num_sge, 0);
	wr_.bind_mw.bind_info.mr = nullptr;
	ASSERT_EQ(encode(), 0);
	EXPECT_EQ(slot_.wqe.bind.mr_lkey, 0u);
	wr_.bind_mw.mw = nullptr;
	EXPECT_EQ(encode(), EINVAL);
}

TEST_F(Encode, InlineIsGathered)
{
	char a[] = "inline", b[] = " data";
	ibv_sge list[] = {{uintptr_t(a), 6, 0}, {0, 0, 0}, {uintptr_t(b), 5, 0}};

	wr_.sg_list = list;
	wr_.num_sge = 3;
	wr_.send_flags = IBV_SEND_INLINE;
	ASSERT_EQ(encode(), 0);
	EXPECT_EQ(slot_.wqe.inline_len, 11u);
	EXPECT_EQ(slot_.wqe.num_sge, 0);
	EXPECT_EQ(slot_.wqe.flags, HERALD_WR_INLINE);
	EXPECT_EQ(std::string(reinterpret_cast<char *>(slot_.data), 11), "inline data");
}

TEST_F(Encode, EmptyInline)
{
	wr_.num_sge = 0;
	wr_.send_flags = IBV_SEND_INLINE;
	ASSERT_EQ(encode(), 0);
	EXPECT_EQ(slot_.wqe.flags, HERALD_WR_INLINE);
	EXPECT_EQ(slot_.wqe.inline_len, 0u);
}

TEST_F(Encode, InlineLimit)
{
	char bytes[64] = {};
	ibv_sge list[] = {{uintptr_t(bytes), 31, 0},
			  {uintptr_t(bytes), 1, 0},
			  {uintptr_t(bytes), UINT32_MAX, 0},
			  {uintptr_t(bytes), UINT32_MAX, 0}};

	wr_.sg_list = list;
	wr_.send_flags = IBV_SEND_INLINE;
	EXPECT_EQ(encode(), 0);
	list[1].length = 2;
	EXPECT_EQ(encode(), EINVAL);
	wr_.num_sge = 4; /* a sum that wraps 32 bits to something small */
	EXPECT_EQ(encode(), EINVAL);
}

TEST_F(Encode, SgeLimit)
{
	wr_.num_sge = 4;
	EXPECT_EQ(encode(), 0);
	wr_.num_sge = 5;
	EXPECT_EQ(encode(), EINVAL);
	wr_.num_sge = -1;
	EXPECT_EQ(encode(), EINVAL);
}

TEST_F(Encode, UnknownFlags)
{
	wr_.send_flags = IBV_SEND_IP_CSUM;
	EXPECT_EQ(encode(), EINVAL);
	wr_.send_flags = IBV_SEND_INLINE;
	wr_.opcode = IBV_WR_RDMA_READ;
	EXPECT_EQ(encode(), EINVAL);
}

/* ------------------------------------------ operations by type of QP -- */

struct Allowed {
	int opcode;
	bool rc, uc, ud;
};

class Operations : public testing::TestWithParam<Allowed> {};

TEST_P(Operations, ByType)
{
	const auto [opcode, on_rc, on_uc, on_ud] = GetParam();
	const Operation op = operation_of(uint32_t(opcode));

	EXPECT_EQ(operation_allowed(op, IBV_QPT_RC), on_rc);
	EXPECT_EQ(operation_allowed(op, IBV_QPT_UC), on_uc);
	EXPECT_EQ(operation_allowed(op, IBV_QPT_UD), on_ud);
	EXPECT_FALSE(operation_allowed(op, IBV_QPT_RAW_PACKET));
	EXPECT_FALSE(operation_allowed(op, IBV_QPT_DRIVER));
}

INSTANTIATE_TEST_SUITE_P(
	All, Operations,
	testing::Values(
		Allowed{IBV_WR_SEND, true, true, true}, Allowed{IBV_WR_SEND_WITH_IMM, true, true, true},
		Allowed{IBV_WR_SEND_WITH_INV, true, false, false}, Allowed{IBV_WR_RDMA_WRITE, true, true, false},
		Allowed{IBV_WR_RDMA_WRITE_WITH_IMM, true, true, false}, Allowed{IBV_WR_RDMA_READ, true, false, false},
		Allowed{IBV_WR_ATOMIC_CMP_AND_SWP, true, false, false},
		Allowed{IBV_WR_ATOMIC_FETCH_AND_ADD, true, false, false},
		Allowed{IBV_WR_ATOMIC_WRITE, true, false, false}, Allowed{IBV_WR_FLUSH, true, false, false},
		Allowed{IBV_WR_LOCAL_INV, true, true, false}, Allowed{IBV_WR_BIND_MW, true, true, false},
		Allowed{IBV_WR_TSO, false, false, false}, Allowed{IBV_WR_DRIVER1, false, false, false},
		Allowed{13, false, false, false}, Allowed{16, false, false, false}, Allowed{-1, false, false, false}),
	[](const auto &info) { return "opcode" + std::to_string(uint32_t(info.param.opcode)); });

TEST_F(Encode, RefusesWhatTheTypeHasNot)
{
	wr_.opcode = IBV_WR_RDMA_READ;
	EXPECT_EQ(encode({IBV_QPT_UC, 4, 32}), EINVAL);
	wr_.opcode = IBV_WR_TSO;
	EXPECT_EQ(encode(), EINVAL);
	wr_.opcode = IBV_WR_FLUSH; /* by ibv_wr_flush() only */
	EXPECT_EQ(encode(), EINVAL);
}

/* ------------------------------------------------ receives, completions -- */

TEST(EncodeRecv, HasItsSges)
{
	struct {
		herald_recv_wqe wqe;
		herald_sge sge[3];
	} slot;
	ibv_sge list[] = {{0x1000, 10, 1}, {0x2000, 20, 2}};
	ibv_recv_wr wr = {};

	memset(&slot, 0xa5, sizeof(slot));
	wr.wr_id = 99;
	wr.sg_list = list;
	wr.num_sge = 2;
	ASSERT_EQ(encode_recv(&slot, wr, 2), 0);
	EXPECT_EQ(slot.wqe.wr_id, 99u);
	EXPECT_EQ(slot.wqe.num_sge, 2u);
	EXPECT_EQ(slot.wqe.reserved, 0u);
	EXPECT_EQ(slot.sge[1].addr, 0x2000u);
	EXPECT_EQ(encode_recv(&slot, wr, 1), EINVAL);
	wr.num_sge = -1;
	EXPECT_EQ(encode_recv(&slot, wr, 1), EINVAL);
	wr.num_sge = 0;
	wr.sg_list = nullptr;
	EXPECT_EQ(encode_recv(&slot, wr, 0), 0);
}

TEST(DecodeCqe, HasAllFields)
{
	herald_cqe cqe = {};
	ibv_wc wc;

	memset(&wc, 0xff, sizeof(wc));
	cqe.wr_id = 1;
	cqe.byte_len = 2;
	cqe.imm_or_rkey = 3;
	cqe.qp_num = 4;
	cqe.src_qp = 5;
	cqe.status = IBV_WC_REM_ACCESS_ERR;
	cqe.opcode = IBV_WC_RECV_RDMA_WITH_IMM;
	cqe.wc_flags = IBV_WC_WITH_IMM;
	cqe.sl = 6;
	cqe.pkey_index = 7;
	cqe.slid = 8;
	cqe.vendor_err = 9;
	cqe.dlid_path_bits = 10;
	decode_cqe(cqe, wc);
	EXPECT_EQ(wc.wr_id, 1u);
	EXPECT_EQ(wc.byte_len, 2u);
	EXPECT_EQ(wc.imm_data, 3u);
	EXPECT_EQ(wc.qp_num, 4u);
	EXPECT_EQ(wc.src_qp, 5u);
	EXPECT_EQ(wc.status, IBV_WC_REM_ACCESS_ERR);
	EXPECT_EQ(wc.opcode, IBV_WC_RECV_RDMA_WITH_IMM);
	EXPECT_EQ(wc.wc_flags, unsigned(IBV_WC_WITH_IMM));
	EXPECT_EQ(wc.sl, 6);
	EXPECT_EQ(wc.pkey_index, 7);
	EXPECT_EQ(wc.slid, 8);
	EXPECT_EQ(wc.vendor_err, 9u);
	EXPECT_EQ(wc.dlid_path_bits, 10);
}

} // namespace
