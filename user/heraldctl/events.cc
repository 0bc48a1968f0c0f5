// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
#include "events.h"

#include "failure.h"

#include <fmt/format.h>

#include <algorithm>

namespace heraldctl {

namespace {

constexpr Event kEvents[] = {
	{"cq-err", Object::Cq},
	{"qp-fatal", Object::Qp},
	{"qp-req-err", Object::Qp},
	{"qp-access-err", Object::Qp},
	{"comm-est", Object::Qp},
	{"sq-drained", Object::Qp},
	{"path-mig", Object::Qp},
	{"path-mig-err", Object::Qp},
	{"device-fatal", Object::Device},
	{"port-active", Object::Port},
	{"port-err", Object::Port},
	{"lid-change", Object::Port},
	{"pkey-change", Object::Port},
	{"sm-change", Object::Port},
	{"srq-err", Object::Srq},
	{"srq-limit-reached", Object::Srq},
	{"qp-last-wqe-reached", Object::Qp},
	{"client-reregister", Object::Port},
	{"gid-change", Object::Port},
	{"device-speed-change", Object::Port},
	{"wq-fatal", Object::Wq},
};

Strings event_names()
{
	Strings names;

	for (const Event &event : kEvents)
		names.emplace_back(event.name);
	return names;
}

} // namespace

std::span<const Event> events()
{
	return kEvents;
}

const Event *find_event(std::string_view name)
{
	const auto *it =
		std::find_if(std::begin(kEvents), std::end(kEvents), [&](const Event &e) { return e.name == name; });

	return it == std::end(kEvents) ? nullptr : it;
}

std::string_view object_name(Object object)
{
	switch (object) {
	case Object::Qp:
		return "QP";
	case Object::Cq:
		return "CQ";
	case Object::Srq:
		return "SRQ";
	case Object::Wq:
		return "WQ";
	case Object::Port:
		return "port";
	case Object::Device:
		break;
	}
	return "device";
}

bool takes_number(const Event &event)
{
	return event.object != Object::Port && event.object != Object::Device;
}

std::string provoke_command(const std::string &event, const std::optional<std::string> &number)
{
	const Event *known = find_event(event);

	if (!known)
		throw Failure(Exit::Usage,
			      fmt::format("there is no event '{}': one of {}", event, join(event_names(), ", ")));
	const std::string_view object = object_name(known->object);
	if (known->object == Object::Wq)
		throw Failure(Exit::Unsupported, fmt::format("{}: herald has no work queues", event));
	if (takes_number(*known) && !number)
		throw Failure(Exit::Usage,
			      fmt::format("{} needs the number of the {}: heraldctl show DEVICE {}s lists them", event,
					  object,
					  known->object == Object::Cq    ? "cq"
					  : known->object == Object::Srq ? "srq"
									 : "qp"));
	if (!takes_number(*known) && number)
		throw Failure(Exit::Usage, fmt::format("{} is an event of the {}: it takes no number", event, object));
	return number ? fmt::format("provoke {} {}", event, *number) : fmt::format("provoke {}", event);
}

} // namespace heraldctl
