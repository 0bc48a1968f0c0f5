// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
#include "module_info.h"

#include <fmt/format.h>

#include <algorithm>
#include <cerrno>

namespace heraldctl {

namespace {

std::string release_of(const ModuleInfo &info)
{
	return info.vermagic.substr(0, info.vermagic.find(' '));
}

Failure explain_format(const ModuleInfo &info, const Surroundings &around)
{
	if (release_of(info) != around.release)
		return {Exit::Failed,
			fmt::format("{} was built for the kernel {}, and {} is running: build it for that one "
				    "(make KVER={})",
				    info.path, release_of(info), around.release, around.release)};
	return {Exit::Failed,
		fmt::format(
			"{} was built for a kernel {} of another configuration ({}): build it with the headers of the "
			"running one",
			info.path, around.release, info.vermagic)};
}

Failure explain_denied(const ModuleInfo &info, const Surroundings &around)
{
	if (!around.root)
		return {Exit::Denied, "loading a module needs CAP_SYS_MODULE: be root"};
	if (!around.lockdown.empty() && around.lockdown != "none")
		return {Exit::Denied, fmt::format("the kernel is locked down ({}) and takes no module without a "
						  "trusted signature: sign {} "
						  "with an enrolled key, or turn Secure Boot off",
						  around.lockdown, info.path)};
	return {Exit::Denied,
		fmt::format("the kernel takes no modules (kernel.modules_disabled, or a container without "
			    "CAP_SYS_MODULE): {}",
			    info.path)};
}

} // namespace

std::string parse_lockdown(std::string_view text)
{
	const size_t begin = text.find('['), end = text.find(']');

	if (begin == std::string_view::npos || end == std::string_view::npos || end < begin)
		return {};
	return std::string(text.substr(begin + 1, end - begin - 1));
}

void check_parameters(const ModuleInfo &info, const Strings &parameters)
{
	for (const std::string &parameter : parameters) {
		const size_t equals = parameter.find('=');
		if (equals == std::string::npos || equals == 0)
			throw Failure(Exit::Usage, fmt::format("'{}' is not PARAM=VALUE", parameter));
		const std::string name = parameter.substr(0, equals);
		if (std::find(info.parameters.begin(), info.parameters.end(), name) != info.parameters.end())
			continue;
		throw Failure(
			Exit::Usage,
			fmt::format("herald has no parameter {} ({}): {}", name, info.path,
				    info.parameters.empty() ? "it has none" : "it has " + join(info.parameters, ", ")));
	}
}

Failure explain_insert(int error, const ModuleInfo &info, const Strings &parameters, const Surroundings &around)
{
	switch (error) {
	case ENOEXEC:
		return explain_format(info, around);
	case EKEYREJECTED:
	case ENOKEY:
	case EBADMSG:
		return {Exit::Denied,
			fmt::format("the kernel refuses the signature of {}: sign it with a key that it trusts "
				    "(mokutil, dkms), or turn Secure Boot off",
				    info.path)};
	case EPERM:
		return explain_denied(info, around);
	case ENOENT:
		return {Exit::Failed,
			fmt::format("{} needs something that the running kernel {} does not have (it depends on "
				    "{}): dmesg names it",
				    info.path, around.release,
				    info.depends.empty() ? "no module" : join(info.depends, ", "))};
	case EINVAL:
		return {Exit::Failed, fmt::format("{}: the kernel does not take it{}: dmesg says why", info.path,
						  parameters.empty() ? "" : " with " + join(parameters, " "))};
	case EEXIST:
		return {Exit::Busy, "herald is loaded already"};
	default:
		return {Exit::Failed, fmt::format("{}: {}", info.path, error_text(error))};
	}
}

} // namespace heraldctl
