"""A line of the access log: what it may hold, and how it looks.

Owns  where each field is found, the three forms, hiding and escaping what strangers sent.
Not   the names (`model.access`), where lines go (`sinks`), which answers get one (`log`).

A line is made for each answer, on the log's thread: by one format for all fields, and one look at what of a
request is new each time. Short headers are the same in many requests, and remembered as they are shown.
"""

import time
from collections.abc import Callable, Sequence
from functools import lru_cache
from operator import itemgetter
from typing import Any, NamedTuple

import msgspec

from edgestead.edge import masking
from edgestead.edge.exchanges.exchange import Exchange
from edgestead.model.access import FIELDS, USUAL

TEXT_OCTETS_MAX = 1_024  # of a target, a referer, a user agent: what follows is cut, escaped or not
KEPT_MAX = 1_024  # values of each header that are remembered as they are shown: a quarter of a megabyte
KEPT_OCTETS_MAX = 256  # of one of them
SAID_BYTES = 600  # that what is said of an answer takes in memory, beside what strangers wrote
_US = 1_000_000
_NUMBERS = frozenset({"status", "bytes", "milliseconds"})
# What may stand in a field as it came: printable, no quote and no backslash.
_CLEAN = bytes(octet for octet in range(0x20, 0x7F) if octet not in (0x22, 0x5C))
# And what has nothing hidden: without what parts a name from its value, or hides how a name is spelled.
_PLAIN = bytes(octet for octet in _CLEAN if octet not in b" =:'[]%;,&?@")
_ESCAPES = {octet: b"\\x%02X" % octet for octet in (*range(0x20), *range(0x7F, 0x100), 0x22, 0x5C)}


class Said(NamedTuple):
    """What is said of an answer. Times in microseconds."""

    ended_us: int
    took_us: int
    client: str
    peer: str
    ray: bytes
    host: bytes
    method: bytes
    target: bytes
    version: bytes
    scheme: bytes
    status: int
    sent: int
    zone: bytes = b""
    referer: bytes = b""
    agent: bytes = b""
    trace: bytes = b""
    tls_version: bytes = b""
    tls_cipher: bytes = b""


Line = Callable[[Said], bytes]


def of_exchange(exchange: Exchange, status: int, sent: int, now_us: int) -> Said:
    by_name, tls = exchange.by_name, exchange.tls
    return Said(
        now_us,
        now_us - exchange.arrived_us,
        exchange.client,
        exchange.peer,
        exchange.ray,
        exchange.host,
        exchange.method,
        exchange.raw_target[:TEXT_OCTETS_MAX],
        exchange.version,
        exchange.scheme,
        status,
        sent,
        exchange.zone.name,
        by_name.get(b"referer", b"")[:TEXT_OCTETS_MAX],
        by_name.get(b"user-agent", b"")[:TEXT_OCTETS_MAX],
        by_name.get(b"traceparent", b"")[:64],
        b"" if tls is None else tls.version,
        b"" if tls is None else tls.cipher,
    )


def writer(form: str, fields: Sequence[str] = ()) -> Line:
    """What makes a line, with its end. `fields` are those of `json`; none means the usual ones."""
    if form == "json":
        return _json(tuple(fields) or USUAL)
    return _combined if form == "combined" else _common


def _json(fields: tuple[str, ...]) -> Line:
    names = tuple(FIELDS)
    pick: Callable[[tuple[Any, ...]], Any] = itemgetter(*map(names.index, fields))
    if len(fields) == 1:
        at = names.index(fields[0])
        pick = lambda values: (values[at],)  # noqa: E731, an itemgetter of one makes no tuple
    pairs = (f'"{name}":' + ("%b" if name in _NUMBERS else '"%b"') for name in fields)
    template = ("{" + ",".join(pairs) + "}\n").encode()
    return lambda said: template % pick(_values(said))


