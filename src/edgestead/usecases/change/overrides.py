"""Which names of a secondary zone are proxied on top of what is transferred.

Owns  the list, which outlives the records: each transfer may bring others of the same name.
Not   whether that is allowed (`usecases.change.records`); what it serves (`usecases.serving`).
"""

import msgspec

from edgestead.store.control import Reader, Transaction
from edgestead.tables import settings

PROXIED = "secondary.proxied"
_read = msgspec.json.Decoder(tuple[str, ...]).decode


def names_of(reader: Reader, zone_id: str) -> frozenset[str]:
    stored = settings.one(reader, zone_id, PROXIED)
    return frozenset(_read(stored.value)) if stored else frozenset()


def note(tx: Transaction, zone_id: str, name: str, *, proxied: bool, now_us: int) -> None:
    known = names_of(tx, zone_id)
    known = known | {name} if proxied else known - {name}
    settings.put(tx, zone_id, PROXIED, msgspec.json.encode(sorted(known)).decode(), now_us)
