/* SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB */
/*
 * Makes every allocation of one verb fail, once each: the first, the second, and so on, until the verb asks for fewer
 * (Documentation/fault-injection: fail-nth). The verb may fail, with an error that says so, or succeed; what it made is
 * destroyed. The knob makes copies from and to user space fail, too, by the same count.
 *
 *	fail_nth_sweep DEVICE context|pd|cq|qp|srq|mr|mw|ah|resize|modify|attach
 *	fail_nth_sweep DEVICE link NETDEV	makes and deletes links of the name fl0 on NETDEV; DEVICE is not used
 *
 * With SPARSE=N in the environment the numbers grow by a half from N on: the verb's first allocations, one by one, and
 * then fewer and fewer of the many that the core makes.
 */
#include <infiniband/verbs.h>
#include <rdma/rdma_netlink.h>

#include <fcntl.h>
#include <linux/netlink.h>
#include <sys/mman.h>
#include <sys/socket.h>
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

/* Each makes one object under fire, and gives back how to destroy it; an empty function, and errno, if there is none. */
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
	errno = ibv_resize_cq(cq, cq->cqe > 100 ? 16 : 500);
	return errno ? Undo() : Undo([] {});
}

int to_init(ibv_qp *qp)
{
	ibv_qp_attr attr{};

	attr.qp_state = IBV_QPS_INIT;
	attr.port_num = 1;
	return ibv_modify_qp(qp, &attr, IBV_QP_STATE | IBV_QP_PKEY_INDEX | IBV_QP_PORT | IBV_QP_ACCESS_FLAGS);
}

int to_rtr(ibv_qp *qp)
{
	ibv_qp_attr attr{};

	attr.qp_state = IBV_QPS_RTR;
	attr.path_mtu = IBV_MTU_1024;
	attr.dest_qp_num = qp->qp_num;
	attr.max_dest_rd_atomic = 1;
	attr.ah_attr.is_global = 1;
	attr.ah_attr.port_num = 1;
	attr.ah_attr.grh.dgid = gid;
	attr.ah_attr.grh.sgid_index = static_cast<uint8_t>(gid_index);
	attr.ah_attr.grh.hop_limit = 64;
	return ibv_modify_qp(qp, &attr,
			     IBV_QP_STATE | IBV_QP_AV | IBV_QP_PATH_MTU | IBV_QP_DEST_QPN | IBV_QP_RQ_PSN |
				     IBV_QP_MAX_DEST_RD_ATOMIC | IBV_QP_MIN_RNR_TIMER);
}

void to_reset(ibv_qp *qp)
{
	ibv_qp_attr attr{};

	attr.qp_state = IBV_QPS_RESET;
	ibv_modify_qp(qp, &attr, IBV_QP_STATE);
}

Undo try_modify()
{
	static ibv_qp *qp;

	if (!qp)
		qp = must(make_qp(IBV_QPT_RC), "qp");
	errno = to_init(qp);
	if (!errno)
		errno = to_rtr(qp);
	/* what failed half-way is undone just the same, after its error was noted */
	if (errno) {
		int error = errno;

		fail_nth(0);
		to_reset(qp);
		errno = error;
		return {};
	}
	return [] { to_reset(qp); };
}

Undo try_attach()
{
	ibv_gid group{};

	if (!ud)
		ud = must(make_qp(IBV_QPT_UD), "qp");
	group.raw[10] = group.raw[11] = 0xff;
	group.raw[12] = 239;
	group.raw[15] = 9;
	errno = ibv_attach_mcast(ud, &group, 0);
	if (errno)
		return {};
	return [group] { ibv_detach_mcast(ud, &group, 0); };
}

/* Links are made by a message that is worked off while it is sent: what it allocates is the sender's. */
constexpr char kLink[] = "fl0";
const char *netdev;
int netlink = -1;

struct Message {
	nlmsghdr head{};
	char room[256]{};

	Message(int command)
	{
		head.nlmsg_len = NLMSG_HDRLEN;
		head.nlmsg_type = static_cast<uint16_t>(RDMA_NL_GET_TYPE(RDMA_NL_NLDEV, command));
		head.nlmsg_flags = NLM_F_REQUEST | NLM_F_ACK;
	}

	Message &put(int type, const void *data, size_t len)
	{
		nlattr *attr = reinterpret_cast<nlattr *>(reinterpret_cast<char *>(this) + head.nlmsg_len);

		attr->nla_type = static_cast<uint16_t>(type);
		attr->nla_len = static_cast<uint16_t>(NLA_HDRLEN + len);
		memcpy(reinterpret_cast<char *>(attr) + NLA_HDRLEN, data, len);
		head.nlmsg_len += static_cast<uint32_t>(NLA_HDRLEN + NLA_ALIGN(len));
		return *this;
	}
	Message &put(int type, const char *text) { return put(type, text, strlen(text) + 1); }

