"""Rolls: the keys of a signed zone are replaced by new ones, by time or when somebody asks.

Owns  every move of the table in `usecases.serving.keyset`.
Not   how long a phase lasts at least (`usecases.zone.waits`); the zone's own states
      (`usecases.zone.signing`); asking the parent (`server.control.parents`).

A key that the parent knows moves on only when the parent was asked and has its successor's DS: while nobody
can say, or nobody gives it to the registrar, the old one stays. When the zone is being unsigned all stay.
"""

from collections.abc import Collection, Iterable
from typing import Final

from edgestead.model import dnssec
from edgestead.model.call import Call
from edgestead.model.refusals.setting import RollRefused
from edgestead.store.control import Reader, Transaction
from edgestead.tables import settings, signing
from edgestead.tables.signing import NEVER_US, KeyRow
from edgestead.usecases.change.edit import ZoneEdit
from edgestead.usecases.platform import Platform
from edgestead.usecases.serving import facts, keyset
from edgestead.usecases.serving import signing as signing_states
from edgestead.usecases.serving.facts import stored_dnssec
from edgestead.usecases.serving.keyset import ACTIVE, PUBLISHED, RETIRED, RETIRING
from edgestead.usecases.serving.rendering import Soa
from edgestead.usecases.zone import waits

_US: Final = 1_000_000
DAY_US: Final = 86_400 * _US
LOOK_US: Final = 7 * DAY_US  # between two looks whether an active key is to be replaced: settings that
# say so may have been brought back by an undo or a restore, which tell nobody here
WATCH_US: Final = 60 * _US  # between two whether the last signature of a key was replaced
LATER_US: Final = 3_600 * _US  # when a zone's work cannot be done now: its keys cannot be opened, say
ZONES_AT_ONCE: Final = 20  # in one round of the background, each in a transaction of its own
KEYS_MAX: Final = 6  # of a zone: a CSK that waits for its DS, and its split into two that roll
ROLLING: Final = frozenset((signing_states.SIGNED, signing_states.OFFERED, signing_states.ACTIVE))


def due(reader: Reader, now_us: int) -> list[str]:
    """Zones whose keys are to be looked at, the most urgent first; ZONES_AT_ONCE at most."""
    return signing.zones_with_due_keys(reader, now_us, ZONES_AT_ONCE)


def go_on(call: Call, tx: Transaction, platform: Platform, zone_id: str) -> None:
    """Take the steps of a zone's keys that are due. Raises KeysSealed."""
    KeyRing(call, tx, platform, zone_id).step()


def put_off(tx: Transaction, zone_id: str, now_us: int) -> None:
    """Look at what is due later."""
    for row in signing.keys(tx, zone_id):
        if row.due_us <= now_us:
            signing.set_phase(tx, row.id, row.phase, row.since_us, now_us + LATER_US)


def make_keys(call: Call, tx: Transaction, platform: Platform, zone_id: str) -> None:
    """The first keys of a zone, in the place of any others."""
    signing.forget_keys(tx, zone_id)
    for role in stored_dnssec(tx, zone_id).roles:
        _add_key(call, tx, platform, zone_id, role, ACTIVE, call.now_us + LATER_US)


def roll(call: Call, tx: Transaction, platform: Platform, zone_id: str, role: str | None) -> None:
    """Begin to replace the key of a role, or without one every key. Raises RollRefused, KeysSealed.

    Every key too where those that sign are still of another layout: one of the new would replace it by half.
    """
    ring = KeyRing(call, tx, platform, zone_id)
    has = stored_dnssec(tx, zone_id).roles
    if role is not None and role not in has:
        raise RollRefused(reason=f"the zone has no {role}, but {' and '.join(has)}", pointer="/role")
    roles = has if role is None or ring.active_roles != set(has) else (role,)
    if not ring.may_publish(roles):
        raise RollRefused(reason="its keys are being replaced already")
    ring.publish(roles)


def look_now(tx: Transaction, zone_id: str) -> None:
    """Settings of the keys changed: the background looks at the active ones at once."""
    for row in signing.keys(tx, zone_id):
        if row.phase == ACTIVE:
            signing.set_phase(tx, row.id, ACTIVE, row.since_us, 0)


