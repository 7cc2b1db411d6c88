"""HTTP/1.1 framing at the REST face: what cannot be read in exactly one way is refused, and closed.

Owns  refusals of ambiguous length, of heads that are too large or too slow, and their bytes.
Asks  uvicorn's httptools protocol, which parses.
Tells the client with the envelope; the counters.
Not   what a request means.

llhttp refuses most of it by itself: both length headers, two lengths that differ, blanks before a colon, bare
line feeds. The checks below say the same about the headers that it reports, so that another build of the
parser cannot loosen the rule (RFC 9112 §6.3; spec "Deprecations", 2023-07-01).
"""

import asyncio
import secrets
from typing import Any

from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol

from edgestead.api.limits import HEAD_BYTES_MAX, HEAD_SECONDS_MAX
from edgestead.api.request_id import HEADER, request_ids
from edgestead.model import envelope
from edgestead.model.counters import slot
from edgestead.model.request_errors import Unreadable

_CONTENT_LENGTH = b"content-length"
_TRANSFER_ENCODING = b"transfer-encoding"
_DIGITS_MAX = 18  # of a Content-Length: more octets than that is no length that anybody sends

_FRAMING = slot("edge_api_unreadable_total", "framing")
_TOO_LARGE = slot("edge_api_unreadable_total", "head_too_large")
_TOO_SLOW = slot("edge_api_unreadable_total", "head_too_slow")

_next_request_id = request_ids(secrets.randbits(64))


def fault(headers: list[tuple[bytes, bytes]]) -> str | None:
    """Why the length of a request with these headers is not certain; None when it is."""
    lengths = [value for name, value in headers if name == _CONTENT_LENGTH]
    encodings = [value for name, value in headers if name == _TRANSFER_ENCODING]
    if lengths and encodings:
        return "it has both Content-Length and Transfer-Encoding"
    if len(lengths) > 1:
        return "it has more than one Content-Length"
    if lengths and not (lengths[0].isdigit() and len(lengths[0]) <= _DIGITS_MAX):
        return "its Content-Length is not a number"
    if encodings and (len(encodings) > 1 or encodings[0].strip().lower() != b"chunked"):
        return "its Transfer-Encoding is not chunked alone"
    return None


class StrictProtocol(HttpToolsProtocol):
    """uvicorn's protocol with limits on heads, refusals in the envelope, over an api.app.Application."""

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self._in_head = False
        self._head_bytes = 0
        self._head_timer: asyncio.TimerHandle | None = None
        self._reason = "its bytes are malformed"
        self._slot = _FRAMING

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        super().connection_made(transport)
        self._expect_head()

    def connection_lost(self, exc: Exception | None) -> None:
        self._cancel_timer()
        super().connection_lost(exc)

    def data_received(self, data: bytes) -> None:
        if self.parser is None or self.transport.is_closing():
            return
        if self._head_timer is None and not self._is_busy():
            self._expect_head()
        self._head_bytes += len(data)
        super().data_received(data)
        if self._in_head and self._head_bytes > HEAD_BYTES_MAX and not self.transport.is_closing():
            self._refuse(f"its head is larger than {HEAD_BYTES_MAX} bytes", _TOO_LARGE)

    def on_message_begin(self) -> None:
        super().on_message_begin()
        self._in_head = True

    def on_headers_complete(self) -> None:
        reason = fault(self.headers)
        if reason is not None:
            self._reason = reason
            raise Unreadable(reason=reason)
        self._in_head = False
        self._head_bytes = 0
        self._cancel_timer()
        super().on_headers_complete()

    def send_400_response(self, msg: str) -> None:
        self._refuse(self._reason, self._slot)

    def _refuse(self, reason: str, counter: int) -> None:
        """Answer 400 and close. While an earlier request is being answered, only close behind its answer."""
        self.app.context.counters.add(counter)
        if self._in_head and self._is_busy():
            self.cycle.keep_alive = False
            self.flow.pause_reading()
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
        if not self.transport.is_closing() and not self._is_busy():
            self._refuse(f"its head did not arrive within {HEAD_SECONDS_MAX:g} seconds", _TOO_SLOW)

    def _cancel_timer(self) -> None:
        if self._head_timer is not None:
            self._head_timer.cancel()
            self._head_timer = None
