"""The UDP loop: receive, answer, send, until it is stopped.

Owns  both loops, the batched one and the portable one, and draining; what becomes of a sibling's queries.
Not   binding sockets, processes, signals (`server`); the contents of replies.

The kernel deals queries out to the processes of a port by their source, whether these run or not. So each
loop looks at the socket of one of its siblings, at random, every LOOK_MS, and answers what waits there. All
serve the same changes, so the share of a process that hangs, starts or is gone has its answers LOOK_MS or a
little more later.

Never asyncio: it more than doubles the cost of a query (docs/explanation/dns.md).
"""

import random
import socket
import struct
import sys
import time
from collections.abc import Sequence
from contextlib import suppress
from functools import partial
from typing import Final, Protocol

from edgestead.dns import ring
from edgestead.dns.answer import ClientOf, Notified, Responder
from edgestead.dns.counters import Counters, Slot, Tally
from edgestead.dns.keyring import Keyring
from edgestead.dns.rates import Rates
from edgestead.dns.ring import BATCH, SLOT_OCTETS, Ring, plain_address
from edgestead.dns.settings import DEFAULTS, DnsSettings
from edgestead.dns.table import Table
from edgestead.dns.update import Forward, Updates
from edgestead.dns.watch import Watch

LOOK_MS: Final = 50
"""How long an idle loop may overlook that it shall stop; and between two looks at a sibling's socket: 20
system calls a second for each process, however many siblings there are."""
SWITCH_SECONDS: Final = 0.0005
"""How long the thread that applies changes may keep the interpreter from a waiting query; Python's 5 ms would
be the median answer's delay during an import (measured: 5.5 ms, and 0.7 ms with this)."""
DRAIN_BATCHES_MAX: Final = 64  # when it ends: queries received before are answered
TIMED_EVERY: Final = 16
"""One batch of so many is timed, from the system call that brought it to the one that sent the answers.
Two looks at the clock and two counts take 1 µs: 0.1 µs of each batch, which takes 16 and more."""
FLUSH_QUERIES: Final = 1024
"""Counts are handed over this often under load, and at once when there is little to do."""

_ID: Final = 2
_IP_MTU_DISCOVER: Final = 10  # linux/in.h
_IPV6_MTU_DISCOVER: Final = 23  # linux/in6.h
_PMTUDISC_OMIT: Final = 5
_NOERROR, _QUERIES, _HITS = int(Slot.NOERROR), int(Slot.QUERIES), int(Slot.CACHE_HITS)


class Stop(Protocol):
    """A `threading.Event`, or anything with the same method."""

    def is_set(self) -> bool: ...


def serve_udp(
    sock: socket.socket,
    table: Table,
    counters: Counters,
    stop: Stop,
    settings: DnsSettings = DEFAULTS,
    rates: Rates | None = None,
    watch: Watch | None = None,
    keyring: Keyring | None = None,
    forward: Forward | None = None,
    *,
    siblings: Sequence[socket.socket] = (),
    batched: bool = ring.AVAILABLE,
    notified: Notified | None = None,
) -> None:
    """Answer queries on a bound datagram socket until `stop`, then those already received, and return.

    `siblings` are sockets bound to the same address (SO_REUSEPORT) that other processes answer on.
    Blocks the calling thread; `table.apply` belongs on another one. Sets a receive time-out on the socket,
    and the interpreter's switch interval while it runs. Without `rates` nothing is limited. If not `batched`,
    each datagram takes a separate system call: not every system has recvmmsg.

    Raises OSError when the socket is unusable.
    """
    kind = _Batched if batched else _Portable
    loop = kind(sock, table, counters, settings, rates, watch or Watch(), keyring)
    if forward is not None:
        loop.take_updates(Updates(keyring or Keyring(), loop.tally, forward), sock)
    loop.replies.responder.notified = notified
    _run(loop, stop, _Siblings(loop, sock, siblings))


class _Loop(Protocol):
    tally: Tally
    replies: "_Replies"
    batch: int  # queries that one turn takes at most

    def use(self, sock: socket.socket) -> None:
        """Turn on this socket from now on."""
        ...

    def turn(self, *, wait: bool) -> int:
        """Answer received queries; returns their number, 0 after the timeout."""
        ...

    def take_updates(self, updates: Updates, sock: socket.socket) -> None:
        """Take dynamic updates, too; replies that come later are sent through this socket."""
        ...


class _Siblings:
    """Looking after those who are bound to the same address."""

    def __init__(self, loop: _Loop, own: socket.socket, siblings: Sequence[socket.socket]) -> None:
        self._loop, self._own, self._siblings = loop, own, siblings
        self._look_at = 0.0
        self._found: socket.socket | None = None  # where the last look found as much as one takes
        for sibling in siblings:
            ring.want_local_address(sibling)

    @property
    def wait(self) -> bool:
        """More is there for sure: the loop does not wait for its own queries."""
        return self._found is None

    def look(self) -> None:
        """Answer a batch of a sibling's queries, if it is time."""
        if not self._siblings:
            return
        now = time.monotonic()
        if self._found is None and now < self._look_at:
            return
        self._look_at = now + LOOK_MS / 1000
        sibling = self._found or random.choice(self._siblings)
        self._loop.use(sibling)
        self._found = sibling if self._loop.turn(wait=False) >= self._loop.batch else None
        self._loop.use(self._own)


