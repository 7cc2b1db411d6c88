"""The text of a zone as records of a document.

Owns  which records are carried over, in the spelling of the API.
Not   zone files (`model.zonefile`), nor where the text comes from.
"""

import re
from collections.abc import Callable

from edgestead.cli.state.document import record_form
from edgestead.cli.state.sources.gathered import Gathered

_SIGNATURE = re.compile(r"\s(RRSIG|NSEC|NSEC3|NSEC3PARAM|TYPE65534)\s")
_KEYS = frozenset({"DNSKEY", "CDS", "CDNSKEY"})  # of a zone with signatures: its signer's


def add_zone(found: Gathered, zone: str, text: str, place: Callable[[int], str]) -> None:
    """Add the records of a zone; `place` names a line, counted from 1.

    SOA and the apex's NS are left out without a word, because every server makes its own.
    """
    from edgestead.model import names
    from edgestead.model.names import InvalidValue
    from edgestead.model.records import TYPES, parse
    from edgestead.model.refusals import EdgeError
    from edgestead.model.refusals.record import LineUnreadable
    from edgestead.model.zonefile import read

    lines = text.splitlines()
    signed = 0

    def refuse(refusal: LineUnreadable) -> None:
        nonlocal signed
        number = int(refusal.facts["line"])
        if number <= len(lines) and _SIGNATURE.search(f" {lines[number - 1]} ".upper()):
            signed += 1
        else:
            found.leave(place(number), str(refusal.facts["reason"]))

    apex = names.wire_from_text(zone)
    records = found.records(zone)
    for entry in read(text, apex, refuse=refuse):
        if entry.type == "SOA" or (entry.type == "NS" and entry.owner == apex):
            continue
        if not names.is_at_or_below(entry.owner, apex):
            found.leave(place(entry.line), f"{names.text_from_wire(entry.owner)} is not in {zone}")
            continue
        try:
            data = None if TYPES[entry.type].priority is None else entry.priority
            rdata = parse(entry.type, content=entry.content, priority=data)
        except (EdgeError, InvalidValue) as error:
            found.leave(place(entry.line), getattr(error, "message", None) or str(error))
            continue
        record = {
            "name": names.text_from_wire(entry.owner),
            "type": entry.type,
            "content": rdata.to_content(),
            "priority": rdata.top_priority,
        }
        if entry.ttl is not None:
            record["ttl"] = found.ttl(entry.ttl, place(entry.line))
        records.append(record_form(record, zone))
    if signed:
        keys = [one for one in records if one["name"] == "@" and one["type"] in _KEYS]
        records[:] = [one for one in records if one not in keys]
        signed += len(keys)
        found.leave(zone, f"{signed} records that its signer made: signatures, denials, keys")
