"""The use cases of zones.

Owns  what each of them does, in one transaction; a zone's JSON shape.
Not   records; settings (`usecases.zone.settings`, `usecases.zone.dns_settings`); permissions.
"""

from collections.abc import Sequence

import msgspec

from edgestead.model import names, served
from edgestead.model.call import Call
from edgestead.model.envelope import Listed
from edgestead.model.names import InvalidName
from edgestead.model.plans import PLAN_AT_BIRTH, PLANS
from edgestead.model.refusals.account import AccountNotSeen
from edgestead.model.refusals.request import MissingField
from edgestead.model.refusals.secondary import ZoneIsSecondary
from edgestead.model.refusals.zone import (
    ZoneExists,
    ZoneNameRefused,
    ZoneNotFound,
    ZoneQuota,
    ZoneTypeRefused,
)
from edgestead.model.settings import DEVELOPMENT_MODE
from edgestead.model.times import six_digits
from edgestead.store.control import Reader, Transaction
from edgestead.tables import accounts, carried, flattened, records, rulesets, settings, zones
from edgestead.tables import signing as signing_rows
from edgestead.tables.accounts import AccountRow
from edgestead.tables.zones import Seen, Wanted, ZoneRow
from edgestead.usecases.access.authorise import Identity, Target, permits
from edgestead.usecases.change.edit import ZoneEdit
from edgestead.usecases.change.log import PAUSED
from edgestead.usecases.platform import Platform
from edgestead.usecases.serving import bootstrapping, catalogs, edge_feed, owners, serials
from edgestead.usecases.serving import certificates as served_certificates
from edgestead.usecases.serving import facts as zone_facts
from edgestead.usecases.serving.facts import SECONDARY
from edgestead.usecases.zone import (
    delegations,
    dns_settings,
    history,
    hold,
    nameservers,
    refreshing,
    secondary,
)
from edgestead.usecases.zone import plans as zone_plans
from edgestead.usecases.zone.plans import PlanView
from edgestead.usecases.zone.settings import development_seconds

SWEPT_ROWS_MAX = 500  # of one transaction: about 5 ms of the writer's time
TYPES_OFFERED = ("full", SECONDARY)
ORDERS = tuple(zones.ORDERS)


class Reference(msgspec.Struct, frozen=True):
    id: str | None = None
    name: str | None = None


class Unit(msgspec.Struct, frozen=True):
    id: str | None = None


class ZoneBody(msgspec.Struct, frozen=True):
    """What create takes. `jump_start` asks for a scan of the old name servers, which is not done."""

    name: str | None = None
    account: Reference | None = None
    type: str | None = None


class ZonePatch(msgspec.Struct, frozen=True):
    """What patch takes: any of these, although the hosted service takes one at a time."""

    paused: bool | None = None
    type: str | None = None
    vanity_name_servers: list[str] | None = None
    plan: Reference | None = None


class ZoneMeta(msgspec.Struct, frozen=True):
    step: int = 4
    custom_certificate_quota: int = 0
    page_rule_quota: int = 0
    phishing_detected: bool = False


class Owner(msgspec.Struct, frozen=True):
    id: str | None
    type: str
    email: str | None


class ZoneView(msgspec.Struct, frozen=True, kw_only=True):
    """Contract "Zone object"."""

    id: str
    name: str
    status: str
    paused: bool
    type: str
    development_mode: int
    name_servers: tuple[str, ...]
    original_name_servers: None = None
    original_registrar: None = None
    original_dnshost: None = None
    modified_on: str
    created_on: str
    activated_on: str | None
    vanity_name_servers: tuple[str, ...] = ()
    vanity_name_servers_ips: None = None
    meta: ZoneMeta = ZoneMeta()
    owner: Owner
    account: Reference
    tenant: Reference = Reference()
    tenant_unit: Unit = Unit()
    permissions: tuple[str, ...]
    plan: PlanView


def create(call: Call, tx: Transaction, platform: Platform, identity: Identity, body: ZoneBody) -> ZoneView:
    """Take on a zone; it is active at once, with its SOA and NS served.

    Raises ZoneNameRefused, ZoneTypeRefused, ZoneExists, ZoneQuota, AccountNotSeen.
    """
    name = _name(body.name)
    if body.type is not None and body.type not in TYPES_OFFERED:
        raise ZoneTypeRefused(type=names.shown(body.type), pointer="/type")
    account = _account(tx, identity, body.account)
    row = add(call, tx, platform, account, name, body.type or "full")
    return _view(call, tx, platform, identity, row)


