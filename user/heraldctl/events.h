/* SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB */
/* The asynchronous events: what they are called, and what they are about. */
#ifndef HERALDCTL_EVENTS_H
#define HERALDCTL_EVENTS_H

#include <cstdint>
#include <optional>
#include <span>
#include <string_view>

#include "sys.h"

namespace heraldctl {

enum class Object : uint8_t { Qp, Cq, Srq, Port, Device, Wq };

struct Event {
	std::string_view name; /* of enum ib_event_type: lower case, with dashes */
	Object object;
};

std::span<const Event> events();
const Event *find_event(std::string_view name);

std::string_view object_name(Object object);

/* Whether provoking it takes an object's number. */
bool takes_number(const Event &event);

/*
 * The command for debugfs. A Failure (Usage) that says what is there if there is no such event, or if a number is
 * missing or one too many.
 */
std::string provoke_command(const std::string &event, const std::optional<std::string> &number);

} // namespace heraldctl

#endif
