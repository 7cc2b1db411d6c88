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
from edgestead.usecases.serving import bootstrapping, keyset
from edgestead.usecases.serving import facts as zone_facts
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
from edgestead.usecases.zone import rolls, waits

SIGNED_AT_ONCE: Final = 150  # names in one transaction: about 25 ms of the writer's time
LISTED_AT_ONCE: Final = 1_000  # names that are put into the chain in one transaction: about 15 ms
OTHERS_AT_ONCE: Final = 200  # names of other zones that are made in one transaction
LOOKED_AT_ONCE: Final = 5_000  # signed zones that are looked at for names to make: about 50 ms
AT_ONCE_RECORDS_MAX: Final = 500  # zones up to this size are signed within the request: about 100 ms
_LISTS_AT_ONCE_MAX: Final = 3  # pieces of listing within the request: names, delegations, signals
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
        for _ in range(_LISTS_AT_ONCE_MAX):
            if _state(tx, zone.id) == LISTING:
                _list(call, tx, platform, zone.id)
        if _state(tx, zone.id) == LISTING:
            return  # names of other zones may be far more than its own
        places = signing.some(tx, zone.id, 2 * AT_ONCE_RECORDS_MAX + 1)
        _sign(call, tx, platform, zone.id, places)
        if not signing.is_incomplete(tx, zone.id):
            _complete(call, tx, platform, zone.id)


def resume(call: Call, tx: Transaction, platform: Platform, zone_id: str) -> None:
    """Take back the end of signing, while the zone is still signed."""
    stored = stored_of(tx, zone_id)
    assert stored is not None
    _move(call, tx, platform, zone_id, _without_ds(tx, zone_id, stored, call.now_us))


def end(call: Call, tx: Transaction, platform: Platform, zone_id: str, stored: Stored) -> None:
    """Start to end signing: at once where no resolver can have seen a signature, else when the DS is gone."""
    state = LEAVING if stored.state in IS_SERVED else UNSIGNING
    _move(call, tx, platform, zone_id, _in_state(stored, state, call.now_us))


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


def is_renewal(reader: Reader, work: Work) -> bool:
    """Whether it makes signatures again that are served already."""
    stored = stored_of(reader, work.zone_id)
    return work.kind == NAMES and stored is not None and stored.state in IS_SERVED


def go_on(call: Call, tx: Transaction, platform: Platform, work: Work) -> None:
    """Do a piece of work, as far as there is need for it still. Raises KeysSealed, and what a bug raises."""
    stored = stored_of(tx, work.zone_id)
    if stored is None:  # the zone was deleted: its names would come first for ever
        for place in work.places:
            signing.remove_name(tx, work.zone_id, place)
    elif work.kind == KEYS:
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
        found_it = _in_state(stored, ACTIVE, call.now_us)
        _move(call, tx, platform, zone_id, msgspec.structs.replace(found_it, ds_us=call.now_us))
    elif not has_ours and stored.state == ACTIVE:
        lost_it = _without_ds(tx, zone_id, stored, call.now_us)
        _move(call, tx, platform, zone_id, msgspec.structs.replace(lost_it, others_us=others_us))
    elif others_us != stored.others_us:
        _put(tx, zone_id, msgspec.structs.replace(stored, others_us=others_us))
    if stored.state != LEAVING:
        rolls.parent_said(call, tx, platform, zone_id, there)


def _follow_leaving(
    call: Call, tx: Transaction, platform: Platform, zone_id: str, stored: Stored, *, is_there: bool
) -> None:
    """Unsign when the parent has had no DS for as long as one may be cached."""
    if is_there and stored.gone_us is not None:
        _put(tx, zone_id, msgspec.structs.replace(stored, ds_us=call.now_us, gone_us=None))
    elif not is_there and stored.gone_us is None:
        _put(tx, zone_id, msgspec.structs.replace(stored, gone_us=call.now_us))
    elif not is_there and stored.gone_us is not None and call.now_us - stored.gone_us >= waits.ds_us():
        _move(call, tx, platform, zone_id, Stored(UNSIGNING, call.now_us))


def _is_due(reader: Reader, zone_id: str, stored: Stored, now_us: int) -> bool:
    if stored.state == SIGNING:
        return not signing.is_incomplete(reader, zone_id)
    if stored.state == SIGNED:
        return now_us - stored.since_us >= _unsigned_us(reader, zone_id)
    return stored.state in (LISTING, UNSIGNING)


def _without_ds(reader: Reader, zone_id: str, stored: Stored, now_us: int) -> Stored:
    """Of a signed zone whose DS the parent has not: offered, unless caches have answers from before still."""
    is_early = now_us - stored.signed_us < _unsigned_us(reader, zone_id)
    state, since_us = (SIGNED, stored.signed_us) if is_early else (OFFERED, now_us)
    return _in_state(stored, state, since_us)


def _in_state(stored: Stored, state: str, since_us: int) -> Stored:
    """Another state of a signed zone. What belonged to the one before goes; when the DS was seen stays, and
    since when answers have signatures.
    """
    return Stored(state, since_us, ds_us=stored.ds_us, signed_us=stored.signed_us)


def _unsigned_us(reader: Reader, zone_id: str) -> int:
    """How long caches may have answers from before the signatures."""
    found = zone_facts.editable(reader, zone_id)
    return waits.records_us(zone_facts.facts_in(reader, found).soa)


