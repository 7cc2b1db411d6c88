"""Signing a zone and ending that: who moves a zone from state to state, and the work on the way.

Owns  every move of the table in `usecases.serving.signing`; how many names one transaction signs.
Not   signatures themselves; the API's words for the states (`usecases.zone.dnssec`); the keys' own
      lives (`usecases.zone.rolls`); asking the parent (`server.control.parents`).
"""

from collections.abc import Iterable, Sequence
from itertools import groupby
from operator import attrgetter
from typing import Final, NamedTuple

import msgspec

from edgestead.model import dnssec, names
from edgestead.model.call import Call
from edgestead.store.control import Reader, Transaction
from edgestead.tables import records, settings, signing, zones
from edgestead.tables.zones import ZoneRow
from edgestead.usecases.change.edit import ZoneEdit
from edgestead.usecases.platform import Platform
from edgestead.usecases.serving import facts as zone_facts
from edgestead.usecases.serving import keyset
from edgestead.usecases.serving.signing import (
    ACTIVE,
    IS_SERVED,
    LEAVING,
    LISTING,
    OFFERED,
    SETTING,
    SIGNED,
    SIGNING,
    UNSIGNING,
    Stored,
    read_stored,
    stored_text,
)
from edgestead.usecases.zone import delegations, rolls, waits

SIGNED_AT_ONCE: Final = 150  # names in one transaction: about 25 ms of the writer's time
LISTED_AT_ONCE: Final = 1_000  # names that are put into the chain in one transaction: about 15 ms
AT_ONCE_RECORDS_MAX: Final = 500  # zones up to this size are signed within the request: about 100 ms
KEYS, NAMES, STATE = "keys", "names", "state"
"""Kinds of work: steps of a zone's keys, signatures of some of its names, its next state."""

_ZONE_ID: Final = attrgetter("zone_id")


def stored_of(reader: Reader, zone_id: str) -> Stored | None:
    """The state of a zone; None for one without signatures."""
    found = settings.one(reader, zone_id, SETTING)
    return read_stored(found.value) if found else None


def all_stored(reader: Reader) -> list[tuple[str, Stored]]:
    """Each zone that is signed, or on its way from or to that, by id."""
    return [(zone_id, read_stored(value)) for zone_id, value in settings.scopes(reader, SETTING)]


def begin(call: Call, tx: Transaction, platform: Platform, zone: ZoneRow) -> None:
    """Make the keys and start to sign; a small zone is signed when this returns."""
    rolls.make_keys(call, tx, platform, zone.id)
    signing.forget_names(tx, zone.id)
    _move(call, tx, platform, zone.id, Stored(LISTING, call.now_us))
    if zone.record_count <= AT_ONCE_RECORDS_MAX:
        while _state(tx, zone.id) == LISTING:
            _list(call, tx, platform, zone.id)
        places = signing.some(tx, zone.id, 2 * AT_ONCE_RECORDS_MAX + 1)
        _sign(call, tx, platform, zone.id, places)
        _complete(call, tx, platform, zone.id)


def resume(call: Call, tx: Transaction, platform: Platform, zone_id: str) -> None:
    """Take back the end of signing, while the zone is still signed."""
    _move(call, tx, platform, zone_id, Stored(OFFERED, call.now_us))


def end(call: Call, tx: Transaction, platform: Platform, zone_id: str, stored: Stored) -> None:
    """Start to end signing: at once where no resolver can have seen a signature, else when the DS is gone."""
    state = LEAVING if stored.state in IS_SERVED else UNSIGNING
    _move(call, tx, platform, zone_id, Stored(state, call.now_us, ds_us=stored.ds_us))


class Work(NamedTuple):
    """What the background does in one transaction, of one zone: where one fails, no other waits."""

    zone_id: str
    kind: str
    places: tuple[bytes, ...] = ()


def next_work(reader: Reader, now_us: int) -> list[Work]:
    """What is to be done next: listing, then keys, then signatures that are due, then moves on schedule."""
    waiting = [(zone_id, stored) for zone_id, stored in all_stored(reader) if stored.retry_us <= now_us]
    return (
        [Work(zone_id, STATE) for zone_id, stored in waiting if stored.state == LISTING][
            : rolls.ZONES_AT_ONCE
        ]
        or [Work(zone_id, KEYS) for zone_id in rolls.due(reader, now_us)]
        or [
            Work(zone_id, NAMES, tuple(one.place for one in group))
            for zone_id, group in groupby(sorted(signing.due(reader, now_us, SIGNED_AT_ONCE)), _ZONE_ID)
        ]
        or [Work(zone_id, STATE) for zone_id, stored in waiting if _is_due(reader, zone_id, stored, now_us)][
            : rolls.ZONES_AT_ONCE
        ]
    )


