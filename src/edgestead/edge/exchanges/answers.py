"""Heads of answers to clients.

Owns  status lines, which headers of an origin's answer go on, how a body is framed.
Not   what an answer says.
"""

from http import HTTPStatus

from edgestead.http1.head import Headers
from edgestead.http1.messages import Response

NO_BODY = frozenset({204, 304})
FRAMING = frozenset({b"content-length", b"transfer-encoding"})
KEPT_FROM_CLIENTS = frozenset(
    {b"connection", b"keep-alive", b"proxy-connection", b"te", b"trailer", b"transfer-encoding", b"upgrade"}
)
# An answer's length is for all who read it: who drops it leaves them in doubt where the next answer begins
# (RFC 9110 §7.6.1, RFC 9112 §6.3). Date is the edge's to say where it lacks.
_NOT_OF_A_CONNECTION = frozenset({b"content-length", b"date"})
_WORDS = {
    520: b"Web Server Returned an Unknown Error",
    521: b"Web Server Is Down",
    522: b"Connection Timed Out",
    523: b"Origin Is Unreachable",
    524: b"A Timeout Occurred",
    525: b"SSL Handshake Failed",
    526: b"Invalid SSL Certificate",
    530: b"Origin Name Error",
}
_LINES = {
    **{one.value: b"HTTP/1.1 %d %s" % (one.value, one.phrase.encode()) for one in HTTPStatus},
    **{status: b"HTTP/1.1 %d %s" % (status, words) for status, words in _WORDS.items()},
}
CHUNKED = b"transfer-encoding: chunked\r\n"
CLOSE = b"connection: close\r\n"
KEEP_ALIVE = b"connection: keep-alive\r\n"


def end_to_end(headers: Headers, found: dict[bytes, bytes]) -> Headers:
    """Those that do not concern the connection to the origin alone. `found` are the same by name."""
    if found.keys().isdisjoint(KEPT_FROM_CLIENTS):
        return headers
    dropped = KEPT_FROM_CLIENTS
    if found.get(b"connection", b"keep-alive").lower() not in (b"keep-alive", b"close") or (
        len(found) != len(headers)
    ):
        listed = b",".join([value for name, value in headers if name == b"connection"])
        tokens = {token.strip().lower() for token in listed.split(b",")}
        dropped = dropped.union(tokens - _NOT_OF_A_CONNECTION)
    return [header for header in headers if header[0] not in dropped]


def words(status: int) -> str:
    line = _LINES.get(status)
    return line[13:].decode() if line else ""


def head(status: int, headers: Headers, added: bytes) -> bytes:
    """`added` are whole lines. Reason phrases of origins are not passed on (RFC 9112 §4)."""
    line = _LINES.get(status) or b"HTTP/1.1 %d " % status
    if status < 200 or status == 204:  # RFC 9110 §8.6: they have no length
        headers = [header for header in headers if header[0] != b"content-length"]
    return b"\r\n".join([line, *map(b": ".join, headers), added + b"\r\n"])


def own_answer(response: Response, lines: bytes, *, head_only: bool, keep_alive: bool, old: bool) -> bytes:
    """The bytes of an answer that the edge gives itself. `lines` are `Edge.own_lines`."""
    body = response.body
    assert isinstance(body, bytes)
    added = lines
    if response.status not in NO_BODY:
        added += b"content-length: %d\r\n" % len(body)
    if not keep_alive:
        added += CLOSE
    elif old:
        added += KEEP_ALIVE
    said = head(response.status, response.headers, added)
    return said if head_only or response.status in NO_BODY else said + body
