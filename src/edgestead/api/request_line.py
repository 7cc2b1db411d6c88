"""What the log says of one request, or of a connection without one.

Owns  the members of a line, and its text.
Asks  nobody.
Tells `api.log` and `api.framing`, and whoever is given lines (`AppContext.log`).
Not   when and where a line is written.

Bodies, query strings and credentials never enter a line.
"""

import msgspec


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
encode = msgspec.json.Encoder().encode
