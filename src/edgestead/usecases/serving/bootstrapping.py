"""Signals (RFC 9615): what a zone tells its parent of its keys, told again below its name servers' names.

Owns  where a zone's signals are, and what they say.
Not   publishing them (`usecases.change.edit`).

    _dsboot.example.com._signal.ns1.example.net   CDS, CDNSKEY as at the apex of example.com

A parent that has no DS yet can believe the zone's CDS when the name servers say the same in a zone that is
signed. It is said where the zone of the name server is ours and signed, and either of the zone's own account
or the server's own name servers': nobody can put names into a zone of somebody else by naming its hosts.
"""

from collections.abc import Iterable
from typing import Final

from edgestead.model import dnssec, names, served
from edgestead.model.limits import NAME_OCTETS_MAX
from edgestead.model.served import ServedRRset
from edgestead.store.control import Reader, Transaction
from edgestead.tables import settings, zones
from edgestead.tables.zones import ZoneRow
from edgestead.usecases.serving import keyset
from edgestead.usecases.serving.rendering import Renderer
from edgestead.usecases.serving.signing import SETTING

_LABEL: Final = "_dsboot."
_BETWEEN: Final = "._signal."
_SAID: Final = frozenset((dnssec.CDS, dnssec.CDNSKEY))
_TOLD_BY: Final = _SAID | {dnssec.NS}


def is_name(name: str) -> bool:
    return name.startswith(_LABEL) and _BETWEEN in name


def differs(before: Iterable[ServedRRset], after: Iterable[ServedRRset]) -> bool:
    """Whether an apex with these RRsets is signalled otherwise than before."""
    return _told(before) != _told(after)


def _told(rrsets: Iterable[ServedRRset]) -> list[ServedRRset]:
    told = [rrset for rrset in rrsets if rrset.type in _TOLD_BY]
    return told if any(rrset.type in _SAID for rrset in told) else []


def servers(rrsets: Iterable[ServedRRset]) -> list[bytes]:
    """The name servers that an apex names."""
    return [rdata.lower() for rrset in rrsets if rrset.type == dnssec.NS for rdata in rrset.rdatas]


def places(reader: Reader, renderer: Renderer, zone: ZoneRow, hosts: Iterable[bytes]) -> dict[str, list[str]]:
    """Where the signals of a zone with these name servers are: names by the id of the zone that has them."""
    found: dict[str, list[str]] = {}
    for host in dict.fromkeys(hosts):
        text = names.text_from_wire(host)
        if text == zone.name or text.endswith(f".{zone.name}"):
            continue  # RFC 9615 §4.1: the zone itself cannot vouch for itself
        name = f"{_LABEL}{zone.name}{_BETWEEN}{text}"
        above = _zone_of(reader, text)
        is_short = len(name) + 2 <= NAME_OCTETS_MAX
        is_signed = above is not None and settings.one(reader, above.id, SETTING) is not None
        if above is not None and is_signed and is_short and _may_say(renderer, zone, above, host):
            found.setdefault(above.id, []).append(name)
    return found


def _may_say(renderer: Renderer, zone: ZoneRow, above: ZoneRow, host: bytes) -> bool:
    return above.account_id == zone.account_id or renderer.is_own_server(host)


def _zone_of(reader: Reader, host: str) -> ZoneRow | None:
    while host:
        zone_id = zones.id_by_name(reader, host)
        if zone_id is not None:
            return zones.zone(reader, zone_id)
        host = host.partition(".")[2]
    return None


def said(tx: Transaction, renderer: Renderer, zone_id: str, name: str) -> tuple[ServedRRset, ...]:
    """What the zone `zone_id` serves at the name of a signal; nothing where nobody signals there."""
    apex_name, _, host = name.removeprefix(_LABEL).rpartition(_BETWEEN)
    of_id = zones.id_by_name(tx, apex_name)
    zone = None if of_id is None else zones.zone(tx, of_id)
    if zone is None:
        return ()
    rrsets = _apex(tx, zone)
    wire = names.wire_from_text(host)
    if wire not in servers(rrsets) or name not in places(tx, renderer, zone, [wire]).get(zone_id, ()):
        return ()
    return tuple(one for one in rrsets if one.type in _SAID and one not in keyset.GONE_AT_PARENT)


def of_zone(tx: Transaction, renderer: Renderer, zone: ZoneRow) -> dict[str, list[str]]:
    """As `places`, of a zone as it is served now."""
    return places(tx, renderer, zone, servers(_apex(tx, zone)))


def below(tx: Transaction, renderer: Renderer, zone: ZoneRow) -> list[str]:
    """Every signal that belongs into a zone."""
    signed = (other_id for other_id, _ in settings.scopes(tx, SETTING))
    return [name for other_id in signed for name in told_in(tx, renderer, zone, other_id)]


def told_in(tx: Transaction, renderer: Renderer, zone: ZoneRow, other_id: str) -> list[str]:
    """The signals of the zone `other_id` that belong into a zone."""
    other = zones.zone(tx, other_id)
    if other is None:
        return []
    end = names.wire_from_text(zone.name)
    hosts = [host for host in servers(_apex(tx, other)) if host.endswith(end)]  # of most zones none
    return places(tx, renderer, other, hosts).get(zone.id, [])


def _apex(tx: Transaction, zone: ZoneRow) -> tuple[ServedRRset, ...]:
    document = tx.newest(zone.id, served.KIND_NAME, names.wire_from_text(zone.name).hex())
    return served.decode_name(document).rrsets if document else ()
