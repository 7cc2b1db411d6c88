"""Heads of requests at the edge: what is refused besides, and what an origin gets.

Owns  names that imitate others, hop-by-hop rules, the headers that no client may forge.
Not   the reading that every address shares (`http1.head`); parsing bytes; heads of answers
      (`edge.exchanges.answers`).

Everything is said anew to the origin: what was read is serialised once, in one spelling. So a head in which
two readers could see two requests is either refused here or has lost that by being written again.
"""

import re
from collections.abc import Iterable

from edgestead.http1 import head
from edgestead.http1.head import Head, Headers, Refused
from edgestead.model.edge import OWN_HEADERS

HOP_BY_HOP = frozenset(
    {
        *(b"connection", b"keep-alive", b"proxy-connection", b"proxy-authorization", b"te"),
        *(b"trailer", b"transfer-encoding", b"upgrade", b"expect"),
    }
)
OWN = frozenset(name.encode() for name in OWN_HEADERS)
# What a proxy says of the client to the server behind it, by what it speaks of. In front of an origin stands
# nobody but the edge; frameworks believe these headers, whoever sent them: so they are dropped. What the edge
# does not say itself, a rule may.
SPOKEN_FOR_CLIENTS: dict[str, tuple[bytes, ...]] = {
    "the client's address": (
        *(b"x-real-ip", b"true-client-ip", b"client-ip", b"x-client-ip", b"x-cluster-client-ip"),
        *(b"fastly-client-ip", b"x-originating-ip", b"x-remote-addr", b"x-remote-ip", b"x-proxyuser-ip"),
        *(b"wl-proxy-client-ip", b"proxy-client-ip", b"x-envoy-external-address", b"x-azure-clientip"),
        *(b"forwarded", b"forwarded-for", b"x-forwarded"),
        *(b"cf-connecting-ipv6", b"cf-pseudo-ipv4", b"cf-ipcountry"),
    ),
    "how the client came": (
        *(b"front-end-https", b"x-forwarded-ssl", b"x-forwarded-scheme", b"x-forwarded-protocol"),
        *(b"x-url-scheme", b"cf-visitor"),
    ),
    "which host and port it asked": (b"x-forwarded-host", b"x-forwarded-port", b"x-forwarded-server"),
    "which path it asked": (b"x-original-url", b"x-rewrite-url", b"x-forwarded-prefix"),
    "who has logged in": (
        *(b"remote-user", b"remote-email", b"remote-name", b"remote-groups", b"x-remote-user"),
        *(b"x-forwarded-user", b"x-forwarded-email", b"x-forwarded-groups", b"x-forwarded-client-cert"),
        *(b"x-forwarded-preferred-username", b"x-forwarded-access-token"),
        *(b"x-auth-request-user", b"x-auth-request-email", b"x-auth-request-groups"),
    ),
    "a proxy that CGI programs are to use": (b"proxy",),
}
# With `_` for `-` many origins cannot tell them apart (RFC 3875 §4.1.18 turns both into `_`), and some make
# `_` of whatever is no letter or digit: so names with any such octet for `-` are refused.
FORGEABLE = OWN.union(*SPOKEN_FOR_CLIENTS.values())
# What the managed rules go by when they read a request: they have to see what the origin sees.
_INSPECTED = frozenset(
    {b"content-type", b"content-encoding", b"content-disposition", b"user-agent", b"cookie"}
)
_NO_RULES = HOP_BY_HOP | OWN | {b"host", b"content-length"}
_WRITTEN_ANEW = _NO_RULES | FORGEABLE
_NOT_IMITATED = _WRITTEN_ANEW | _INSPECTED
# What most requests have, and they imitate nothing: to know them takes a third of the time of a look.
_COMMON = frozenset(
    {
        *(b"host", b"user-agent", b"accept", b"accept-language", b"accept-encoding", b"cookie", b"referer"),
        *(b"connection", b"content-type", b"content-length", b"transfer-encoding", b"expect", b"origin"),
        *(b"upgrade-insecure-requests", b"sec-fetch-dest", b"sec-fetch-mode", b"sec-fetch-site"),
        *(b"sec-fetch-user", b"sec-ch-ua", b"sec-ch-ua-mobile", b"sec-ch-ua-platform", b"priority", b"dnt"),
        *(b"cache-control", b"pragma", b"range", b"authorization", b"x-requested-with", b"te", b"upgrade"),
        *(b"if-none-match", b"if-modified-since", b"x-forwarded-for", b"x-forwarded-proto"),
    }
)
_NEITHER_LETTER_NOR_DIGIT = re.compile(rb"[^a-z0-9]")


def read(version: str, method: bytes, target: bytes, headers: Headers) -> Head:
    """As `http1.head.read`; Refused is also what a rule or an origin could take for another request."""
    read = head.read(version, method, target, headers)
    found = read.found
    if not _COMMON.issuperset(found) and any(map(_imitates, _with_signs(found))):
        raise Refused(400, "a header's name imitates another one, with another sign for a hyphen")
    if not read.host:
        raise Refused(400, "there must be exactly one Host")
    if len(found) != len(headers) and sum(name == b"x-forwarded-proto" for name, _ in headers) > 1:
        raise Refused(400, "x-forwarded-proto is stated more than once")
    if read.connection and not read.connection.isdisjoint(_INSPECTED):
        raise Refused(400, "Connection names a header that is not the connection's")
    return read


def _with_signs(found: dict[bytes, bytes]) -> Iterable[bytes]:
    """The names, where any of them has more than letters, digits and hyphens."""
    return () if b"".join(found).replace(b"-", b"").isalnum() else found


def _imitates(name: bytes) -> bool:
    plain = _NEITHER_LETTER_NOR_DIGIT.sub(b"-", name)
    return plain != name and plain in _NOT_IMITATED


def passable(headers: Headers, found: dict[bytes, bytes]) -> Headers:
    """Those of a client's headers that go on, for rules to change. `found` are the same by name.

    What a rule then sets goes to the origin whatever the client says: in `Connection`, or under that name.
    """
    dropped = _WRITTEN_ANEW | head.tokens(found.get(b"connection", b""))
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
    lines = map(b": ".join, to_origin(headers, connection))
    return b"\r\n".join([b"%b %b HTTP/1.1\r\nhost: %b" % (method, target, host), *lines, added])


def to_origin(headers: Headers, connection: frozenset[bytes] | None) -> Headers:
    """Those of a request's headers that its origin gets. `connection` as in `request_head`."""
    if connection:
        headers = [header for header in headers if header[0] not in connection]
    dropped = _NO_RULES if connection is None else _WRITTEN_ANEW
    return [header for header in headers if header[0] not in dropped]
