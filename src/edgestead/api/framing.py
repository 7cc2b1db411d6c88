"""HTTP/1.1 framing at the REST face: what cannot be read in exactly one way is refused, and closed.

Owns  refusals of ambiguous length, of heads that are too large or too slow, and their bytes.
Asks  uvicorn's httptools protocol, which parses.
Tells the client with the envelope; the counters.
Not   what a request means.

llhttp refuses most of it by itself: both length headers, two lengths, blanks before a colon, bare line feeds.
The check below says the same about the headers that it reports, so that another build of the parser cannot
loosen the rule (RFC 9112 §6.3; spec "Deprecations", 2023-07-01: in force at every as-of date).
"""

import asyncio
import secrets
from http import HTTPStatus
from typing import Any

from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol

from edgestead.api.connections import network_of
from edgestead.api.direct import EXTENSION
from edgestead.api.limits import (
    BODY_SECONDS_MAX,
    CONNECTIONS_REFUSED_MAX,
    HEAD_BYTES_MAX,
    HEAD_SECONDS_MAX,
    UNREAD_BYTES_MIN,
    UNREAD_SECONDS_MAX,
)
from edgestead.api.request_id import HEADER, request_ids
from edgestead.api.request_line import ConnectionLine
from edgestead.model import envelope
from edgestead.model.counters import slot
from edgestead.model.errors import EdgeError
from edgestead.model.request_errors import Unreadable

_VERSIONS = frozenset(("1.1", "1.0"))
Headers = list[tuple[bytes, bytes]]

_LENGTH = b"content-length"
_LENGTH_OR_ENCODING = frozenset((_LENGTH, b"transfer-encoding"))
_DIGITS_MAX = 18  # of a Content-Length: nobody sends more octets than that

_FRAMING = slot("edge_api_unreadable_total", "framing")
_TOO_LARGE = slot("edge_api_unreadable_total", "head_too_large")
_TOO_SLOW = slot("edge_api_unreadable_total", "head_too_slow")
_NO_PLACE = slot("edge_api_unreadable_total", "no_place")
_READER_TOO_SLOW = slot("edge_api_unreadable_total", "reader_too_slow")

_HEAD_TOO_LARGE = "its head is larger than {} bytes"
_REFUSAL_HEAD = (
    b"HTTP/1.1 %d %s\r\ncontent-type: application/json\r\ncontent-length: %d\r\n"
    b"%s: %s\r\n%sconnection: close\r\n\r\n"
)

_next_request_id = request_ids(secrets.randbits(64))


def fault(headers: Headers, version: str = "1.1") -> str | None:
    """Why a request with these headers could be read in two ways; None when it could not.

    Length and encoding: RFC 9112 §6.3, and §6.1 for HTTP/1.0. Host: §3.2.
    """
    hosts = sum(name == b"host" for name, _ in headers)
    if version not in _VERSIONS:
        return "its version is neither HTTP/1.1 nor HTTP/1.0"
    if hosts != 1 and (hosts or version == "1.1"):
        return "it needs exactly one Host header"
    return _length_fault([header for header in headers if header[0] in _LENGTH_OR_ENCODING], version)


def _length_fault(found: Headers, version: str) -> str | None:
    if not found:
        return None
    if len(found) > 1:
        return "it states its length more than once"
    name, value = found[0]
    if name == _LENGTH:
        return None if value.isdigit() and len(value) <= _DIGITS_MAX else "its Content-Length is not a number"
    if version == "1.0":
        return "HTTP/1.0 has no Transfer-Encoding"
    return None if value.strip().lower() == b"chunked" else "its Transfer-Encoding is not chunked alone"


