"""Answering with one write, past ASGI's two messages, where the server is `api.framing`'s.

Owns  the bytes of an answer's head.
Asks  uvicorn's cycle of one request for its connection, and tells it that it is complete.
Tells the client.
Not   what is answered. Under another ASGI server the pipeline sends ASGI messages.

uvicorn writes a head as soon as it has it. On a loopback connection the client then wakes up, finds half an
answer and sleeps again. With the checks of headers that only we make, that was 12 µs of a request's 60.
"""

from collections.abc import Iterable
from http import HTTPStatus
from typing import Any

EXTENSION = "edgestead.direct"  # of the ASGI scope; its value is uvicorn's cycle

_STATUS_LINES = {
    status.value: f"HTTP/1.1 {status.value} {status.phrase}\r\n".encode("ascii") for status in HTTPStatus
}
_defaults: tuple[object, bytes] = (None, b"")


def answer(cycle: Any, status: int, headers: Iterable[tuple[bytes, bytes]], body: bytes) -> bool:
    """Send the whole answer now. False when the client is slow to read: then the caller must wait for it.

    Names and values of headers go out as they are: none of them may come from outside.
    """
    if cycle.flow.write_paused:
        return False
    if cycle.disconnected:
        return True
    lines = [_STATUS_LINES[status], _default_lines(cycle.default_headers)]
    for name, value in headers:
        if name == b"connection":
            cycle.keep_alive = False
        else:
            lines.append(b"%s: %s\r\n" % (name, value))
    lines.append(b"\r\n" if cycle.keep_alive else b"connection: close\r\n\r\n")
    if cycle.scope["method"] != "HEAD":
        lines.append(body)
    cycle.response_started = cycle.response_complete = True
    cycle.waiting_for_100_continue = False
    cycle.transport.writelines(lines)
    cycle.message_event.set()
    if not cycle.keep_alive:
        cycle.transport.close()
    cycle.on_response()
    return True


def _default_lines(headers: list[tuple[bytes, bytes]]) -> bytes:
    """uvicorn's own headers, the date. It makes a new list every second."""
    global _defaults
    if _defaults[0] is not headers:
        _defaults = (headers, b"".join([b"%s: %s\r\n" % header for header in headers]))
    return _defaults[1]
