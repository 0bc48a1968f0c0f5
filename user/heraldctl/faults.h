/* SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB */
/* Faults on purpose: the words of the command line, and the line for a device's control file that they make. */
#ifndef HERALDCTL_FAULTS_H
#define HERALDCTL_FAULTS_H

#include "sys.h"

#include <cstdint>
#include <map>

namespace heraldctl {

struct FaultRequest {
	std::string kind;                             /* message, rnr, verb, wr, recv, clear */
	Strings words;                                /* what follows it */
	std::map<std::string, std::uint64_t> numbers; /* the options that were given: nth, every ... */
};

struct FaultOption {
	const char *name;
	const char *about;
};

/* Those that any kind may have */
extern const FaultOption kFaultOptions[7];

/* "fault message lose nth 3"; a Failure (Usage) that says what is missing, or what is too much. */
std::string fault_command(const FaultRequest &request);

/* What it is about, for who has to hear that it is not there: "QP 17", "fault 3", "device" */
std::string fault_object(const FaultRequest &request);

} // namespace heraldctl

#endif
