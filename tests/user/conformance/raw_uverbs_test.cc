/* SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB */
/*
 * Commands that no library would send: truncated, too long, with bits that nobody defined, with addresses that are
 * nobody's, or plain noise. Refused or harmless; nothing left behind; an innocent process goes on.
 */
#include "pair.h"
#include "process.h"

#include <fcntl.h>
#include <rdma/herald-ioctl.h>
#include <rdma/ib_user_verbs.h>
#include <rdma/rdma_user_ioctl.h>
#include <rdma/rdma_user_ioctl_cmds.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <unistd.h>

#include <functional>

using namespace conformance;

namespace {

/* The uverbs device, opened without the library. */
class Raw {
public:
	explicit Raw(const Device &dev)
	{
		std::string path = std::string("/dev/infiniband/") + dev.ctx->device->dev_name;

		fd = open(path.c_str(), O_RDWR | O_CLOEXEC);
		require(fd >= 0, path);
	}
	~Raw()
	{
		if (async >= 0)
			close(async);
		close(fd);
	}
	Raw(const Raw &) = delete;

	/* One command: its struct, the driver's part after it, and room for the answers of both. 0 or an errno. */
	int command(uint32_t number, const void *core, size_t core_len, const std::vector<uint8_t> &udata, void *answer,
		    size_t answer_len)
	{
		std::vector<uint8_t> buf(sizeof(ib_uverbs_cmd_hdr) + core_len + udata.size());
		auto *hdr = reinterpret_cast<ib_uverbs_cmd_hdr *>(buf.data());
		uint64_t where = reinterpret_cast<uintptr_t>(answer);

		hdr->command = number;
		hdr->in_words = buf.size() / 4;
		hdr->out_words = answer_len / 4;
		memcpy(buf.data() + sizeof(*hdr), core, core_len);
		/* every command's first field is where the answer goes */
		memcpy(buf.data() + sizeof(*hdr), &where, sizeof(where));
		if (!udata.empty())
			memcpy(buf.data() + sizeof(*hdr) + core_len, udata.data(), udata.size());
		return write(fd, buf.data(), buf.size()) == static_cast<ssize_t>(buf.size()) ? 0 : errno;
	}

	void get_context()
	{
		ib_uverbs_get_context cmd{};
		uint8_t answer[256] = {};
		ib_uverbs_get_context_resp resp;

		require_ok(command(IB_USER_VERBS_CMD_GET_CONTEXT, &cmd, sizeof(cmd), {}, answer, sizeof(answer)),
			   "GET_CONTEXT");
		memcpy(&resp, answer, sizeof(resp));
		async = resp.async_fd;
	}

	int fd = -1, async = -1;
};

/* A command that makes an object. */
struct Maker {
	const char *name;
	uint32_t number;
	std::vector<uint8_t> core;
	size_t answer; /* bytes of the core's answer */
};

template <class T> std::vector<uint8_t> bytes(const T &t)
{
	auto *p = reinterpret_cast<const uint8_t *>(&t);

	return {p, p + sizeof(t)};
}

std::vector<uint8_t> filled(size_t n, uint8_t value, ssize_t odd = -1)
{
	std::vector<uint8_t> v(n, value);

	if (odd >= 0)
		v[odd] = 1;
	return v;
}

} // namespace

class RawTest : public ::testing::Test {
protected:
	uint32_t handle(uint32_t number, const std::vector<uint8_t> &core)
	{
		uint8_t answer[512] = {};
		uint32_t h;

		require_ok(raw.command(number, core.data(), core.size(), {}, answer, sizeof(answer)),
			   "a plain command");
		memcpy(&h, answer, 4);
		return h;
	}

