"""Connections of the nodes' port that belong to another process of this machine.

Owns  passing octets on, both ways, with back-pressure, between a connection of the port and a Unix socket.
Not   what they mean; who may connect (`port`).

The port is one for everything between machines, and its process has the connections. A worker's calls and
requests go through it, as they are: what ALPN named is the socket.
"""

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from contextlib import suppress
from typing import Final, cast

from edgestead.server.nodes.identity import Member, NotANode, Peer
from edgestead.server.nodes.port import CONNECT_SECONDS, Accept, connect

CALLS: Final = "edgestead-calls/1"  # with the worker's place behind it
REQUESTS: Final = "edgestead-requests/1"
ALIVE: Final = "edgestead-alive/1"  # nothing is ever said on it (`alive`)
READY: Final = b"\n"  # said first by the end that has reached the worker
WAITING_BYTES_MAX: Final = 1 << 20  # of a peer that sends before the worker has accepted

Way = Callable[[Callable[[], asyncio.Protocol]], Awaitable[object]]
"""Connects the protocol that it is given."""


class _End(asyncio.Protocol):
    """One of two connected ends: what it hears the other one says."""

    def __init__(self) -> None:
        self.other: _End | None = None
        self.transport: asyncio.Transport | None = None

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self.transport = cast(asyncio.Transport, transport)

    def data_received(self, data: bytes) -> None:
        if self.other is not None and self.other.transport is not None:
            self.other.transport.write(data)

    def eof_received(self) -> bool:
        return False  # TLS has no half-closed connections

    def pause_writing(self) -> None:
        if self.other is not None and self.other.transport is not None:
            self.other.transport.pause_reading()

    def resume_writing(self) -> None:
        if self.other is not None and self.other.transport is not None:
            self.other.transport.resume_reading()

    def connection_lost(self, error: Exception | None) -> None:
        self.transport = None
        if self.other is not None and self.other.transport is not None:
            self.other.transport.close()


class _FromPeer(_End):
    """The port's end. It connects to the worker, and keeps until then what the peer says."""

    def __init__(self, path: str, connecting: "set[asyncio.Task[None]]") -> None:
        super().__init__()
        self._path, self._connecting = path, connecting
        self._waiting: list[bytes] = []
        self._waiting_bytes = 0

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        super().connection_made(transport)
        task = asyncio.get_running_loop().create_task(self._connect())
        self._connecting.add(task)
        task.add_done_callback(self._connecting.discard)

    async def _connect(self) -> None:
        worker = _End()
        worker.other = self
        try:
            await asyncio.get_running_loop().create_unix_connection(lambda: worker, self._path)
        except OSError:  # it is not there: who connects is not told that it is, and may try again
            if self.transport is not None:
                self.transport.abort()
            return
        if self.transport is None:
            if worker.transport is not None:
                worker.transport.close()
            return
        self.transport.write(READY)
        self.other, waiting = worker, self._waiting
        self._waiting, self._waiting_bytes = [], 0
        for data in waiting:
            super().data_received(data)
        with suppress(RuntimeError):
            self.transport.resume_reading()

    def data_received(self, data: bytes) -> None:
        if self.other is not None:
            super().data_received(data)
            return
        self._waiting.append(data)
        self._waiting_bytes += len(data)
        if self._waiting_bytes >= WAITING_BYTES_MAX and self.transport is not None:
            self.transport.pause_reading()


def to_workers(calls: Sequence[str], requests: Sequence[str]) -> dict[str, Accept]:
    """The port's handlers for the objects workers of this machine, by their Unix sockets."""
    named = [*((CALLS, place, path) for place, path in enumerate(calls))]
    named += [*((REQUESTS, place, path) for place, path in enumerate(requests))]
    return {ALIVE: _silent} | {f"{what}/{place}": _to_socket(path) for what, place, path in named}


def _silent(peer: Peer) -> asyncio.Protocol:
    _check_role(peer)
    return asyncio.Protocol()


def _to_socket(path: str) -> Accept:
    connecting: set[asyncio.Task[None]] = set()

    def accept(peer: Peer) -> asyncio.Protocol:
        _check_role(peer)
        return _FromPeer(path, connecting)

    return accept


def _check_role(peer: Peer) -> None:
    """Raises NotANode."""
    if not peer.has("objects"):
        raise NotANode(f"node {peer.name} runs no objects")


def place_of(address: str) -> tuple[str, int]:
    host, _, number = address.rpartition(":")
    return host.strip("[]"), int(number)


def way_to(member: Member, address: str, what: str, place: int) -> Way:
    """A way to connect to a worker of another machine, by its node's address. It raises OSError."""

    async def open_(make: Callable[[], asyncio.Protocol]) -> None:
        ready = _Ready(make)
        await connect(member, place_of(address), f"{what}/{place}", lambda: ready, role="objects")
        try:
            async with asyncio.timeout(CONNECT_SECONDS):
                await ready.reached
        except TimeoutError:
            ready.give_up()
            raise ConnectionError(f"the worker {place} at {address} does not answer") from None

    return open_


class _Ready(asyncio.Protocol):
    """Stands before the protocol of a connection to a worker until that is reached: nothing was asked yet."""

    def __init__(self, make: Callable[[], asyncio.Protocol]) -> None:
        self._make = make
        self._transport: asyncio.Transport | None = None
        self.reached: asyncio.Future[None] = asyncio.get_running_loop().create_future()

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = cast(asyncio.Transport, transport)

    def data_received(self, data: bytes) -> None:
        if self._transport is None or self.reached.done():
            return
        inner = self._make()
        self._transport.set_protocol(inner)
        inner.connection_made(self._transport)
        if rest := data[len(READY) :]:
            inner.data_received(rest)
        self.reached.set_result(None)

    def connection_lost(self, error: Exception | None) -> None:
        if not self.reached.done():
            self.reached.set_exception(ConnectionError("the worker is not there"))

    def give_up(self) -> None:
        if self._transport is not None:
            self._transport.abort()
