/* SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB */
/* herald's files in debugfs: what a CQ holds and has counted, and commands that make races happen. */
#pragma once

#include "fixture.h"

#include <map>

namespace conformance {

using TableRow = std::map<std::string, std::string>;

/* The lines of a table ("cqs", "qps", "srqs") that belong to this process. */
std::vector<TableRow> own_rows(const Device &dev, const std::string &table);
/* All lines of one that is about nobody's objects ("faults"). */
std::vector<TableRow> all_rows(const Device &dev, const std::string &table);
/* A counter of the device's, by its name in `rdma statistic`. */
uint64_t device_counter(const Device &dev, const std::string &name);
TableRow qp_row(const Device &dev, uint32_t qpn);

/* "provoke EVENT [NUMBER]", and any other line: 0 or an errno. */
int try_control(const Device &dev, const std::string &line);
int try_provoke(const Device &dev, const std::string &event, std::optional<uint32_t> number = {});
void provoke(const Device &dev, const std::string &event, std::optional<uint32_t> number = {});
/* The number of this process's only SRQ. */
uint32_t srq_number(const Device &dev);

/* An interface of its own with a device on it, which is the one that Device opens meanwhile. */
class TempLink {
public:
	/* on an interface that there is, or on a new dummy */
	explicit TempLink(std::string netdev = "");
	~TempLink();
	TempLink(const TempLink &) = delete;
	TempLink &operator=(const TempLink &) = delete;

	void add_device();
	void del_device();
	const std::string &netdev() const { return netdev_; }
	static void run(const std::string &command);

private:
	std::string netdev_, device_, before_;
};

/* One CQ of this process, known from others of it by its number of entries. */
class CqControl {
public:
	CqControl(const Device &dev, const ibv_cq *cq);

	/* Does the device have such files at all?  Others' do not. */
	static bool available(const Device &dev);

	/* A command about this CQ: 0 or an errno. */
	int try_do(const std::string &command, const std::string &argument = "") const;
	void hold() const { must("hold"); }
	void release(int n = 1) const { must("release", n); }
	void release_before_arm(int n = 1) const { must("release-before-arm", n); }
	void release_after_arm(int n = 1) const { must("release-after-arm", n); }
	void reorder(uint64_t seed) const { must("reorder", seed); }
	void resume() const { must("resume"); }
	void extra_events(int n) const { must("event", n); }

	/* What is said of it, by column. */
	std::map<std::string, std::string> row() const;
	uint64_t number(const std::string &column) const { return std::stoull(row().at(column)); }

	uint32_t cqn() const { return cqn_; }

private:
	void must(const std::string &command) const { require_ok(try_do(command), command); }
	template <class N> void must(const std::string &command, N n) const
	{
		require_ok(try_do(command, std::to_string(n)), command);
	}

	std::string dir_;
	uint32_t cqn_ = 0;
};

/* A line to a control file: 0 or an errno. */
int write_line(const std::string &path, const std::string &line);
std::string control_dir(const Device &dev);

} // namespace conformance
