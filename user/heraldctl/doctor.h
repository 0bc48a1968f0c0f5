/* SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB */
/* What may keep herald from working here, and what to do about it. */
#ifndef HERALDCTL_DOCTOR_H
#define HERALDCTL_DOCTOR_H

#include "sys.h"

#include <cstdint>

namespace heraldctl {

enum class Verdict : uint8_t {
	Ok,
	Note, /* worth knowing, nothing wrong */
	Finding,
};

struct Check {
	std::string name;
	Verdict verdict = Verdict::Ok;
	std::string text;
	std::string remedy; /* of a finding */
};

std::vector<Check> examine();

bool all_well(const std::vector<Check> &checks);

std::string_view verdict_name(Verdict verdict);

} // namespace heraldctl

#endif
