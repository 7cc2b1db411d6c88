"""What has to happen to a database that was brought back from a backup before it is like any other.

Owns  the mark that it was, new serials for its zones, and which of them could not be given one yet.
Not   copying files; what becomes of a transaction that fails (`server.control.restoring`).

A zone that is brought back has the serial it had then. Secondaries that have followed it since would take it
for old and never fetch it, so every zone goes on from the time, as one that is made now; one that its primary
signed is transferred again instead. A zone with which
that fails is served as it is and tried again later; no other one waits for it.
"""

from typing import Final

import msgspec

from edgestead.model.call import Call
from edgestead.store.control import Reader, Transaction
from edgestead.tables import settings, zones
from edgestead.tables.zones import ZoneRow
from edgestead.usecases import limits
from edgestead.usecases.change.edit import ZoneEdit
from edgestead.usecases.platform import Platform
from edgestead.usecases.serving import catalogs, serials
from edgestead.usecases.serving.facts import stored_dnssec
from edgestead.usecases.zone import secondary
from edgestead.usecases.zone.refreshing import SERVER

MARK: Final = "restored.after"  # its value is the last zone that has been seen to
HELD: Final = "restored_held"  # a row for each zone that is tried again later
ZONES_AT_ONCE: Final = 50  # in one transaction: about 10 ms of the writer's time
LATER_US: Final = 3_600_000_000


class Held(msgspec.Struct, frozen=True):
    """Why a zone still has the serial of the backup, and when it is tried again."""

    problem: str
    due_us: int


_encode = msgspec.json.Encoder().encode
_read = msgspec.json.Decoder(Held).decode


def mark(tx: Transaction, now_us: int) -> None:
    settings.put(tx, SERVER, MARK, "", now_us)


def is_marked(reader: Reader) -> bool:
    return settings.one(reader, SERVER, MARK) is not None


def go_on(call: Call, tx: Transaction, platform: Platform, most: int = ZONES_AT_ONCE) -> bool:
    """See to some zones, all or none. Returns whether there may be more. Raises what any of them raises."""
    found = _next(tx, most)
    for zone in found:
        _begin_again(call, tx, platform, zone)
    _seen(call, tx, found)
    return bool(found)


def step_over(call: Call, tx: Transaction, problem: str) -> None:
    """The next zone is tried again later. Changes rows alone, which nothing wrong with a zone hinders."""
    found = _next(tx, 1)
    for zone in found:
        hold(call, tx, zone.id, problem)
    _seen(call, tx, found)


def hold(call: Call, tx: Transaction, zone_id: str, problem: str) -> None:
    held = Held(problem[: limits.PROBLEM_CHARACTERS_MAX], call.now_us + LATER_US)
    settings.put(tx, SERVER, f"{HELD}.{zone_id}", _encode(held).decode(), call.now_us)


def held(reader: Reader) -> dict[str, Held]:
    """The zones that are tried again later, by id."""
    return {id_: _read(stored.value) for id_, stored in settings.family(reader, SERVER, HELD).items()}


def due(reader: Reader, now_us: int) -> str | None:
    """A zone whose time to be tried again has come."""
    return next((id_ for id_, one in held(reader).items() if one.due_us <= now_us), None)


def try_again(call: Call, tx: Transaction, platform: Platform, zone_id: str) -> None:
    zone = zones.zone(tx, zone_id)
    if zone is not None:
        _begin_again(call, tx, platform, zone)
    settings.delete(tx, SERVER, f"{HELD}.{zone_id}")


def _begin_again(call: Call, tx: Transaction, platform: Platform, zone: ZoneRow) -> None:
    if stored_dnssec(tx, zone.id).presigned:  # its signed SOA cannot have another serial
        secondary.transfer_again(call, tx, zone.id)
        return
    edit = ZoneEdit(call, tx, platform, zone.id)
    edit.begin_again(serials.later(zone.serial, call.now_us))
    edit.finish()


def _next(reader: Reader, most: int) -> list[ZoneRow]:
    stored = settings.one(reader, SERVER, MARK)
    return [] if stored is None else zones.after(reader, stored.value, most)


def _seen(call: Call, tx: Transaction, found: list[ZoneRow]) -> None:
    if found:
        settings.put(tx, SERVER, MARK, found[-1].id, call.now_us)
    elif is_marked(tx):
        settings.delete(tx, SERVER, MARK)
        catalogs.begin_again(tx, call.now_us)
