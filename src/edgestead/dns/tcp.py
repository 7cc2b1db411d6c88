"""DNS over TCP and over TLS: frames in, all the replies of one read out in one write.

Owns  framing, pipelining, and the limits on connections, time and memory.
Not   binding sockets, processes, signals (`server`); TLS handshakes (`arrivals`), HTTP (`https`).

A connection reads only while its replies drain: at UNSENT_OCTETS of replies it stops reading, and received
queries stay in a buffer of one read. After TURN_OCTETS of work, and where the loop is late, it waits for the
turn of its address (`model.budgets.turns`). A connection that completes no query for `idle_seconds` is
closed, even if it sends single octets; when `connections_max` are open a new one replaces the one that has
been idle longest, and when one address has its `address_connections_max` open, the one of these idle longest
(RFC 7766 §6.2.3, RFC 9210 §4). A client that requests the idle timeout gets it (RFC 7828); it is 0 when
nearly all connections are in use. A transfer sends one message per turn; later queries of the client are
answered when it is complete.
"""

import asyncio
import contextlib
import logging
import socket
import ssl
from collections import Counter, OrderedDict
from collections.abc import Sequence
from typing import Final, NamedTuple, Self, cast

import msgspec

from edgestead.dns import update
from edgestead.dns.answer import Responder
from edgestead.dns.arrivals import DOT, HTTP, HTTP_2, Arrivals, Contexts
from edgestead.dns.counters import Counters, Slot, Tally
from edgestead.dns.edns import TCP_OCTETS
from edgestead.dns.https import Https, refuse
from edgestead.dns.journal import Journal
from edgestead.dns.keyring import Keyring
from edgestead.dns.ring import octets_of
from edgestead.dns.settings import DEFAULTS, DnsSettings
from edgestead.dns.table import Table
from edgestead.dns.transfer import NOT_YET, Network, Transfer, Transfers, may_be_transfer
from edgestead.dns.update import Forward, Updates
from edgestead.dns.watch import Watch
from edgestead.http1.connections import Connections
from edgestead.http1.server import Server
from edgestead.http2.answering import Answering
from edgestead.model.budgets import table
from edgestead.model.budgets.ledger import Holding, Ledger, Levels
from edgestead.model.budgets.networks import network_of
from edgestead.model.budgets.turns import Turns
from edgestead.model.seldom import Seldom

log = logging.getLogger(__name__)

QUERY_OCTETS_MIN: Final = 12  # a header, RFC 1035 §4.1.1
QUERY_OCTETS_MAX: Final = 4096  # a question with every known option has under 1,000
"""A query is a name and a few options; a longer frame ends the connection."""
LEAST_OCTETS: Final = 8 * 1024
"""Drawn for each connection at once: what it takes by itself, and some queries."""
LEAST_TLS_OCTETS: Final = 64 * 1024
"""The same with TLS: its state and its buffers."""
TURN_OCTETS: Final = 16 * 1024
"""Queries and replies of one turn, a fourth of a millisecond."""
UNSENT_OCTETS: Final = 64 * 1024
"""The most of unsent replies, give or take one turn."""
BACKLOG: Final = 511
SWEEP_SECONDS: Final = 1.0
DRAIN_SECONDS: Final = 2.0
SETTLE_SECONDS: Final = 0.01
"""Between two looks whether a zone that is being changed may be transferred."""

_FULL: Final = 0.9
_KEEPALIVE_UNITS_PER_SECOND: Final = 10  # RFC 7828 §3.1
_KEEPALIVE_UNITS_MAX: Final = 0xFFFF
_LENGTH: Final = 2
_ID: Final = 2
_QR: Final = 0x80
_SIZES: Final = tuple(octets.to_bytes(_LENGTH, "big") for octets in range(_ID, TCP_OCTETS + _ID))
"""The length in front of a reply, by its octets without ID: cheaper than to work it out."""
_PARTS: Final = 3  # of a framed reply: length, ID, reply
_NOERROR, _QUERIES, _HITS = int(Slot.NOERROR), int(Slot.QUERIES), int(Slot.CACHE_HITS)
_QUERIES_TLS: Final = int(Slot.QUERIES_TLS)
_TRANSFER_TLS: Final = "TLSv1.3"  # RFC 9103 §7.1, which also asks for the ALPN of DNS over TLS


