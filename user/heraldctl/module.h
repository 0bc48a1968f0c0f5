/* SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB */
/* The kernel module: into the kernel, and out of it. */
#ifndef HERALDCTL_MODULE_H
#define HERALDCTL_MODULE_H

#include "module_info.h"

namespace heraldctl {

Surroundings surroundings();

bool module_loaded();

/* The herald.ko that `load` would take: FILE, or the running kernel's own. A Failure if there is none. */
ModuleInfo find_module(const std::string &file);

/* Loads it, and what it depends on. */
ModuleInfo load_module(const std::string &file, const Strings &parameters);

/* 0, or errno: EAGAIN while something uses it */
int remove_module();

/* Who keeps it: modules that depend on it, else the count of references. */
std::string module_holders();

} // namespace heraldctl

#endif
