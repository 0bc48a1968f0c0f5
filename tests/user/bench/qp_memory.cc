// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
//
// What an idle RC queue pair with its CQ costs in memory.
//
//	bench_qp_memory DEVICE QPS
//
// Each queue pair has 16 send and 16 receive WRs of one SGE and a CQ of 32; on RoCE it is connected
// (to itself). Prints the members of a JSON object: bytes of the whole machine's memory per queue
// pair, and of these what the process maps for itself and what is charged to its memory cgroup.

#include <algorithm>
#include <array>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <string>
#include <vector>

#include <infiniband/verbs.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

namespace {

constexpr int kRounds = 3;
constexpr const char *kCgroup = "/sys/fs/cgroup/bench_qp_memory";

[[noreturn]] void die(const char *what)
{
	std::perror(what);
	std::exit(1);
}

struct Sample {
	long long machine = 0; // bytes in use
	long long process = 0; // resident
	long long charged = 0;
};

long long meminfo(const char *field)
{
	std::ifstream file("/proc/meminfo");
	std::string name, unit;
	long long value;

	while (file >> name >> value) {
		std::getline(file, unit);
		if (name == std::string(field) + ":")
			return value * 1024;
	}
	return 0;
}

Sample sample()
{
	Sample s;
	long long size = 0, resident = 0;

	s.machine = -(meminfo("MemFree") + meminfo("Buffers") + meminfo("Cached"));
	std::ifstream("/proc/self/statm") >> size >> resident;
	s.process = resident * sysconf(_SC_PAGESIZE);
	std::ifstream(std::string(kCgroup) + "/memory.current") >> s.charged;
	return s;
}

void join_cgroup()
{
	std::ofstream("/sys/fs/cgroup/cgroup.subtree_control") << "+memory" << std::flush;
	mkdir(kCgroup, 0755);
	std::ofstream(std::string(kCgroup) + "/cgroup.procs") << getpid() << std::flush;
}

class Device {
public:
	explicit Device(const char *name)
	{
		int n = 0;
		ibv_device **list = ibv_get_device_list(&n);

		for (int i = 0; list && i < n; i++) {
			if (!std::strcmp(ibv_get_device_name(list[i]), name))
				context_ = ibv_open_device(list[i]);
		}
		if (list)
			ibv_free_device_list(list);
		if (!context_)
			die(name);
		pd_ = ibv_alloc_pd(context_);
		if (!pd_)
			die("ibv_alloc_pd");
		find_gid();
	}

	struct Pair {
		ibv_cq *cq;
		ibv_qp *qp;
	};

	Pair create() const
	{
		Pair pair{};

		pair.cq = ibv_create_cq(context_, 32, nullptr, nullptr, 0);
		if (!pair.cq)
			die("ibv_create_cq");
		ibv_qp_init_attr init{};

		init.send_cq = init.recv_cq = pair.cq;
		init.qp_type = IBV_QPT_RC;
		init.cap.max_send_wr = init.cap.max_recv_wr = 16;
		init.cap.max_send_sge = init.cap.max_recv_sge = 1;
		pair.qp = ibv_create_qp(pd_, &init);
		if (!pair.qp)
			die("ibv_create_qp");
		if (gid_index_ >= 0)
			connect(pair.qp);
		return pair;
	}

	static void destroy(const Pair &pair)
	{
		if (ibv_destroy_qp(pair.qp) || ibv_destroy_cq(pair.cq))
			die("destroy");
	}

private:
	// The first GID of the port: connecting to oneself needs no particular one.
	void find_gid()
	{
		ibv_port_attr port{};

		if (ibv_query_port(context_, 1, &port))
			die("ibv_query_port");
		mtu_ = port.active_mtu;
		if (context_->device->transport_type != IBV_TRANSPORT_IB)
			return;
		for (int i = 0; i < port.gid_tbl_len && gid_index_ < 0; i++) {
			ibv_gid_entry entry{};

			if (!ibv_query_gid_ex(context_, 1, i, &entry, 0) && entry.gid_type == IBV_GID_TYPE_ROCE_V2) {
				gid_ = entry.gid;
				gid_index_ = i;
			}
		}
	}

