// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
#include "rdma_netlink.h"

#include "failure.h"
#include "sys.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <new>

#include <netlink/attr.h>
#include <netlink/msg.h>
#include <netlink/netlink.h>
#include <netlink/socket.h>
#include <rdma/rdma_netlink.h>

namespace heraldctl {

namespace {

constexpr int kMaxAttribute = RDMA_NLDEV_ATTR_MAX - 1;
constexpr const char *kLinkType = "herald";

int type_of(int command)
{
	return RDMA_NL_GET_TYPE(RDMA_NL_NLDEV, command);
}

std::string text_of(nlattr *attribute)
{
	return attribute ? nla_get_string(attribute) : "";
}

/* Calls back with the attributes of each entry of a table. */
void each_entry(nlattr *table, const std::function<void(nlattr **)> &entry)
{
	nlattr *at = nullptr;
	int left = 0;

	if (!table)
		return;
	nla_for_each_nested(at, table, left)
	{
		std::array<nlattr *, kMaxAttribute + 1> attributes{};
		if (nla_parse_nested(attributes.data(), kMaxAttribute, at, nullptr) == 0)
			entry(attributes.data());
	}
}

/* What the callbacks of a request share. */
struct Exchange {
	const std::function<void(nlattr **)> *answer = nullptr;
	int error = 0;
	bool done = false;
};

int on_answer(nl_msg *message, void *arg)
{
	auto *exchange = static_cast<Exchange *>(arg);
	std::array<nlattr *, kMaxAttribute + 1> attributes{};

	if (*exchange->answer && nlmsg_parse(nlmsg_hdr(message), 0, attributes.data(), kMaxAttribute, nullptr) == 0)
		(*exchange->answer)(attributes.data());
	return NL_OK;
}

int on_end(nl_msg * /*message*/, void *arg)
{
	static_cast<Exchange *>(arg)->done = true;
	return NL_STOP;
}

int on_error(sockaddr_nl * /*from*/, nlmsgerr *error, void *arg)
{
	auto *exchange = static_cast<Exchange *>(arg);

	exchange->error = -error->error;
	exchange->done = true;
	return NL_STOP;
}

struct FreeCallbacks {
	void operator()(nl_cb *callbacks) const { nl_cb_put(callbacks); }
};

} // namespace

void RdmaNetlink::Free::operator()(nl_sock *socket) const
{
	nl_socket_free(socket);
}

void RdmaNetlink::Free::operator()(nl_msg *message) const
{
	nlmsg_free(message);
}

RdmaNetlink::RdmaNetlink() : socket_(nl_socket_alloc())
{
	if (!socket_)
		throw std::bad_alloc();
	const int error = nl_connect(socket_.get(), NETLINK_RDMA);
	if (error)
		throw Failure(Exit::Unsupported,
			      fmt::format("the kernel has no RDMA netlink ({}): modprobe ib_core, or "
					  "heraldctl load",
					  nl_geterror(error)));
}

RdmaNetlink::Message RdmaNetlink::request(int command, int flags)
{
	Message message(nlmsg_alloc());

	if (!message ||
	    !nlmsg_put(message.get(), NL_AUTO_PORT, NL_AUTO_SEQ, type_of(command), 0, NLM_F_REQUEST | flags))
		throw std::bad_alloc();
	return message;
}

int RdmaNetlink::ask(Message message, const std::function<void(Attributes)> &answer)
{
	const std::unique_ptr<nl_cb, FreeCallbacks> callbacks(nl_cb_alloc(NL_CB_DEFAULT));
	Exchange exchange{.answer = &answer};

	if (!callbacks)
		return ENOMEM;
	nl_cb_set(callbacks.get(), NL_CB_VALID, NL_CB_CUSTOM, on_answer, &exchange);
	nl_cb_set(callbacks.get(), NL_CB_FINISH, NL_CB_CUSTOM, on_end, &exchange);
	nl_cb_set(callbacks.get(), NL_CB_ACK, NL_CB_CUSTOM, on_end, &exchange);
	nl_cb_err(callbacks.get(), NL_CB_CUSTOM, on_error, &exchange);
	if (nl_send_auto(socket_.get(), message.get()) < 0)
		return errno ? errno : EIO;
	while (!exchange.done) {
		const int error = nl_recvmsgs(socket_.get(), callbacks.get());
		if (error < 0 && !exchange.done)
			throw Failure(Exit::Failed, fmt::format("RDMA netlink: {}", nl_geterror(error)));
	}
	return exchange.error;
}

/* A device that goes meanwhile has nothing to tell: no error. */
void RdmaNetlink::dump(int command, uint32_t device, const std::function<void(Attributes)> &answer)
{
	Message message = request(command, NLM_F_DUMP);

	nla_put_u32(message.get(), RDMA_NLDEV_ATTR_DEV_INDEX, device);
	ask(std::move(message), answer);
}

std::vector<NlDevice> RdmaNetlink::devices()
{
	std::vector<NlDevice> found;

	ask(request(RDMA_NLDEV_CMD_GET, NLM_F_DUMP), [&](Attributes a) {
		if (!a[RDMA_NLDEV_ATTR_DEV_INDEX] || !a[RDMA_NLDEV_ATTR_DEV_NAME])
			return;
		NlDevice device;
		device.index = nla_get_u32(a[RDMA_NLDEV_ATTR_DEV_INDEX]);
		device.name = text_of(a[RDMA_NLDEV_ATTR_DEV_NAME]);
		device.firmware = text_of(a[RDMA_NLDEV_ATTR_FW_VERSION]);
		if (a[RDMA_NLDEV_ATTR_NODE_GUID])
			device.node_guid = nla_get_u64(a[RDMA_NLDEV_ATTR_NODE_GUID]);
		found.push_back(std::move(device));
	});
	return found;
}

NlPort RdmaNetlink::port(uint32_t device)
{
	Message message = request(RDMA_NLDEV_CMD_PORT_GET, NLM_F_ACK);
	NlPort port;

	nla_put_u32(message.get(), RDMA_NLDEV_ATTR_DEV_INDEX, device);
	nla_put_u32(message.get(), RDMA_NLDEV_ATTR_PORT_INDEX, 1);
	ask(std::move(message), [&](Attributes a) {
		port.netdev = text_of(a[RDMA_NLDEV_ATTR_NDEV_NAME]);
		if (a[RDMA_NLDEV_ATTR_PORT_STATE])
			port.state = nla_get_u8(a[RDMA_NLDEV_ATTR_PORT_STATE]);
	});
	return port;
}

std::vector<NlCount> RdmaNetlink::resources(uint32_t device)
{
	Message message = request(RDMA_NLDEV_CMD_RES_GET, NLM_F_ACK);
	std::vector<NlCount> counts;

	nla_put_u32(message.get(), RDMA_NLDEV_ATTR_DEV_INDEX, device);
	ask(std::move(message), [&](Attributes a) {
		each_entry(a[RDMA_NLDEV_ATTR_RES_SUMMARY], [&](Attributes e) {
			if (e[RDMA_NLDEV_ATTR_RES_SUMMARY_ENTRY_CURR])
				counts.push_back({text_of(e[RDMA_NLDEV_ATTR_RES_SUMMARY_ENTRY_NAME]),
						  nla_get_u64(e[RDMA_NLDEV_ATTR_RES_SUMMARY_ENTRY_CURR])});
		});
	});
	return counts;
}

std::vector<NlUser> RdmaNetlink::users(uint32_t device)
{
	std::vector<NlUser> users;

	const auto process = [&](Attributes e) {
		if (e[RDMA_NLDEV_ATTR_RES_PID])
			users.push_back({.pid = nla_get_u32(e[RDMA_NLDEV_ATTR_RES_PID]), .kernel = {}});
	};
	const auto consumer = [&](Attributes e) {
		const std::string name = text_of(e[RDMA_NLDEV_ATTR_RES_KERN_NAME]);
		const bool seen =
			std::any_of(users.begin(), users.end(), [&](const NlUser &u) { return u.kernel == name; });
		if (!name.empty() && !name.starts_with("ib_") && !seen)
			users.push_back({.pid = 0, .kernel = name});
	};
	dump(RDMA_NLDEV_CMD_RES_CTX_GET, device,
	     [&](Attributes a) { each_entry(a[RDMA_NLDEV_ATTR_RES_CTX], process); });
	dump(RDMA_NLDEV_CMD_RES_PD_GET, device, [&](Attributes a) { each_entry(a[RDMA_NLDEV_ATTR_RES_PD], consumer); });
	return users;
}

int RdmaNetlink::add_link(const std::string &name, const std::string &netdev)
{
	Message message = request(RDMA_NLDEV_CMD_NEWLINK, NLM_F_ACK);

	nla_put_string(message.get(), RDMA_NLDEV_ATTR_DEV_NAME, name.c_str());
	nla_put_string(message.get(), RDMA_NLDEV_ATTR_LINK_TYPE, kLinkType);
	nla_put_string(message.get(), RDMA_NLDEV_ATTR_NDEV_NAME, netdev.c_str());
	return ask(std::move(message), nullptr);
}

int RdmaNetlink::delete_link(uint32_t device)
{
	Message message = request(RDMA_NLDEV_CMD_DELLINK, NLM_F_ACK);

	nla_put_u32(message.get(), RDMA_NLDEV_ATTR_DEV_INDEX, device);
	return ask(std::move(message), nullptr);
}

std::string port_state_name(uint8_t state)
{
	constexpr std::array<const char *, 6> names = {"NOP", "DOWN", "INIT", "ARMED", "ACTIVE", "ACTIVE_DEFER"};

	return state < names.size() ? names[state] : fmt::format("{}", state);
}

} // namespace heraldctl
