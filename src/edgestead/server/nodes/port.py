"""The one port between nodes: mutual TLS 1.3, and ALPN chooses what a connection is.

Owns  accepting and opening connections, and who is at their other end.
Not   what is said on them: a protocol for each name of ALPN is handed in.

A node shows a certificate of the cluster's authority, and its key has to be listed (`registry`). Only on
connections that join nobody has to show one.
"""

import asyncio
import errno
import logging
import socket
import ssl
from collections import Counter
from collections.abc import Awaitable, Callable, Mapping
from contextlib import suppress
from typing import Any, Final, NamedTuple

from edgestead.model.seldom import Seldom
from edgestead.server.nodes.identity import Member, NotANode, Peer, peer_of

JOIN_ALPN: Final = "edgestead-join/1"
FEED_ALPN: Final = "edgestead-feed/1"
LINKS_MAX: Final = 1_024  # connections at a time for each purpose, so that none takes the places of another
SILENT_SECONDS: Final = 2  # without anything, until the other end's kernel is asked whether it is there
ASKS: Final = 3  # a second apart
HANDSHAKE_SECONDS: Final = 5.0
CONNECT_SECONDS: Final = 5.0
STREAM_BYTES: Final = 1 << 16  # that a reader of `streams` buffers before it makes the other end wait

Accept = Callable[[Peer], asyncio.Protocol]
"""Makes the protocol of a connection from a peer."""
Streams = Callable[[asyncio.StreamReader, asyncio.StreamWriter, Peer], Awaitable[None]]

_UNREACHED: Final = frozenset({errno.ETIMEDOUT, errno.EHOSTUNREACH, errno.ENETUNREACH})
NOBODY: Final = Peer("", "", frozenset(), "")  # who joins
_log = logging.getLogger("edgestead.server")


def server_context(member: Member) -> ssl.SSLContext:
    context = _context(ssl.PROTOCOL_TLS_SERVER, member)
    context.verify_mode = ssl.CERT_OPTIONAL  # who joins has none; `Port` asks for one everywhere else
    context.num_tickets = 0  # a resumed session would not ask whether the certificate is still good
    return context


def client_context(member: Member, alpn: str) -> ssl.SSLContext:
    context = _context(ssl.PROTOCOL_TLS_CLIENT, member)
    context.check_hostname = (
        False  # a certificate names a node, wherever it is reached: `_other_end` reads it
    )
    context.verify_mode = ssl.CERT_REQUIRED
    context.set_alpn_protocols([alpn])
    return context


def _context(kind: Any, member: Member) -> ssl.SSLContext:
    context = ssl.SSLContext(kind)
    context.minimum_version = ssl.TLSVersion.TLSv1_3
    context.load_verify_locations(member.authority_file)
    context.load_cert_chain(member.certificate_file, member.key_file)
    return context


def _other_end(transport: asyncio.BaseTransport) -> Peer | None:
    """Who the verified certificate names; None without one. Raises NotANode."""
    der = transport.get_extra_info("ssl_object").getpeercert(binary_form=True)
    return None if der is None else peer_of(der)


class NotSpoken(ConnectionError):
    """A node of another release does not know this protocol."""


def keep_alive(link: socket.socket) -> None:
    """Have the kernel end a connection whose other end's machine is not reached any more, while nothing is
    unacknowledged: kernels ask one another, so who reads slowly, or stands still, is left alone.
    """
    link.setsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)
    link.setsockopt(socket.IPPROTO_TCP, socket.TCP_KEEPIDLE, SILENT_SECONDS)
    link.setsockopt(socket.IPPROTO_TCP, socket.TCP_KEEPINTVL, 1)
    link.setsockopt(socket.IPPROTO_TCP, socket.TCP_KEEPCNT, ASKS)


