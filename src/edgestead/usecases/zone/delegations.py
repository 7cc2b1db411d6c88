"""A signed zone of ours has the delegations of our zones below it.

Owns  rendering one again when the zone below came, went or changed its keys.
Not   what it holds (`usecases.serving.facts`).
"""

from edgestead.model.call import Call
from edgestead.store.control import Transaction
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