class TcpLimits(msgspec.Struct, frozen=True, kw_only=True):
    """RFC 7766 §6.2.3 leaves the numbers to the server; RFC 9210 §4 wants them configurable."""

    connections_max: int = table.DNS_CONNECTIONS.limit
    address_connections_max: int = table.DNS_CONNECTIONS_ADDRESS.limit
    idle_seconds: float = 10.0


DEFAULT_LIMITS: Final = TcpLimits()


class TransferPolicy(msgspec.Struct, frozen=True, kw_only=True):
    """The policy for zone transfers, and the journal for incremental ones.

    `tls_only`: none over TCP alone, where anybody on the way can read the zone (RFC 9103).
    """

    journal: Journal
    networks: Sequence[Network] = ()
    tls_only: bool = False


class Private(NamedTuple):
    """The listening sockets of DNS over TLS and over HTTPS, None for what is off, and their certificates."""

    contexts: Contexts
    tls: socket.socket | None = None
    https: socket.socket | None = None


async def serve_tcp(
    sock: socket.socket,
    served: Table,
    counters: Counters,
    stop: asyncio.Event,
    limits: TcpLimits = DEFAULT_LIMITS,
    settings: DnsSettings = DEFAULTS,
    transfers: TransferPolicy | None = None,
    watch: Watch | None = None,
    ledger: Ledger | None = None,
    keyring: Keyring | None = None,
    forward: Forward | None = None,
    private: Private | None = None,
) -> None:
    """Answer queries on a listening socket until `stop`, then answer the received ones and return.

    Transfers are refused without a policy for them. With `private` also over TLS and HTTPS.
    Runs on the running loop (uvloop's is a third cheaper). After `stop` no connection is accepted; open ones
    get their pending replies for at most DRAIN_SECONDS.
    """
    loop = asyncio.get_running_loop()
    transfers = transfers or TransferPolicy(journal=Journal())
    keyring = keyring or Keyring()
    house = _House(
        served, counters, limits, settings, transfers, watch or Watch(), loop, ledger or Ledger(), keyring
    )
    if forward is not None:
        house.updates = Updates(keyring, house.tally, forward)
    server = await loop.create_server(lambda: _Connection(house), sock=sock, backlog=BACKLOG)
    sweeper = asyncio.create_task(house.sweep())
    doors = await _Doors.open(house, private) if private is not None else None
    try:
        await stop.wait()
    finally:
        sweeper.cancel()
        server.close()
        if doors is not None:
            doors.close()
        await house.drain()
        if doors is not None:
            await doors.drain()
        house.tally.flush()


class _Doors:
    """The encrypted transports of a house."""

    def __init__(self, house: "_House", private: Private) -> None:
        loop = asyncio.get_running_loop()
        self._arrivals = Arrivals(loop, house.ledger, house.tally, private.contexts)
        self._http = Server(
            house.https, refuse, connections=Connections(ledger=house.ledger), processor=house.processor
        )

    @classmethod
    async def open(cls, house: "_House", private: Private) -> Self:
        doors = cls(house, private)
        await doors._http.open(())
        if private.tls is not None:
            doors._arrivals.listen(private.tls, {DOT: lambda: _Connection(house, encrypted=True)})
        if private.https is not None:
            both = {HTTP_2: lambda: Answering(doors._http), HTTP: doors._http.connection}
            doors._arrivals.listen(private.https, both)
        return doors

    def close(self) -> None:
        self._arrivals.close()

    async def drain(self) -> None:
        await self._http.close(DRAIN_SECONDS)


