"""A line of the access log: what it may hold, and how it looks.

Owns  where each field is found, the three forms, hiding and escaping what strangers sent.
Not   the names (`model.access`), where lines go (`sinks`), which answers get one (`log`).

A line is made when its answer ends, while what it says is at hand: to keep the parts of a request for later
costs more than the line. One expression is compiled from the form and its fields, so nothing is looked up
that no field asks for; what clients say again and again is remembered as it is shown.
"""

import time
from collections.abc import Callable, Sequence
from functools import lru_cache
from typing import Protocol, TypeVar, cast

import msgspec

from edgestead.edge import masking
from edgestead.edge.exchanges.exchange import Exchange
from edgestead.model.access import USUAL

TEXT_OCTETS_MAX = 1_024  # of a target, a referer, a user agent: what follows is cut, escaped or not
KEPT_MAX = 1_024  # texts of each kind that are remembered as they are shown: half a megabyte
KEPT_OCTETS_MAX = 256  # of one of them
# What may stand in a field as it came: printable, no quote and no backslash.
_CLEAN = bytes(octet for octet in range(0x20, 0x7F) if octet not in (0x22, 0x5C))
_ESCAPES = {octet: b"\\x%02X" % octet for octet in (*range(0x20), *range(0x7F, 0x100), 0x22, 0x5C)}
# Where each field is found, in the names of `Line` and of `_compiled`.
_FOUND = {
    "time": "moment(now_us // 1_000)",
    "ray": "exchange.ray",
    "client": "address[exchange.client]",
    "peer": "address[exchange.peer]",
    "zone": "text[exchange.zone.name]",
    "host": "text[exchange.host]",
    "method": "text[exchange.method]",
    "target": "target[exchange.raw_target]",
    "version": "text[exchange.version]",
    "scheme": "text[exchange.scheme]",
    "status": "status",
    "bytes": "sent",
    "milliseconds": "(now_us - exchange.arrived_us) / 1_000",
    "referer": "referer[exchange.by_name.get(b'referer', b'')]",
    "user_agent": "text[exchange.by_name.get(b'user-agent', b'')]",
    "trace_id": "trace_id(said) if (said := exchange.by_name.get(b'traceparent')) else b''",
    "tls_version": "b'' if exchange.tls is None else text[exchange.tls.version]",
    "tls_cipher": "b'' if exchange.tls is None else text[exchange.tls.cipher]",
    # as web servers have them
    "common_time": "common_time(now_us // 1_000_000)",
    "common_bytes": "b'%d' % sent if sent else b'-'",
}
_NUMBERS = {"status": b"%d", "bytes": b"%d", "milliseconds": b"%.3f"}
# The Common Log Format of NCSA's server, which all tools read, and Apache's with two headers more.
_COMMON = b'%b - - [%b] "%b %b %b" %d %b'
_COMMON_FIELDS = ("client", "common_time", "method", "target", "version", "status", "common_bytes")


class Line(Protocol):
    def __call__(self, exchange: Exchange, status: int, sent: int, now_us: int) -> bytes:
        """A line with its end, of an answer with that status of which so many octets of a body were sent."""
        ...


_Text = TypeVar("_Text", str, bytes)


class _Kept(dict[_Text, bytes]):
    """How texts are shown. Forgets all when it is full: what is said again comes again."""

    def __init__(self, show: Callable[[_Text], bytes]) -> None:
        self._show: Callable[[_Text], bytes] = show

    def __missing__(self, text: _Text) -> bytes:
        shown = self._show(text)
        if len(text) <= KEPT_OCTETS_MAX:
            if len(self) >= KEPT_MAX:
                self.clear()
            self[text] = shown
        return shown


def writer(form: str, fields: Sequence[str] = ()) -> Line:
    """What makes lines. `fields` are those of `json`; none means the usual ones."""
    if form == "json":
        chosen = tuple(fields) or USUAL
        pairs = (b'"%b":%b' % (name.encode(), _NUMBERS.get(name) or b'"%b"') for name in chosen)
        return _compiled(b"{" + b",".join(pairs) + b"}\n", chosen, _json_text)
    if form == "combined":
        return _compiled(_COMMON + b' "%b" "%b"\n', (*_COMMON_FIELDS, "referer", "user_agent"), _escaped)
    return _compiled(_COMMON + b"\n", _COMMON_FIELDS, _escaped)


def _compiled(template: bytes, fields: Sequence[str], encode: Callable[[bytes], bytes]) -> Line:
    """`encode` makes of what strangers sent what may stand in a field."""
    values = ", ".join(f"({_FOUND[name]})" for name in fields)
    names = {
        "address": _Kept[str](lambda address: encode(address.encode()).replace(b" ", b"")),
        "text": _Kept[bytes](encode),
        "target": _Kept[bytes](lambda target: encode(_hidden_target(target))),
        "referer": _Kept[bytes](lambda referer: encode(masking.hidden(referer[:TEXT_OCTETS_MAX]))),
        **{"moment": _moment, "common_time": _common_time, "trace_id": _trace_id},
    }
    source = f"lambda exchange, status, sent, now_us: {template!r} % ({values},)"
    return cast(Line, eval(source, names))  # of our own table alone


@lru_cache(64)
def _moment(ms: int) -> bytes:
    second, ms = divmod(ms, 1_000)
    return b"%b.%03dZ" % (_second(second), ms)


@lru_cache(4)
def _second(second: int) -> bytes:
    return time.strftime("%Y-%m-%dT%H:%M:%S", time.gmtime(second)).encode()


@lru_cache(4)
def _common_time(second: int) -> bytes:
    moment = time.gmtime(second)
    month = "Jan Feb Mar Apr May Jun Jul Aug Sep Oct Nov Dec".split()[moment.tm_mon - 1]  # in any locale
    return time.strftime(f"%d/{month}/%Y:%H:%M:%S +0000", moment).encode()


def _hidden_target(target: bytes) -> bytes:
    """With the values of secret names hidden, as events have it."""
    path, mark, query = target[:TEXT_OCTETS_MAX].partition(b"?")
    return masking.hidden(path) + mark + masking.hidden_query(query)


def _trace_id(trace: bytes) -> bytes:
    """Of a `traceparent` (W3C Trace Context §3.2.2)."""
    parts = trace[:64].split(b"-")
    return parts[1] if len(parts) >= 4 and len(parts[1]) == 32 and parts[1].isalnum() else b""


def _json_text(octets: bytes) -> bytes:
    """As JSON has it within quotes; controls as masks of events show them."""
    shown = masking.shown(octets[:TEXT_OCTETS_MAX], TEXT_OCTETS_MAX)
    return msgspec.json.encode(shown[:TEXT_OCTETS_MAX])[1:-1]


def _escaped(octets: bytes) -> bytes:
    """As nginx and Apache do: no quote, no line end and no control of a terminal leaves the field."""
    octets = octets[:TEXT_OCTETS_MAX]
    if not octets.translate(None, _CLEAN):
        return octets or b"-"
    return b"".join(_ESCAPES.get(octet) or bytes((octet,)) for octet in octets)
