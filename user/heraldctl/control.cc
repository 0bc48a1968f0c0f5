// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
#include "control.h"

#include <fmt/format.h>

#include <cerrno>

namespace heraldctl {

const CqCommand kCqCommands[7] = {
	{"hold", false, "hold back the completions of a CQ from now on"},
	{"release", true, "release N held completions (1), the oldest first"},
	{"release-before-arm", true, "release N just before the application arms next"},
	{"release-after-arm", true, "release N just after the application has armed next"},
	{"reorder", true, "let completions of different queues overtake each other; N is the seed"},
	{"resume", false, "release all, hold and reorder nothing any more"},
	{"event", true, "raise N completion events that no completion causes"},
};

namespace {

std::string file_of(const std::string &device, const char *name)
{
	return fmt::format("{}/{}/{}", kDebugfs, device, name);
}

/* Why there is no such file in a device's folder, from the outside in. */
Failure explain_missing(const std::string &device, const char *name)
{
	if (!exists("/sys/module/herald"))
		return {Exit::NotFound, "herald is not loaded: heraldctl load"};
	if (!exists("/sys/kernel/debug/herald"))
		return {Exit::Unsupported, "debugfs is not mounted: mount -t debugfs none /sys/kernel/debug"};
	if (!exists(fmt::format("{}/{}", kDebugfs, device)))
		return {Exit::NotFound, fmt::format("there is no herald device {}: heraldctl link list", device)};
	return {Exit::Unsupported,
		fmt::format("{}: the loaded herald has no file '{}': update the module", device, name)};
}

Failure explain_open(int error, const std::string &device, const char *name)
{
	if (error == ENOENT)
		return explain_missing(device, name);
	if (error == EACCES || error == EPERM)
		return {Exit::Denied,
			fmt::format("{}: not permitted to use {}: be root (and see `heraldctl doctor` for "
				    "lockdown)",
				    device, file_of(device, name))};
	return {Exit::Failed, fmt::format("{}: {}", file_of(device, name), error_text(error))};
}

} // namespace

Failure explain_control(int error, const std::string &device, const std::string &command, const std::string &object)
{
	switch (error) {
	case ENOENT:
		if (object.starts_with("fault"))
			return {Exit::NotFound,
				fmt::format("{}: there is no {}: heraldctl fault {} list lists what is armed", device,
					    object, device)};
		return {Exit::NotFound, fmt::format("{}: there is no {}: heraldctl show {} lists what there is", device,
						    object, device)};
	case EPERM:
	case EACCES:
		return {Exit::Denied,
			fmt::format("{}: provoking is not allowed here: heraldctl allow {} on, or load herald "
				    "with provoke=1",
				    device, device)};
	case EOPNOTSUPP:
		return {Exit::Unsupported,
			fmt::format("{}: this herald or this kernel cannot do '{}'", device, command)};
	case EBUSY:
		return {Exit::Busy,
			fmt::format("{}: {} is being held or reordered already: heraldctl resume {} {} first", device,
				    object, device, object.substr(object.rfind(' ') + 1))};
	case ENOSPC:
		return {Exit::Busy, fmt::format("{}: so many faults are armed that '{}' is one too many: "
						"heraldctl fault {} clear",
						device, command, device)};
	case EINVAL:
		if (command.starts_with("fault"))
			return {Exit::Failed,
				fmt::format("{}: '{}' is refused: a name or number that this herald does not take, or "
					    "not for this type of {} (docs/faults.md)",
					    device, command, object)};
		if (command.starts_with("provoke"))
			return {Exit::Failed,
				fmt::format("{}: '{}' is refused: the state of {}{} rules it out", device, command,
					    object.find(' ') == std::string::npos ? "the " : "", object)};
		return {Exit::Failed, fmt::format("{}: '{}' is refused: its number is out of range (event: 1 to 1000, "
						  "release: to 1000000), "
						  "or nothing is held there",
						  device, command)};
	default:
		return {Exit::Failed, fmt::format("{}: '{}': {}", device, command, error_text(error))};
	}
}

void send_control(const std::string &device, const std::string &command, const std::string &object)
{
	const std::string file = file_of(device, "control");

	if (!exists(file))
		throw explain_open(errno, device, "control");
	const int error = write_file(file, command);
	if (error)
		throw explain_control(error, device, command, object);
}

void set_allow(const std::string &device, bool on)
{
	const int error = write_file(file_of(device, "allow"), on ? "1" : "0");

	if (error)
		throw explain_open(error, device, "allow");
}

int get_allow(const std::string &device)
{
	const std::string word = read_word(file_of(device, "allow"));

	if (word.empty())
		return -1;
	return word == "1" || word == "Y";
}

Table read_table(const std::string &device, const std::string &name)
{
	const auto text = read_file(file_of(device, name.c_str()));

	if (!text)
		throw explain_open(errno, device, name.c_str());
	return Table::parse(*text, file_of(device, name.c_str()));
}

} // namespace heraldctl
