"""Parsing a query completely: every octet is checked.

Owns  the conditions of FORMERR.
Not   replies; which queries may skip this (`answer`).

Messages are without their ID, so every offset of RFC 1035 is two less here.
"""

from typing import Final, NamedTuple

from edgestead.dns import wire
from edgestead.dns.wire import BadMessage

RECORDS_MAX: Final = 16
"""Records behind the question: OPT, later TSIG and the SOA of an IXFR. A query with more is none."""

_COUNTS_AT: Final = 2
_NAME_AT: Final = 10
_KIND_OCTETS: Final = 4
_RR_BODY_OCTETS: Final = 10  # type, class, TTL, RDLENGTH
_OPTION_HEAD_OCTETS: Final = 4
_ROOT: Final = b"\0"


class Opt(NamedTuple):
    """An OPT record (RFC 6891 §6.1.2). `flags` is the octet with DO; `options` are well-formed."""

    payload: bytes
    version: int
    flags: int
    options: bytes


class Asked(NamedTuple):
    """The question as its bytes: name as sent, type, class; b"" when the query is only for a cookie."""

    question: bytes
    opt: Opt | None


def read(query: bytes) -> Asked:
    """Parse a query.

    One question, or none and an OPT record (RFC 9619, RFC 7873 §5.4), no answers, authority only for IXFR
    (RFC 1995 §3), at most one OPT whose owner is the root and whose options fill it (RFC 6891 §6.1.1), and
    nothing else. Other records in the additional section are ignored. Raises BadMessage.
    """
    qd, an, ns, ar = (int.from_bytes(query[i : i + 2], "big") for i in range(_COUNTS_AT, _NAME_AT, 2))
    stop = wire.read_name(query, _NAME_AT) + _KIND_OCTETS if qd else _NAME_AT
    if stop > len(query) or qd > 1 or an or ns + ar > RECORDS_MAX:
        raise BadMessage("header or question")
    if ns and int.from_bytes(query[stop - 4 : stop - 2], "big") != wire.IXFR:
        raise BadMessage("authority in a query")
    opt, at = None, stop
    for index in range(ns + ar):
        owner_at, body = at, wire.skip_name(query, at)
        kind = int.from_bytes(query[body : body + 2], "big")
        at = body + _RR_BODY_OCTETS + int.from_bytes(query[body + 8 : body + 10], "big")
        if at > len(query):
            raise BadMessage("record")
        if kind == wire.OPT:
            if opt is not None or index < ns or query[owner_at:body] != _ROOT:
                raise BadMessage("OPT")
            opt = _read_opt(query[body:at])
    if at != len(query) or not (qd or opt):
        raise BadMessage("octets behind the message, or no question")
    return Asked(query[_NAME_AT:stop], opt)


def _read_opt(body: bytes) -> Opt:
    options, at = body[_RR_BODY_OCTETS:], 0
    while at < len(options):
        at += _OPTION_HEAD_OCTETS + int.from_bytes(options[at + 2 : at + 4], "big")
    if at != len(options):
        raise BadMessage("options")
    return Opt(payload=body[2:4], version=body[5], flags=body[6], options=options)