def parent_said(
    call: Call, tx: Transaction, platform: Platform, zone_id: str, there: Collection[bytes]
) -> None:
    """Take the DS records that the parent has of a zone whose keys roll; `there` is their RDATA."""
    if is_waiting_for_parent(signing.keys(tx, zone_id)):
        KeyRing(call, tx, platform, zone_id).follow_parent(there)


def is_waiting_for_parent(rows: Iterable[KeyRow]) -> bool:
    """Whether a key stays until the parent has its successor's DS for long enough."""
    return any(keyset.signs_keys(row) and row.phase in (RETIRING, RETIRED) for row in rows)


def told_us(reader: Reader, zone_id: str, row: KeyRow) -> int:
    """Since when the zone's other providers can have a published key: since the settings that say that there
    are any, at the earliest.
    """
    found = settings.one(reader, zone_id, facts.DNSSEC)
    return max(row.since_us, found.modified_us if found else 0)


def takes_over_us(reader: Reader, zone_id: str, row: KeyRow, soa: Soa) -> int:
    """When a published key is to become active. Other providers may have come after it was published."""
    if not stored_dnssec(reader, zone_id).multi_signer:
        return row.due_us
    return max(row.due_us, told_us(reader, zone_id, row) + waits.shared_keys_us(soa))


