"""The audit log: one row for each request that changed something, written in the transaction of the change.

Owns  what is written down of a change, its JSON shape, filters, what is forgotten when.
Not   which requests are written down (`rest.rights`); a zone's history, whose row has the same request id and
      says what a record was and became.

A row names who (credentials with the token's name, or the machine's operator), when, from where, what was
done to which resource, and how it was called before and after. No value of any resource is in it, so no
secret can be.
"""

from collections.abc import Mapping
from datetime import UTC, date, datetime, timedelta
from functools import lru_cache
from ipaddress import IPv4Address, IPv6Address, ip_address, ip_network
from typing import Any, NamedTuple

import msgspec

from edgestead.model.call import Call
from edgestead.model.envelope import Listed
from edgestead.model.refusals.request import InvalidQuery
from edgestead.model.times import six_digits
from edgestead.store.control import Reader, Transaction
from edgestead.tables import audit
from edgestead.tables.audit import AuditRow, FoundRow, Wanted
from edgestead.tables.zones import ZoneRow

FORGOTTEN_ROWS_MAX = 500  # deleted in one transaction: about 5 ms of the writer's time
ROW_OCTETS = 180  # of a row and its entries of indexes, beside its texts
RESULT_OCTETS_READ_MAX = 16_384  # a longer one is of many things: 10 µs
ADDRESSES_KEPT_MAX = 1_024  # in the form of the column: reading one takes 3 µs
OPERATOR = "operator"
_TIME_CHARACTERS_MAX = 40
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_ACTORS = {"user": "user", "account": "account", OPERATOR: "admin"}
_IDENTIFIERS = ("id", "name", "title", "email", "ns_name", "type", "status", "version")
_encode = msgspec.json.Encoder().encode


class Where(NamedTuple):
    """Where a request came from: the client's address, and what it used."""

    address: str | None
    interface: str


class About(NamedTuple):
    """What a request is about, as its path says. `resource_id` is empty for what it creates."""

    action: str
    resource_type: str
    resource_id: str = ""
    account_id: str | None = None
    zone_id: str | None = None
    scope: str = "account"


class Before(NamedTuple):
    """What a change may end: how the resource was called, and a zone's account and name."""

    account_id: str | None
    zone_name: str | None
    was: dict[str, str] | None


class Action(msgspec.Struct, frozen=True):
    result: bool
    type: str


class ActorView(msgspec.Struct, frozen=True):
    """`type` is user, account (an account's own token) or admin (a command on the server's machine)."""

    id: str
    email: str | None
    ip: str | None
    type: str


class Owner(msgspec.Struct, frozen=True):
    id: str


class Resource(msgspec.Struct, frozen=True):
    id: str
    type: str


class EntryView(msgspec.Struct, frozen=True):
    """One change, in the members that clients of such logs know. `metadata` has the token, the zone and the
    request id. Values are identifiers only; the members that end in `Json` are the same as objects.
    """

    id: str
    action: Action
    actor: ActorView
    interface: str
    metadata: dict[str, str]
    newValue: str
    newValueJson: dict[str, Any] | None
    oldValue: str
    oldValueJson: dict[str, Any] | None
    owner: Owner
    resource: Resource
    when: str


def before(reader: Reader, about: About) -> Before:
    """Asked ahead of the change: one statement for what has a name, none for what is created."""
    if not about.resource_id:
        return Before(about.account_id, None, None)
    was = {"id": about.resource_id}
    if about.resource_type == "zone":
        account_id, name = audit.zone(reader, about.resource_id) or (None, None)
        return Before(account_id, name, was | ({"name": name} if name else {}))
    name = audit.name_of(reader, about.resource_type, about.resource_id)
    return Before(about.account_id, None, was | ({"name": name} if name else {}))


def note(call: Call, tx: Transaction, where: Where, about: About, held: Before, result: object) -> None:
    """Write the change down, in its transaction. `result` is what was answered."""
    deletes = about.action == "delete"
    became = None if deletes else _identifiers(result)
    resource_id = about.resource_id or next(iter((became or {}).values()), "")
    account_id, zone_id, zone_name = held.account_id, about.zone_id, held.zone_name
    if about.resource_type == "zone" and zone_id is None:
        zone_id, zone_name = resource_id, (became or {}).get("name")
        account_id = getattr(getattr(result, "account", None), "id", None)
    elif about.resource_type == "account" and account_id is None:
        account_id = resource_id
    actor = call.actor
    write(
        tx,
        AuditRow(
            made_us=call.now_us,
            account_id=account_id,
            scope="zone" if zone_id else about.scope,
            zone_id=zone_id,
            zone_name=zone_name,
            actor_kind=actor.kind,
            actor_id=actor.id,
            actor_email=actor.email,
            token_id=actor.token_id,
            address=where.address,
            network=_octets(where.address),
            interface=where.interface,
            action=about.action,
            resource_type=about.resource_type,
            resource_id=resource_id or zone_id or account_id or actor.id,
            was=_text(held.was),
            became=_text(became),
            request_id=call.request_id,
            octets=0,
        ),
    )


def note_command(tx: Transaction, now_us: int, action: str, resource_type: str, resource_id: str) -> None:
    """A command of the machine's operator that is no request."""
    nobody = (None, "account", None, None, OPERATOR, "", None, None, None, None, "edgecli")
    write(tx, AuditRow(now_us, *nobody, action, resource_type, resource_id, None, None, "", 0))


