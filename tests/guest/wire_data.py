#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
"""wire_data.py DEVICE GID-INDEX DEVICE GID-INDEX PATH-MTU SECONDS [KIND...]
   wire_data.py serve PORT DEVICE GID-INDEX SECONDS

Every operation between two devices, in both directions, with the sizes that packets care about; the PSNs wrap meanwhile.
Each byte is compared, and those next to it. SECONDS: how long a completion may take. KINDS: RC UC UD, or some of them.
The second device may be another machine's: it is called ADDRESS:PORT then, and is what `serve` serves there.
LARGEST in the environment: bytes of the longest message.
"""
import collections
import multiprocessing.connection
import os
import sys
import time

from pyverbs import enums as e
from pyverbs.addr import AH, AHAttr, GID, GlobalRoute
from pyverbs.cq import CQ
from pyverbs.device import Context
from pyverbs.mr import MR
from pyverbs.pd import PD
from pyverbs.qp import QP, QPAttr, QPCap, QPInitAttr
from pyverbs.wr import SGE, RecvWR, SendWR

ROOM = 512 * 1024  # half of each side's memory: sends from the first, receives in the second
GRH = 40
PSN = 0xFFFFF0
QKEY = 0x11111111
INLINE = 64
ACCESS = e.IBV_ACCESS_LOCAL_WRITE | e.IBV_ACCESS_REMOTE_WRITE | e.IBV_ACCESS_REMOTE_READ | e.IBV_ACCESS_REMOTE_ATOMIC
MTUS = {256: e.IBV_MTU_256, 512: e.IBV_MTU_512, 1024: e.IBV_MTU_1024, 2048: e.IBV_MTU_2048, 4096: e.IBV_MTU_4096}
patience = 0.0


# What one side has to know about the other
End = collections.namedtuple("End", "gid qpn rkey buf")
# What matters of a completion
Completion = collections.namedtuple("Completion", "byte_len imm_data wc_flags")


class Side:
    def __init__(self, device, gid_index):
        self.name = device
        self.ctx = Context(name=device)
        self.gid_index = gid_index
        self.gid = str(self.ctx.query_gid(1, gid_index))
        self.pd = PD(self.ctx)
        self.cq = CQ(self.ctx, 64)
        self.mr = MR(self.pd, 2 * ROOM, ACCESS)
        self.qp = self.ah = None

    def open(self, kind):
        init = QPInitAttr(qp_type=kind, scq=self.cq, rcq=self.cq, cap=QPCap(16, 16, 1, 1, INLINE), sq_sig_all=1)
        self.qp = QP(self.pd, init)

    def close(self):
        self.qp.close()

    def end(self):
        return End(self.gid, self.qp.qp_num, self.mr.rkey, self.mr.buf)

    def connect(self, kind, other, mtu):
        address = AHAttr(gr=GlobalRoute(dgid=GID(other.gid), sgid_index=self.gid_index), is_global=1, port_num=1)
        attr = QPAttr(port_num=1)
        if kind == e.IBV_QPT_UD:
            attr.qkey = QKEY
            attr.sq_psn = PSN
            self.qp.to_rts(attr)
            self.ah = AH(self.pd, attr=address)
            return
        attr.qp_access_flags = ACCESS if kind == e.IBV_QPT_RC else e.IBV_ACCESS_REMOTE_WRITE
        attr.path_mtu = MTUS[mtu]
        attr.dest_qp_num = other.qpn
        attr.rq_psn = attr.sq_psn = PSN
        attr.ah_attr = address
        attr.max_dest_rd_atomic = attr.max_rd_atomic = 1
        attr.min_rnr_timer = 1
        attr.timeout = 14
        attr.retry_cnt = attr.rnr_retry = 7
        self.qp.to_rts(attr)

    def sge(self, offset, length):
        return SGE(self.mr.buf + offset, length, self.mr.lkey)

    def completion(self, what):
        end = time.monotonic() + patience
        while time.monotonic() < end:
            n, wcs = self.cq.poll(1)
            if n:
                if wcs[0].status != e.IBV_WC_SUCCESS:
                    raise SystemExit(f"{what}: {self.name}: status {wcs[0].status}")
                return Completion(wcs[0].byte_len, wcs[0].imm_data, wcs[0].wc_flags)
        raise SystemExit(f"{what}: {self.name}: no completion after {patience} s")

    def put(self, offset, data):
        if data:
            self.mr.write(data, len(data), offset)

    def show(self, offset, length):
        return self.mr.read(length, offset) if length else b""

    def post_recv(self, offset, length):
        self.qp.post_recv(RecvWR(num_sge=1, sg=[self.sge(offset, length)]))

    def post(self, other, opcode, length, imm=0, inline=False, at=None, datagram=False, local=8):
        flags = e.IBV_SEND_SIGNALED | (e.IBV_SEND_INLINE if inline else 0)
        wr = SendWR(opcode=opcode, num_sge=1, imm_data=imm, sg=[self.sge(local, length)], send_flags=flags)
        if at is not None:
            wr.set_wr_rdma(other.rkey, other.buf + at)
        if datagram:
            wr.set_wr_ud(self.ah, other.qpn, QKEY)
        self.qp.post_send(wr)

    def post_atomic(self, other, opcode, at, first, second):
        wr = SendWR(opcode=opcode, num_sge=1, sg=[self.sge(ROOM, 8)], send_flags=e.IBV_SEND_SIGNALED)
        wr.set_wr_atomic(other.rkey, other.buf + at, first, second)
        self.qp.post_send(wr)


