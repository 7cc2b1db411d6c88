"""Where a name lies in our own zones, and whether a CNAME leads back to itself.

Owns  the zone that a name belongs to; following a chain of CNAMEs from zone to zone.
Not   targets elsewhere: a chain that leaves our zones, or a name that is not there, is no loop.

Spec "Content rules" 2: a CNAME may point to another one. Wildcards are not followed: what they answer depends
on the question, and a resolver ends such a chain by itself (RFC 1034 §3.6.2).
"""

from collections.abc import Mapping
from typing import NamedTuple

from edgestead.model import names
from edgestead.model.refusals.record import ContentRefused
from edgestead.store.control import Reader
from edgestead.tables import records, zones
from edgestead.usecases import limits


class OurZone(NamedTuple):
    id: str
    apex: bytes


_NONE: Mapping[bytes, bytes] = {}


def check_no_loop(
    reader: Reader,
    owner: bytes,
    target: bytes,
    but_for: str | None,
    unwritten: Mapping[bytes, bytes] = _NONE,
) -> None:
    """Whether a CNAME at `owner` may point to `target`; the record `but_for` is about to change.

    `unwritten` are aliases that will be there too, by owner. At most ALIAS_HOPS_MAX names are asked
    for. Raises ContentRefused.
    """
    name = target
    for _ in range(limits.ALIAS_HOPS_MAX):
        if name == owner:
            raise ContentRefused(
                type="CNAME", field="content", reason="it leads back to the record's own name"
            )
        if name in unwritten:
            name = unwritten[name]
            continue
        found = _target_of(reader, name)
        if found is None or found[0] == but_for:
            return
        name = found[1]
    reason = f"more than {limits.ALIAS_HOPS_MAX} aliases follow one another"
    raise ContentRefused(type="CNAME", field="content", reason=reason)


def enclosing_zone(reader: Reader, name: bytes) -> OurZone | None:
    """The zone of ours with the longest apex at or above a name."""
    above = name
    while above != names.ROOT:
        zone_id = zones.id_by_name(reader, names.text_from_wire(above))
        if zone_id is not None:
            return OurZone(zone_id, above)
        above = names.parent(above)
    return None


def _target_of(reader: Reader, name: bytes) -> tuple[str, bytes] | None:
    """The CNAME at a name, of the zone that has it: its id and its target."""
    zone = enclosing_zone(reader, name)
    return None if zone is None else records.alias(reader, zone.id, names.text_from_wire(name))
