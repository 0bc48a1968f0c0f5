#!/usr/bin/python3
# SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
#
# Packets of RoCEv2 to hold herald's to: built by scapy, headers that scapy has not described here after the IBTA's
# tables, with an iCRC that scapy computes (IPv4) and zlib (both). The system's python3, since that is whose modules
# apt installs.
#
#	tests/golden/make_packets.py >tests/golden/packets.txt
#
# One packet a line: its name, the IP packet in hex, and FIELD=VALUE for each field of struct herald_pkt that the packet
# has; all others are 0.

import sys
import zlib

from scapy.contrib.roce import AETH, BTH, cnp
from scapy.fields import BitField, IntField, LongField, XBitField, XIntField, XLongField
from scapy.layers.inet import IP, UDP
from scapy.layers.inet6 import IPv6
from scapy.packet import Packet, Raw


class DETH(Packet):
    fields_desc = [XIntField("qkey", 0), BitField("reserved", 0, 8), XBitField("src_qpn", 0, 24)]


class FETH(Packet):
    fields_desc = [BitField("reserved", 0, 26), BitField("flush_selectivity", 0, 2), BitField("flush_placement", 0, 4)]


class RETH(Packet):
    fields_desc = [XLongField("va", 0), XIntField("rkey", 0), IntField("dmalen", 0)]


class AtomicETH(Packet):
    fields_desc = [XLongField("va", 0), XIntField("rkey", 0), LongField("swap_add", 0), LongField("compare", 0)]


class AtomicAckETH(Packet):
    fields_desc = [LongField("atomic_orig", 0)]


class ImmDt(Packet):
    fields_desc = [XIntField("imm", 0)]


class IETH(Packet):
    fields_desc = [XIntField("ieth", 0)]


RC, UC, UD = 0x00, 0x20, 0x60

SENDS_AND_WRITES = [
    (0x00, "send_first", []),
    (0x01, "send_middle", []),
    (0x02, "send_last", []),
    (0x03, "send_last_with_imm", [ImmDt]),
    (0x04, "send_only", []),
    (0x05, "send_only_with_imm", [ImmDt]),
    (0x06, "rdma_write_first", [RETH]),
    (0x07, "rdma_write_middle", []),
    (0x08, "rdma_write_last", []),
    (0x09, "rdma_write_last_with_imm", [ImmDt]),
    (0x0A, "rdma_write_only", [RETH]),
    (0x0B, "rdma_write_only_with_imm", [RETH, ImmDt]),
]
ANY, EIGHT, NONE = "any", "eight bytes", "none"

# opcode, name, extended headers, payload
OPCODES = [(RC | code, "rc_" + name, exts, ANY) for code, name, exts in SENDS_AND_WRITES]
OPCODES += [
    (0x0C, "rc_rdma_read_request", [RETH], NONE),
    (0x0D, "rc_rdma_read_response_first", [AETH], ANY),
    (0x0E, "rc_rdma_read_response_middle", [], ANY),
    (0x0F, "rc_rdma_read_response_last", [AETH], ANY),
    (0x10, "rc_rdma_read_response_only", [AETH], ANY),
    (0x11, "rc_acknowledge", [AETH], NONE),
    (0x12, "rc_atomic_acknowledge", [AETH, AtomicAckETH], NONE),
    (0x13, "rc_compare_swap", [AtomicETH], NONE),
    (0x14, "rc_fetch_add", [AtomicETH], NONE),
    (0x16, "rc_send_last_with_inv", [IETH], ANY),
    (0x17, "rc_send_only_with_inv", [IETH], ANY),
    (0x1C, "rc_flush", [FETH, RETH], NONE),
    (0x1D, "rc_atomic_write", [RETH], EIGHT),
]
OPCODES += [(UC | code, "uc_" + name, exts, ANY) for code, name, exts in SENDS_AND_WRITES]
OPCODES += [
    (UD | 0x04, "ud_send_only", [DETH], ANY),
    (UD | 0x05, "ud_send_only_with_imm", [DETH, ImmDt], ANY),
]

