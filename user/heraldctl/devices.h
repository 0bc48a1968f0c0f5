/* SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB */
/* herald's devices, and what is known of them. */
#ifndef HERALDCTL_DEVICES_H
#define HERALDCTL_DEVICES_H

#include "rdma_netlink.h"
#include "sys.h"

#include <nlohmann/json_fwd.hpp>

namespace heraldctl {

struct Gid {
	unsigned index = 0;
	std::string gid;
	std::string type; /* RoCE v2 */
	std::string netdev;
};

struct Device {
	uint32_t index = 0;
	std::string name;
	std::string version;
	std::string node_guid;
	std::string state; /* of the port */
	std::string netdev;
	int allow = -1; /* provoking: 1, 0, or not known */
	std::vector<Gid> gids;
	std::vector<NlCount> resources;
	std::vector<NlUser> users;
};

/* All of herald's devices; other drivers' are left out. None if the kernel has no RDMA. */
std::vector<Device> find_devices();

/* That one; a Failure (NotFound) if there is none, or if it is another driver's. */
Device find_device(const std::string &name);

void add_link(const std::string &name, const std::string &netdev);
void delete_link(const std::string &name);

/* Why adding a link failed. */
std::string explain_add_link(int error, const std::string &name, const std::string &netdev);

nlohmann::ordered_json to_json(const Device &device);
std::string to_text(const Device &device);

/* "nfsd (kernel), ibv_asyncwatch (pid 12)" */
std::string user_names(const std::vector<NlUser> &users);

} // namespace heraldctl

#endif
