#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
"""capture.py FILE INTERFACE[@NAMESPACE]...

What leaves these interfaces for port 4791, as a pcap file, as it would be on a cable: a train that is still whole is taken
apart as an interface does it (lengths, IPv4 identification and checksums of each packet; nothing in the UDP payload, so
that an iCRC has to be right already), a checksum that was left to the interface is filled in, a VLAN's tag is put where it
belongs. Captures until SIGTERM; FILE.ready is there when it has begun. Prints how many packets came in how many skbs. Fails
if the kernel had to drop some.
"""
import os
import select
import signal
import socket
import struct
import sys

PORT = 4791
SOL_PACKET, PACKET_STATISTICS, PACKET_AUXDATA, PACKET_VNET_HDR = 263, 6, 8, 15
SO_RCVBUFFORCE, SO_TIMESTAMPNS = 33, 35
ETH_P_ALL, ETH_P_8021Q, ETH_P_IP, ETH_P_IPV6 = 3, 0x8100, 0x0800, 0x86DD
VLAN_VALID = 1 << 4
NEEDS_CSUM, GSO_NONE, GSO_UDP_L4 = 1, 0, 5
MACS, TAG, UDP_LEN = 12, 4, 8
BUFFER = 256 << 20


def open_in(name):
    """A socket that sees what the interface sends; NAME@NAMESPACE"""
    interface, _, namespace = name.partition("@")
    home = os.open("/proc/self/ns/net", os.O_RDONLY)
    if namespace:
        there = os.open("/run/netns/" + namespace, os.O_RDONLY)
        os.setns(there, os.CLONE_NEWNET)
        os.close(there)
    sock = socket.socket(socket.AF_PACKET, socket.SOCK_RAW, 0)
    sock.setsockopt(SOL_PACKET, PACKET_VNET_HDR, 1)
    sock.setsockopt(SOL_PACKET, PACKET_AUXDATA, 1)
    sock.setsockopt(socket.SOL_SOCKET, SO_RCVBUFFORCE, BUFFER)
    sock.setsockopt(socket.SOL_SOCKET, SO_TIMESTAMPNS, 1)
    sock.bind((interface, ETH_P_ALL))
    os.setns(home, os.CLONE_NEWNET)
    os.close(home)
    return sock


def ones_sum(data):
    """The sum in ones' complement of data's 16-bit words, which are not all zero: never 0"""
    return int.from_bytes(data + bytes(len(data) % 2), "big") % 0xFFFF or 0xFFFF


def checksum(data):
    return 0xFFFF - ones_sum(data)


def udp_checksum(addresses, udp):
    pseudo = addresses + struct.pack("!IHH", len(udp), 0, socket.IPPROTO_UDP)
    return checksum(pseudo + udp) or 0xFFFF


class Frame:
    """One skb: where its headers are"""

    def __init__(self, data):
        self.data = bytearray(data)
        self.ip = MACS + 2
        kind = self.word(MACS)
        if kind == ETH_P_8021Q:
            self.ip += TAG
            kind = self.word(MACS + TAG)
        self.v4 = kind == ETH_P_IP
        self.udp = self.ip + (20 if self.v4 else 40)
        proto = self.ip + (9 if self.v4 else 6)
        self.ours = (kind in (ETH_P_IP, ETH_P_IPV6) and len(data) >= self.udp + UDP_LEN
                     and data[proto] == socket.IPPROTO_UDP and self.word(self.udp + 2) == PORT)

    def word(self, at):
        return int.from_bytes(self.data[at:at + 2], "big")

    def put(self, at, value):
        self.data[at:at + 2] = (value & 0xFFFF).to_bytes(2, "big")

    def finish_checksum(self, start, offset):
        """As an interface does that was asked for it: the sum of the pseudo header is there already"""
        self.put(start + offset, checksum(self.data[start:]) or 0xFFFF)

    def segment(self, index, payload):
        """The packet that segmentation makes of this piece of the payload"""
        packet = Frame(self.data[:self.udp + UDP_LEN] + payload)
        udp_len = UDP_LEN + len(payload)
        if self.v4:
            packet.put(self.ip + 2, 20 + udp_len)
            packet.put(self.ip + 4, self.word(self.ip + 4) + index)
            packet.put(self.ip + 10, 0)
            packet.put(self.ip + 10, checksum(packet.data[self.ip:self.udp]))
        else:
            packet.put(self.ip + 4, udp_len)
        packet.put(self.udp + 4, udp_len)
        packet.put(self.udp + 6, 0)
        addresses = packet.data[self.ip + (12 if self.v4 else 8):self.udp]
        packet.put(self.udp + 6, udp_checksum(addresses, packet.data[packet.udp:]))
        return packet.data

    def packets(self, gso_size):
        payload = self.data[self.udp + UDP_LEN:]
        return [self.segment(i, payload[at:at + gso_size]) for i, at in enumerate(range(0, len(payload), gso_size))]


