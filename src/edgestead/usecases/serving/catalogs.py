"""The catalog zone of an account: a zone that lists its zones, for secondaries that follow it (RFC 9432).

Owns  its records, its serial, what the feed is told of it.
Not   its settings and who may change them (`usecases.account.catalogs`); transfers (`dns`).

It is one scope of the feed like a zone, and no row of `zones`: it has no records of its own, and nobody can
ask for what it lists but by a transfer. A member's label is the id of its zone, which no other zone gets:
a zone that is deleted and made again starts anew at the secondaries (RFC 9432 §5.4).
"""

from collections.abc import Iterable, Mapping, Sequence
from typing import Final

import msgspec

from edgestead.model import names, served
from edgestead.model.records import TYPES
from edgestead.model.served import ServedName, ServedRRset, ServedZone
from edgestead.store.control import Reader, Transaction
from edgestead.tables import settings, zones
from edgestead.usecases import limits
from edgestead.usecases.serving import followed, owners, serials
from edgestead.usecases.serving.publish import Journaled

CATALOG: Final = "catalog.zone"
GROUPS: Final = "catalog.groups"
VERSION: Final = b"2"
TTL_SECONDS: Final = 0  # RFC 9432 §4.1: it means nothing
_TIMERS: Final = (
    3_600,
    600,
    2_147_483_646,
    0,
)  # refresh, retry, expire, minimum: none grows old
_INVALID: Final = names.wire_from_text("invalid")  # RFC 9432 §4.1: an apex has a name server, this none
_NS, _PTR, _TXT = (TYPES[type_].number for type_ in ("NS", "PTR", "TXT"))

_encode = msgspec.json.Encoder().encode
_read_groups = msgspec.json.Decoder(tuple[str, ...]).decode
Names = Mapping[bytes, tuple[ServedRRset, ...]]


class Catalog(msgspec.Struct, frozen=True):
    """Which name it has, and the serial that secondaries know."""

    name: str
    serial: int


_read = msgspec.json.Decoder(Catalog).decode


def of_account(reader: Reader, account_id: str) -> Catalog | None:
    stored = settings.one(reader, account_id, CATALOG)
    return _read(stored.value) if stored else None


def every(reader: Reader) -> dict[str, Catalog]:
    """The catalogs of all accounts, by account."""
    return {account_id: _read(value) for account_id, value in settings.scopes(reader, CATALOG)}


def is_taken(reader: Reader, name: str) -> bool:
    """Whether a catalog, of ours or followed, has this name or one below it, which no zone can have then.

    Queries find the longest apex: a catalog below a zone would hide names of it.
    """
    found = [catalog.name for catalog in every(reader).values()]
    found += [catalog.name for catalog in followed.every(reader)]
    return any(taken == name or taken.endswith(f".{name}") for taken in found)


def groups_of(reader: Reader, zone_id: str) -> tuple[str, ...]:
    stored = settings.one(reader, zone_id, GROUPS)
    return _read_groups(stored.value) if stored else ()


def begin(tx: Transaction, account_id: str, name: str, now_us: int) -> None:
    """List all zones of an account under a new name. Tells the feed one name for each."""
    apex = names.wire_from_text(name)
    groups = {zone_id: _read_groups(value) for zone_id, value in settings.scopes(tx, GROUPS)}
    found: dict[bytes, tuple[ServedRRset, ...]] = {}
    found[apex] = (ServedRRset(_NS, TTL_SECONDS, (_INVALID,)),)
    found[_below("version", apex)] = (_texts((VERSION.decode(),)),)
    for zone in zones.of_account(tx, account_id, limits.CATALOG_MEMBERS_MAX):
        found |= _member(apex, zone.id, zone.name, groups.get(zone.id, ()))
    scope = _scope(account_id)
    for owner, rrsets in found.items():
        tx.emit(scope, served.KIND_NAME, owner.hex(), served.encode(ServedName(apex, owner, rrsets)))
    owners.tell(tx, scope, apex, account_id)
    catalog = Catalog(name, serials.at_birth(tx, name, now_us))
    tx.emit(scope, served.KIND_ZONE, "", served.encode(_zone(apex, catalog.serial)))
    _store(tx, account_id, catalog, now_us)