# A value for each field, different from all others in every byte.
FIELDS = {
    "qkey": 0x11223344,
    "src_qpn": 0x556677,
    "flush_selectivity": 1,
    "flush_placement": 2,
    "va": 0x8899AABBCCDDEEFF,
    "rkey": 0x10213243,
    "dmalen": 0x54657687,
    "swap_add": 0x98A9BACBDCEDFE0F,
    "compare": 0x1A2B3C4D5E6F7081,
    "atomic_orig": 0x92A3B4C5D6E7F809,
    "imm": 0x1B2D3F41,
    "ieth": 0x53657789,
    "syndrome": 0x1F,
    "msn": 0x9BADBF,
}
BTH_FIELDS = {
    "solicited": "solicited",
    "migreq": "migreq",
    "ack_req": "ackreq",
    "fecn": "fecn",
    "becn": "becn",
    "pad": "padcount",
    "pkey": "pkey",
    "dest_qpn": "dqpn",
    "psn": "psn",
}


def ipv4(sport=0xC0DE, **more):
    fields = {"src": "192.0.2.1", "dst": "198.51.100.2", "id": 0x1234, "flags": "DF", "ttl": 64, **more}
    return IP(**fields) / UDP(sport=sport, dport=4791, chksum=0)


def ipv6(sport=0xC0DE, **more):
    fields = {"src": "2001:db8::1", "dst": "2001:db8:1::2", "hlim": 64, **more}
    return IPv6(**fields) / UDP(sport=sport, dport=4791)


def icrc(packet):
    """The iCRC of a whole IP packet, from its bytes and what A17 says of them: 32 bits, the lowest byte first."""
    masked = bytearray(packet)
    if packet[0] >> 4 == 4:
        udp = 20
        masked[1] = masked[8] = masked[10] = masked[11] = 0xFF
    else:
        udp = 40
        masked[0] |= 0x0F
        masked[1] = masked[2] = masked[3] = masked[7] = 0xFF
    masked[udp + 6] = masked[udp + 7] = 0xFF
    masked[udp + 8 + 4] = 0xFF
    return zlib.crc32(b"\xff" * 8 + masked[:-4]).to_bytes(4, "little")


def built(packet):
    """The packet's bytes. Scapy has no iCRC for IPv6; for IPv4 it must be the one of above."""
    if IP in packet:
        data = bytes(packet)
        assert data[-4:] == icrc(data), packet.summary()
        return data
    packet[BTH].icrc = 0
    packet = IPv6(bytes(packet))  # with lengths
    packet[BTH].icrc = int.from_bytes(icrc(bytes(packet)), "big")
    del packet[UDP].chksum
    return bytes(packet)


def line(name, data, fields, hdr_len, payload_len):
    fields = {**fields, "hdr_len": hdr_len, "payload_len": payload_len}
    words = ["%s=%#x" % (field, value) for field, value in sorted(fields.items()) if value]
    print(name, data.hex(), *words)


def payload_of(length):
    return bytes((7 * i + 1) & 0xFF for i in range(length))


def emit(name, under, opcode, exts, length, **fields):
    """A packet with these fields, and those of FIELDS that its extended headers have."""
    pad = -length % 4
    bth = {"pkey": 0xFFFF, "dest_qpn": 0xABCDEF, "psn": 0x2468AC, "pad": pad}
    bth.update((key, value) for key, value in fields.items() if key in BTH_FIELDS)
    packet = under / BTH(opcode=opcode, **{BTH_FIELDS[key]: value for key, value in bth.items()})
    have, hdr_len = {"opcode": opcode, **bth}, 12
    for ext in exts:
        values = {f.name: fields.get(f.name, FIELDS[f.name]) for f in ext.fields_desc if f.name != "reserved"}
        header = ext(**values)
        packet, have, hdr_len = packet / header, {**have, **values}, hdr_len + len(header)
    packet /= Raw(payload_of(length) + bytes(pad))
    line(name, built(packet), have, hdr_len, length)


def every_opcode():
    lengths = {ANY: 8, EIGHT: 8, NONE: 0}
    for opcode, name, exts, payload in OPCODES:
        emit(name + "/ipv4", ipv4(), opcode, exts, lengths[payload])
        emit(name + "/ipv6", ipv6(), opcode, exts, lengths[payload])