def note_zone(tx: Transaction, now_us: int, zone: ZoneRow, action: str, interface: str) -> None:
    """What the server did to a zone of an account because something followed from what it was told."""
    named = _text({"id": zone.id, "name": zone.name})
    was, became = (named, None) if action == "delete" else (None, named)
    row = AuditRow(
        made_us=now_us,
        account_id=zone.account_id,
        scope="zone",
        zone_id=zone.id,
        zone_name=zone.name,
        actor_kind="account",
        actor_id=zone.account_id,
        actor_email=None,
        token_id=None,
        address=None,
        network=None,
        interface=interface,
        action=action,
        resource_type="zone",
        resource_id=zone.id,
        was=was,
        became=became,
        request_id="",
        octets=0,
    )
    write(tx, row)


def write(tx: Transaction, row: AuditRow) -> None:
    octets = ROW_OCTETS + sum(len(part) for part in row if isinstance(part, str))
    audit.insert(tx, row._replace(octets=octets))


def listed(reader: Reader, wanted: Wanted, *, descending: bool, limit: int, offset: int) -> Listed:
    rows = audit.listed(reader, wanted, descending=descending, limit=limit, offset=offset)
    return Listed([_view(row) for row in rows], audit.count(reader, wanted))


def due(reader: Reader, octets_max: int, older_than_us: int) -> int:
    """Up to which row the log is to be forgotten; 0 for none. It reads all of it: not for the writer."""
    return audit.due(reader, octets_max, older_than_us)


def forget(tx: Transaction, floor: int) -> bool:
    """Delete some of what `due` named; True when there may be more."""
    return audit.delete_some(tx, floor, FORGOTTEN_ROWS_MAX) == FORGOTTEN_ROWS_MAX


def time_of(parameter: str, text: str | None) -> int | None:
    """RFC 3339, or a day: microseconds since the epoch. Raises InvalidQuery."""
    if not text:
        return None
    try:
        if len(text) > _TIME_CHARACTERS_MAX:
            raise ValueError
        moment = datetime.fromisoformat(text)
        if moment.tzinfo is None:
            moment = datetime.combine(date.fromisoformat(text), datetime.min.time(), UTC)
    except ValueError:
        reason = "a day is written 2026-01-31, a time 2026-01-31T12:00:00Z"
        raise InvalidQuery(parameter=parameter, reason=reason) from None
    return (moment - _EPOCH) // timedelta(microseconds=1)


def networks_of(parameter: str, text: str | None) -> tuple[bytes, bytes] | None:
    """The first and the last address of a network, or of one address. Raises InvalidQuery."""
    if not text:
        return None
    try:
        network = ip_network(text, strict=False)
    except ValueError:
        raise InvalidQuery(parameter=parameter, reason="an address or a network is expected") from None
    return _key(network.network_address), _key(network.broadcast_address)


def sequence_of(text: str | None) -> int | None:
    """The row of an id; one that cannot be has none."""
    if not text:
        return None
    try:
        return int(text[16:], 16) if len(text) == 32 else 0
    except ValueError:
        return 0


@lru_cache(ADDRESSES_KEPT_MAX)
def _octets(address: str | None) -> bytes | None:
    try:
        return None if address is None else _key(ip_address(address))
    except ValueError:
        return None  # a test's client


def _key(address: IPv4Address | IPv6Address) -> bytes:
    """IPv4 as IPv6 has it (RFC 4291 §2.5.5.2), so that both order in one column."""
    return address.packed if address.version == 6 else bytes(10) + b"\xff\xff" + address.packed


def _identifiers(result: object) -> dict[str, Any] | None:
    """What a result says of itself: by which names it is known, and the roles of a member."""
    if isinstance(result, bytes):  # the API's JSON, ready
        result = msgspec.json.decode(result) if len(result) <= RESULT_OCTETS_READ_MAX else None
    if isinstance(result, Mapping):
        found = {key: result[key] for key in _IDENTIFIERS if isinstance(result.get(key), str)}
    else:
        found = {key: text for key in _IDENTIFIERS if isinstance(text := getattr(result, key, None), str)}
    roles = getattr(result, "roles", None)
    if roles:
        found["roles"] = ", ".join(getattr(role, "name", str(role)) for role in roles)
    return found or None


def _text(value: Mapping[str, Any] | None) -> str | None:
    return _encode(value).decode() if value else None


def _value(text: str | None) -> dict[str, Any] | None:
    return msgspec.json.decode(text) if text else None


def _view(found: FoundRow) -> EntryView:
    row = found.row
    named = {
        "token_id": row.token_id,
        "token_name": found.token_name,
        "zone_id": row.zone_id,
        "zone_name": row.zone_name,
        "request_id": row.request_id,
    }
    return EntryView(
        id=f"{row.made_us:016x}{found.sequence:016x}",
        action=Action(True, row.action),
        actor=ActorView(row.actor_id, row.actor_email, row.address, _ACTORS[row.actor_kind]),
        interface=row.interface,
        metadata={key: value for key, value in named.items() if value},
        newValue=row.became or "",
        newValueJson=_value(row.became),
        oldValue=row.was or "",
        oldValueJson=_value(row.was),
        owner=Owner(row.actor_id),
        resource=Resource(row.resource_id, row.resource_type),
        when=six_digits(row.made_us),
    )
