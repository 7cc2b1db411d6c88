"""What has to happen to a database that was brought back from a backup before it is like any other.

Owns  the mark that it was, and new serials for its zones.
Not   copying files.

A zone that is brought back has the serial it had then. Secondaries that have followed it since would take it
for old and never fetch it, so every zone goes on from the time, as one that is made now.
"""

from contextlib import suppress

from edgestead.model.call import Call
from edgestead.model.refusals.setting import KeysSealed
from edgestead.store.control import Reader, Transaction
from edgestead.tables import settings, zones
from edgestead.usecases.change.edit import ZoneEdit
from edgestead.usecases.platform import Platform
from edgestead.usecases.serving import catalogs, serials
from edgestead.usecases.zone.refreshing import SERVER

MARK = "restored.after"  # its value is the last zone that has been seen to
ZONES_AT_ONCE = 50  # in one transaction: about 10 ms of the writer's time


def mark(tx: Transaction, now_us: int) -> None:
    settings.put(tx, SERVER, MARK, "", now_us)


def is_marked(reader: Reader) -> bool:
    return settings.one(reader, SERVER, MARK) is not None


def go_on(call: Call, tx: Transaction, platform: Platform) -> bool:
    """See to some zones. Returns whether there may be more."""
    stored = settings.one(tx, SERVER, MARK)
    if stored is None:
        return False
    found = zones.after(tx, stored.value, ZONES_AT_ONCE)
    for zone in found:
        edit = ZoneEdit(call, tx, platform, zone.id)
        edit.begin_again(serials.later(zone.serial, call.now_us))
        with suppress(KeysSealed):  # it is served as it is until its keys can be opened
            edit.finish()
    if found:
        settings.put(tx, SERVER, MARK, found[-1].id, call.now_us)
    else:
        settings.delete(tx, SERVER, MARK)
        catalogs.begin_again(tx, call.now_us)
    return bool(found)
