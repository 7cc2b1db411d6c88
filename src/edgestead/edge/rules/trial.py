"""What rules would do with a request that nobody sends.

Owns  such a request, which rules match it and which of these are reached.
Not   where rules come from; skips, what rate limits count, the managed rules, answers of an origin.
"""

import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from ipaddress import ip_address
from typing import Any, Final, Literal, NamedTuple
from urllib.parse import urlsplit

from edgestead.edge.exchanges.exchange import Exchange, ZoneFacts
from edgestead.edge.rules.fields import view_of
from edgestead.http1.head import by_name
from edgestead.language import compile_filter

ENDS: Final = frozenset({"block", "challenge", "js_challenge", "managed_challenge", "redirect"})
_PORTS: Final = {"http": 80, "https": 443}

Line = tuple[bytes, bytes]


class Placed(NamedTuple):
    """A rule as the API shows it, and where it is."""

    phase: str
    place: int
    rule: Mapping[str, Any]


class Tried(NamedTuple):
    """`reached` is False behind a rule that ended the request."""

    placed: Placed
    matches: Literal["yes", "no", "off"]
    reached: bool


def request_of(
    url: str,
    *,
    method: str = "GET",
    headers: Sequence[Line] = (),
    client: str = "192.0.2.1",
    body: bytes = b"",
) -> Exchange:
    """Raises ValueError, for people."""
    try:
        parts = urlsplit(url if "://" in url else f"http://{url}")
        port, host = parts.port, (parts.hostname or "").encode("idna")
    except (ValueError, UnicodeError):
        parts, port, host = urlsplit(""), None, b""
    if parts.scheme not in _PORTS or not host or any(map(str.isspace, url)):
        raise ValueError(f"{url!r} is not like http://www.example.com/path")
    address = str(ip_address(client))
    lines = [(b"host", host), *headers]
    if body:
        lines.append((b"content-length", b"%d" % len(body)))
    target = (parts.path or "/") + (f"?{parts.query}" if parts.query else "")
    made = Exchange(
        client=address,
        peer=address,
        scheme=parts.scheme.encode(),
        port=port or _PORTS[parts.scheme],
        version=b"HTTP/1.1",
        method=method.encode(),
        target=target.encode(),
        headers=lines,
        by_name=by_name(lines),
        host=host,
        zone=ZoneFacts("", b"", "", "free", {}),
        ray=b"0" * 16,
        arrived_us=time.time_ns() // 1_000,
    )
    made.body, made.body_length = body, len(body)
    return made


def header_of(line: str) -> Line:
    """`Name: value`. Raises ValueError."""
    name, colon, value = line.partition(":")
    if not colon or not name.strip():
        raise ValueError(f"{line!r} is not like 'NAME: VALUE'")
    return name.strip().lower().encode(), value.strip().encode()


def matcher(expression: str, phase: str) -> Callable[[Exchange], bool]:
    """For many requests. Raises FilterError."""
    compiled = compile_filter(expression, phase)
    return lambda request: bool(compiled(view_of(request)))


def matches(expression: str, phase: str, request: Exchange) -> bool:
    """Raises FilterError."""
    return matcher(expression, phase)(request)


def tried(rules: Iterable[Placed], request: Exchange) -> Iterator[Tried]:
    """Each rule in its order. Raises FilterError: an expression that the language does not have."""
    ended = False
    for one in rules:
        is_on = one.rule.get("enabled", True)
        matched = is_on and matches(one.rule["expression"], one.phase, request)
        yield Tried(one, "off" if not is_on else "yes" if matched else "no", not ended)
        ended = ended or (matched and one.rule["action"] in ENDS)
