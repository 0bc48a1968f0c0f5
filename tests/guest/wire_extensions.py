#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
"""wire_extensions.py DEVICE GID-INDEX DEVICE GID-INDEX PATH-MTU SECONDS

What wire_data.py has not, between two devices that one process sees: SEND with invalidate, of one packet and of several,
ATOMIC WRITE and FLUSH.
"""
import os
import sys

import wire_data
from pyverbs import enums as e
from pyverbs.base import inc_rkey
from pyverbs.mr import MR, MW, MWBindInfo
from pyverbs.qp import QPCap, QPEx, QPInitAttrEx
from pyverbs.wr import RecvWR

ACCESS = wire_data.ACCESS | e.IBV_ACCESS_FLUSH_GLOBAL | e.IBV_ACCESS_MW_BIND
OPERATIONS = (e.IBV_QP_EX_WITH_SEND | e.IBV_QP_EX_WITH_SEND_WITH_INV | e.IBV_QP_EX_WITH_ATOMIC_WRITE
              | e.IBV_QP_EX_WITH_FLUSH | e.IBV_QP_EX_WITH_BIND_MW)


class Side(wire_data.Side):
    def open(self, kind):
        self.mr = MR(self.pd, 2 * wire_data.ROOM, ACCESS)
        init = QPInitAttrEx(qp_type=kind, scq=self.cq, rcq=self.cq, pd=self.pd, cap=QPCap(16, 16, 1, 1, 0), sq_sig_all=1,
                            comp_mask=e.IBV_QP_INIT_ATTR_PD | e.IBV_QP_INIT_ATTR_SEND_OPS_FLAGS,
                            send_ops_flags=OPERATIONS)
        self.qp = QPEx(self.ctx, init)

    def post(self, verb, *words, length=None):
        self.qp.wr_start()
        self.qp.wr_flags = e.IBV_SEND_SIGNALED
        getattr(self.qp, verb)(*words)
        if length is not None:
            self.qp.wr_set_sge(self.sge(8, length))
        self.qp.wr_complete()


def send_with_invalidate(a, b, length):
    what = f"send with invalidate of {length} bytes"
    window = MW(b.pd, mw_type=e.IBV_MW_TYPE_2)
    key = inc_rkey(window.rkey)
    b.post("wr_bind_mw", window, key, MWBindInfo(b.mr, b.mr.buf, 4096, e.IBV_ACCESS_REMOTE_WRITE))
    b.completion(what)
    data = os.urandom(length)
    a.mr.write(data, length, 8)
    wire_data.prepare(b, wire_data.ROOM, length + 24, 0xA5)
    b.qp.post_recv(RecvWR(num_sge=1, sg=[b.sge(wire_data.ROOM + 8, length)]))
    a.post("wr_send_inv", key, length=length)
    wc = b.completion(what)
    wire_data.expect(what, bool(wc.wc_flags & e.IBV_WC_WITH_INV), True)
    a.completion(what)
    wire_data.compare(what, b, wire_data.ROOM + 8, data)
    window.close()


def atomic_write(a, b):
    wire_data.prepare(b, 56, 24, 0xA5)
    data = os.urandom(8)
    a.post("wr_atomic_write", b.mr.rkey, b.mr.buf + 64, data)
    a.completion("atomic write")
    wire_data.compare("atomic write", b, 64, data)


def flush(a, b, length, level):
    a.post("wr_flush", b.mr.rkey, b.mr.buf, length, e.IBV_FLUSH_GLOBAL, level)
    a.completion("flush")


def main():
    one = Side(sys.argv[1], int(sys.argv[2]))
    two = Side(sys.argv[3], int(sys.argv[4]))
    mtu = int(sys.argv[5])
    wire_data.patience = float(sys.argv[6])
    one.open(e.IBV_QPT_RC)
    two.open(e.IBV_QPT_RC)
    wire_data.ACCESS = ACCESS
    one.connect(e.IBV_QPT_RC, two.end(), mtu)
    two.connect(e.IBV_QPT_RC, one.end(), mtu)
    for a, b in ((one, two), (two, one)):
        for length in (1, mtu, mtu + 1, 5 * mtu - 1):
            send_with_invalidate(a, b, length)
        atomic_write(a, b)
        flush(a, b, 4096, e.IBV_FLUSH_RANGE)
        flush(a, b, 0, e.IBV_FLUSH_MR)


main()
