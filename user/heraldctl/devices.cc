// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
#include "devices.h"

#include "control.h"
#include "failure.h"

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include <algorithm>
#include <cerrno>

namespace heraldctl {

namespace {

constexpr const char *kClass = "/sys/class/infiniband";
constexpr const char *kHcaType = "herald";

bool is_herald(const std::string &name)
{
	return read_word(fmt::format("{}/{}/hca_type", kClass, name)) == kHcaType;
}

bool is_empty(const std::string &gid)
{
	return gid.empty() || gid.find_first_not_of("0:") == std::string::npos;
}

std::vector<Gid> gids_of(const std::string &name)
{
	const std::string port = fmt::format("{}/{}/ports/1", kClass, name);
	std::vector<Gid> gids;

	for (const std::string &index : list_folder(port + "/gids")) {
		const std::string gid = read_word(fmt::format("{}/gids/{}", port, index));
		if (is_empty(gid))
			continue;
		gids.push_back({static_cast<unsigned>(number(index).value_or(0)), gid,
				read_word(fmt::format("{}/gid_attrs/types/{}", port, index)),
				read_word(fmt::format("{}/gid_attrs/ndevs/{}", port, index))});
	}
	std::sort(gids.begin(), gids.end(), [](const Gid &a, const Gid &b) { return a.index < b.index; });
	return gids;
}

std::string guid_text(uint64_t guid)
{
	return fmt::format("{:04x}:{:04x}:{:04x}:{:04x}", guid >> 48, (guid >> 32) & 0xffff, (guid >> 16) & 0xffff,
			   guid & 0xffff);
}

Device look_at(RdmaNetlink &netlink, const NlDevice &found)
{
	const NlPort port = netlink.port(found.index);
	Device device;

	device.index = found.index;
	device.name = found.name;
	device.version = found.firmware;
	device.node_guid = guid_text(found.node_guid);
	device.state = port_state_name(port.state);
	device.netdev = port.netdev;
	device.allow = get_allow(found.name);
	device.gids = gids_of(found.name);
	device.resources = netlink.resources(found.index);
	device.users = netlink.users(found.index);
	return device;
}

} // namespace

std::vector<Device> find_devices()
{
	std::vector<Device> devices;

	if (!exists(kClass))
		return devices;
	RdmaNetlink netlink;
	for (const NlDevice &found : netlink.devices()) {
		if (is_herald(found.name))
			devices.push_back(look_at(netlink, found));
	}
	return devices;
}

namespace {

[[noreturn]] void no_device(const std::string &name)
{
	if (exists(fmt::format("{}/{}", kClass, name)))
		throw Failure(Exit::NotFound, fmt::format("{} is no herald device, but another driver's", name));
	throw Failure(Exit::NotFound, fmt::format("there is no herald device {}: heraldctl link list", name));
}

NlDevice find_index(const std::string &name)
{
	if (!is_herald(name))
		no_device(name);
	RdmaNetlink netlink;
	for (const NlDevice &found : netlink.devices()) {
		if (found.name == name)
			return found;
	}
	no_device(name);
}

} // namespace

Device find_device(const std::string &name)
{
	const NlDevice found = find_index(name);
	RdmaNetlink netlink;

	return look_at(netlink, found);
}

std::string explain_add_link(int error, const std::string &name, const std::string &netdev)
{
	switch (error) {
	case ENODEV:
		return fmt::format("link {}: there is no interface {} here: ip link lists them", name, netdev);
	case EEXIST:
		return fmt::format("link {}: the name is taken, or {} has a herald device already: heraldctl link list",
				   name, netdev);
	case EPERM:
		return fmt::format("link {}: adding one needs CAP_NET_ADMIN: be root", name);
	case EINVAL:
		return fmt::format("link {}: herald is not loaded (heraldctl load), or cannot be on {}", name, netdev);
	case EADDRINUSE:
		return fmt::format(
			"link {} on {}: somebody else has UDP port 4791 here, rdma_rxe for one (heraldctl doctor "
			"says who): end that, or load herald with wire=off",
			name, netdev);
	default:
		return fmt::format("link {} on {}: {}", name, netdev, error_text(error));
	}
}

void add_link(const std::string &name, const std::string &netdev)
{
	RdmaNetlink netlink;
	const int error = netlink.add_link(name, netdev);

	if (!error)
		return;
	const bool busy = error == EEXIST || error == EADDRINUSE;
	const Exit exit = error == ENODEV  ? Exit::NotFound
			  : error == EPERM ? Exit::Denied
			  : busy           ? Exit::Busy
					   : Exit::Failed;
	throw Failure(exit, explain_add_link(error, name, netdev));
}

void delete_link(const std::string &name)
{
	const NlDevice found = find_index(name);
	RdmaNetlink netlink;
	const int error = netlink.delete_link(found.index);

	if (error == EPERM)
		throw Failure(Exit::Denied, fmt::format("link {}: deleting one needs CAP_NET_ADMIN: be root", name));
	if (error)
		throw Failure(Exit::Failed, fmt::format("link {}: {}", name, error_text(error)));
}

std::string user_names(const std::vector<NlUser> &users)
{
	Strings names;

	for (const NlUser &user : users) {
		const std::string name = user.pid ? process_name(user.pid) : user.kernel + " (kernel)";
		if (std::find(names.begin(), names.end(), name) == names.end())
			names.push_back(name);
	}
	return join(names, ", ");
}

nlohmann::ordered_json to_json(const Device &device)
{
	nlohmann::ordered_json json = {{"device", device.name},
				       {"state", device.state},
				       {"interface", device.netdev},
				       {"version", device.version},
				       {"node_guid", device.node_guid}};

	json["provoking_allowed"] = nullptr;
	if (device.allow >= 0)
		json["provoking_allowed"] = device.allow == 1;
	json["gids"] = nlohmann::ordered_json::array();
	for (const Gid &gid : device.gids)
		json["gids"].push_back(
			{{"index", gid.index}, {"gid", gid.gid}, {"type", gid.type}, {"interface", gid.netdev}});
	json["resources"] = nlohmann::ordered_json::object();
	for (const NlCount &count : device.resources)
		json["resources"][count.what] = count.number;
	json["users"] = nlohmann::ordered_json::array();
	for (const NlUser &user : device.users) {
		if (user.pid)
			json["users"].push_back({{"pid", user.pid}, {"command", command_of(user.pid)}});
		else
			json["users"].push_back({{"kernel", user.kernel}});
	}
	return json;
}

std::string to_text(const Device &device)
{
	std::string text = fmt::format("{}: {}, on {}, version {}, node GUID {}\n", device.name, device.state,
				       device.netdev.empty() ? "an interface elsewhere" : device.netdev, device.version,
				       device.node_guid);
	Strings counts;

	if (device.allow >= 0)
		text += fmt::format("    provoking: {}\n", device.allow ? "allowed" : "not allowed");
	for (const NlCount &count : device.resources)
		counts.push_back(fmt::format("{} {}", count.what, count.number));
	text += fmt::format("    resources: {}\n", join(counts, ", "));
	if (!device.users.empty())
		text += fmt::format("    users: {}\n", user_names(device.users));
	for (const Gid &gid : device.gids)
		text += fmt::format("    GID {:>3}: {} {} {}\n", gid.index, gid.gid, gid.type, gid.netdev);
	return text;
}

} // namespace heraldctl
