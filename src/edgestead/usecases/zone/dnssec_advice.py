"""What the operator of a zone has to do next for DNSSEC, in words.

Owns  the sentence for each state, and for each phase of a roll.
Not   the states (`usecases.serving.signing`), the phases (`usecases.serving.keyset`); what a parent says now.
"""

from collections.abc import Callable, Mapping
from typing import Final

from edgestead.model.times import six_digits
from edgestead.store.control import Reader
from edgestead.tables import signing
from edgestead.tables.signing import KeyRow
from edgestead.tables.zones import ZoneRow
from edgestead.usecases.serving import facts, keyset
from edgestead.usecases.serving.keyset import PUBLISHED, RETIRED, RETIRING
from edgestead.usecases.serving.rendering import Soa
from edgestead.usecases.serving.signing import (
    ACTIVE,
    LEAVING,
    LISTING,
    OFFERED,
    SIGNED,
    SIGNING,
    UNSIGNING,
    Stored,
)
from edgestead.usecases.zone import rolls, waits

_UNSIGNED: Final = "The zone is not signed."
_OTHERS: Final = (
    "Resolvers that validate take every answer of these servers for forged: the parent has had a DS since"
    " {when} UTC, but none of this zone's keys. Have the registrar add the DS shown here at once, and remove"
    " any other that no signer of the zone has."
)
_FOR_OTHERS: Final = (
    "Key {key} is published and takes over on {when} UTC. Have the zone's other providers add its DNSKEY"
    " record by {until} UTC: resolvers that have their keys could not validate its signatures else."
)
_IS_SIGNED_SOON: Final = "The zone is being signed; its DS is here when that is done."


def next_step(reader: Reader, zone: ZoneRow, stored: Stored | None) -> str:
    """One or two sentences; times are UTC."""
    if stored is None:
        return _UNSIGNED
    if stored.is_bogus:
        return _OTHERS.format(when=_minute(stored.others_us or 0))
    if stored.state in rolls.ROLLING:
        found = _of_roll(reader, zone)
        if found:
            return found
    return _STATES[stored.state](stored, facts.facts_of(reader, zone).soa)


def _of_roll(reader: Reader, zone: ZoneRow) -> str:
    rows, soa = signing.keys(reader, zone.id), facts.facts_of(reader, zone).soa
    if facts.stored_dnssec(reader, zone.id).multi_signer:
        for row in rows:
            if row.phase == PUBLISHED and keyset.has_zone_right(row.role):
                until = _minute(rolls.told_us(reader, zone.id, row) + waits.others_us())
                when = _minute(rolls.takes_over_us(reader, zone.id, row, soa))
                return _FOR_OTHERS.format(key=keyset.tag(row), until=until, when=when)
    for at_parent, phase, words in _ROLLS:
        for row in rows:
            if row.phase == phase and keyset.signs_keys(row) is at_parent:
                gone_us = row.since_us + waits.old_key_us(soa)
                due_us = rolls.takes_over_us(reader, zone.id, row, soa) if phase == PUBLISHED else gone_us
                return words.format(
                    key=keyset.tag(row), successor=_successor(rows, row), when=_minute(due_us)
                )
    return ""


def _successor(rows: list[KeyRow], row: KeyRow) -> int:
    found = [one for one in rows if one.phase == keyset.ACTIVE and keyset.overlap(one.role, row.role)]
    return keyset.tag(found[-1]) if found else 0


_ROLLS: Final = (
    (
        True,
        RETIRING,
        "Key {successor} replaces key {key}: give its DS to the registrar in the place of the old one, unless"
        " the registrar reads CDS records. Key {key} stays until the parent has had the new DS for two days.",
    ),
    (
        True,
        RETIRED,
        "The parent has the DS of key {successor}. Have the registrar remove the DS of key {key}, if it is"
        " there still; the key itself goes on {when} UTC.",
    ),
    (
        True,
        PUBLISHED,
        "Key {key} is published and takes over on {when} UTC. Nothing is to be done before that.",
    ),
    (
        False,
        PUBLISHED,
        "Key {key} is published and takes over on {when} UTC. Nothing is to be done.",
    ),
    (False, RETIRING, "Signatures are made again with key {successor}. Nothing is to be done."),
    (
        False,
        RETIRED,
        "Key {successor} has replaced key {key}, which goes on {when} UTC. Nothing is to be done.",
    ),
)
"""What is said of a key by whether the parent knows it and by its phase; the most urgent first."""


def _of_signed(stored: Stored, soa: Soa) -> str:
    safe = _minute(stored.since_us + waits.records_us(soa))
    return (
        f"Wait until {safe} UTC: until then resolvers may have cached answers without signatures. Then give"
        " the DS to the registrar."
    )


def _of_leaving(stored: Stored, _: Soa) -> str:
    if stored.gone_us is None:
        return "Have the registrar remove the DS. Signing ends two days after it is gone."
    return f"The DS is gone. Signing ends by itself on {_minute(stored.gone_us + waits.ds_us())} UTC."


_STATES: Final[Mapping[str, Callable[[Stored, Soa], str]]] = {
    LISTING: lambda *_: _IS_SIGNED_SOON,
    SIGNING: lambda *_: _IS_SIGNED_SOON,
    SIGNED: _of_signed,
    OFFERED: lambda *_: "Give the DS to the registrar, which puts it into the parent zone.",
    ACTIVE: lambda *_: "Nothing is to be done: the zone is secure.",
    LEAVING: _of_leaving,
    UNSIGNING: lambda *_: _UNSIGNED,
}


def _minute(us: int) -> str:
    """As 2026-01-02 03:04."""
    return six_digits(us)[:16].replace("T", " ")
