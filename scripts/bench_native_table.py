#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
"""Makes the table of scripts/bench-native.sh.

    scripts/bench_native_table.py [--markdown] RESULTS.json SHARED.json

A cell is nanoseconds for one poll, polled completion or arm: the least of the repetitions and, behind it, their median.
On a machine that is busy with other things the least is what the code costs.
"""

import argparse
import json
import statistics
from collections import defaultdict

# benchmark, argument: title, goal in ns
ROWS = {
    ("empty_poll", ""): ("empty poll", 3),
    ("poll", "1"): ("polled completion, 1 a poll", 10),
    ("poll", "16"): ("polled completion, 16 a poll", 10),
    ("poll", "64"): ("polled completion, 64 a poll", 10),
    ("arm", ""): ("arm", 10),
    ("arm_again", ""): ("arm while armed", 10),
}
COLUMNS = {"herald_cq": "herald", "shared": "herald, shared", "herald_alone": "herald, alone", "librxe": "librxe"}


def load(name, only=None):
    """(benchmark, argument, whose): nanoseconds per item, of each repetition"""
    times = defaultdict(list)
    with open(name, encoding="utf-8") as file:
        results = json.load(file)
    for result in results["benchmarks"]:
        if result["run_type"] != "iteration":
            continue
        if "error_message" in result:
            raise SystemExit(f"{result['name']}: {result['error_message']}")
        test, whose, *argument = result["name"].split("/")
        argument = argument[0] if argument else ""
        times[test, argument, only or whose].append(result["cpu_time"] / int(argument or 1))
    return times


def cell(values):
    return f"{min(values):.1f} ({statistics.median(values):.1f})" if values else "-"


def rows(times):
    yield ["ns", *COLUMNS.values(), "librxe / herald", "goal"]
    for (test, argument), (title, goal) in ROWS.items():
        values = {whose: times.get((test, argument, whose)) for whose in COLUMNS}
        mine, theirs = values["herald_cq"], values["librxe"]
        ratio = f"{min(theirs) / min(mine):.1f}x" if mine and theirs else "-"
        verdict = "-" if not mine else "reached" if min(mine) < goal else "MISSED"
        yield [title, *(cell(values[whose]) for whose in COLUMNS), ratio, f"< {goal}: {verdict}"]


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--markdown", action="store_true")
    parser.add_argument("results")
    parser.add_argument("shared")
    options = parser.parse_args()
    table = list(rows({**load(options.results), **load(options.shared, "shared")}))
    widths = [max(len(row[i]) for row in table) for i in range(len(table[0]))]
    for n, row in enumerate(table):
        padded = [text.ljust(width) for text, width in zip(row, widths)]
        print("| " + " | ".join(padded) + " |" if options.markdown else "  ".join(padded).rstrip())
        if n == 0:
            line = ["-" * width for width in widths]
            print("| " + " | ".join(line) + " |" if options.markdown else "  ".join(line))


main()
