"""Catalogs of other name servers that accounts follow: what is stored of them (RFC 9432 §5).

Owns  the rows of a followed catalog, of its state and of its members; what the feed is told of it.
Not   what may be said (`usecases.account.following`); what a catalog does to zones
      (`usecases.account.membership`); asking its primaries (`server.control.followed`).

A catalog has no row of `zones`: its settings have its own id as their scope. The feed knows its name as that
of a zone that was never transferred, so that a NOTIFY for it is heard and nobody can ask what it lists.
"""

from collections.abc import Mapping
from typing import Final

import msgspec

from edgestead.model import names, served
from edgestead.model.served import ServedZone
from edgestead.store.control import Reader, Transaction
from edgestead.tables import settings

CATALOG: Final = "followed.catalog"
STATE: Final = "followed.state"
MEMBER: Final = "followed.member"
_SOA: Final = b"\0\0" + bytes(20)  # nobody sees it

_encode = msgspec.json.Encoder().encode


class GroupSettings(msgspec.Struct, frozen=True, omit_defaults=True):
    """How zones of one group are configured. No peers: those of the catalog; None: as a zone is by itself,
    and of `dnssec_presigned` as the catalog has it.
    """

    peers: tuple[str, ...] = ()
    tsig_id: str | None = None
    secondary_overrides: bool | None = None
    dnssec_presigned: bool | None = None


NO_GROUP: Final = GroupSettings()


class Followed(msgspec.Struct, frozen=True):
    """A catalog that an account follows. `groups` by name; a zone has the settings of its first known one.

    `dnssec_presigned`: its zones are served as their primary signed them, those of a group with
    `secondary_overrides` apart, which excludes it.
    """

    id: str
    account_id: str
    name: str
    peers: tuple[str, ...]
    groups: Mapping[str, GroupSettings]
    grace_seconds: int
    created_us: int
    modified_us: int
    dnssec_presigned: bool | None = None

    def settings_of(self, groups: tuple[str, ...]) -> GroupSettings:
        found = next((self.groups[one] for one in groups if one in self.groups), NO_GROUP)
        if found.dnssec_presigned is not None or self.dnssec_presigned is None:
            return found
        is_presigned = self.dnssec_presigned and not found.secondary_overrides
        return msgspec.structs.replace(found, dnssec_presigned=is_presigned)


class State(msgspec.Struct, frozen=True):
    """As that of a secondary zone. `refused` has the members that are no zones here, with the reason.

    `again`: all of it is looked at with the next answer, although the serial is the same.
    """

    serial: int | None = None
    refresh: int = 3_600
    retry: int = 600
    checked_us: int = 0
    due_us: int = 0
    tries: int = 0
    problem: str = ""
    again: bool = False
    refused: Mapping[str, str] = {}


class Membership(msgspec.Struct, frozen=True, omit_defaults=True):
    """Of a zone that a catalog made: where it is listed, and `left_us`, since when it is not."""

    catalog_id: str
    label: str
    groups: tuple[str, ...] = ()
    coo: str = ""
    left_us: int = 0


_read = msgspec.json.Decoder(Followed).decode
_read_state = msgspec.json.Decoder(State).decode
_read_member = msgspec.json.Decoder(Membership).decode


def one(reader: Reader, catalog_id: str) -> Followed | None:
    stored = settings.one(reader, catalog_id, CATALOG)
    return _read(stored.value) if stored else None


def every(reader: Reader) -> list[Followed]:
    return [_read(value) for _, value in settings.scopes(reader, CATALOG)]


def of_account(reader: Reader, account_id: str) -> list[Followed]:
    """By name."""
    found = [catalog for catalog in every(reader) if catalog.account_id == account_id]
    return sorted(found, key=lambda catalog: catalog.name)


def put(tx: Transaction, catalog: Followed, now_us: int) -> None:
    settings.put(tx, catalog.id, CATALOG, _encode(catalog).decode(), now_us)


def begin(tx: Transaction, catalog: Followed, now_us: int) -> None:
    put(tx, catalog, now_us)
    zone = ServedZone(names.wire_from_text(catalog.name), 0, _SOA, lost=True)
    tx.emit(scope(catalog.id), served.KIND_ZONE, "", served.encode(zone))


def end(tx: Transaction, catalog_id: str) -> None:
    settings.delete_all(tx, catalog_id)
    tx.drop_scope(scope(catalog_id))


def scope(catalog_id: str) -> str:
    """No zone has this id."""
    return f"followed:{catalog_id}"


def states(reader: Reader) -> dict[str, State]:
    """Of every followed catalog, by id."""
    return {catalog_id: _read_state(value) for catalog_id, value in settings.scopes(reader, STATE)}


def state_of(reader: Reader, catalog_id: str) -> State:
    stored = settings.one(reader, catalog_id, STATE)
    return _read_state(stored.value) if stored else State()


def put_state(tx: Transaction, catalog_id: str, state: State, now_us: int) -> None:
    settings.put(tx, catalog_id, STATE, _encode(state).decode(), now_us)


def ask_soon(tx: Transaction, catalog_id: str, now_us: int, *, again: bool) -> None:
    """Have it asked for at once; with `again` all that it lists is looked at."""
    state = state_of(tx, catalog_id)
    state = msgspec.structs.replace(state, due_us=now_us, tries=0, again=again or state.again)
    put_state(tx, catalog_id, state, now_us)


def membership(reader: Reader, zone_id: str) -> Membership | None:
    stored = settings.one(reader, zone_id, MEMBER)
    return _read_member(stored.value) if stored else None


def memberships(reader: Reader) -> dict[str, Membership]:
    """Of every zone that a catalog made, by id."""
    return {zone_id: _read_member(value) for zone_id, value in settings.scopes(reader, MEMBER)}


def put_membership(tx: Transaction, zone_id: str, member: Membership, now_us: int) -> None:
    settings.put(tx, zone_id, MEMBER, _encode(member).decode(), now_us)


def forget_membership(tx: Transaction, zone_id: str) -> None:
    settings.delete(tx, zone_id, MEMBER)
