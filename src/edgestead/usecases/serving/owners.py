"""Whose a zone is, for DNS processes: who may transfer it depends on that.

Owns  when the feed says so.
Not   keys of accounts (`usecases.account.tsig_keys`).
"""

from edgestead.model import names, tsig
from edgestead.model.tsig import KIND_OWNER, ServedOwner
from edgestead.store.control import Transaction
from edgestead.tables import zones

_KIND_SETTLED = "owner:settled"


def tell(tx: Transaction, scope: str, apex: bytes, account_id: str) -> None:
    """A zone is new. It is forgotten with its scope."""
    tx.emit(scope, KIND_OWNER, "", tsig.encode(ServedOwner(apex, account_id)))


def settle(tx: Transaction) -> None:
    """Once for a database from before there were keys: tell of every zone."""
    if tx.newest(tsig.SCOPE, _KIND_SETTLED, "") is not None:
        return
    for zone in zones.every(tx):
        tell(tx, zone.id, names.wire_from_text(zone.name), zone.account_id)
    tx.emit(tsig.SCOPE, _KIND_SETTLED, "", b"")
