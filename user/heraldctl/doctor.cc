// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
#include "doctor.h"

#include "control.h"
#include "devices.h"
#include "failure.h"
#include "module.h"
#include "watch.h"

#include <fmt/format.h>
#include <rdma/herald-abi.h>

#include <algorithm>

#include <dlfcn.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

namespace heraldctl {

namespace {

constexpr unsigned kRocePort = 4791;
constexpr rlim_t kMemlock = 8UL << 20; /* what Linux gives by default since 5.16 */
constexpr const char *kDriverFolder = "/etc/libibverbs.d";

Check ok(std::string name, std::string text)
{
	return {std::move(name), Verdict::Ok, std::move(text), {}};
}

Check note(std::string name, std::string text)
{
	return {std::move(name), Verdict::Note, std::move(text), {}};
}

Check finding(std::string name, std::string text, std::string remedy)
{
	return {std::move(name), Verdict::Finding, std::move(text), std::move(remedy)};
}

Check check_kernel()
{
	const std::string release = kernel_release();

	if (!release_at_least(release, 6, 12))
		return finding("kernel", fmt::format("{} is older than 6.12", release), "boot a kernel from 6.12 on");
	if (module_loaded() && !exists("/sys/class/infiniband_verbs"))
		return finding("kernel", fmt::format("{}: the RDMA core's user access is not there", release),
			       "modprobe ib_uverbs");
	return ok("kernel", release);
}

Check check_module()
{
	ModuleInfo installed;
	bool missing = false;

	try {
		installed = find_module("");
	} catch (const Failure &) {
		missing = true;
	}
	if (!module_loaded()) {
		if (missing)
			return finding("module", "not installed for the running kernel", "make install && depmod");
		return finding("module", fmt::format("not loaded; {} is version {}", installed.path, installed.version),
			       "heraldctl load");
	}
	const std::string version = read_word("/sys/module/herald/version");
	if (!missing && installed.version != version)
		return finding("module",
			       fmt::format("version {} is loaded, {} is version {}", version, installed.path,
					   installed.version),
			       "heraldctl unload, heraldctl load");
	if (version != HERALDCTL_VERSION)
		return finding("module",
			       fmt::format("version {} is loaded, heraldctl is version " HERALDCTL_VERSION, version),
			       "install both from the same source");
	return ok("module", fmt::format("version {} is loaded{}", version,
					!missing ? "" : " (none is installed below /lib/modules)"));
}

/* The module's user ABI, as each of its devices has it */
Check check_abi()
{
	for (const std::string &uverbs : list_folder("/sys/class/infiniband_verbs")) {
		const std::string folder = "/sys/class/infiniband_verbs/" + uverbs;
		if (read_word(fmt::format("/sys/class/infiniband/{}/hca_type", read_word(folder + "/ibdev"))) !=
		    "herald")
			continue;
		const std::string abi = read_word(folder + "/abi_version");
		if (abi != fmt::format("{}", HERALD_ABI_VERSION))
			return finding("abi",
				       fmt::format("the module's ABI is {}, this program's and its provider's is {}",
						   abi, HERALD_ABI_VERSION),
				       "install module and provider from the same source (make install)");
	}
	return ok("abi", fmt::format("{}", HERALD_ABI_VERSION));
}

/* A provider carries in its name the private ABI of the one libibverbs that it works with. */
std::string private_abi_of_libibverbs()
{
	void *library = dlopen("libibverbs.so.1", RTLD_LAZY | RTLD_LOCAL);
	std::string found;

	if (!library)
		return found;
	for (int abi = 60; abi >= 20 && found.empty(); abi--) {
		if (dlvsym(library, "verbs_uninit_context", fmt::format("IBVERBS_PRIVATE_{}", abi).c_str()))
			found = fmt::format("{}", abi);
	}
	dlclose(library);
	return found;
}

Check check_provider()
{
	const std::string abi = private_abi_of_libibverbs();
	const std::string remedy = "make user-install";

	if (abi.empty())
		return finding("provider", "libibverbs is not installed, or too old",
			       "apt-get install rdma-core libibverbs1");
	if (read_word(fmt::format("{}/herald.driver", kDriverFolder)) != "driver herald")
		return finding("provider",
			       fmt::format("{}/herald.driver is missing, or names another driver", kDriverFolder),
			       remedy);
	const std::string name = fmt::format("libherald-rdmav{}.so", abi);
	for (const char *folder : {HERALDCTL_LIBDIR, "/usr/lib", "/usr/lib64"}) {
		const std::string file = fmt::format("{}/libibverbs/{}", folder, name);
		if (exists(file))
			return ok("provider", file);
	}
	return finding("provider",
		       fmt::format("no {} for the installed libibverbs (this build's is {})", name, HERALDCTL_PROVIDER),
		       remedy);
}

/* The interface can carry traffic; then only a command keeps the port down. */
bool has_carrier(const std::string &netdev)
{
	return read_word(fmt::format("/sys/class/net/{}/carrier", netdev)) == "1";
}

Check check_device(const Device &device)
{
	const std::string name = "device " + device.name;

	if (read_word(fmt::format("{}/{}/fatal", kDebugfs, device.name)) == "1")
		return finding(
			name, "it had a fatal error (provoked), and makes nothing any more",
			fmt::format("heraldctl link del {0}; heraldctl link add {0} {1}", device.name, device.netdev));
	if (device.gids.empty())
		return finding(name, fmt::format("no GID: {} has no address, or is down", device.netdev),
			       fmt::format("ip link set {0} up; ip addr add ADDRESS dev {0}", device.netdev));
	if (device.state == "ACTIVE")
		return ok(name, fmt::format("{} on {}, {} GIDs", device.state, device.netdev, device.gids.size()));
	if (has_carrier(device.netdev))
		return finding(name, fmt::format("its port is {} on purpose: {} is up", device.state, device.netdev),
			       fmt::format("heraldctl provoke {} port-active", device.name));
	return finding(name, fmt::format("its port is {}", device.state),
		       fmt::format("ip link set {} up", device.netdev));
}

/* What is held since somebody said so looks like a hang. */
void check_held(const Device &device, std::vector<Check> &checks)
{
	if (geteuid() != 0)
		return;
	try {
		const Table cqs = read_table(device.name, "cqs");
		const auto column = [&](const char *wanted) {
			return static_cast<size_t>(std::find(cqs.columns.begin(), cqs.columns.end(), wanted) -
						   cqs.columns.begin());
		};
		const size_t cqn = column("cqn"), held = column("held");

		for (const Strings &row : cqs.rows)
			if (held < row.size() && cqn < row.size() && row[held] != "0" && row[held] != "-")
				checks.push_back(note("device " + device.name,
						      fmt::format("CQ {} holds back {} completions: heraldctl resume "
								  "{} {}",
								  row[cqn], row[held], device.name, row[cqn])));
	} catch (const Failure &) {
		return; /* check_debugfs() says why */
	}
}

std::vector<Check> check_devices()
{
	std::vector<Check> checks;

	for (const Device &device : find_devices()) {
		checks.push_back(check_device(device));
		check_held(device, checks);
	}
	if (checks.empty() && module_loaded())
		checks.push_back(note("devices", "there are none: heraldctl link add NAME INTERFACE"));
	return checks;
}

Check check_memlock()
{
	rlimit limit{};

	getrlimit(RLIMIT_MEMLOCK, &limit);
	if (limit.rlim_cur == RLIM_INFINITY)
		return ok("memlock", "unlimited");
	const std::string text = fmt::format("{} KiB", limit.rlim_cur >> 10);
	if (limit.rlim_cur < kMemlock)
		return finding("memlock", text + ": too little for memory regions",
			       "ulimit -l unlimited (limits.conf: memlock; systemd: LimitMEMLOCK=infinity)");
	return ok("memlock", text);
}

/* Who has a socket, by its inode. */
std::string owner_of(unsigned long inode)
{
	const std::string wanted = fmt::format("socket:[{}]", inode);

	for (const std::string &pid : list_folder("/proc")) {
		if (!number(pid))
			continue;
		for (const std::string &fd : list_folder(fmt::format("/proc/{}/fd", pid))) {
			char target[64];
			const ssize_t n =
				readlink(fmt::format("/proc/{}/fd/{}", pid, fd).c_str(), target, sizeof(target));
			if (n > 0 && std::string_view(target, static_cast<size_t>(n)) == wanted)
				return process_name(static_cast<long>(number(pid).value_or(0)));
		}
	}
	return {};
}

/* Loaded without the wire, herald does not want the port. */
bool wire_is_off()
{
	return read_file("/sys/module/herald/parameters/wire").value_or("").starts_with("off");
}

Check check_port()
{
	const bool off = wire_is_off();
	/* devices hold the port of the network namespaces that they are in; of others' the interface is not seen */
	const auto devices = find_devices();
	const bool own = !off && std::any_of(devices.begin(), devices.end(),
					     [](const Device &device) { return !device.netdev.empty(); });
	bool held = false;
	Strings owners;

	for (const char *table : {"/proc/net/udp", "/proc/net/udp6"}) {
		for (const unsigned long inode : sockets_on_port(read_file(table).value_or(""), kRocePort)) {
			std::string owner = owner_of(inode);
			if (owner.empty() && own) {
				held = true;
				continue;
			}
			if (owner.empty())
				owner = exists("/sys/module/rdma_rxe") ? "the kernel (rdma_rxe)"
								       : "the kernel, or a process that "
									 "only root can see";
			if (std::find(owners.begin(), owners.end(), owner) == owners.end())
				owners.push_back(owner);
		}
	}
	if (!owners.empty() && off)
		return ok("udp-port",
			  fmt::format("{} is used by {}; herald does without", kRocePort, join(owners, ", ")));
	if (owners.empty())
		return ok("udp-port", fmt::format("{} is {}", kRocePort, held ? "herald's" : "free"));
	return finding(
		"udp-port", fmt::format("{} (RoCE v2) is used by {}", kRocePort, join(owners, ", ")),
		"end it, or delete the other RDMA links (rdma link del; before Linux 7 also rmmod rdma_rxe), or load "
		"herald with wire=off");
}

Check check_debugfs()
{
	if (geteuid() != 0)
		return note("debugfs", "only root can look: run doctor as root for all checks");
	if (exists(kDebugfs))
		return ok("debugfs", kDebugfs);
	if (!module_loaded())
		return note("debugfs", "herald is not loaded: not looked at");
	return finding("debugfs", fmt::format("{} is not there: no show, hold or provoke", kDebugfs),
		       "mount -t debugfs none /sys/kernel/debug");
}

Check check_tracefs()
{
	try {
		return ok("tracefs", tracefs());
	} catch (const Failure &failure) {
		const std::string text = failure.what();
		const size_t colon = text.find(": ");
		if (text.starts_with("tracefs"))
			return finding("tracefs", text.substr(0, colon), text.substr(colon + 2));
		return note("tracefs", text);
	}
}

/* Programs need not be root: everybody reads and writes these. */
Check check_permissions()
{
	constexpr mode_t kAll = S_IROTH | S_IWOTH;
	const std::string folder = "/dev/infiniband";

	if (!exists(folder))
		return module_loaded()
			       ? finding("dev", folder + " is not there", "modprobe -a ib_uverbs rdma_ucm; start udev")
			       : note("dev", folder + " is not there yet");
	for (const std::string &name : list_folder(folder)) {
		struct stat file{};
		const std::string path = fmt::format("{}/{}", folder, name);
		const bool matters = name.starts_with("uverbs") || name == "rdma_cm";
		if (matters && stat(path.c_str(), &file) == 0 && (file.st_mode & kAll) != kAll)
			return finding(
				"dev",
				fmt::format("{} has mode {:o}: only some users may use it", path, file.st_mode & 07777),
				fmt::format("chmod 666 {} (or a udev rule)", path));
	}
	if (!exists(folder + "/rdma_cm"))
		return finding("dev", "no /dev/infiniband/rdma_cm: RDMA CM programs do not work", "modprobe rdma_ucm");
	return ok("dev", folder);
}

std::vector<Check> check_security()
{
	const std::string lockdown = surroundings().lockdown;
	const std::string enforce = read_word("/sys/fs/selinux/enforce");
	std::vector<Check> checks;

	if (!lockdown.empty() && lockdown != "none")
		checks.push_back(
			finding("lockdown",
				fmt::format("the kernel is locked down ({}): no unsigned module, no debugfs", lockdown),
				"sign herald.ko with an enrolled key, or turn Secure Boot off"));
	else
		checks.push_back(ok("lockdown", "none"));
	if (enforce == "1")
		checks.push_back(note("selinux",
				      "enforcing: if a confined program cannot open a device, ausearch -m avc says "
				      "so"));
	else
		checks.push_back(ok("selinux", enforce.empty() ? "not there" : "permissive"));
	return checks;
}

} // namespace

std::vector<Check> examine()
{
	std::vector<Check> checks = {check_kernel(), check_module(), check_abi(), check_provider()};

	for (Check &check : check_devices())
		checks.push_back(std::move(check));
	for (auto *one : {check_memlock, check_port, check_debugfs, check_tracefs, check_permissions})
		checks.push_back(one());
	for (Check &check : check_security())
		checks.push_back(std::move(check));
	return checks;
}

bool all_well(const std::vector<Check> &checks)
{
	return std::none_of(checks.begin(), checks.end(), [](const Check &c) { return c.verdict == Verdict::Finding; });
}

std::string_view verdict_name(Verdict verdict)
{
	switch (verdict) {
	case Verdict::Ok:
		return "ok";
	case Verdict::Note:
		return "note";
	case Verdict::Finding:
		break;
	}
	return "finding";
}

} // namespace heraldctl
