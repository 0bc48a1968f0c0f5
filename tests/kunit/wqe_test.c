// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/* The WQE decoder against everything that a process may write, and the encoder of kernel WRs. */
#include <kunit/test.h>

#include "ah.h"
#include "counters.h"
#include "qp.h"

/* The sources themselves: the module exports nothing. */
#include "../../kernel/opcode.c"
#undef RC
#undef UC
#undef UD
#include "../../kernel/wqe.c"

#define DEPTH		4
#define SGES		3
#define INLINE		40
#define AH_NUMBER	7

/* ------------------------------------------------- what wqe.c calls -- */

static struct herald_ah test_ah;
static struct herald_ah_object test_ah_object = { .ah = &test_ah };
static int ah_refs;
static u64 bad_wqes;

struct herald_ah *herald_ah_get(struct herald_dev *dev, struct ib_pd *pd, u32 number)
{
	if (number != AH_NUMBER)
		return NULL;
	ah_refs++;
	return &test_ah;
}

void herald_ah_ref(struct herald_ah *ah)
{
	ah_refs++;
}

void herald_ah_put(struct herald_ah *ah)
{
	ah_refs--;
}

void herald_count_add(struct herald_dev *dev, enum herald_counter c, u64 n)
{
	if (c == HERALD_CTR_bad_send_wqe)
		bad_wqes += n;
}

/* --------------------------------------------------------- builders -- */

static void make_ring(struct kunit *test, struct herald_ring *ring, u32 stride, bool user)
{
	u8 *mem = kunit_kzalloc(test, HERALD_RING_DATA_OFFSET + DEPTH * stride, GFP_KERNEL);

	KUNIT_ASSERT_NOT_NULL(test, mem);
	*ring = (struct herald_ring){
		.shm = (void *)mem,	/* only looked at for not being NULL */
		.ctl = (void *)mem,
		.slots = mem + HERALD_RING_DATA_OFFSET,
		.depth = DEPTH, .stride = stride, .user = user,
	};
}

static struct herald_qp *make_qp(struct kunit *test, enum ib_qp_type type, bool user)
{
	struct herald_qp *qp = kunit_kzalloc(test, sizeof(*qp), GFP_KERNEL);

	KUNIT_ASSERT_NOT_NULL(test, qp);
	qp->type = type;
	qp->user = user;
	qp->cap.max_send_sge = SGES;
	qp->cap.max_inline_data = INLINE;
	qp->cap.max_recv_sge = SGES;
	make_ring(test, &qp->sq.ring, herald_send_stride(SGES, INLINE), user);
	make_ring(test, &qp->resp.ring, herald_recv_stride(SGES), user);
	ah_refs = 0;
	bad_wqes = 0;
	return qp;
}

/* A process's post: the slot's header and what follows it, then the producer index. */
static struct herald_send_wqe *user_post(struct herald_qp *qp, const struct herald_send_wqe *w,
					 const struct herald_sge *sge, u32 nsge)
{
	struct herald_ring *ring = &qp->sq.ring;
	struct herald_send_wqe *slot = herald_ring_slot(ring, ring->ctl->producer);

	*slot = *w;
	if (nsge)
		memcpy(slot + 1, sge, nsge * sizeof(*sge));
	ring->ctl->producer++;
	return slot;
}

/* ---------------------------------------------------------- vectors -- */

/* The lengths of the SGEs stand in len, the others' are zero. */
struct vector {
	const char *name;
	enum ib_qp_type type;
	struct herald_send_wqe w;
	u32 len[SGES];
	enum herald_outcome outcome;
	u32 length;
};

#define IN	HERALD_WR_INLINE
#define BAD	HERALD_LOC_QP_OP
#define W(op, ...)	.w = { .opcode = HERALD_WR_##op, __VA_ARGS__ }
#define RAW(op, ...)	.w = { .opcode = (op), __VA_ARGS__ }
#define UD_TO(a, q, ...) .ud = { .ah = (a), .remote_qpn = (q), __VA_ARGS__ }