class Remote:
    """A Side of another machine: each method is called there"""

    def __init__(self, place):
        self.name = place
        address, port = place.rsplit(":", 1)
        self.conn = multiprocessing.connection.Client((address, int(port)))

    def __getattr__(self, method):
        def call(*args, **words):
            self.conn.send((method, args, words))
            failed, got = self.conn.recv()
            if failed:
                raise SystemExit(got)
            return got

        return call


def serve(port, side):
    with multiprocessing.connection.Listener(("0.0.0.0", port)) as listener:
        conn = listener.accept()
    try:
        while True:
            method, args, words = conn.recv()
            try:
                conn.send((False, getattr(side, method)(*args, **words)))
            except (Exception, SystemExit) as error:  # whatever it is, the other end has to say so
                conn.send((True, str(error)))
    except EOFError:
        pass


def prepare(side, offset, length, byte):
    side.put(offset, bytes([byte]) * length)


def compare(what, side, offset, data):
    """The data is there, and nothing next to it"""
    got = side.show(offset - 8, len(data) + 16)
    if got != b"\xa5" * 8 + data + b"\xa5" * 8:
        at = next(i for i, (x, y) in enumerate(zip(got, b"\xa5" * 8 + data + b"\xa5" * 8)) if x != y) - 8
        raise SystemExit(f"{what}: wrong at byte {at}")


def expect(what, got, wanted):
    if got != wanted:
        raise SystemExit(f"{what}: {got} instead of {wanted}")


def send(kind, a, b, length, imm, inline):
    """A SEND, with immediate data or without, received by b"""
    what = f"send of {length} bytes, imm {imm}, inline {inline}, {a.name} to {b.name}"
    grh = GRH if kind == e.IBV_QPT_UD else 0
    data = os.urandom(length)
    a.put(8, data)
    prepare(b, ROOM, length + grh + 24, 0xA5)
    b.post_recv(ROOM + 8, length + grh)
    opcode = e.IBV_WR_SEND if imm is None else e.IBV_WR_SEND_WITH_IMM
    a.post(b.end(), opcode, length, imm or 0, inline, datagram=kind == e.IBV_QPT_UD)
    wc = b.completion(what)
    expect(what, wc.byte_len, length + grh)
    if imm is not None:
        expect(what, wc.imm_data, imm)
    if grh:
        prepare(b, ROOM + 8 + grh - 8, 8, 0xA5)
    a.completion(what)
    compare(what, b, ROOM + 8 + grh, data)