def every_bit():
    for flag in ("solicited", "migreq", "ack_req", "fecn", "becn"):
        emit(flag, ipv4(), RC | 0x04, [], 4, **{flag: 1})
    emit("no_bits", ipv4(), RC | 0x04, [], 4, pkey=0, dest_qpn=0, psn=0)
    emit("all_bits", ipv6(), RC | 0x04, [], 5, pkey=0xFFFF, dest_qpn=0xFFFFFF, psn=0xFFFFFF, solicited=1, migreq=1,
         ack_req=1, fecn=1, becn=1)
    for bit in range(2):
        emit("flush_selectivity_%d" % bit, ipv4(), 0x1C, [FETH, RETH], 0, flush_selectivity=1 << bit, flush_placement=0)
    for bit in range(4):
        emit("flush_placement_%d" % bit, ipv4(), 0x1C, [FETH, RETH], 0, flush_selectivity=0, flush_placement=1 << bit)
    for syndrome in (0x00, 0x20, 0x3F, 0x60, 0x61, 0x62, 0x63, 0xFF):
        emit("syndrome_%02x" % syndrome, ipv4(), 0x11, [AETH], 0, syndrome=syndrome, msn=0xFFFFFF)


def every_length():
    for length in (0, 1, 2, 3, 4, 5, 255, 256, 1024):
        emit("length_%d/ipv4" % length, ipv4(), RC | 0x04, [], length)
        emit("length_%d/ipv6" % length, ipv6(), UD | 0x04, [DETH], length)


def every_ip_field():
    """What changes on the way, and what does not."""
    emit("ipv4_tos", ipv4(tos=0xB9), RC | 0x04, [], 4)
    emit("ipv4_ttl", ipv4(ttl=1), RC | 0x04, [], 4)
    emit("ipv4_id", ipv4(id=0xFFFF), RC | 0x04, [], 4)
    emit("ipv4_flags", ipv4(flags=0), RC | 0x04, [], 4)
    emit("ipv6_tclass", ipv6(tc=0xB9), RC | 0x04, [], 4)
    emit("ipv6_flow_label", ipv6(fl=0xABCDE), RC | 0x04, [], 4)
    emit("ipv6_hop_limit", ipv6(hlim=1), RC | 0x04, [], 4)
    emit("source_port", ipv4(sport=0xFFFF), RC | 0x04, [], 4)


def congestion():
    fields = {"opcode": 0x81, "becn": 1, "pkey": 0xFFFF, "dest_qpn": 0xD2}
    line("cnp/ipv4", built(ipv4() / cnp(0xD2)), fields, 28, 0)
    line("cnp/ipv6", built(ipv6() / cnp(0xD2)), fields, 28, 0)


def captured():
    """Packets whose iCRC is known from elsewhere: scapy's own tests have both, the CNP as a ConnectX-4 sent it."""
    data = bytes.fromhex(
        "45c2003c718c4000401191610a0011010a001201"  # IP
        "000012b700280000"  # UDP
        "8100ffff4000011800000000"  # BTH
        "0000000000000000000000000000000082fd002a")
    assert data[-4:] == icrc(data)
    line("captured_cnp", data, {"opcode": 0x81, "becn": 1, "pkey": 0xFFFF, "dest_qpn": 0x118}, 28, 0)

    under = ipv4(src="192.168.0.7", dst="192.168.0.7", tos=1, id=1144, sport=49152)
    payload = bytes.fromhex("4630818be28935d90e9a95505401be885e50") + bytes(2)
    fields = {"opcode": 0x24, "migreq": 1, "pad": 2, "pkey": 0xFFFF, "dest_qpn": 211, "psn": 13571856}
    data = built(under / BTH(opcode=0x24, migreq=1, padcount=2, dqpn=211, psn=13571856) / Raw(payload))
    assert data[-4:].hex() == "78f353f3"
    line("captured_uc_send_only", data, fields, 12, 18)


def main():
    print("# Made by make_packets.py: change that instead.")
    for section in (every_opcode, every_bit, every_length, every_ip_field, congestion, captured):
        section()
    return 0


sys.exit(main())