def go_on(call: Call, tx: Transaction, platform: Platform, work: Work) -> None:
    """Do a piece of work, as far as there is need for it still. Raises KeysSealed, and what a bug raises."""
    stored = stored_of(tx, work.zone_id)
    if stored is None:
        return
    if work.kind == KEYS:
        rolls.go_on(call, tx, platform, work.zone_id)
    elif work.kind == NAMES:
        _renew(call, tx, platform, work, stored)
    elif _is_due(tx, work.zone_id, stored, call.now_us):
        _DUE[stored.state](call, tx, platform, work.zone_id)


def put_off(call: Call, tx: Transaction, work: Work) -> None:
    """Try work that failed again later. Changes rows alone, which nothing wrong with a zone hinders."""
    later_us = call.now_us + rolls.LATER_US
    stored = stored_of(tx, work.zone_id)
    if work.kind == KEYS:
        rolls.put_off(tx, work.zone_id, call.now_us)
    elif work.kind == NAMES:
        _renew_later(tx, work, later_us)
    elif stored is not None:
        _put(tx, work.zone_id, msgspec.structs.replace(stored, retry_us=later_us))


def parent_said(
    call: Call, tx: Transaction, platform: Platform, zone_id: str, found: Iterable[bytes]
) -> None:
    """Take the DS records that the parent has for a zone; `found` is their RDATA, none when it has none."""
    stored, there = stored_of(tx, zone_id), frozenset(found)
    if stored is None or stored.state not in IS_SERVED:
        return
    apex = zone_facts.apex_of(zone_facts.editable(tx, zone_id).zone)
    ours = {keyset.ds(apex, key) for key in signing.keys(tx, zone_id) if keyset.signs_keys(key)}
    has_ours = bool(ours & there)
    others_us = None if has_ours or not there else stored.others_us or call.now_us
    if stored.state == LEAVING:
        _follow_leaving(call, tx, platform, zone_id, stored, is_there=bool(there))
    elif has_ours and stored.state != ACTIVE:
        _move(call, tx, platform, zone_id, Stored(ACTIVE, call.now_us, ds_us=call.now_us))
    elif not has_ours and stored.state == ACTIVE:
        _move(
            call, tx, platform, zone_id, Stored(OFFERED, call.now_us, ds_us=stored.ds_us, others_us=others_us)
        )
    elif others_us != stored.others_us:
        _put(tx, zone_id, msgspec.structs.replace(stored, others_us=others_us))
    if stored.state != LEAVING:
        rolls.parent_said(call, tx, platform, zone_id, there)


def _follow_leaving(
    call: Call, tx: Transaction, platform: Platform, zone_id: str, stored: Stored, *, is_there: bool
) -> None:
    """Unsign when the parent has had no DS for as long as one may be cached."""
    if is_there and stored.gone_us is not None:
        _put(tx, zone_id, Stored(LEAVING, stored.since_us, ds_us=call.now_us))
    elif not is_there and stored.gone_us is None:
        _put(tx, zone_id, Stored(LEAVING, stored.since_us, ds_us=stored.ds_us, gone_us=call.now_us))
    elif not is_there and stored.gone_us is not None and call.now_us - stored.gone_us >= waits.ds_us():
        _move(call, tx, platform, zone_id, Stored(UNSIGNING, call.now_us))


def _is_due(reader: Reader, zone_id: str, stored: Stored, now_us: int) -> bool:
    if stored.state == SIGNING:
        return not signing.is_incomplete(reader, zone_id)
    if stored.state == SIGNED:
        return now_us - stored.since_us >= _unsigned_us(reader, zone_id)
    return stored.state in (LISTING, UNSIGNING)


def _unsigned_us(reader: Reader, zone_id: str) -> int:
    """How long caches may have answers from before the signatures."""
    found = zone_facts.editable(reader, zone_id)
    return waits.records_us(zone_facts.facts_in(reader, found).soa)


