/* SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB */
/* What a module's file says of itself, and why the kernel does not take it. */
#ifndef HERALDCTL_MODULE_INFO_H
#define HERALDCTL_MODULE_INFO_H

#include "failure.h"
#include "sys.h"

namespace heraldctl {

/* What a module's file says of itself. */
struct ModuleInfo {
	std::string path;
	std::string version;
	std::string vermagic;
	Strings depends;
	Strings parameters;
};

/* What an insertion is refused for depends on. */
struct Surroundings {
	std::string release;  /* of the running kernel */
	std::string lockdown; /* none, integrity, confidentiality; empty: not known */
	bool root = true;
};

/* [none] integrity confidentiality: the one in brackets */
std::string parse_lockdown(std::string_view text);

/* PARAM=VALUE each; a Failure (Usage) for one that the module has not. */
void check_parameters(const ModuleInfo &info, const Strings &parameters);

Failure explain_insert(int error, const ModuleInfo &info, const Strings &parameters, const Surroundings &around);

} // namespace heraldctl

#endif
