"""Records as the API has them, and as octoDNS writes them.

Owns  both spellings of a record's contents; which rows an octoDNS record needs, beside those there are.
Not   asking the server.

octoDNS has one record a name and type, the API one row a value. Contents are compared in octoDNS's text of
them (master-file form, RFC 1035 §5.1), so that what it takes for equal never is a change.
"""

import re
from collections.abc import Iterable
from typing import Any, NamedTuple

from dns.rdataclass import IN
from dns.rdatatype import TXT as TXT_NUMBER
from dns.rdtypes.ANY.TXT import TXT
from octodns.record import Record
from octodns.record.rr import RdataParseError, Rrset
from octodns.zone import Zone

from octodns_edgestead.api import EdgesteadError, Json

OPTIONS = "edgestead"  # under `octodns` of a record
TTL_AUTO = 1  # as the API writes it
TTL_AUTO_SECONDS = 300  # as DNS answers it
APEX_TYPES = {"CNAME": "ALIAS"}  # what octoDNS calls a type at the apex
PROXIED_TYPES = frozenset({"A", "AAAA", "ALIAS", "CNAME"})
PRIORITY_TYPES = frozenset({"MX", "SRV", "URI"})  # it stands beside the content, and first in the text
STRING_OCTETS_MAX = 255  # RFC 1035 §3.3
_ESCAPE = re.compile(rb"\\(\d{3}|.)", re.DOTALL)
# Which word of the text is a host name: the API may answer it without its last dot.
HOST_WORD = {
    **{"ALIAS": 0, "CNAME": 0, "NS": 0, "PTR": 0},
    **{"HTTPS": 1, "MX": 1, "SVCB": 1, "SRV": 3, "NAPTR": -1},
}
# Of octoDNS's types, those that the server stores and DNS answers.
TYPES = frozenset(
    {"A", "AAAA", "CAA", "DS", "LOC", "OPENPGPKEY", "SSHFP", "TLSA", "TXT", "URI"} | set(HOST_WORD)
)


class Row(NamedTuple):
    """One record of the API. `rdata` is octoDNS's text; `ttl` is TTL_AUTO or seconds."""

    id: str
    rdata: str
    ttl: int
    proxied: bool


class Edits(NamedTuple):
    """What a batch has to do for one record of octoDNS, as bodies of the API."""

    deletes: list[Json]
    patches: list[Json]
    posts: list[Json]

    @property
    def changes(self) -> int:
        return sum(map(len, self))


def read(zone: Zone, rows: Iterable[Json], *, lenient: bool) -> dict[Record, list[Row]]:
    """The zone's records of TYPES, each with its rows.

    Raises EdgesteadError for contents that octoDNS cannot hold.
    """
    grouped: dict[tuple[str, str], list[tuple[str, Json]]] = {}
    for row in rows:
        name = row["name"] + "."
        type_ = APEX_TYPES.get(row["type"], row["type"]) if name == zone.name else row["type"]
        if type_ in TYPES:
            grouped.setdefault((name, type_), []).append((_rdata(type_, row), row))
    return dict(_record(zone, *key, found, lenient) for key, found in grouped.items())


def _record(
    zone: Zone, name: str, type_: str, found: list[tuple[str, Json]], lenient: bool
) -> tuple[Record, list[Row]]:
    def made(*rdatas: str) -> Record:
        (record,) = Record.from_rrsets(zone, [Rrset(name, type_, ttl, rdatas)], lenient=lenient)
        return record

    first = found[0][1]
    ttl = TTL_AUTO_SECONDS if first["ttl"] == TTL_AUTO else first["ttl"]
    try:
        record = made(*(rdata for rdata, _ in found))
        texts = [made(rdata).to_rrset().rdatas[0] for rdata, _ in found]
    except RdataParseError:
        raise EdgesteadError(f"{type_} {name} has contents that octoDNS cannot hold: {found}") from None
    if first.get("proxied"):
        record.octodns = {OPTIONS: {"proxied": True}}
    elif first["ttl"] == TTL_AUTO:
        record.octodns = {OPTIONS: {"auto-ttl": True}}
    rows = [
        Row(row["id"], text, row["ttl"], row.get("proxied", False))
        for text, (_, row) in zip(texts, found, strict=True)
    ]
    return record, rows


def option(record: Record, name: str) -> bool:
    return bool(record.octodns.get(OPTIONS, {}).get(name))


def has_auto_ttl(record: Record) -> bool:
    """Whether its TTL is left to the server, as that of every proxied name is."""
    return option(record, "auto-ttl") or (option(record, "proxied") and record._type in PROXIED_TYPES)


def edits(record: Record, rows: Iterable[Row]) -> Edits:
    """What makes these rows the record's.

    Rows with its values stay. Others are rewritten before new ones are made: a row keeps its id and comment.
    """
    more: Json = {"ttl": TTL_AUTO if has_auto_ttl(record) else record.ttl}
    if record._type in PROXIED_TYPES:
        more["proxied"] = option(record, "proxied")
    wanted, leftover, patches = record.to_rrset().rdatas, [], []
    for row in rows:
        if row.rdata not in wanted:
            leftover.append(row)
            continue
        wanted.remove(row.rdata)
        if (row.ttl, row.proxied) != (more["ttl"], more.get("proxied", False)):
            patches.append({"id": row.id, **more})
    bodies = [_body(record, rdata) | more for rdata in wanted]
    patches += [{"id": row.id, **body} for row, body in zip(leftover, bodies, strict=False)]
    deletes = [{"id": row.id} for row in leftover[len(bodies) :]]
    return Edits(deletes, patches, bodies[len(leftover) :])


def _body(record: Record, rdata: str) -> Json:
    body: Json = {"type": _api_type(record._type), "name": record.fqdn.removesuffix("."), "content": rdata}
    if record._type in PRIORITY_TYPES:
        priority, _, body["content"] = rdata.partition(" ")
        body["priority"] = int(priority)
    return body


def _api_type(type_: str) -> str:
    return next((ours for ours, theirs in APEX_TYPES.items() if theirs == type_), type_)


def _rdata(type_: str, row: dict[str, Any]) -> str:
    text: str = row["content"]
    if type_ in PRIORITY_TYPES:
        text = f"{row['priority']} {text}"
    if type_ == "TXT" and not text.startswith('"'):  # as it was sent (`--profile clients`)
        return _quoted(text)
    if type_ in HOST_WORD:
        words = text.split(" ")
        words[HOST_WORD[type_]] = words[HOST_WORD[type_]].removesuffix(".") + "."
        text = " ".join(words)
    return text


def _quoted(text: str) -> str:
    """Text of a TXT without quotes, whose escapes are those of RFC 1035 §5.1, in quotes."""

    def octet(escape: re.Match[bytes]) -> bytes:
        return bytes((int(escape[1]) & 0xFF,)) if escape[1].isdigit() and len(escape[1]) == 3 else escape[1]

    octets = _ESCAPE.sub(octet, text.encode())
    strings = [octets[at : at + STRING_OCTETS_MAX] for at in range(0, len(octets), STRING_OCTETS_MAX)]
    return str(TXT(IN, TXT_NUMBER, strings).to_text())
