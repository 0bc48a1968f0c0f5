/* SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB */
/* Failing, with all that is known; the device. */
#include "common.h"

#include <sys/mman.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstdarg>
#include <cstdio>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <mutex>
#include <vector>

namespace torture {

Options options;
Totals totals;
Device device;
std::atomic<int> phase{kStorm};
bool suspicion;

/* ---------------------------------------------------------------- failing -- */

static std::mutex shown_lock;
static std::vector<const Shown *> shown;

Shown::Shown()
{
	std::lock_guard guard(shown_lock);

	shown.push_back(this);
}

Shown::~Shown()
{
	std::lock_guard guard(shown_lock);

	std::erase(shown, this);
}

/* The device's own account of this process's CQs: a header, and a line for each CQ that names the process. */
static void show_table(const std::filesystem::path &path)
{
	std::ifstream file(path);
	const std::string pid = std::to_string(getpid());
	std::string line;
	bool first = true;

	while (std::getline(file, line)) {
		if (first || line.find(pid) != std::string::npos)
			printf("%s\n", line.c_str());
		first = false;
	}
}

static void show_tables()
{
	std::error_code error;

	for (const auto &dir : std::filesystem::directory_iterator("/sys/kernel/debug/herald", error)) {
		if (std::filesystem::exists(dir.path() / "cqs", error))
			show_table(dir.path() / "cqs");
	}
}

void fail(const char *fmt, ...)
{
	static std::mutex once; /* the process ends with it locked */
	std::array<char, 300> what{};
	va_list args;

	va_start(args, fmt);
	vsnprintf(what.data(), what.size(), fmt, args);
	va_end(args);
	once.lock();
	printf("FAILED (seed %u): %s\n", options.seed, what.data());
	for (const Shown *s : shown)
		s->show();
	show_tables();
	printf("FAILED (seed %u): %s\n", options.seed, what.data());
	fflush(stdout);
	_exit(1);
}

void must(int rc, const char *what)
{
	if (rc > 0)
		errno = rc;
	else if (rc < -1)
		errno = -rc;
	if (rc)
		fail("%s: %m", what);
}

/* ---------------------------------------------------------------- device -- */

static ibv_context *open_named(const std::string &name)
{
	int n = 0;
	ibv_device **list = must(ibv_get_device_list(&n), "ibv_get_device_list");
	ibv_context *ctx = nullptr;

	for (int i = 0; i < n && !ctx; i++) {
		if (name.empty() || name == ibv_get_device_name(list[i]))
			ctx = must(ibv_open_device(list[i]), "ibv_open_device");
	}
	ibv_free_device_list(list);
	if (!ctx)
		fail("no device %s", name.c_str());
	return ctx;
}

void Device::open()
{
	static const ibv_gid none{};

	ctx = open_named(options.dev);
	pd = must(ibv_alloc_pd(ctx), "ibv_alloc_pd");
	mem = static_cast<char *>(
		mmap(nullptr, kMemory, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_POPULATE, -1, 0));
	if (mem == MAP_FAILED)
		fail("mmap: %m");
	mr = must(
		ibv_reg_mr(pd, mem, kMemory, IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_READ),
		"ibv_reg_mr");
	for (int i = 0; i < 64 && gid_index < 0; i++) {
		if (!ibv_query_gid(ctx, 1, i, &gid) && memcmp(&gid, &none, sizeof(gid)) != 0)
			gid_index = i;
	}
	if (gid_index < 0)
		fail("no GID");
}

void Device::close()
{
	must(ibv_dereg_mr(mr), "ibv_dereg_mr");
	must(ibv_dealloc_pd(pd), "ibv_dealloc_pd");
	must(ibv_close_device(ctx), "ibv_close_device");
	munmap(mem, kMemory);
}

void Device::to_state(ibv_qp *qp, ibv_qp_state state) const
{
	ibv_qp_attr attr{};

	attr.qp_state = state;
	must(ibv_modify_qp(qp, &attr, IBV_QP_STATE), "ibv_modify_qp");
}

void Device::to_rts(ibv_qp *qp, uint32_t dest) const
{
	ibv_qp_attr a{};

	a.qp_state = IBV_QPS_INIT;
	a.port_num = 1;
	a.qp_access_flags = IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_READ;
	must(ibv_modify_qp(qp, &a, IBV_QP_STATE | IBV_QP_PKEY_INDEX | IBV_QP_PORT | IBV_QP_ACCESS_FLAGS), "to INIT");
	a.qp_state = IBV_QPS_RTR;
	a.path_mtu = IBV_MTU_1024;
	a.dest_qp_num = dest;
	a.ah_attr.is_global = 1;
	a.ah_attr.port_num = 1;
	a.ah_attr.grh.dgid = gid;
	a.ah_attr.grh.sgid_index = static_cast<uint8_t>(gid_index);
	a.ah_attr.grh.hop_limit = 64;
	a.max_dest_rd_atomic = 4;
	a.min_rnr_timer = 1;
	must(ibv_modify_qp(qp, &a,
			   IBV_QP_STATE | IBV_QP_AV | IBV_QP_PATH_MTU | IBV_QP_DEST_QPN | IBV_QP_RQ_PSN |
				   IBV_QP_MAX_DEST_RD_ATOMIC | IBV_QP_MIN_RNR_TIMER),
	     "to RTR");
	a.qp_state = IBV_QPS_RTS;
	a.timeout = 8; /* about 1 ms: a peer in error is noticed soon */
	a.retry_cnt = 7;
	a.rnr_retry = 7;
	a.max_rd_atomic = 4;
	must(ibv_modify_qp(qp, &a,
			   IBV_QP_STATE | IBV_QP_TIMEOUT | IBV_QP_RETRY_CNT | IBV_QP_RNR_RETRY | IBV_QP_SQ_PSN |
				   IBV_QP_MAX_QP_RD_ATOMIC),
	     "to RTS");
}

void Device::connect(ibv_qp *a, ibv_qp *b) const
{
	to_rts(a, b->qp_num);
	to_rts(b, a->qp_num);
}

} // namespace torture
