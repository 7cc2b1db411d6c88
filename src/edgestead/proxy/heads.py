"""Heads of requests: what is read of one, and what its origin gets.

Owns  which heads can be read in one way only, hop-by-hop rules, the headers that nobody may forge.
Asks  llhttp has refused before what is no HTTP at all.
Tells `proxy.client`, which refuses, and `proxy.passage`, which sends.
Not   parsing bytes; heads of answers (`proxy.answers`).

Everything is said anew to the origin: what was read is serialised once, in one spelling. So a head in which
two readers could see two requests is either refused here or has lost that by being written again.
"""

import re
from functools import lru_cache

import msgspec

from edgestead.http1.messages import Headers
from edgestead.model.edge import OWN_HEADERS

LENGTH_DIGITS_MAX = 18  # fits in 64 bits
HOST_OCTETS_MAX = 255  # the longest name, RFC 1035 §2.3.4
LABEL_OCTETS_MAX = 63  # of it between two dots, RFC 1035 §2.3.4
HOSTS_KEPT_MAX = 4_096  # spellings of Host whose name is remembered

HOP_BY_HOP = frozenset(
    {
        *(b"connection", b"keep-alive", b"proxy-connection", b"proxy-authorization", b"te"),
        *(b"trailer", b"transfer-encoding", b"upgrade", b"expect"),
    }
)
OWN = frozenset(name.encode() for name in OWN_HEADERS)
# Whoever sends one of these says nothing; what the edge does not say itself, a rule may. With `_` for `-`
# many origins cannot tell them apart (RFC 3875 §4.1.18 turns both into `_`), so such names are refused.
FORGEABLE = OWN | {
    *(b"x-forwarded-host", b"x-forwarded-port", b"x-real-ip", b"forwarded", b"true-client-ip"),
    *(b"cf-connecting-ipv6", b"cf-visitor", b"cf-ipcountry", b"cf-pseudo-ipv4"),
}
_READ = frozenset(
    {
        *(b"host", b"content-length", b"transfer-encoding", b"connection", b"upgrade", b"expect"),
        *(b"cdn-loop", b"x-forwarded-for", b"x-forwarded-proto"),
    }
)
_LISTS = {
    **dict.fromkeys((b"connection", b"cdn-loop", b"x-forwarded-for", b"upgrade", b"accept-language"), b", "),
    b"cookie": b"; ",
}
# What the managed rules go by when they read a request: they have to see what the origin sees.
_INSPECTED = frozenset(
    {b"content-type", b"content-encoding", b"content-disposition", b"user-agent", b"cookie"}
)
_NO_RULES = HOP_BY_HOP | OWN | {b"host", b"content-length"}
_WRITTEN_ANEW = _NO_RULES | FORGEABLE
_NOT_IMITATED = _WRITTEN_ANEW | _INSPECTED
_HOST = re.compile(rb"([a-z0-9_.-]{1,253})(?::[0-9]{0,5})?")
_ABSOLUTE = re.compile(rb"https?://([^/?#]*)(.*)", re.IGNORECASE | re.DOTALL)


class Refused(Exception):
    """A head that is not taken: (status, reason)."""


class Read(msgspec.Struct):
    """What the edge itself goes by. `length` None: the body is chunked. `connection`: tokens, lower case.

    `found` is `by_name` of the headers.
    """

    host: bytes
    target: bytes
    length: int | None
    connection: frozenset[bytes]
    found: dict[bytes, bytes]


_NOTHING: frozenset[bytes] = frozenset()


def read(version: str, target: bytes, headers: Headers) -> Read:
    """Raises Refused for a head that two readers could take for two things (RFC 9112 §3.2, §6.3)."""
    found = by_name(headers)
    if b"_" in b"".join(found) and any(map(_imitates, found)):
        raise Refused(400, "a header's name imitates another one by an underscore")
    length = _length(version, found)
    host = found.get(b"host")
    if host is None:
        raise Refused(400, "there must be exactly one Host")
    if target[:1] != b"/" or not target.isascii() or b"#" in target:
        target, host = _unusual(target, host)
    connection = found.get(b"connection")
    tokens = _NOTHING if connection is None else _tokens(connection)
    if tokens and not tokens.isdisjoint(_INSPECTED):
        raise Refused(400, "Connection names a header that is not the connection's")
    return Read(_host(host), target, length, tokens, found)


def _imitates(name: bytes) -> bool:
    return b"_" in name and name.replace(b"_", b"-") in _NOT_IMITATED


def by_name(headers: Headers) -> dict[bytes, bytes]:
    """The first header of each name; those that are lists are joined (RFC 9110 §5.3, RFC 9113 §8.2.3).

    Raises Refused: a header is there twice that the edge goes by.
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
        elif name in _READ:
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
    """The name alone, one that TLS and DNS can ask for. Raises Refused."""
    match = _HOST.fullmatch(value.strip(b" \t").lower()) if len(value) <= HOST_OCTETS_MAX else None
    name = match[1].removesuffix(b".") if match is not None else b""
    if not all(0 < len(label) <= LABEL_OCTETS_MAX for label in name.split(b".")):
        raise Refused(400, "Host is not a name")
    return name


def _unusual(target: bytes, host: bytes) -> tuple[bytes, bytes]:
    """RFC 9112 §3.2.2: the absolute form must name the same host; other forms are not for proxied names.

    Bytes beyond ASCII, which a URI cannot have, are white space to some servers. Raises Refused.
    """
    if b"#" in target:
        raise Refused(400, "the target has a fragment")
    absolute = _ABSOLUTE.fullmatch(target)
    if absolute is not None:
        if _host(absolute[1]) != _host(host):
            raise Refused(400, "the target names another host than Host")
        target = absolute[2] if absolute[2][:1] == b"/" else b"/" + absolute[2]
    if target[:1] != b"/":
        raise Refused(400, "the target is no path")
    if not target.isascii():
        raise Refused(400, "the target is not ASCII")
    return target, host


def _tokens(value: bytes) -> frozenset[bytes]:
    if value == b"keep-alive" or value == b"Keep-Alive":
        return _NOTHING
    return frozenset(token.strip().lower() for token in value.split(b","))


def passable(headers: Headers, found: dict[bytes, bytes]) -> Headers:
    """Those of a client's headers that go on, for rules to change. `found` are the same by name.

    What a rule then sets goes to the origin whatever the client says: in `Connection`, or under that name.
    """
    dropped = _WRITTEN_ANEW | _tokens(found.get(b"connection", b""))
    return [header for header in headers if header[0] not in dropped]


def request_head(
    method: bytes,
    target: bytes,
    host: bytes,
    headers: Headers,
    connection: frozenset[bytes] | None,
    added: bytes,
) -> bytes:
    """A request's head but for its last empty line. `added` are whole lines that the edge says itself.

    `connection` None: the headers are what rules made of those that may go on.
    """
    if connection:
        headers = [header for header in headers if header[0] not in connection]
    dropped = _NO_RULES if connection is None else _WRITTEN_ANEW
    lines = [name + b": " + value + b"\r\n" for name, value in headers if name not in dropped]
    return b"%b %b HTTP/1.1\r\nhost: %b\r\n%b%b" % (method, target, host, b"".join(lines), added)
