#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
"""Makes the benchmark's tables from its results.

    scripts/bench_table.py [--markdown] RESULTS.jsonl

A cell is the median of a device's runs, and half of their range in percent of it. Ratios are "how many times better":
quotients of medians, turned round for latencies.
"""

import argparse
import json
import statistics
import sys
from collections import defaultdict

PEERS = ("rxe", "siw")
# test: title, less is better, the limit it is compared with
TESTS = {
    "write_bw_64k": ("RDMA write, 64 KiB", False, "memcpy"),
    "read_bw_64k": ("RDMA read, 64 KiB", False, "memcpy"),
    "send_bw_64k": ("send, 64 KiB", False, "memcpy"),
    "write_bw_1m": ("RDMA write, 1 MiB", False, "memcpy"),
    "read_bw_1m": ("RDMA read, 1 MiB", False, "memcpy"),
    "send_bw_1m": ("send, 1 MiB", False, "memcpy"),
    "write_rate": ("RDMA write, 64 B, rate", False, "system_call"),
    "send_rate": ("send, 64 B, rate", False, "system_call"),
    "write_lat_poll": ("RDMA write, 64 B, latency, polling", True, "shared_memory"),
    "send_lat_poll": ("send, 64 B, latency, polling", True, "shared_memory"),
    "send_lat_event": ("send, 64 B, latency, events", True, "eventfd_processes"),
    "event_pingpong": ("ping-pong through completion channels", True, "eventfd_pair"),
    "wire_write_bw_64k": ("wire: RDMA write, 64 KiB", False, "tcp"),
    "wire_write_bw_64k_1500": ("wire: RDMA write, 64 KiB, MTU 1500", False, None),
    "wire_read_bw_64k": ("wire: RDMA read, 64 KiB", False, "tcp"),
    "wire_send_bw_64k": ("wire: send, 64 KiB", False, "tcp"),
    "wire_write_rate": ("wire: RDMA write, 64 B, rate", False, "system_call"),
    "wire_send_rate": ("wire: send, 64 B, rate", False, "system_call"),
    "wire_write_lat_poll": ("wire: RDMA write, 64 B, latency, polling", True, "shared_memory"),
    "wire_send_lat_poll": ("wire: send, 64 B, latency, polling", True, "shared_memory"),
    "wire_send_lat_event": ("wire: send, 64 B, latency, events", True, "eventfd_processes"),
}
LIMITS = {
    "memcpy": "memcpy() in one process",
    "process_vm_writev": "process_vm_writev() to another process",
    "system_call": "getppid(), an empty system call",
    "shared_memory": "ping-pong of two processes that poll shared memory, half a round trip",
    "eventfd_processes": "ping-pong of two processes over eventfds, half a round trip",
    "eventfd_pair": "ping-pong of the same two processes over eventfds, half a round trip",
    "tcp": "TCP over the same cable (iperf3)",
    "packets_per_skb": "packets that herald's receiver got in one skb, of 64 KiB writes over the wire",
    "eventfd_threads": "ping-pong of two threads over eventfds, half a round trip",
}
# lane, test, what herald is compared with, least ratio
GOALS = (
    ("stock", "write_bw_64k", "rxe", 10),
    ("stock", "write_bw_64k", "siw", 2),
    ("stock", "write_bw_64k", "memcpy", 0.6),
    ("stock", "write_rate", "the better peer", 5),
    ("stock", "send_rate", "the better peer", 5),
    ("stock", "write_lat_poll", "the better peer", 2),
    ("stock", "send_lat_poll", "the better peer", 2),
    ("stock", "send_lat_event", "the better peer", 2),
    ("stock", "event_pingpong", "eventfd_pair", 0.5),
    ("stock", "wire_write_bw_64k", "rxe", 5),
    ("stock", "wire_write_bw_64k", "siw", 1),
    ("stock", "wire_write_bw_64k_1500", "rxe", 5),
    ("stock", "wire_write_bw_64k_1500", "siw", 1),
    ("stock", "wire_write_rate", "rxe", 2),
    ("stock", "wire_send_rate", "rxe", 2),
    ("stock", "wire_write_lat_poll", "rxe", 2),
    ("stock", "wire_send_lat_poll", "rxe", 2),
    ("uml", "write_bw_1m", "rxe", 10),
    ("uml", "write_bw_1m", "siw", 2),
)
LANES = {
    "stock": "QEMU (software emulation), Debian's stock kernel",
    "uml": "User-Mode Linux",
    "debug": "QEMU (software emulation), debug kernel",
}