def receive(sock):
    """The next skb that leaves: when, and its packets; none if it is not ours"""
    data, ancillary, _, address = sock.recvmsg(1 << 17, 256)
    if address[2] != socket.PACKET_OUTGOING:
        return 0, []
    when = 0
    tag = b""
    for level, kind, value in ancillary:
        if (level, kind) == (socket.SOL_SOCKET, SO_TIMESTAMPNS):
            seconds, nanoseconds = struct.unpack("qq", value[:16])
            when = seconds * 1000000000 + nanoseconds
        elif (level, kind) == (SOL_PACKET, PACKET_AUXDATA):
            status, _, _, _, _, tci, _ = struct.unpack("IIIHHHH", value[:20])
            if status & VLAN_VALID:
                tag = struct.pack("!HH", ETH_P_8021Q, tci)
    flags, gso, _, gso_size, start, offset = struct.unpack("=BBHHHH", data[:10])
    frame = Frame(data[10:10 + MACS] + tag + data[10 + MACS:])
    if not frame.ours:
        return 0, []
    if gso == GSO_UDP_L4:
        return when, frame.packets(gso_size)
    if gso != GSO_NONE:
        raise SystemExit(f"an skb that is segmented in another way: {gso}")
    if flags & NEEDS_CSUM:
        frame.finish_checksum(start + len(tag), offset)
    return when, [frame.data]


def write(name, skbs):
    with open(name, "wb") as out:
        out.write(struct.pack("<IHHiIII", 0xA1B23C4D, 2, 4, 0, 0, 1 << 18, 1))  # nanoseconds, Ethernet
        for when, packets in sorted(skbs, key=lambda skb: skb[0]):
            for packet in packets:
                out.write(struct.pack("<IIII", when // 1000000000, when % 1000000000, len(packet), len(packet)))
                out.write(packet)


def main():
    name = sys.argv[1]
    socks = [open_in(interface) for interface in sys.argv[2:]]
    stop, stopper = os.pipe()
    os.set_blocking(stopper, False)
    signal.signal(signal.SIGTERM, lambda *_: None)
    signal.set_wakeup_fd(stopper)
    with open(name + ".ready", "w", encoding="ascii"):
        pass
    skbs = []
    ready = []
    # what is there when the signal comes is taken, too
    while ready != [stop]:
        ready = select.select(socks + [stop], [], [])[0]
        for sock in ready:
            if sock is not stop:
                when, packets = receive(sock)
                if packets:
                    skbs.append((when, packets))
    dropped = 0
    for sock in socks:
        dropped += struct.unpack("II", sock.getsockopt(SOL_PACKET, PACKET_STATISTICS, 8))[1]
    write(name, skbs)
    os.unlink(name + ".ready")
    packets = sum(len(skb[1]) for skb in skbs)
    trains = sum(len(skb[1]) > 1 for skb in skbs)
    longest = max((len(skb[1]) for skb in skbs), default=0)
    print(f"packets={packets} skbs={len(skbs)} trains={trains} longest={longest} dropped={dropped}")
    if dropped:
        raise SystemExit("the kernel dropped some")


main()
