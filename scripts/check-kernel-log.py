#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
"""Finds what the kernel complained about while a lane ran.

    scripts/check-kernel-log.py LOG ALLOW-LIST

Prints a `FAIL kernel-log/JOB: message` line for each job (the guest's init marks where they begin and end) in whose
time the kernel warned, and an excerpt of the log on standard error; `PASS kernel-log` if there was nothing.
"""

import re
import sys

TROUBLE = re.compile(
    r"WARNING|\bBUG\b|KASAN|KFENCE|UBSAN|KCSAN|refcount_t|ODEBUG|Oops|kernel panic|Kernel panic"
    r"|INFO: (task .* blocked|rcu|possible|trying to register)|blocked for more than|hung_task"
    r"|scheduling while atomic|sleeping function called|suspicious RCU usage|inconsistent lock state"
    r"|possible (circular|recursive|irq)|bad unlock balance|held lock freed|DEBUG_LOCKS_WARN_ON|still has locks held"
    r"|general protection|unable to handle|NULL pointer dereference|Internal error|stack overflow|stack guard"
    r"|list_(add|del) corruption|Bad (page|rss-counter)|double free|use-after-free|cache_from_obj"
    r"|unregister_netdevice: waiting|(soft|workqueue) lockup|hard LOCKUP|rcu_sched|self-detected stall"
    r"|kmemleak: [0-9]+ new suspected|page allocation failure|restrack|Objects remaining|leaked"
)
# what only reports that a checker is there, or off
HARMLESS = re.compile(r"kasan: |KASAN(-| )(init|shadow|layout)|KernelAddressSanitizer initialized|kfence: initialized"
                      r"|kmemleak: Kernel memory leak detector|DEBUG_LOCKS|Lock dependency validator")
MARK = re.compile(r"herald-job: (begin|end) (\S+)")
CONTEXT = 40


def allowed(path):
    with open(path, encoding="utf-8") as lines:
        rules = [line.rstrip("\n").split("\t")[0] for line in lines if line.strip() and not line.startswith("#")]
    return [re.compile(rule) for rule in rules]


def main(log, allow_list):
    rules = allowed(allow_list)
    with open(log, encoding="utf-8", errors="replace") as file:
        lines = [line.rstrip() for line in file]
    job, found = "boot", {}
    for number, line in enumerate(lines):
        mark = MARK.search(line)
        if mark:
            job = mark.group(2) if mark.group(1) == "begin" else "end"
            continue
        if not TROUBLE.search(line) or HARMLESS.search(line) or any(rule.search(line) for rule in rules):
            continue
        found.setdefault(job, []).append(number)
    for job, numbers in found.items():
        first = numbers[0]
        print(f"--- kernel log of {job}, {len(numbers)} suspicious lines", file=sys.stderr)
        print("\n".join(lines[max(0, first - 3) : first + CONTEXT]), file=sys.stderr)
        print("---", file=sys.stderr)
        message = re.sub(r"^\s*\[[^]]*\]\s*", "", lines[first])
        print(f"FAIL kernel-log/{job}: {message[:200]}")
    if not found:
        print("PASS kernel-log")


main(*sys.argv[1:])