static const struct vector vectors[] = {
	/* number of SGEs */
	{ "send of nothing", IB_QPT_RC, W(SEND) },
	{ "send, one SGE", IB_QPT_RC, W(SEND, .num_sge = 1), { 5 }, .length = 5 },
	{ "send, an empty SGE", IB_QPT_RC, W(SEND, .num_sge = 1) },
	{ "send, all SGEs", IB_QPT_RC, W(SEND, .num_sge = SGES), { 1, 2, 3 }, .length = 6 },
	{ "one SGE too many", IB_QPT_RC, W(SEND, .num_sge = SGES + 1), .outcome = BAD },
	{ "255 SGEs", IB_QPT_RC, W(SEND, .num_sge = 255), .outcome = BAD },
	/* length */
	{ "longest message", IB_QPT_RC, W(RDMA_WRITE, .num_sge = 2), { HERALD_MAX_MSG - 1, 1 },
	  .length = HERALD_MAX_MSG },
	{ "one byte longer", IB_QPT_RC, W(RDMA_WRITE, .num_sge = 2), { HERALD_MAX_MSG, 1 },
	  HERALD_LOC_LEN },
	{ "sum wraps to 1 in 32 bits", IB_QPT_RC, W(SEND, .num_sge = 3),
	  { 0x80000000, 0x7fffffff, 2 }, HERALD_LOC_LEN },
	{ "largest SGEs", IB_QPT_RC, W(SEND, .num_sge = 3),
	  { 0xffffffff, 0xffffffff, 0xffffffff }, HERALD_LOC_LEN },
	/* inline */
	{ "inline, empty", IB_QPT_RC, W(SEND, .flags = IN) },
	{ "inline, all room", IB_QPT_RC, W(SEND, .flags = IN, .inline_len = INLINE),
	  .length = INLINE },
	{ "inline, a byte more", IB_QPT_RC, W(SEND, .flags = IN, .inline_len = INLINE + 1),
	  .outcome = BAD },
	{ "inline, largest number", IB_QPT_RC, W(SEND, .flags = IN, .inline_len = ~0u),
	  .outcome = BAD },
	{ "inline and an SGE", IB_QPT_RC, W(SEND, .flags = IN, .inline_len = 1, .num_sge = 1),
	  .outcome = BAD },
	{ "inline length without the flag", IB_QPT_RC, W(SEND, .inline_len = 1), .outcome = BAD },
	{ "inline read", IB_QPT_RC, W(RDMA_READ, .flags = IN, .inline_len = 8), .outcome = BAD },
	{ "inline atomic", IB_QPT_RC, W(ATOMIC_FETCH_AND_ADD, .flags = IN, .inline_len = 8),
	  .outcome = BAD },
	{ "inline bind", IB_QPT_RC, W(BIND_MW, .flags = IN, .inline_len = 1), .outcome = BAD },
	/* flags */
	{ "all flags there are", IB_QPT_RC, W(SEND, .flags = KNOWN_FLAGS) },
	{ "flag 4", IB_QPT_RC, W(SEND, .flags = 1 << 4), .outcome = BAD },
	{ "flag 15", IB_QPT_RC, W(SEND, .flags = 1 << 15), .outcome = BAD },
	/* reserved fields */
	{ "reserved0", IB_QPT_RC, W(SEND, .reserved0 = 1), .outcome = BAD },
	{ "rdma.reserved", IB_QPT_RC, W(RDMA_WRITE, .rdma.reserved = 1), .outcome = BAD },
	{ "rdma.reserved1[0]", IB_QPT_RC, W(RDMA_READ, .rdma.reserved1 = { 1 }), .outcome = BAD },
	{ "rdma.reserved1[1]", IB_QPT_UC, W(RDMA_WRITE, .rdma.reserved1 = { 0, 1 }),
	  .outcome = BAD },
	{ "atomic.reserved", IB_QPT_RC,
	  W(ATOMIC_CMP_AND_SWP, .num_sge = 1, .atomic.reserved = 1), { 8 }, BAD },
	{ "flush.reserved", IB_QPT_RC, W(FLUSH, .flush.reserved = 1), .outcome = BAD },
	{ "ud.reserved", IB_QPT_UD, W(SEND, UD_TO(AH_NUMBER, 1, .reserved = 1)), .outcome = BAD },
	/* operations with a fixed length */
	{ "atomic", IB_QPT_RC, W(ATOMIC_CMP_AND_SWP, .num_sge = 1), { 8 }, .length = 8 },
	{ "atomic in two SGEs", IB_QPT_RC, W(ATOMIC_FETCH_AND_ADD, .num_sge = 2), { 3, 5 },
	  .length = 8 },
	{ "atomic of 7", IB_QPT_RC, W(ATOMIC_FETCH_AND_ADD, .num_sge = 1), { 7 },
	  HERALD_LOC_LEN },
	{ "atomic of 9", IB_QPT_RC, W(ATOMIC_FETCH_AND_ADD, .num_sge = 1), { 9 },
	  HERALD_LOC_LEN },
	{ "atomic of nothing", IB_QPT_RC, W(ATOMIC_FETCH_AND_ADD), .outcome = HERALD_LOC_LEN },
	{ "atomic write", IB_QPT_RC, W(ATOMIC_WRITE, .num_sge = 1), { 8 }, .length = 8 },
	{ "atomic write inline", IB_QPT_RC, W(ATOMIC_WRITE, .flags = IN, .inline_len = 8),
	  .length = 8 },
	{ "atomic write inline of 7", IB_QPT_RC, W(ATOMIC_WRITE, .flags = IN, .inline_len = 7),
	  .outcome = HERALD_LOC_LEN },
	{ "atomic write inline of 9", IB_QPT_RC, W(ATOMIC_WRITE, .flags = IN, .inline_len = 9),
	  .outcome = BAD },
	{ "flush", IB_QPT_RC, W(FLUSH) },
	{ "flush with an SGE", IB_QPT_RC, W(FLUSH, .num_sge = 1), .outcome = BAD },
	{ "invalidate", IB_QPT_RC, W(LOCAL_INV) },
	{ "invalidate with an SGE", IB_QPT_RC, W(LOCAL_INV, .num_sge = 1), .outcome = BAD },
	{ "bind", IB_QPT_RC, W(BIND_MW) },
	/* operations that there are not, or not here */
	{ "opcode 10", IB_QPT_RC, RAW(10), .outcome = BAD },
	{ "opcode 11", IB_QPT_RC, RAW(11), .outcome = BAD },
	{ "opcode 13", IB_QPT_RC, RAW(13), .outcome = BAD },
	{ "opcode 16", IB_QPT_RC, RAW(16), .outcome = BAD },
	{ "REG_MR from a process", IB_QPT_RC, RAW(32), .outcome = BAD },
	{ "opcode 33", IB_QPT_RC, RAW(33), .outcome = BAD },
	{ "opcode 255", IB_QPT_RC, RAW(255), .outcome = BAD },
	{ "UC read", IB_QPT_UC, W(RDMA_READ), .outcome = BAD },
	{ "UC invalidating send", IB_QPT_UC, W(SEND_WITH_INV), .outcome = BAD },
	{ "UD write", IB_QPT_UD, W(RDMA_WRITE, UD_TO(AH_NUMBER, 1)), .outcome = BAD },
	/* datagrams */
	{ "datagram", IB_QPT_UD, W(SEND, .num_sge = 1, UD_TO(AH_NUMBER, 0xffffff)), { 9 },
	  .length = 9 },
	{ "no such AH", IB_QPT_UD, W(SEND, UD_TO(AH_NUMBER + 1, 1)), .outcome = BAD },
	{ "25-bit QPN", IB_QPT_UD, W(SEND, UD_TO(AH_NUMBER, 0x1000000)), .outcome = BAD },
	{ "a kernel's AH from a process", IB_QPT_UD,
	  W(SEND, UD_TO(AH_NUMBER, 1, .kernel_ah = 0xffff888000000000)), .outcome = BAD },
	{ "a pkey index from a process", IB_QPT_UD,
	  W(SEND, UD_TO(AH_NUMBER, 1, .pkey_index = 1)), .outcome = BAD },
};