def _list(call: Call, tx: Transaction, platform: Platform, zone_id: str) -> None:
    """Put the next names into the chain; the first time also the delegations that no record makes."""
    stored = stored_of(tx, zone_id)
    zone = zones.zone(tx, zone_id)
    assert stored is not None
    assert zone is not None
    apex = zone_facts.apex_of(zone)
    if not stored.after:
        signing.add_name(tx, zone_id, b"")
        edit = ZoneEdit(call, tx, platform, zone_id)
        edit.refresh(zone_facts.children(tx, zone))
        edit.finish()
    found = records.names_after(tx, zone_id, stored.after, LISTED_AT_ONCE)
    cuts = {names.wire_from_text(name) for name in records.cuts(tx, zone_id)} - {apex}
    cuts.update(names.wire_from_text(name) for name in zone_facts.children(tx, zone))
    for owner in map(names.wire_from_text, found):
        if not _is_below(owner, apex, cuts):
            signing.add_name(tx, zone_id, dnssec.place(owner[: len(owner) - len(apex)]))
    if len(found) < LISTED_AT_ONCE:
        _move(call, tx, platform, zone_id, Stored(SIGNING, stored.since_us))
    else:
        _put(tx, zone_id, Stored(LISTING, stored.since_us, after=found[-1]))


def _is_below(owner: bytes, apex: bytes, cuts: set[bytes]) -> bool:
    while cuts and owner != apex:
        owner = names.parent(owner)
        if owner in cuts:
            return True
    return False


def _sign(call: Call, tx: Transaction, platform: Platform, zone_id: str, places: Sequence[bytes]) -> None:
    """Make the signatures of names again, as far as they have to be; of a zone that loses them, none."""
    edit = ZoneEdit(call, tx, platform, zone_id)
    apex = zone_facts.apex_of(edit.zone)
    edit.sign_again([dnssec.relative_of(place) + apex for place in places])
    edit.finish()


def _renew(call: Call, tx: Transaction, platform: Platform, work: Work, stored: Stored) -> None:
    """Sign names that are due. What a zone loses has to be made no more; what is listed yet waits with it."""
    if stored.state == UNSIGNING:
        _unsign(call, tx, platform, work.zone_id)
    elif stored.state == LISTING:
        _renew_later(tx, work, stored.retry_us)
    else:
        _sign(call, tx, platform, work.zone_id, work.places)


def _renew_later(tx: Transaction, work: Work, renew_us: int) -> None:
    for place in work.places:
        signing.renew_later(tx, work.zone_id, place, renew_us)


def _complete(call: Call, tx: Transaction, platform: Platform, zone_id: str) -> None:
    _move(call, tx, platform, zone_id, Stored(SIGNED, call.now_us))


def _offer(call: Call, tx: Transaction, platform: Platform, zone_id: str) -> None:
    """`since_us` stays: what it says is since when the zone is signed. Raises KeysSealed."""
    stored = stored_of(tx, zone_id)
    assert stored is not None
    platform.seal.open_all(signing.keys(tx, zone_id))
    _move(call, tx, platform, zone_id, Stored(OFFERED, stored.since_us, others_us=stored.others_us))


def _unsign(call: Call, tx: Transaction, platform: Platform, zone_id: str) -> None:
    places = signing.some(tx, zone_id, SIGNED_AT_ONCE)
    if places:
        _sign(call, tx, platform, zone_id, places)
        for place in places:
            signing.remove_name(tx, zone_id, place)
        return
    signing.forget_keys(tx, zone_id)
    settings.delete(tx, zone_id, SETTING)


_DUE: Final = {LISTING: _list, SIGNING: _complete, SIGNED: _offer, UNSIGNING: _unsign}


def _state(reader: Reader, zone_id: str) -> str:
    stored = stored_of(reader, zone_id)
    return "" if stored is None else stored.state


def _put(tx: Transaction, zone_id: str, stored: Stored) -> None:
    settings.put(tx, zone_id, SETTING, stored_text(stored), stored.since_us)


def _move(call: Call, tx: Transaction, platform: Platform, zone_id: str, stored: Stored) -> None:
    """Change the state, and with it what the apex serves, and what the zone above says of this one."""
    edit = ZoneEdit(call, tx, platform, zone_id)
    _put(tx, zone_id, stored)
    edit.take_facts()
    if stored.state == UNSIGNING:
        edit.refresh(zone_facts.children(tx, edit.zone))
    edit.finish()
    delegations.render_again(call, tx, platform, edit.zone.name)
