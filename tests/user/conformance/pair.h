/* SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB */
/* Queue pairs ready for use, and work requests that read like what they do. */
#pragma once

#include "fixture.h"

#include <array>

namespace conformance {

/* ------------------------------------------------------ work requests -- */

/* One send work request with room for its SGEs; signaled unless flags() says otherwise. */
class Send {
public:
	explicit Send(ibv_wr_opcode opcode = IBV_WR_SEND, uint64_t id = 1);

	Send &from(const Region &r, size_t off, uint32_t len) { return sge(r.sge(off, len)); }
	Send &sge(const ibv_sge &s);
	Send &to(const Region &r, size_t off = 0) { return to(r.addr(off), r.mr->rkey); }
	Send &to(uint64_t addr, uint32_t rkey);
	/* compare_add, swap; after to() */
	Send &operands(uint64_t compare_add, uint64_t swap = 0);
	Send &imm(uint32_t value);
	Send &invalidate(uint32_t rkey);
	Send &ud(ibv_ah *ah, uint32_t qpn, uint32_t qkey);
	Send &flags(unsigned int f);
	Send &add_flags(unsigned int f) { return flags(wr.send_flags | f); }
	Send &unsignaled() { return flags(wr.send_flags & ~IBV_SEND_SIGNALED); }

	/* 0 or an errno; checks the rules of bad_wr. */
	int try_post(ibv_qp *qp);
	void post(ibv_qp *qp) { require_ok(try_post(qp), "ibv_post_send"); }

	ibv_send_wr wr{};
	std::vector<ibv_sge> sges;
};

int try_recv(ibv_qp *qp, std::vector<ibv_sge> sges, uint64_t id);
void recv(ibv_qp *qp, const Region &r, size_t off, uint32_t len, uint64_t id);
void recv_empty(ibv_qp *qp, uint64_t id);
int try_srq_recv(ibv_srq *srq, std::vector<ibv_sge> sges, uint64_t id);
void srq_recv(ibv_srq *srq, const Region &r, size_t off, uint32_t len, uint64_t id);

/* ------------------------------------------------------------ QP states -- */

struct QpOptions {
	ibv_qp_type type = IBV_QPT_RC;
	uint32_t send_wr = 128;
	uint32_t recv_wr = 128;
	uint32_t sge = 4;
	uint32_t inline_data = 64;
	bool sig_all = false;
	uint64_t ops = 0; /* IBV_QP_EX_WITH_...: it is posted to by the ibv_wr_ functions, too */
	ibv_srq *srq = nullptr;
	/* whoever gives no CQs gets one for each queue, on this channel */
	ibv_cq *send_cq = nullptr;
	ibv_cq *recv_cq = nullptr;
	ibv_comp_channel *channel = nullptr;
	int cq_depth = 512;
	size_t memory = 65536;
};

struct Path {
	int gid_index = -1; /* the device's default */
	ibv_mtu mtu = IBV_MTU_1024;
	uint8_t timeout = 14;
	uint8_t retry_cnt = 7;
	uint8_t rnr_retry = 7;
	uint8_t min_rnr_timer = 1; /* 10 us */
	uint8_t rd_atomic = 16;
	int access = IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_READ | IBV_ACCESS_REMOTE_ATOMIC;
	uint32_t qkey = 0x11111111;
	uint16_t pkey_index = 0;
};

/* An attribute struct with its mask. */
struct Attr {
	ibv_qp_attr a{};
	int mask = 0;
};

Attr init_attr(ibv_qp_type type, const Path &path);
Attr rtr_attr(const Device &dev, ibv_qp_type type, const Path &path, uint32_t dest_qpn, int dest_gid_index = -1);
Attr rts_attr(const Device &dev, ibv_qp_type type, const Path &path);
Attr state_attr(ibv_qp_state state);

int try_modify(ibv_qp *qp, const Attr &attr);
void modify(ibv_qp *qp, const Attr &attr);
inline void modify(ibv_qp *qp, ibv_qp_state state)
{
	modify(qp, state_attr(state));
}
void to_init(ibv_qp *qp, const Path &path = {});
void to_rtr(const Device &dev, ibv_qp *qp, uint32_t dest_qpn, const Path &path = {}, int dest_gid_index = -1);
void to_rts(const Device &dev, ibv_qp *qp, const Path &path = {});
void to_error(ibv_qp *qp);
ibv_qp_state state_of(ibv_qp *qp);
/* Waits: the other end may be at work in its own context. */
void expect_state(ibv_qp *qp, ibv_qp_state state);

/* A QP with its CQs and its memory. */
class End {
public:
	End(const Device &dev, ibv_pd *pd, const QpOptions &options = {});

	operator ibv_qp *() const { return qp; }
	uint32_t num() const { return qp->qp_num; }

	Cq own_send_cq, own_recv_cq;
	ibv_cq *scq, *rcq;
	Region mem;
	Qp qp;
};

/* A device and a protection domain of it. */
struct Side {
	const Device &dev;
	ibv_pd *pd;
};

/*
 * Two connected ends: of one device, or, if HERALD_PEER names another one, which the first one reaches, one end is of that:
 * b, or a if b is given objects (an SRQ, a CQ, a channel). With objects for both, both are of the first one.
 */
class Pair {
public:
	Pair(const Device &dev, ibv_pd *pd, const QpOptions &options = {}, const Path &path = {});
	Pair(const Device &dev, ibv_pd *pd, const QpOptions &a, const QpOptions &b, const Path &path);

	void connect(const Device &dev, const Path &path);

	Side at_a, at_b;
	End a, b;
};

Ah make_ah(const Device &dev, ibv_pd *pd, int sgid_index, const ibv_gid &dgid);

/* A UD QP in RTS. */
class UdEnd : public End {
public:
	UdEnd(const Device &dev, ibv_pd *pd, QpOptions options = {}, const Path &path = {});

	uint32_t qkey;
	Ah self; /* leads to this device */
};

class RcTest : public Verbs {
protected:
	/* a message from a to b whose receive completion is there when this returns */
	static void message(Pair &p, bool solicited);
	Pair make_pair(const QpOptions &options = {}, const Path &path = {}) { return Pair(dev, pd, options, path); }
};

} // namespace conformance
