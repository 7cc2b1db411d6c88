"""Fields of HTTP/2 as the heads that exchanges know: a request's, an answer's; and a request's for an origin.

Owns  which fields can be read in one way only and can be said in HTTP/1.1 as they were meant.
Not   HPACK and frames (`field_blocks`, `wire`); what heads of all versions have in common (`http1.head`,
      `exchanges.heads`).

What HTTP/1.1 delimits by blanks, colons and line ends, HTTP/2 delimits by lengths: a field that has such an
octet within it would be two things at the origin. So each is looked at here.
"""

import re
from functools import lru_cache
from typing import NamedTuple

from edgestead.http1.head import ASTERISK, Headers, Refused, too_many_headers
from edgestead.http1.limits import HEADERS_MAX

_METHODS = frozenset(  # those that llhttp knows, so that a version of HTTP makes no difference
    b"ACL BIND CHECKOUT CONNECT COPY DELETE GET HEAD LINK LOCK M-SEARCH MERGE MKACTIVITY MKCALENDAR MKCOL"
    b" MOVE NOTIFY OPTIONS PATCH POST PROPFIND PROPPATCH PURGE PUT QUERY REBIND REPORT SEARCH SOURCE"
    b" SUBSCRIBE TRACE UNBIND UNLINK UNLOCK UNSUBSCRIBE".split()
)
_PSEUDO = frozenset({b":method", b":scheme", b":authority", b":path", b":protocol"})
# RFC 9113 §8.2.2: they speak of a connection, and here is none that they could mean.
_CONNECTIONS = frozenset(
    {b"connection", b"proxy-connection", b"keep-alive", b"transfer-encoding", b"upgrade", b"http2-settings"}
)
_NAME = re.compile(rb"[!#$%&'*+.^_`|~0-9a-z-]+")
_NO_VALUE = re.compile(rb"[\x00-\x08\x0a-\x1f\x7f]")
_TARGET = re.compile(rb"[!-~\x80-\xff]+")
_BEYOND_ASCII = re.compile(rb"[\x80-\xff]")


class Fields(NamedTuple):
    """What a request says. `headers` begin with `host`; `is_websocket` is RFC 8441's CONNECT, as its GET."""

    method: bytes
    target: bytes
    headers: Headers
    is_websocket: bool


def read(fields: Headers, scheme: bytes) -> Fields:
    """`fields` as they came; `scheme` is the connection's. Raises Refused."""
    if len(fields) > HEADERS_MAX + len(_PSEUDO):
        raise too_many_headers()
    pseudo, headers = _parted(fields)
    method = pseudo.get(b":method", b"")
    if method not in _METHODS:
        raise Refused(501 if method else 400, "its method is not one that is known here")
    if pseudo.get(b":scheme", b"").lower() != scheme:
        raise Refused(400, "its scheme is not that of the connection")
    is_websocket = method == b"CONNECT" and pseudo.get(b":protocol") == b"websocket"
    if b":protocol" in pseudo and not is_websocket:
        raise Refused(501, "its protocol is not one that is known here")
    target = pseudo.get(b":path", b"")
    if _TARGET.fullmatch(target) is None or (target[:1] != b"/" and target != ASTERISK):
        raise Refused(400, "the target is no path")
    target = _BEYOND_ASCII.sub(lambda octet: b"%%%02X" % octet[0][0], target)
    return Fields(b"GET" if is_websocket else method, target, _with_host(pseudo, headers), is_websocket)


# What a field is. Most are the same in many requests, and short: to know them takes a tenth of a look.
_HEADER, _CRUMB, _PSEUDO_FIELD = range(3)
_KEPT_MAX, _KEPT_OCTETS_MAX = 2_048, 256  # fields that are remembered: a megabyte
_NOT_KEPT = frozenset({b"cookie", b"authorization", b"proxy-authorization"})


def _kind(field: tuple[bytes, bytes]) -> int:
    """Raises Refused."""
    name, value = field
    if _NO_VALUE.search(value) is not None or value != value.strip(b" \t"):
        raise Refused(400, "a header's value has what no value may have")
    if name[:1] == b":":
        if name not in _PSEUDO:
            raise _misplaced()
        return _PSEUDO_FIELD
    if name == b"cookie":
        return _CRUMB  # RFC 9113 §8.2.3
    if _NAME.fullmatch(name) is None:
        raise Refused(400, "a header's name has what no name may have")
    if name in _CONNECTIONS or (name == b"te" and value.lower() != b"trailers"):
        raise Refused(400, "a header speaks of a connection of HTTP/1.1")
    return _HEADER