	std::vector<Maker> makers()
	{
		ib_uverbs_alloc_pd pd{};
		ib_uverbs_create_cq cq{};
		ib_uverbs_create_qp qp{};
		ib_uverbs_create_srq srq{};
		ib_uverbs_reg_mr mr{};
		ib_uverbs_create_ah ah{};
		static uint8_t memory[8192] __attribute__((aligned(4096)));
		std::vector<Maker> all;

		cq.cqe = 16;
		cq.comp_channel = -1;
		all.push_back({"pd", IB_USER_VERBS_CMD_ALLOC_PD, bytes(pd), sizeof(ib_uverbs_alloc_pd_resp)});
		all.push_back({"cq", IB_USER_VERBS_CMD_CREATE_CQ, bytes(cq), sizeof(ib_uverbs_create_cq_resp)});
		uint32_t pd_handle = handle(IB_USER_VERBS_CMD_ALLOC_PD, bytes(pd));
		uint32_t cq_handle = handle(IB_USER_VERBS_CMD_CREATE_CQ, bytes(cq));
		qp.pd_handle = pd_handle;
		qp.send_cq_handle = qp.recv_cq_handle = cq_handle;
		qp.max_send_wr = qp.max_recv_wr = 4;
		qp.max_send_sge = qp.max_recv_sge = 1;
		qp.qp_type = IBV_QPT_RC;
		all.push_back({"qp", IB_USER_VERBS_CMD_CREATE_QP, bytes(qp), sizeof(ib_uverbs_create_qp_resp)});
		srq.pd_handle = pd_handle;
		srq.max_wr = 4;
		srq.max_sge = 1;
		all.push_back({"srq", IB_USER_VERBS_CMD_CREATE_SRQ, bytes(srq), sizeof(ib_uverbs_create_srq_resp)});
		mr.start = mr.hca_va = reinterpret_cast<uintptr_t>(memory);
		mr.length = sizeof(memory);
		mr.pd_handle = pd_handle;
		mr.access_flags = kAllAccess;
		all.push_back({"mr", IB_USER_VERBS_CMD_REG_MR, bytes(mr), sizeof(ib_uverbs_reg_mr_resp)});
		ah.pd_handle = pd_handle;
		ah.attr.is_global = 1;
		ah.attr.port_num = 1;
		ah.attr.grh.sgid_index = static_cast<uint8_t>(dev.gid_index());
		ah.attr.grh.hop_limit = 64;
		memcpy(ah.attr.grh.dgid, dev.gid(dev.gid_index()).raw, 16);
		all.push_back({"ah", IB_USER_VERBS_CMD_CREATE_AH, bytes(ah), sizeof(ib_uverbs_create_ah_resp)});
		return all;
	}

	int make(const Maker &m, const std::vector<uint8_t> &udata, size_t room, void *where = nullptr)
	{
		uint8_t answer[1024] = {};

		return raw.command(m.number, m.core.data(), m.core.size(), udata, where ? where : answer, room);
	}

	Device dev;
	Raw raw{dev};
};

/* Unknown bits after what is known: refused if set, ignored if zero. */
TEST_F(RawTest, UnknownUdata)
{
	raw.get_context();
	for (auto &m : makers()) {
		SCOPED_TRACE(m.name);
		EXPECT_EQ(make(m, {}, 512), 0) << "no driver part at all";
		EXPECT_EQ(make(m, filled(64, 0), 512), 0);
		EXPECT_EQ(make(m, filled(1024, 0), 512), 0);
		for (size_t at : {8u, 16u, 60u}) {
			int rc = make(m, filled(64, 0, at), 512);
			EXPECT_TRUE(rc == EINVAL || rc == EOPNOTSUPP) << at << ": " << rc;
		}
		int rc = make(m, filled(4096, 0, 4095), 512);
		EXPECT_TRUE(rc == EINVAL || rc == EOPNOTSUPP) << rc;
	}
}

/* Reserved fields are checked. */
TEST_F(RawTest, ReservedUdata)
{
	raw.get_context();
	for (auto &m : makers()) {
		SCOPED_TRACE(m.name);
		for (size_t at : {0u, 7u}) {
			int rc = make(m, filled(8, 0, at), 512);
			EXPECT_TRUE(rc == EINVAL || rc == EOPNOTSUPP) << at << ": " << rc;
		}
	}
}

/* Every shorter form of each command; any answer but a crash. */
TEST_F(RawTest, TruncatedCommands)
{
	raw.get_context();
	auto before = resources(dev.name);
	for (auto &m : makers()) {
		SCOPED_TRACE(m.name);
		for (size_t len = 8; len < m.core.size(); len += 4) {
			Maker cut = m;

			cut.core.resize(len);
			EXPECT_NE(make(cut, {}, 512), 0) << len;
		}
		for (size_t len = 4; len < 64; len += 4)
			make(m, filled(len, 0), 512);
		for (size_t room = 0; room < 128; room += 4) {
			int rc = make(m, filled(64, 0), room);
			/* too small for the core's own answer is an error of the core */
			EXPECT_TRUE(rc != 0 || room >= m.answer) << room;
		}
	}
}