def _list(call: Call, tx: Transaction, platform: Platform, zone_id: str) -> None:
    """Put the next names into the chain: those with records, delegations that no record makes, then signals.

    A zone that comes meanwhile finds this one on its way, and puts its own name there.
    """
    stored = stored_of(tx, zone_id)
    zone = zones.zone(tx, zone_id)
    assert stored is not None
    assert zone is not None
    after = _LIST[stored.part](call, tx, platform, zone, stored.after)
    if after is not None:
        _put(tx, zone_id, Stored(LISTING, stored.since_us, part=stored.part, after=after))
    elif stored.part in _NEXT_PART:
        _put(tx, zone_id, Stored(LISTING, stored.since_us, part=_NEXT_PART[stored.part]))
    else:
        _move(call, tx, platform, zone_id, Stored(SIGNING, stored.since_us))


def _list_records(call: Call, tx: Transaction, platform: Platform, zone: ZoneRow, after: str) -> str | None:
    """Returns the last name that was listed, None when there are no more."""
    apex = zone_facts.apex_of(zone)
    if not after:
        signing.add_name(tx, zone.id, b"")
    found = records.names_after(tx, zone.id, after, LISTED_AT_ONCE)
    cuts = {names.wire_from_text(name) for name in records.cuts(tx, zone.id)} - {apex}
    cuts.update(names.wire_from_text(name) for name in zone_facts.children(tx, zone.name))
    for owner in map(names.wire_from_text, found):
        if not _is_below(owner, apex, cuts):
            signing.add_name(tx, zone.id, dnssec.place(owner[: len(owner) - len(apex)]))
    return found[-1] if len(found) == LISTED_AT_ONCE else None


def _list_children(call: Call, tx: Transaction, platform: Platform, zone: ZoneRow, after: str) -> str | None:
    """As `_list_records`, for our zones below."""
    found = [name for name in zone_facts.children(tx, zone.name) if name > after][:OTHERS_AT_ONCE]
    _refresh(call, tx, platform, zone.id, found)
    return found[-1] if len(found) == OTHERS_AT_ONCE else None


def _list_signals(call: Call, tx: Transaction, platform: Platform, zone: ZoneRow, after: str) -> str | None:
    """As `_list_records`, by the ids of the zones that are signalled."""
    looked_at = settings.scopes_after(tx, SETTING, after, LOOKED_AT_ONCE)
    is_last, found = len(looked_at) < LOOKED_AT_ONCE, list[str]()
    for other_id in looked_at:
        if len(found) >= OTHERS_AT_ONCE:
            is_last = False
            break
        found += bootstrapping.told_in(tx, platform.renderer, zone, other_id)
        after = other_id
    _refresh(call, tx, platform, zone.id, found)
    return None if is_last else after


def _refresh(call: Call, tx: Transaction, platform: Platform, zone_id: str, found: Sequence[str]) -> None:
    if found:
        edit = ZoneEdit(call, tx, platform, zone_id)
        edit.refresh(found)
        edit.finish()


_LIST: Final = {"": _list_records, "children": _list_children, "signals": _list_signals}
_NEXT_PART: Final = {"": "children", "children": "signals"}


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
    _move(call, tx, platform, zone_id, Stored(SIGNED, call.now_us, signed_us=call.now_us))


def _offer(call: Call, tx: Transaction, platform: Platform, zone_id: str) -> None:
    """`since_us` stays: what it says is since when the zone is signed. Raises KeysSealed."""
    stored = stored_of(tx, zone_id)
    assert stored is not None
    platform.seal.open_all(signing.keys(tx, zone_id))
    _move(call, tx, platform, zone_id, msgspec.structs.replace(stored, state=OFFERED, retry_us=0))


def _unsign(call: Call, tx: Transaction, platform: Platform, zone_id: str) -> None:
    places = signing.some(tx, zone_id, SIGNED_AT_ONCE)
    if places:
        edit = ZoneEdit(call, tx, platform, zone_id)
        apex = zone_facts.apex_of(edit.zone)
        owners = [dnssec.relative_of(place) + apex for place in places]
        texts = [names.text_from_wire(owner) for owner in owners]
        edit.refresh([text for text in texts if text != edit.zone.name and _is_of_others(tx, text)])
        edit.sign_again(owners)
        edit.finish()
        for place in places:
            signing.remove_name(tx, zone_id, place)
        return
    signing.forget_keys(tx, zone_id)
    settings.delete(tx, zone_id, SETTING)


_DUE: Final = {LISTING: _list, SIGNING: _complete, SIGNED: _offer, UNSIGNING: _unsign}


def _is_of_others(reader: Reader, name: str) -> bool:
    """Whether a name of a zone may be there for another zone of ours: its delegation or its signal."""
    return bootstrapping.is_name(name) or zones.id_by_name(reader, name) is not None


def _state(reader: Reader, zone_id: str) -> str:
    stored = stored_of(reader, zone_id)
    return "" if stored is None else stored.state


def _put(tx: Transaction, zone_id: str, stored: Stored) -> None:
    settings.put(tx, zone_id, SETTING, stored_text(stored), stored.since_us)


def _move(call: Call, tx: Transaction, platform: Platform, zone_id: str, stored: Stored) -> None:
    """Change the state, and with it what the apex serves."""
    edit = ZoneEdit(call, tx, platform, zone_id)
    _put(tx, zone_id, stored)
    edit.take_facts()
    edit.finish()
