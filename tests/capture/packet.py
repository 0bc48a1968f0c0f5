# SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
"""One RoCEv2 packet of a capture, decoded after the IBTA's tables and nothing else, and the rules for a packet by itself."""

import struct

PORT = 4791

MESSAGES = ("send_first", "send_middle", "send_last", "send_last_with_immediate", "send_only", "send_only_with_immediate",
            "rdma_write_first", "rdma_write_middle", "rdma_write_last", "rdma_write_last_with_immediate",
            "rdma_write_only", "rdma_write_only_with_immediate")
NAMES = {code: "rc_" + name for code, name in enumerate(MESSAGES)}
NAMES.update({0x20 | code: "uc_" + name for code, name in enumerate(MESSAGES)})
NAMES.update({
    0x0C: "rc_rdma_read_request",
    0x0D: "rc_rdma_read_response_first",
    0x0E: "rc_rdma_read_response_middle",
    0x0F: "rc_rdma_read_response_last",
    0x10: "rc_rdma_read_response_only",
    0x11: "rc_acknowledge",
    0x12: "rc_atomic_acknowledge",
    0x13: "rc_compare_swap",
    0x14: "rc_fetch_add",
    0x16: "rc_send_last_with_invalidate",
    0x17: "rc_send_only_with_invalidate",
    0x1C: "rc_flush",
    0x1D: "rc_atomic_write",
    0x64: "ud_send_only",
    0x65: "ud_send_only_with_immediate",
    0x81: "cnp",
})
RESPONSES = range(0x0D, 0x13)
EMPTY = {0x0C, 0x11, 0x12, 0x13, 0x14, 0x1C}  # opcodes without a payload


def extended_headers(code):
    """Their names, in their order"""
    name = NAMES[code]
    if name.startswith("ud_"):
        exts = ["deth"]
    elif name == "rc_flush":
        exts = ["feth", "reth"]
    elif name in ("rc_rdma_read_request", "rc_atomic_write") or name[3:].startswith(("rdma_write_first", "rdma_write_only")):
        exts = ["reth"]
    elif name in ("rc_compare_swap", "rc_fetch_add"):
        exts = ["atomiceth"]
    elif code in RESPONSES and name != "rc_rdma_read_response_middle":
        exts = ["aeth"] + (["atomicacketh"] if name == "rc_atomic_acknowledge" else [])
    else:
        exts = []
    if name.endswith("immediate"):
        exts.append("immdt")
    if name.endswith("invalidate"):
        exts.append("ieth")
    return exts


LENGTHS = {"deth": 8, "reth": 16, "atomiceth": 28, "aeth": 4, "atomicacketh": 8, "immdt": 4, "ieth": 4, "feth": 4}


def crc32(data):
    """CRC-32 of IEEE 802.3 (IBTA 7.8.1), from its polynomial"""
    crc = 0xFFFFFFFF
    for byte in data:
        crc = TABLE[(crc ^ byte) & 0xFF] ^ crc >> 8
    return crc ^ 0xFFFFFFFF


def crc_of_byte(byte):
    for _ in range(8):
        byte = byte >> 1 ^ (0xEDB88320 if byte & 1 else 0)
    return byte


TABLE = [crc_of_byte(byte) for byte in range(256)]


def ones_sum(data):
    return int.from_bytes(data + bytes(len(data) % 2), "big") % 0xFFFF


class Bad(Exception):
    """A rule that a packet or a flow breaks"""


def require(condition, rule):
    if not condition:
        raise Bad(rule)


