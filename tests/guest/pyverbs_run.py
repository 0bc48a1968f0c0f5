#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
"""Runs one module of rdma-core's pyverbs suite and says for each test what became of it.

    pyverbs_run.py SUITE-FOLDER MODULE --dev NAME --gid INDEX

Each line: START|PASS|FAIL|SKIP, a tab, module.Class.test, a tab, the reason. A START without an end hung or died.

    pyverbs_run.py --judge RESULTS LIST...

Compares the SKIP lines of RESULTS with the lists (`pattern  reason` lines, # for comments): a skip that no pattern
names, or a pattern that names no skip, is printed, and the status is 1.
"""
import fnmatch
import sys
import unittest


def name_of(test):
    """module.Class.test, without the package; for a class that could not be set up, the class."""
    name = test.id()
    if name.startswith('setUpClass ('):
        name = name[len('setUpClass ('):-1] + '.*'
    return name.removeprefix('tests.')


def one_line(text):
    return ' '.join(str(text).split())[:200]


class Result(unittest.TestResult):
    def say(self, what, test, reason=''):
        print(f'{what}\t{name_of(test)}\t{one_line(reason)}', flush=True)

    def startTest(self, test):
        super().startTest(test)
        self.say('START', test)

    def addSuccess(self, test):
        self.say('PASS', test)

    def addSkip(self, test, reason):
        self.say('SKIP', test, reason)

    def broken(self, test, err):
        text = self._exc_info_to_string(err, test)
        print(text, file=sys.stderr, flush=True)
        self.say('FAIL', test, text.strip().splitlines()[-1])

    addError = addFailure = broken

    def addSubTest(self, test, subtest, err):
        if err:
            self.broken(test, err)

    def addExpectedFailure(self, test, err):
        self.say('PASS', test)

    def addUnexpectedSuccess(self, test):
        self.say('FAIL', test, 'unexpected success')


def judge(results, lists):
    patterns = {}
    for path in lists:
        with open(path, encoding='utf-8') as f:
            for line in f:
                line = line.split('#')[0].strip()
                if line:
                    pattern, _, reason = line.partition(' ')
                    patterns[pattern] = reason.strip()
    used, bad = set(), []
    with open(results, encoding='utf-8') as f:
        for line in f:
            what, name, reason = (line.rstrip('\n') + '\t\t').split('\t')[:3]
            if what != 'SKIP':
                continue
            found = [p for p in patterns if fnmatch.fnmatchcase(name, p)]
            used.update(found)
            if not found:
                bad.append(f'skipped, but not on the list: {name} ({reason})')
    bad += [f'on the list, but not skipped: {p}' for p in patterns if p not in used]
    bad += [f'on the list without a reason: {p}' for p in patterns if not patterns[p]]
    print('\n'.join(bad))
    return 1 if bad else 0


def main():
    if sys.argv[1] == '--judge':
        return judge(sys.argv[2], sys.argv[3:])
    folder, module = sys.argv[1:3]
    del sys.argv[1:3]
    sys.path[:0] = [folder, folder + '/tests']
    from args_parser import parser
    parser.parse_args()
    suite = unittest.defaultTestLoader.loadTestsFromName('tests.' + module)
    suite.run(Result())
    return 0


if __name__ == '__main__':
    sys.exit(main())
