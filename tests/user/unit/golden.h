// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
// The packets of tests/golden, which another program has made.
#ifndef HERALD_UNIT_GOLDEN_H
#define HERALD_UNIT_GOLDEN_H

#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <map>
#include <sstream>
#include <string>
#include <vector>

#include "pure.h"

struct Golden {
	std::string name;
	std::vector<u8> ip; // the whole packet
	std::map<std::string, u64> fields;

	bool v4() const { return ip[0] >> 4 == 4; }
	const u8 *udp() const { return ip.data() + (v4() ? 20 : 40); }
	const u8 *bth() const { return udp() + 8; }
	u32 len() const { return ip.data() + ip.size() - bth(); } // from the BTH on, with the iCRC
	u16 id() const { return ip[4] << 8 | ip[5]; }             // of IPv4
	u64 field(const std::string &field) const
	{
		auto found = fields.find(field);
		return found == fields.end() ? 0 : found->second;
	}
	// what herald says that its iCRC is
	u32 icrc() const
	{
		u32 covered = len() - HERALD_ICRC_LEN;
		return v4() ? herald_icrc_v4(ip.data(), udp(), id(), bth(), covered)
			    : herald_icrc_v6(ip.data(), udp(), bth(), covered);
	}
	// what the packet says
	u32 icrc_there() const { return herald_icrc_get(ip.data() + ip.size() - HERALD_ICRC_LEN); }
};

inline Golden golden_of(const std::string &line)
{
	std::istringstream words(line);
	std::string hex, word;
	Golden g;

	words >> g.name >> hex;
	for (size_t i = 0; i + 1 < hex.size(); i += 2)
		g.ip.push_back(std::strtoul(hex.substr(i, 2).c_str(), nullptr, 16));
	while (words >> word)
		g.fields[word.substr(0, word.find('='))] = std::strtoull(word.c_str() + word.find('=') + 1, nullptr, 0);
	return g;
}

// All of them; none if the file is not there, which the tests take for a failure.
inline const std::vector<Golden> &golden_packets()
{
	static const std::vector<Golden> packets = [] {
		std::ifstream file(HERALD_GOLDEN "/packets.txt");
		std::vector<Golden> found;
		std::string line;

		while (std::getline(file, line))
			if (!line.empty() && line[0] != '#')
				found.push_back(golden_of(line));
		return found;
	}();

	return packets;
}

// The one of this name.
inline Golden golden_packet(const std::string &name)
{
	for (auto &g : golden_packets())
		if (g.name == name)
			return g;
	std::fprintf(stderr, "no packet %s in %s\n", name.c_str(), HERALD_GOLDEN);
	std::abort();
}

#endif
