// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
#include "table.h"

#include "failure.h"

#include <fmt/format.h>

#include <algorithm>

namespace heraldctl {

Table Table::parse(std::string_view text, const std::string &what)
{
	Table table;

	for (const std::string &line : split(text, '\n')) {
		Strings row = words(line);
		if (row.empty())
			continue;
		if (table.columns.empty()) {
			table.columns = std::move(row);
			continue;
		}
		if (row.size() != table.columns.size())
			throw Failure(Exit::Failed, fmt::format("{}: {} words where {} are expected: {}", what,
								row.size(), table.columns.size(), line));
		table.rows.push_back(std::move(row));
	}
	if (table.columns.empty())
		throw Failure(Exit::Failed, fmt::format("{}: no line of column names", what));
	return table;
}

namespace {

bool is_number(const std::string &word)
{
	return word == "-" || number(word).has_value();
}

std::string padded(const std::string &word, size_t width, bool right)
{
	return right ? fmt::format("{:>{}}", word, width) : fmt::format("{:<{}}", word, width);
}

} // namespace

std::string Table::text() const
{
	std::vector<size_t> width;
	std::vector<bool> right;
	std::string out;

	for (size_t i = 0; i < columns.size(); i++) {
		size_t longest = columns[i].size();
		bool numbers = !rows.empty();
		for (const Strings &row : rows) {
			longest = std::max(longest, row[i].size());
			numbers = numbers && is_number(row[i]);
		}
		width.push_back(longest);
		right.push_back(numbers);
	}
	const auto line = [&](const Strings &row) {
		Strings cells;
		for (size_t i = 0; i < row.size(); i++)
			cells.push_back(padded(row[i], width[i], right[i]));
		std::string all = join(cells, "  ");
		all.erase(all.find_last_not_of(' ') + 1);
		out += all + '\n';
	};
	line(columns);
	for (const Strings &row : rows)
		line(row);
	return out;
}

void Table::prepend(const std::string &column, const std::string &word)
{
	columns.insert(columns.begin(), column);
	for (Strings &row : rows)
		row.insert(row.begin(), word);
}

} // namespace heraldctl
