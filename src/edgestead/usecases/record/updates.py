"""A dynamic update: its prerequisites, then all of its changes, in one transaction (RFC 2136).

Owns  what a prerequisite means here, and what each line of an update does.
Not   the message; who may send it; what a record may hold, which the rules of every write say.

What a client sees are the zone's own records: of a proxied name the origin's addresses, of an alias the
alias, whatever DNS answers. At the apex SOA and NS exist, which the server makes: they count for
prerequisites, and no update takes them away. A TTL outside the zone's limits becomes the nearest one inside.
"""

from collections import Counter
from collections.abc import Iterable, Iterator
from typing import Final

import msgspec

from edgestead.model import names, served
from edgestead.model.call import Call
from edgestead.model.names import InvalidName
from edgestead.model.plans import PLANS
from edgestead.model.records import TYPES, from_wire
from edgestead.model.refusals.record import RecordRefused
from edgestead.model.update import (
    ANY,
    FORMERR,
    IN,
    NONE,
    NOTAUTH,
    NOTZONE,
    NXDOMAIN,
    NXRRSET,
    REFUSED,
    YXDOMAIN,
    YXRRSET,
    Line,
    NotDone,
    Update,
)
from edgestead.store.control import Transaction
from edgestead.tables.records import Neighbour
from edgestead.usecases import limits
from edgestead.usecases.change.edit import ZoneEdit
from edgestead.usecases.lookup import zone_of
from edgestead.usecases.platform import Platform
from edgestead.usecases.record import draft as record_draft
from edgestead.usecases.record.draft import RecordBody
from edgestead.usecases.serving.facts import SECONDARY

_BY_NUMBER: Final = {row.number: row for row in TYPES.values()}
_SOA, _NS, _CNAME = (TYPES[name].number for name in ("SOA", "NS", "CNAME"))
_META: Final = frozenset({0, 41, *range(128, 256)})  # questions, and what stands in messages only (RFC 6895)
_HAVE_NAMES: Final = frozenset({"CNAME", "MX", "NS", "PTR", "SRV"})  # compared without case


class Rights(msgspec.Struct, frozen=True):
    """What a key may change. Names may begin with an asterisk and a dot; without any it is every one."""

    token_id: str = ""
    names: tuple[str, ...] = ()
    types: tuple[str, ...] = ()


class _Allowed:
    """Rights as lines are compared with them: on the wire, where a dot inside a label is none between two."""

    def __init__(self, rights: Rights) -> None:
        self._exact = {names.wire_from_text(one) for one in rights.names if not one.startswith("*.")}
        self._above = {names.wire_from_text(one[2:]) for one in rights.names if one.startswith("*.")}
        self._any_name = not rights.names
        self._types = {TYPES[one].number for one in rights.types}

    def has(self, line: Line) -> bool:
        return (not self._types or line.type in self._types) and self.has_name(line.owner)

    def has_name(self, owner: bytes) -> bool:
        return self._any_name or owner in self._exact or not self._above.isdisjoint(_above(owner))


def _above(name: bytes) -> Iterator[bytes]:
    """The names that a name is below, the root last."""
    while name != names.ROOT:
        name = names.parent(name)
        yield name


def run(
    call: Call, tx: Transaction, platform: Platform, zone_id: str, update: Update, rights: Rights
) -> int | None:
    """All of an update or nothing of it; returns the number of the change in the zone's history, None when
    nothing changed. Raises NotDone, ZoneNotFound.
    """
    if zone_of(tx, zone_id).type == SECONDARY:
        raise NotDone(NOTAUTH, "it is a secondary zone, which is changed at its primary")
    work = _Work(call, tx, platform, zone_id, update.apex)
    work.check_size((*update.prerequisites, *update.updates))
    allowed = _Allowed(rights)
    if not all(allowed.has_name(line.owner) for line in update.prerequisites if line.class_ == IN):
        # DNS tells that a name is there, but not the origin of a proxied one, which could be guessed so.
        raise NotDone(REFUSED, "the key may not compare records of other names")
    work.check(update.prerequisites)
    if not all(map(allowed.has, update.updates)):
        raise NotDone(REFUSED, "the key is for other names or types")
    for line in update.updates:
        work.check_form(line)
    try:
        for line in update.updates:
            work.do(line)
        return work.finish()
    except RecordRefused as refusal:
        raise NotDone(REFUSED, refusal.message) from None


