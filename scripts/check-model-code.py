#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
"""Do the models still stand for the code?

	scripts/check-model-code.py MODEL...

A litmus test or a Promela model says of what it models, on a line of its own,

	// FILE: FUNCTION(): CODE

The function has to be in that file and has to have that code, comments and white space aside. What one process of a
model quotes from one function has to come in that order there. Prints a line for each quotation that no longer holds,
and exits 1 if there was one. A model that quotes nothing is a failure as well.
"""
import os
import re
import sys

TOP = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
QUOTE = re.compile(r"^\s*// ((?:kernel|user|include)/[\w./-]+\.(?:c|h|cc)): (\w+)\(\): (.*\S)\s*$")
PROCESS = re.compile(r"^(P\d+\(|(active )?proctype |inline )")


def plain(text):
    """Without comments and with single blanks; strings in the code quoted hold neither."""
    text = re.sub(r"/\*.*?\*/", " ", text, flags=re.S)
    text = re.sub(r"//[^\n]*", " ", text)
    return re.sub(r"\s+", " ", text)


def body(text, name):
    """The function's text between its braces, or None."""
    for match in re.finditer(r"\b%s\(" % name, text):
        # the end of the parameters, then a body and no semicolon or operator
        at, depth = match.end(), 1
        while at < len(text) and depth:
            depth += {"(": 1, ")": -1}.get(text[at], 0)
            at += 1
        start = re.match(r"( (const|noexcept|override))* ?\{", text[at:])
        # a call that a block follows is in an if, for or while
        if not start or re.search(r"\b(if|for|while|switch) ?\([^{};]*$", text[: match.start()]):
            continue
        begin = at = at + start.end()
        depth = 1
        while at < len(text) and depth:
            depth += {"{": 1, "}": -1}.get(text[at], 0)
            at += 1
        return text[begin:at]
    return None


def check(model):
    sources, places, count, bad = {}, {}, 0, 0
    with open(model, encoding="utf-8") as lines:
        for number, line in enumerate(lines, 1):
            if PROCESS.match(line):
                places = {}
            match = QUOTE.match(line)
            if not match:
                continue
            count += 1
            path, function, code = match.groups()
            if path not in sources:
                try:
                    with open(os.path.join(TOP, path), encoding="utf-8") as source:
                        sources[path] = plain(source.read())
                except OSError:
                    sources[path] = ""
            text = body(sources[path], function)
            where = "%s:%d: %s: %s()" % (os.path.relpath(model, TOP), number, path, function)
            if text is None:
                print("%s is no longer there" % where)
                bad += 1
                continue
            code = plain(code).strip()
            place = text.find(code, places.get((path, function), 0))
            if place < 0:
                why = "comes earlier there" if code in text else "is no longer in it"
                print("%s: `%s` %s" % (where, code, why))
                bad += 1
            else:
                places[(path, function)] = place
    if not count:
        print("%s quotes no code" % os.path.relpath(model, TOP))
    return count > 0 and not bad


if __name__ == "__main__":
    results = [check(os.path.abspath(model)) for model in sys.argv[1:]]
    sys.exit(0 if results and all(results) else 1)
