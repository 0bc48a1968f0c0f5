/* SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB */
/*
 * A tracepoint's records, as the kernel describes them in events/SYSTEM/EVENT/format: fields by their names, so that a
 * module with more fields, or with the same ones elsewhere, is understood as well.
 */
#ifndef HERALDCTL_EVENT_FORMAT_H
#define HERALDCTL_EVENT_FORMAT_H

#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <span>

#include "sys.h"

namespace heraldctl {

using Bytes = std::span<const std::byte>;

class EventFormat {
public:
	/* A Failure if this describes no event. */
	static EventFormat parse(std::string_view text);

	uint16_t id() const { return id_; }
	bool has(const std::string &field) const { return fields_.contains(field); }

	/* Whether a record is of this event. */
	bool matches(Bytes record) const;

	/* A field's value; nothing if there is no such field, or if the record ends before it. */
	std::optional<int64_t> integer(Bytes record, const std::string &field) const;

	/* The same as a word: a string field; or a number, by its name where the event has one for it. */
	std::optional<std::string> word(Bytes record, const std::string &field) const;

private:
	enum class Kind : uint8_t { Integer, Text, DataLoc, RelLoc };
	struct Field {
		size_t offset = 0;
		size_t size = 0;
		bool is_signed = false;
		Kind kind = Kind::Integer;
	};

	void add_field(std::string_view line);
	void add_symbols(std::string_view print);

	uint16_t id_ = 0;
	std::map<std::string, Field> fields_;
	/* what __print_symbolic() has for a field */
	std::map<std::string, std::map<int64_t, std::string>> symbols_;
};

struct TraceRecord {
	uint64_t time = 0; /* of the trace's clock, in ns */
	Bytes data;
};

struct TracePage {
	std::vector<TraceRecord> records; /* they point into the page */
	bool lost = false;                /* some before them were lost */
};

/* One page of a CPU's ring buffer, as per_cpu/cpuN/trace_pipe_raw of a 64-bit kernel gives it. */
TracePage parse_trace_page(Bytes page);

} // namespace heraldctl

#endif