class _Work:
    def __init__(self, call: Call, tx: Transaction, platform: Platform, zone_id: str, apex: bytes) -> None:
        self._call, self._tx, self._platform, self._zone_id = call, tx, platform, zone_id
        self._apex = apex
        self._edit = ZoneEdit(call, tx, platform, zone_id)
        self.finish = self._edit.finish

    def check_size(self, lines: Iterable[Line]) -> None:
        """Raises NotDone: it would hold up everybody else's writes."""
        counts = Counter(line.owner for line in lines)
        work = sum(count * (count + len(self._at(owner))) for owner, count in counts.items())
        if work > limits.UPDATE_WORK_MAX:
            raise NotDone(REFUSED, "so many lines at names with so many records")

    def check(self, lines: Iterable[Line]) -> None:
        """RFC 2136 §3.2. Raises NotDone."""
        wanted: dict[tuple[bytes, int], set[bytes]] = {}
        for line in lines:
            if line.ttl:
                raise NotDone(FORMERR, "a prerequisite has no TTL")
            self._check_inside(line)
            if line.class_ == IN:
                wanted.setdefault((line.owner, line.type), set()).add(_comparable(line.type, line.rdata))
            elif line.class_ in (ANY, NONE) and not line.rdata:
                self._check_there(line)
            else:
                raise NotDone(FORMERR, "a prerequisite of another form")
        for (owner, kind), rdatas in wanted.items():
            if self._rrset(owner, kind) != rdatas:
                raise NotDone(NXRRSET)

    def _check_there(self, line: Line) -> None:
        """§2.4.1, §2.4.3, §2.4.4, §2.4.5."""
        if line.type == ANY:
            is_there = bool(self._at(line.owner)) or line.owner == self._apex
            missing, present = NXDOMAIN, YXDOMAIN
        else:
            is_there = bool(self._rrset(line.owner, line.type))
            missing, present = NXRRSET, YXRRSET
        if is_there != (line.class_ == ANY):
            raise NotDone(present if is_there else missing)

    def check_form(self, line: Line) -> None:
        """§3.4.1. Raises NotDone."""
        self._check_inside(line)
        is_meta = line.type in _META
        if line.class_ == IN:
            is_right = not is_meta
        elif line.class_ == ANY:
            is_right = not line.ttl and not line.rdata and (not is_meta or line.type == ANY)
        else:
            is_right = line.class_ == NONE and not line.ttl and not is_meta
        if not is_right:
            raise NotDone(FORMERR, "an update of another form")

    def _check_inside(self, line: Line) -> None:
        if not names.is_at_or_below(line.owner, self._apex):
            raise NotDone(NOTZONE)

    def do(self, line: Line) -> None:
        """§3.4.2."""
        if line.class_ == IN:
            self._add(line)
        elif line.class_ == ANY:
            self._delete([one for one in self._at(line.owner) if self._is_meant(line, one)])
        elif line.type != _SOA:
            rdata = _comparable(line.type, line.rdata)
            self._delete([one for one in self._of_type(line.owner, line.type) if _of_row(one) == rdata])

    def _is_meant(self, line: Line, one: Neighbour) -> bool:
        if line.owner == self._apex and one.type in ("SOA", "NS"):
            return False
        return line.type in (ANY, TYPES[one.type].number)

    def _add(self, line: Line) -> None:
        """What is there already gets the new TTL; an alias is replaced, and nothing comes beside one."""
        row = _BY_NUMBER.get(line.type)
        if row is None:
            raise NotDone(REFUSED, f"records of type {line.type} are not kept")
        if line.type == _SOA:
            return  # its serial is the server's
        found = self._at(line.owner)
        others = [one for one in found if (one.type == "CNAME") != (line.type == _CNAME)]
        if others:
            return
        rdata = from_wire(row.name, line.rdata)
        body = RecordBody(
            type=row.name,
            name=names.text_from_wire(line.owner),
            content=rdata.to_content(),
            priority=rdata.top_priority,
            ttl=self._ttl(line.ttl),
        )
        compared = _comparable(line.type, line.rdata)
        same = [one for one in found if one.type == row.name]
        if line.type != _CNAME:
            same = [one for one in same if _of_row(one) == compared]
        if same:
            old = self._edit.records.find(same[0].id)
            change = body if line.type == _CNAME else RecordBody(ttl=body.ttl)
            patched = record_draft.patched(self._call, self._edit.zone, self._platform, change, old)
            self._edit.records.replace(old, patched)
        else:
            self._edit.records.create(record_draft.draft(self._call, self._edit.zone, self._platform, body))

    def _ttl(self, seconds: int) -> int:
        return max(PLANS[self._edit.zone.plan].ttl_seconds_min, min(seconds, limits.TTL_SECONDS_MAX))

    def _delete(self, found: Iterable[Neighbour]) -> None:
        for one in found:
            self._edit.records.delete(self._edit.records.find(one.id))

    def _at(self, owner: bytes) -> list[Neighbour]:
        """As of now: what earlier lines did is there."""
        try:
            return list(self._edit.records.at(names.text_from_wire(owner), owner).records)
        except InvalidName:
            return []

    def _of_type(self, owner: bytes, kind: int) -> list[Neighbour]:
        return [one for one in self._at(owner) if TYPES[one.type].number == kind]

    def _rrset(self, owner: bytes, kind: int) -> set[bytes]:
        if owner == self._apex and kind in (_SOA, _NS):
            return self._served_at_apex(kind)
        return {_of_row(one) for one in self._of_type(owner, kind)}

    def _served_at_apex(self, kind: int) -> set[bytes]:
        zone, apex = self._tx.newest_of(
            self._zone_id, [(served.KIND_ZONE, ""), (served.KIND_NAME, self._apex.hex())]
        )
        if kind == _SOA:
            return {served.decode_zone(zone).soa_rdata.lower()} if zone else set()
        rrsets = served.decode_name(apex).rrsets if apex else ()
        return {rdata.lower() for rrset in rrsets if rrset.type == kind for rdata in rrset.rdatas}


def _of_row(one: Neighbour) -> bytes:
    return one.rdata.lower() if one.type in _HAVE_NAMES else one.rdata


def _comparable(kind: int, rdata: bytes) -> bytes:
    """Rdata as it is kept, if it can be. Raises NotDone: it is of another form."""
    row = _BY_NUMBER.get(kind)
    if row is None or kind == _SOA:
        return rdata.lower() if kind == _SOA else rdata
    try:
        rdata = from_wire(row.name, rdata).to_wire()
    except RecordRefused:
        return rdata
    return rdata.lower() if row.name in _HAVE_NAMES else rdata