_known_kind = lru_cache(_KEPT_MAX)(_kind)


def _misplaced() -> Refused:
    return Refused(400, "a field in the place of the request line is not one, or not there")


def _parted(fields: Headers) -> tuple[dict[bytes, bytes], Headers]:
    """What stands in the place of a request line, and the headers. Raises Refused."""
    pseudo: dict[bytes, bytes] = {}
    headers: Headers = []
    crumbs: list[bytes] = []
    for field in fields:
        name, value = field
        is_kept = len(name) + len(value) <= _KEPT_OCTETS_MAX and name not in _NOT_KEPT
        kind = (_known_kind if is_kept else _kind)(field)
        if kind is _HEADER:
            headers.append(field)
        elif kind is _CRUMB:
            crumbs.append(value)
        elif headers or crumbs or name in pseudo:
            raise _misplaced()
        else:
            pseudo[name] = value
    if crumbs:
        headers.append((b"cookie", b"; ".join(crumbs)))
    return pseudo, headers


def _with_host(pseudo: dict[bytes, bytes], headers: Headers) -> Headers:
    """`:authority` is who is asked; a `host` beside it has to say the same (RFC 9113 §8.3.1).

    Raises Refused.
    """
    authority = pseudo.get(b":authority")
    if authority is None:
        return headers
    stated = [value for name, value in headers if name == b"host"]
    if stated:
        if len(stated) > 1 or stated[0].lower() != authority.lower():
            raise Refused(400, "host is not who is asked")
        headers = [header for header in headers if header[0] != b"host"]
    return [(b"host", authority), *headers]


class Malformed(Exception):
    """An answer's fields are no answer, or trailers are none (RFC 9113 §8.1.1)."""


# What speaks of the message itself, which trailers come too late for (RFC 9110 §6.5.1).
_NO_TRAILERS = _CONNECTIONS | frozenset(
    b"age authorization cache-control content-encoding content-length content-range content-type cookie date"
    b" expect expires host location max-forwards range retry-after set-cookie te trailer vary warning".split()
)


def read_answer(fields: Headers) -> tuple[int, Headers]:
    """The status and the headers of an answer, interim or not. Raises Malformed."""
    if not fields or fields[0][0] != b":status":
        raise Malformed
    status = fields[0][1]
    if len(status) != 3 or not status.isdigit() or status < b"100":
        raise Malformed
    headers = _checked(fields[1:])
    if any(name in _CONNECTIONS for name, _ in headers):
        raise Malformed
    return int(status), headers


def read_trailers(fields: Headers) -> Headers:
    """Those of an answer's trailers that go on. Raises Malformed."""
    return [field for field in _checked(fields) if field[0] not in _NO_TRAILERS]


def are_trailers(fields: Headers) -> bool:
    """Whether a request's trailers are ones, and not malformed (RFC 9113 §8.1, §8.2)."""
    try:
        return not any(name in _CONNECTIONS for name, _ in _checked(fields))
    except Malformed:
        return False


def _checked(fields: Headers) -> Headers:
    if len(fields) > HEADERS_MAX:
        raise Malformed
    for name, value in fields:
        if _NAME.fullmatch(name) is None or _NO_VALUE.search(value) is not None:
            raise Malformed
        if value != value.strip(b" \t"):
            raise Malformed
    return fields


def of_request(
    method: bytes, scheme: bytes, authority: bytes, target: bytes, headers: Headers, added: bytes
) -> Headers:
    """What an origin is asked. `added` are whole lines that the edge says itself, as HTTP/1.1 has them."""
    said = [tuple(line.split(b": ", 1)) for line in added.split(b"\r\n") if line]
    pseudo = [(b":method", method), (b":scheme", scheme), (b":authority", authority), (b":path", target)]
    return [*pseudo, *[(name, value.strip(b" \t")) for name, value in headers], *said]  # type: ignore[list-item]
