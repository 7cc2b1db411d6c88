"""The one reading of a request's head, for every address of the server.

Owns  which heads can be read in one way only: version, count, target, Host, length; their refusals.
Not   parsing bytes (llhttp, which has refused most of it before); what one address forbids besides.

The rules are stated here again, so that another build of the parser cannot loosen them (RFC 9112 §2.3, §3.2,
§6.3; spec "Deprecations", 2023-07-01: in force at every as-of date).
"""

import re
from functools import lru_cache

import httptools
import msgspec

from edgestead.http1.limits import HEAD_BYTES_MAX, HEADERS_MAX
from edgestead.model.budgets import table
from edgestead.model.budgets.table import Budget

Headers = list[tuple[bytes, bytes]]
"""Names in lower case, in the order of arrival; a name may occur more than once."""

ASTERISK = b"*"  # the server itself, as the target of OPTIONS
VERSIONS = ("1.1", "1.0")
LENGTH_DIGITS_MAX = 18  # fits in 64 bits
HOST_OCTETS_MAX = 255  # the longest name, RFC 1035 §2.3.4
LABEL_OCTETS_MAX = 63  # of it between two dots, RFC 1035 §2.3.4
HOSTS_KEPT_MAX = 4_096  # spellings of Host whose name is remembered

_ONCE = frozenset({b"host", b"content-length", b"transfer-encoding", b"expect"})
_LISTS = {
    **dict.fromkeys((b"connection", b"cdn-loop", b"x-forwarded-for", b"upgrade", b"accept-language"), b", "),
    b"cookie": b"; ",
}
_HOST = re.compile(rb"(\[[0-9a-f:.]{2,45}\]|[a-z0-9_.-]{1,253})(?::[0-9]{0,5})?")
_ABSOLUTE = re.compile(rb"https?://([^/?#]*)(.*)", re.IGNORECASE | re.DOTALL)
_REQUEST_LINE = re.compile(rb"[\r\n]*[!#$%&'*+.^_`|~0-9A-Za-z-]+ [^ \r\n]+ HTTP/1\.[01]\r\n")
_NOTHING: frozenset[bytes] = frozenset()


class Refused(Exception):
    """A request that is not taken: (status, reason). With the budget that it is over, where it is one's."""

    def __init__(self, status: int, reason: str, budget: Budget | None = None) -> None:
        super().__init__(status, reason)
        self.budget = budget


class Head(msgspec.Struct):
    """What can be relied on in a head.

    `host` is the name alone, in lower case; b"" for HTTP/1.0 without one. `target` is a path with its query,
    or the asterisk. `length` None: the body is chunked. `connection`: tokens, lower case. `found`: `by_name`.
    """

    host: bytes
    target: bytes
    length: int | None
    connection: frozenset[bytes]
    found: dict[bytes, bytes]


def read(
    version: str, method: bytes, target: bytes, headers: Headers, headers_max: int = HEADERS_MAX
) -> Head:
    """Raises Refused for a head that two readers could take for two things.

    Where the target is absolute, its authority replaces Host, in `headers` too (RFC 9112 §3.2.2).
    """
    if len(headers) > headers_max:
        raise too_many_headers()
    if version not in VERSIONS:
        raise Refused(505, "only HTTP/1.1 and HTTP/1.0 are offered here")
    if method == b"CONNECT":
        raise Refused(501, "this is no proxy for other hosts")
    found = by_name(headers)
    length = _length(version, found)
    stated = found.get(b"host")
    if stated is None and version == "1.1":
        raise Refused(400, "there must be exactly one Host")
    host = b"" if stated is None else _host(stated)
    if target[:1] != b"/" or not target.isascii() or b"#" in target:
        authority, target = _unusual(method, target)
        if authority is not None:
            host = _host(authority)
            found[b"host"] = authority
            headers[:] = [(b"host", authority), *(header for header in headers if header[0] != b"host")]
    connection = found.get(b"connection")
    return Head(host, target, length, _NOTHING if connection is None else tokens(connection), found)