class StrictProtocol(HttpToolsProtocol):
    """uvicorn's protocol, with limits on connections, heads and slowness, and refusals in the envelope.

    The application must be an `api.app.Application`, not wrapped in another one.
    """

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self._network: object = None
        self._turned_away: EdgeError | None = None
        self._in_head = self._in_body = False
        self._head_bytes = 0  # of the head under way, up to the piece that is read now
        self._heads_begun = 0
        self._head_timer: asyncio.TimerHandle | None = None
        self._rest_timer: asyncio.TimerHandle | None = None
        self._reader_timer: asyncio.TimerHandle | None = None
        self._reason = "its bytes are malformed"

    # Connections

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        super().connection_made(transport)
        connections = self.app.context.connections
        self._network = network_of(self._client_address())
        self._turned_away = connections.enter(self._network)
        if self._turned_away is not None:
            connections.refused += 1
            if connections.refused > CONNECTIONS_REFUSED_MAX:
                self._count_and_log(_NO_PLACE, self._turned_away.message)
                transport.abort()
                return
        self._expect_head()

    def connection_lost(self, exc: Exception | None) -> None:
        for timer in (self._head_timer, self._rest_timer, self._reader_timer):
            if timer is not None:
                timer.cancel()
        connections = self.app.context.connections
        if self._turned_away is None:
            connections.leave(self._network)
        else:
            connections.refused -= 1
        super().connection_lost(exc)

    def _client_address(self) -> str:
        return self.client[0] if self.client else ""

    # Reading

    def data_received(self, data: bytes) -> None:
        outbox = self.app.context.outbox
        if outbox.waiting:
            outbox.flush()  # so that an answer is out before what follows its request is read
        if len(data) <= HEAD_BYTES_MAX or self._in_body:
            self._read_piece(data)
            return
        for start in range(0, len(data), HEAD_BYTES_MAX):  # so that no head is larger in one piece
            self._read_piece(data[start : start + HEAD_BYTES_MAX])

    def _read_piece(self, data: bytes) -> None:
        if self.parser is None or self.transport.is_closing():
            return
        was_idle = not self._in_head and not self._in_body
        self._heads_begun = 0
        super().data_received(data)
        if not self._in_head or self.transport.is_closing():
            return
        if not self._heads_begun or (was_idle and self._heads_begun == 1):
            self._head_bytes += len(data)  # else part of the piece belongs to what was before
        if self._head_bytes >= HEAD_BYTES_MAX:
            self._refuse(Unreadable(reason=_HEAD_TOO_LARGE.format(HEAD_BYTES_MAX)), _TOO_LARGE)
        elif self._head_timer is None:  # most heads come in one piece and need no timer
            self._expect_head()

    def on_message_begin(self) -> None:
        super().on_message_begin()
        self._in_head = True
        self._head_bytes = 0
        self._heads_begun += 1

    def on_headers_complete(self) -> None:
        self._check_head()
        self._in_head, self._in_body = False, True
        self._cancel_head_timer()
        self.scope["extensions"] = extensions = {}
        super().on_headers_complete()
        extensions[EXTENSION] = self.cycle  # the task of the request runs after this returns

    def _check_head(self) -> None:
        """Raises Unreadable: the parser stops, and send_400_response is called."""
        reason = fault(self.headers, self.parser.get_http_version())
        if not self._heads_begun and self._size_of_head() > HEAD_BYTES_MAX:  # it came in several pieces
            reason = _HEAD_TOO_LARGE.format(HEAD_BYTES_MAX)
        if reason is not None:
            self._reason = reason
        if reason is not None or self._turned_away is not None:
            raise Unreadable(reason=self._reason)

    def _size_of_head(self) -> int:
        return len(self.url) + sum(len(name) + len(value) + 4 for name, value in self.headers)

    def on_message_complete(self) -> None:
        self._in_body = False
        if self._rest_timer is not None:
            self._rest_timer.cancel()
            self._rest_timer = None
        super().on_message_complete()

    def on_response_complete(self) -> None:
        """What is left of a body that is answered already may come for so long, and no longer."""
        super().on_response_complete()
        if self._in_body and self.cycle.response_complete and self._rest_timer is None:
            self._rest_timer = self.loop.call_later(BODY_SECONDS_MAX, self.transport.close)

    # Slow readers

    def pause_writing(self) -> None:
        super().pause_writing()
        self._watch_reader()

    def resume_writing(self) -> None:
        if self._reader_timer is not None:
            self._reader_timer.cancel()
            self._reader_timer = None
        super().resume_writing()

    def _watch_reader(self) -> None:
        waiting = self.transport.get_write_buffer_size()
        self._reader_timer = self.loop.call_later(UNREAD_SECONDS_MAX, self._reader_is_late, waiting)

    def _reader_is_late(self, waited: int) -> None:
        if self.transport.get_write_buffer_size() > waited - UNREAD_BYTES_MIN:
            self._count_and_log(_READER_TOO_SLOW, "its client does not read its answers")
            self.transport.abort()
        else:
            self._watch_reader()

    # Refusals

    def send_400_response(self, msg: str) -> None:
        if self._turned_away is not None:
            self._refuse(self._turned_away, _NO_PLACE)
        else:
            self._refuse(Unreadable(reason=self._reason), _FRAMING)

    def _refuse(self, error: EdgeError, counter: int) -> None:
        """Answer and close. While an answer is under way, only close: behind it, or within it."""
        request_id = self._count_and_log(counter, error.message, error.code)
        self.app.context.outbox.flush()
        if self._is_busy():
            if self._in_head:
                self.cycle.keep_alive = False
                self.flow.pause_reading()
                return
            if self.cycle.response_started:
                self.transport.close()
                return
        body = envelope.failure(error)
        self.transport.write(
            _REFUSAL_HEAD
            % (
                error.status,
                HTTPStatus(error.status).phrase.encode("ascii"),
                len(body),
                HEADER,
                request_id.encode("ascii"),
                b"" if error.status == 400 else b"retry-after: 1\r\n",
            )
            + body
        )
        self.transport.close()

    def _count_and_log(self, counter: int, reason: str, code: int = 0) -> str:
        """The id of a request that there was not quite."""
        context, request_id = self.app.context, _next_request_id()
        context.counters.add(counter)
        context.log(
            ConnectionLine("refused", context.now_us(), request_id, self._client_address(), reason, code)
        )
        return request_id

    def _is_busy(self) -> bool:
        return self.cycle is not None and not self.cycle.response_complete

    def _expect_head(self) -> None:
        self._head_timer = self.loop.call_later(HEAD_SECONDS_MAX, self._head_is_late)

    def _head_is_late(self) -> None:
        self._head_timer = None
        if self.transport.is_closing() or self._is_busy():
            return
        if not self._in_head:
            self.transport.close()  # connected, and never sent a byte
        else:
            reason = f"its head did not arrive within {HEAD_SECONDS_MAX:g} seconds"
            self._refuse(Unreadable(reason=reason), _TOO_SLOW)

    def _cancel_head_timer(self) -> None:
        if self._head_timer is not None:
            self._head_timer.cancel()
            self._head_timer = None
