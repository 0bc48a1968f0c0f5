/* SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB */
/* A table as debugfs has it: a line of column names, then a line for each object; `-` where there is nothing. */
#ifndef HERALDCTL_TABLE_H
#define HERALDCTL_TABLE_H

#include "sys.h"

namespace heraldctl {

struct Table {
	Strings columns;
	std::vector<Strings> rows;

	/* Parses it; a line with too few or too many words is a Failure. WHAT names the table there. */
	static Table parse(std::string_view text, const std::string &what);

	/* Numbers and names under their columns, numbers to the right; ends with a newline. */
	std::string text() const;

	/* Puts a column in front, with the same word in each row. */
	void prepend(const std::string &column, const std::string &word);
};

} // namespace heraldctl

#endif