static void vector_name(const struct vector *v, char *desc)
{
	strscpy(desc, v->name, KUNIT_PARAM_DESC_SIZE);
}

KUNIT_ARRAY_PARAM(vectors, vectors, vector_name);

static void decodes_as_the_vector_says(struct kunit *test)
{
	const struct vector *v = test->param_value;
	struct herald_qp *qp = make_qp(test, v->type, true);
	struct herald_op *op = &qp->sq.op;
	struct herald_send_wqe w = v->w;
	enum herald_outcome outcome = HERALD_OUTCOMES;
	struct herald_sge sge[SGES] = {};
	bool good = v->outcome == HERALD_OK;
	u32 i;

	w.wr_id = 0x1122334455667788;
	for (i = 0; i < SGES; i++)
		sge[i] = (struct herald_sge){ .addr = 100 + i, .length = v->len[i], .lkey = i };
	user_post(qp, &w, sge, SGES);

	KUNIT_ASSERT_EQ(test, herald_op_fetch(qp, op, &outcome), 1);
	KUNIT_EXPECT_EQ(test, outcome, v->outcome);
	KUNIT_EXPECT_EQ(test, op->wr_id, w.wr_id);
	KUNIT_EXPECT_EQ(test, op->index, 0);
	KUNIT_EXPECT_EQ(test, op->flags, w.flags & KNOWN_FLAGS);
	KUNIT_EXPECT_LT(test, op->opcode, HERALD_WR_OPCODE_MAX);
	KUNIT_EXPECT_EQ(test, op->length, v->length);
	KUNIT_EXPECT_EQ(test, op->num_sge, good ? w.num_sge : 0);
	if (good && !(w.flags & IN))
		KUNIT_EXPECT_MEMEQ(test, op->sge, sge, w.num_sge * sizeof(sge[0]));
	KUNIT_EXPECT_EQ(test, bad_wqes, !good);
	KUNIT_EXPECT_EQ(test, ah_refs, good && v->type == IB_QPT_UD);

	herald_op_put(op);
	herald_op_put(op);
	KUNIT_EXPECT_EQ(test, ah_refs, 0);
	KUNIT_EXPECT_EQ(test, herald_op_fetch(qp, op, &outcome), 0);
}

