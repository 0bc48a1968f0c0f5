# SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
"""The rules for packets one after the other: what follows what, PSNs, retransmissions, answers."""

from packet import Bad, require

# A19: ATOMIC WRITE and FLUSH are answered by an empty READ response
READ_ANSWERED = ("rc_rdma_read_request", "rc_atomic_write", "rc_flush")
HALF = 1 << 23
FULL = 1 << 24


def unwrap(psn, near):
    """The number that ends in this PSN and is next to `near`"""
    return near + (psn - near + HALF) % FULL - HALF


def parts(name):
    """rc_send_last_with_immediate: ("rc_send", "last")"""
    for what in ("first", "middle", "last", "only"):
        at = name.find("_" + what)
        if at >= 0:
            return name[:at], what
    return name, "only"


def check_follows(before, after):
    """Neighbours in a flow of requests, by their names"""
    kind, place = parts(before)
    next_kind, next_place = parts(after)
    if place in ("first", "middle"):
        require(next_kind == kind and next_place in ("middle", "last"), f"{after} after {before}")
    else:
        require(next_place in ("first", "only"), f"{after} after {before}")


class Requests:
    """The requests of one QP, each by its number. `loss`: some may be missing, since the capture is behind the loss."""

    def __init__(self, loss, reliable):
        self.loss = loss
        self.reliable = reliable
        self.sent = {}  # number: packet
        self.reads = []  # (first number, packets, address, bytes)
        self.next = None
        self.newest = None  # one more than the highest that was sent
        self.mtu = None
        self.seen = {"retransmission": 0, "psn_wrap": 0, "hole": 0}

    def width(self, packet):
        """How many PSNs it takes"""
        if packet.name != "rc_rdma_read_request":
            return 1
        length = packet.dma()[2]
        if not self.mtu:  # without a longer message, a READ's answer is one packet
            return 1
        return max(1, -(-length // self.mtu))

    def add(self, packet):
        if self.next is None:
            self.next = self.newest = packet.psn + FULL
        number = unwrap(packet.psn, self.next)
        end = number + self.width(packet)
        if number > self.next:
            require(self.loss, f"PSN {packet.psn:#x}: {number - self.next} are missing")
            self.seen["hole"] += 1
        if number < self.newest:
            self.again(number, packet)
        else:
            if packet.name == "rc_rdma_read_request":
                address, _, length = packet.dma()
                self.reads.append((number, end - number, address, length))
        self.sent[number] = packet
        if (end - 1) // FULL > (self.next - 1) // FULL:
            self.seen["psn_wrap"] += 1
        self.next = end
        self.newest = max(self.newest, end)

    def again(self, number, packet):
        """What was sent before: the same, or the rest of a READ"""
        require(self.reliable, f"PSN {packet.psn:#x} once more on a transport that repeats nothing")
        self.seen["retransmission"] += 1
        if packet.name == "rc_rdma_read_request":
            self.read_again(number, packet)
        elif number in self.sent:
            require(self.sent[number].says() == packet.says(), f"PSN {packet.psn:#x}: repeated with another content")
        else:
            require(self.loss and not self.inside_read(number), f"PSN {packet.psn:#x}: repeated and never sent")

    def inside_read(self, number):
        return any(first <= number < first + n for first, n, _, _ in self.reads)

    def read_again(self, number, packet):
        address, _, length = packet.dma()
        for first, n, start, whole in self.reads:
            if first <= number < first + n:
                skipped = (number - first) * (self.mtu or 0)
                require(address == start + skipped, f"PSN {packet.psn:#x}: READ continues at another address")
                require(length <= whole - skipped, f"PSN {packet.psn:#x}: READ continues with another length")
                return
        require(self.loss, f"PSN {packet.psn:#x}: READ repeated and never sent")
        self.reads.append((number, self.width(packet), address, length))

    def finish(self):
        """Neighbours, and whole messages"""
        length = wanted = None
        for number in sorted(self.sent):
            packet = self.sent[number]
            before = self.sent.get(number - 1)
            if before and self.width(before) == 1:
                try:
                    check_follows(before.name, packet.name)
                except Bad as bad:
                    raise Bad(f"packet {packet.number}: {bad}") from None
            place = parts(packet.name)[1]
            if place in ("first", "only"):
                wanted = packet.dma()[2] if "rdma_write" in packet.name else None
                length = 0
            elif not before:
                length = None
            if length is None:
                continue
            length += len(packet.payload)
            if place in ("last", "only") and wanted is not None:
                require(length == wanted, f"packet {packet.number}: WRITE of {length} bytes, and its RETH says {wanted}")


class Reading:
    """The READ whose responses are coming: the number of the first of them, of the next one, and after the last"""

    def __init__(self, number, width, length):
        self.first = self.next = number
        self.end = number + width
        self.length = length


class Answers:
    """What one QP answers to the requests of another"""

    def __init__(self, requests):
        self.requests = requests
        self.reading = None
        self.msn = None
        self.seen = {"sequence_nak": 0, "rnr_nak": 0, "other_nak": 0, "ack": 0}

    def add(self, packet):
        number = unwrap(packet.psn, self.requests.newest)
        if packet.name == "rc_acknowledge":
            self.acknowledge(number, packet)
        elif packet.name == "rc_atomic_acknowledge":
            request = self.requests.sent.get(number)
            require(request and request.name in ("rc_fetch_add", "rc_compare_swap"),
                    f"PSN {packet.psn:#x}: atomic answer to {request.name if request else 'nothing'}")
        else:
            self.read_response(number, packet)

    def acknowledge(self, number, packet):
        kind = packet.syndrome() >> 5
        require(kind in (0, 1, 3), f"AETH: syndrome {packet.syndrome():#x}")
        if kind == 3:
            self.seen["sequence_nak" if packet.syndrome() == 0x60 else "other_nak"] += 1
            # of what it misses, which was lost before it was captured
            require(number < self.requests.newest, f"PSN {packet.psn:#x}: NAK of what was not sent")
            return
        self.seen["rnr_nak" if kind == 1 else "ack"] += 1
        require(number < self.requests.newest, f"PSN {packet.psn:#x}: answer to what was not sent")
        msn = int.from_bytes(packet.aeth[1:], "big")
        if self.msn is not None:
            require((msn - self.msn) % FULL < HALF, f"MSN {msn:#x} after {self.msn:#x}")
        self.msn = msn

    def read_response(self, number, packet):
        place = parts(packet.name)[1]
        if place in ("first", "only"):
            request = self.requests.sent.get(number)
            require(request and request.name in READ_ANSWERED, f"PSN {packet.psn:#x}: READ response to no READ")
            length = request.dma()[2] if request.name == "rc_rdma_read_request" else 0
            self.reading = Reading(number, self.requests.width(request), length)
        reading = self.reading
        if self.requests.loss and not (reading and reading.next <= number < reading.end):
            return  # its first one was lost
        require(reading and number == reading.next or self.requests.loss, f"PSN {packet.psn:#x}: READ response that is not the next")
        last = number == reading.end - 1
        require(last == (place in ("last", "only")), f"PSN {packet.psn:#x}: {packet.name} at the wrong place")
        if last:
            rest = reading.length - (number - reading.first) * (self.requests.mtu or 0)
            require(len(packet.payload) == rest, f"PSN {packet.psn:#x}: {len(packet.payload)} bytes, and {rest} were missing")
        reading.next = number + 1
