// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
#include "faults.h"

#include "failure.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>

namespace heraldctl {

const FaultOption kFaultOptions[7] = {
	{"nth", "the Nth time, and from there on (1)"},
	{"every", "every Nth time"},
	{"permille", "so many of 1000 times, by chance"},
	{"times", "so often, then no more (with nth: 1, else without end)"},
	{"seed", "of chance: the same seed, the same faults (0)"},
	{"qpn", "of this QP only"},
	{"usec", "delay: by so many microseconds"},
};

namespace {

/* What a kind is to be said with */
struct Kind {
	const char *name;
	const char *usage;
	Strings words;   /* what they mean, in order */
	Strings options; /* those it may have */
	Strings needed;  /* those it must have */
};

const Strings kActions = {"lose", "delay", "duplicate", "reorder", "corrupt"};
const Strings kVerbs = {"create-qp", "create-cq", "create-srq", "create-ah", "alloc-pd",      "reg-mr",
			"modify-qp", "resize-cq", "post-send",  "post-recv", "post-srq-recv", "req-notify"};
const Kind kKinds[] = {
	{"message",
	 "message ACTION [--nth N|--every N|--permille N] [--times N] [--seed N] [--qpn QPN] [--usec N]",
	 {"action"},
	 {"nth", "every", "permille", "times", "seed", "qpn", "usec"},
	 {}},
	{"rnr", "rnr --qpn QPN [--times N]", {}, {"qpn", "times"}, {"qpn"}},
	{"verb", "verb VERB ERRNO [--nth N] [--times N]", {"verb", "errno"}, {"nth", "times"}, {}},
	{"wr", "wr STATUS --qpn QPN [--nth N]", {"status"}, {"qpn", "nth"}, {"qpn"}},
	{"recv", "recv STATUS --qpn QPN [--nth N]", {"status"}, {"qpn", "nth"}, {"qpn"}},
	{"clear", "clear [ID]", {}, {}, {}},
};

bool has(const Strings &list, const std::string &word)
{
	return std::find(list.begin(), list.end(), word) != list.end();
}

[[noreturn]] void misused(const Kind &kind, const std::string &what)
{
	throw Failure(Exit::Usage, fmt::format("{}: heraldctl fault DEVICE {}", what, kind.usage));
}

const Kind &find_kind(const std::string &name)
{
	Strings names;

	for (const Kind &kind : kKinds) {
		if (name == kind.name)
			return kind;
		names.emplace_back(kind.name);
	}
	throw Failure(Exit::Usage, fmt::format("there is no fault '{}': {}, or list", name, join(names, ", ")));
}

void check_words(const Kind &kind, const FaultRequest &request)
{
	const size_t given = request.words.size();

	if (given < kind.words.size())
		misused(kind, fmt::format("the {} is missing", kind.words[given]));
	/* clear may name one */
	if (given > kind.words.size() + (request.kind == "clear"))
		misused(kind, fmt::format("'{}' is too much", request.words.back()));
}

void check_options(const Kind &kind, const FaultRequest &request)
{
	int triggers = 0;

	for (const auto &[option, value] : request.numbers) {
		if (!has(kind.options, option))
			misused(kind, fmt::format("fault {} takes no --{}", kind.name, option));
		triggers += option == "nth" || option == "every" || option == "permille";
	}
	for (const std::string &option : kind.needed) {
		if (!request.numbers.contains(option))
			misused(kind, fmt::format("--{} is missing", option));
	}
	if (triggers > 1)
		misused(kind, "only one of --nth, --every and --permille");
}

void check_name(const Strings &names, const std::string &name, const char *what)
{
	if (!has(names, name))
		throw Failure(Exit::Usage, fmt::format("there is no {} '{}': {}", what, name, join(names, ", ")));
}

/* EIO, or its number */
std::string errno_number(const std::string &word)
{
	constexpr int kLast = 133;

	for (int error = 1; error <= kLast; error++) {
		const char *name = strerrorname_np(error);

		if (name && word == name)
			return std::to_string(error);
	}
	const auto value = number(word);
	if (!value || *value < 1 || *value > kLast)
		throw Failure(Exit::Usage, fmt::format("'{}' is no errno: its name, or 1 to {}", word, kLast));
	return word;
}

std::string message_command(const FaultRequest &request)
{
	std::string line = "fault message " + request.words[0];

	check_name(kActions, request.words[0], "action");
	if ((request.words[0] == "delay") != request.numbers.contains("usec"))
		throw Failure(Exit::Usage, "--usec says by how much, of delay and of no other action");
	for (const FaultOption &option : kFaultOptions) {
		if (const auto found = request.numbers.find(option.name); found != request.numbers.end())
			line += fmt::format(" {} {}", option.name, found->second);
	}
	return line;
}

} // namespace

std::string fault_command(const FaultRequest &request)
{
	const Kind &kind = find_kind(request.kind);
	const auto option = [&](const char *name) {
		const auto found = request.numbers.find(name);

		return found == request.numbers.end() ? std::uint64_t{1} : found->second;
	};

	check_words(kind, request);
	check_options(kind, request);
	if (request.kind == "message")
		return message_command(request);
	if (request.kind == "rnr")
		return fmt::format("fault rnr {} {}", option("qpn"), option("times"));
	if (request.kind == "verb") {
		check_name(kVerbs, request.words[0], "verb");
		return fmt::format("fault verb {} {} {} times {}", request.words[0], option("nth"),
				   errno_number(request.words[1]), option("times"));
	}
	if (request.kind == "clear") {
		if (!request.words.empty() && !number(request.words[0]))
			misused(kind, fmt::format("'{}' is no number", request.words[0]));
		return request.words.empty() ? "fault clear all" : "fault clear " + request.words[0];
	}
	return fmt::format("fault {} {} {} {}", kind.name, option("qpn"), option("nth"), request.words[0]);
}

std::string fault_object(const FaultRequest &request)
{
	if (request.kind == "clear" && !request.words.empty())
		return "fault " + request.words[0];
	if (const auto qpn = request.numbers.find("qpn"); qpn != request.numbers.end())
		return fmt::format("QP {}", qpn->second);
	return "device";
}

} // namespace heraldctl
