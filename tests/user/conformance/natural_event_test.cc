/* SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB */
/*
 * Each event of a QP, a CQ and an SRQ from its natural cause, in one table (docs/events.md; CASES 40, 51 to 54): once, on
 * the right element, after the completion that explains it, with the state that it leaves. Details are in
 * async_event_test.cc, cq_test.cc and srq_test.cc.
 */
#include "migration.h"
#include "process.h"

#include <algorithm>
#include <fstream>

using namespace conformance;

namespace {

/* a sends to b; b receives through the SRQ if the row wants one */
struct Scene {
	Scene(const Device &dev, ibv_pd *pd, bool with_srq)
		: srq(with_srq ? new_srq(pd) : Srq()), cq(make_cq(dev, 4)), mem(pd, 4096),
		  p(dev, pd, on_cq(cq), on_srq(srq), Path())
	{
	}
	/* Its ring is the mapping that was not there before; the producer index comes first (herald-abi.h). */
	Srq new_srq(ibv_pd *pd)
	{
		const auto before = ring_mappings();
		Srq made = make_srq(pd, 16);

		for (const Mapping &m : ring_mappings())
			if (std::none_of(before.begin(), before.end(),
					 [&](const Mapping &b) { return b.start == m.start; }))
				srq_producer = reinterpret_cast<uint32_t *>(m.start);
		return made;
	}
	static QpOptions on_cq(ibv_cq *cq)
	{
		QpOptions o;

		o.send_cq = cq;
		return o;
	}
	static QpOptions on_srq(ibv_srq *srq)
	{
		QpOptions o;

		o.srq = srq;
		return o;
	}

	uint32_t *srq_producer = nullptr; /* in the SRQ's ring; before it, because making that sets this */
	Srq srq;
	Cq cq;
	Region mem;
	std::optional<Address> address; /* of the device's interface */
	Pair p;
};

struct Cause {
	const char *name;
	bool with_srq;
	ibv_event_type type;
	const char *text; /* ibv_event_type_str() */
	/* makes it happen; returns the element */
	const void *(*make)(const Device &dev, Scene &s);
	/* the first CQE of the end that the event is about, which must be there when the event is; -1: there is none */
	int explained_by;
	/* of the end that the event is about */
	ibv_qp_state after;
	/* events that follow from the same cause, on other objects or of another kind */
	int others;
};

const void *bad_rkey(const Device &, Scene &s)
{
	Send(IBV_WR_RDMA_WRITE, 1).from(s.p.a.mem, 0, 8).to(s.p.b.mem.addr(), ~s.p.b.mem.mr->rkey).post(s.p.a);
	return s.p.b.qp.get();
}

/* b has not that operation */
const void *no_such_operation(const Device &dev, Scene &s)
{
	Path no_atomics;

	no_atomics.access = IBV_ACCESS_REMOTE_WRITE;
	modify(s.p.a, IBV_QPS_RESET);
	modify(s.p.b, IBV_QPS_RESET);
	s.p.connect(dev, no_atomics);
	Send(IBV_WR_ATOMIC_FETCH_AND_ADD, 1).from(s.p.a.mem, 0, 8).to(s.p.b.mem).operands(1).post(s.p.a);
	return s.p.b.qp.get();
}

const void *first_packet_in_rtr(const Device &dev, Scene &s)
{
	modify(s.p.a, IBV_QPS_RESET);
	modify(s.p.b, IBV_QPS_RESET);
	to_init(s.p.a);
	to_init(s.p.b);
	to_rtr(dev, s.p.a, s.p.b.num());
	to_rtr(dev, s.p.b, s.p.a.num());
	to_rts(dev, s.p.a);
	Send(IBV_WR_RDMA_WRITE, 1).from(s.p.a.mem, 0, 8).to(s.p.b.mem).post(s.p.a);
	return s.p.b.qp.get();
}

const void *drained(const Device &, Scene &s)
{
	Attr at = state_attr(IBV_QPS_SQD);

	recv(s.p.a, s.p.a.mem, 0, 64, 1);
	Send(IBV_WR_SEND, 1).from(s.p.b.mem, 0, 8).post(s.p.b);
	at.a.en_sqd_async_notify = 1;
	at.mask |= IBV_QP_EN_SQD_ASYNC_NOTIFY;
	modify(s.p.b, at);
	return s.p.b.qp.get();
}

const void *overrun(const Device &, Scene &s)
{
	for (int i = 0; i < s.cq->cqe + 1; i++)
		Send(IBV_WR_RDMA_WRITE, i).from(s.p.a.mem, 0, 8).to(s.p.b.mem).post(s.p.a);
	return s.cq.get();
}

const void *too_long(const Device &, Scene &s)
{
	srq_recv(s.srq, s.mem, 0, 64, 1);
	Send(IBV_WR_SEND, 1).from(s.p.a.mem, 0, 65).post(s.p.a);
	return s.p.b.qp.get();
}

const void *below_the_limit(const Device &, Scene &s)
{
	ibv_srq_attr attr{};

	attr.srq_limit = 1;
	srq_recv(s.srq, s.mem, 0, 64, 1);
	require_ok(ibv_modify_srq(s.srq, &attr, IBV_SRQ_LIMIT), "ibv_modify_srq");
	Send(IBV_WR_SEND, 1).from(s.p.a.mem, 0, 8).post(s.p.a);
	return s.srq.get();
}

/* more receives than the ring can hold */
const void *corrupt_srq(const Device &, Scene &s)
{
	require(s.srq_producer, "the SRQ's ring is not mapped");
	__atomic_store_n(s.srq_producer, 1u << 20, __ATOMIC_RELEASE);
	Send(IBV_WR_SEND, 1).from(s.p.a.mem, 0, 8).post(s.p.a);
	return s.srq.get();
}

/* The alternate path of b is from this GID; both are armed. */
void load_and_arm(const Device &dev, Scene &s, int sgid_index)
{
	modify(s.p.a, rearm_attr(alt_attr(dev, dev.gid_index(), sgid_index)));
	modify(s.p.b, rearm_attr(alt_attr(dev, sgid_index, dev.gid_index())));
	Send(IBV_WR_RDMA_WRITE, 1).from(s.p.b.mem, 0, 8).to(s.p.a.mem).post(s.p.b);
	expect_ok(s.p.b.scq, 1);
	expect_mig_state(s.p.b, IBV_MIG_ARMED);
}

const void *asked_to_migrate(const Device &dev, Scene &s)
{
	load_and_arm(dev, s, dev.gid_index());
	modify(s.p.b, mig_attr(IBV_MIG_MIGRATED));
	return s.p.b.qp.get();
}

/* The alternate path's address has gone when it is asked to migrate. */
const void *asked_in_vain(const Device &dev, Scene &s)
{
	std::ifstream parent("/sys/class/infiniband/" + dev.name + "/parent");
	std::string netdev;

	require(static_cast<bool>(std::getline(parent, netdev)), "the device does not say what it is on");
	s.address.emplace(netdev, "10.77.1.1");
	load_and_arm(dev, s, s.address->index(dev));
	s.address->remove(dev);
	while (auto got = next_async(dev, quiet()))
		EXPECT_EQ(got->type, IBV_EVENT_GID_CHANGE);
	modify(s.p.b, mig_attr(IBV_MIG_MIGRATED));
	return s.p.b.qp.get();
}

const Cause kCauses[] = {
	{"bad rkey", false, IBV_EVENT_QP_ACCESS_ERR, "local access violation work queue error", bad_rkey, -1,
	 IBV_QPS_ERR, 0},
	{"no such operation", false, IBV_EVENT_QP_REQ_ERR, "invalid request local work queue error", no_such_operation,
	 -1, IBV_QPS_ERR, 0},
	{"first packet in RTR", false, IBV_EVENT_COMM_EST, "communication established", first_packet_in_rtr, -1,
	 IBV_QPS_RTR, 0},
	{"drained", false, IBV_EVENT_SQ_DRAINED, "send queue drained", drained, IBV_WC_SUCCESS, IBV_QPS_SQD, 0},
	/* and QP_FATAL on a */
	{"overrun", false, IBV_EVENT_CQ_ERR, "CQ error", overrun, -1, IBV_QPS_RTS, 1},
	{"message too long for an SRQ's WR", true, IBV_EVENT_QP_LAST_WQE_REACHED, "last WQE reached", too_long,
	 IBV_WC_LOC_LEN_ERR, IBV_QPS_ERR, 0},
	/* and QP_FATAL and LAST_WQE_REACHED on b, which wanted to receive; in any order: they are of different objects */
	{"corrupt SRQ", true, IBV_EVENT_SRQ_ERR, "SRQ catastrophic error", corrupt_srq, -1, IBV_QPS_ERR, 2},
	{"below the limit", true, IBV_EVENT_SRQ_LIMIT_REACHED, "SRQ limit reached", below_the_limit, -1, IBV_QPS_RTS,
	 0},
	{"asked to migrate", false, IBV_EVENT_PATH_MIG, "path migrated", asked_to_migrate, -1, IBV_QPS_RTS, 0},
	{"asked to migrate in vain", false, IBV_EVENT_PATH_MIG_ERR, "path migration request error", asked_in_vain, -1,
	 IBV_QPS_RTS, 0},
};

} // namespace

