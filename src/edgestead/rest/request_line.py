"""What the log says of one request, or of a connection without one.

Owns  the members of a line, and the words of it that people read.
Not   when and where a line is written; what is escaped in it (`model.log_text`).

Bodies, query strings and credentials never enter a line.
"""

from collections.abc import Callable

import msgspec

from edgestead.model import log_text
from edgestead.model.log_text import LogForm


class RequestLine(msgspec.Struct, frozen=True, omit_defaults=True, gc=False):
    """`event` is `request`, or `disconnected` for a client that left before its answer: status 0.

    `route` is the path's pattern, so that lines can be grouped; `path` is what was sent, undecoded.
    """

    event: str
    time_us: int
    request_id: str
    method: str
    path: str
    status: int
    bytes: int
    duration_us: int
    route: str = ""
    client: str = ""
    actor: str = ""
    token: str | None = None
    errors: tuple[int, ...] = ()
    fault: str | None = None


class ConnectionLine(msgspec.Struct, frozen=True, omit_defaults=True, gc=False):
    """A connection that was ended before there was a request. `error` is the code that was answered."""

    event: str
    time_us: int
    request_id: str
    client: str
    reason: str
    error: int = 0


Line = RequestLine | ConnectionLine
_PROCESS = "api"


def _text(line: Line) -> bytes:
    """`POST /client/v4/zones 400 [1061] 3.1 ms`."""
    if isinstance(line, ConnectionLine):
        words = f"{line.client}: {line.reason}"
        return log_text.line(line.time_us, _PROCESS, "warning", words)
    codes = f" [{', '.join(map(str, line.errors))}]" if line.errors else ""
    status = line.status or "the client left"
    words = f"{line.method} {line.path} {status}{codes} {line.duration_us / 1_000:.1f} ms"
    return log_text.line(line.time_us, _PROCESS, "error" if line.fault else "info", words, line.fault or "")


FORMS: dict[LogForm, Callable[[Line], bytes]] = {"json": log_text.json_line, "text": _text}
