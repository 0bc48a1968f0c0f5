#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
"""check_seeds.py FOLDER: what check_fuzz begins with, made of the packets of tests/golden, one file a conversation

Each request of a reliable connection by itself, whole messages of several packets, and a READ that is asked for again.
"""
import os
import sys

BTH, GOLDEN = 12, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "golden", "packets.txt")
START = bytes([0, 0xFE, 0xFF, 0xFF])  # path MTU 8, and the PSNs wrap soon
MTU = 8
FULL = 0  # a payload of the path MTU


def packets():
    """Headers by name"""
    found = {}
    for line in open(GOLDEN, encoding="ascii"):
        fields = line.split()
        if fields[0].startswith("rc_") and fields[0].endswith("/ipv4"):
            length = next(int(f[8:], 0) for f in fields if f.startswith("hdr_len="))
            found[fields[0][3:-5]] = bytes.fromhex(fields[1])[28:28 + length]
    return found


def record(header, payload=FULL, count=1, ahead=0, dmalen=None, further=0):
    """As check_fuzz takes it. PAYLOAD: 0 for the path MTU, else 0x8000 and its bytes; FURTHER: added to the address"""
    if further:
        va = int.from_bytes(header[BTH:BTH + 8], "big") + further
        header = header[:BTH] + va.to_bytes(8, "big") + header[BTH + 8:]
    if dmalen is not None:
        header = header[:BTH + 12] + dmalen.to_bytes(4, "big")
    return bytes([ahead & 0xFF, count - 1]) + payload.to_bytes(2, "little") + header


def conversations(p):
    for name, header in p.items():
        yield name, record(header, 0x8000 if "request" in name or "swap" in name or "add" in name else FULL)
    for kind, last in (("send", "send_last"), ("send", "send_last_with_inv"), ("rdma_write", "rdma_write_last"),
                       ("rdma_write", "rdma_write_last_with_imm")):
        first = record(p[kind + "_first"], dmalen=5 * MTU + 3 if kind == "rdma_write" else None)
        yield last + "-long", first + record(p[kind + "_middle"], count=4) + record(p[last], 0x8003)
        yield last + "-short", first + record(p[last], 0x8003)
        yield last + "-much", first + record(p[kind + "_middle"], count=9) + record(p[last], 0x8003)
    read = record(p["rdma_read_request"], 0x8000, dmalen=5 * MTU)
    yield "read-again", read + record(p["rdma_read_request"], 0x8000, ahead=-5, dmalen=5 * MTU)
    part = record(p["rdma_read_request"], 0x8000, ahead=-3, dmalen=3 * MTU, further=2 * MTU)
    yield "read-part-again", read + part
    yield "atomic-again", record(p["fetch_add"], 0x8000) + record(p["fetch_add"], 0x8000, ahead=-1)


for file, conversation in conversations(packets()):
    with open(os.path.join(sys.argv[1], file), "wb") as out:
        out.write(START + conversation)
