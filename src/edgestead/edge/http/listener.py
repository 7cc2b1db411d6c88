"""Accepting clients: plain connections, TLS, and those that a PROXY header announces.

Owns  the listening sockets while this worker serves; what is read before a connection is a client's.
Not   binding sockets (the supervisor hands them in); requests.

The first bytes are looked at without taking them (MSG_PEEK), so that what announces a connection decides how
it is served: a PROXY header whose it is, a ClientHello with which certificate and on which terms.
"""

import asyncio
import logging
import secrets
import socket
import ssl
from collections.abc import Callable
from contextlib import suppress

from edgestead.edge import limits
from edgestead.edge.exchanges import pages
from edgestead.edge.exchanges.answers import own_answer
from edgestead.edge.http import hello, proxy_header
from edgestead.edge.http.address import plain
from edgestead.edge.http.certificates import HTTP_1, HTTP_2, Certificates, Terms
from edgestead.edge.http.client import ClientConnection
from edgestead.edge.http.http2.connection import Http2Connection
from edgestead.edge.http.worker import Edge
from edgestead.model.budgets import table
from edgestead.model.budgets.ledger import UNLIMITED, Levels
from edgestead.model.budgets.networks import network_of

BACKLOG = 1_024
ACCEPTS_AT_ONCE = 16  # half a millisecond, before other things on the loop get their turn
PAUSE_SECONDS = 0.5  # when there are no descriptors left
LOOK_SECONDS = 2.0  # between two looks at the folder of certificates
AGAIN_SECONDS = 0.1  # before another look, where the last one was for nothing

_CLOSE_WAIT = 8  # the state of a connection whose other end has ended, the first octet of TCP_INFO
_ACME_ALONE = b"\x00\x0b\x0aacme-tls/1"  # RFC 8737 §3: the client offers nothing else
_NUMBERS = {"1.2": 0x0303, "1.3": 0x0304}  # of versions, in a hello
log = logging.getLogger(__name__)


