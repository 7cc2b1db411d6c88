"""One client's connection at the edge: what `http1.connection` does, driven for exchanges.

Owns  exchanges from heads, whose turn it is, the deadline while one is at work, clients that take nothing.
Not   the connection (`http1.connection`), what becomes of a request (`machine`), and the bytes of its answer
      (`client_stream`).
"""

import asyncio
from typing import TYPE_CHECKING, cast

from edgestead.edge import limits
from edgestead.edge.exchanges import answers, heads
from edgestead.edge.http.client_stream import ClientStream
from edgestead.edge.http.hello import Hello
from edgestead.edge.http.machine import ExchangeMachine
from edgestead.edge.http.requests import NOT_PASSED, Caller, begin, calling, refusal
from edgestead.edge.http.states import Body
from edgestead.http1.connection import Connection
from edgestead.http1.driver import Driver
from edgestead.http1.head import Head, Headers, Refused

if TYPE_CHECKING:
    from edgestead.edge.http.worker import Edge

_VERSIONS = {"1.1": b"HTTP/1.1", "1.0": b"HTTP/1.0"}
_COMING, _ENDED = Body.COMING, Body.ENDED  # a member of an enum is found slowly


class ClientConnection(Driver[ExchangeMachine]):
    """`peer` names the client where a PROXY header did; `port` is where it came in."""

    __slots__ = (
        "_caller",
        "_hello",
        "_is_stuffed",
        "_left_bytes",
        "_scheme",
        "edge",
    )

    def __init__(self, edge: "Edge", peer: str = "", *, port: int, hello: Hello | None = None) -> None:
        """`peer` "" is the one that is connected; `hello` is None without TLS."""
        super().__init__(edge)
        self.edge = edge
        self._connection = Connection(self._made, self._refused)
        self._caller = Caller(peer, port)
        self._hello = hello
        self._scheme = b"http"
        self._left_bytes = 0  # of answers that the client has not taken, when they were looked at last
        self._is_stuffed = False  # there are so many of them that it has to take some first

    # the transport

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = cast(asyncio.Transport, transport)
        self._transport.set_write_buffer_limits(limits.WRITE_BUFFER_BYTES)
        caller = self._caller = calling(self.edge, self._transport, self._caller, self._hello)
        self._scheme = caller.scheme
        self._take_turns("" if caller.is_trusted else caller.peer)
        self._note_state()
        self._connection.account = self.edge.admit(self, caller.peer, trusted=caller.is_trusted)
        if self._connection.account is None:
            self._transport.abort()

    def connection_lost(self, error: Exception | None) -> None:
        self._transport = None
        self.edge.dismiss(self)
        self._connection.lost()

    def pause_writing(self) -> None:
        self._is_stuffed = True
        self._expect_taking()
        self._connection.unsent(self._left_bytes)
        if self._connection.current is not None:
            self._connection.current.client_full(full=True)
        if self._connection.actions:
            self._act()

    def resume_writing(self) -> None:
        self._is_stuffed = False
        self._connection.unsent(0)
        current = self._connection.current
        if current is None:
            self._note_state()
            return
        current.client_full(full=False)
        self._serve(current)

    def data_received(self, data: bytes) -> None:
        if self._processor.must_wait(len(data)):
            self._put_off(data)
            return
        self._connection.receive(data)
        self._go_on()

    def _go_on(self) -> None:
        """All that was received is read: what follows from it."""
        connection = self._connection
        if connection.entered != self._entered:
            self._note_state()
        if connection.actions:
            self._act()
        current = connection.current
        if current is not None and not self._is_stuffed:
            current.proceed()

    def _read_on(self) -> None:
        self._connection.read_on()
        self._go_on()

    def _serve(self, request: ExchangeMachine) -> None:
        """As far as what is here of it goes. It waits for a client that does not take its answers."""
        if not self._is_stuffed and self._connection.current is request:
            request.proceed()

    def _resume(self, transport: asyncio.Transport) -> None:
        transport.resume_reading()
        if self._connection.current is not None:
            self._connection.current.grant_time()

    def _close(self, transport: asyncio.Transport) -> None:
        self._expect_taking()
        transport.close()  # when all is taken

    # a request

    def _made(
        self, version: str, method: bytes, target: bytes, headers: Headers, keep_alive: bool
    ) -> tuple[ExchangeMachine, int | None]:
        """Raises Refused."""
        edge = self.edge
        if method in NOT_PASSED:
            raise Refused(*NOT_PASSED[method])
        read = heads.read(version, method, target, headers)
        found, length = read.found, read.length
        exchange, route, added = begin(
            edge, self._caller, self._scheme, _VERSIONS[version], method, headers, read
        )
        stream = ClientStream(
            self,
            exchange.ray,
            keep_alive,
            version == "1.0",
            b"expect" in found and _expects_continue(read, version),
            method == b"HEAD",
        )
        machine = ExchangeMachine(
            exchange,
            stream,
            edge,
            route,
            read,
            added,
            route.takes_websockets and _wants_websocket(read, method, version),
            _ENDED if length == 0 else _COMING,
        )
        return machine, length

    def _refused(self, status: int, reason: str) -> bytes:
        """The page for what cannot be read."""
        head = self._connection.unread_head
        page, ray = refusal(self.edge, self._caller, status, reason, head)
        lines = self.edge.own_lines(ray)
        return answers.own_answer(page, lines, head_only=head[0] == b"HEAD", keep_alive=False, old=False)

    # what streams ask

    def write(self, data: bytes) -> None:
        if self._transport is not None:
            self._transport.write(data)

    def interim(self, data: bytes) -> None:
        self._connection.interim(data)
        self._act()

    def stream(self) -> None:
        self._connection.stream()
        self._entered = self._connection.entered  # whose deadline is the exchange's

    def through(self, *, keep_alive: bool) -> None:
        """A request is answered: the next one, or the end."""
        self._connection.answered(keeps_alive=keep_alive and not self.edge.is_ending)
        self._note_state()
        if self._connection.actions:
            self._act()

    def tunnel(self) -> None:
        self._connection.switch()
        self._entered = self._connection.entered
        self._act()

    def break_off(self) -> None:
        """An answer ends in its middle, and the client has to notice."""
        self._connection.break_off()
        self._act()

    def balance(self) -> None:
        self._connection.balance()
        if self._connection.actions:
            self._act()

    # time

    def wait(self, seconds: float) -> None:
        if not self._is_stuffed:  # then it is the client that is waited for
            self._deadline = self.edge.soon + seconds

    def _note_state(self) -> None:
        """A state in which an exchange is at work has the deadline that this sets."""
        connection = self._connection
        self._entered, seconds = connection.entered, connection.seconds
        if self._is_stuffed:
            self._expect_taking()
        elif seconds is not None:
            self._deadline = self.edge.soon + seconds

    def sweep(self, now: float) -> None:
        if now <= self._deadline or self._transport is None or self._is_taking(now):
            return
        connection = self._connection
        self._deadline = now + limits.STALL_SECONDS_MAX
        if self._left_bytes and connection.current is None:
            self._transport.abort()  # to close would wait until they are taken
        elif connection.current is not None and connection.seconds is None:
            connection.current.late()
        else:
            connection.late()
            self._act()

    def _expect_taking(self) -> None:
        """From now on it is the client that is waited for: until it takes what was said to it."""
        if self._transport is not None:
            self._left_bytes = self._transport.get_write_buffer_size()
            self._deadline = self.edge.soon + limits.STALL_SECONDS_MAX

    def _is_taking(self, now: float) -> bool:
        """Whether the client has taken some of its answer since the last look. Then it has time again."""
        assert self._transport is not None
        before, self._left_bytes = self._left_bytes, self._transport.get_write_buffer_size()
        if not self._left_bytes or 0 < before <= self._left_bytes:
            return False
        self._deadline = now + limits.STALL_SECONDS_MAX
        return True


def _expects_continue(read: Head, version: str) -> bool:
    return version == "1.1" and read.found[b"expect"].lower() == b"100-continue"


def _wants_websocket(read: Head, method: bytes, version: str) -> bool:
    return (
        b"upgrade" in read.connection
        and method == b"GET"
        and version == "1.1"
        and read.length == 0
        and read.found.get(b"upgrade", b"").lower() == b"websocket"
    )