/* ------------------------------------------------------------- ring -- */

static void takes_nothing_beyond_the_ring(struct kunit *test)
{
	static const u32 starts[] = { 0, 1, 0x7fffffff, 0xfffffffe, 0xffffffff };
	struct herald_qp *qp = make_qp(test, IB_QPT_RC, true);
	struct herald_ring *ring = &qp->sq.ring;
	enum herald_outcome outcome;
	u32 i, k;

	for (i = 0; i < ARRAY_SIZE(starts); i++) {
		ring->head = starts[i];
		ring->ctl->producer = starts[i] - 1;
		KUNIT_EXPECT_EQ(test, herald_op_fetch(qp, &qp->sq.op, &outcome), -EINVAL);
		ring->ctl->producer = starts[i] + DEPTH + 1;
		KUNIT_EXPECT_EQ(test, herald_op_fetch(qp, &qp->sq.op, &outcome), -EINVAL);
		KUNIT_EXPECT_EQ(test, ring->head, starts[i]);

		ring->ctl->producer = starts[i] + DEPTH;
		for (k = 0; k < DEPTH; k++) {
			KUNIT_EXPECT_EQ(test, herald_op_fetch(qp, &qp->sq.op, &outcome), 1);
			KUNIT_EXPECT_EQ(test, qp->sq.op.index, starts[i] + k);
		}
		KUNIT_EXPECT_EQ(test, herald_op_fetch(qp, &qp->sq.op, &outcome), 0);
		KUNIT_EXPECT_EQ(test, ring->ctl->consumer, 0);
	}
}

static void a_later_write_to_the_slot_changes_nothing(struct kunit *test)
{
	const struct herald_send_wqe w = {
		.opcode = HERALD_WR_RDMA_WRITE, .flags = IN, .inline_len = INLINE,
		.rdma = { .remote_addr = 1, .rkey = 2 },
	};
	struct herald_qp *qp = make_qp(test, IB_QPT_RC, true);
	struct herald_op *op = &qp->sq.op;
	struct herald_send_wqe *slot;
	enum herald_outcome outcome;
	u8 data[INLINE];

	memset(data, 0x5a, sizeof(data));
	slot = user_post(qp, &w, NULL, 0);
	memcpy(slot + 1, data, sizeof(data));
	KUNIT_ASSERT_EQ(test, herald_op_fetch(qp, op, &outcome), 1);
	memset(slot, 0xff, qp->sq.ring.stride);

	KUNIT_EXPECT_EQ(test, outcome, HERALD_OK);
	KUNIT_EXPECT_EQ(test, op->opcode, HERALD_WR_RDMA_WRITE);
	KUNIT_EXPECT_EQ(test, op->length, INLINE);
	KUNIT_EXPECT_MEMEQ(test, &op->u, &w, sizeof(w));
	KUNIT_EXPECT_MEMEQ(test, op->inl, data, sizeof(data));
}

