// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/* PURE: the transport headers of one packet, and the checksum that covers them. */
#include <linux/crc32.h>
#include <linux/string.h>
#include <linux/types.h>
#include <rdma/herald-abi.h>

#include "opcode.h"
#include "pkt.h"

/* ------------------------------------------------------------------- opcodes -- */

enum ext_len {
	DETH_LEN	= 8,
	FETH_LEN	= 4,
	RETH_LEN	= 16,
	ATOMIC_LEN	= 28,
	AETH_LEN	= 4,
	ATOMIC_ACK_LEN	= 8,
	IMM_LEN		= 4,
	IETH_LEN	= 4,
	CNP_LEN		= 16,
};

#define DETH		HERALD_EXT_DETH
#define FETH		HERALD_EXT_FETH
#define RETH		HERALD_EXT_RETH
#define ATOMIC_ETH	HERALD_EXT_ATOMIC
#define AETH		HERALD_EXT_AETH
#define ATOMIC_ACK	HERALD_EXT_ATOMIC_ACK
#define IMM		HERALD_EXT_IMM
#define IETH		HERALD_EXT_IETH
#define CNP_RESERVED	HERALD_EXT_CNP

#define LEN_OF(ext, bit, len)	((ext) & (bit) ? (len) : 0)
#define HDR_LEN(ext)									\
	(HERALD_BTH_LEN + LEN_OF(ext, DETH, DETH_LEN) + LEN_OF(ext, FETH, FETH_LEN) +	\
	 LEN_OF(ext, RETH, RETH_LEN) + LEN_OF(ext, ATOMIC_ETH, ATOMIC_LEN) +		\
	 LEN_OF(ext, AETH, AETH_LEN) + LEN_OF(ext, ATOMIC_ACK, ATOMIC_ACK_LEN) +	\
	 LEN_OF(ext, IMM, IMM_LEN) + LEN_OF(ext, IETH, IETH_LEN) +			\
	 LEN_OF(ext, CNP_RESERVED, CNP_LEN))

/* operation; kind of request; its WR; where in the message; extended headers; more flags */
#define ROW(class, op, of, wr, pos, ext_, more)				\
	[HERALD_BTH_##class##_##op] = {					\
		.name = #class "_" #op,					\
		.kind = HERALD_KIND_##of,				\
		.qp_type_class = HERALD_CLASS_##class,			\
		.wr_opcode = HERALD_WR_##wr,				\
		.hdr_len = HDR_LEN(ext_),				\
		.ext = ext_,						\
		.flags = HERALD_PKT_##pos | (more),			\
	}

#define ASKS		HERALD_PKT_REQUEST
#define BRINGS		(HERALD_PKT_REQUEST | HERALD_PKT_HAS_PAYLOAD)
#define ANSWERS		HERALD_PKT_RESPONSE
#define RETURNS		(HERALD_PKT_RESPONSE | HERALD_PKT_HAS_PAYLOAD)

#define SENDS_AND_WRITES(class)								\
	ROW(class, SEND_FIRST, SEND, SEND, FIRST, 0, BRINGS),				\
	ROW(class, SEND_MIDDLE, SEND, SEND, MIDDLE, 0, BRINGS),				\
	ROW(class, SEND_LAST, SEND, SEND, LAST, 0, BRINGS),				\
	ROW(class, SEND_LAST_WITH_IMM, SEND, SEND_WITH_IMM, LAST, IMM, BRINGS),		\
	ROW(class, SEND_ONLY, SEND, SEND, ONLY, 0, BRINGS),				\
	ROW(class, SEND_ONLY_WITH_IMM, SEND, SEND_WITH_IMM, ONLY, IMM, BRINGS),		\
	ROW(class, RDMA_WRITE_FIRST, WRITE, RDMA_WRITE, FIRST, RETH, BRINGS),		\
	ROW(class, RDMA_WRITE_MIDDLE, WRITE, RDMA_WRITE, MIDDLE, 0, BRINGS),		\
	ROW(class, RDMA_WRITE_LAST, WRITE, RDMA_WRITE, LAST, 0, BRINGS),		\
	ROW(class, RDMA_WRITE_LAST_WITH_IMM, WRITE, RDMA_WRITE_WITH_IMM, LAST, IMM, BRINGS), \
	ROW(class, RDMA_WRITE_ONLY, WRITE, RDMA_WRITE, ONLY, RETH, BRINGS),		\
	ROW(class, RDMA_WRITE_ONLY_WITH_IMM, WRITE, RDMA_WRITE_WITH_IMM, ONLY, RETH | IMM, BRINGS)

