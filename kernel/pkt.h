/* SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB */
/*
 * PURE: the transport headers of one packet (IBTA vol. 1, chapter 9, annexes A17 and A19), and
 * the checksum that covers them.  What is named here ends before the iCRC or includes it; where
 * it matters, the comment says which.
 */
#ifndef HERALD_PKT_H
#define HERALD_PKT_H

#include <linux/types.h>

#define HERALD_BTH_LEN		12
#define HERALD_ICRC_LEN		4
#define HERALD_PKT_HDR_MAX	40	/* BTH and AtomicETH */

/* The upper three bits of an opcode: the service that it belongs to. */
enum herald_pkt_class {
	HERALD_CLASS_RC		= 0x00,
	HERALD_CLASS_UC		= 0x20,
	HERALD_CLASS_UD		= 0x60,
	HERALD_CLASS_CNP	= 0x80,
	HERALD_CLASS_MASK	= 0xe0,
};

/* The lower five bits: the operation. */
#define HERALD_BTH_OPS(OP)				\
	OP(SEND_FIRST,				0x00)	\
	OP(SEND_MIDDLE,				0x01)	\
	OP(SEND_LAST,				0x02)	\
	OP(SEND_LAST_WITH_IMM,			0x03)	\
	OP(SEND_ONLY,				0x04)	\
	OP(SEND_ONLY_WITH_IMM,			0x05)	\
	OP(RDMA_WRITE_FIRST,			0x06)	\
	OP(RDMA_WRITE_MIDDLE,			0x07)	\
	OP(RDMA_WRITE_LAST,			0x08)	\
	OP(RDMA_WRITE_LAST_WITH_IMM,		0x09)	\
	OP(RDMA_WRITE_ONLY,			0x0a)	\
	OP(RDMA_WRITE_ONLY_WITH_IMM,		0x0b)	\
	OP(RDMA_READ_REQUEST,			0x0c)	\
	OP(RDMA_READ_RESPONSE_FIRST,		0x0d)	\
	OP(RDMA_READ_RESPONSE_MIDDLE,		0x0e)	\
	OP(RDMA_READ_RESPONSE_LAST,		0x0f)	\
	OP(RDMA_READ_RESPONSE_ONLY,		0x10)	\
	OP(ACKNOWLEDGE,				0x11)	\
	OP(ATOMIC_ACKNOWLEDGE,			0x12)	\
	OP(COMPARE_SWAP,			0x13)	\
	OP(FETCH_ADD,				0x14)	\
	OP(SEND_LAST_WITH_INV,			0x16)	\
	OP(SEND_ONLY_WITH_INV,			0x17)	\
	OP(FLUSH,				0x1c)	\
	OP(ATOMIC_WRITE,			0x1d)

/* Not every service has every operation: the rows say which. */
enum herald_bth_opcode {
#define HERALD_BTH_OP(op, code)					\
	HERALD_BTH_RC_##op = HERALD_CLASS_RC | (code),		\
	HERALD_BTH_UC_##op = HERALD_CLASS_UC | (code),		\
	HERALD_BTH_UD_##op = HERALD_CLASS_UD | (code),
	HERALD_BTH_OPS(HERALD_BTH_OP)
#undef HERALD_BTH_OP
	HERALD_BTH_CNP = 0x81,
};

/* Extended headers, in the order in which they follow the BTH. */
enum herald_pkt_ext {
	HERALD_EXT_DETH		= 1 << 0,
	HERALD_EXT_FETH		= 1 << 1,
	HERALD_EXT_RETH		= 1 << 2,
	HERALD_EXT_ATOMIC	= 1 << 3,	/* AtomicETH */
	HERALD_EXT_AETH		= 1 << 4,
	HERALD_EXT_ATOMIC_ACK	= 1 << 5,	/* AtomicAckETH */
	HERALD_EXT_IMM		= 1 << 6,
	HERALD_EXT_IETH		= 1 << 7,
	HERALD_EXT_CNP		= 1 << 8,	/* 16 reserved bytes */
};