/* Without SGEs and inline data a slot is its header: even eight bytes have no room. */
static void atomic_write_needs_room_in_the_slot(struct kunit *test)
{
	const struct herald_send_wqe w = {
		.opcode = HERALD_WR_ATOMIC_WRITE, .flags = IN, .inline_len = 8,
	};
	struct herald_qp *qp = make_qp(test, IB_QPT_RC, true);
	enum herald_outcome outcome;

	make_ring(test, &qp->sq.ring, herald_send_stride(0, 0), true);
	qp->cap.max_send_sge = 0;
	qp->cap.max_inline_data = 0;
	user_post(qp, &w, NULL, 0);
	KUNIT_ASSERT_EQ(test, herald_op_fetch(qp, &qp->sq.op, &outcome), 1);
	KUNIT_EXPECT_EQ(test, outcome, HERALD_LOC_QP_OP);
}

/* ---------------------------------------------------------- receive -- */

static void post_recv_wqe(struct herald_ring *ring, u32 num_sge, u32 reserved)
{
	struct herald_recv_wqe *slot = herald_ring_slot(ring, ring->ctl->producer);
	struct herald_sge *sge = (void *)(slot + 1);
	u32 i;

	*slot = (struct herald_recv_wqe){ .wr_id = 77, .num_sge = num_sge, .reserved = reserved };
	for (i = 0; i < SGES; i++)
		sge[i] = (struct herald_sge){ .addr = i, .length = 0xffffffff, .lkey = i };
	ring->ctl->producer++;
}

static void receive_wqes_are_judged_as_well(struct kunit *test)
{
	static const struct {
		u32 num_sge, reserved;
		int ret;
	} recvs[] = {
		{ 0, 0, 1 }, { 1, 0, 1 }, { SGES, 0, 1 }, { SGES + 1, 0, -EBADMSG },
		{ ~0u, 0, -EBADMSG }, { 1u << 28, 0, -EBADMSG }, { 1, 1, -EBADMSG },
	};
	struct herald_qp *qp = make_qp(test, IB_QPT_RC, true);
	struct herald_ring *ring = &qp->resp.ring;
	struct herald_recv *recv = &qp->resp.recv;
	u32 i;

	for (i = 0; i < ARRAY_SIZE(recvs); i++) {
		u32 taken = recvs[i].ret == 1 ? recvs[i].num_sge : 0;

		post_recv_wqe(ring, recvs[i].num_sge, recvs[i].reserved);
		KUNIT_EXPECT_EQ(test, herald_recv_copy(ring, SGES, recv), recvs[i].ret);
		KUNIT_EXPECT_EQ(test, recv->wr_id, 77);
		KUNIT_EXPECT_EQ(test, recv->index, i);
		KUNIT_EXPECT_EQ(test, recv->num_sge, taken);
		KUNIT_EXPECT_EQ(test, recv->length, taken * 0xffffffffull);
		KUNIT_EXPECT_EQ(test, ring->ctl->consumer, i + 1);
		KUNIT_EXPECT_EQ(test, herald_recv_copy(ring, SGES, recv), 0);
	}
	ring->ctl->producer = ring->head + DEPTH + 1;
	KUNIT_EXPECT_EQ(test, herald_recv_copy(ring, SGES, recv), -EINVAL);
	KUNIT_EXPECT_EQ(test, ring->ctl->consumer, i);
}

static void no_receive_ring_is_an_empty_one(struct kunit *test)
{
	struct ib_recv_wr wr = { .wr_id = 1 };
	struct herald_ring none = {};
	struct herald_recv recv;

	KUNIT_EXPECT_EQ(test, herald_recv_copy(&none, SGES, &recv), 0);
	KUNIT_EXPECT_EQ(test, herald_wqe_post_recv(&none, SGES, &wr), -EINVAL);
}

/* --------------------------------------------------- kernel's posts -- */