#define READ_RESPONSE(op, pos, ext)							\
	ROW(RC, RDMA_READ_RESPONSE_##op, READ, RDMA_READ, pos, ext, RETURNS)

static const struct herald_pkt_row rows[HERALD_BTH_CNP + 1] = {
	SENDS_AND_WRITES(RC),
	ROW(RC, RDMA_READ_REQUEST, READ, RDMA_READ, ONLY, RETH, ASKS),
	READ_RESPONSE(FIRST, FIRST, AETH),
	READ_RESPONSE(MIDDLE, MIDDLE, 0),
	READ_RESPONSE(LAST, LAST, AETH),
	READ_RESPONSE(ONLY, ONLY, AETH),
	ROW(RC, ACKNOWLEDGE, NONE, OPCODE_MAX, ONLY, AETH, ANSWERS | HERALD_PKT_ACK),
	ROW(RC, ATOMIC_ACKNOWLEDGE, ATOMIC, OPCODE_MAX, ONLY, AETH | ATOMIC_ACK, ANSWERS),
	ROW(RC, COMPARE_SWAP, ATOMIC, ATOMIC_CMP_AND_SWP, ONLY, ATOMIC_ETH, ASKS),
	ROW(RC, FETCH_ADD, ATOMIC, ATOMIC_FETCH_AND_ADD, ONLY, ATOMIC_ETH, ASKS),
	ROW(RC, SEND_LAST_WITH_INV, SEND, SEND_WITH_INV, LAST, IETH, BRINGS),
	ROW(RC, SEND_ONLY_WITH_INV, SEND, SEND_WITH_INV, ONLY, IETH, BRINGS),
	ROW(RC, FLUSH, FLUSH, FLUSH, ONLY, FETH | RETH, ASKS),
	ROW(RC, ATOMIC_WRITE, ATOMIC_WRITE, ATOMIC_WRITE, ONLY, RETH, BRINGS),

	SENDS_AND_WRITES(UC),

	ROW(UD, SEND_ONLY, SEND, SEND, ONLY, DETH, BRINGS),
	ROW(UD, SEND_ONLY_WITH_IMM, SEND, SEND_WITH_IMM, ONLY, DETH | IMM, BRINGS),

	[HERALD_BTH_CNP] = {
		.name = "CNP",
		.qp_type_class = HERALD_CLASS_CNP,
		.wr_opcode = HERALD_WR_OPCODE_MAX,
		.hdr_len = HDR_LEN(CNP_RESERVED),
		.ext = CNP_RESERVED,
		.flags = HERALD_PKT_ONLY | HERALD_PKT_CNP,
	},
};

static const struct herald_pkt_row unknown_row = {
	.name = "unknown",
	.wr_opcode = HERALD_WR_OPCODE_MAX,
	.hdr_len = HERALD_BTH_LEN,
};

const struct herald_pkt_row *herald_pkt_row(u8 opcode)
{
	if (opcode > HERALD_BTH_CNP || !rows[opcode].name)
		return &unknown_row;
	return &rows[opcode];
}

/*
 * By HERALD_WR_*, then by place: middle, first, last, only.  Where an operation has no such packet
 * it is 0, which is another operation's: the rows tell.
 */
#define OP(op)	HERALD_BTH_RC_##op
#define SPLIT(first, middle, last, only)	{ OP(middle), OP(first), OP(last), OP(only) }
#define WHOLE(only)				{ 0, 0, 0, OP(only) }

static const u8 request_ops[HERALD_WR_OPCODE_MAX][4] = {
	[HERALD_WR_SEND] = SPLIT(SEND_FIRST, SEND_MIDDLE, SEND_LAST, SEND_ONLY),
	[HERALD_WR_SEND_WITH_IMM] =
		SPLIT(SEND_FIRST, SEND_MIDDLE, SEND_LAST_WITH_IMM, SEND_ONLY_WITH_IMM),
	[HERALD_WR_SEND_WITH_INV] =
		SPLIT(SEND_FIRST, SEND_MIDDLE, SEND_LAST_WITH_INV, SEND_ONLY_WITH_INV),
	[HERALD_WR_RDMA_WRITE] =
		SPLIT(RDMA_WRITE_FIRST, RDMA_WRITE_MIDDLE, RDMA_WRITE_LAST, RDMA_WRITE_ONLY),
	[HERALD_WR_RDMA_WRITE_WITH_IMM] =
		SPLIT(RDMA_WRITE_FIRST, RDMA_WRITE_MIDDLE, RDMA_WRITE_LAST_WITH_IMM,
		      RDMA_WRITE_ONLY_WITH_IMM),
	[HERALD_WR_RDMA_READ] = WHOLE(RDMA_READ_REQUEST),
	[HERALD_WR_ATOMIC_CMP_AND_SWP] = WHOLE(COMPARE_SWAP),
	[HERALD_WR_ATOMIC_FETCH_AND_ADD] = WHOLE(FETCH_ADD),
	[HERALD_WR_FLUSH] = WHOLE(FLUSH),
	[HERALD_WR_ATOMIC_WRITE] = WHOLE(ATOMIC_WRITE),
};

int herald_pkt_request_opcode(u8 qp_class, u8 wr_opcode, bool first, bool last)
{
	const struct herald_pkt_row *row;
	u8 opcode;

	if (wr_opcode >= HERALD_WR_OPCODE_MAX)
		return -1;
	opcode = qp_class | request_ops[wr_opcode][first | last << 1];
	row = herald_pkt_row(opcode);
	if (!(row->flags & HERALD_PKT_REQUEST) || row->kind != herald_opcode(wr_opcode)->kind)
		return -1;
	return opcode;
}

/* ----------------------------- fields: any alignment, the highest byte first -- */

static inline u16 get16(const u8 *p)
{
	return p[0] << 8 | p[1];
}

static inline u32 get24(const u8 *p)
{
	return p[0] << 16 | p[1] << 8 | p[2];
}

static inline u32 get32(const u8 *p)
{
	return (u32)p[0] << 24 | p[1] << 16 | p[2] << 8 | p[3];
}

static inline u64 get64(const u8 *p)
{
	return (u64)get32(p) << 32 | get32(p + 4);
}

static inline void put16(u8 *p, u16 value)
{
	p[0] = value >> 8;
	p[1] = value & 0xff;
}

static inline void put24(u8 *p, u32 value)
{
	p[0] = value >> 16 & 0xff;
	p[1] = value >> 8 & 0xff;
	p[2] = value & 0xff;
}

static inline void put32(u8 *p, u32 value)
{
	p[0] = value >> 24;
	put24(p + 1, value);
}

static inline void put64(u8 *p, u64 value)
{
	put32(p, value >> 32);
	put32(p + 4, value);
}

/* ------------------------------------------------------------------- headers -- */

/* BTH: byte 1 is SE, M, PadCnt, TVer; byte 4 FECN, BECN, reserved; byte 8 A, reserved. */
enum bth_bits {
	BTH_SE		= 0x80,
	BTH_M		= 0x40,
	BTH_PAD_SHIFT	= 4,
	BTH_TVER	= 0x0f,
	BTH_FECN	= 0x80,
	BTH_BECN	= 0x40,
	BTH_ACK_REQ	= 0x80,
};

static void get_bth(struct herald_pkt *pkt, const u8 *p)
{
	pkt->opcode = p[0];
	pkt->solicited = p[1] & BTH_SE;
	pkt->migreq = p[1] & BTH_M;
	pkt->pad = p[1] >> BTH_PAD_SHIFT & 3;
	pkt->pkey = get16(p + 2);
	pkt->fecn = p[4] & BTH_FECN;
	pkt->becn = p[4] & BTH_BECN;
	pkt->dest_qpn = get24(p + 5);
	pkt->ack_req = p[8] & BTH_ACK_REQ;
	pkt->psn = get24(p + 9);
}

static void put_bth(const struct herald_pkt *pkt, u8 *p)
{
	p[0] = pkt->opcode;
	p[1] = (pkt->solicited ? BTH_SE : 0) | (pkt->migreq ? BTH_M : 0) |
	       (pkt->pad & 3) << BTH_PAD_SHIFT;
	put16(p + 2, pkt->pkey);
	p[4] = (pkt->fecn ? BTH_FECN : 0) | (pkt->becn ? BTH_BECN : 0);
	put24(p + 5, pkt->dest_qpn);
	p[8] = pkt->ack_req ? BTH_ACK_REQ : 0;
	put24(p + 9, pkt->psn);
}

static void get_deth(struct herald_pkt *pkt, const u8 *p)
{
	pkt->qkey = get32(p);
	pkt->src_qpn = get24(p + 5);
}

static void put_deth(const struct herald_pkt *pkt, u8 *p)
{
	put32(p, pkt->qkey);
	p[4] = 0;
	put24(p + 5, pkt->src_qpn);
}

/* FETH: reserved, SEL (2 bits), PLT (4 bits) */
static void get_feth(struct herald_pkt *pkt, const u8 *p)
{
	pkt->flush_placement = p[3] & 0xf;
	pkt->flush_selectivity = p[3] >> 4 & 3;
}

static void put_feth(const struct herald_pkt *pkt, u8 *p)
{
	put32(p, (pkt->flush_selectivity & 3) << 4 | (pkt->flush_placement & 0xf));
}

static void get_reth(struct herald_pkt *pkt, const u8 *p)
{
	pkt->va = get64(p);
	pkt->rkey = get32(p + 8);
	pkt->dmalen = get32(p + 12);
}

static void put_reth(const struct herald_pkt *pkt, u8 *p)
{
	put64(p, pkt->va);
	put32(p + 8, pkt->rkey);
	put32(p + 12, pkt->dmalen);
}

static void get_atomic(struct herald_pkt *pkt, const u8 *p)
{
	pkt->va = get64(p);
	pkt->rkey = get32(p + 8);
	pkt->swap_add = get64(p + 12);
	pkt->compare = get64(p + 20);
}

static void put_atomic(const struct herald_pkt *pkt, u8 *p)
{
	put64(p, pkt->va);
	put32(p + 8, pkt->rkey);
	put64(p + 12, pkt->swap_add);
	put64(p + 20, pkt->compare);
}

static void get_aeth(struct herald_pkt *pkt, const u8 *p)
{
	pkt->syndrome = p[0];
	pkt->msn = get24(p + 1);
}

static void put_aeth(const struct herald_pkt *pkt, u8 *p)
{
	p[0] = pkt->syndrome;
	put24(p + 1, pkt->msn);
}

static void get_ext(struct herald_pkt *pkt, u16 ext, const u8 *p)
{
	if (ext & DETH) {
		get_deth(pkt, p);
		p += DETH_LEN;
	}
	if (ext & FETH) {
		get_feth(pkt, p);
		p += FETH_LEN;
	}
	if (ext & RETH) {
		get_reth(pkt, p);
		p += RETH_LEN;
	}
	if (ext & ATOMIC_ETH) {
		get_atomic(pkt, p);
		p += ATOMIC_LEN;
	}
	if (ext & AETH) {
		get_aeth(pkt, p);
		p += AETH_LEN;
	}
	if (ext & ATOMIC_ACK) {
		pkt->atomic_orig = get64(p);
		p += ATOMIC_ACK_LEN;
	}
	if (ext & IMM)
		memcpy(&pkt->imm, p, IMM_LEN);
	if (ext & IETH)
		pkt->ieth = get32(p);
}

static void put_ext(const struct herald_pkt *pkt, u16 ext, u8 *p)
{
	if (ext & DETH) {
		put_deth(pkt, p);
		p += DETH_LEN;
	}
	if (ext & FETH) {
		put_feth(pkt, p);
		p += FETH_LEN;
	}
	if (ext & RETH) {
		put_reth(pkt, p);
		p += RETH_LEN;
	}
	if (ext & ATOMIC_ETH) {
		put_atomic(pkt, p);
		p += ATOMIC_LEN;
	}
	if (ext & AETH) {
		put_aeth(pkt, p);
		p += AETH_LEN;
	}
	if (ext & ATOMIC_ACK) {
		put64(p, pkt->atomic_orig);
		p += ATOMIC_ACK_LEN;
	}
	if (ext & IMM)
		memcpy(p, &pkt->imm, IMM_LEN);
	if (ext & IETH)
		put32(p, pkt->ieth);
	if (ext & CNP_RESERVED)
		memset(p, 0, CNP_LEN);
}

/* What follows the headers, of which @room bytes are before the iCRC. */
static int get_payload(struct herald_pkt *pkt, u16 flags, u32 room)
{
	if (room && !(flags & HERALD_PKT_HAS_PAYLOAD))
		return -HERALD_PKT_BAD_PAYLOAD;
	if (pkt->pad > room)
		return -HERALD_PKT_BAD_PAD;
	pkt->payload_len = room - pkt->pad;
	return 0;
}

int herald_pkt_parse(struct herald_pkt *pkt, const u8 *buf, u32 len)
{
	const struct herald_pkt_row *row;

	*pkt = (struct herald_pkt){ };
	if (len < HERALD_BTH_LEN + HERALD_ICRC_LEN || len % 4)
		return -HERALD_PKT_BAD_LENGTH;
	if (buf[1] & BTH_TVER)
		return -HERALD_PKT_BAD_VERSION;
	get_bth(pkt, buf);
	row = herald_pkt_row(pkt->opcode);
	if (!(row->flags & HERALD_PKT_KNOWN))
		return -HERALD_PKT_BAD_OPCODE;
	if (len - HERALD_ICRC_LEN < row->hdr_len)
		return -HERALD_PKT_TRUNCATED;
	get_ext(pkt, row->ext, buf + HERALD_BTH_LEN);
	pkt->hdr_len = row->hdr_len;
	return get_payload(pkt, row->flags, len - row->hdr_len - HERALD_ICRC_LEN);
}

u32 herald_pkt_emit(const struct herald_pkt *pkt, u8 *buf)
{
	const struct herald_pkt_row *row = herald_pkt_row(pkt->opcode);

	put_bth(pkt, buf);
	put_ext(pkt, row->ext, buf + HERALD_BTH_LEN);
	return row->hdr_len;
}

/* ---------------------------------------------------------------------- iCRC -- */

enum ip_len {
	IP4_LEN	= 20,
	IP6_LEN	= 40,
	UDP_LEN	= 8,
};

/* The CRC of eight bytes of ones, which stand for the LRH that RoCE has not (A17). */
#define ICRC_SEED	0xdebb20e3

/* Nothing of a UDP header changes on its way but the checksum. */
static void mask_udp(u8 *to, const u8 *udp, u32 udp_len)
{
	memcpy(to, udp, 4);
	put16(to + 4, udp_len);
	put16(to + 6, 0xffff);
}

/* The headers up to the BTH, @head_len bytes of them masked at @head already, then all the rest. */
static u32 icrc(u8 *head, u32 head_len, const u8 *bth, u32 len)
{
	u32 crc;

	memcpy(head + head_len, bth, HERALD_BTH_LEN);
	head[head_len + 4] = 0xff;
	crc = herald_crc32_le(ICRC_SEED, head, head_len + HERALD_BTH_LEN);
	return ~herald_crc32_le(crc, bth + HERALD_BTH_LEN, len - HERALD_BTH_LEN);
}

u32 herald_icrc_v4(const u8 *ip, const u8 *udp, u16 id, const u8 *bth, u32 len)
{
	u32 udp_len = UDP_LEN + len + HERALD_ICRC_LEN;
	u8 head[IP4_LEN + UDP_LEN + HERALD_BTH_LEN];

	memcpy(head, ip, IP4_LEN);
	head[1] = 0xff;				/* type of service */
	put16(head + 2, IP4_LEN + udp_len);
	put16(head + 4, id);
	head[8] = 0xff;				/* time to live */
	put16(head + 10, 0xffff);		/* checksum */
	mask_udp(head + IP4_LEN, udp, udp_len);
	return icrc(head, IP4_LEN + UDP_LEN, bth, len);
}

u32 herald_icrc_v6(const u8 *ip, const u8 *udp, const u8 *bth, u32 len)
{
	u32 udp_len = UDP_LEN + len + HERALD_ICRC_LEN;
	u8 head[IP6_LEN + UDP_LEN + HERALD_BTH_LEN];

	memcpy(head, ip, IP6_LEN);
	put32(head, 0x6fffffff);		/* traffic class, flow label */
	put16(head + 4, udp_len);
	head[7] = 0xff;				/* hop limit */
	mask_udp(head + IP6_LEN, udp, udp_len);
	return icrc(head, IP6_LEN + UDP_LEN, bth, len);
}
