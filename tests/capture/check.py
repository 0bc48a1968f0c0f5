#!/usr/bin/python3
# SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
"""check.py LIST

Judges captured packets. LIST is made by a job that captures (tests/guest/84-capture.sh): JOB.captures, with a line for each
capture, NAME WORD..., whose packets are in JOB.NAME.pcap beside it. A word is something that has to be in it: an opcode,
ipv4, ipv6, vlan, multicast, padded, psn_wrap, retransmission, sequence_nak, rnr_nak; `mtu=N` is the only path MTU there;
with `loss`, some packets may be missing. Knows nothing of herald's code: scapy, tshark, and what the IBTA's
tables say (packet.py, flow.py).

Prints one line for each capture and check, PASS or FAIL JOB/NAME-CHECK[: REASON], and on standard error what was counted.
The system's python3, since that is whose modules apt installs.
"""

import collections
import multiprocessing
import os
import subprocess
import sys
import zlib

from scapy.contrib.roce import BTH
from scapy.layers.inet import IP, UDP
from scapy.layers.inet6 import IPv6

from flow import Answers, Requests
from packet import Bad, Packet, read_pcap, require

# tshark's heuristics for what comes in packets of InfiniBand
GUESSES = ("eth_over_ib", "mellanox_eoib", "fc_infiniband", "sdp_infiniband", "iser_infiniband", "rpcrdma_infiniband",
           "smb_direct_infiniband", "smcr_infiniband")


def scapy_icrc(packet):
    """What scapy computes from the fields that it has decoded; it knows IPv4 only, so over IPv6 it does the rest."""
    if packet.v4:
        decoded = IP(packet.ip)
        require(BTH in decoded, "scapy finds no BTH")
        return decoded[BTH].compute_icrc(None)
    decoded = IPv6(packet.ip)
    require(BTH in decoded, "scapy finds no BTH")
    decoded.tc, decoded.fl, decoded.hlim = 0xFF, 0xFFFFF, 0xFF
    decoded[UDP].chksum = 0xFFFF
    decoded[BTH].fecn, decoded[BTH].becn, decoded[BTH].resv6 = 1, 1, 0x3F
    return BTH.pack_icrc(zlib.crc32(b"\xff" * 8 + bytes(decoded)[:-4]))


