/* SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB */
#include "control.h"

#include <fcntl.h>
#include <unistd.h>

#include <fstream>
#include <sstream>

namespace conformance {

namespace {

using Row = std::map<std::string, std::string>;

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
