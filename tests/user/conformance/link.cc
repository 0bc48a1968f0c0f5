/* SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB */
#include "link.h"

#include <net/if.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cstdlib>
#include <fstream>

namespace conformance {

namespace {

int try_run(const std::string &command)
{
	return system(command.c_str());
}

void run(const std::string &command)
{
	require_ok(try_run(command), command);
}

std::string device_type()
{
	const char *type = getenv("DEV_TYPE");

	return type ? type : "herald";
}

} // namespace

Link::Link() : name_("own" + std::to_string(getpid())), netdev_("if" + std::to_string(getpid()))
{
	make_interface();
	add();
}

Link::~Link()
{
	if (exists())
		try_run("rdma link del " + name_);
	try_run("ip link del " + netdev_ + " 2>/dev/null");
}

void Link::make_interface()
{
	if (if_nametoindex(netdev_.c_str()))
		return;
	run("ip link add " + netdev_ + " type dummy");
	run("ip addr add 10.66.0.1/24 dev " + netdev_);
	run("ip link set " + netdev_ + " up");
}

void Link::add()
{
	make_interface();
	run("rdma link add " + name_ + " type " + device_type() + " netdev " + netdev_);
}

bool Link::exists() const
{
	return access(("/sys/class/infiniband/" + name_).c_str(), F_OK) == 0;
}

Millis Link::took(const std::string &command)
{
	const auto begin = Clock::now();

	run(command);
	/* with its interface, it goes in a work item; there is nothing to wait in */
	while (exists()) {
		if (Clock::now() > begin + patience())
			fail(name_ + " does not go");
		usleep(1000);
	}
	return std::chrono::duration_cast<Millis>(Clock::now() - begin);
}

Millis Link::del()
{
	return took("rdma link del " + name_);
}

Millis Link::unplug()
{
	return took("ip link del " + netdev_);
}

void Link::set_up(bool up)
{
	const int fd = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);
	ifreq request{};

	require(fd >= 0, "socket");
	netdev_.copy(request.ifr_name, sizeof(request.ifr_name) - 1);
	int rc = ioctl(fd, SIOCGIFFLAGS, &request);
	if (up)
		request.ifr_flags = static_cast<short>(request.ifr_flags | IFF_UP);
	else
		request.ifr_flags = static_cast<short>(request.ifr_flags & ~IFF_UP);
	if (!rc)
		rc = ioctl(fd, SIOCSIFFLAGS, &request);
	close(fd);
	require_ok(rc, netdev_ + ": flags");
}

void Link::address(bool add, int number)
{
	run("ip addr " + std::string(add ? "add" : "del") + " 10.66.0." + std::to_string(number) + "/24 dev " +
	    netdev_);
}

void wait_until_asleep(pid_t tid)
{
	const auto end = Clock::now() + patience();
	std::string line;

	while (Clock::now() < end) {
		std::ifstream stat("/proc/self/task/" + std::to_string(tid) + "/stat");

		/* 17 (name) S ... */
		require(static_cast<bool>(std::getline(stat, line)), "the thread has gone");
		if (line.compare(line.rfind(')'), 4, ") S ") == 0)
			return;
		usleep(1000);
	}
	fail("the thread does not sleep: " + line);
}

} // namespace conformance