static void kernel_write_round_trip(struct kunit *test)
{
	struct ib_sge sge[2] = { { .addr = 1, .length = 2, .lkey = 3 }, { 4, 5, 6 } };
	struct ib_rdma_wr wr = {
		.wr = { .wr_id = 9, .sg_list = sge, .num_sge = 2, .send_flags = IB_SEND_SIGNALED,
			.opcode = IB_WR_RDMA_WRITE_WITH_IMM, .ex.imm_data = cpu_to_be32(42) },
		.remote_addr = 7, .rkey = 8,
	};
	struct herald_qp *qp = make_qp(test, IB_QPT_RC, false);
	struct herald_op *op = &qp->sq.op;
	enum herald_outcome outcome;

	KUNIT_ASSERT_EQ(test, herald_wqe_post_send(qp, &wr.wr), 0);
	KUNIT_ASSERT_EQ(test, herald_op_fetch(qp, op, &outcome), 1);
	KUNIT_EXPECT_EQ(test, outcome, HERALD_OK);
	KUNIT_EXPECT_EQ(test, op->wr_id, 9);
	KUNIT_EXPECT_EQ(test, op->opcode, HERALD_WR_RDMA_WRITE_WITH_IMM);
	KUNIT_EXPECT_EQ(test, op->flags, HERALD_WR_SIGNALED);
	KUNIT_EXPECT_EQ(test, op->imm_or_rkey, (__force u32)cpu_to_be32(42));
	KUNIT_EXPECT_EQ(test, op->length, 7);
	KUNIT_EXPECT_EQ(test, op->u.rdma.remote_addr, 7);
	KUNIT_EXPECT_EQ(test, op->u.rdma.rkey, 8);
	KUNIT_EXPECT_MEMEQ(test, op->sge, sge, sizeof(sge));
}

static void kernel_inline_is_copied_at_post(struct kunit *test)
{
	char a[] = "abc", b[] = "defg";
	struct ib_sge sge[2] = { { .addr = (uintptr_t)a, .length = 3 },
				 { .addr = (uintptr_t)b, .length = 4 } };
	struct ib_send_wr wr = {
		.sg_list = sge, .num_sge = 2, .opcode = IB_WR_SEND, .send_flags = IB_SEND_INLINE,
	};
	struct herald_qp *qp = make_qp(test, IB_QPT_RC, false);
	enum herald_outcome outcome;

	KUNIT_ASSERT_EQ(test, herald_wqe_post_send(qp, &wr), 0);
	memset(a, 0, sizeof(a));
	KUNIT_ASSERT_EQ(test, herald_op_fetch(qp, &qp->sq.op, &outcome), 1);
	KUNIT_EXPECT_EQ(test, outcome, HERALD_OK);
	KUNIT_EXPECT_EQ(test, qp->sq.op.length, 7);
	KUNIT_EXPECT_MEMEQ(test, qp->sq.op.inl, "abcdefg", 7);
}

/* A reference for each WR that waits; the op takes it over; what is dropped gives it back. */
static void kernel_datagrams_hold_their_ah(struct kunit *test)
{
	struct ib_ud_wr wr = { .wr.opcode = IB_WR_SEND, .ah = &test_ah_object.ib, .remote_qpn = 5 };
	struct herald_qp *qp = make_qp(test, IB_QPT_UD, false);
	enum herald_outcome outcome;
	int i;

	for (i = 0; i < DEPTH; i++)
		KUNIT_EXPECT_EQ(test, herald_wqe_post_send(qp, &wr.wr), 0);
	KUNIT_EXPECT_EQ(test, herald_wqe_post_send(qp, &wr.wr), -ENOMEM);
	KUNIT_EXPECT_EQ(test, ah_refs, DEPTH);

	KUNIT_ASSERT_EQ(test, herald_op_fetch(qp, &qp->sq.op, &outcome), 1);
	KUNIT_EXPECT_EQ(test, outcome, HERALD_OK);
	KUNIT_EXPECT_PTR_EQ(test, qp->sq.op.ah, &test_ah);
	KUNIT_EXPECT_EQ(test, ah_refs, DEPTH);
	herald_op_put(&qp->sq.op);
	herald_wqe_drop_sends(qp);
	KUNIT_EXPECT_EQ(test, ah_refs, 0);
}

