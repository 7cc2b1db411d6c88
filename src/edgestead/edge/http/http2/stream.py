"""One stream: the client's side of one exchange, as frames.

Owns  what is still to be sent of an answer, when its machine has to wait, WebSocket within a stream.
Not   windows and order (`connection`, `priority`); what is said, and when (`machine`).
"""

from base64 import b64encode
from collections import deque
from hashlib import sha1
from secrets import token_bytes
from typing import TYPE_CHECKING

import msgspec

from edgestead.edge import limits
from edgestead.edge.exchanges import answers
from edgestead.edge.exchanges.exchange import Response
from edgestead.edge.http.http2.priority import USUAL, Priority
from edgestead.http1.head import Headers

if TYPE_CHECKING:
    from edgestead.edge.http.http2.connection import Http2Connection
    from edgestead.edge.http.machine import ExchangeMachine

_GUID = b"258EAFA5-E914-47DA-95CA-C5AB0DC85B11"  # RFC 6455 §1.3
_OF_HANDSHAKE = answers.KEPT_FROM_CLIENTS | {b"sec-websocket-accept", b"content-length"}
# Of answers: secrets, which a guess must not find in the table of the compression (RFC 7541 §7.1.3), and what
# is another value in each of them, which would drop the others. So is the ray.
KEPT_OUT = frozenset({b"set-cookie", b"content-length", b"etag", b"location"})
CONTINUE: Headers = [(b":status", b"100")]


def _plain(headers: Headers) -> Headers:
    """Values without blanks around them, which HTTP/1 drops and HTTP/2 forbids (RFC 9113 §8.2.1)."""
    return [(name, value.strip(b" \t")) for name, value in headers]


def new_key() -> bytes:
    """For the handshake with an origin, which HTTP/2 has none of (RFC 8441 §5)."""
    return b64encode(token_bytes(16))


class Stream(msgspec.Struct, eq=False):
    """`number` is its identifier. `expects`: the client sends the body behind a 100.

    `key` is of its WebSocket.

    `held` is said and not sent, `is_whole` that nothing follows it; `unread` are octets of its body for which
    the client has no window back.
    """

    connection: "Http2Connection"
    number: int
    head_only: bool = False
    expects: bool = False
    is_receiving: bool = False
    key: bytes = b""
    ray: bytes = b""
    priority: Priority = USUAL
    machine: "ExchangeMachine | None" = None
    head_said: Headers | None = None
    held: "deque[bytes | memoryview]" = msgspec.field(default_factory=deque)
    held_bytes: int = 0
    head_bytes: int = 0  # of the request, as it was unpacked
    ignored_bytes: int = 0  # of a body behind its answer
    early: list[bytes] = msgspec.field(default_factory=list)  # for a WebSocket that is not one yet
    unread: int = 0
    deadline: float = 0.0
    trailers_said: Headers = []
    has_answer: bool = False
    is_whole: bool = False
    is_full: bool = False
    is_tunnel: bool = False

    # what the machine asks

    def go_on(self) -> None:
        if self.expects:
            self.expects = False
            self.connection.say(self, CONTINUE)

    def interim(self, status: int, headers: Headers) -> None:
        said = [header for header in _plain(headers) if header[0] != b"content-length"]
        self.connection.say(self, [(b":status", b"%d" % status), *said])

    def head(
        self, status: int, headers: Headers, length: int | None, *, bodyless: bool, drained: bool
    ) -> None:
        if status == 101:
            if not self._is_accepted(headers):
                self.connection.reset(self)
                return
            status = 200
            headers = [header for header in headers if header[0] not in _OF_HANDSHAKE]
        elif status == 204:  # RFC 9110 §8.6
            headers = [header for header in headers if header[0] != b"content-length"]
        self._say_head(status, headers)

    def _say_head(self, status: int, headers: Headers, *added: tuple[bytes, bytes]) -> None:
        ray = (self.connection.edge.names.ray, self.ray)
        self.head_said = [(b":status", b"%d" % status), *_plain(headers), *added, ray]
        self.has_answer = True

    def _is_accepted(self, headers: Headers) -> bool:
        """Whether the origin has read the handshake (RFC 6455 §4.2.2): the client cannot see that."""
        accepted = b64encode(sha1(self.key + _GUID, usedforsecurity=False).digest())
        return (b"sec-websocket-accept", accepted) in headers

    def piece(self, piece: bytes) -> None:
        if piece:
            self.held.append(piece)
            self.held_bytes += len(piece)

    def trailers(self, headers: Headers) -> None:
        self.trailers_said = headers

    def flush(self) -> bool:
        if self.head_said is None and not self.held:
            return False
        self.connection.send(self)
        return True

    def end(self, *, drained: bool) -> None:
        self.close()

    def answer(self, response: Response, *, drained: bool) -> None:
        edge, body = self.connection.edge, response.body
        assert isinstance(body, bytes)
        added = [(b"date", edge.date)]
        if response.status not in answers.NO_BODY:
            added.append((b"content-length", b"%d" % len(body)))
            if not self.head_only:
                self.piece(body)
        self._say_head(response.status, response.headers, *added)
        self.close()

    def switch(self) -> None:
        self.is_tunnel = True
        early, self.early = self.early, []
        assert self.machine is not None
        for piece in early:
            self.machine.body_piece(piece)
        if not self.is_receiving:
            self.end_tunnel()
        else:
            self.balance()

    def end_tunnel(self) -> None:
        """The client says nothing more, and so hears nothing more: no WebSocket is half open."""
        assert self.machine is not None
        self.machine.client_gone()
        self.close()

    def close(self) -> None:
        self.is_whole = True
        self.taken()
        self.connection.send(self)

    def abort(self) -> None:
        self.connection.reset(self)

    def wait(self, seconds: float) -> None:
        if not self.is_full:  # then it is the client that is waited for
            self.deadline = self.connection.edge.soon + seconds

    def balance(self) -> None:
        self.connection.give_window(self)

    # what the connection tells

    def fill(self) -> None:
        """More was said than the client takes: the origin has to wait."""
        if not self.is_full:
            self.is_full = True
            self.taken()
            if self.machine is not None:
                self.machine.client_full(full=True)

    def taken(self) -> None:
        """The client took some of it, and has time again for the rest."""
        self.deadline = self.connection.edge.soon + limits.STALL_SECONDS_MAX

    def drain(self) -> None:
        if self.is_full:
            self.is_full = False
            if self.machine is not None:
                self.machine.client_full(full=False)
                self.machine.proceed()