class Listener:
    """`certificates` None: there is no TLS. `proxy_protocol`: trusted peers begin with a PROXY header."""

    def __init__(self, edge: Edge, *, proxy_protocol: bool, certificates: Certificates | None = None) -> None:
        self._edge = edge
        self._proxy_protocol = proxy_protocol
        self._certificates = certificates
        self._servers: list[asyncio.Server] = []
        self._sockets: list[socket.socket] = []
        self._arrivals: set[_Arrival] = set()
        self._arriving = Levels(edge.ledger, table.EDGE_ARRIVALS_ADDRESS, table.EDGE_ARRIVALS)
        self._looking: asyncio.TimerHandle | None = None

    async def open(self, http: socket.socket, https: socket.socket | None) -> None:
        edge = self._edge
        if self._proxy_protocol:
            self._accept_by_hand(http, tls=False)
        else:
            port = http.getsockname()[1]
            server = await edge.loop.create_server(
                lambda: ClientConnection(edge, port=port), sock=http, backlog=BACKLOG
            )
            self._servers.append(server)
        if https is not None:
            self._accept_by_hand(https, tls=True)
            self._look()

    def close(self) -> None:
        """Accept nothing more. What has arrived and is nobody's yet is dropped."""
        for server in self._servers:
            server.close()
        for listening in self._sockets:
            self._edge.loop.remove_reader(listening)
            listening.close()
        for arrival in tuple(self._arrivals):
            arrival.drop()
        if self._looking is not None:
            self._looking.cancel()

    def _accept_by_hand(self, listening: socket.socket, *, tls: bool) -> None:
        listening.setblocking(False)
        self._sockets.append(listening)
        self._edge.loop.add_reader(listening, self._accept, listening, tls)

    def _accept(self, listening: socket.socket, tls: bool) -> None:
        for _ in range(ACCEPTS_AT_ONCE):
            try:
                accepted, peer = listening.accept()
            except (BlockingIOError, InterruptedError, ConnectionAbortedError):
                return
            except OSError as error:  # no descriptors left: nobody is served better by trying at once
                log.error("no connection can be accepted: %s", error)
                self._edge.loop.remove_reader(listening)
                self._edge.loop.call_later(PAUSE_SECONDS, self._accept_by_hand_again, listening, tls)
                return
            accepted.setblocking(False)
            client = plain(peer[0])
            network = network_of(client)
            trusted = self._edge.trust.trusts(client)
            if self._arriving.draw(network, 1, UNLIMITED if trusted else 0) is not None:
                accepted.close()
                self._edge.turned_away()
                continue
            arrival = _Arrival(self, accepted, client, network, listening.getsockname()[1], tls)
            self._arrivals.add(arrival)
            arrival.start(announced=self._proxy_protocol and trusted)

    def _accept_by_hand_again(self, listening: socket.socket, tls: bool) -> None:
        if not self._edge.is_ending and listening.fileno() >= 0:
            self._edge.loop.add_reader(listening, self._accept, listening, tls)

    def _look(self) -> None:
        assert self._certificates is not None
        self._looking = self._edge.loop.call_later(LOOK_SECONDS, self._look)  # also after one that fails
        self._certificates.look()

    # for arrivals

    @property
    def loop(self) -> asyncio.AbstractEventLoop:
        return self._edge.loop

    def context(self, begun: hello.Hello) -> ssl.SSLContext:
        """Raises NotServed: what OpenSSL would refuse as well, but without a word that gets through."""
        assert self._certificates is not None
        facts = self._edge.routes.zone_of(begun.server_name)
        terms = Terms()
        if facts is not None:
            settings = facts.settings
            minimum = "1.3" if settings["min_tls_version"] == "1.3" else "1.2"
            protocols = HTTP_2 if settings["http2"] == "on" else HTTP_1
            terms = Terms(minimum, tuple(settings["ciphers"]), protocols)
        if begun.newest_version < _NUMBERS[terms.minimum]:
            raise hello.NotServed(hello.PROTOCOL_VERSION)
        name = begun.server_name.decode("ascii", "replace")
        if begun.protocols == _ACME_ALONE:
            context = self._certificates.proof(name)
        else:
            # Every cipher of TLS 1.3 is strong, and the client knows which its processor is fast at: browsers
            # put AES-128 first, where OpenSSL's own order would have AES-256 with SHA-384.
            if begun.newest_version >= _NUMBERS["1.3"]:
                terms = terms._replace(client_chooses=True)
            context = self._certificates.context(name, terms)
        if context is None:
            log.info("a client asked for a name without a certificate")
            raise hello.NotServed(hello.UNRECOGNIZED_NAME if begun.server_name else hello.MISSING_EXTENSION)
        return context

    def no_tls(self) -> bytes:
        """The answer to who speaks HTTP where TLS is awaited."""
        ray = b"%016x" % secrets.randbits(64)
        self._edge.count(400)
        answer = pages.page(400, "This port is for https.", ray=ray)
        return own_answer(answer, self._edge.own_lines(ray), head_only=False, keep_alive=False, old=False)

    def forget(self, arrival: "_Arrival") -> None:
        self._arrivals.discard(arrival)
        self._arriving.release(arrival.network, 1)

    def connection(self, peer: str, port: int, begun: hello.Hello | None) -> asyncio.Protocol:
        if begun is None:
            return ClientConnection(self._edge, peer, port=port)
        return _Agreeing(self._edge, peer, port, begun)


class _Agreeing(asyncio.Protocol):
    """A connection until its handshake has ended, which says what is spoken on it (RFC 7301)."""

    def __init__(self, edge: Edge, peer: str, port: int, begun: hello.Hello) -> None:
        self._edge, self._peer, self._port, self._begun = edge, peer, port, begun

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        agreed = transport.get_extra_info("ssl_object")
        is_http2 = agreed is not None and agreed.selected_alpn_protocol() == HTTP_2[0]
        speaks = Http2Connection if is_http2 else ClientConnection
        protocol = speaks(self._edge, self._peer, port=self._port, hello=self._begun)
        transport.set_protocol(protocol)
        protocol.connection_made(transport)