class KeyRing:
    """The keys of one zone in one transaction."""

    def __init__(self, call: Call, tx: Transaction, platform: Platform, zone_id: str) -> None:
        self._call = call
        self._tx = tx
        self._platform = platform
        self._zone_id = zone_id
        self._edit = ZoneEdit(call, tx, platform, zone_id)
        self._apex = facts.apex_of(self._edit.zone)
        self._facts = facts.facts_of(tx, self._edit.zone)
        self._wanted = stored_dnssec(tx, zone_id)

    @property
    def rows(self) -> list[KeyRow]:
        """As they are now."""
        return signing.keys(self._tx, self._zone_id)

    @property
    def active_roles(self) -> set[str]:
        return {row.role for row in self.rows if row.phase == ACTIVE}

    def step(self) -> None:
        """Take what is due. Raises KeysSealed."""
        if self._facts.signing not in ROLLING:
            put_off(self._tx, self._zone_id, self._call.now_us)
            return
        self._platform.seal.open_all(self.rows)
        due = [row for row in self.rows if row.due_us <= self._call.now_us]
        ready = []
        for row in due:
            if row.phase == PUBLISHED:
                when_us = takes_over_us(self._tx, self._zone_id, row, self._facts.soa)
                if when_us > self._call.now_us:
                    self._set_due(row, when_us)
                else:
                    ready.append(row)
        if ready:
            self._activate(ready)
        for row in due:
            match row.phase:
                case keyset.ACTIVE:
                    self._look(row)
                case keyset.RETIRING:
                    self._watch(row)
                case keyset.RETIRED:
                    self._remove([row])

    def may_publish(self, roles: Iterable[str]) -> bool:
        """Whether no key with one of these roles' rights is on its way in or out."""
        roles = tuple(roles)
        moving = [row for row in self.rows if row.phase != ACTIVE]
        is_free = not any(keyset.overlap(row.role, role) for row in moving for role in roles)
        return is_free and len(self.rows) + len(roles) <= KEYS_MAX

    def publish(self, roles: Iterable[str]) -> None:
        """New keys that sign nothing of the zone yet. Raises KeysSealed."""
        self._platform.seal.open_all(self.rows)  # a new key would be sealed under another secret than the old
        is_shared = self._wanted.multi_signer
        due_us = self._call.now_us + (waits.shared_keys_us if is_shared else waits.keys_us)(self._facts.soa)
        for role in roles:
            _add_key(self._call, self._tx, self._platform, self._zone_id, role, PUBLISHED, due_us)
        self._serve()

    def follow_parent(self, there: Collection[bytes]) -> None:
        """Move the keys on that the parent knew."""
        wanted = keyset.digests(self._apex, self.rows)
        is_there = bool(wanted) and all(one in there for one in wanted)
        gone = []
        for row in self.rows:
            if not keyset.signs_keys(row):
                continue
            if row.phase == RETIRING and is_there and self._has_left_zone(row):
                self._set(row, RETIRED, NEVER_US)
            elif row.phase == RETIRED and not is_there:
                self._set(row, RETIRING, NEVER_US)
            elif row.phase == RETIRED and self._is_over(row, waits.old_key_us(self._facts.soa)):
                gone.append(row)
        if gone:
            self._remove(gone)

    def _look(self, row: KeyRow) -> None:
        """Replace an active key whose days are over, or which the zone's layout does not have."""
        if row not in self.rows:
            return  # a key that took over in this step succeeds it
        self._set_due(row, self._next_look(row))
        roles = self._to_replace(row)
        if roles and self.may_publish(roles):
            self.publish(roles)

    def _to_replace(self, row: KeyRow) -> tuple[str, ...]:
        """The roles of the keys that should replace an active one now; none when it stays."""
        wanted = self._wanted
        if row.role not in wanted.roles:
            return wanted.roles
        days = wanted.days(row.role)
        if not days or not self._is_over(row, days * DAY_US):
            return ()
        is_secure = self._facts.signing == signing_states.ACTIVE
        return (row.role,) if is_secure or not keyset.signs_keys(row) else ()

    def _next_look(self, row: KeyRow) -> int:
        now_us = self._call.now_us
        end_us = row.since_us + self._wanted.days(row.role) * DAY_US
        return min(end_us, now_us + LOOK_US) if end_us > now_us else now_us + LOOK_US

    def _is_over(self, row: KeyRow, us: int) -> bool:
        return self._call.now_us - row.since_us >= us

    def _activate(self, ready: list[KeyRow]) -> None:
        """The keys of `ready` take over from those that do the same; keys that do less than those, never."""
        roles = {row.role for row in ready}
        old = [
            row
            for row in self.rows
            if row.phase == ACTIVE and any(keyset.overlap(row.role, one) for one in roles)
        ]
        if not keyset.do_all_of(roles, {row.role for row in old}):
            self._remove(ready)
            look_now(self._tx, self._zone_id)
            return
        for row in old:
            self._set(row, RETIRING, NEVER_US if keyset.signs_keys(row) else self._call.now_us + WATCH_US)
        for row in ready:
            self._set(row, ACTIVE, self._call.now_us)
        if any(keyset.has_zone_right(row.role) for row in ready):
            signing.renew_all(self._tx, self._zone_id, self._call.now_us)
            self._edit.sign_again([self._apex])
        self._serve()

    def _watch(self, row: KeyRow) -> None:
        """A ZSK whose last signature was replaced is not needed any more, but by caches."""
        if self._has_left_zone(row):
            self._set(row, RETIRED, self._call.now_us + waits.old_key_us(self._facts.soa))
        else:
            self._set_due(row, self._call.now_us + WATCH_US)

    def _has_left_zone(self, row: KeyRow) -> bool:
        """Whether no name of the zone is served with a signature of a key that signs it no longer."""
        if not keyset.has_zone_right(row.role):
            return True
        (successor,) = (one for one in self.rows if keyset.signs_zone(one))
        return not signing.is_signed_by_others(self._tx, self._zone_id, keyset.tag(successor))

    def _remove(self, gone: Iterable[KeyRow]) -> None:
        for row in gone:
            signing.remove_key(self._tx, row.id)
        self._serve()

    def _set(self, row: KeyRow, phase: str, due_us: int) -> None:
        signing.set_phase(self._tx, row.id, phase, self._call.now_us, due_us)

    def _set_due(self, row: KeyRow, due_us: int) -> None:
        signing.set_phase(self._tx, row.id, row.phase, row.since_us, due_us)

    def _serve(self) -> None:
        """What the apex serves of the keys has changed."""
        self._edit.take_facts()
        self._edit.finish()
        self._edit = ZoneEdit(self._call, self._tx, self._platform, self._zone_id)


def _add_key(
    call: Call, tx: Transaction, platform: Platform, zone_id: str, role: str, phase: str, due_us: int
) -> None:
    """Make a key whose tag no other of the zone has: signatures are told apart by it. 0 are none."""
    taken = {0, *(keyset.tag(row) for row in signing.keys(tx, zone_id))}
    while True:
        new, flags = platform.seal.new_key(zone_id), keyset.FLAGS[role]
        if dnssec.key_tag(dnssec.dnskey(flags, new.public)) not in taken:
            break
    now_us = call.now_us
    row = KeyRow(
        platform.new_id(), zone_id, flags, new.public, new.sealed, now_us, role, phase, now_us, due_us
    )
    signing.add_key(tx, row)
