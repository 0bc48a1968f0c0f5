/* SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB */
/*
 * Makes every allocation of one verb fail, once each: the first, the second, and so on, until the verb asks for fewer
 * (Documentation/fault-injection: fail-nth). The verb may fail or succeed; what it made is destroyed.
 *
 *	fail_nth_sweep DEVICE context|pd|cq|qp|srq|mr|mw|ah|resize|modify|attach
 */
#include <infiniband/verbs.h>

#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <functional>
#include <map>
#include <string>

namespace {

int knob = -1;

void fail_nth(unsigned int n)
{
	char text[16];
	int len = snprintf(text, sizeof(text), "%u", n);

	/* the write copies from user memory too, which is one of the things that the knob makes fail: then it is spent */
	for (int tries = 0; tries < 3; tries++) {
		if (pwrite(knob, text, len, 0) == len)
			return;
	}
	perror("fail-nth");
	exit(2);
}

/* 0 once the n-th allocation was reached and failed */
unsigned int left()
{
	char text[16] = {};

	return pread(knob, text, sizeof(text) - 1, 0) > 0 ? strtoul(text, nullptr, 10) : 0;
}

template <class T> T *must(T *p, const char *what)
{
	if (!p) {
		perror(what);
		exit(1);
	}
	return p;
}

ibv_device *device;
ibv_context *ctx;
ibv_pd *pd;
ibv_cq *cq;
ibv_qp *ud;
uint8_t *memory;
constexpr size_t kMemory = 1 << 20;
int gid_index;
ibv_gid gid;

void prepare(const char *name)
{
	ibv_device **list = must(ibv_get_device_list(nullptr), "devices");

	for (int i = 0; list[i]; i++) {
		if (!strcmp(ibv_get_device_name(list[i]), name))
			device = list[i];
	}
	must(device, name);
	ctx = must(ibv_open_device(device), "open");
	pd = must(ibv_alloc_pd(ctx), "pd");
	cq = must(ibv_create_cq(ctx, 16, nullptr, nullptr, 0), "cq");
	memory = static_cast<uint8_t *>(
		mmap(nullptr, kMemory, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_POPULATE, -1, 0));
	for (int i = 0; i < 64; i++) {
		ibv_gid_entry entry{};

		if (ibv_query_gid_ex(ctx, 1, i, &entry, 0) == 0 && entry.gid.raw[10] == 0xff && entry.gid.raw[0] == 0) {
			gid_index = i;
			gid = entry.gid;
		}
	}
}

ibv_qp *make_qp(ibv_qp_type type)
{
	ibv_qp_init_attr init{};

	init.qp_type = type;
	init.send_cq = init.recv_cq = cq;
	init.cap = {16, 16, 4, 4, 64};
	return ibv_create_qp(pd, &init);
}

/* Each makes one object under fire, and gives back how to destroy it; an empty function if there is none. */
using Undo = std::function<void()>;

Undo try_context()
{
	ibv_context *c = ibv_open_device(device);

	return c ? Undo([c] { ibv_close_device(c); }) : Undo();
}

Undo try_pd()
{
	ibv_pd *p = ibv_alloc_pd(ctx);

	return p ? Undo([p] { ibv_dealloc_pd(p); }) : Undo();
}

Undo try_cq()
{
	ibv_cq *c = ibv_create_cq(ctx, 300, nullptr, nullptr, 0);

	return c ? Undo([c] { ibv_destroy_cq(c); }) : Undo();
}

Undo try_qp()
{
	ibv_qp *q = make_qp(IBV_QPT_RC);

	return q ? Undo([q] { ibv_destroy_qp(q); }) : Undo();
}

Undo try_srq()
{
	ibv_srq_init_attr init{};

	init.attr = {64, 2, 0};
	ibv_srq *s = ibv_create_srq(pd, &init);
	return s ? Undo([s] { ibv_destroy_srq(s); }) : Undo();
}

Undo try_mr()
{
	ibv_mr *m = ibv_reg_mr(pd, memory, kMemory, IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE);

	return m ? Undo([m] { ibv_dereg_mr(m); }) : Undo();
}

Undo try_mw()
{
	ibv_mw *w = ibv_alloc_mw(pd, IBV_MW_TYPE_2);

	return w ? Undo([w] { ibv_dealloc_mw(w); }) : Undo();
}

Undo try_ah()
{
	ibv_ah_attr attr{};

	attr.is_global = 1;
	attr.port_num = 1;
	attr.grh.dgid = gid;
	attr.grh.sgid_index = static_cast<uint8_t>(gid_index);
	attr.grh.hop_limit = 64;
	ibv_ah *a = ibv_create_ah(pd, &attr);
	return a ? Undo([a] { ibv_destroy_ah(a); }) : Undo();
}

Undo try_resize()
{
	ibv_resize_cq(cq, cq->cqe > 100 ? 16 : 500);
	return {};
}

Undo try_modify()
{
	static ibv_qp *qp;
	ibv_qp_attr attr{};

	if (!qp) {
		fail_nth(0);
		qp = must(make_qp(IBV_QPT_RC), "qp");
		return {};
	}
	attr.qp_state = IBV_QPS_INIT;
	attr.port_num = 1;
	if (ibv_modify_qp(qp, &attr, IBV_QP_STATE | IBV_QP_PKEY_INDEX | IBV_QP_PORT | IBV_QP_ACCESS_FLAGS) == 0) {
		attr.qp_state = IBV_QPS_RTR;
		attr.path_mtu = IBV_MTU_1024;
		attr.dest_qp_num = qp->qp_num;
		attr.max_dest_rd_atomic = 1;
		attr.ah_attr.is_global = 1;
		attr.ah_attr.port_num = 1;
		attr.ah_attr.grh.dgid = gid;
		attr.ah_attr.grh.sgid_index = static_cast<uint8_t>(gid_index);
		attr.ah_attr.grh.hop_limit = 64;
		ibv_modify_qp(qp, &attr,
			      IBV_QP_STATE | IBV_QP_AV | IBV_QP_PATH_MTU | IBV_QP_DEST_QPN | IBV_QP_RQ_PSN |
				      IBV_QP_MAX_DEST_RD_ATOMIC | IBV_QP_MIN_RNR_TIMER);
	}
	return [] {
		ibv_qp_attr reset{};

		reset.qp_state = IBV_QPS_RESET;
		ibv_modify_qp(qp, &reset, IBV_QP_STATE);
	};
}

Undo try_attach()
{
	ibv_gid group{};

	if (!ud) {
		fail_nth(0);
		ud = must(make_qp(IBV_QPT_UD), "qp");
		return {};
	}
	group.raw[10] = group.raw[11] = 0xff;
	group.raw[12] = 239;
	group.raw[15] = 9;
	if (ibv_attach_mcast(ud, &group, 0))
		return {};
	return [group] { ibv_detach_mcast(ud, &group, 0); };
}

const std::map<std::string, Undo (*)()> verbs = {
	{"context", try_context}, {"pd", try_pd},         {"cq", try_cq},         {"qp", try_qp},
	{"srq", try_srq},         {"mr", try_mr},         {"mw", try_mw},         {"ah", try_ah},
	{"resize", try_resize},   {"modify", try_modify}, {"attach", try_attach},
};

} // namespace

int main(int argc, char **argv)
{
	if (argc != 3 || !verbs.count(argv[2])) {
		fprintf(stderr, "usage: fail_nth_sweep DEVICE VERB\n");
		return 2;
	}
	knob = open("/proc/thread-self/fail-nth", O_RDWR);
	if (knob < 0) {
		perror("fail-nth");
		return 2;
	}
	prepare(argv[1]);
	auto verb = verbs.at(argv[2]);
	if (Undo undo = verb())
		undo();
	unsigned int failed = 0;
	for (unsigned int n = 1; n < 5000; n++) {
		fail_nth(n);
		Undo undo = verb();
		bool reached = left() == 0;

		fail_nth(0);
		failed += !undo;
		if (undo)
			undo();
		if (!reached) {
			/* and it still works */
			if (undo || verb == try_resize) {
				printf("%s: %u allocations, %u failures\n", argv[2], n - 1, failed);
				return n > 1 || verb == try_resize ? 0 : 1;
			}
			fprintf(stderr, "%s fails although no allocation did: %s\n", argv[2], strerror(errno));
			return 1;
		}
	}
	fprintf(stderr, "%s: no end\n", argv[2]);
	return 1;
}