class _House:
    """Shared by connections: the responder, the counts, and the list of connections, longest idle first."""

    def __init__(
        self,
        served: Table,
        counters: Counters,
        limits: TcpLimits,
        settings: DnsSettings,
        transfers: TransferPolicy,
        watch: Watch,
        loop: asyncio.AbstractEventLoop,
        ledger: Ledger,
        keyring: Keyring,
    ) -> None:
        self.tally = Tally(counters)
        self.updates: Updates | None = None
        self.transfers = Transfers(served, transfers.journal, self.tally, transfers.networks, ledger, keyring)
        self.memory = Levels(ledger, table.DNS_BYTES_ADDRESS, table.DNS_BYTES)
        self.lock = served.lock
        self.ledger, self._table = ledger, served
        self.transfers_tls_only = transfers.tls_only
        self._watch = watch
        self.answering = b""
        self.plain, self.encrypted = (
            Responder(
                served,
                self.tally,
                settings,
                lambda _: self.answering,
                udp=False,
                keyring=keyring,
                encrypted=encrypted,
            )
            for encrypted in (False, True)
        )
        self.https = Https(served, self.tally, settings, watch, keyring)
        self.call_soon = loop.call_soon
        self.processor = Turns(loop.call_soon, loop.time, follows_seconds=0.0)
        self.call_later = loop.call_later
        self._limits = limits
        self._time = loop.time
        self._present: OrderedDict[_Connection, float] = OrderedDict()
        self._by_network: Counter[str] = Counter()
        self._empty = asyncio.Event()
        self._tell_time()

    def enter(self, connection: "_Connection") -> None:
        network = connection.network
        if self._by_network[network] >= self._limits.address_connections_max:
            self.ledger.refuse(table.DNS_CONNECTIONS_ADDRESS, network, self._limits.address_connections_max)
            next(present for present in self._present if present.network == network).dismiss()
        elif len(self._present) >= self._limits.connections_max:
            self.ledger.refuse(table.DNS_CONNECTIONS, network, self._limits.connections_max)
            next(iter(self._present)).dismiss()
        self._by_network[network] += 1
        self.active(connection)
        self._tell_time()
        self._empty.clear()
        self.tally.counts[Slot.TCP_CONNECTIONS] += 1
        self.tally.counts[Slot.TCP_OPEN] += 1

    def active(self, connection: "_Connection") -> None:
        self._present[connection] = self._time()
        self._present.move_to_end(connection)

    def answered(
        self, connection: "_Connection", replies: int, worked_out: int, silent: int, parts: list[bytes]
    ) -> None:
        """Count a turn of a connection, and occasionally show its last reply to the watch.

        Of its queries `worked` were computed, and of these `silent` get no reply.
        """
        counts, hits = self.tally.counts, replies + silent - worked_out
        counts[_QUERIES] += replies + silent
        if connection.encrypted:
            counts[_QUERIES_TLS] += replies + silent
        counts[_HITS] += hits
        counts[_NOERROR] += hits
        if not replies:
            return
        self.active(connection)
        shown = self._watch.due(replies)
        if shown:
            with self.lock:
                self._watch.see(parts[-1], connection.client, shown, self._table.view.zones)

    def leave(self, connection: "_Connection") -> None:
        if self._present.pop(connection, None) is None:
            return
        self.tally.counts[Slot.TCP_OPEN] -= 1
        connection.holding.close()
        self._by_network[connection.network] -= 1
        if not self._by_network[connection.network]:
            del self._by_network[connection.network]
        self._tell_time()
        if not self._present:
            self._empty.set()

    def _tell_time(self) -> None:
        """Announce the idle timeout of connections; 0 when nearly all are in use."""
        full = len(self._present) >= self._limits.connections_max * _FULL
        units = 0 if full else int(self._limits.idle_seconds * _KEEPALIVE_UNITS_PER_SECOND)
        for responder in (self.plain, self.encrypted):
            responder.edns.keepalive_units = min(units, _KEEPALIVE_UNITS_MAX)

    async def sweep(self) -> None:
        """Again and again; one that fails is not the last."""
        failed = Seldom()
        while True:
            await asyncio.sleep(min(SWEEP_SECONDS, self._limits.idle_seconds / 2))
            try:
                self._sweep()
            except Exception:
                if times := failed.happened():
                    log.exception("%d looks for idle connections of DNS failed", times)

    def _sweep(self) -> None:
        """Pass on the counts, read the clock and close connections that are idle for too long."""
        self.tally.flush()
        for responder in (self.plain, self.encrypted, self.https.responder):
            responder.look_at_the_clock()
        too_old = self._time() - self._limits.idle_seconds
        while self._present and next(iter(self._present.values())) <= too_old:
            next(iter(self._present)).dismiss()

    async def drain(self) -> None:
        """Send all pending replies, within DRAIN_SECONDS; then close the connections.

        Closing a loop with open transports may block forever (seen with uvloop 0.23).
        """
        for connection in list(self._present):
            connection.finish()
        await self._until_empty()
        for connection in list(self._present):
            connection.abort()
        await self._until_empty()

    async def _until_empty(self) -> None:
        if self._present:
            with contextlib.suppress(TimeoutError):
                await asyncio.wait_for(self._empty.wait(), DRAIN_SECONDS)


