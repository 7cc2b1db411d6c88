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
from typing import Any

from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol

from edgestead.api.direct import EXTENSION
from edgestead.api.limits import HEAD_BYTES_MAX, HEAD_SECONDS_MAX
from edgestead.api.request_id import HEADER, request_ids
from edgestead.model import envelope
from edgestead.model.counters import slot
from edgestead.model.request_errors import Unreadable

_VERSIONS = frozenset(("1.1", "1.0"))
Headers = list[tuple[bytes, bytes]]

_LENGTH = b"content-length"
_LENGTH_OR_ENCODING = frozenset((_LENGTH, b"transfer-encoding"))
_DIGITS_MAX = 18  # of a Content-Length: nobody sends more octets than that

_FRAMING = slot("edge_api_unreadable_total", "framing")
_TOO_LARGE = slot("edge_api_unreadable_total", "head_too_large")
_TOO_SLOW = slot("edge_api_unreadable_total", "head_too_slow")

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
    """uvicorn's protocol, with limits on heads and refusals in the envelope.

    The application must be an `api.app.Application`, not wrapped in another one.
    """

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self._in_head = False
        self._head_bytes = 0
        self._head_timer: asyncio.TimerHandle | None = None
        self._reason = "its bytes are malformed"

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        super().connection_made(transport)
        self._expect_head()

    def connection_lost(self, exc: Exception | None) -> None:
        self._cancel_timer()
        super().connection_lost(exc)

    def data_received(self, data: bytes) -> None:
        outbox = self.app.context.outbox
        if outbox.waiting:
            outbox.flush()  # so that an answer is out before what follows its request is read
        if self.parser is None or self.transport.is_closing():
            return
        self._head_bytes += len(data)
        super().data_received(data)
        if not self._in_head or self.transport.is_closing():
            return
        if self._head_bytes > HEAD_BYTES_MAX:
            self._refuse(f"its head is larger than {HEAD_BYTES_MAX} bytes", _TOO_LARGE)
        elif self._head_timer is None:  # most heads come in one piece and need no timer
            self._expect_head()

    def on_message_begin(self) -> None:
        super().on_message_begin()
        self._in_head = True
        self._head_bytes = 0  # the limit holds from the next read on: this one may begin with another's body

    def on_headers_complete(self) -> None:
        reason = fault(self.headers, self.parser.get_http_version())
        if reason is not None:
            self._reason = reason
            raise Unreadable(reason=reason)  # the parser stops, and send_400_response is called
        self._in_head = False
        self._cancel_timer()
        self.scope["extensions"] = extensions = {}
        super().on_headers_complete()
        extensions[EXTENSION] = self.cycle  # the task of the request runs after this returns

    def send_400_response(self, msg: str) -> None:
        self._refuse(self._reason, _FRAMING)

    def _refuse(self, reason: str, counter: int) -> None:
        """Answer 400 and close. While an answer is under way, only close: behind it, or within it."""
        self.app.context.counters.add(counter)
        self.app.context.outbox.flush()
        if self._is_busy():
            if self._in_head:
                self.cycle.keep_alive = False
                self.flow.pause_reading()
                return
            if self.cycle.response_started:
                self.transport.close()
                return
        body = envelope.failure(Unreadable(reason=reason))
        head = (
            b"HTTP/1.1 400 Bad Request\r\ncontent-type: application/json\r\ncontent-length: %d\r\n"
            b"%s: %s\r\nconnection: close\r\n\r\n"
        )
        self.transport.write(head % (len(body), HEADER, _next_request_id().encode()) + body)
        self.transport.close()

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
            self._refuse(f"its head did not arrive within {HEAD_SECONDS_MAX:g} seconds", _TOO_SLOW)

    def _cancel_timer(self) -> None:
        if self._head_timer is not None:
            self._head_timer.cancel()
            self._head_timer = None