def write(a, b, length, imm, inline):
    what = f"write of {length} bytes, imm {imm}, inline {inline}, {a.name} to {b.name}"
    data = os.urandom(length)
    a.put(8, data)
    prepare(b, ROOM, length + 24, 0xA5)
    opcode = e.IBV_WR_RDMA_WRITE
    if imm is not None:
        opcode = e.IBV_WR_RDMA_WRITE_WITH_IMM
        b.post_recv(0, 8)
    a.post(b.end(), opcode, length, imm or 0, inline, at=ROOM + 8)
    if imm is not None:
        expect(what, b.completion(what).imm_data, imm)
    a.completion(what)
    # UC completes before it has arrived: with immediate data, b was told
    if a.reliable or imm is not None:
        compare(what, b, ROOM + 8, data)


def read(a, b, length):
    what = f"read of {length} bytes, {a.name} from {b.name}"
    data = os.urandom(length)
    b.put(8, data)
    prepare(a, ROOM, length + 24, 0xA5)
    a.post(b.end(), e.IBV_WR_RDMA_READ, length, at=8, local=ROOM + 8)
    a.completion(what)
    compare(what, a, ROOM + 8, data)


def atomic(a, b, opcode, first, second, before, after):
    what = f"atomic {opcode}, {a.name} at {b.name}"
    b.put(64, before.to_bytes(8, sys.byteorder))
    a.post_atomic(b.end(), opcode, 64, first, second)
    a.completion(what)
    expect(what, int.from_bytes(a.show(ROOM, 8), sys.byteorder), before)
    expect(what, int.from_bytes(b.show(64, 8), sys.byteorder), after)


def everything(kind, a, b, mtu):
    a.reliable = b.reliable = kind == e.IBV_QPT_RC
    sizes = [0, 1, 2, 3, 61, mtu - 1, mtu]
    if kind != e.IBV_QPT_UD:
        sizes += [mtu + 1, 2 * mtu - 3, 3 * mtu, 16 * mtu + 5, int(os.environ.get("LARGEST", "200001"))]
    for length in sizes:
        for imm in (None, 0x12345678):
            for inline in (False, True) if length <= INLINE else (False,):
                send(kind, a, b, length, imm, inline)
                if kind != e.IBV_QPT_UD:
                    write(a, b, length, imm, inline)
        if kind == e.IBV_QPT_RC:
            read(a, b, length)
    if kind == e.IBV_QPT_RC:
        many = (1 << 64) - 1
        atomic(a, b, e.IBV_WR_ATOMIC_FETCH_AND_ADD, 3, 0, many - 1, 1)
        atomic(a, b, e.IBV_WR_ATOMIC_CMP_AND_SWP, 5, 0x1122334455667788, 5, 0x1122334455667788)
        atomic(a, b, e.IBV_WR_ATOMIC_CMP_AND_SWP, 6, 1, 5, 5)


def main():
    global patience
    patience = float(sys.argv[5] if sys.argv[1] == "serve" else sys.argv[6])
    if sys.argv[1] == "serve":
        serve(int(sys.argv[2]), Side(sys.argv[3], int(sys.argv[4])))
        return
    one = Side(sys.argv[1], int(sys.argv[2]))
    two = Remote(sys.argv[3]) if ":" in sys.argv[3] else Side(sys.argv[3], int(sys.argv[4]))
    mtu = int(sys.argv[5])
    for name in sys.argv[7:] or ("RC", "UC", "UD"):
        kind = {"RC": e.IBV_QPT_RC, "UC": e.IBV_QPT_UC, "UD": e.IBV_QPT_UD}[name]
        one.open(kind)
        two.open(kind)
        one.connect(kind, two.end(), mtu)
        two.connect(kind, one.end(), mtu)
        everything(kind, one, two, mtu)
        everything(kind, two, one, mtu)
        one.close()
        two.close()


if __name__ == "__main__":
    main()