class Lane:
    """The results of one lane."""

    def __init__(self, name):
        self.name = name
        self.machine = {}
        self.runs = defaultdict(list)  # (test, device): values
        self.units = {}
        self.limits = defaultdict(list)  # (size, name): values
        self.memory = []

    def add(self, result):
        kind = result["kind"]
        if kind == "machine":
            self.machine = result
        elif kind == "memory":
            self.memory.append(result)
        elif kind == "device":
            self.runs[result["test"], result["device"]].append(result["value"])
            self.units[result["test"]] = result["unit"], result["size"]
        elif kind == "limit":
            self.limits[result["size"], result["device"]].append(result["value"])
            self.units[result["device"]] = result["unit"], result["size"]

    def median(self, test, device):
        values = self.runs.get((test, device))
        return statistics.median(values) if values else None

    def limit(self, test, name=None):
        name = name or TESTS[test][2]
        size = self.units[test][1] if name in ("memcpy", "process_vm_writev") else 0
        values = self.limits.get((size, name))
        return statistics.median(values) if values else None

    def ratio(self, test, other):
        """How many times better herald is than a device, a limit, or "the better peer"; None if it cannot be said."""
        less_is_better = TESTS[test][1]
        mine = self.median(test, "herald")
        if other == "the better peer":
            ratios = [self.ratio(test, peer) for peer in PEERS]
            ratios = [ratio for ratio in ratios if ratio is not None]
            return min(ratios) if ratios else None
        theirs = self.limit(test, other) if other in LIMITS else self.median(test, other)
        if mine is None or theirs is None or not mine or not theirs:
            return None
        return theirs / mine if less_is_better else mine / theirs

    def devices(self):
        names = {device for _, device in self.runs}
        return [name for name in ("herald", *PEERS) if name in names]


def number(value):
    return f"{value:.0f}" if value >= 1000 else f"{value:.3g}"


def cell(values):
    if not values:
        return "-"
    median = statistics.median(values)
    spread = (max(values) - min(values)) / 2 / median * 100 if median else 0
    return number(median) + (f" ±{spread:.0f} %" if len(values) > 1 else "")


def times(ratio):
    return "-" if ratio is None else f"{number(ratio)}x"


def percent(ratio):
    return "-" if ratio is None else f"{ratio * 100:.0f} %"


def speed_rows(lane):
    devices = lane.devices()
    head = ["", "unit", *devices, "limit"]
    with_ratios = "herald" in devices and len(devices) > 1
    if with_ratios:
        head += [*(f"herald/{peer}" for peer in PEERS if peer in devices), "herald/best peer", "herald/limit"]
    rows = [head]
    for test, (title, _, limit) in TESTS.items():
        if test not in lane.units:
            continue
        value = lane.limit(test)
        row = [title, lane.units[test][0], *(cell(lane.runs.get((test, device))) for device in devices)]
        row.append("-" if value is None else f"{number(value)} ({limit})")
        if with_ratios:
            row += [times(lane.ratio(test, peer)) for peer in PEERS if peer in devices]
            row += [times(lane.ratio(test, "the better peer")), percent(lane.ratio(test, limit))]
        rows.append(row)
    return rows


def limit_rows(lane):
    rows = [["limit", "size", "unit", "median"]]
    for (size, name), values in sorted(lane.limits.items(), key=lambda item: (list(LIMITS).index(item[0][1]), item[0][0])):
        rows.append([LIMITS[name], str(size) if size else "", lane.units[name][0], cell(values)])
    return rows


def memory_rows(lane):
    rows = [["an idle RC QP with its CQ", "QPs", "bytes each", "mapped by the process", "charged to its cgroup"]]
    for entry in lane.memory:
        rows.append([entry["device"], *(str(entry[key]) for key in ("qps", "bytes", "process_bytes", "charged_bytes"))])
    return rows


def goal_rows(lanes):
    rows = [["goal", "wanted", "measured", ""]]
    for name, test, other, least in GOALS:
        ratio = lanes[name].ratio(test, other) if name in lanes and test in lanes[name].units else None
        show = percent if least < 1 else times
        verdict = "not measured" if ratio is None else "reached" if ratio >= least else "MISSED"
        rows.append([f"{name}: {TESTS[test][0]}, against {other}", show(least), show(ratio), verdict])
    return rows


def table(rows, markdown):
    if len(rows) < 2:
        return
    widths = [max(len(row[i]) for row in rows) for i in range(len(rows[0]))]
    for n, row in enumerate(rows):
        padded = [text.ljust(width) for text, width in zip(row, widths)]
        print("| " + " | ".join(padded) + " |" if markdown else "  ".join(padded).rstrip())
        if n == 0:
            line = ["-" * width for width in widths]
            print("| " + " | ".join(line) + " |" if markdown else "  ".join(line))
    print()


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--markdown", action="store_true")
    parser.add_argument("results")
    options = parser.parse_args()
    lanes = {}
    with open(options.results, encoding="utf-8") as lines:
        for line in lines:
            result = json.loads(line)
            lanes.setdefault(result["lane"], Lane(result["lane"])).add(result)
    if not lanes:
        sys.exit("no results")
    for lane in lanes.values():
        runs = max((len(values) for values in lane.runs.values()), default=0)
        print(f"{'## ' if options.markdown else ''}{LANES[lane.name]}\n")
        print(f"Kernel {lane.machine.get('kernel')}, {lane.machine.get('cpus')} CPUs; medians of {runs} runs of about "
              f"{lane.machine.get('seconds')} s each.\n")
        for rows in (speed_rows(lane), limit_rows(lane), memory_rows(lane)):
            table(rows, options.markdown)
    if any("herald" in lane.devices() for lane in lanes.values()):
        print(f"{'## ' if options.markdown else ''}Goals\n")
        table(goal_rows(lanes), options.markdown)


main()