class _Arrival:
    """A connection of which only the first bytes are of interest yet, or that agrees on TLS."""

    def __init__(
        self,
        listener: Listener,
        accepted: socket.socket,
        peer: str,
        network: object,
        port: int,
        tls: bool,
    ) -> None:
        self._listener = listener
        self._socket = accepted
        self._peer, self.network = peer, network
        self._port = port
        self._tls = tls
        self._handing: asyncio.Task[None] | None = None
        self._reads: Callable[[bytes], bool] = self._read_hello
        self._seen = 0  # bytes that were there at the last look
        self._late: asyncio.TimerHandle | None = None  # while it is waited for
        self._again: asyncio.TimerHandle | None = None  # while it is not even looked at

    def start(self, *, announced: bool) -> None:
        if announced:
            self._reads = self._read_announcement
        elif not self._tls:
            self._hand_over(None, None)
            return
        self._look()  # most clients have sent it by now: nothing needs to be waited for
        if self._handing is None and self._socket.fileno() >= 0:
            self._late = self._listener.loop.call_later(limits.HANDSHAKE_SECONDS_MAX, self.drop)
            self._listener.loop.add_reader(self._socket, self._look)

    def drop(self) -> None:
        """Close, unless the handshake has begun: that has a limit of its own."""
        if self._handing is None:
            self._leave()
            self._listener.forget(self)
            self._socket.close()

    def _leave(self) -> None:
        if self._late is not None:
            self._late.cancel()
            self._late = None
            self._listener.loop.remove_reader(self._socket)
        if self._again is not None:
            self._again.cancel()

    def _look(self) -> None:
        try:
            has_ended = self._socket.getsockopt(socket.IPPROTO_TCP, socket.TCP_INFO, 1)[0] == _CLOSE_WAIT
            data = self._socket.recv(hello.HELLO_BYTES_MAX + 1, socket.MSG_PEEK)
            more = bool(data) and self._reads(data)
        except (BlockingIOError, InterruptedError):
            return
        except hello.NotServed as refused:
            self._say(data, hello.alert(*refused.args))
            return
        except hello.NoHello:
            begins_http = data[:3].isalpha() and data[:3].isupper()
            self._say(data, self._listener.no_tls() if begins_http else b"")
            return
        except (OSError, proxy_header.BadHeader):
            self.drop()
            return
        if not data or (more and has_ended):
            self.drop()
        elif more and len(data) == self._seen:
            self._look_later()
        elif more:
            self._wait_for(len(data) + 1)

    def _wait_for(self, count: int) -> None:
        """Not look before so many bytes are there: what is only looked at stays readable."""
        self._seen = count - 1
        self._socket.setsockopt(socket.SOL_SOCKET, socket.SO_RCVLOWAT, count)

    def _look_later(self) -> None:
        """The kernel wakes who waits for more without any when it is short of memory for what comes."""
        loop = self._listener.loop
        loop.remove_reader(self._socket)
        self._again = loop.call_later(AGAIN_SECONDS, loop.add_reader, self._socket, self._look)

    def _say(self, taken: bytes, last: bytes) -> None:
        """The last word. What was only looked at is read first: else the kernel resets the connection."""
        with suppress(OSError):
            self._socket.recv(len(taken))
            self._socket.send(last)
        self.drop()

    def _read_announcement(self, data: bytes) -> bool:
        """True: more bytes are needed. Raises BadHeader."""
        found = proxy_header.read(data)
        if found is None:
            return True
        self._socket.recv(found.length)
        self._wait_for(1)
        self._peer = plain(found.source) or self._peer
        if not self._tls:
            self._hand_over(None, None)
        self._reads = self._read_hello
        return False

    def _read_hello(self, data: bytes) -> bool:
        """True: more bytes are needed. Raises NoHello, NotServed."""
        found = hello.read(data)
        if found is None:
            return True
        context = self._listener.context(found)
        self._wait_for(1)
        self._hand_over(context, found)
        return False

    def _hand_over(self, context: ssl.SSLContext | None, begun: hello.Hello | None) -> None:
        self._leave()
        self._handing = self._listener.loop.create_task(self._serve(context, begun))

    async def _serve(self, context: ssl.SSLContext | None, begun: hello.Hello | None) -> None:
        seconds = limits.HANDSHAKE_SECONDS_MAX if context else None
        try:
            await self._listener.loop.connect_accepted_socket(
                lambda: self._listener.connection(self._peer, self._port, begun),
                self._socket,
                ssl=context,
                ssl_handshake_timeout=seconds,
            )
        except (OSError, asyncio.CancelledError):
            self._socket.close()  # the handshake failed, or the client left: its own affair
        finally:
            self._listener.forget(self)