static void bad_kernel_wrs_leave_no_trace(struct kunit *test)
{
	struct ib_sge sge[SGES + 1] = { { .length = INLINE }, { .length = 1 } };
	const struct ib_send_wr bad[] = {
		{ .opcode = IB_WR_SEND, .sg_list = sge, .num_sge = -1 },
		{ .opcode = IB_WR_SEND, .sg_list = sge, .num_sge = SGES + 1 },
		{ .opcode = IB_WR_SEND, .sg_list = sge, .num_sge = 2,
		  .send_flags = IB_SEND_INLINE },
		{ .opcode = IB_WR_RDMA_READ, .sg_list = sge, .num_sge = 1,
		  .send_flags = IB_SEND_INLINE },
		{ .opcode = IB_WR_LOCAL_INV, .sg_list = sge, .num_sge = 1 },
		{ .opcode = IB_WR_LOCAL_INV, .send_flags = IB_SEND_INLINE },
		{ .opcode = IB_WR_SEND, .send_flags = IB_SEND_IP_CSUM },
		{ .opcode = IB_WR_SEND, .send_flags = (int)IB_SEND_RESERVED_END },
		{ .opcode = IB_WR_RDMA_READ_WITH_INV },
		{ .opcode = IB_WR_LSO },
		{ .opcode = IB_WR_FLUSH },
		{ .opcode = IB_WR_BIND_MW },
		{ .opcode = IB_WR_REG_MR_INTEGRITY },
		{ .opcode = IB_WR_RESERVED1 },
	};
	struct herald_qp *qp = make_qp(test, IB_QPT_RC, false);
	struct herald_ring *ring = &qp->sq.ring;
	u32 i;

	for (i = 0; i < ARRAY_SIZE(bad); i++)
		KUNIT_EXPECT_EQ_MSG(test, herald_wqe_post_send(qp, &bad[i]), -EINVAL, "WR %u", i);
	KUNIT_EXPECT_EQ(test, ring->tail, 0);
	KUNIT_EXPECT_EQ(test, ring->ctl->producer, 0);
	KUNIT_EXPECT_NULL(test, memchr_inv(ring->slots, 0, DEPTH * ring->stride));
}

static void kernel_receives_fill_the_ring(struct kunit *test)
{
	struct ib_sge sge[SGES] = { { .addr = 1, .length = 2, .lkey = 3 }, {}, { .length = 5 } };
	struct ib_recv_wr wr = { .wr_id = 4, .sg_list = sge, .num_sge = SGES };
	struct herald_qp *qp = make_qp(test, IB_QPT_RC, false);
	struct herald_ring *ring = &qp->resp.ring;
	struct herald_recv *recv = &qp->resp.recv;
	int i;

	for (i = 0; i < DEPTH; i++)
		KUNIT_EXPECT_EQ(test, herald_wqe_post_recv(ring, SGES, &wr), 0);
	KUNIT_EXPECT_EQ(test, herald_wqe_post_recv(ring, SGES, &wr), -ENOMEM);
	wr.num_sge = SGES + 1;
	KUNIT_EXPECT_EQ(test, herald_wqe_post_recv(ring, SGES, &wr), -EINVAL);
	wr.num_sge = -1;
	KUNIT_EXPECT_EQ(test, herald_wqe_post_recv(ring, SGES, &wr), -EINVAL);

	KUNIT_ASSERT_EQ(test, herald_recv_copy(ring, SGES, recv), 1);
	KUNIT_EXPECT_EQ(test, recv->wr_id, 4);
	KUNIT_EXPECT_EQ(test, recv->length, 7);
	KUNIT_EXPECT_MEMEQ(test, recv->sge, sge, sizeof(sge));
	wr.num_sge = 0;
	KUNIT_EXPECT_EQ(test, herald_wqe_post_recv(ring, SGES, &wr), 0);
}

static struct kunit_case wqe_cases[] = {
	KUNIT_CASE_PARAM(decodes_as_the_vector_says, vectors_gen_params),
	KUNIT_CASE(takes_nothing_beyond_the_ring),
	KUNIT_CASE(a_later_write_to_the_slot_changes_nothing),
	KUNIT_CASE(atomic_write_needs_room_in_the_slot),
	KUNIT_CASE(receive_wqes_are_judged_as_well),
	KUNIT_CASE(no_receive_ring_is_an_empty_one),
	KUNIT_CASE(kernel_write_round_trip),
	KUNIT_CASE(kernel_inline_is_copied_at_post),
	KUNIT_CASE(kernel_datagrams_hold_their_ah),
	KUNIT_CASE(bad_kernel_wrs_leave_no_trace),
	KUNIT_CASE(kernel_receives_fill_the_ring),
	{}
};

static struct kunit_suite wqe_suite = {
	.name = "herald-wqe",
	.test_cases = wqe_cases,
};

kunit_test_suite(wqe_suite);

MODULE_DESCRIPTION("KUnit tests of herald's work queue entries");
MODULE_LICENSE("Dual BSD/GPL");
