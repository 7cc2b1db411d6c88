"""One connection to an origin: a request at a time, its answer as it comes.

Owns  parsing of answers, back-pressure from the client, whether the connection may be used again.
Asks  llhttp to parse.
Tells its passage: head, body, end, loss; the pool when it is free or gone.
Not   what a request or an answer means.

Nothing that comes behind the end of an answer belongs to anybody: such a connection is never used again, so
that no origin can answer a question which was not asked yet.
"""

import asyncio
from typing import TYPE_CHECKING, cast

import httptools

from edgestead.http1.messages import Headers
from edgestead.proxy import faults, limits
from edgestead.proxy.answers import FRAMING
from edgestead.proxy.faults import Fault, OriginFault
from edgestead.proxy.heads import LENGTH_DIGITS_MAX
from edgestead.proxy.origins import Target

if TYPE_CHECKING:
    from edgestead.proxy.passage import Passage
    from edgestead.proxy.pool import Pool

_NO_BODY = frozenset({204, 304})


class OriginConnection(asyncio.Protocol):
    __slots__ = (
        "_done",
        "_head_bytes",
        "_head_only",
        "_headers",
        "_interims",
        "_parser",
        "_pool",
        "_status",
        "_surplus",
        "_tunnels",
        "_until_end",
        "idle_since",
        "keep_alive",
        "passage",
        "reused",
        "target",
        "transport",
        "writing_paused",
    )

    def __init__(self, pool: "Pool", target: Target) -> None:
        self._pool = pool
        self.target = target
        self.transport: asyncio.Transport | None = None
        self.passage: Passage | None = None
        self.reused = False
        self.idle_since = 0.0
        self.keep_alive = False
        self.writing_paused = False
        self._parser = httptools.HttpResponseParser(self)
        self._headers: Headers = []
        self._status = 0
        self._head_bytes = 0
        self._interims = 0
        self._done = self._surplus = self._until_end = self._head_only = self._tunnels = False

    # the transport

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self.transport = cast(asyncio.Transport, transport)
        self.transport.set_write_buffer_limits(limits.WRITE_BUFFER_BYTES)

    def connection_lost(self, error: Exception | None) -> None:
        self.transport = None
        passage, self.passage = self.passage, None
        if passage is None:
            self._pool.gone(self)
        elif self._tunnels:
            passage.tunnel_lost()
        elif self._until_end and error is None and self._status:
            passage.ended()
        else:
            passage.lost(faults.BROKE_OFF)

    def pause_writing(self) -> None:
        self.writing_paused = True
        if self.passage is not None:
            self.passage.hold_client()

    def resume_writing(self) -> None:
        self.writing_paused = False
        if self.passage is not None:
            self.passage.release_client()

    # a request

    def begin(self, passage: "Passage", first: bytes, head_only: bool) -> None:
        """Send a request's head and what there is of its body."""
        assert self.transport is not None
        self.passage = passage
        self._done = self._surplus = self._until_end = False
        self._status = self._head_bytes = self._interims = 0
        self._head_only = head_only
        self.transport.write(first)

    def write(self, data: bytes) -> None:
        if self.transport is not None:
            self.transport.write(data)

    def release(self, passage: "Passage", *, usable: bool) -> None:
        """The passage is through with this connection."""
        if self.passage is not passage:
            return
        self.passage = None
        if self.transport is None:
            return
        usable = usable and self.keep_alive and self._done and not self.writing_paused
        if not usable or self._surplus or self.transport.is_closing():
            self.transport.abort()
            return
        if self._head_only:  # the parser still waits for the body that a HEAD's answer only speaks of
            self._parser = httptools.HttpResponseParser(self)
        self.reused = True
        self._pool.put(self)

    def abort(self) -> None:
        self.passage = None
        if self.transport is not None:
            self.transport.abort()

    # the answer

    def data_received(self, data: bytes) -> None:
        passage = self.passage
        if passage is None:  # it says something that nobody asked for
            self.abort()
            return
        if self._tunnels:
            passage.tunnel_in(data)
            return
        if not self._status:
            self._head_bytes += len(data)
        try:
            self._parser.feed_data(data)
        except httptools.HttpParserUpgrade as pause:
            if self._status == 101 and passage.switched():
                self._tunnels = True
                rest = data[pause.args[0] :]
                if rest:
                    passage.tunnel_in(rest)
                return
            self._fail(passage, faults.UNREADABLE)
            return
        except httptools.HttpParserError as error:
            cause = error.__context__
            self._fail(passage, cause.fault if isinstance(cause, OriginFault) else faults.UNREADABLE)
            return
        if not self._status and self._head_bytes > limits.HEAD_BYTES_MAX:
            self._fail(passage, faults.UNREADABLE)
        elif self._done:
            passage.ended()
        elif self.passage is passage:
            passage.flush()

    def _fail(self, passage: "Passage", fault: Fault) -> None:
        self.abort()
        passage.lost(fault)

    def on_message_begin(self) -> None:
        if self._done:
            self._surplus = True
        self._headers = []

    def on_header(self, name: bytes, value: bytes) -> None:
        if self._status:
            return  # a trailer
        self._headers.append((name.lower(), value))

    def on_headers_complete(self) -> None:
        passage = self.passage
        if self._done or passage is None:
            self._surplus = True
            return
        status = self._parser.get_status_code()
        if status < 200 and status != 101:
            self._interims += 1
            if self._interims > limits.INTERIM_MAX:
                raise OriginFault(faults.UNREADABLE)
            passage.interim(status, self._headers)
            return
        if status == 101 and not passage.upgrades:
            raise OriginFault(faults.UNREADABLE)
        if len(self._headers) > limits.HEADERS_MAX or (
            self._head_bytes > limits.HEAD_BYTES_MAX and is_too_large(self._headers)
        ):
            raise OriginFault(faults.UNREADABLE)
        self._status = status
        self.keep_alive = self._parser.should_keep_alive()
        found = dict(self._headers)
        length, framed = _framing(self._headers, found)
        bodyless = self._head_only or status in _NO_BODY or status == 101
        self._until_end = not framed and not bodyless
        self._done = self._head_only
        passage.head(status, self._headers, found, length, bodyless)

    def on_body(self, chunk: bytes) -> None:
        if self._done or self.passage is None:
            self._surplus = True
            return
        self.passage.body(chunk)

    def on_message_complete(self) -> None:
        if self._status:
            self._done = True


def is_too_large(headers: Headers) -> bool:
    """For a head that came in one piece with more behind it."""
    return sum(len(name) + len(value) + 4 for name, value in headers) > limits.HEAD_BYTES_MAX


def _framing(headers: Headers, found: dict[bytes, bytes]) -> tuple[int | None, bool]:
    """Content-Length, and whether the answer says how long it is at all."""
    stated, encoding = found.get(b"content-length"), found.get(b"transfer-encoding")
    if len(found) != len(headers) and sum(name in FRAMING for name, _ in headers) > 1:
        raise OriginFault(faults.UNREADABLE)
    if encoding is not None:
        if stated is not None or encoding.strip().lower() != b"chunked":
            raise OriginFault(faults.UNREADABLE)
        return None, True
    if stated is None:
        return None, False
    if not stated.isdigit() or len(stated) > LENGTH_DIGITS_MAX:
        raise OriginFault(faults.UNREADABLE)
    return int(stated), True
