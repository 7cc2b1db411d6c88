"""An account's own name servers: names of its own instead of the server's.

Owns  their shape and rules; serving the apexes of zones that use a set which changes.
Not   choosing a set for a zone (`usecases.zone.dns_settings`).

A name server's addresses are the A and AAAA records of its name in a zone of ours. `dns_records` shows them:
they are the glue that the parent of that zone must have. Without an address it is `pending`.
"""

import msgspec

from edgestead.model import names
from edgestead.model.call import Call
from edgestead.model.names import InvalidName
from edgestead.model.refusals.setting import (
    NameserverExists,
    NameserverInUse,
    NameserverNotFound,
    NameserverRefused,
    TooManyNameservers,
)
from edgestead.model.settings import CUSTOM_ACCOUNT, NAMESERVERS, NS_SET
from edgestead.store.control import Reader, Transaction
from edgestead.tables import custom_nameservers, flattened, records, zones
from edgestead.tables.custom_nameservers import NameserverRow
from edgestead.usecases import limits
from edgestead.usecases.change.edit import ZoneEdit
from edgestead.usecases.lookup import account_of
from edgestead.usecases.platform import Platform
from edgestead.usecases.serving.facts import FAMILY, Nameservers


class NameserverBody(msgspec.Struct, frozen=True):
    ns_name: str | None = None
    ns_set: int | None = None


class Glue(msgspec.Struct, frozen=True):
    type: str
    value: str


class NameserverView(msgspec.Struct, frozen=True):
    """Contract "Custom nameservers". `zone_tag` is the zone of ours that the name stands in."""

    ns_name: str
    ns_set: int
    zone_tag: str | None
    status: str
    dns_records: list[Glue]


def listed(reader: Reader, account_id: str) -> list[NameserverView]:
    """By set and name. Raises AccountNotSeen."""
    account_of(reader, account_id)
    return [_view(reader, account_id, row) for row in custom_nameservers.all_of(reader, account_id)]


def add(
    call: Call, tx: Transaction, platform: Platform, account_id: str, body: NameserverBody
) -> NameserverView:
    """Add a name to a set; the zones of that set serve it. Raises AccountNotSeen, NameserverRefused,
    NameserverExists, TooManyNameservers.
    """
    account_of(tx, account_id)
    row = NameserverRow(_host(body.ns_name), _set(body.ns_set))
    if custom_nameservers.one(tx, account_id, row.ns_name) is not None:
        raise NameserverExists(ns_name=row.ns_name, pointer="/ns_name")
    if len(custom_nameservers.all_of(tx, account_id)) >= limits.CUSTOM_NAMESERVERS_MAX:
        raise TooManyNameservers(nameservers_max=limits.CUSTOM_NAMESERVERS_MAX)
    users = _Users(call, tx, platform, account_id, row.ns_set)
    custom_nameservers.insert(tx, account_id, row, call.now_us)
    users.serve()
    return _view(tx, account_id, row)


def remove(call: Call, tx: Transaction, platform: Platform, account_id: str, ns_name: str) -> None:
    """Raises AccountNotSeen, NameserverNotFound; NameserverInUse: zones would be left without a server."""
    account_of(tx, account_id)
    row = custom_nameservers.one(tx, account_id, ns_name.lower().rstrip("."))
    if row is None:
        raise NameserverNotFound(ns_name=names.shown(ns_name)[1:-1])
    users = _Users(call, tx, platform, account_id, row.ns_set)
    if users.zones and len(custom_nameservers.names_of_set(tx, account_id, row.ns_set)) == 1:
        raise NameserverInUse(ns_name=row.ns_name, ns_set=row.ns_set)
    custom_nameservers.delete(tx, account_id, row.ns_name)
    users.serve()


def availability(reader: Reader, account_id: str) -> list[str]:
    """Names of the account's zones, below which name servers can be named. Raises AccountNotSeen."""
    account_of(reader, account_id)
    return zones.names_of_account(reader, account_id)


class _Users:
    """The zones that use a set. Make it before the set changes, call `serve` afterwards.

    More than ZONES_SERVED_ANEW_MAX would block the writer: the upkeep publishes them again, one by one.
    """

    def __init__(self, call: Call, tx: Transaction, platform: Platform, account_id: str, ns_set: int) -> None:
        value = msgspec.json.encode(Nameservers(CUSTOM_ACCOUNT, ns_set)).decode()
        self._tx = tx
        self._wanted = (account_id, f"{FAMILY}.{NAMESERVERS}", value)
        self.zones = zones.with_setting(tx, *self._wanted, limits.ZONES_SERVED_ANEW_MAX + 1)
        self._are_many = len(self.zones) > limits.ZONES_SERVED_ANEW_MAX
        begun = () if self._are_many else self.zones
        self._edits = [ZoneEdit(call, tx, platform, zone.id) for zone in begun]

    def serve(self) -> None:
        if self._are_many:
            flattened.refresh_zones_with(self._tx, *self._wanted)
        for edit in self._edits:
            edit.take_facts()
            edit.finish()


def _host(text: str | None) -> str:
    if not text:
        raise NameserverRefused(reason="ns_name is required.", pointer="/ns_name")
    try:
        name = names.wire_from_text(text.strip())
        names.check_zone_name(name)
    except InvalidName as error:
        raise NameserverRefused(reason=f"{error.reason}.", pointer="/ns_name") from None
    return names.text_from_wire(name)


def _set(number: int | None) -> int:
    if number is None:
        return 1
    if not NS_SET.lowest <= number <= NS_SET.highest:
        raise NameserverRefused(reason=f"ns_set is {NS_SET.wording}.", pointer="/ns_set")
    return number


def _view(reader: Reader, account_id: str, row: NameserverRow) -> NameserverView:
    zone_id = _zone_around(reader, account_id, row.ns_name)
    glue = []
    if zone_id is not None:
        glue = [Glue(type_, content) for type_, content in records.addresses_at(reader, zone_id, row.ns_name)]
    return NameserverView(row.ns_name, row.ns_set, zone_id, "verified" if glue else "pending", glue)


def _zone_around(reader: Reader, account_id: str, name: str) -> str | None:
    """The account's zone that has the most labels of the name."""
    while name:
        zone_id = zones.id_by_name(reader, name)
        if zone_id is not None:
            return zone_id if zones.account_id(reader, zone_id) == account_id else None
        name = name.partition(".")[2]
    return None
