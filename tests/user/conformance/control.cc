/* SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB */
#include "control.h"

#include <fcntl.h>
#include <unistd.h>

#include <fstream>
#include <sstream>

namespace conformance {

namespace {

using Row = TableRow;

std::vector<std::string> words(const std::string &line)
{
	std::istringstream in(line);
	std::vector<std::string> out;

	for (std::string word; in >> word;)
		out.push_back(word);
	return out;
}

std::vector<Row> read_table(const std::string &path)
{
	std::ifstream in(path);
	std::vector<std::string> head;
	std::vector<Row> rows;

	require(in.good(), path);
	for (std::string line; std::getline(in, line);) {
		const auto cells = words(line);
		Row row;

		if (head.empty()) {
			head = cells;
			continue;
		}
		require(cells.size() == head.size(), path + ": a line of another length: " + line);
		for (size_t i = 0; i < cells.size(); i++)
			row[head[i]] = cells[i];
		rows.push_back(row);
	}
	return rows;
}

} // namespace

std::string control_dir(const Device &dev)
{
	return "/sys/kernel/debug/herald/" + dev.name;
}

bool CqControl::available(const Device &dev)
{
	return access((control_dir(dev) + "/control").c_str(), F_OK) == 0;
}

CqControl::CqControl(const Device &dev, const ibv_cq *cq) : dir_(control_dir(dev))
{
	const std::string pid = std::to_string(getpid()), cqe = std::to_string(cq->cqe);
	int found = 0;

	for (const Row &row : read_table(dir_ + "/cqs")) {
		if (row.at("pid") != pid || row.at("cqe") != cqe)
			continue;
		cqn_ = static_cast<uint32_t>(std::stoul(row.at("cqn")));
		found++;
	}
	require(found == 1, std::to_string(found) + " CQs of this process with " + cqe + " entries");
}

int write_line(const std::string &path, const std::string &line)
{
	const int fd = open(path.c_str(), O_WRONLY | O_CLOEXEC);
	int error = 0;

	require(fd >= 0, path);
	if (write(fd, line.data(), line.size()) != static_cast<ssize_t>(line.size()))
		error = errno;
	close(fd);
	return error;
}

std::vector<Row> own_rows(const Device &dev, const std::string &table)
{
	const std::string pid = std::to_string(getpid());
	auto rows = read_table(control_dir(dev) + "/" + table);

	std::erase_if(rows, [&](const Row &row) { return row.at("pid") != pid; });
	return rows;
}

std::vector<Row> all_rows(const Device &dev, const std::string &table)
{
	return read_table(control_dir(dev) + "/" + table);
}

uint64_t device_counter(const Device &dev, const std::string &name)
{
	const std::string path = "/sys/class/infiniband/" + dev.name + "/ports/1/hw_counters/" + name;
	uint64_t value = 0;

	/* the kernel reads them anew once in a jiffy */
	std::this_thread::sleep_for(Millis(25));
	std::ifstream in(path);
	require(static_cast<bool>(in >> value), path);
	return value;
}

Row qp_row(const Device &dev, uint32_t qpn)
{
	for (const Row &row : own_rows(dev, "qps"))
		if (row.at("qpn") == std::to_string(qpn))
			return row;
	fail("QP " + std::to_string(qpn) + " is not in the table");
}

uint32_t srq_number(const Device &dev)
{
	const auto rows = own_rows(dev, "srqs");

	require(rows.size() == 1, std::to_string(rows.size()) + " SRQs of this process");
	return static_cast<uint32_t>(std::stoul(rows[0].at("srqn")));
}

int try_control(const Device &dev, const std::string &line)
{
	return write_line(control_dir(dev) + "/control", line);
}

int try_provoke(const Device &dev, const std::string &event, std::optional<uint32_t> number)
{
	return try_control(dev, "provoke " + event + (number ? " " + std::to_string(*number) : "") + "\n");
}

void provoke(const Device &dev, const std::string &event, std::optional<uint32_t> number)
{
	require_ok(try_provoke(dev, event, number), "provoke " + event);
}

void TempLink::run(const std::string &command)
{
	require_ok(system(command.c_str()), command);
}

TempLink::TempLink(std::string netdev) : netdev_(std::move(netdev))
{
	static int instance;
	const char *before = getenv("HERALD_DEV");

	before_ = before ? before : "";
	device_ = "pvdev" + std::to_string(getpid() % 10000) + "n" + std::to_string(instance++);
	if (netdev_.empty()) {
		netdev_ = device_.substr(2);
		run("ip link add " + netdev_ + " type dummy");
	}
	run("ip link set " + netdev_ + " up && ip addr add 10.11.12.1/24 dev " + netdev_);
	add_device();
	setenv("HERALD_DEV", device_.c_str(), 1);
}

/* The device goes with its interface. */
TempLink::~TempLink()
{
	if (before_.empty())
		unsetenv("HERALD_DEV");
	else
		setenv("HERALD_DEV", before_.c_str(), 1);
	EXPECT_EQ(system(("ip link del " + netdev_).c_str()), 0);
}

void TempLink::add_device()
{
	run("rdma link add " + device_ + " type herald netdev " + netdev_);
}

void TempLink::del_device()
{
	run("rdma link del " + device_);
}

int CqControl::try_do(const std::string &command, const std::string &argument) const
{
	std::string line = command + " " + std::to_string(cqn_);

	if (!argument.empty())
		line += " " + argument;
	return write_line(dir_ + "/control", line + "\n");
}

Row CqControl::row() const
{
	const std::string cqn = std::to_string(cqn_);

	for (const Row &row : read_table(dir_ + "/cqs"))
		if (row.at("cqn") == cqn)
			return row;
	fail("CQ " + cqn + " is not in the table");
}

} // namespace conformance
