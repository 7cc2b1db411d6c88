"""The UDP loop: receive, answer, send, until told to stop.

Owns  both loops, the batched one and the portable one, and draining.
Asks  `answer` for replies, `ring` for batches.
Tells clients.
Not   binding sockets, processes, signals (`server`); what replies say.

Never asyncio: it more than doubles the cost of a query (docs/explanation/dns.md).
"""

import socket
import struct
import sys
from typing import Final, Protocol

from edgestead.dns import ring
from edgestead.dns.answer import Responder
from edgestead.dns.counters import Counters, Slot, Tally
from edgestead.dns.ring import BATCH, SLOT_OCTETS, Ring
from edgestead.dns.table import Table

STOP_LOOK_MS: Final = 200
"""How long an idle loop may overlook that it shall stop."""
SWITCH_SECONDS: Final = 0.0005
"""How long the thread that applies changes may keep the interpreter from a waiting query; Python's 5 ms would
be the median answer's delay during an import (measured: 5.5 ms, and 0.7 ms with this)."""
DRAIN_BATCHES_MAX: Final = 64
FLUSH_QUERIES: Final = 1024
"""Counts are handed over this often under load, and at once when there is little to do."""

_ID: Final = 2
_NOERROR, _QUERIES, _HITS = int(Slot.NOERROR), int(Slot.QUERIES), int(Slot.CACHE_HITS)


class Stop(Protocol):
    """A `threading.Event`, or anything else that says whether to stop."""

    def is_set(self) -> bool: ...


def serve_udp(sock: socket.socket, table: Table, counters: Counters, stop: Stop) -> None:
    """Answer queries on a bound datagram socket until `stop`, then what has already arrived, and return.

    Blocks the calling thread; `table.apply` belongs on another one. Sets a receive time-out on the socket,
    and the interpreter's switch interval while it runs.

    Raises OSError when the socket is of no more use.
    """
    loop = _Batched if ring.AVAILABLE else _Portable
    _run(loop(sock, table, counters), stop)


def serve_udp_portably(sock: socket.socket, table: Table, counters: Counters, stop: Stop) -> None:
    """`serve_udp` with one system call for each datagram, for systems without recvmmsg."""
    _run(_Portable(sock, table, counters), stop)


class _Loop(Protocol):
    tally: Tally

    def turn(self, *, wait: bool) -> int:
        """Answer what is there; returns the number of queries, 0 when time ran out."""
        ...


def _run(loop: _Loop, stop: Stop) -> None:
    counts, flush = loop.tally.counts, loop.tally.flush
    switch_seconds = sys.getswitchinterval()
    sys.setswitchinterval(SWITCH_SECONDS)
    try:
        while not stop.is_set():
            if loop.turn(wait=True) <= 1 or counts[_QUERIES] >= FLUSH_QUERIES:
                flush()
        for _ in range(DRAIN_BATCHES_MAX):
            if not loop.turn(wait=False):
                break
    finally:
        flush()
        sys.setswitchinterval(switch_seconds)


def _set_receive_time(sock: socket.socket) -> None:
    """Wake an idle loop now and then: a stop just before the system call would else wait for a query."""
    sock.setblocking(True)
    time = struct.pack("@ll", 0, STOP_LOOK_MS * 1000)
    sock.setsockopt(socket.SOL_SOCKET, socket.SO_RCVTIMEO, time)


class _Batched:
    """recvmmsg, replies over the queries in place, sendmmsg."""

    def __init__(self, sock: socket.socket, table: Table, counters: Counters) -> None:
        _set_receive_time(sock)
        self.tally = Tally(counters)
        self._lock = table.lock
        self._responder = Responder(table, self.tally, udp=True)
        self._ring = Ring(sock)
        slots = [(i, i * SLOT_OCTETS, i * SLOT_OCTETS + _ID) for i in range(BATCH)]
        self._slots = [slots[:n] for n in range(BATCH + 1)]

    def turn(self, *, wait: bool) -> int:
        received = self._ring.receive(wait=wait)
        if not received:
            return 0
        left_out = self._answer(received)
        if not left_out:
            unsent = self._ring.send(0, received)
        else:
            unsent = self._send_around(left_out, received)
        if unsent:
            self.tally.counts[Slot.UNSENT] += unsent
        return received

    def _answer(self, received: int) -> list[int]:
        """Write the replies over the queries; returns the slots that get none."""
        buffer, lengths, sizes = self._ring.buffer, self._ring.received, self._ring.sizes
        left_out, live = [], 0
        with self._lock:
            get, live_reply = self._responder.exact_of_now().get, self._responder.reply
            for i, start, at in self._slots[received]:
                query = buffer[at : start + lengths[i]]
                reply = get(query)
                if reply is None:
                    live += 1
                    try:
                        reply = live_reply(query)
                    except Exception:
                        reply = self._responder.failed(query)
                    if reply is None:
                        left_out.append(i)
                        continue
                size = len(reply)
                buffer[at : at + size] = reply
                sizes[i] = size + _ID
        counts, hits = self.tally.counts, received - live
        counts[_QUERIES] += received
        counts[_HITS] += hits
        counts[_NOERROR] += hits
        return left_out

    def _send_around(self, left_out: list[int], received: int) -> int:
        unsent = first = 0
        for gap in (*left_out, received):
            unsent += self._ring.send(first, gap)
            first = gap + 1
        return unsent


class _Portable:
    """recvfrom and sendto."""

    def __init__(self, sock: socket.socket, table: Table, counters: Counters) -> None:
        _set_receive_time(sock)
        self.tally = Tally(counters)
        self._sock = sock
        self._lock = table.lock
        self._responder = Responder(table, self.tally, udp=True)

    def turn(self, *, wait: bool) -> int:
        try:
            data, address = self._sock.recvfrom(SLOT_OCTETS, 0 if wait else socket.MSG_DONTWAIT)
        except BlockingIOError:
            return 0
        counts, query = self.tally.counts, data[_ID:]
        counts[_QUERIES] += 1
        with self._lock:
            reply = self._responder.exact_of_now().get(query)
            if reply is not None:
                counts[_HITS] += 1
                counts[_NOERROR] += 1
            else:
                try:
                    reply = self._responder.reply(query)
                except Exception:
                    reply = self._responder.failed(query)
        if reply is not None:
            try:
                self._sock.sendto(data[:_ID] + reply, address)
            except OSError:
                counts[Slot.UNSENT] += 1
        return 1