def _run(loop: _Loop, stop: Stop, siblings: _Siblings) -> None:
    counts, flush = loop.tally.counts, loop.tally.flush
    switch_seconds = sys.getswitchinterval()
    sys.setswitchinterval(SWITCH_SECONDS)
    try:
        while not stop.is_set():
            turned = loop.turn(wait=siblings.wait)
            siblings.look()
            if turned <= 1 or counts[_QUERIES] >= FLUSH_QUERIES:
                flush()
        for _ in range(DRAIN_BATCHES_MAX):
            if not loop.turn(wait=False):
                break
    finally:
        flush()
        sys.setswitchinterval(switch_seconds)


def _prepare(sock: socket.socket) -> None:
    """Wake an idle loop periodically: a stop just before the system call would otherwise wait for a query.

    Also prevents forged ICMP messages from making the kernel fragment replies, since fragments can be
    replaced by an attacker (RFC 9715 §3.1).
    """
    if sys.platform == "linux":
        if sock.family == socket.AF_INET:
            sock.setsockopt(socket.IPPROTO_IP, _IP_MTU_DISCOVER, _PMTUDISC_OMIT)
        else:
            sock.setsockopt(socket.IPPROTO_IPV6, _IPV6_MTU_DISCOVER, _PMTUDISC_OMIT)
    sock.setblocking(True)
    time = struct.pack("@ll", 0, LOOK_MS * 1000)
    sock.setsockopt(socket.SOL_SOCKET, socket.SO_RCVTIMEO, time)


class _Replies:
    """Replies within the limits, for both loops."""

    def __init__(
        self,
        table: Table,
        tally: Tally,
        settings: DnsSettings,
        rates: Rates | None,
        client_of: ClientOf,
        keyring: Keyring | None,
    ) -> None:
        self.responder = Responder(table, tally, settings, client_of, udp=True, keyring=keyring)
        self._counts = tally.counts
        self._client_of = client_of
        self._rates = rates
        self.watching = rates.watching if rates is not None else _nobody_watches

    def live(self, query: bytes, source: int) -> bytes | None:
        """The reply that has to be computed."""
        try:
            return self.responder.reply(query, source)
        except Exception:
            return self.responder.failed(query)

    def within_limits(self, query: bytes, source: int, reply: bytes | None) -> bytes | None:
        """What is sent: the reply, a short one, or nothing. A client with a valid cookie is not limited,
        because its address is proved (RFC 7873 §5.2.5).
        """
        proved, self.responder.proved = self.responder.proved, False
        rates = self._rates
        if reply is None or rates is None or proved or rates.admits(self._client_of(source), reply):
            return reply
        if not rates.slips():
            self._counts[Slot.LIMITED] += 1
            return None
        self._counts[Slot.SLIPPED] += 1
        try:
            return self.responder.short(query, reply, source)
        except Exception:
            return self.responder.failed(query)


def _send(sock: socket.socket, where: tuple[str, int], reply: bytes) -> None:
    with suppress(OSError):  # the client asks again
        sock.sendto(reply, where)


def _without_id(reply: bytes | None) -> bytes | None:
    return None if reply is None else reply[_ID:]


def _nobody_watches(answers: int) -> bool:
    return False


