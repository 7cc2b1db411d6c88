"""What the edge is told of zones and their proxied names, by the change feed.

Owns  when a document of `model.edge` is emitted, and what it holds.
Not   rulesets (`usecases.ruleset.change`); what DNS answers (`usecases.serving.rendering`).
"""

from collections.abc import Sequence

import msgspec

from edgestead.model import edge, names
from edgestead.model.edge import KIND_EDGE_NAME, KIND_EDGE_ZONE, EdgeName, EdgeZone
from edgestead.model.settings import SETTINGS
from edgestead.store.control import Transaction
from edgestead.tables import records, settings, zones
from edgestead.tables.records import Neighbour
from edgestead.tables.zones import ZoneRow
from edgestead.usecases.serving import rendering

_SCOPE, _KIND_SETTLED = "edge", "edge:settled"
_NAMES_PER_STEP = 1_000
_decode = msgspec.json.Decoder().decode


def tell_zone(tx: Transaction, zone: ZoneRow) -> None:
    """A zone is new, or its settings may have changed. Tells nothing that the feed says already."""
    stored = settings.all_of(tx, zone.id)
    values = {id_: _decode(one.value) for id_, one in stored.items() if id_ in SETTINGS}
    document = edge.encode(EdgeZone(zone.name, zone.account_id, zone.plan, bool(zone.paused), values))
    _tell(tx, zone.id, KIND_EDGE_ZONE, "", document)


def name_document(owner: bytes, found: Sequence[Neighbour]) -> bytes | None:
    """What the edge needs of a name; one that is not proxied is none of its business."""
    return edge.encode(_origins(owner, found)) if rendering.is_proxied(found) else None


def settle(tx: Transaction) -> None:
    """Once for a database from before there was an edge: tell it all that the tables say."""
    if tx.newest(_SCOPE, _KIND_SETTLED, "") is not None:
        return
    for zone in zones.every(tx):
        tell_zone(tx, zone)
        after = ""
        while found := records.proxied_names(tx, zone.id, after, _NAMES_PER_STEP):
            for name in found:
                owner = names.wire_from_text(name)
                document = name_document(owner, records.at_name(tx, zone.id, name))
                _tell(tx, zone.id, KIND_EDGE_NAME, owner.hex(), document)
            after = found[-1]
    tx.emit(_SCOPE, _KIND_SETTLED, "", b"")


def _origins(owner: bytes, found: Sequence[Neighbour]) -> EdgeName:
    by_type = {type_: [one.rdata for one in found if one.type == type_] for type_ in rendering.ADDRESS_TYPES}
    aliases = by_type["CNAME"]
    return EdgeName(owner, tuple(sorted(by_type["A"] + by_type["AAAA"])), aliases[0] if aliases else None)


def _tell(tx: Transaction, zone_id: str, kind: str, key: str, document: bytes | None) -> None:
    if tx.newest(zone_id, kind, key) != document:
        tx.emit(zone_id, kind, key, document)
