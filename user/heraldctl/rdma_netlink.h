/* SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB */
/* RDMA netlink: links, devices, and who uses them. */
#ifndef HERALDCTL_RDMA_NETLINK_H
#define HERALDCTL_RDMA_NETLINK_H

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

struct nl_msg;
struct nl_sock;
struct nlattr;

namespace heraldctl {

struct NlDevice {
	uint32_t index = 0;
	std::string name;
	std::string firmware;
	uint64_t node_guid = 0;
};

struct NlPort {
	std::string netdev; /* empty: in another network namespace */
	uint8_t state = 0;
};

/* Something that uses a device: a process, or a module of the kernel. */
struct NlUser {
	long pid = 0;
	std::string kernel;
};

struct NlCount {
	std::string what;
	uint64_t number = 0;
};

class RdmaNetlink {
public:
	/* A Failure if the kernel has no RDMA netlink. */
	RdmaNetlink();

	std::vector<NlDevice> devices();
	NlPort port(uint32_t device);
	/* qp, cq, mr ... */
	std::vector<NlCount> resources(uint32_t device);
	/* Processes that have it open, and kernel consumers (by their PDs; not the RDMA core itself). */
	std::vector<NlUser> users(uint32_t device);

	/* 0, or errno */
	int add_link(const std::string &name, const std::string &netdev);
	int delete_link(uint32_t device);

private:
	struct Free {
		void operator()(nl_sock *socket) const;
		void operator()(nl_msg *message) const;
	};
	using Message = std::unique_ptr<nl_msg, Free>;
	using Attributes = nlattr **;

	/* A request for this device; more may be put into it. */
	static Message request(int command, int flags);
	/* Sends it, and calls back for each answer until the acknowledgement. 0, or errno. */
	int ask(Message message, const std::function<void(Attributes)> &answer);
	void dump(int command, uint32_t device, const std::function<void(Attributes)> &answer);

	std::unique_ptr<nl_sock, Free> socket_;
};

/* ACTIVE, DOWN ... of enum ib_port_state */
std::string port_state_name(uint8_t state);

} // namespace heraldctl

#endif
