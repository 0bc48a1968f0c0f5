#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
"""wire_exact.py DEVICE GID-INDEX DEVICE GID-INDEX COUNT SECONDS

A reliable connection with its send queue full: COUNT of SEND, WRITE, READ and FETCH_ADD, whatever the wire does to them. Each
WR completes once, in order, with the right data; each SEND is received once, each FETCH_ADD executed once, in its turn.
Or one ends with "retries used up": then those behind it are flushed, each once (the last line says so, and the status is 3).
SECONDS: how long the next completion may take.
"""
import sys
import time

from pyverbs import enums as e
from pyverbs.wr import RecvWR, SendWR

from wire_data import ROOM, Side, expect

MTU = 1024
SLOTS = 16  # as many as the queues have room for
SLOT = 16384
COUNTER = ROOM - 8  # where the atomics add: behind all slots, which take half of the room
KINDS = (e.IBV_WR_SEND, e.IBV_WR_RDMA_WRITE, e.IBV_WR_RDMA_READ, e.IBV_WR_ATOMIC_FETCH_AND_ADD)
GIVEN_UP = 3


def kind(i):
    return KINDS[i % 4]


def length(i):
    """From nothing to some packets, and not a multiple of anything"""
    return 8 if kind(i) == e.IBV_WR_ATOMIC_FETCH_AND_ADD else i * 1237 % (9 * MTU + 7)


def contents(i):
    seed = i.to_bytes(4, "big")
    return (seed * (length(i) // 4 + 1))[: length(i)]


def here(i):
    """Where the data is that WR i sends, or reads at the other side"""
    return i % SLOTS * SLOT


def there(i):
    """Where it arrives"""
    return ROOM + i % SLOTS * SLOT


class Run:
    def __init__(self, a, b, count, seconds):
        self.a, self.b, self.count, self.seconds = a, b, count, seconds
        self.posted = self.done = self.received = self.added = 0
        b.mr.write(bytes(8), 8, COUNTER)

    def post(self):
        i = self.posted
        arrives = self.a if kind(i) == e.IBV_WR_RDMA_READ else self.b
        if length(i) and kind(i) != e.IBV_WR_ATOMIC_FETCH_AND_ADD:
            (self.b if arrives is self.a else self.a).mr.write(contents(i), length(i), here(i))
        arrives.mr.write(b"\xa5" * (length(i) + 8), length(i) + 8, there(i))
        if kind(i) == e.IBV_WR_SEND:
            self.b.qp.post_recv(RecvWR(wr_id=i, num_sge=1, sg=[self.b.sge(there(i), SLOT)]))
        returns = kind(i) in (e.IBV_WR_RDMA_READ, e.IBV_WR_ATOMIC_FETCH_AND_ADD)
        local = self.a.sge(there(i) if returns else here(i), length(i))
        wr = SendWR(wr_id=i, opcode=kind(i), num_sge=1, sg=[local], send_flags=e.IBV_SEND_SIGNALED)
        if kind(i) == e.IBV_WR_ATOMIC_FETCH_AND_ADD:
            wr.set_wr_atomic(self.b.mr.rkey, self.b.mr.buf + COUNTER, 1, 0)
        elif kind(i) != e.IBV_WR_SEND:
            wr.set_wr_rdma(self.b.mr.rkey, self.b.mr.buf + (here(i) if returns else there(i)))
        self.a.qp.post_send(wr)
        self.posted += 1

    def compare(self, i):
        """The data of WR i is where it belongs, and nothing behind it"""
        if kind(i) == e.IBV_WR_ATOMIC_FETCH_AND_ADD:
            expect(f"value that WR {i} found", int.from_bytes(self.a.show(there(i), 8), sys.byteorder), self.added)
            self.added += 1
            return
        side = self.a if kind(i) == e.IBV_WR_RDMA_READ else self.b
        if side.show(there(i), length(i) + 8) != contents(i) + b"\xa5" * 8:
            raise SystemExit(f"WR {i}: wrong data")

    def take_received(self):
        """What the other side has received, in order"""
        while True:
            n, wcs = self.b.cq.poll(1)
            if not n:
                return
            expect("status of a receive", wcs[0].status, e.IBV_WC_SUCCESS)
            expect("the next receive", wcs[0].wr_id, 4 * self.received)
            expect("its length", wcs[0].byte_len, length(4 * self.received))
            self.received += 1

    def next_completion(self):
        end = time.monotonic() + self.seconds
        while time.monotonic() < end:
            n, wcs = self.a.cq.poll(1)
            if n:
                expect("the next completion", wcs[0].wr_id, self.done)
                return wcs[0].status
        raise SystemExit(f"WR {self.done} of {self.posted} posted ones: no completion in {self.seconds} s")

    def run(self):
        while self.done < self.count:
            while self.posted < min(self.count, self.done + SLOTS):
                self.post()
            status = self.next_completion()
            if status != e.IBV_WC_SUCCESS:
                return self.give_up(status)
            self.take_received()
            self.compare(self.done)
            self.done += 1
        self.end(len([i for i in range(self.count) if kind(i) == e.IBV_WR_SEND]))
        return 0

    def end(self, least):
        """No completion more; and no more has arrived than was posted"""
        expect("completions that are left", self.a.cq.poll(1)[0], 0)
        posted = [kind(i) for i in range(self.posted)]
        if not least <= self.received <= posted.count(e.IBV_WR_SEND):
            raise SystemExit(f"{self.received} were received, of {posted}")
        added = int.from_bytes(self.b.show(COUNTER, 8), sys.byteorder)
        if not self.added <= added <= posted.count(e.IBV_WR_ATOMIC_FETCH_AND_ADD):
            raise SystemExit(f"{added} were added, {self.added} completed")

    def give_up(self, status):
        expect(f"status of WR {self.done}", status, e.IBV_WC_RETRY_EXC_ERR)
        failed = self.done
        for self.done in range(failed + 1, self.posted):
            expect(f"status of WR {self.done}, behind it", self.next_completion(), e.IBV_WC_WR_FLUSH_ERR)
        self.take_received()
        self.end(len([i for i in range(failed) if kind(i) == e.IBV_WR_SEND]))
        print(f"status {status} of WR {failed}")
        return GIVEN_UP


def main():
    one = Side(sys.argv[1], int(sys.argv[2]))
    two = Side(sys.argv[3], int(sys.argv[4]))
    one.open(e.IBV_QPT_RC)
    two.open(e.IBV_QPT_RC)
    one.connect(e.IBV_QPT_RC, two.end(), MTU)
    two.connect(e.IBV_QPT_RC, one.end(), MTU)
    sys.exit(Run(one, two, int(sys.argv[5]), float(sys.argv[6])).run())


main()