	/* 0 or the errno of the answer; of its absence, if there was no memory for one */
	int ask() const
	{
		struct {
			nlmsghdr head;
			nlmsgerr error;
			char room[512];
		} answer{};

		if (send(netlink, &head, head.nlmsg_len, 0) < 0 ||
		    recv(netlink, &answer, sizeof(answer), MSG_DONTWAIT) < 0)
			return errno;
		return -answer.error.error;
	}
};

/* -1: there is none. */
int link_index()
{
	ibv_device **list = must(ibv_get_device_list(nullptr), "devices");
	int index = -1;

	for (int i = 0; list[i]; i++) {
		if (!strcmp(ibv_get_device_name(list[i]), kLink))
			index = ibv_get_device_index(list[i]);
	}
	ibv_free_device_list(list);
	return index;
}

void delete_link()
{
	const int index = link_index();
	const int error = Message(RDMA_NLDEV_CMD_DELLINK).put(RDMA_NLDEV_ATTR_DEV_INDEX, &index, sizeof(index)).ask();

	if (error) {
		fprintf(stderr, "deleting %s (%d): %s\n", kLink, index, strerror(error));
		exit(1);
	}
}

Undo try_link()
{
	if (netlink < 0)
		netlink = socket(AF_NETLINK, SOCK_RAW, NETLINK_RDMA);
	if (netlink < 0) {
		perror("netlink");
		exit(1);
	}
	int error = Message(RDMA_NLDEV_CMD_NEWLINK)
			    .put(RDMA_NLDEV_ATTR_DEV_NAME, kLink)
			    .put(RDMA_NLDEV_ATTR_LINK_TYPE, "herald")
			    .put(RDMA_NLDEV_ATTR_NDEV_NAME, netdev)
			    .ask();

	/* only the answer may be missing */
	if (error == ENOBUFS || error == EAGAIN || error == EFAULT) {
		fail_nth(0);
		if (link_index() >= 0)
			error = 0;
	}
	errno = error;
	return error ? Undo() : Undo(delete_link);
}

const std::map<std::string, Undo (*)()> verbs = {
	{"context", try_context}, {"pd", try_pd},         {"cq", try_cq},         {"qp", try_qp},
	{"srq", try_srq},         {"mr", try_mr},         {"mw", try_mw},         {"ah", try_ah},
	{"resize", try_resize},   {"modify", try_modify}, {"attach", try_attach}, {"link", try_link},
};

/*
 * No memory; or no access to the caller's, which is what a failed copy looks like. If the device's node cannot be opened,
 * libibverbs looks for it elsewhere, and does not find it.
 */
bool says_so(int error, Undo (*verb)())
{
	return error == ENOMEM || error == ENOBUFS || error == EFAULT || (error == ENOENT && verb == try_context);
}

/* False if the verb did not survive. */
bool sweep(const char *name, Undo (*verb)())
{
	const char *sparse = getenv("SPARSE");
	const unsigned int slow = sparse ? static_cast<unsigned int>(atoi(sparse)) : 0;
	std::map<int, unsigned int> errors;
	unsigned int failed = 0, strange = 0, tries = 0;

	for (unsigned int n = 1; n < 50000; n += slow && n >= slow ? n / 2 : 1) {
		tries++;
		fail_nth(n);
		Undo undo = verb();
		const int error = errno;
		const bool reached = left() == 0;

		fail_nth(0);
		if (undo) {
			undo();
		} else if (!reached) {
			fprintf(stderr, "%s fails although no allocation did: %s\n", name, strerror(error));
			return false;
		} else {
			failed++;
			errors[error]++;
			if (!says_so(error, verb)) {
				fprintf(stderr, "%s: allocation %u fails, and the error is: %s\n", name, n,
					strerror(error));
				strange++;
			}
		}
		if (!reached) {
			printf("%s: fewer than %u allocations, %u of them tried, %u failures", name, n, tries, failed);
			for (auto [number, count] : errors)
				printf(", %u %s", count, strerrorname_np(number));
			printf("\n");
			/* and it still works */
			undo = verb();
			if (undo)
				undo();
			else
				perror(name);
			return undo && n > 1 && !strange;
		}
	}
	fprintf(stderr, "%s: no end\n", name);
	return false;
}

} // namespace

int main(int argc, char **argv)
{
	if (argc < 3 || !verbs.count(argv[2]) || (argc == 4) != !strcmp(argv[2], "link")) {
		fprintf(stderr, "usage: fail_nth_sweep DEVICE VERB | DEVICE link NETDEV\n");
		return 2;
	}
	netdev = argv[3];
	knob = open("/proc/thread-self/fail-nth", O_RDWR);
	if (knob < 0) {
		perror("fail-nth");
		return 2;
	}
	prepare(argv[1]);
	/* a page fault whose page tables are refused is tried again, with words in the kernel's log: none from here on */
	mlockall(MCL_CURRENT | MCL_FUTURE);
	/* what a first call allocates for ever is not in the count */
	auto verb = verbs.at(argv[2]);
	if (Undo undo = verb())
		undo();
	return sweep(argv[2], verb) ? 0 : 1;
}
