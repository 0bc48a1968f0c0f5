// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
#include "module.h"

#include <fmt/format.h>

#include <cerrno>
#include <cstdarg>
#include <cstdlib>
#include <filesystem>
#include <memory>
#include <new>

#include <libkmod.h>
#include <unistd.h>

namespace heraldctl {

namespace {

constexpr const char *kModule = "herald";
constexpr const char *kSysModule = "/sys/module/herald";

struct Release {
	void operator()(kmod_ctx *ctx) const { kmod_unref(ctx); }
	void operator()(kmod_module *module) const { kmod_module_unref(module); }
};
using Kmod = std::unique_ptr<kmod_ctx, Release>;
using Module = std::unique_ptr<kmod_module, Release>;

/* What it has to say is in its errors: a failure is one line. */
void log_nothing(void * /*data*/, int /*priority*/, const char * /*file*/, int /*line*/, const char * /*function*/,
		 const char * /*format*/, va_list /*args*/)
{
}

Kmod new_kmod()
{
	Kmod kmod(kmod_new(nullptr, nullptr));

	if (!kmod)
		throw std::bad_alloc();
	kmod_set_log_fn(kmod.get(), log_nothing, nullptr);
	return kmod;
}

Module by_path(const Kmod &kmod, const std::string &file)
{
	kmod_module *module = nullptr;
	const int error = kmod_module_new_from_path(kmod.get(), file.c_str(), &module);

	if (error < 0)
		throw Failure(Exit::NotFound, fmt::format("{}: {}", file, error_text(-error)));
	return Module(module);
}

/* Among those of the running kernel; null if it has none. */
Module by_name(const Kmod &kmod, const std::string &name)
{
	kmod_list *list = nullptr;
	Module found;

	if (kmod_module_new_from_lookup(kmod.get(), name.c_str(), &list) < 0 || !list)
		return found;
	found.reset(kmod_module_get_module(list));
	kmod_module_unref_list(list);
	return found;
}

std::string parameter_name(const std::string &value)
{
	return value.substr(0, value.find(':'));
}

ModuleInfo info_of(const Module &module)
{
	const char *path = kmod_module_get_path(module.get());
	ModuleInfo info;
	kmod_list *list = nullptr, *entry = nullptr;
	const int error = kmod_module_get_info(module.get(), &list);

	info.path = path ? path : "";
	if (error < 0)
		throw Failure(Exit::Failed, fmt::format("{} is no kernel module that can be read: {}", info.path,
							error_text(-error)));
	kmod_list_foreach(entry, list)
	{
		const std::string key = kmod_module_info_get_key(entry), value = kmod_module_info_get_value(entry);
		if (key == "version")
			info.version = value;
		else if (key == "vermagic")
			info.vermagic = trim(value);
		else if (key == "depends" && !value.empty())
			info.depends = split(value, ',');
		else if (key == "parmtype")
			info.parameters.push_back(parameter_name(value));
	}
	kmod_module_info_free_list(list);
	return info;
}

Module find(const Kmod &kmod, const std::string &file)
{
	if (!file.empty())
		return by_path(kmod, file);
	Module module = by_name(kmod, kModule);
	if (!module || !kmod_module_get_path(module.get()))
		throw Failure(
			Exit::NotFound,
			fmt::format("there is no herald module for the running kernel {0} below /lib/modules/{0}: make "
				    "install && depmod, or load --module FILE",
				    kernel_release()));
	return module;
}

bool is_there(const Module &module)
{
	const int state = kmod_module_get_initstate(module.get());

	return state == KMOD_MODULE_LIVE || state == KMOD_MODULE_BUILTIN;
}

/* A module that herald needs: the running kernel's own, else one beside the file. */
void load_dependency(const Kmod &kmod, const std::string &name, const std::string &folder)
{
	Module module = by_name(kmod, name);
	const std::string beside = fmt::format("{}/{}.ko", folder, name);

	if (!module && exists(fmt::format("/sys/module/{}", name)))
		return;
	if (!module && exists(beside))
		module = by_path(kmod, beside);
	if (!module)
		throw Failure(
			Exit::NotFound,
			fmt::format(
				"herald needs the module {}, which the kernel {} does not have: install its package "
				"of further modules, or build it with CONFIG_INFINIBAND and its user access",
				name, kernel_release()));
	if (is_there(module))
		return;
	const int error = kmod_module_probe_insert_module(module.get(), 0, nullptr, nullptr, nullptr, nullptr);
	if (error)
		throw Failure(geteuid() ? Exit::Denied : Exit::Failed,
			      fmt::format("herald needs the module {}, and it cannot be loaded: {}", name,
					  error > 0 ? "it is blacklisted" : error_text(-error)));
}

} // namespace

Surroundings surroundings()
{
	return {.release = kernel_release(),
		.lockdown = parse_lockdown(read_word("/sys/kernel/security/lockdown")),
		.root = geteuid() == 0};
}

bool module_loaded()
{
	return exists(kSysModule);
}

ModuleInfo find_module(const std::string &file)
{
	const Kmod kmod = new_kmod();

	return info_of(find(kmod, file));
}

ModuleInfo load_module(const std::string &file, const Strings &parameters)
{
	const Kmod kmod = new_kmod();
	const Module module = find(kmod, file);
	ModuleInfo info = info_of(module);
	const std::string folder = std::filesystem::path(info.path).parent_path().string();

	check_parameters(info, parameters);
	if (module_loaded())
		throw Failure(Exit::Busy, "herald is loaded already: heraldctl unload first");
	for (const std::string &dependency : info.depends)
		load_dependency(kmod, dependency, folder);
	const int error = kmod_module_insert_module(module.get(), 0, join(parameters, " ").c_str());
	if (error < 0)
		throw explain_insert(-error, info, parameters, surroundings());
	return info;
}

int remove_module()
{
	const Kmod kmod = new_kmod();
	kmod_module *module = nullptr;
	const int error = kmod_module_new_from_name(kmod.get(), kModule, &module);

	if (error < 0)
		return -error;
	const Module owner(module);
	return std::abs(kmod_module_remove_module(module, 0));
}

std::string module_holders()
{
	const Strings holders = list_folder(fmt::format("{}/holders", kSysModule));

	if (!holders.empty())
		return fmt::format("the modules {}", join(holders, ", "));
	return fmt::format("{} references", read_word(fmt::format("{}/refcnt", kSysModule)));
}

} // namespace heraldctl