/* An answer that cannot be written: EFAULT, and the object is gone again. */
TEST_F(RawTest, AnswerNowhere)
{
	raw.get_context();
	auto all = makers();
	auto before = resources(dev.name);
	void *wall = mmap(nullptr, 8192, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	ASSERT_NE(wall, MAP_FAILED);
	ASSERT_EQ(mprotect(static_cast<char *>(wall) + 4096, 4096, PROT_NONE), 0);
	for (auto &m : all) {
		SCOPED_TRACE(m.name);
		EXPECT_EQ(make(m, filled(64, 0), 512, reinterpret_cast<void *>(8)), EFAULT);
		/* the core's part can be written, the driver's cannot, or only half of it */
		for (size_t room : {m.answer, m.answer + 4, m.answer + 8}) {
			if (m.answer + 64 > 4096)
				continue;
			auto *where = static_cast<char *>(wall) + 4096 - room;
			make(m, filled(64, 0), 512, where);
		}
	}
	munmap(wall, 8192);
	/* whatever succeeded goes with the file */
	close(std::exchange(raw.async, -1));
	int fd = std::exchange(raw.fd, open("/dev/null", O_RDWR));
	close(fd);
	auto now = resources(dev.name);
	if (!now.empty()) {
		auto base = before;
		for (auto *kind : {"pd", "cq", "qp", "mr", "srq"}) {
			EXPECT_LE(now[kind], base[kind]) << kind;
		}
	}
}

/* Noise of every length to every command, with and without a context. */
TEST_F(RawTest, NoiseByWrite)
{
	Victim victim;

	for (bool context : {false, true}) {
		Raw own(dev);
		Random rnd(context);

		if (context)
			own.get_context();
		for (int i = 0; i < 20000 / slowness(); i++) {
			uint8_t buf[512];
			size_t len = rnd.below(64) * 4;

			for (size_t k = 0; k < sizeof(buf); k += 8) {
				uint64_t v = rnd.below(3) ? rnd.below(4) : rnd.next();
				memcpy(buf + k, &v, 8);
			}
			auto *hdr = reinterpret_cast<ib_uverbs_cmd_hdr *>(buf);
			hdr->command = rnd.below(80) | (rnd.below(4) ? 0 : 0x80000000u);
			hdr->in_words = rnd.below(8) ? len / 4 : rnd.next();
			hdr->out_words = rnd.below(64);
			if (write(own.fd, buf, len) == 0)
				break;
		}
	}
	victim.check();
}

/* Noise to the other interface: RDMA_VERBS_IOCTL. */
TEST_F(RawTest, NoiseByIoctl)
{
	Victim victim;

	for (bool context : {false, true}) {
		Raw own(dev);
		Random rnd(context + 10);
		static uint8_t scratch[4096];

		if (context)
			own.get_context();
		for (int i = 0; i < 20000 / slowness(); i++) {
			alignas(8) uint8_t cmd[sizeof(ib_uverbs_ioctl_hdr) + 16 * sizeof(ib_uverbs_attr)] = {};
			auto *hdr = reinterpret_cast<ib_uverbs_ioctl_hdr *>(cmd);
			auto *attrs = reinterpret_cast<ib_uverbs_attr *>(cmd + sizeof(*hdr));
			unsigned int n = rnd.below(8);

			hdr->length = rnd.below(16) ? sizeof(*hdr) + n * sizeof(*attrs) : rnd.next();
			hdr->object_id = rnd.below(20);
			hdr->method_id = rnd.below(16) | (rnd.below(4) ? 0 : HERALD_METHOD_DOORBELL);
			hdr->num_attrs = rnd.below(16) ? n : rnd.next();
			for (unsigned int k = 0; k < n; k++) {
				attrs[k].attr_id = rnd.below(8) ? rnd.below(16) : 0x1000 + rnd.below(4);
				attrs[k].len = rnd.below(3) ? 8 * rnd.below(12) : rnd.next();
				attrs[k].flags = rnd.below(4) ? uint64_t(UVERBS_ATTR_F_MANDATORY) : rnd.next();
				attrs[k].data = rnd.below(2) ? reinterpret_cast<uintptr_t>(scratch) : rnd.below(8);
			}
			ioctl(own.fd, RDMA_VERBS_IOCTL, cmd);
		}
	}
	victim.check();
}

/* Handles that are nobody's, or of another kind. */
TEST_F(RawTest, WrongHandles)
{
	raw.get_context();
	auto all = makers();
	Random rnd(3);

	for (int i = 0; i < 2000; i++) {
		Maker m = all[rnd.below(all.size())];
		/* everything behind the address of the answer */
		if (m.core.size() <= 8)
			continue;
		size_t at = 8 + rnd.below((m.core.size() - 8) / 4) * 4;
		uint32_t v = rnd.below(2) ? rnd.below(40) : rnd.next();

		memcpy(m.core.data() + at, &v, 4);
		if (m.number == IB_USER_VERBS_CMD_CREATE_CQ || m.number == IB_USER_VERBS_CMD_CREATE_SRQ) {
			/* a valid size may be huge: that is not what is tried here */
			if (at == 20 || at == 16)
				continue;
		}
		make(m, {}, 512);
	}
}

/* What a process may do itself in its rings is no command of the device. */
TEST_F(RawTest, PostingCommands)
{
	raw.get_context();
	auto all = makers();
	ib_uverbs_post_send post{};
	uint8_t answer[64];

	post.qp_handle = handle(all[2].number, all[2].core);
	post.wqe_size = sizeof(ib_uverbs_send_wr);
	for (uint32_t number :
	     {IB_USER_VERBS_CMD_POST_SEND, IB_USER_VERBS_CMD_POST_RECV, IB_USER_VERBS_CMD_POST_SRQ_RECV,
	      IB_USER_VERBS_CMD_POLL_CQ, IB_USER_VERBS_CMD_REQ_NOTIFY_CQ})
		EXPECT_EQ(raw.command(number, &post, sizeof(post), {}, answer, sizeof(answer)), EOPNOTSUPP) << number;
}

/* One doorbell, with an attribute of @len bytes. 0 or an errno. */
static int ring(const Raw &raw, uint32_t qpn, uint32_t queues, uint16_t len = sizeof(herald_doorbell))
{
	alignas(8) uint8_t cmd[sizeof(ib_uverbs_ioctl_hdr) + sizeof(ib_uverbs_attr)] = {};
	static const herald_doorbell longer[8] = {};
	herald_doorbell bell{qpn, queues};
	ib_uverbs_ioctl_hdr hdr{};
	ib_uverbs_attr attr{};

	hdr.length = sizeof(cmd);
	hdr.object_id = UVERBS_OBJECT_DEVICE;
	hdr.method_id = HERALD_METHOD_DOORBELL;
	hdr.num_attrs = 1;
	hdr.driver_id = RDMA_DRIVER_UNKNOWN;
	attr.attr_id = HERALD_ATTR_DOORBELL;
	attr.len = len;
	attr.flags = UVERBS_ATTR_F_MANDATORY;
	if (len > sizeof(attr.data))
		attr.data = reinterpret_cast<uintptr_t>(longer);
	else
		memcpy(&attr.data, &bell, sizeof(bell));
	memcpy(cmd, &hdr, sizeof(hdr));
	memcpy(cmd + sizeof(hdr), &attr, sizeof(attr));
	return ioctl(raw.fd, RDMA_VERBS_IOCTL, cmd) ? errno : 0;
}

/* herald-ioctl.h: a doorbell for nothing, for a QP in RESET, for another's, before there is a context. */
TEST_F(RawTest, Doorbells)
{
	Pd pd = make_pd(dev);
	Pair others(dev, pd);
	uint32_t qpn;

	EXPECT_NE(ring(raw, 0x1234, HERALD_DOORBELL_SEND), 0) << "no context";
	raw.get_context();
	{
		auto all = makers();
		uint8_t answer[512] = {};
		ib_uverbs_create_qp_resp made;

		require_ok(
			raw.command(all[2].number, all[2].core.data(), all[2].core.size(), {}, answer, sizeof(answer)),
			"CREATE_QP");
		memcpy(&made, answer, sizeof(made));
		qpn = made.qpn;
	}
	for (uint32_t queues : {1u, 2u, 3u, 0u, 4u, 7u, 0x80000001u, ~0u})
		EXPECT_EQ(ring(raw, qpn, queues), EINVAL) << "in RESET, queues " << queues;
	for (uint32_t number : {0u, 1u, qpn + 1, 0xffffffu, 0x1000000u | qpn, ~0u})
		EXPECT_EQ(ring(raw, number, HERALD_DOORBELL_SEND), EINVAL) << "number " << number;
	for (ibv_qp *qp : {others.a.qp.get(), others.b.qp.get()})
		EXPECT_EQ(ring(raw, qp->qp_num, HERALD_DOORBELL_SEND), EINVAL) << "another's QP in RTS";
	for (uint16_t len : {0, 4, 7, 9, 16, 64})
		EXPECT_NE(ring(raw, qpn, HERALD_DOORBELL_SEND, len), 0) << "length " << len;
}