def _values(said: Said) -> tuple[bytes, ...]:
    """Every field, in the order of FIELDS, as bytes that stay in their field."""
    (ended_us, took_us, client, peer, ray, host, method, target, version, scheme, status, sent, *rest) = said
    zone, referer, agent, trace, tls_version, tls_cipher = rest
    second, us = divmod(ended_us, _US)
    target = target[:TEXT_OCTETS_MAX]
    if target.translate(None, _PLAIN) or b"eyJ" in target:
        kept = _kept_target if len(target) <= KEPT_OCTETS_MAX else _kept_target.__wrapped__
        target = kept(target)
    return (
        b"%b.%03dZ" % (_second(second), us // 1_000),
        ray,
        _json_kept(client.encode()),
        _json_kept(peer.encode()),
        zone,
        _json_kept(host),
        _json_kept(method),
        target,
        version,
        scheme,
        b"%d" % status,
        b"%d" % sent,
        b"%d.%03d" % divmod(took_us, 1_000),
        _referer(referer) if referer else b"",
        _json_kept(agent),
        _trace_id(trace) if trace else b"",
        tls_version,
        tls_cipher,
    )


@lru_cache(4)
def _second(second: int) -> bytes:
    return time.strftime("%Y-%m-%dT%H:%M:%S", time.gmtime(second)).encode()


@lru_cache(4)
def _common_second(second: int) -> bytes:
    moment = time.gmtime(second)
    month = "Jan Feb Mar Apr May Jun Jul Aug Sep Oct Nov Dec".split()[moment.tm_mon - 1]  # in any locale
    return time.strftime(f"%d/{month}/%Y:%H:%M:%S +0000", moment).encode()


def _hidden_target(target: bytes) -> bytes:
    """With the values of secret names hidden, as events have it."""
    path, mark, query = target[:TEXT_OCTETS_MAX].partition(b"?")
    return masking.hidden(path) + mark + masking.hidden_query(query)


@lru_cache(KEPT_MAX)
def _kept_target(target: bytes) -> bytes:
    return _json_text(_hidden_target(target))


def _referer(referer: bytes) -> bytes:
    kept = _kept_referer if len(referer) <= KEPT_OCTETS_MAX else _kept_referer.__wrapped__
    return kept(referer)


@lru_cache(KEPT_MAX)
def _kept_referer(referer: bytes) -> bytes:
    return _json_text(masking.hidden(referer))


def _trace_id(trace: bytes) -> bytes:
    """Of a `traceparent` (W3C Trace Context §3.2.2)."""
    parts = trace[:64].split(b"-")
    return parts[1] if len(parts) >= 4 and len(parts[1]) == 32 and parts[1].isalnum() else b""


def _json_text(octets: bytes) -> bytes:
    """As JSON has it within quotes; controls as masks of events show them."""
    shown = masking.shown(octets[:TEXT_OCTETS_MAX], TEXT_OCTETS_MAX)
    return msgspec.json.encode(shown[:TEXT_OCTETS_MAX])[1:-1]


def _json_kept(octets: bytes) -> bytes:
    return _kept_text(octets) if len(octets) <= KEPT_OCTETS_MAX else _json_text(octets)


_kept_text = lru_cache(4 * KEPT_MAX)(_json_text)


def _common(said: Said) -> bytes:
    """The Common Log Format of NCSA's server, which all tools read."""
    return b"%b\n" % _common_part(said)


def _common_part(said: Said) -> bytes:
    return b'%b - - [%b] "%b" %d %b' % (
        _escaped(said.client.encode()).replace(b" ", b"") or b"-",
        _common_second(said.ended_us // _US),
        _escaped(b"%b %b %b" % (said.method, _hidden_target(said.target), said.version or b"-")),
        said.status,
        b"%d" % said.sent if said.sent else b"-",
    )


def _combined(said: Said) -> bytes:
    referer = _escaped(masking.hidden(said.referer))
    return b'%b "%b" "%b"\n' % (_common_part(said), referer or b"-", _escaped(said.agent) or b"-")


def _escaped(octets: bytes) -> bytes:
    """As nginx and Apache do: no quote, no line end and no control of a terminal leaves the field."""
    octets = octets[: TEXT_OCTETS_MAX + 64]  # a target with its method and version
    if not octets.translate(None, _CLEAN):
        return octets
    return b"".join(_ESCAPES.get(octet) or bytes((octet,)) for octet in octets)