def add(
    call: Call,
    tx: Transaction,
    platform: Platform,
    account: AccountRow,
    name: str,
    type_: str,
    *,
    is_again: bool = False,
) -> ZoneRow:
    """A new zone of an account, whoever wants it; `is_again` in the place of one that was deleted just now.

    Raises ZoneExists, ZoneQuota, and what a hold raises.
    """
    apex, is_secondary = names.wire_from_text(name), type_ == SECONDARY
    if zones.name_is_taken(tx, name):
        raise ZoneExists(name=name, pointer="/name")
    check_may_have(call, tx, account.id, name)
    if not is_again and 0 < platform.quotas.account_zones <= account.zone_count:
        raise ZoneQuota(zones_max=platform.quotas.account_zones)
    row = ZoneRow(
        id=platform.new_id(),
        account_id=account.id,
        name=name,
        type=type_,
        status="active",
        paused=0,
        plan=PLAN_AT_BIRTH,
        serial=0 if is_secondary else serials.at_birth(tx, name, call.now_us),
        record_count=0,
        version=0,
        created_us=call.now_us,
        modified_us=call.now_us,
        activated_us=call.now_us,
    )
    zones.insert(tx, row)
    accounts.add_to_zone_count(tx, account.id, 1)
    if is_secondary:
        secondary.begin(call, tx, platform, row, apex)
    else:
        dns_settings.give_defaults(call, tx, account.id, row.id)
        _announce(tx, platform, row, apex)
    edge_feed.tell_zone(tx, row)
    catalogs.member_changed(tx, account.id, row.id, call.now_us)
    owners.tell(tx, row.id, apex, row.account_id)
    refreshing.zone_came_or_went(tx, name)
    delegations.render_again(call, tx, platform, name)
    return row


def check_may_have(call: Call, reader: Reader, account_id: str, name: str) -> None:
    """What else than another zone keeps an account from one of this name. Raises ZoneExists, ZoneOnHold."""
    if catalogs.is_taken(reader, name):
        raise ZoneExists(name=name, pointer="/name")
    hold.check_free(call, reader, account_id, name)


def delete(call: Call, tx: Transaction, platform: Platform, zone_id: str) -> None:
    """Forget a zone with everything in it; DNS stops to answer for it. Raises ZoneNotFound.

    The records are out of sight at once, and out of the database when `sweep` has been called often enough.
    """
    row = _row(tx, zone_id)
    signals = bootstrapping.of_zone(tx, platform.renderer, row)
    rulesets.delete_all(tx, "zone", zone_id)
    settings.delete_all(tx, zone_id)
    zones.delete(tx, zone_id)
    serials.remember(tx, row.name, row.serial, call.now_us)
    accounts.add_to_zone_count(tx, row.account_id, -1)
    tx.drop_scope(zone_id)
    flattened.forget_zone(tx, zone_id)
    signing_rows.forget_keys(tx, zone_id)
    catalogs.member_changed(tx, row.account_id, zone_id, call.now_us)
    served_certificates.forget_zone(tx, zone_id, call.now_us)
    refreshing.zone_came_or_went(tx, row.name)
    delegations.render_again(call, tx, platform, row.name)
    delegations.signal_again(call, tx, platform, signals)


def sweep(tx: Transaction) -> bool:
    """Delete some rows of zones that were deleted, whenever that was. False when none is left."""
    zone_id = zones.next_deleted(tx)
    if zone_id is None:
        return False
    done = records.delete_some(tx, zone_id, SWEPT_ROWS_MAX) < SWEPT_ROWS_MAX
    done = signing_rows.delete_some(tx, zone_id, SWEPT_ROWS_MAX) and done
    done = carried.delete_some(tx, zone_id, SWEPT_ROWS_MAX) == 0 and done
    if done and history.forget_zone(tx, zone_id, SWEPT_ROWS_MAX):
        zones.forget_deleted(tx, zone_id)
    return True


def show(call: Call, reader: Reader, platform: Platform, identity: Identity, zone_id: str) -> ZoneView:
    """Raises ZoneNotFound."""
    return _view(call, reader, platform, identity, _row(reader, zone_id))


def patch(
    call: Call, tx: Transaction, platform: Platform, identity: Identity, zone_id: str, body: ZonePatch
) -> ZoneView:
    """Change what was sent, all of it or nothing. Names of its own make a zone's apex name them.

    Raises ZoneNotFound, ZoneTypeRefused, PlanRefused, VanityRefused.
    """
    row = _row(tx, zone_id)
    if body.type is not None and body.type != row.type:
        raise ZoneTypeRefused(type=names.shown(body.type), pointer="/type")
    if row.type == SECONDARY and body.vanity_name_servers is not None:
        raise ZoneIsSecondary(name=row.name, what="its name servers are changed")
    edit = ZoneEdit(call, tx, platform, row.id)
    if body.vanity_name_servers is not None:
        nameservers.set_vanity(tx, edit, row, body.vanity_name_servers)
    if body.plan is not None:
        zone_plans.choose(edit, row, body.plan.id)
    if body.paused is not None:
        edit.settings.put_own(PAUSED, body.paused)
    edit.finish()
    return _view(call, tx, platform, identity, _row(tx, zone_id))


