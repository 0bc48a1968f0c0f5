#!/usr/bin/python3
# SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
"""check.py is right about a good capture, and about captures with one fault each: the check that has to fail does."""

import os
import struct
import sys
import tempfile

from scapy.contrib.roce import BTH
from scapy.layers.inet import IP, UDP
from scapy.layers.l2 import Ether
from scapy.packet import Raw

import check

A, B = "192.0.2.1", "192.0.2.2"
MTU = 256


def packet(src, opcode, psn, exts=b"", payload=b"", **fields):
    pad = -len(payload) % 4
    bth = {"opcode": opcode, "psn": psn, "padcount": pad, "dqpn": 0x22 if src == A else 0x11, **fields}
    ip = IP(src=src, dst=B if src == A else A, id=psn & 0xFFFF, flags="DF")
    return ip / UDP(sport=0xC123, dport=4791) / BTH(**bth) / Raw(exts + payload + bytes(pad))


def reth(length):
    return struct.pack("!QII", 0x1000, 0x77, length)


def aeth(syndrome, msn):
    return bytes([syndrome]) + msn.to_bytes(3, "big")


def good():
    """A WRITE and a READ of three packets each, across the wrap; a SEND that has to be repeated"""
    first, data = 0xFFFFFE, bytes(range(256))
    return [
        packet(A, 0x06, first, reth(2 * MTU + 5), data),
        packet(A, 0x07, first + 1, b"", data),
        packet(A, 0x08, 0, b"", b"12345", ackreq=1),
        packet(B, 0x11, 0, aeth(0x1F, 1)),
        packet(A, 0x0C, 1, reth(2 * MTU + 6), ackreq=1),
        packet(B, 0x0D, 1, aeth(0x1F, 2), data),
        packet(B, 0x0E, 2, b"", data),
        packet(B, 0x0F, 3, aeth(0x1F, 2), b"123456"),
        packet(A, 0x04, 4, b"", b"1234", ackreq=1),
        packet(B, 0x11, 4, aeth(0x20, 2)),
        packet(A, 0x04, 4, b"", b"1234", ackreq=1),
        packet(B, 0x11, 4, aeth(0x1F, 3)),
    ]


WORDS = "ipv4 mtu=256 rc_rdma_write_first rc_rdma_read_response_last rnr_nak retransmission psn_wrap padded".split()


def bits(at, change):
    """A fault of a packet that is finished: byte `at` of its IP packet is another one"""
    def fault(packets, data):
        data[2] = data[2][:at % len(data[2])] + bytes([data[2][at] ^ change]) + data[2][at % len(data[2]) + 1:]
    return fault


def replaced(index, new):
    """A fault of the sender, whose checksums are right: another packet, or none"""
    def fault(packets, data):
        packets[index:index + 1] = [new] if new else []
    fault.early = True
    return fault


DATA = bytes(range(256))
FAULTS = [
    ("last byte of the iCRC", bits(-1, 1), {"icrc-scapy", "icrc-annex", "headers"}),
    ("identification", bits(5, 1), {"icrc-scapy", "icrc-annex", "headers"}),
    ("total length", bits(3, 4), {"icrc-scapy", "icrc-annex", "headers", "tshark"}),
    ("UDP checksum", bits(26, 1), {"headers"}),
    ("time to live", bits(8, 1), {"headers"}),
    ("version of BTH", replaced(2, packet(A, 0x08, 0, b"", b"12345", version=1)), {"headers"}),
    ("reserved bits of BTH", replaced(2, packet(A, 0x08, 0, b"", b"12345", resv7=1)), {"headers"}),
    ("pad is not zero", replaced(2, packet(A, 0x08, 0, b"", b"12345\0\0\1", padcount=3)), {"headers"}),
    ("pad is payload", replaced(2, packet(A, 0x08, 0, b"", b"12345\0\0\0", padcount=0)), {"sequence", "contents"}),
    ("PSN of the last packet", replaced(2, packet(A, 0x08, 1, b"", b"12345")), {"sequence"}),
    ("no middle packet", replaced(1, None), {"sequence"}),
    ("SEND's middle in a WRITE", replaced(1, packet(A, 0x01, 0xFFFFFF, b"", DATA)), {"sequence"}),
    ("first packet of another MTU", replaced(0, packet(A, 0x06, 0xFFFFFE, reth(2 * MTU + 5), DATA + DATA)), {"sequence"}),
    ("length in the RETH", replaced(0, packet(A, 0x06, 0xFFFFFE, reth(2 * MTU + 4), DATA)), {"sequence"}),
    ("repeated with other data", replaced(10, packet(A, 0x04, 4, b"", b"1235", ackreq=1)), {"sequence"}),
    ("READ response of another PSN", replaced(6, packet(B, 0x0E, 3, b"", DATA)), {"sequence"}),
    ("last READ response too early", replaced(6, packet(B, 0x0F, 2, aeth(0x1F, 2), DATA)), {"sequence"}),
    ("READ response too short", replaced(7, packet(B, 0x0F, 3, aeth(0x1F, 2), b"12345")), {"sequence"}),
    ("ACK of what was not sent", replaced(3, packet(B, 0x11, 1, aeth(0x1F, 1))), {"sequence"}),
    ("MSN goes back", replaced(11, packet(B, 0x11, 4, aeth(0x1F, 0))), {"sequence"}),
    ("no RNR NAK", replaced(9, packet(B, 0x11, 3, aeth(0x1F, 2))), {"contents"}),
    ("atomic answer to a SEND", replaced(11, packet(B, 0x12, 4, aeth(0x1F, 3), bytes(8))), {"sequence"}),
    ("RETH cut off", replaced(4, packet(A, 0x0C, 1, reth(9)[:8])), {"load"}),
]


def judged(fault, folder, checks):
    """The checks that fail"""
    packets = good()
    if fault and getattr(fault, "early", False):
        fault(packets, None)
    data = [bytes(p) for p in packets]
    if fault and not getattr(fault, "early", False):
        fault(packets, data)
    name = os.path.join(folder, "x.pcap")
    with open(name, "wb") as file:
        file.write(struct.pack("<IHHiIII", 0xA1B23C4D, 2, 4, 0, 0, 1 << 18, 1))
        for when, ip in enumerate(data):
            frame = bytes(Ether(src="02:00:00:00:00:01", dst="02:00:00:00:00:02", type=0x0800)) + ip
            file.write(struct.pack("<IIII", 0, when, len(frame), len(frame)) + frame)
    capture = check.Capture("x", name, WORDS)
    capture.CHECKS = checks
    lines, _ = check.judge(capture)
    failed = [line for line in lines if line.startswith("FAIL")]
    return {line.split()[1].rstrip(":").removeprefix("x-") for line in failed}, failed


def main():
    bad = 0
    with tempfile.TemporaryDirectory() as folder:
        for what, fault, expected in [("nothing wrong", None, set())] + FAULTS:
            # tshark takes its time, and is asked where it has to say something
            checks = [c for c in check.Capture.CHECKS if c != check.Capture.tshark or not fault or "tshark" in expected]
            failed, why = judged(fault, folder, checks)
            # what a check finds may hide from the contents what comes behind it
            if failed != expected and failed - {"contents"} != expected:
                print(f"{what}: {sorted(failed)} instead of {sorted(expected)}: {why}")
                bad = 1
    return bad


sys.exit(main())
