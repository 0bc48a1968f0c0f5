/* SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB */
#include "pair.h"

#include <arpa/inet.h>

#include <algorithm>
#include <thread>

namespace conformance {

/* ------------------------------------------------------ work requests -- */

Send::Send(ibv_wr_opcode opcode, uint64_t id)
{
	wr.wr_id = id;
	wr.opcode = opcode;
	wr.send_flags = IBV_SEND_SIGNALED;
}

Send &Send::sge(const ibv_sge &s)
{
	sges.push_back(s);
	return *this;
}

Send &Send::to(uint64_t addr, uint32_t rkey)
{
	if (wr.opcode == IBV_WR_ATOMIC_CMP_AND_SWP || wr.opcode == IBV_WR_ATOMIC_FETCH_AND_ADD) {
		wr.wr.atomic.remote_addr = addr;
		wr.wr.atomic.rkey = rkey;
	} else {
		wr.wr.rdma.remote_addr = addr;
		wr.wr.rdma.rkey = rkey;
	}
	return *this;
}

Send &Send::operands(uint64_t compare_add, uint64_t swap)
{
	wr.wr.atomic.compare_add = compare_add;
	wr.wr.atomic.swap = swap;
	return *this;
}

Send &Send::imm(uint32_t value)
{
	wr.imm_data = htonl(value);
	return *this;
}

Send &Send::invalidate(uint32_t rkey)
{
	wr.invalidate_rkey = rkey;
	return *this;
}

Send &Send::ud(ibv_ah *ah, uint32_t qpn, uint32_t qkey)
{
	wr.wr.ud.ah = ah;
	wr.wr.ud.remote_qpn = qpn;
	wr.wr.ud.remote_qkey = qkey;
	return *this;
}

Send &Send::flags(unsigned int f)
{
	wr.send_flags = f;
	return *this;
}

int Send::try_post(ibv_qp *qp)
{
	ibv_send_wr *bad = nullptr;

	wr.sg_list = sges.data();
	wr.num_sge = static_cast<int>(sges.size());
	int rc = code(ibv_post_send(qp, &wr, &bad));
	if (rc) {
		EXPECT_EQ(bad, &wr) << "bad_wr does not point at the WR that failed";
	}
	return rc;
}

int try_recv(ibv_qp *qp, std::vector<ibv_sge> sges, uint64_t id)
{
	ibv_recv_wr wr{}, *bad = nullptr;

	wr.wr_id = id;
	wr.sg_list = sges.data();
	wr.num_sge = static_cast<int>(sges.size());
	int rc = code(ibv_post_recv(qp, &wr, &bad));
	if (rc) {
		EXPECT_EQ(bad, &wr) << "bad_wr does not point at the WR that failed";
	}
	return rc;
}

void recv(ibv_qp *qp, const Region &r, size_t off, uint32_t len, uint64_t id)
{
	require_ok(try_recv(qp, {r.sge(off, len)}, id), "ibv_post_recv");
}

void recv_empty(ibv_qp *qp, uint64_t id)
{
	require_ok(try_recv(qp, {}, id), "ibv_post_recv");
}

int try_srq_recv(ibv_srq *srq, std::vector<ibv_sge> sges, uint64_t id)
{
	ibv_recv_wr wr{}, *bad = nullptr;

	wr.wr_id = id;
	wr.sg_list = sges.data();
	wr.num_sge = static_cast<int>(sges.size());
	int rc = code(ibv_post_srq_recv(srq, &wr, &bad));
	if (rc) {
		EXPECT_EQ(bad, &wr) << "bad_wr does not point at the WR that failed";
	}
	return rc;
}

void srq_recv(ibv_srq *srq, const Region &r, size_t off, uint32_t len, uint64_t id)
{
	require_ok(try_srq_recv(srq, {r.sge(off, len)}, id), "ibv_post_srq_recv");
}

/* ------------------------------------------------------------ QP states -- */

Attr state_attr(ibv_qp_state state)
{
	Attr at;

	at.a.qp_state = state;
	at.mask = IBV_QP_STATE;
	return at;
}

Attr init_attr(ibv_qp_type type, const Path &path)
{
	Attr at = state_attr(IBV_QPS_INIT);

	at.a.pkey_index = path.pkey_index;
	at.a.port_num = Device::port_num;
	at.mask |= IBV_QP_PKEY_INDEX | IBV_QP_PORT;
	if (type == IBV_QPT_UD) {
		at.a.qkey = path.qkey;
		at.mask |= IBV_QP_QKEY;
	} else {
		at.a.qp_access_flags = type == IBV_QPT_UC ? path.access & IBV_ACCESS_REMOTE_WRITE : path.access;
		at.mask |= IBV_QP_ACCESS_FLAGS;
	}
	return at;
}

static uint8_t rd_atomic(const Device &dev, const Path &path)
{
	return static_cast<uint8_t>(std::min<int>(path.rd_atomic, dev.attr.max_qp_rd_atom));
}

Attr rtr_attr(const Device &dev, ibv_qp_type type, const Path &path, uint32_t dest_qpn, int dest_gid_index)
{
	Attr at = state_attr(IBV_QPS_RTR);
	int sgid = path.gid_index >= 0 ? path.gid_index : dev.gid_index();

	if (type == IBV_QPT_UD)
		return at;
	at.a.path_mtu = std::min(path.mtu, dev.port.active_mtu);
	at.a.dest_qp_num = dest_qpn;
	at.a.rq_psn = 0;
	at.a.ah_attr.is_global = 1;
	at.a.ah_attr.port_num = Device::port_num;
	at.a.ah_attr.grh.dgid = dev.gid(dest_gid_index >= 0 ? dest_gid_index : sgid);
	at.a.ah_attr.grh.sgid_index = static_cast<uint8_t>(sgid);
	at.a.ah_attr.grh.hop_limit = 64;
	at.mask |= IBV_QP_AV | IBV_QP_PATH_MTU | IBV_QP_DEST_QPN | IBV_QP_RQ_PSN;
	if (type == IBV_QPT_RC) {
		at.a.max_dest_rd_atomic = rd_atomic(dev, path);
		at.a.min_rnr_timer = path.min_rnr_timer;
		at.mask |= IBV_QP_MAX_DEST_RD_ATOMIC | IBV_QP_MIN_RNR_TIMER;
	}
	return at;
}

Attr rts_attr(const Device &dev, ibv_qp_type type, const Path &path)
{
	Attr at = state_attr(IBV_QPS_RTS);

	at.a.sq_psn = 0;
	at.mask |= IBV_QP_SQ_PSN;
	if (type == IBV_QPT_RC) {
		at.a.timeout = path.timeout;
		at.a.retry_cnt = path.retry_cnt;
		at.a.rnr_retry = path.rnr_retry;
		at.a.max_rd_atomic = rd_atomic(dev, path);
		at.mask |= IBV_QP_TIMEOUT | IBV_QP_RETRY_CNT | IBV_QP_RNR_RETRY | IBV_QP_MAX_QP_RD_ATOMIC;
	}
	return at;
}

int try_modify(ibv_qp *qp, const Attr &attr)
{
	ibv_qp_attr copy = attr.a;

	return code(ibv_modify_qp(qp, &copy, attr.mask));
}

void modify(ibv_qp *qp, const Attr &attr)
{
	require_ok(try_modify(qp, attr), "ibv_modify_qp to state " + std::to_string(attr.a.qp_state));
}

void to_init(ibv_qp *qp, const Path &path)
{
	modify(qp, init_attr(qp->qp_type, path));
}

void to_rtr(const Device &dev, ibv_qp *qp, uint32_t dest_qpn, const Path &path, int dest_gid_index)
{
	modify(qp, rtr_attr(dev, qp->qp_type, path, dest_qpn, dest_gid_index));
}

void to_rts(const Device &dev, ibv_qp *qp, const Path &path)
{
	modify(qp, rts_attr(dev, qp->qp_type, path));
}

void to_error(ibv_qp *qp)
{
	modify(qp, IBV_QPS_ERR);
}

ibv_qp_state state_of(ibv_qp *qp)
{
	ibv_qp_attr attr{};
	ibv_qp_init_attr init{};

	require_ok(ibv_query_qp(qp, &attr, IBV_QP_STATE, &init), "ibv_query_qp");
	return attr.qp_state;
}

void expect_state(ibv_qp *qp, ibv_qp_state state)
{
	auto end = Clock::now() + patience();
	ibv_qp_state now;

	while ((now = state_of(qp)) != state && Clock::now() < end)
		std::this_thread::yield();
	EXPECT_EQ(now, state);
}

/* ----------------------------------------------------------------- ends -- */

End::End(const Device &dev, ibv_pd *pd, const QpOptions &o) : mem(pd, o.memory)
{
	ibv_qp_init_attr_ex init{};

	if (!o.send_cq)
		own_send_cq = make_cq(dev, o.cq_depth, o.channel, this);
	if (!o.recv_cq)
		own_recv_cq = make_cq(dev, o.cq_depth, o.channel, this);
	scq = o.send_cq ? o.send_cq : own_send_cq.get();
	rcq = o.recv_cq ? o.recv_cq : own_recv_cq.get();
	init.qp_type = o.type;
	init.send_cq = scq;
	init.recv_cq = rcq;
	init.srq = o.srq;
	init.sq_sig_all = o.sig_all;
	init.cap.max_send_wr = o.send_wr;
	init.cap.max_recv_wr = o.srq ? 0 : o.recv_wr;
	init.cap.max_send_sge = o.sge;
	init.cap.max_recv_sge = o.srq ? 0 : o.sge;
	init.cap.max_inline_data = o.inline_data;
	init.comp_mask = IBV_QP_INIT_ATTR_PD | (o.ops ? IBV_QP_INIT_ATTR_SEND_OPS_FLAGS : 0);
	init.pd = pd;
	init.send_ops_flags = o.ops;
	qp = Qp(ibv_create_qp_ex(dev, &init));
	require(qp, "ibv_create_qp");
}

Pair::Pair(const Device &dev, ibv_pd *pd, const QpOptions &o, const Path &path) : Pair(dev, pd, o, o, path) {}

static bool brings_objects(const QpOptions &o)
{
	return o.srq || o.send_cq || o.recv_cq || o.channel;
}

/* HERALD_PEER's, opened once: its objects may outlive a test's own. */
static Side peer_side(const Side &first)
{
	const char *name = getenv("HERALD_PEER");

	if (!name)
		return first;
	static const Device peer{name};
	static const Pd peer_pd = make_pd(peer);
	return {peer, peer_pd};
}

static Side side_of_a(const Side &first, const QpOptions &a, const QpOptions &b)
{
	return brings_objects(b) && !brings_objects(a) ? peer_side(first) : first;
}

static Side side_of_b(const Side &first, const QpOptions &b)
{
	return brings_objects(b) ? first : peer_side(first);
}

Pair::Pair(const Device &dev, ibv_pd *pd, const QpOptions &oa, const QpOptions &ob, const Path &path)
	: at_a(side_of_a({dev, pd}, oa, ob)), at_b(side_of_b({dev, pd}, ob)), a(at_a.dev, at_a.pd, oa),
	  b(at_b.dev, at_b.pd, ob)
{
	connect(dev, path);
}

/* A path of `dev` as this side's: by its own GID of the same family. */
static Path path_at(const Side &side, const Device &dev, const Path &path)
{
	Path own = path;

	if (&side.dev != &dev && path.gid_index >= 0)
		own.gid_index = side.dev.find_gid(dev.is_v4(path.gid_index) ? Family::v4 : Family::v6).value_or(-1);
	return own;
}

static ibv_gid gid_at(const Side &side, const Path &path)
{
	return side.dev.gid(path.gid_index >= 0 ? path.gid_index : side.dev.gid_index());
}

static void to_rtr_towards(const Side &side, ibv_qp *qp, const Path &path, uint32_t qpn, const ibv_gid &dgid)
{
	Attr at = rtr_attr(side.dev, qp->qp_type, path, qpn);

	at.a.ah_attr.grh.dgid = dgid;
	modify(qp, at);
}

void Pair::connect(const Device &dev, const Path &path)
{
	const Path path_a = path_at(at_a, dev, path), path_b = path_at(at_b, dev, path);

	to_init(a, path_a);
	to_init(b, path_b);
	to_rtr_towards(at_a, a, path_a, b.num(), gid_at(at_b, path_b));
	to_rtr_towards(at_b, b, path_b, a.num(), gid_at(at_a, path_a));
	to_rts(at_a.dev, a, path_a);
	to_rts(at_b.dev, b, path_b);
}

Ah make_ah(const Device &, ibv_pd *pd, int sgid_index, const ibv_gid &dgid)
{
	ibv_ah_attr attr{};

	attr.is_global = 1;
	attr.port_num = Device::port_num;
	attr.grh.dgid = dgid;
	attr.grh.sgid_index = static_cast<uint8_t>(sgid_index);
	attr.grh.hop_limit = 64;
	Ah ah(ibv_create_ah(pd, &attr));
	require(ah, "ibv_create_ah");
	return ah;
}

static QpOptions as_ud(QpOptions o)
{
	o.type = IBV_QPT_UD;
	return o;
}

UdEnd::UdEnd(const Device &dev, ibv_pd *pd, QpOptions options, const Path &path)
	: End(dev, pd, as_ud(options)), qkey(path.qkey)
{
	int index = path.gid_index >= 0 ? path.gid_index : dev.gid_index();

	to_init(qp, path);
	to_rtr(dev, qp, 0, path);
	to_rts(dev, qp, path);
	self = make_ah(dev, pd, index, dev.gid(index));
}

void RcTest::message(Pair &p, bool solicited)
{
	recv(p.b, p.b.mem, 0, 64, 5);
	Send(IBV_WR_SEND, 6)
		.from(p.a.mem, 0, 8)
		.add_flags(solicited ? static_cast<unsigned int>(IBV_SEND_SOLICITED) : 0u)
		.post(p.a);
	expect_ok(p.a.scq, 6);
}

} // namespace conformance
