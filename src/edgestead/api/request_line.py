"""What the log says of one request.

Owns  the members of a line, and its text.
Asks  nobody.
Tells `api.log`, and whoever is given lines (`AppContext.log`).
Not   when and where a line is written.

Bodies, query strings and credentials never enter a line.
"""

import msgspec


class RequestLine(msgspec.Struct, frozen=True, omit_defaults=True, gc=False):
    """`route` is the path's pattern, so that lines can be grouped; `path` is what was sent, undecoded."""

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


encode = msgspec.json.Encoder().encode