class Packet:
    """From an Ethernet frame; Bad if it cannot be one of RoCEv2 at all."""

    def __init__(self, number, when, frame):
        self.number = number
        self.when = when
        at, kind = 14, int.from_bytes(frame[12:14], "big")
        self.vlan = kind == 0x8100
        if self.vlan:
            at, kind = 18, int.from_bytes(frame[16:18], "big")
        require(kind in (0x0800, 0x86DD), f"EtherType {kind:#x}")
        self.v4 = kind == 0x0800
        self.ip = frame[at:]
        self.udp_at = 20 if self.v4 else 40
        self.udp = self.ip[self.udp_at:]
        self.src, self.dst = (self.ip[12:16], self.ip[16:20]) if self.v4 else (self.ip[8:24], self.ip[24:40])
        require(len(self.udp) >= 8 + 12 + 4, "too short for UDP, BTH and iCRC")
        self.sport, self.dport = struct.unpack("!HH", self.udp[:4])
        self.bth = self.udp[8:]
        self.opcode = self.bth[0]
        require(self.opcode in NAMES, f"opcode {self.opcode:#x}")
        self.name = NAMES[self.opcode]
        self.pad = self.bth[1] >> 4 & 3
        self.dest_qpn = int.from_bytes(self.bth[5:8], "big")
        self.ack_req = self.bth[8] >> 7
        self.psn = int.from_bytes(self.bth[9:12], "big")
        self.icrc = self.bth[-4:]
        self.response = self.opcode in RESPONSES
        at = 12
        for ext in extended_headers(self.opcode):
            setattr(self, ext, self.bth[at:at + LENGTHS[ext]])
            at += LENGTHS[ext]
        self.header_len = at
        require(len(self.bth) >= at + self.pad + 4, "headers, pad and iCRC do not fit in")
        self.payload = self.bth[at:len(self.bth) - 4 - self.pad]

    def dma(self):
        """RETH: address, key, length"""
        return struct.unpack("!QII", self.reth)

    def syndrome(self):
        return self.aeth[0]

    def says(self):
        """What a duplicate has to repeat: all of the transport's but the request for an answer and the iCRC"""
        return self.bth[:1] + bytes([self.bth[1] & 0xBF]) + self.bth[2:8] + self.bth[9:-4]

    # --- the rules for a packet by itself ---------------------------------------------------------------------------

    def annex_icrc(self):
        """A17.3: over the packet as it is, with ones for what changes on the way, behind eight bytes of ones"""
        masked = bytearray(self.ip[:-4])
        if self.v4:
            masked[1] = 0xFF  # type of service
            masked[8] = 0xFF  # time to live
            masked[10:12] = b"\xff\xff"  # header checksum
        else:
            masked[0] |= 0x0F  # traffic class and flow label
            masked[1:4] = b"\xff\xff\xff"
            masked[7] = 0xFF  # hop limit
        masked[self.udp_at + 6:self.udp_at + 8] = b"\xff\xff"  # UDP checksum
        masked[self.udp_at + 8 + 4] = 0xFF  # BTH: FECN, BECN, reserved
        return crc32(b"\xff" * 8 + masked).to_bytes(4, "little")

    def check_headers(self):
        if self.v4:
            require(self.ip[0] == 0x45, "IPv4 with options")
            require(int.from_bytes(self.ip[2:4], "big") == len(self.ip), "IPv4: total length")
            require(self.ip[6] == 0x40 and self.ip[7] == 0, "IPv4: DF is not set, or a fragment")
            require(ones_sum(self.ip[:20]) == 0, "IPv4: header checksum")
        else:
            require(self.ip[0] >> 4 == 6 and self.ip[6] == 17, "IPv6: version, next header")
            require(int.from_bytes(self.ip[4:6], "big") == len(self.udp), "IPv6: payload length")
        require(int.from_bytes(self.udp[4:6], "big") == len(self.udp), "UDP: length")
        require(self.dport == PORT and self.sport >= 0xC000, "UDP: ports")
        self.check_udp_checksum()
        self.check_bth()

    def check_udp_checksum(self):
        given = self.udp[6:8] != b"\0\0"
        require(given or self.v4, "UDP: no checksum over IPv6")
        pseudo = self.src + self.dst + struct.pack("!II", len(self.udp), 17)
        require(not given or ones_sum(pseudo + self.udp) == 0, "UDP: checksum")

    def check_bth(self):
        require(self.bth[1] & 0x0F == 0, "BTH: version")
        require(self.bth[2:4] == b"\xff\xff", "BTH: P_Key")
        require(self.bth[4] & 0x3F == 0 and self.bth[8] & 0x7F == 0, "BTH: reserved bits")
        require(len(self.bth) % 4 == 0, "length is no multiple of four")
        end = len(self.bth) - 4
        require(not any(self.bth[end - self.pad:end]), "pad that is not zero")
        if self.opcode in EMPTY:
            require(not self.payload and not self.pad, "payload in a packet that has none")
        if self.name.endswith(("first", "middle")):
            require(self.pad == 0, "pad in a packet that is not the last")
            require(len(self.payload) in (256, 512, 1024, 2048, 4096), "first or middle packet that has not the path MTU")
        if self.name.endswith(("_last", "_last_with_immediate", "_last_with_invalidate")):
            require(self.payload, "last packet without payload")
        if hasattr(self, "deth"):
            require(self.deth[4] == 0, "DETH: reserved bits")
        if self.name == "rc_atomic_write":
            require(len(self.payload) == 8 and self.dma()[2] == 8, "ATOMIC WRITE that is not of 8 bytes")


def read_pcap(name):
    """Packets of a file, in the order of their times"""
    with open(name, "rb") as file:
        data = file.read()
    require(data[:4] == b"\x4d\x3c\xb2\xa1", "no pcap file with nanoseconds")
    at, frames = 24, []
    while at < len(data):
        seconds, nanoseconds, length, whole = struct.unpack_from("<IIII", data, at)
        require(length == whole and at + 16 + length <= len(data), "a packet that was cut off")
        frames.append((seconds * 1000000000 + nanoseconds, data[at + 16:at + 16 + length]))
        at += 16 + length
    return frames
