"""One request at the edge, and what becomes of it on its way.

Owns  `Exchange`: the facts of a request, the choice of its origin, changes of its headers; `ResponseHead`.
Not   bytes on a wire, deciding anything.

What arrived is never changed: expressions of later phases still see it, except for a rewritten URI, which is
what they see from then on (`raw_target` is what was sent). Changes for the origin live in `outgoing`.
"""

from collections.abc import Iterable
from typing import Any

import msgspec

from edgestead.edge.exchanges.answer_watch import AnswerWatch
from edgestead.edge.exchanges.heads import passable
from edgestead.edge.exchanges.late_body import LateBody
from edgestead.http1.head import Headers
from edgestead.http1.messages import Response
from edgestead.language import View

__all__ = ["Exchange", "Headers", "OriginChoice", "Response", "ResponseHead", "TlsFacts", "ZoneFacts"]


class ZoneFacts(msgspec.Struct, frozen=True):
    """The zone whose name was asked for. `settings` holds the zone's settings by id, defaults included."""

    id: str
    name: bytes  # without the last dot, lower case: b"example.com"
    account_id: str
    plan: str
    settings: dict[str, Any]
    paused: bool = False  # served as it comes: no rules


class TlsFacts(msgspec.Struct, frozen=True):
    """What a client's TLS connection agreed on, `version` as in b"TLSv1.3"; `hello` is its first message."""

    version: bytes
    cipher: bytes
    server_name: bytes
    hello: bytes = b""


class OriginChoice(msgspec.Struct):
    """Where a request goes instead of where its records say; None leaves that as it is.

    `host` is a host name or address that is asked in the place of the records', `host_header` and `sni` are
    what it is told.
    """

    host_header: bytes | None = None
    sni: bytes | None = None
    host: bytes | None = None
    port: int | None = None


class ResponseHead(msgspec.Struct):
    """The head that a client gets, before it is sent. `headers` may be changed in place.

    `from_origin` is False for an answer of the edge's own: a block, a redirect, an error page.
    """

    status: int
    headers: Headers
    from_origin: bool = True


class Exchange(msgspec.Struct, eq=False):
    """One request. Bytes stay bytes; header names are in lower case, in the order of arrival.

    `client` is the address that counts (the peer's, or the one that a trusted proxy names), `peer` who is
    connected, `server` the edge's own address, "" where that is unknown. `host` is without port and in lower
    case. `path` and `query` are the target's, as sent; `query` is empty when there is none. `by_name` are the
    headers by name (`heads.by_name`). `body` is the inspected prefix of the request's body: `body_complete`
    says whether it is all of it, `body_length` what Content-Length says (None for chunked bodies). `late`
    looks at what of the body follows that prefix, `watch` at the origin's answer, where somebody does. `ray`
    is the request's id, `arrived_us` when its head was complete (Unix time).
    """

    client: str
    peer: str
    scheme: bytes  # b"http" or b"https"
    port: int  # the edge's own, where the client connected
    version: bytes  # b"HTTP/1.1"
    method: bytes
    target: bytes
    headers: Headers
    by_name: dict[bytes, bytes]
    host: bytes
    zone: ZoneFacts
    ray: bytes
    arrived_us: int
    server: str = ""
    tls: TlsFacts | None = None
    raw_target: bytes = b""
    path: bytes = b""
    query: bytes = b""
    body: bytes = b""
    body_length: int | None = 0
    body_complete: bool = True
    origin: OriginChoice | None = None
    response: ResponseHead | None = None
    view: View | None = None
    keep: dict[str, Any] | None = None  # what phases leave for one another, by their own names
    late: LateBody | None = None
    watch: AnswerWatch | None = None
    _outgoing: Headers | None = None

    def __post_init__(self) -> None:
        self.raw_target = target = self.target
        self.path, _, self.query = target.partition(b"?")

    def header(self, name: bytes) -> bytes | None:
        """What `by_name` has for that lower-case name."""
        return self.by_name.get(name)

    @property
    def outgoing(self) -> Headers:
        """The request's headers as the origin gets them, to be changed in place (`heads.passable`)."""
        if self._outgoing is None:
            self._outgoing = passable(self.headers, self.by_name)
        return self._outgoing

    @property
    def to_send(self) -> Headers:
        """`outgoing` for a reader, who copies nothing."""
        return self.headers if self._outgoing is None else self._outgoing

    def rewrite(
        self, *, path: bytes | None = None, query: bytes | None = None, to_origin: bool = True
    ) -> None:
        """Give the request another path, another query, or both; an empty query removes it.

        Without `to_origin` that is for expressions alone.
        """
        if path is not None:
            self.path = path
        if query is not None:
            self.query = query
        if to_origin:
            self.target = b"%b?%b" % (self.path, self.query) if self.query else self.path
        self.view = None  # what expressions see of the URI has changed

    def choose_origin(self) -> OriginChoice:
        """The origin's choice, to be changed in place."""
        if self.origin is None:
            self.origin = OriginChoice()
        return self.origin


def remove_header(headers: Headers, name: bytes) -> None:
    headers[:] = [header for header in headers if header[0] != name]


def set_header(headers: Headers, name: bytes, value: bytes) -> None:
    """One header of that lower-case name, at the end, in the place of all there were."""
    remove_header(headers, name)
    headers.append((name, value))


def values_of(headers: Iterable[tuple[bytes, bytes]], name: bytes) -> list[bytes]:
    return [value for found, value in headers if found == name]
