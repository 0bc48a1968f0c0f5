/* SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB */
/* A device's folder in debugfs: its tables and its commands. */
#ifndef HERALDCTL_CONTROL_H
#define HERALDCTL_CONTROL_H

#include "failure.h"
#include "table.h"

namespace heraldctl {

/* Root of the devices' folders */
inline constexpr const char *kDebugfs = "/sys/kernel/debug/herald";

struct CqCommand {
	const char *name;
	bool takes_count; /* a second number, which may be left out */
	const char *about;
};

/* hold, release ... : those of a CQ */
extern const CqCommand kCqCommands[7];

/* Why a write to a device's file failed, for its user. OBJECT: "CQ 5", "port"; COMMAND: what was written */
Failure explain_control(int error, const std::string &device, const std::string &command, const std::string &object);

/* Writes one command, and throws what explain_control() says. */
void send_control(const std::string &device, const std::string &command, const std::string &object);

/* Lets the device be provoked, or not. */
void set_allow(const std::string &device, bool on);
/* 1, 0, or -1 if it cannot be read */
int get_allow(const std::string &device);

/* cqs, qps, srqs or faults */
Table read_table(const std::string &device, const std::string &name);

} // namespace heraldctl

#endif