def end(tx: Transaction, account_id: str, now_us: int) -> None:
    """Forget an account's catalog. Secondaries keep the zones until their own timers end them."""
    catalog = of_account(tx, account_id)
    if catalog is not None:
        settings.delete(tx, account_id, CATALOG)
        serials.remember(tx, catalog.name, catalog.serial, now_us)
        tx.drop_scope(_scope(account_id))


def member_changed(tx: Transaction, account_id: str, zone_id: str, now_us: int) -> None:
    """A zone came, went or has other groups: list it as it is now, where its account has a catalog."""
    catalog = of_account(tx, account_id)
    if catalog is None:
        return
    apex, scope = names.wire_from_text(catalog.name), _scope(account_id)
    zone = zones.zone(tx, zone_id)
    after = _member(apex, zone_id, zone.name, groups_of(tx, zone_id)) if zone else {}
    journaled, is_new = Journaled(), False
    for owner in _owners(apex, zone_id):
        document = tx.newest(scope, served.KIND_NAME, owner.hex())
        before = served.decode_name(document).rrsets if document else ()
        rrsets = after.get(owner, ())
        if before != rrsets:
            is_new = True
            journaled.take(owner, before, rrsets)
            new = served.encode(ServedName(apex, owner, rrsets)) if rrsets else None
            tx.emit(scope, served.KIND_NAME, owner.hex(), new)
    if is_new:
        _goes_on(tx, account_id, catalog, serials.next_serial(catalog.serial), journaled, now_us)


def begin_again(tx: Transaction, now_us: int) -> None:
    """Every catalog under a serial that no change leads to: secondaries may know later ones than we do."""
    for account_id, catalog in every(tx).items():
        _goes_on(tx, account_id, catalog, serials.later(catalog.serial, now_us), None, now_us)


def _goes_on(
    tx: Transaction, account_id: str, catalog: Catalog, serial: int, journaled: Journaled | None, now_us: int
) -> None:
    """The journal's row, where one leads there, and the SOA last."""
    apex, scope = names.wire_from_text(catalog.name), _scope(account_id)
    after = _zone(apex, serial)
    if journaled is not None:
        row = journaled.row(_zone(apex, catalog.serial), after)
        tx.emit(scope, served.KIND_JOURNAL, f"{serial:08x}", row)
    tx.emit(scope, served.KIND_ZONE, "", served.encode(after))
    _store(tx, account_id, Catalog(catalog.name, serial), now_us)


def _scope(account_id: str) -> str:
    """No zone has this id."""
    return f"catalog:{account_id}"


def _store(tx: Transaction, account_id: str, catalog: Catalog, now_us: int) -> None:
    settings.put(tx, account_id, CATALOG, _encode(catalog).decode(), now_us)


def _zone(apex: bytes, serial: int) -> ServedZone:
    numbers = b"".join(number.to_bytes(4, "big") for number in (serial, *_TIMERS))
    return ServedZone(apex, TTL_SECONDS, _INVALID + _INVALID + numbers, private=True)


def _owners(apex: bytes, zone_id: str) -> tuple[bytes, bytes]:
    """Of a member: its own name, and that of its groups."""
    member = _below(f"{zone_id}.zones", apex)
    return member, _below("group", member)


def _member(apex: bytes, zone_id: str, name: str, groups: Sequence[str]) -> Names:
    """RFC 9432 §4.3.2 and §4.4.2."""
    member, group = _owners(apex, zone_id)
    found = {member: (ServedRRset(_PTR, TTL_SECONDS, (names.wire_from_text(name),)),)}
    return found | ({group: (_texts(groups),)} if groups else {})


def _texts(texts: Iterable[str]) -> ServedRRset:
    """One TXT record of one string each."""
    strings = (text.encode() for text in texts)
    return ServedRRset(_TXT, TTL_SECONDS, tuple(sorted(bytes((len(one),)) + one for one in strings)))


def _below(labels: str, name: bytes) -> bytes:
    return names.wire_from_text(labels)[:-1] + name
