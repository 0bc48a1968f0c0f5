/* SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB */
/* The commands. Each prints what it has to say, as text or as JSON, or throws a Failure. */
#ifndef HERALDCTL_COMMANDS_H
#define HERALDCTL_COMMANDS_H

#include "failure.h"
#include "faults.h"
#include "sys.h"

#include <optional>

namespace heraldctl {

struct Output {
	bool json = false;
};

Exit run_load(const Output &out, const std::string &file, const Strings &parameters);
Exit run_unload(const Output &out, bool force);

Exit run_link_add(const Output &out, const std::string &name, const std::string &netdev);
Exit run_link_del(const Output &out, const std::string &name);
Exit run_link_list(const Output &out);

/* DEVICE [TABLE], or TABLE alone for all devices */
Exit run_show(const Output &out, const Strings &words);

Exit run_provoke(const Output &out, const std::string &device, const std::string &event,
		 const std::optional<std::string> &number);
Exit run_cq(const Output &out, const std::string &command, const std::string &device, const std::string &cqn,
	    const std::optional<std::string> &count);
/* "list", or one that fault_command() knows */
Exit run_fault(const Output &out, const std::string &device, const FaultRequest &request);
Exit run_allow(const Output &out, const std::string &device, bool on);
Exit run_doctor(const Output &out);

/* A failure as one line on stderr and, for --json, as an object on stdout. */
void report(const Output &out, const Failure &failure);

} // namespace heraldctl

#endif
