/* SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB */
/* Files of /proc and /sys, and words in them. */
#ifndef HERALDCTL_SYS_H
#define HERALDCTL_SYS_H

#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace heraldctl {

using Strings = std::vector<std::string>;

/* The whole file; nothing, with errno set, if it cannot be read. */
std::optional<std::string> read_file(const std::string &path);

/* The same without the white space around it; empty if it cannot be read. */
std::string read_word(const std::string &path);

/* One write(2). 0, or errno. */
int write_file(const std::string &path, std::string_view text);

/* The names in a folder, sorted; none if it cannot be read. */
Strings list_folder(const std::string &path);

bool exists(const std::string &path);

std::string trim(std::string_view text);

/* At each of the separator; words(): at white space, no empty ones. */
Strings split(std::string_view text, char separator);
Strings words(std::string_view text);
std::string join(const Strings &parts, std::string_view between);

/* A whole non-negative number. */
std::optional<unsigned long long> number(std::string_view text, int base = 10);

std::string error_text(int error);

/* /proc/PID/comm; empty if there is no such process. */
std::string command_of(long pid);

/* "ibv_asyncwatch (pid 12)" */
std::string process_name(long pid);

std::string kernel_release();

/* The sockets of a /proc/net/udp table on this port: their inodes. */
std::vector<unsigned long> sockets_on_port(std::string_view table, unsigned port);

/* 6.12.1-foo is at least 6.1 */
bool release_at_least(std::string_view release, unsigned major, unsigned minor);

} // namespace heraldctl

#endif
