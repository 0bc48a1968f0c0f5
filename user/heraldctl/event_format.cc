// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
#include "event_format.h"

#include "failure.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstdlib>
#include <cstring>

namespace heraldctl {

namespace {

template <typename T> std::optional<T> load(Bytes from, size_t offset)
{
	T value;

	if (offset > from.size() || from.size() - offset < sizeof(T))
		return std::nullopt;
	std::memcpy(&value, from.data() + offset, sizeof(T));
	return value;
}

std::string text_at(Bytes record, size_t offset, size_t size)
{
	if (offset > record.size())
		return {};
	const auto *begin = reinterpret_cast<const char *>(record.data()) + offset;
	return {begin, strnlen(begin, std::min(size, record.size() - offset))};
}

/* The number behind KEY in "field:...;\toffset:8;\tsize:4;" */
size_t number_after(std::string_view line, std::string_view key)
{
	const size_t at = line.find(key);

	if (at == std::string_view::npos)
		throw Failure(Exit::Failed, fmt::format("an event's format without {}: {}", key, line));
	const std::string_view rest = line.substr(at + key.size());
	return number(rest.substr(0, rest.find(';'))).value_or(0);
}

/* The last word of a declaration, without the dimension: its name */
std::string declared_name(std::string_view declaration)
{
	const Strings parts = words(declaration.substr(0, declaration.find('[')));

	return parts.empty() ? "" : parts.back();
}

} // namespace

void EventFormat::add_field(std::string_view line)
{
	const size_t begin = line.find(':') + 1;
	const std::string_view declaration = line.substr(begin, line.find(';') - begin);
	Field field{.offset = number_after(line, "offset:"), .size = number_after(line, "size:")};

	field.is_signed = line.find("signed:1") != std::string_view::npos;
	if (declaration.find("__data_loc") != std::string_view::npos)
		field.kind = Kind::DataLoc;
	else if (declaration.find("__rel_loc") != std::string_view::npos)
		field.kind = Kind::RelLoc;
	else if (declaration.find('[') != std::string_view::npos)
		field.kind = Kind::Text;
	std::string name = declared_name(declaration);
	/* "__data_loc char[] name": what is behind the bracket */
	if (field.kind == Kind::DataLoc || field.kind == Kind::RelLoc)
		name = trim(declaration.substr(declaration.find(']') + 1));
	fields_[name] = field;
}

/* __print_symbolic(REC->field, { 0, "a" }, { 1, "b" }) */
void EventFormat::add_symbols(std::string_view print)
{
	constexpr std::string_view kCall = "__print_symbolic(REC->";
	size_t at = 0;

	while ((at = print.find(kCall)) != std::string_view::npos) {
		print.remove_prefix(at + kCall.size());
		auto &symbols = symbols_[std::string(print.substr(0, print.find_first_of(" ,)")))];
		std::string_view call = print.substr(0, print.find(')'));
		size_t brace = 0;
		while ((brace = call.find('{')) != std::string_view::npos) {
			call.remove_prefix(brace + 1);
			const size_t open = call.find('"'), close = call.find('"', open + 1);
			if (close == std::string_view::npos)
				break;
			const std::string value(call.substr(0, open));
			symbols[std::strtoll(value.c_str(), nullptr, 0)] = call.substr(open + 1, close - open - 1);
		}
	}
}

EventFormat EventFormat::parse(std::string_view text)
{
	EventFormat format;
	bool has_id = false;

	for (const std::string &raw : split(text, '\n')) {
		const std::string line = trim(raw);
		if (line.starts_with("ID:")) {
			format.id_ = static_cast<uint16_t>(number(trim(line.substr(3))).value_or(0));
			has_id = true;
		} else if (line.starts_with("field:")) {
			format.add_field(line);
		} else if (line.starts_with("print fmt:")) {
			format.add_symbols(line);
		}
	}
	if (!has_id || !format.has("common_type"))
		throw Failure(Exit::Failed, "the event's format is not understood: it has no ID, or no common_type");
	return format;
}

bool EventFormat::matches(Bytes record) const
{
	return integer(record, "common_type") == id_;
}

std::optional<int64_t> EventFormat::integer(Bytes record, const std::string &field) const
{
	const auto it = fields_.find(field);

	if (it == fields_.end() || it->second.kind != Kind::Integer)
		return std::nullopt;
	const auto [offset, size, is_signed, kind] = it->second;
	const auto as = [&]<typename S, typename U>(S, U) -> std::optional<int64_t> {
		const auto value = load<U>(record, offset);
		if (!value)
			return std::nullopt;
		return is_signed ? static_cast<int64_t>(static_cast<S>(*value)) : static_cast<int64_t>(*value);
	};
	switch (size) {
	case 1:
		return as(int8_t{}, uint8_t{});
	case 2:
		return as(int16_t{}, uint16_t{});
	case 4:
		return as(int32_t{}, uint32_t{});
	case 8:
		return as(int64_t{}, uint64_t{});
	default:
		return std::nullopt;
	}
}

std::optional<std::string> EventFormat::word(Bytes record, const std::string &field) const
{
	const auto it = fields_.find(field);

	if (it == fields_.end())
		return std::nullopt;
	const Field &f = it->second;
	if (f.kind == Kind::Text)
		return text_at(record, f.offset, f.size);
	if (f.kind == Kind::Integer) {
		const auto value = integer(record, field);
		if (!value)
			return std::nullopt;
		const auto names = symbols_.find(field);
		if (names != symbols_.end() && names->second.contains(*value))
			return names->second.at(*value);
		return fmt::format("{}", *value);
	}
	/* offset and length of what is elsewhere in the record; a relative one counts from the field's end */
	const auto where = load<uint32_t>(record, f.offset);
	if (!where)
		return std::nullopt;
	const size_t base = f.kind == Kind::RelLoc ? f.offset + sizeof(uint32_t) : 0;
	return text_at(record, base + (*where & 0xffff), *where >> 16);
}

/* ------------------------------------------------------------------------------------------------------ pages -- */

namespace {

/* Of the kernel's include/linux/ring_buffer.h; events/header_event describes it. */
constexpr unsigned kPadding = 29, kTimeExtend = 30, kTimeStamp = 31;
constexpr unsigned kTimeShift = 27;
constexpr size_t kPageHeader = 16; /* time stamp, and how much is in it */
constexpr uint64_t kLength = 0xfffff, kLost = 1u << 31;

} // namespace

TracePage parse_trace_page(Bytes page)
{
	TracePage found;
	const auto start = load<uint64_t>(page, 0), commit = load<uint64_t>(page, 8);

	if (!start || !commit)
		return found;
	uint64_t time = *start;
	found.lost = (*commit & kLost) != 0;
	const Bytes data = page.subspan(kPageHeader, std::min<size_t>(*commit & kLength, page.size() - kPageHeader));
	for (size_t at = 0; at + 4 <= data.size();) {
		const uint32_t head = load<uint32_t>(data, at).value_or(0);
		const unsigned type = head & 31;
		const uint64_t delta = head >> 5;
		const uint64_t extra = load<uint32_t>(data, at + 4).value_or(0);
		at += 4;
		if (type == kPadding) {
			if (!delta)
				break;
			at += extra;
			continue;
		}
		if (type == kTimeExtend || type == kTimeStamp) {
			const uint64_t value = delta + (extra << kTimeShift);
			time = type == kTimeStamp ? value : time + value;
			at += 4;
			continue;
		}
		time += delta;
		/* a longer record has its length, which counts itself, in front */
		const size_t skip = type ? 0 : 4, size = type ? size_t{type} * 4 : extra;
		if (size < skip || at + size > data.size())
			break;
		found.records.push_back({time, data.subspan(at + skip, size - skip)});
		at += (size + 3) & ~size_t{3};
	}
	return found;
}

} // namespace heraldctl
