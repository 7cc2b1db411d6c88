"""Use cases of zones: create, get, list, delete.

Owns  a zone's birth and end, and what its first and last documents in the feed are.
Asks  `services.serving` to render, `services.access` for what a caller sees, `tables`.
Tells `api.zones`.
Not   records (`services.records`); settings.
"""

from typing import NamedTuple

import msgspec

from edgestead.model import names, served
from edgestead.model.call import Call
from edgestead.model.envelope import Page
from edgestead.model.names import InvalidName
from edgestead.model.plans import PLAN_AT_BIRTH
from edgestead.model.request_errors import MissingField
from edgestead.model.zone_errors import (
    AccountNotSeen,
    ZoneExists,
    ZoneNameRefused,
    ZoneNotFound,
    ZoneTypeRefused,
)
from edgestead.services import access
from edgestead.services.access import Identity, Target
from edgestead.services.platform import Platform
from edgestead.services.serving import SERIAL_END, Renderer
from edgestead.services.zone_view import ZoneView, view
from edgestead.store.control import Reader, Transaction
from edgestead.tables import accounts, records, zones
from edgestead.tables.accounts import AccountRow
from edgestead.tables.zones import ZoneRow

STATUSES = ("initializing", "pending", "active", "moved")
TYPES = ("full", "partial", "secondary", "internal")
_WRITE = "Zone Write"
_READ = "Zone Read"


class AccountRef(msgspec.Struct, frozen=True):
    id: str | None = None


class ZoneBody(msgspec.Struct, frozen=True):
    """What create takes; `jump_start` and other members are ignored."""

    name: str | None = None
    account: AccountRef | None = None
    type: str | None = None


class ListWish(NamedTuple):
    """What a list asks for. A filter that is None lets everything through."""

    name: str | None
    status: str | None
    account_id: str | None
    order: str
    descending: bool
    page: int
    per_page: int


class Zones:
    """The use cases, bound to what this server is."""

    def __init__(self, platform: Platform, renderer: Renderer) -> None:
        self._platform = platform
        self._renderer = renderer

    def create(self, call: Call, tx: Transaction, identity: Identity, body: ZoneBody) -> ZoneView:
        """Raises MissingField, ZoneNameRefused, ZoneTypeRefused, ZoneExists, AccountNotSeen."""
        apex = _apex(body.name)
        if body.type not in (None, "full"):
            raise ZoneTypeRefused(type=body.type, pointer="/type")
        account = _account(tx, identity, body.account)
        name = names.text_from_wire(apex)
        if zones.name_is_taken(tx, name):
            raise ZoneExists(name=name, pointer="/name")
        row = ZoneRow(
            id=self._platform.new_id(),
            account_id=account.id,
            name=name,
            type="full",
            status="active",
            paused=0,
            plan=PLAN_AT_BIRTH,
            serial=call.now_us // 1_000_000 % SERIAL_END,
            record_count=0,
            created_us=call.now_us,
            modified_us=call.now_us,
            activated_us=call.now_us,
        )
        zones.insert(tx, row)
        accounts.add_to_zone_count(tx, account.id, 1)
        tx.emit(row.id, served.KIND_ZONE, "", served.encode(self._renderer.zone(apex, row.serial)))
        tx.emit(row.id, served.KIND_NAME, apex.hex(), served.encode(self._renderer.name(apex, apex, ())))
        return view(row, account.name, self._platform, identity)

    def get(self, reader: Reader, identity: Identity, zone_id: str) -> ZoneView:
        """Raises ZoneNotFound."""
        return self._shown(reader, identity, _zone(reader, zone_id))

    def listed(self, reader: Reader, identity: Identity, wish: ListWish) -> Page:
        """One page of the zones that the caller sees. A page past the end is empty."""
        wanted = {
            key: value
            for key, value in (
                ("name", None if wish.name is None else _name(wish.name)),
                ("status", wish.status),
                ("account.id", wish.account_id),
            )
            if value is not None
        }
        seen = access.seen_zones(identity, _READ)
        total = zones.count(reader, wanted, seen) if wanted or seen else accounts.zone_count(reader)
        offset = (wish.page - 1) * wish.per_page
        rows = []
        if offset < total:
            rows = zones.listed(reader, wanted, seen, wish.order, wish.descending, wish.per_page, offset)
        items = [self._shown(reader, identity, row) for row in rows]
        return Page(items, wish.page, wish.per_page, total)

    def delete(self, tx: Transaction, zone_id: str) -> None:
        """The zone and everything in it. Raises ZoneNotFound."""
        zone = _zone(tx, zone_id)
        records.delete_all(tx, zone_id)
        zones.delete(tx, zone_id)
        accounts.add_to_zone_count(tx, zone.account_id, -1)
        tx.drop_scope(zone_id)

    def _shown(self, reader: Reader, identity: Identity, row: ZoneRow) -> ZoneView:
        account = accounts.account(reader, row.account_id)
        assert account is not None, "zones refer to accounts"
        return view(row, account.name, self._platform, identity)


def _apex(text: str | None) -> bytes:
    if not text:
        raise MissingField(field="name", pointer="/name")
    try:
        apex = names.wire_from_text(text)
        names.check_zone_name(apex)
    except InvalidName as error:
        raise ZoneNameRefused(reason=error.reason, pointer="/name") from None
    return apex


def _name(text: str) -> str:
    """A filter's name as the column holds it. What cannot be a name finds nothing, which is no error."""
    try:
        return names.text_from_wire(names.wire_from_text(text))
    except InvalidName:
        return text


def _account(reader: Reader, identity: Identity, wanted: AccountRef | None) -> AccountRow:
    """The account that was named, or the only one that the caller may make zones in."""
    if wanted is not None and wanted.id:
        found = accounts.account(reader, wanted.id)
        allowed = [found] if found is not None and _may_make(identity, found.id) else []
    else:
        allowed = [row for row in accounts.all_accounts(reader) if _may_make(identity, row.id)]
    if not allowed:
        raise AccountNotSeen
    if len(allowed) > 1:
        raise MissingField(field="account.id", pointer="/account/id")
    return allowed[0]


def _may_make(identity: Identity, account_id: str) -> bool:
    """A new zone has no id yet that a policy could name: the account's zones must be covered."""
    return access.permits(identity, _WRITE, Target(account_id=account_id, zone_id=""))


def _zone(reader: Reader, zone_id: str) -> ZoneRow:
    zone = zones.zone(reader, zone_id)
    if zone is None:
        raise ZoneNotFound
    return zone