class Port:
    """One node's listening end. Make, open and close it on its loop."""

    def __init__(
        self, member: Member, handlers: Mapping[str, Accept], *, is_member: Callable[[Peer], bool]
    ) -> None:
        """`is_member` is asked for each connection, and must not block."""
        self._member = member
        self._handlers = dict(handlers)
        self._is_member = is_member
        self._context = server_context(member)
        self._context.set_alpn_protocols(list(self._handlers))
        self._links: dict[asyncio.Transport, _Link] = {}
        self._counts: Counter[str] = Counter()  # of links, by purpose
        self._server: asyncio.Server | None = None
        self._refusals = Seldom()

    async def open(self, listener: socket.socket) -> None:
        keep_alive(listener)  # what it accepts has its options
        self._server = await asyncio.get_running_loop().create_server(
            lambda: _Door(self), sock=listener, ssl=self._context, ssl_handshake_timeout=HANDSHAKE_SECONDS
        )

    def renewed(self) -> None:
        """The certificate's file is a new one: later connections show it."""
        self._context.load_cert_chain(self._member.certificate_file, self._member.key_file)

    def drop_strangers(self) -> int:
        """End the connections of nodes that are no members any more; returns how many there were."""
        gone = [
            transport
            for transport, link in self._links.items()
            if link.peer is not NOBODY and not self._is_member(link.peer)
        ]
        for transport in gone:
            transport.abort()
        return len(gone)

    def close(self) -> None:
        if self._server is not None:
            self._server.close()
        for transport in list(self._links):
            transport.abort()

    def admit(self, transport: asyncio.Transport) -> asyncio.Protocol:
        """Raises NotANode, with words for the log."""
        alpn = transport.get_extra_info("ssl_object").selected_alpn_protocol() or ""
        accept = self._handlers.get(alpn)
        if accept is None:
            raise NotANode("it speaks none of our protocols")
        purpose = alpn.partition("/")[0]
        if self._counts[purpose] >= LINKS_MAX:
            raise NotANode(f"there are {LINKS_MAX} connections for {purpose} already")
        peer = _other_end(transport)
        if peer is None and alpn == JOIN_ALPN:
            peer = NOBODY
        elif peer is None:
            raise NotANode("it shows no certificate")
        elif peer.cluster != self._member.peer.cluster or not self._is_member(peer):
            raise NotANode(f"node {peer.name} is not a member of this cluster, or was removed from it")
        protocol = accept(peer)
        self._links[transport] = _Link(peer, purpose)
        self._counts[purpose] += 1
        return protocol

    def left(self, transport: asyncio.Transport, error: Exception | None) -> None:
        """A connection has ended. If its machine is not reached, others of it need not wait for TCP."""
        link = self._links.pop(transport, None)
        if link is None:
            return
        self._counts[link.purpose] -= 1
        if isinstance(error, OSError) and error.errno in _UNREACHED and link.peer is not NOBODY:
            for other, its in list(self._links.items()):
                if its.peer.name == link.peer.name:
                    other.abort()

    def refused(self, where: object, reason: Exception) -> None:
        if times := self._refusals.happened():
            _log.warning(
                "a connection to the nodes' port from %s was refused (%d so far): %s", where, times, reason
            )


class _Link(NamedTuple):
    peer: Peer
    purpose: str  # the name of its protocol


class _Door(asyncio.Protocol):
    """Stands before the protocol of a connection: it passes everything on."""

    def __init__(self, port: Port) -> None:
        self._port = port
        self._transport: asyncio.Transport | None = None
        self._inner: asyncio.Protocol | None = None

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = transport  # type: ignore[assignment]
        try:
            self._inner = self._port.admit(transport)  # type: ignore[arg-type]
        except NotANode as reason:
            self._port.refused(transport.get_extra_info("peername"), reason)
            transport.abort()  # type: ignore[attr-defined]
            return
        self._inner.connection_made(transport)

    def data_received(self, data: bytes) -> None:
        if self._inner is not None:
            self._inner.data_received(data)

    def eof_received(self) -> bool | None:
        return None if self._inner is None else self._inner.eof_received()

    def pause_writing(self) -> None:
        if self._inner is not None:
            self._inner.pause_writing()

    def resume_writing(self) -> None:
        if self._inner is not None:
            self._inner.resume_writing()

    def connection_lost(self, error: Exception | None) -> None:
        if self._transport is not None:
            self._port.left(self._transport, error)
        if self._inner is not None:
            self._inner.connection_lost(error)