class _Connection(asyncio.Protocol):
    """One client. `_waiting` is at most one read and a part of a frame, answered up to `_at`."""

    def __init__(self, house: _House, *, encrypted: bool = False) -> None:
        self._house, self.encrypted = house, encrypted
        self._responder = house.encrypted if encrypted else house.plain
        self._least_octets = LEAST_TLS_OCTETS if encrypted else LEAST_OCTETS
        self._waiting = b""
        self._at = 0
        self._full = False
        self._ended = False
        self._transfer: Transfer | None = None
        self._transfer_id = b""
        self._transport: asyncio.Transport
        self.client, self.network = b"", ""
        self.holding: Holding

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = cast(asyncio.Transport, transport)
        self._transport.set_write_buffer_limits(high=UNSENT_OCTETS)
        self.client, self.network = _address(self._transport)
        self.holding = Holding(self._house.memory, self.network, self._least_octets)
        self._house.enter(self)

    def connection_lost(self, exc: Exception | None) -> None:
        self._end_transfer()
        self._house.leave(self)

    def data_received(self, data: bytes) -> None:
        self._waiting = self._waiting + data if self._waiting else data
        if self._house.processor.must_wait(len(data)):
            self._transport.pause_reading()
            self._wait()
        else:
            self._work()
        if len(self._waiting) > LEAST_OCTETS or self.holding.drawn > self._least_octets:
            self._draw()

    def pause_writing(self) -> None:
        self._full = True
        self._transport.pause_reading()
        self._house.call_soon(self._draw)  # not during a write

    def resume_writing(self) -> None:
        self._full = False
        self._work()
        self._draw()

    def _draw(self) -> None:
        """Octets of waiting queries and of unsent replies. A connection with too many is closed."""
        if self.holding.least:
            unsent = self._transport.get_write_buffer_size() if self._full else 0
            if self.holding.hold(len(self._waiting) + unsent) is not None:
                self.dismiss()

    def eof_received(self) -> bool:
        """The client sends no more: answer waiting queries, then close (RFC 7766 §6.2.3)."""
        self.finish()
        return not self.encrypted  # within TLS there is no half of an end

    def finish(self) -> None:
        """Read no more; close when the last reply is written."""
        self._ended = True
        self._work()

    def dismiss(self) -> None:
        """Close now. Unsent replies are dropped."""
        self._house.leave(self)
        if self._transport.get_write_buffer_size():
            self._transport.abort()
        else:
            self._transport.close()

    def abort(self) -> None:
        """Close without a word, also within TLS."""
        self._transport.abort()

    def _wait(self) -> None:
        """For the turn of its address."""
        self._house.processor.wait(self.network, self._work)

    def _work(self) -> None:
        """Answer complete frames, up to TURN_OCTETS; then other connections are served."""
        if self._full or self._transport.is_closing():
            return
        if self._transfer is not None:
            self._send_message(self._transfer)
            return
        parts, more, broken = self._answer()
        if parts:
            self._transport.write(b"".join(parts))  # may call pause_writing
        if more:
            self._transport.pause_reading()
            if not self._full:
                self._wait()
        elif broken or self._ended:
            self._transport.close()
        elif not self._full:
            self._transport.resume_reading()

    def _send_message(self, transfer: Transfer) -> None:
        """The next message of a transfer; later queries wait, and nothing more is read."""
        try:
            message = next(transfer, None)
        except Exception:
            log.exception("a zone transfer failed")
            self._transport.abort()
            return
        self._transport.pause_reading()
        if message == NOT_YET:
            self._house.call_later(SETTLE_SECONDS, self._work)
            return
        if message is None:
            self._end_transfer()
        else:
            self._house.active(self)
            size = len(message) + _ID
            self._transport.write(b"".join((size.to_bytes(2, "big"), self._transfer_id, message)))
        if not self._full:
            self._wait()

    def _begin_transfer(self, id_: bytes, query: bytes) -> bool:
        """False when the query is for something else."""
        peer = self._transport.get_extra_info("peername")
        carried = self._carries_transfers()
        private = carried and self.encrypted
        begin = self._house.transfers.begin
        self._transfer = begin(query, peer[0], carried=carried, private=private) if peer else None
        self._transfer_id = id_
        return self._transfer is not None

    def _begin_update(self, message: bytes) -> bool:
        """Its reply is like a transfer of one message: later queries wait for it."""
        peer, updates = self._transport.get_extra_info("peername"), self._house.updates
        if not peer or updates is None or message[_ID] & _QR:
            return False
        self._transfer = updates.over_tcp(message, str(peer[0]).partition("%")[0], NOT_YET)
        self._transfer_id = message[:_ID]
        return True

    def _carries_transfers(self) -> bool:
        """Whether this way is open to transfers: over TLS on the terms of RFC 9103."""
        if not self.encrypted:
            return not self._house.transfers_tls_only
        session: ssl.SSLObject = self._transport.get_extra_info("ssl_object")
        return session.version() == _TRANSFER_TLS and session.selected_alpn_protocol() == DOT

    def _end_transfer(self) -> None:
        if self._transfer is not None:
            self._transfer.close()
        self._transfer = None

    def _answer(self) -> tuple[list[bytes], bool, bool]:
        """Framed replies, in parts, to the complete frames in front; whether there may be more of them; and
        whether the next frame is none."""
        house, data, at = self._house, self._waiting, self._at
        parts: list[bytes] = []
        end = len(data)
        last, room = end - _LENGTH, at + TURN_OCTETS
        octets = worked_out = silent = 0
        broken = False
        house.answering = self.client
        with house.lock:
            get = self._responder.exact_of_now().get
            while at <= last and at + octets < room:
                stop = at + _LENGTH + (data[at] << 8 | data[at + 1])
                if stop > end:
                    broken = stop - at > _LENGTH + _octets_max(data, at)
                    break
                reply = get(data[at + _LENGTH + _ID : stop])
                if reply is None:
                    if not QUERY_OCTETS_MIN <= stop - at - _LENGTH <= _octets_max(data, at):
                        broken = True
                        break
                    worked_out += 1
                    reply = self._work_out(data[at + _LENGTH : stop])
                    if reply is None:
                        silent += 1
                        at = stop
                        if self._transfer is not None:
                            break
                        continue
                octets += len(reply)
                parts += _SIZES[len(reply)], data[at + _LENGTH : at + _LENGTH + _ID], reply
                at = stop
        house.answered(self, len(parts) // _PARTS, worked_out, silent, parts)
        more = at + octets >= room or self._transfer is not None
        self._waiting, self._at = (data, at) if more else (data[at:], 0)
        return parts, more, broken

    def _work_out(self, message: bytes) -> bytes | None:
        """The reply, without ID, to a query that is not cached; None also when a transfer begins."""
        query, responder = message[_ID:], self._responder
        if may_be_transfer(query) and self._begin_transfer(message[:_ID], query):
            return None
        if query[0] & update.OPCODE_MASK == update.OPCODE and self._begin_update(message):
            return None
        try:
            return responder.reply(query, 0)
        except Exception:
            return responder.failed(query)


def _octets_max(data: bytes, at: int) -> int:
    """Of the frame at `at`, as far as its first octets say; until these are there, as of a query."""
    flags_at = at + _LENGTH + _ID
    is_update = len(data) > flags_at and data[flags_at] & update.OPCODE_MASK == update.OPCODE
    return update.MESSAGE_OCTETS_MAX if is_update else QUERY_OCTETS_MAX


def _address(transport: asyncio.Transport) -> tuple[bytes, str]:
    """The client's address, 4 or 16 octets, and its network; empty after a disconnect."""
    peer = transport.get_extra_info("peername")
    if not peer:
        return b"", ""
    host = str(peer[0]).partition("%")[0]
    return octets_of(host), network_of(host)