enum herald_pkt_flags {
	HERALD_PKT_FIRST	= 1 << 0,	/* begins a message */
	HERALD_PKT_MIDDLE	= 1 << 1,
	HERALD_PKT_LAST		= 1 << 2,	/* ends it */
	HERALD_PKT_ONLY		= HERALD_PKT_FIRST | HERALD_PKT_LAST,
	HERALD_PKT_REQUEST	= 1 << 3,	/* for the responder */
	HERALD_PKT_RESPONSE	= 1 << 4,	/* for the requester */
	HERALD_PKT_ACK		= 1 << 5,	/* the response is ACKNOWLEDGE: an ACK or a NAK */
	HERALD_PKT_HAS_PAYLOAD	= 1 << 6,	/* may have one */
	HERALD_PKT_CNP		= 1 << 7,	/* for the one who sends to us too fast */
	HERALD_PKT_KNOWN	= HERALD_PKT_REQUEST | HERALD_PKT_RESPONSE | HERALD_PKT_CNP,
};

/**
 * struct herald_pkt_row - what is known of an opcode
 * @name: for messages and traces
 * @kind: enum herald_op_kind of the request; of a response, the kind that it answers (a READ
 *	RESPONSE answers FLUSH and ATOMIC WRITE too), and HERALD_KIND_NONE for ACKNOWLEDGE
 * @qp_type_class: enum herald_pkt_class
 * @wr_opcode: enum herald_wr_opcode of what the packet is part of or answers, as far as one can
 *	tell (the first packets of a SEND are those of a plain one), else HERALD_WR_OPCODE_MAX
 * @hdr_len: bytes of BTH and extended headers
 * @ext: enum herald_pkt_ext
 * @flags: enum herald_pkt_flags; none of HERALD_PKT_KNOWN: there is no such opcode
 */
struct herald_pkt_row {
	const char *name;
	u8 kind;
	u8 qp_type_class;
	u8 wr_opcode;
	u8 hdr_len;
	u16 ext;
	u16 flags;
};

/**
 * struct herald_pkt - one packet's headers, in host byte order unless said otherwise
 * @opcode: enum herald_bth_opcode
 * @pad: bytes between payload and iCRC, 0 to 3
 * @solicited: raise a solicited event
 * @migreq: the migration state of the sender is Migrated
 * @ack_req: answer at once
 * @fecn: forward congestion notification
 * @becn: backward congestion notification; set in every CNP
 * @pkey: partition key
 * @dest_qpn: 24 bits
 * @psn: 24 bits
 * @syndrome: AETH: see enum herald_aeth
 * @msn: AETH: message sequence number, 24 bits
 * @va: RETH or AtomicETH: address
 * @rkey: RETH or AtomicETH: key
 * @dmalen: RETH: bytes of the whole message
 * @swap_add: AtomicETH: what to store or to add
 * @compare: AtomicETH: what to compare with
 * @atomic_orig: AtomicAckETH: what was there before
 * @qkey: DETH: key of the queue
 * @src_qpn: DETH: 24 bits
 * @imm: as on the wire: a __be32, untouched
 * @ieth: key to invalidate
 * @flush_placement: FETH: enum ib_flush_type, 4 bits
 * @flush_selectivity: FETH: enum ib_flush_selectivity, 2 bits
 * @hdr_len: set by parse: bytes of BTH and extended headers
 * @payload_len: set by parse: bytes without pad and iCRC
 */
struct herald_pkt {
	u8 opcode;
	u8 pad;
	bool solicited;
	bool migreq;
	bool ack_req;
	bool fecn;
	bool becn;
	u8 syndrome;
	u16 pkey;
	u32 dest_qpn;
	u32 psn;
	u32 msn;
	u64 va;
	u32 rkey;
	u32 dmalen;
	u64 swap_add;
	u64 compare;
	u64 atomic_orig;
	u32 qkey;
	u32 src_qpn;
	u32 imm;
	u32 ieth;
	u32 flush_placement;
	u32 flush_selectivity;
	u32 hdr_len;
	u32 payload_len;
};

/*
 * Why a packet was not parsed; herald_pkt_parse() gives the negative.  From HERALD_PKT_BAD_OPCODE
 * on, the fields of the BTH are valid.
 */
enum herald_pkt_error {
	HERALD_PKT_BAD_LENGTH = 1,	/* no room for BTH and iCRC, or no multiple of four */
	HERALD_PKT_BAD_VERSION,		/* TVer is not 0 */
	HERALD_PKT_BAD_OPCODE,		/* none that RC, UC or UD has, nor a CNP */
	HERALD_PKT_TRUNCATED,		/* no room for the extended headers */
	HERALD_PKT_BAD_PAYLOAD,		/* bytes after the headers of what has no payload */
	HERALD_PKT_BAD_PAD,		/* more pad than there are bytes after the headers */
	HERALD_PKT_ERRORS
};

