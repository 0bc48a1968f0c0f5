/* SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB */
/*
 * The conformance tests of a verbs device.
 *
 *	HERALD_DEV=NAME		the device (default: the first)
 *	HERALD_PEER=NAME	the device of a pair's other end (default: the same), which the first one must reach
 *	HERALD_GID_INDEX=N	the GID (default: the first RoCEv2 one, IPv4 before IPv6)
 *	FACTOR=N		the machine is N times slower than a fast one
 *	HERALD_PATIENCE=N	seconds to wait for what must happen (default: 30 x FACTOR)
 */
#include <gtest/gtest.h>

#include <csignal>
#include <cstdio>

#include "fixture.h"

int main(int argc, char **argv)
{
	::testing::InitGoogleTest(&argc, argv);
	/* children report through pipes */
	signal(SIGPIPE, SIG_IGN);
	if (GTEST_FLAG_GET(list_tests))
		return RUN_ALL_TESTS();
	try {
		conformance::Device dev;

		printf("device %s, GID index %d\n", dev.name.c_str(), dev.gid_index());
	} catch (const std::exception &e) {
		fprintf(stderr, "herald_conformance: %s\n", e.what());
		return 2;
	}
	return RUN_ALL_TESTS();
}
