// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
//
// heraldctl: herald's module, links, devices and events from the command line. heraldctl.8 is the reference.

#include "commands.h"
#include "control.h"
#include "watch.h"

#include <CLI/CLI.hpp>

#include <functional>

using namespace heraldctl;

namespace {

/* The words of the command line, and what they ask for. */
struct Request {
	Output out;
	std::function<Exit()> run;
	std::string device, event, name, netdev, file, cqn;
	std::string number; /* empty: not given */
	Strings words;
	bool force = false;
	std::string on_off;
	WatchOptions watch;
	FaultRequest fault;

	std::optional<std::string> optional_number() const
	{
		return number.empty() ? std::nullopt : std::optional(number);
	}
};

CLI::App *command(CLI::App &parent, const std::string &name, const std::string &about, Request &request,
		  std::function<Exit()> run)
{
	CLI::App *app = parent.add_subcommand(name, about);

	app->fallthrough();
	app->callback([&request, run = std::move(run)] { request.run = run; });
	return app;
}

void add_module_commands(CLI::App &app, Request &r)
{
	auto *load = command(app, "load", "load the module", r, [&r] { return run_load(r.out, r.file, r.words); });
	load->add_option("--module", r.file, "this file, instead of the running kernel's own");
	load->add_option("PARAMETER", r.words, "PARAM=VALUE each");

	auto *unload = command(app, "unload", "unload the module", r, [&r] { return run_unload(r.out, r.force); });
	unload->add_flag("--force", r.force, "delete its devices first: programs that have them open lose them");
}

void add_link_commands(CLI::App &app, Request &r)
{
	auto *link = app.add_subcommand("link", "devices on network interfaces: add, del, list");

	link->require_subcommand(1);
	link->fallthrough();
	auto *add = command(*link, "add", "make a device", r, [&r] { return run_link_add(r.out, r.name, r.netdev); });
	add->add_option("NAME", r.name, "the device's name")->required();
	add->add_option("INTERFACE", r.netdev, "the network interface it is on")->required();
	auto *del = command(*link, "del", "delete a device", r, [&r] { return run_link_del(r.out, r.name); });
	del->add_option("NAME", r.name, "the device's name")->required();
	command(*link, "list", "list the devices", r, [&r] { return run_link_list(r.out); });
}

void add_look_commands(CLI::App &app, Request &r)
{
	auto *show = command(app, "show", "devices, or the table of one's CQs, QPs or SRQs", r,
			     [&r] { return run_show(r.out, r.words); });
	show->add_option("WHAT", r.words, "[DEVICE] [cqs|qps|srqs]; all devices if none is named")->expected(0, 2);

	auto *watching = command(app, "watch", "asynchronous events as they are raised", r, [&r] {
		r.watch.json = r.out.json;
		watch(r.watch);
		return Exit::Ok;
	});
	watching->add_option("DEVICE", r.watch.device, "all devices if none is named");
	watching->add_flag("--all", r.watch.all, "when they are delivered, too");
	watching->add_option("--count", r.watch.count, "end after so many events");
	watching->add_option("--seconds", r.watch.seconds, "end after so long");

	command(app, "doctor", "what is wrong here, and what to do about it", r, [&r] { return run_doctor(r.out); });
}

void add_control_commands(CLI::App &app, Request &r)
{
	auto *provoke = command(app, "provoke", "raise an asynchronous event, with all that it means", r,
				[&r] { return run_provoke(r.out, r.device, r.event, r.optional_number()); });
	provoke->add_option("DEVICE", r.device)->required();
	provoke->add_option("EVENT", r.event, "qp-fatal, port-err ...")->required();
	provoke->add_option("NUMBER", r.number, "of the QP, CQ or SRQ, if it is the event of one");

	for (const CqCommand &each : kCqCommands) {
		auto *cq = command(app, each.name, each.about, r, [&r, name = each.name] {
			return run_cq(r.out, name, r.device, r.cqn, r.optional_number());
		});
		cq->add_option("DEVICE", r.device)->required();
		cq->add_option("CQN", r.cqn, "the CQ's number, as show DEVICE cqs has it")->required();
		if (each.takes_count)
			cq->add_option("N", r.number);
	}

	auto *fault = command(app, "fault", "break something: messages, verbs, WRs", r,
			      [&r] { return run_fault(r.out, r.device, r.fault); });
	fault->add_option("DEVICE", r.device)->required();
	fault->add_option("KIND", r.fault.kind, "message, rnr, verb, wr, recv; clear, list")->required();
	fault->add_option("WORD", r.fault.words, "ACTION; VERB and ERRNO; STATUS; ID")->expected(0, 2);
	for (const FaultOption &option : kFaultOptions)
		fault->add_option_function<std::uint64_t>(
			std::string("--") + option.name,
			[&r, name = option.name](const std::uint64_t &value) { r.fault.numbers[name] = value; },
			option.about);

	auto *allow = command(app, "allow", "let a device be provoked, or not", r,
			      [&r] { return run_allow(r.out, r.device, r.on_off == "on"); });
	allow->add_option("DEVICE", r.device)->required();
	allow->add_option("STATE", r.on_off, "on or off")->required()->check(CLI::IsMember({"on", "off"}));
}

void add_commands(CLI::App &app, Request &request)
{
	app.require_subcommand(1);
	app.set_version_flag("--version", HERALDCTL_VERSION);
	app.add_flag("--json", request.out.json, "print JSON");
	add_module_commands(app, request);
	add_link_commands(app, request);
	add_look_commands(app, request);
	add_control_commands(app, request);
}

/* --help and --version end here, too: with 0. */
int usage(const CLI::App &app, const Request &request, const CLI::ParseError &error)
{
	if (error.get_exit_code() == 0)
		return app.exit(error);
	report(request.out, Failure(Exit::Usage, std::string(error.what()) + " (heraldctl --help)"));
	return static_cast<int>(Exit::Usage);
}

int run(int argc, char **argv)
{
	Request request;
	CLI::App app("herald's module, links, devices and events; see heraldctl(8)", "heraldctl");

	try {
		add_commands(app, request);
		app.parse(argc, argv);
		const int status = static_cast<int>(request.run());
		return std::fflush(stdout) == 0 ? status : static_cast<int>(Exit::Failed);
	} catch (const CLI::ParseError &error) {
		return usage(app, request, error);
	} catch (const Failure &failure) {
		report(request.out, failure);
		return static_cast<int>(failure.exit());
	} catch (const std::exception &error) {
		report(request.out, Failure(Exit::Failed, error.what()));
		return static_cast<int>(Exit::Failed);
	}
}

} // namespace

int main(int argc, char **argv)
{
	try {
		return run(argc, argv);
	} catch (...) {
		return static_cast<int>(Exit::Failed);
	}
}