/* The AETH's syndrome: three bits say what it is, five bits more of it (IBTA vol. 1, 9.7.5.1.1). */
enum herald_aeth {
	HERALD_AETH_ACK			= 0x00,		/* | credit count */
	HERALD_AETH_NO_CREDITS		= 0x1f,		/* ACK without flow control by credits */
	HERALD_AETH_RNR			= 0x20,		/* | code of the RNR NAK timer */
	HERALD_AETH_NAK			= 0x60,		/* | code: */
	HERALD_AETH_NAK_SEQUENCE	= 0x60,
	HERALD_AETH_NAK_INVALID_REQUEST	= 0x61,
	HERALD_AETH_NAK_REMOTE_ACCESS	= 0x62,
	HERALD_AETH_NAK_REMOTE_OPERATION = 0x63,
	HERALD_AETH_NAK_INVALID_RD	= 0x64,
	HERALD_AETH_KIND_MASK		= 0xe0,
	HERALD_AETH_VALUE_MASK		= 0x1f,
};

/**
 * herald_pkt_row() - what is known of an opcode
 * @opcode: any byte
 *
 * Return: its row, never NULL; a row without HERALD_PKT_KNOWN if there is no such opcode.
 * Context: any.
 */
const struct herald_pkt_row *herald_pkt_row(u8 opcode);

/**
 * herald_pkt_request_opcode() - the opcode of a request's packet
 * @qp_class: enum herald_pkt_class
 * @wr_opcode: enum herald_wr_opcode
 * @first: the packet begins the message
 * @last: the packet ends it
 *
 * Return: enum herald_bth_opcode; -1 if the operation has no such packet.
 * Context: any.
 */
int herald_pkt_request_opcode(u8 qp_class, u8 wr_opcode, bool first, bool last);

/**
 * herald_pkt_parse() - decode and check one packet
 * @pkt: is filled in; what the packet has not is 0
 * @buf: the packet from the BTH to the end of the iCRC, which is not looked at
 * @len: its bytes
 *
 * Return: 0, or a negative enum herald_pkt_error.
 * Context: any.
 */
int herald_pkt_parse(struct herald_pkt *pkt, const u8 *buf, u32 len);

/**
 * herald_pkt_emit() - write BTH and extended headers
 * @pkt: what to write; its opcode says which headers; fields too wide lose their upper bits
 * @buf: room for HERALD_PKT_HDR_MAX bytes
 *
 * Return: bytes written.
 * Context: any.
 */
u32 herald_pkt_emit(const struct herald_pkt *pkt, u8 *buf);

/* The pad that a payload of this length needs. */
static inline u8 herald_pkt_pad(u32 payload_len)
{
	return -payload_len & 3;
}

/**
 * herald_icrc_v4() - the iCRC of a packet over IPv4
 * @ip: IPv4 header, without options
 * @udp: UDP header
 * @id: the packet's IP identification: segments of one train differ in it
 * @bth: the packet from the BTH to the end of the pad, in one piece
 * @len: bytes at @bth, at least HERALD_BTH_LEN
 *
 * The length fields of both headers count as those of a packet of this @len, whatever they say.
 *
 * Return: the iCRC, for herald_icrc_put().
 * Context: any.
 */
u32 herald_icrc_v4(const u8 *ip, const u8 *udp, u16 id, const u8 *bth, u32 len);

/**
 * herald_icrc_v6() - the iCRC of a packet over IPv6
 * @ip: IPv6 header, without extension headers
 * @udp: UDP header
 * @bth: the packet from the BTH to the end of the pad, in one piece
 * @len: bytes at @bth, at least HERALD_BTH_LEN
 *
 * The length fields of both headers count as those of a packet of this @len, whatever they say.
 *
 * Return: the iCRC, for herald_icrc_put().
 * Context: any.
 */
u32 herald_icrc_v6(const u8 *ip, const u8 *udp, const u8 *bth, u32 len);

/* The iCRC goes on the wire with its lowest byte first, as an Ethernet frame's check sequence. */
static inline void herald_icrc_put(u8 *at, u32 icrc)
{
	at[0] = icrc & 0xff;
	at[1] = icrc >> 8 & 0xff;
	at[2] = icrc >> 16 & 0xff;
	at[3] = icrc >> 24;
}

static inline u32 herald_icrc_get(const u8 *at)
{
	return at[0] | at[1] << 8 | at[2] << 16 | (u32)at[3] << 24;
}

#endif /* HERALD_PKT_H */
