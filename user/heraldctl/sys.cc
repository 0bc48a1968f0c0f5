// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
#include "sys.h"

#include <fmt/format.h>

#include <algorithm>
#include <cerrno>
#include <charconv>
#include <filesystem>
#include <system_error>

#include <fcntl.h>
#include <sys/utsname.h>
#include <unistd.h>

namespace heraldctl {

namespace {

constexpr std::string_view kBlanks = " \t\r\n";

} // namespace

/* read(2), and no stream: it keeps errno, and debugfs files are read as they are. */
std::optional<std::string> read_file(const std::string &path)
{
	const int fd = open(path.c_str(), O_RDONLY | O_CLOEXEC);
	char buffer[16384];
	std::string text;
	ssize_t n = 0;

	if (fd < 0)
		return std::nullopt;
	while ((n = read(fd, buffer, sizeof(buffer))) > 0)
		text.append(buffer, static_cast<size_t>(n));
	const int error = errno;
	close(fd);
	errno = error;
	if (n < 0)
		return std::nullopt;
	return text;
}

std::string read_word(const std::string &path)
{
	return trim(read_file(path).value_or(""));
}

int write_file(const std::string &path, std::string_view text)
{
	const int fd = open(path.c_str(), O_WRONLY | O_CLOEXEC);

	if (fd < 0)
		return errno;
	const ssize_t n = write(fd, text.data(), text.size());
	const int error = n < 0 ? errno : 0;
	close(fd);
	return error;
}

Strings list_folder(const std::string &path)
{
	std::error_code error;
	Strings names;

	for (std::filesystem::directory_iterator it(path, error), end; !error && it != end; it.increment(error))
		names.push_back(it->path().filename().string());
	std::sort(names.begin(), names.end());
	return names;
}

bool exists(const std::string &path)
{
	return access(path.c_str(), F_OK) == 0;
}

std::string trim(std::string_view text)
{
	const size_t begin = text.find_first_not_of(kBlanks);

	if (begin == std::string_view::npos)
		return {};
	return std::string(text.substr(begin, text.find_last_not_of(kBlanks) - begin + 1));
}

Strings split(std::string_view text, char separator)
{
	Strings parts;
	size_t end = 0;

	while ((end = text.find(separator)) != std::string_view::npos) {
		parts.emplace_back(text.substr(0, end));
		text.remove_prefix(end + 1);
	}
	parts.emplace_back(text);
	return parts;
}

Strings words(std::string_view text)
{
	Strings parts;
	size_t begin = 0;

	while ((begin = text.find_first_not_of(kBlanks)) != std::string_view::npos) {
		text.remove_prefix(begin);
		const size_t end = std::min(text.find_first_of(kBlanks), text.size());
		parts.emplace_back(text.substr(0, end));
		text.remove_prefix(end);
	}
	return parts;
}

std::string join(const Strings &parts, std::string_view between)
{
	return fmt::format("{}", fmt::join(parts, between));
}

std::optional<unsigned long long> number(std::string_view text, int base)
{
	unsigned long long value = 0;

	if (base == 16 && text.starts_with("0x"))
		text.remove_prefix(2);
	const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value, base);
	if (error != std::errc() || end != text.data() + text.size())
		return std::nullopt;
	return value;
}

std::string error_text(int error)
{
	return std::generic_category().message(error);
}

std::string command_of(long pid)
{
	return read_word(fmt::format("/proc/{}/comm", pid));
}

std::string process_name(long pid)
{
	const std::string command = command_of(pid);

	return command.empty() ? fmt::format("pid {}", pid) : fmt::format("{} (pid {})", command, pid);
}

std::string kernel_release()
{
	utsname name{};

	uname(&name);
	return name.release;
}

std::vector<unsigned long> sockets_on_port(std::string_view table, unsigned port)
{
	const std::string suffix = fmt::format(":{:04X}", port);
	std::vector<unsigned long> inodes;

	for (const std::string &line : split(table, '\n')) {
		const Strings fields = words(line);
		if (fields.size() > 9 && fields[1].ends_with(suffix))
			inodes.push_back(static_cast<unsigned long>(number(fields[9]).value_or(0)));
	}
	return inodes;
}

bool release_at_least(std::string_view release, unsigned major, unsigned minor)
{
	const size_t dot = release.find('.');

	if (dot == std::string_view::npos)
		return false;
	const std::string_view rest = release.substr(dot + 1);
	const auto a = number(release.substr(0, dot)), b = number(rest.substr(0, rest.find_first_not_of("0123456789")));
	return a && b && (*a > major || (*a == major && *b >= minor));
}

} // namespace heraldctl
