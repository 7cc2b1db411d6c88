"""Digests of zones that are too large to have one with each change: made when the zone is quiet.

Owns  what is read before, outside of the writer, and the change that serves the digest.
Not   the digest (`usecases.serving.digests`); rounds (`server.control.digests`).
"""

from typing import NamedTuple

from edgestead.model import served
from edgestead.model.call import Call
from edgestead.store.control import Reader, Transaction
from edgestead.tables import zones
from edgestead.usecases.change.edit import ZoneEdit
from edgestead.usecases.platform import Platform
from edgestead.usecases.serving import digests

due, put_off = digests.due, digests.put_off


class Names(NamedTuple):
    """The records of a zone's names as of a serial; None where they are too much to be digested."""

    serial: int
    octets: bytes | None


def read(reader: Reader, zone_id: str) -> Names | None:
    """None: the zone is gone."""
    zone = zones.zone(reader, zone_id)
    found = [document for _, document in reader.documents(zone_id, served.KIND_ZONE)]
    if zone is None or not found:
        return None
    return Names(zone.serial, digests.of_names(reader, zone_id, served.decode_zone(found[0])))


def finish(call: Call, tx: Transaction, platform: Platform, zone_id: str, found: Names | None) -> None:
    """Serve the digest, where nothing has changed since."""
    zone = zones.zone(tx, zone_id)
    if zone is None or found is None or found.octets is None:
        digests.forget(tx, zone_id)
        return
    edit = ZoneEdit(call, tx, platform, zone_id)
    if not edit.has_digest:
        digests.forget(tx, zone_id)
    elif zone.serial != found.serial:
        digests.put_off(tx, zone_id, call.now_us)
    else:
        edit.take_digest(found.octets)
        edit.finish()