def streams(handler: Streams) -> Accept:
    """An `Accept` for a coroutine that reads and writes; the connection ends when it returns."""
    running: set[asyncio.Task[None]] = set()

    def accept(peer: Peer) -> asyncio.Protocol:
        reader = asyncio.StreamReader(limit=STREAM_BYTES)

        async def run(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
            try:
                await handler(reader, writer, peer)
            except (OSError, EOFError) as error:
                _log.info("a connection with node %s ended: %s", peer.name or "that joins", error)
            finally:
                with suppress(OSError, RuntimeError):
                    writer.close()

        def begin(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
            task = asyncio.get_running_loop().create_task(run(reader, writer))
            running.add(task)
            task.add_done_callback(_finished)

        def _finished(task: asyncio.Task[None]) -> None:
            running.discard(task)
            if not task.cancelled() and (error := task.exception()) is not None:
                _log.error("a connection with node %s failed", peer.name, exc_info=error)

        return asyncio.StreamReaderProtocol(reader, begin)

    return accept


async def connect(
    member: Member,
    address: tuple[str, int],
    alpn: str,
    make: Callable[[], asyncio.Protocol],
    *,
    role: str = "control",
) -> Peer:
    """Open a connection to a node of the cluster that has a role. Raises NotSpoken, other OSErrors
    (ssl.SSLError is one).
    """
    caller = _Caller(member, alpn, make, role)
    try:
        async with asyncio.timeout(CONNECT_SECONDS):
            await asyncio.get_running_loop().create_connection(
                lambda: caller,
                *address,
                ssl=client_context(member, alpn),
                server_hostname="",
                ssl_handshake_timeout=HANDSHAKE_SECONDS,
            )
    except TimeoutError:
        raise ConnectionError(f"{address[0]}:{address[1]} does not answer") from None
    if isinstance(caller.other_end, NotANode):
        refused = ConnectionError if caller.is_spoken else NotSpoken
        raise refused(f"{address[0]}:{address[1]}: {caller.other_end}")
    return caller.other_end


class _Caller(asyncio.Protocol):
    """Stands before a connection's protocol until it is known who answers."""

    def __init__(self, member: Member, alpn: str, make: Callable[[], asyncio.Protocol], role: str) -> None:
        self._member, self._alpn, self._make, self._role = member, alpn, make, role
        self.other_end: Peer | NotANode = NotANode("it hung up")
        self.is_spoken = True

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        keep_alive(transport.get_extra_info("socket"))
        try:
            self.other_end = self._check(transport)
        except NotANode as reason:
            self.other_end = reason
            transport.abort()  # type: ignore[attr-defined]
            return
        inner = self._make()
        transport.set_protocol(inner)
        inner.connection_made(transport)

    def _check(self, transport: asyncio.BaseTransport) -> Peer:
        peer = _other_end(transport)
        if peer is None or peer.cluster != self._member.peer.cluster or not peer.has(self._role):
            raise NotANode(f"who answers is no {self._role} node of this cluster")
        if transport.get_extra_info("ssl_object").selected_alpn_protocol() != self._alpn:
            self.is_spoken = False
            raise NotANode(f"{peer.name} does not speak {self._alpn}")
        return peer


async def open_streams(
    member: Member, address: tuple[str, int], alpn: str, *, role: str = "control"
) -> tuple[asyncio.StreamReader, asyncio.StreamWriter, Peer]:
    """The same as a reader and a writer. Raises OSError."""
    reader = asyncio.StreamReader(limit=STREAM_BYTES)
    made: list[asyncio.StreamWriter] = []
    loop = asyncio.get_running_loop()

    def begun(_: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        made.append(writer)

    peer = await connect(
        member, address, alpn, lambda: asyncio.StreamReaderProtocol(reader, begun, loop=loop), role=role
    )
    return reader, made[0], peer
