// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
// The operations of a send queue.
#include <gtest/gtest.h>

#include <climits>

#include "pure.h"

namespace {

TEST(Opcode, CompletionOpcodes)
{
	struct {
		unsigned int wr, wc;
	} const cases[] = {
		{HERALD_WR_SEND, IB_WC_SEND},
		{HERALD_WR_SEND_WITH_IMM, IB_WC_SEND},
		{HERALD_WR_SEND_WITH_INV, IB_WC_SEND},
		{HERALD_WR_RDMA_WRITE, IB_WC_RDMA_WRITE},
		{HERALD_WR_RDMA_WRITE_WITH_IMM, IB_WC_RDMA_WRITE},
		{HERALD_WR_RDMA_READ, IB_WC_RDMA_READ},
		{HERALD_WR_ATOMIC_CMP_AND_SWP, IB_WC_COMP_SWAP},
		{HERALD_WR_ATOMIC_FETCH_AND_ADD, IB_WC_FETCH_ADD},
		{HERALD_WR_ATOMIC_WRITE, IB_WC_ATOMIC_WRITE},
		{HERALD_WR_FLUSH, IB_WC_FLUSH},
		{HERALD_WR_BIND_MW, IB_WC_BIND_MW},
		{HERALD_WR_LOCAL_INV, IB_WC_LOCAL_INV},
		{HERALD_WR_REG_MR, IB_WC_REG_MR},
	};

	for (auto &c : cases) {
		EXPECT_NE(herald_opcode(c.wr)->kind, HERALD_KIND_NONE) << c.wr;
		EXPECT_EQ(herald_opcode(c.wr)->wc_opcode, c.wc) << c.wr;
	}
}

// Every number that a hostile process can write into a WQE, and more.
TEST(Opcode, AnyNumberHasARow)
{
	for (unsigned int op = 0; op < 1024; op++)
		ASSERT_NE(herald_opcode(op)->name, nullptr);
	EXPECT_EQ(herald_opcode(UINT_MAX)->kind, HERALD_KIND_NONE);
	EXPECT_EQ(herald_opcode(HERALD_WR_OPCODE_MAX)->kind, HERALD_KIND_NONE);
	for (unsigned int op = 0; op < 1024; op++) {
		if (herald_opcode(op)->kind == HERALD_KIND_NONE) {
			EXPECT_FALSE(herald_opcode_allowed(IB_QPT_RC, op, false)) << op;
		}
	}
}

TEST(Opcode, KernelOnly)
{
	EXPECT_TRUE(herald_opcode_allowed(IB_QPT_RC, HERALD_WR_REG_MR, false));
	EXPECT_FALSE(herald_opcode_allowed(IB_QPT_RC, HERALD_WR_REG_MR, true));
}

TEST(Opcode, QpTypes)
{
	for (int op : {HERALD_WR_SEND, HERALD_WR_SEND_WITH_IMM})
		for (int type : {IB_QPT_RC, IB_QPT_UC, IB_QPT_UD, IB_QPT_GSI})
			EXPECT_TRUE(herald_opcode_allowed(type, op, true)) << op << " " << type;
	for (int op : {HERALD_WR_RDMA_READ, HERALD_WR_ATOMIC_CMP_AND_SWP, HERALD_WR_ATOMIC_FETCH_AND_ADD}) {
		EXPECT_TRUE(herald_opcode_allowed(IB_QPT_RC, op, true)) << op;
		EXPECT_FALSE(herald_opcode_allowed(IB_QPT_UC, op, true)) << op;
		EXPECT_FALSE(herald_opcode_allowed(IB_QPT_UD, op, true)) << op;
	}
	EXPECT_TRUE(herald_opcode_allowed(IB_QPT_UC, HERALD_WR_RDMA_WRITE, true));
	EXPECT_FALSE(herald_opcode_allowed(IB_QPT_UD, HERALD_WR_RDMA_WRITE, true));
}

} // namespace
