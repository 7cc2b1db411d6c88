"""A signed zone of ours has the delegations of our zones below it, and signals of those that it serves.

Owns  rendering one again when the zone below came, went or changed its keys; signals of a zone that went.
Not   what they hold (`usecases.serving.facts`, `.bootstrapping`).
"""

from collections.abc import Iterable, Mapping

from edgestead.model.call import Call
from edgestead.store.control import Transaction
from edgestead.tables import zones
from edgestead.usecases.change.edit import ZoneEdit
from edgestead.usecases.platform import Platform
from edgestead.usecases.serving import facts


def render_again(call: Call, tx: Transaction, platform: Platform, name: str) -> None:
    """Of the zone `name`, where one of ours above it is signed."""
    above = facts.signed_above(tx, name)
    if above is not None:
        edit = ZoneEdit(call, tx, platform, above)
        edit.refresh((name,))
        edit.finish()


def signal_again(
    call: Call, tx: Transaction, platform: Platform, signals: Mapping[str, Iterable[str]]
) -> None:
    """Render names of signals by the id of their zone."""
    for zone_id, found in signals.items():
        if zones.zone(tx, zone_id) is not None:
            edit = ZoneEdit(call, tx, platform, zone_id)
            edit.refresh(found)
            edit.finish()