class Capture:
    def __init__(self, name, file, words):
        self.name = name
        self.file = file
        self.expected = [word for word in words if word != "loss" and "=" not in word]
        self.loss = "loss" in words
        self.mtu = next((int(word[4:]) for word in words if word.startswith("mtu=")), None)
        self.counts = collections.Counter()

    def load(self):
        self.packets = [Packet(n, when, frame) for n, (when, frame) in enumerate(read_pcap(self.file), 1)]
        require(self.packets, "no packets")
        for packet in self.packets:
            self.counts[packet.name] += 1
            self.counts["ipv4" if packet.v4 else "ipv6"] += 1
            self.counts["vlan"] += packet.vlan
            self.counts["padded"] += packet.pad > 0
            self.counts["multicast"] += packet.dst[0] == 0xFF if not packet.v4 else packet.dst[0] >> 4 == 0xE

    def each(self, rule):
        """Bad, if a packet breaks a rule: which, how many"""
        broken = []
        for packet in self.packets:
            try:
                rule(packet)
            except Bad as bad:
                broken.append(f"packet {packet.number} ({packet.name}): {bad}")
        require(not broken, f"{len(broken)} of {len(self.packets)}; {broken[0] if broken else ''}")

    def icrc(self, compute):
        def rule(packet):
            right = compute(packet)
            require(right == packet.icrc, f"iCRC is {packet.icrc.hex()}, and should be {right.hex()}")

        self.each(rule)

    def icrc_scapy(self):
        self.icrc(scapy_icrc)

    def icrc_annex(self):
        self.icrc(Packet.annex_icrc)

    def headers(self):
        self.each(Packet.check_headers)

    # --- flows --------------------------------------------------------------------------------------------------------

    def learn_mtus(self):
        """Of each pair of addresses and port, in both directions; a connection has the same port in both."""
        mtus = {}
        for packet in self.packets:
            if packet.name.endswith(("first", "middle")):
                key = (frozenset((packet.src, packet.dst)), packet.sport)
                size = len(packet.payload)
                known = mtus.setdefault(key, self.mtu or size)
                require(known == size, f"packet {packet.number}: {size} bytes in a flow of {known}")
        return mtus

    def asked(self, packet, requests):
        """Whose requests a packet answers: those of the connection, or of the last one that may be it"""
        key = (packet.src, packet.dst, packet.sport, packet.dest_qpn)
        if key not in self.answers:
            asked = [r for k, r in requests.items() if k[:3] == (packet.dst, packet.src, packet.sport)]
            free = [r for r in asked if r not in (a.requests for a in self.answers.values())]
            require(free, "answer to a connection that has asked nothing")
            self.answers[key] = Answers(free[-1])
        return self.answers[key]

    def sequence(self):
        mtus = self.learn_mtus()
        requests, self.answers = {}, {}
        for packet in self.packets:
            try:
                if packet.response:
                    self.asked(packet, requests).add(packet)
                    continue
                key = (packet.src, packet.dst, packet.sport, packet.dest_qpn)
                if hasattr(packet, "deth"):
                    key = (packet.src, packet.deth[5:8])
                if key not in requests:
                    requests[key] = Requests(self.loss, packet.name.startswith("rc_"))
                    requests[key].mtu = mtus.get((frozenset((packet.src, packet.dst)), packet.sport))
                requests[key].add(packet)
            except Bad as bad:
                raise Bad(f"packet {packet.number} ({packet.name}): {bad}") from None
        for flow in requests.values():
            flow.finish()
        for flow in list(requests.values()) + list(self.answers.values()):
            self.counts.update(flow.seen)
        self.counts["flows"] = len(requests)

    # --- the rest -----------------------------------------------------------------------------------------------------

    def tshark(self):
        # it is not to guess what the payload may be: that is random
        guesses = [word for guess in GUESSES for word in ("--disable-heuristic", guess)]

        def ask(*words):
            done = subprocess.run(["tshark", "-n", "-r", self.file, *guesses, *words], capture_output=True, text=True, check=False)
            require(done.returncode == 0, "tshark: " + " ".join(done.stderr.split("\n")))
            return done.stdout.splitlines()

        seen = ask("-Y", "infiniband.bth", "-T", "fields", "-e", "infiniband.bth.opcode")
        require(len(seen) == len(self.packets), f"tshark sees a BTH in {len(seen)} of {len(self.packets)}")
        ours = [str(packet.opcode) for packet in self.packets]
        require(seen == ours, "tshark sees other opcodes")
        bad = ask("-Y", "_ws.malformed || _ws.expert.severity == error || _ws.expert.severity == warning")
        require(not bad, f"{len(bad)} packets, the first: {bad[0] if bad else ''}")

    def contents(self):
        missing = [word for word in self.expected if not self.counts[word]]
        require(not missing, "missing: " + " ".join(missing))

    CHECKS = (icrc_scapy, icrc_annex, headers, sequence, tshark, contents)


def judge(capture):
    """Result lines, and what was counted"""
    lines = []
    try:
        capture.load()
        checks = capture.CHECKS
    except (Bad, OSError) as why:
        return [f"FAIL {capture.name}-load: {why}"], ""
    for check in checks:
        name = capture.name + "-" + check.__name__.replace("_", "-")
        try:
            check(capture)
            lines.append(f"PASS {name}")
        except Bad as why:
            lines.append(f"FAIL {name}: {why}")
    counts = " ".join(f"{word}={n}" for word, n in sorted(capture.counts.items()) if n)
    return lines, f"{capture.name}: {len(capture.packets)} packets: {counts}"


def main():
    job = os.path.basename(sys.argv[1]).rsplit(".", 1)[0]
    base = sys.argv[1].rsplit(".", 1)[0]
    captures = []
    with open(sys.argv[1], encoding="ascii") as file:
        for line in file:
            part, *words = line.split()
            captures.append(Capture(f"{job}/{part}", f"{base}.{part}.pcap", words))
    failed = not captures
    if not captures:
        print(f"FAIL {job}/captures: none")
    with multiprocessing.Pool() as pool:
        for lines, counts in pool.imap(judge, captures):
            print(*lines, sep="\n", flush=True)
            print(counts, file=sys.stderr)
            failed |= any(line.startswith("FAIL") for line in lines)
    return failed


if __name__ == "__main__":
    sys.exit(main())
