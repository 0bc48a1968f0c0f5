// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
#include "commands.h"

#include "control.h"
#include "devices.h"
#include "doctor.h"
#include "events.h"
#include "module.h"

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <cstdio>
#include <thread>

namespace heraldctl {

namespace {

using Json = nlohmann::ordered_json;

void print(const Output &out, const Json &json, const std::string &text)
{
	fmt::print("{}", out.json ? json.dump(2) + "\n" : text);
}

Json row_json(const Table &table, const Strings &row)
{
	Json json = Json::object();

	for (size_t i = 0; i < row.size(); i++) {
		if (row[i] == "-")
			json[table.columns[i]] = nullptr;
		else if (const auto value = number(row[i]))
			json[table.columns[i]] = *value;
		else
			json[table.columns[i]] = row[i];
	}
	return json;
}

bool is_table(const std::string &word)
{
	return word == "cqs" || word == "qps" || word == "srqs";
}

} // namespace

/* ------------------------------------------------------------------------------------------------------ module -- */

Exit run_load(const Output &out, const std::string &file, const Strings &parameters)
{
	const ModuleInfo info = load_module(file, parameters);

	print(out, {{"loaded", info.path}, {"version", info.version}, {"parameters", parameters}},
	      fmt::format("loaded {}, version {}\n", info.path, info.version));
	return Exit::Ok;
}

namespace {

/* Removing it is tried that long after its devices have gone: what they were used by lets go. */
constexpr auto kPatience = std::chrono::seconds(10);
constexpr auto kPause = std::chrono::milliseconds(20);

void refuse_if_used(const std::vector<Device> &devices)
{
	for (const Device &device : devices) {
		if (!device.users.empty())
			throw Failure(Exit::Busy,
				      fmt::format("herald is in use: {} has {} open: end them, or unload --force",
						  user_names(device.users), device.name));
	}
}

Strings delete_all(const std::vector<Device> &devices)
{
	Strings names;

	for (const Device &device : devices) {
		delete_link(device.name);
		names.push_back(device.name);
	}
	return names;
}

int remove_patiently()
{
	const auto end = std::chrono::steady_clock::now() + kPatience;
	int error = 0;

	while ((error = remove_module()) == EAGAIN && std::chrono::steady_clock::now() < end)
		std::this_thread::sleep_for(kPause);
	return error;
}

} // namespace

Exit run_unload(const Output &out, bool force)
{
	Strings deleted;

	if (!module_loaded())
		throw Failure(Exit::NotFound, "herald is not loaded");
	const std::vector<Device> devices = find_devices();
	if (!force)
		refuse_if_used(devices);
	else
		deleted = delete_all(devices);
	const int error = force ? remove_patiently() : remove_module();
	if (error == EPERM)
		throw Failure(Exit::Denied, "unloading a module needs CAP_SYS_MODULE: be root");
	if (error == EAGAIN || error == EBUSY)
		throw Failure(Exit::Busy, fmt::format("herald is in use, by {}: end what uses it{}", module_holders(),
						      force ? "" : ", or unload --force"));
	if (error)
		throw Failure(Exit::Failed, fmt::format("herald cannot be unloaded: {}", error_text(error)));
	print(out, {{"unloaded", true}, {"deleted", deleted}},
	      deleted.empty() ? "unloaded\n" : fmt::format("deleted {}; unloaded\n", join(deleted, ", ")));
	return Exit::Ok;
}

/* ------------------------------------------------------------------------------------------------------- links -- */

Exit run_link_add(const Output &out, const std::string &name, const std::string &netdev)
{
	add_link(name, netdev);
	print(out, {{"added", name}, {"interface", netdev}}, "");
	return Exit::Ok;
}

Exit run_link_del(const Output &out, const std::string &name)
{
	delete_link(name);
	print(out, {{"deleted", name}}, "");
	return Exit::Ok;
}

Exit run_link_list(const Output &out)
{
	Json json = Json::array();
	Table table{.columns = {"device", "state", "interface"}, .rows = {}};

	for (const Device &device : find_devices()) {
		json.push_back({{"device", device.name}, {"state", device.state}, {"interface", device.netdev}});
		table.rows.push_back({device.name, device.state, device.netdev.empty() ? "-" : device.netdev});
	}
	print(out, json, table.rows.empty() ? "" : table.text());
	return Exit::Ok;
}

/* -------------------------------------------------------------------------------------------------------- show -- */

namespace {

Exit show_devices(const Output &out, const std::vector<Device> &devices)
{
	Json json = Json::array();
	std::string text;

	for (const Device &device : devices) {
		json.push_back(to_json(device));
		text += to_text(device);
	}
	print(out, json, text);
	return Exit::Ok;
}

Exit show_table(const Output &out, const Strings &devices, const std::string &name)
{
	Json json = Json::array();
	Table all;

	for (const std::string &device : devices) {
		Table table = read_table(device, name);
		table.prepend("device", device);
		for (const Strings &row : table.rows)
			json.push_back(row_json(table, row));
		all.columns = table.columns;
		all.rows.insert(all.rows.end(), table.rows.begin(), table.rows.end());
	}
	print(out, json, all.columns.empty() ? "" : all.text());
	return Exit::Ok;
}

} // namespace

Exit run_show(const Output &out, const Strings &words)
{
	const std::string last = words.empty() ? "" : words.back();

	if (words.size() == 2 && !is_table(last))
		throw Failure(Exit::Usage, fmt::format("there is no table '{}': cqs, qps or srqs", last));
	if (words.empty())
		return show_devices(out, find_devices());
	if (words.size() == 2)
		return show_table(out, {words.front()}, last);
	if (!is_table(last))
		return show_devices(out, {find_device(last)});
	Strings names;
	for (const Device &device : find_devices())
		names.push_back(device.name);
	return show_table(out, names, last);
}

/* ----------------------------------------------------------------------------------------------------- control -- */

namespace {

Exit control(const Output &out, const std::string &device, const std::string &command, const std::string &object)
{
	send_control(device, command, object);
	print(out, {{"device", device}, {"done", command}}, "");
	return Exit::Ok;
}

void require_number(const std::string &word, std::string_view what)
{
	if (!number(word))
		throw Failure(Exit::Usage, fmt::format("'{}' is no number: the {} is expected", word, what));
}

} // namespace

Exit run_provoke(const Output &out, const std::string &device, const std::string &event,
		 const std::optional<std::string> &number)
{
	const std::string command = provoke_command(event, number);
	const std::string_view kind = object_name(find_event(event)->object);

	if (number)
		require_number(*number, fmt::format("number of the {}", kind));
	return control(out, device, command, number ? fmt::format("{} {}", kind, *number) : std::string(kind));
}

Exit run_cq(const Output &out, const std::string &command, const std::string &device, const std::string &cqn,
	    const std::optional<std::string> &count)
{
	std::string line = fmt::format("{} {}", command, cqn);

	require_number(cqn, "number of the CQ");
	if (count) {
		require_number(*count, "count");
		line += " " + *count;
	}
	return control(out, device, line, "CQ " + cqn);
}

Exit run_fault(const Output &out, const std::string &device, const FaultRequest &request)
{
	if (request.kind != "list")
		return control(out, device, fault_command(request), fault_object(request));
	if (!request.words.empty() || !request.numbers.empty())
		throw Failure(Exit::Usage, "list takes nothing more: heraldctl fault DEVICE list");
	return show_table(out, {device}, "faults");
}

Exit run_allow(const Output &out, const std::string &device, bool on)
{
	set_allow(device, on);
	print(out, {{"device", device}, {"provoking_allowed", on}}, "");
	return Exit::Ok;
}

/* ------------------------------------------------------------------------------------------------------ doctor -- */

Exit run_doctor(const Output &out)
{
	const std::vector<Check> checks = examine();
	const auto findings = std::count_if(checks.begin(), checks.end(),
					    [](const Check &c) { return c.verdict == Verdict::Finding; });
	Json json = {{"findings", findings}, {"checks", Json::array()}};
	std::string text;

	for (const Check &check : checks) {
		json["checks"].push_back({{"check", check.name},
					  {"verdict", verdict_name(check.verdict)},
					  {"text", check.text},
					  {"remedy", check.remedy}});
		text += fmt::format("{:<7} {}: {}\n", verdict_name(check.verdict), check.name, check.text);
		if (!check.remedy.empty())
			text += fmt::format("        remedy: {}\n", check.remedy);
	}
	text += findings ? fmt::format("{} finding{}\n", findings, findings > 1 ? "s" : "") : "all well\n";
	print(out, json, text);
	return all_well(checks) ? Exit::Ok : Exit::Failed;
}

void report(const Output &out, const Failure &failure)
{
	if (out.json)
		fmt::print("{}\n", Json{{"error", failure.what()}, {"exit", static_cast<int>(failure.exit())}}.dump(2));
	std::fflush(stdout);
	fmt::print(stderr, "heraldctl: {}\n", failure.what());
}

} // namespace heraldctl