	void connect(ibv_qp *qp) const
	{
		ibv_qp_attr attr{};

		attr.qp_state = IBV_QPS_INIT;
		attr.port_num = 1;
		modify(qp, attr, IBV_QP_STATE | IBV_QP_PKEY_INDEX | IBV_QP_PORT | IBV_QP_ACCESS_FLAGS);
		attr.qp_state = IBV_QPS_RTR;
		attr.path_mtu = mtu_;
		attr.dest_qp_num = qp->qp_num;
		attr.max_dest_rd_atomic = 1;
		attr.min_rnr_timer = 12;
		attr.ah_attr.is_global = 1;
		attr.ah_attr.port_num = 1;
		attr.ah_attr.grh.dgid = gid_;
		attr.ah_attr.grh.sgid_index = static_cast<uint8_t>(gid_index_);
		attr.ah_attr.grh.hop_limit = 1;
		modify(qp, attr,
		       IBV_QP_STATE | IBV_QP_AV | IBV_QP_PATH_MTU | IBV_QP_DEST_QPN | IBV_QP_RQ_PSN |
			       IBV_QP_MAX_DEST_RD_ATOMIC | IBV_QP_MIN_RNR_TIMER);
		attr.qp_state = IBV_QPS_RTS;
		attr.timeout = 14;
		attr.retry_cnt = attr.rnr_retry = 7;
		attr.max_rd_atomic = 1;
		modify(qp, attr,
		       IBV_QP_STATE | IBV_QP_TIMEOUT | IBV_QP_RETRY_CNT | IBV_QP_RNR_RETRY | IBV_QP_SQ_PSN |
			       IBV_QP_MAX_QP_RD_ATOMIC);
	}

	static void modify(ibv_qp *qp, ibv_qp_attr &attr, int mask)
	{
		if (ibv_modify_qp(qp, &attr, mask))
			die("ibv_modify_qp");
	}

	ibv_context *context_ = nullptr;
	ibv_pd *pd_ = nullptr;
	ibv_mtu mtu_ = IBV_MTU_1024;
	ibv_gid gid_{};
	int gid_index_ = -1;
};

Sample one_round(const Device &device, int n)
{
	std::vector<Device::Pair> pairs;

	pairs.reserve(n);
	const Sample before = sample();

	for (int i = 0; i < n; i++)
		pairs.push_back(device.create());
	const Sample after = sample();

	for (const auto &pair : pairs)
		Device::destroy(pair);
	return {(after.machine - before.machine) / n, (after.process - before.process) / n,
		(after.charged - before.charged) / n};
}

template <typename F> long long median(std::array<Sample, kRounds> samples, F field)
{
	std::sort(samples.begin(), samples.end(),
		  [&](const Sample &a, const Sample &b) { return field(a) < field(b); });
	return field(samples[kRounds / 2]);
}

} // namespace

int main(int argc, char **argv)
{
	const int n = argc == 3 ? std::atoi(argv[2]) : 0;

	if (n <= 0) {
		std::fprintf(stderr, "usage: %s DEVICE QPS\n", argv[0]);
		return 2;
	}
	join_cgroup();
	const Device device(argv[1]);
	std::array<Sample, kRounds> rounds;

	one_round(device, n / 10 + 1); // caches and heap warm up
	for (auto &round : rounds)
		round = one_round(device, n);
	std::printf("\"qps\": %d, \"bytes\": %lld, \"process_bytes\": %lld, \"charged_bytes\": %lld\n", n,
		    median(rounds, [](const Sample &s) { return s.machine; }),
		    median(rounds, [](const Sample &s) { return s.process; }),
		    median(rounds, [](const Sample &s) { return s.charged; }));
	return 0;
}