class NaturalEvent : public RcTest {};

TEST_F(NaturalEvent, Cases54_EachOnce)
{
	for (const Cause &cause : kCauses) {
		SCOPED_TRACE(cause.name);
		Scene s(dev, pd, cause.with_srq);
		const void *element = cause.make(dev, s);
		EXPECT_STREQ(ibv_event_type_str(cause.type), cause.text);

		int others = 0, wanted = 0;
		while (!wanted || others < cause.others) {
			auto got = next_async(dev, patience());

			ASSERT_TRUE(got) << "no event came; expected " << ibv_event_type_str(cause.type);
			if (got->type == cause.type && got->element == element)
				wanted++;
			else
				others++;
			ASSERT_LE(wanted, 1) << "twice";
			ASSERT_LE(others, cause.others) << "unexpected: " << ibv_event_type_str(got->type);
		}
		if (cause.explained_by >= 0) {
			ibv_cq *cq = cause.type == IBV_EVENT_SQ_DRAINED ? s.p.b.scq : s.p.b.rcq;
			ibv_wc wc{};

			ASSERT_EQ(ibv_poll_cq(cq, 1, &wc), 1) << "the event came before its completion";
			EXPECT_EQ(wc.status, cause.explained_by);
		}
		EXPECT_EQ(state_of(s.p.b), cause.after);
		expect_no_async(dev);
		if (cause.type == IBV_EVENT_SRQ_LIMIT_REACHED) {
			ibv_srq_attr attr{};

			ASSERT_EQ(ibv_query_srq(s.srq, &attr), 0);
			EXPECT_EQ(attr.srq_limit, 0u);
		}
	}
}