class _Batched:
    """recvmmsg, replies over the queries in place, sendmmsg."""

    batch = BATCH

    def __init__(
        self,
        sock: socket.socket,
        table: Table,
        counters: Counters,
        settings: DnsSettings,
        rates: Rates | None,
        watch: Watch,
        keyring: Keyring | None = None,
    ) -> None:
        _prepare(sock)
        self.tally = Tally(counters)
        self._lock = table.lock
        self._table = table
        self._watch = watch
        self._ring = Ring(sock)
        self.replies = _Replies(table, self.tally, settings, rates, self._ring.client, keyring)
        self._untimed = TIMED_EVERY
        slots = [(i, i * SLOT_OCTETS, i * SLOT_OCTETS + _ID) for i in range(BATCH)]
        self._slots = [slots[:n] for n in range(BATCH + 1)]
        self.use = self._ring.use

    def take_updates(self, updates: Updates, sock: socket.socket) -> None:
        def take(query: bytes, i: int) -> bytes | None:
            where = self._ring.sender(i)
            message = self._ring.buffer[i * SLOT_OCTETS : i * SLOT_OCTETS + _ID] + query
            return _without_id(updates.begin(message, where[0], partial(_send, sock, where)))

        self.replies.responder.update = take

    def turn(self, *, wait: bool) -> int:
        received = self._ring.receive(wait=wait)
        if not received:
            return 0
        self._untimed -= 1
        began_ns = 0 if self._untimed else time.perf_counter_ns()
        limited = self.replies.watching(received)
        left_out = self._answer_within_limits(received) if limited else self._answer(received)
        if not left_out:
            unsent = self._ring.send(0, received)
        else:
            unsent = self._send_around(left_out, received)
        if unsent:
            self.tally.counts[Slot.UNSENT] += unsent
        if began_ns:
            self._untimed = TIMED_EVERY
            self.tally.took((time.perf_counter_ns() - began_ns) // 1_000, received)
        shown = self._watch.due(received)
        if shown:
            self._show(shown, received, left_out)
        return received

    def _show(self, replies: int, received: int, left_out: list[int]) -> None:
        """Show one reply to the watch; it is still in its buffer."""
        i = self._watch.choose(received)
        if i in left_out:
            return
        _, start, at = self._slots[received][i]
        reply = self._ring.buffer[at : start + self._ring.sizes[i]]
        with self._lock:
            self._watch.see(reply, self._ring.client(i), replies, self._table.view.zones)

    def _answer(self, received: int) -> list[int]:
        """Write the replies over the queries; returns the slots that get none."""
        buffer, lengths, sizes = self._ring.buffer, self._ring.received, self._ring.sizes
        left_out, live = [], 0
        with self._lock:
            responder = self.replies.responder
            responder.look_at_the_clock()
            get, live_reply = responder.exact_of_now().get, responder.reply
            for i, start, at in self._slots[received]:
                query = buffer[at : start + lengths[i]]
                reply = get(query)
                if reply is None:
                    live += 1
                    try:
                        reply = live_reply(query, i)
                    except Exception:
                        reply = responder.failed(query)
                    if reply is None:
                        left_out.append(i)
                        continue
                size = len(reply)
                buffer[at : at + size] = reply
                sizes[i] = size + _ID
        self._count(received, received - live)
        return left_out

    def _answer_within_limits(self, received: int) -> list[int]:
        """The same with counting each reply; for seconds in which a network may be over the limit."""
        buffer, lengths, sizes = self._ring.buffer, self._ring.received, self._ring.sizes
        replies, left_out, hits = self.replies, [], 0
        replies.responder.proved = False
        with self._lock:
            replies.responder.look_at_the_clock()
            get = replies.responder.exact_of_now().get
            for i, start, at in self._slots[received]:
                query = buffer[at : start + lengths[i]]
                reply = get(query)
                if reply is None:
                    reply = replies.live(query, i)
                else:
                    hits += 1
                reply = replies.within_limits(query, i, reply)
                if reply is None:
                    left_out.append(i)
                    continue
                size = len(reply)
                buffer[at : at + size] = reply
                sizes[i] = size + _ID
        self._count(received, hits)
        return left_out

    def _count(self, queries: int, hits: int) -> None:
        counts = self.tally.counts
        counts[_QUERIES] += queries
        counts[_HITS] += hits
        counts[_NOERROR] += hits

    def _send_around(self, left_out: list[int], received: int) -> int:
        unsent = first = 0
        for gap in (*left_out, received):
            unsent += self._ring.send(first, gap)
            first = gap + 1
        return unsent


class _Portable:
    """recvfrom and sendto."""

    batch = 1

    def __init__(
        self,
        sock: socket.socket,
        table: Table,
        counters: Counters,
        settings: DnsSettings,
        rates: Rates | None,
        watch: Watch,
        keyring: Keyring | None = None,
    ) -> None:
        _prepare(sock)
        self.tally = Tally(counters)
        self._sock = sock
        self._table = table
        self._watch = watch
        self._lock = table.lock
        self.replies = _Replies(table, self.tally, settings, rates, self._client, keyring)
        self._host, self._from, self._id = "", ("", 0), b""

    def use(self, sock: socket.socket) -> None:
        self._sock = sock

    def take_updates(self, updates: Updates, sock: socket.socket) -> None:
        def take(query: bytes, _source: int) -> bytes | None:
            where = self._from
            return _without_id(updates.begin(self._id + query, where[0], partial(_send, sock, where)))

        self.replies.responder.update = take

    def _client(self, _source: int) -> bytes:
        return plain_address(socket.inet_pton(self._sock.family, self._host.partition("%")[0]))

    def turn(self, *, wait: bool) -> int:
        try:
            data, address = self._sock.recvfrom(SLOT_OCTETS, 0 if wait else socket.MSG_DONTWAIT)
        except BlockingIOError:
            return 0
        counts, query, replies = self.tally.counts, data[_ID:], self.replies
        self._host, self._from, self._id = address[0], address, data[:_ID]
        replies.responder.proved = False
        counts[_QUERIES] += 1
        with self._lock:
            replies.responder.look_at_the_clock()
            reply = replies.responder.exact_of_now().get(query)
            if reply is not None:
                counts[_HITS] += 1
                counts[_NOERROR] += 1
            else:
                reply = replies.live(query, 0)
            if replies.watching(1):
                reply = replies.within_limits(query, 0, reply)
            shown = self._watch.due(1)
            if shown and reply is not None:
                self._watch.see(reply, self._client(0), shown, self._table.view.zones)
        if reply is not None:
            try:
                self._sock.sendto(data[:_ID] + reply, address)
            except OSError:
                counts[Slot.UNSENT] += 1
        return 1