def listed(
    call: Call,
    reader: Reader,
    platform: Platform,
    identity: Identity,
    wanted: Wanted,
    seen: Sequence[Sequence[Seen]] | None,
    *,
    order: str,
    descending: bool,
    limit: int,
    offset: int,
) -> Listed:
    """One page of the zones that are wanted and that the caller may see."""
    if wanted.conditions or seen is not None:
        total_count = zones.count(reader, wanted, seen)
    else:
        total_count = accounts.zone_count(reader)
    if offset >= total_count:
        return Listed([], total_count)
    rows = zones.listed(reader, wanted, seen, order, descending, limit, offset)
    return Listed([_view(call, reader, platform, identity, row) for row in rows], total_count)


def is_short(
    wanted: Wanted, seen: Sequence[Sequence[Seen]] | None, order: str, rows: int, rows_max: int
) -> bool:
    """Whether an index leads to the page, which ends at row `rows`, and past so few that an event loop may
    wait for it. Of one name there is at most one zone.
    """
    of_one_name = not wanted.any and any(one.key == "name" for one in wanted.conditions)
    is_everything = not wanted.conditions and seen is None and order == "name"
    return of_one_name or (is_everything and rows <= rows_max)


def _name(text: str | None) -> str:
    if not text or not text.strip():
        raise MissingField(field="name", pointer="/name")
    try:
        apex = names.wire_from_text(text.strip())
        names.check_zone_name(apex)
    except InvalidName as error:
        raise ZoneNameRefused(reason=error.reason, pointer="/name") from None
    return names.text_from_wire(apex)


def _account(tx: Transaction, identity: Identity, wanted: Reference | None) -> AccountRow:
    """The account that was named, or else the only one that this caller may add zones to."""
    if wanted is not None and wanted.id is not None:
        found = accounts.account(tx, wanted.id)
        candidates = [found] if found else []
    else:
        candidates = accounts.all_accounts(tx)
    allowed = [row for row in candidates if _may_add(identity, row.id)]
    if len(allowed) != 1:
        raise AccountNotSeen(pointer="/account/id")
    return allowed[0]


def _may_add(identity: Identity, account_id: str) -> bool:
    """A zone that is not there yet is covered by what covers every zone of its account."""
    return permits(identity, "Zone Write", Target(account_id=account_id, zone_id=""))


def _announce(tx: Transaction, platform: Platform, row: ZoneRow, apex: bytes) -> None:
    facts = zone_facts.facts_of(tx, row)
    zone = platform.renderer.zone(apex, row.serial, facts)
    apex_name = platform.renderer.name(apex, apex, (), facts)
    # The SOA comes last, as after every change: whoever copies the zone waits for it.
    tx.emit(row.id, served.KIND_NAME, apex.hex(), served.encode(apex_name))
    tx.emit(row.id, served.KIND_ZONE, "", served.encode(zone))


def _row(reader: Reader, zone_id: str) -> ZoneRow:
    row = zones.zone(reader, zone_id)
    if row is None:
        raise ZoneNotFound
    return row


def _view(call: Call, reader: Reader, platform: Platform, identity: Identity, row: ZoneRow) -> ZoneView:
    account = accounts.account(reader, row.account_id)
    development = settings.one(reader, row.id, DEVELOPMENT_MODE)
    return ZoneView(
        id=row.id,
        name=_unicode(row.name),
        status=row.status,
        paused=bool(row.paused),
        type=row.type,
        development_mode=development_seconds(call.now_us, development),
        name_servers=nameservers.shown(reader, platform, row),
        modified_on=six_digits(row.modified_us),
        created_on=six_digits(row.created_us),
        activated_on=None if row.activated_us is None else six_digits(row.activated_us),
        vanity_name_servers=zone_facts.vanity_names(reader, row.id),
        owner=_owner(identity),
        account=Reference(row.account_id, account.name if account else None),
        permissions=_permissions(identity, Target(account_id=row.account_id, zone_id=row.id)),
        plan=zone_plans.view(PLANS[row.plan], subscribed=True),
    )


def _owner(identity: Identity) -> Owner:
    """The caller, as far as the credentials may read who that is."""
    actor = identity.actor
    known = actor.kind == "user" and permits(identity, "User Details Read", Target(user_id=actor.id))
    return Owner(actor.id, "user", actor.email) if known else Owner(None, "user", None)


_AREAS: tuple[tuple[str, str], ...] = (
    ("#dns_records", "DNS"),
    ("#waf", "Zone WAF"),
    ("#zone", "Zone"),
    ("#zone_settings", "Zone Settings"),
)


def _permissions(identity: Identity, target: Target) -> tuple[str, ...]:
    """The older spelling of what the caller may do here."""
    return tuple(
        f"{area}:{verb}"
        for area, group in _AREAS
        for verb, kind in (("edit", "Write"), ("read", "Read"))
        if permits(identity, f"{group} {kind}", target)
    )


def _unicode(name: str) -> str:
    """A zone's name as people write it: labels in punycode become Unicode where that is unambiguous."""
    if "xn--" not in name:
        return name
    return ".".join(_unicode_label(label) for label in name.split("."))


def _unicode_label(label: str) -> str:
    try:
        text = label.removeprefix("xn--").encode("ascii").decode("punycode")
        return text if names.wire_from_text(text) == names.wire_from_text(label) else label
    except (UnicodeError, InvalidName):
        return label
