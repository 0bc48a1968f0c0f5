// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
#include "async_event.h"

#include <fmt/format.h>

namespace heraldctl {

namespace {

/* The first of these fields that the event has */
std::string first_word(const EventFormat &format, Bytes record, std::initializer_list<const char *> fields)
{
	for (const char *field : fields) {
		if (auto word = format.word(record, field))
			return *word;
	}
	return {};
}

} // namespace

AsyncEvent decode_event(const EventFormat &format, Bytes record)
{
	AsyncEvent event;

	event.device = first_word(format, record, {"device", "dev"});
	event.event = first_word(format, record, {"name", "event_name", "event"});
	event.object = first_word(format, record, {"object", "kind"});
	event.number = format.integer(record, "number");
	event.cause = first_word(format, record, {"cause"});
	if (const auto provoked = format.integer(record, "provoked"))
		event.cause = *provoked ? "provoked" : "natural";
	event.pid = format.integer(record, "pid").value_or(0);
	event.verdict = first_word(format, record, {"verdict"});
	return event;
}

bool wanted(const AsyncEvent &event, const WatchOptions &options)
{
	if (!options.device.empty() && event.device != options.device)
		return false;
	return options.all || event.verdict != "delivered";
}

std::string event_line(const AsyncEvent &event, const std::string &command)
{
	std::string line = fmt::format("{} {}", event.device, event.event);

	if (!event.object.empty())
		line += " " + event.object;
	if (event.number && event.object != "device")
		line += fmt::format(" {}", *event.number);
	if (!event.cause.empty())
		line += " " + event.cause;
	line += event.pid ? fmt::format(" pid {}", event.pid) : " kernel";
	if (event.pid && !command.empty())
		line += fmt::format(" ({})", command);
	if (!event.verdict.empty() && event.verdict != "raised")
		line += " " + event.verdict;
	return line;
}

} // namespace heraldctl