def by_name(headers: Headers) -> dict[bytes, bytes]:
    """The first header of each name; those that are lists are joined (RFC 9110 §5.3, RFC 9113 §8.2.3).

    Raises Refused: a header is there twice that must not be.
    """
    found = dict(headers)  # at the speed of C: nearly every head has each name once
    return found if len(found) == len(headers) else _joined(headers)


def _joined(headers: Headers) -> dict[bytes, bytes]:
    found: dict[bytes, bytes] = {}
    for name, value in headers:
        if name not in found:
            found[name] = value
        elif name in _LISTS:
            found[name] += _LISTS[name] + value
        elif name in _ONCE:
            raise Refused(400, f"{name.decode()} is stated more than once")
    return found


def _length(version: str, found: dict[bytes, bytes]) -> int | None:
    stated, encoding = found.get(b"content-length"), found.get(b"transfer-encoding")
    if encoding is not None:
        if stated is not None:
            raise Refused(400, "the length is stated more than once")
        if encoding.strip().lower() != b"chunked":
            raise Refused(400, "Transfer-Encoding is not chunked alone")
        if version != "1.1":
            raise Refused(400, "Transfer-Encoding needs HTTP/1.1")
        return None
    if stated is None:
        return 0
    stated = stated.strip(b" ")
    if not stated.isdigit() or len(stated) > LENGTH_DIGITS_MAX:
        raise Refused(400, "Content-Length is not a number")
    return int(stated)


@lru_cache(HOSTS_KEPT_MAX)
def _host(value: bytes) -> bytes:
    """The name alone: one that TLS and DNS can ask for, or an address. Raises Refused."""
    match = _HOST.fullmatch(value.strip(b" \t").lower()) if len(value) <= HOST_OCTETS_MAX else None
    name = match[1].removesuffix(b".") if match is not None else b""
    if not all(0 < len(label) <= LABEL_OCTETS_MAX for label in name.split(b".")):
        raise Refused(400, "Host is not a name")
    return name


def _unusual(method: bytes, target: bytes) -> tuple[bytes | None, bytes]:
    """The authority and path of an absolute target (RFC 9112 §3.2.2), or the asterisk (§3.2.4).

    Bytes beyond ASCII, which a URI cannot have, are white space to some servers. Raises Refused.
    """
    if b"#" in target:
        raise Refused(400, "the target has a fragment")
    if not target.isascii():
        raise Refused(400, "the target is not ASCII")
    if target == ASTERISK and method == b"OPTIONS":
        return None, target
    absolute = _ABSOLUTE.fullmatch(target)
    if absolute is None:
        raise Refused(400, "the target is no path")
    authority, path = absolute.groups()
    return authority, path if path[:1] == b"/" else b"/" + path


def tokens(value: bytes) -> frozenset[bytes]:
    """Those of a Connection header but keep-alive alone, which is what nothing is."""
    if value == b"keep-alive" or value == b"Keep-Alive":
        return _NOTHING
    return frozenset(token.strip().lower() for token in value.split(b","))


def is_too_large(target: bytes, headers: Headers) -> bool:
    """For a head that came in one piece with more behind it, or in several."""
    return len(target) + sum(len(name) + len(value) + 4 for name, value in headers) > HEAD_BYTES_MAX


def too_large() -> Refused:
    return Refused(431, f"its head is larger than {HEAD_BYTES_MAX} bytes", table.HTTP_HEAD_BYTES)


def too_many_headers(what: str = "headers") -> Refused:
    return Refused(431, f"it has more than {HEADERS_MAX} {what}", table.HTTP_HEADERS)


def too_much_overhead() -> Refused:
    reason = "there is too much around its chunks, or too many trailers"
    return Refused(431, reason, table.HTTP_OVERHEAD)


def refusal_of(error: httptools.HttpParserError, data: bytes) -> Refused:
    """Why the parser stopped, as a refusal. `data` is the piece at which it did."""
    cause, words = error.__context__, str(error)
    if isinstance(cause, Refused):
        return cause
    if "method" in words and _REQUEST_LINE.match(data):
        return Refused(501, "its method is not one that is known here")  # RFC 9110 §9.1
    if "HTTP version" in words:
        return Refused(505, "only HTTP/1.1 and HTTP/1.0 are offered here")
    return Refused(400, "it cannot be parsed")
