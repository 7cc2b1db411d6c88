"""The DNS settings of zones, and the defaults that an account gives to new ones.

Owns  their shapes and rules; copying defaults to a new zone; the older views of three of them.
Not   zone settings (`usecases.zone.settings`).

Each field that somebody set is one row of the family `dns`, of the zone or of the account; every other view
of a field reads and writes that row, so that views cannot differ.
"""

from collections.abc import Mapping, Sequence
from typing import Annotated, Any

import msgspec

from edgestead.model import names
from edgestead.model.call import Call, Profile
from edgestead.model.checks import Choice
from edgestead.model.names import InvalidName, InvalidValue
from edgestead.model.refusals.request import InvalidBody
from edgestead.model.refusals.secondary import ZoneIsSecondary
from edgestead.model.refusals.setting import DnsSettingRefused, PresignedRefused, ZoneModeRefused
from edgestead.model.settings import (
    ACCOUNT_TYPES,
    CUSTOM_ACCOUNT,
    DNS_SETTINGS,
    NAMESERVERS,
    NS_SET,
    SOA,
    SOA_TIMES,
    STANDARD,
    ZONE_TYPES,
)
from edgestead.model.times import six_digits
from edgestead.store.control import Reader, Transaction
from edgestead.tables import flattened, settings, zones
from edgestead.tables.settings import Stored
from edgestead.tables.zones import ZoneRow
from edgestead.usecases.change.edit import ZoneEdit
from edgestead.usecases.limits import REFRESHED_NAMES_MAX, ZONES_SERVED_ANEW_MAX
from edgestead.usecases.lookup import account_of, zone_of
from edgestead.usecases.platform import Platform
from edgestead.usecases.serving import facts
from edgestead.usecases.serving.facts import ENFORCE_DNS_ONLY, FAMILY, Nameservers, StoredSoa
from edgestead.usecases.serving.rendering import PLAIN

STORED_SET = f"{FAMILY}.{NAMESERVERS}"
FLATTEN = "flatten_all_cnames"
SWITCHES = {"use_apex_ns": "multi_provider", "secondary_overrides": "secondary_overrides"}
OF_SECONDARIES = {"secondary_overrides", "foundation_dns"}
_VENDOR, _OWN = "cloudflare.", "edge."

Unset = msgspec.UnsetType
Truth = Annotated[Any, msgspec.Meta(extra_json_schema={"type": "boolean"})]
"""A body's `true` or `false` and nothing like it; the decoder of bodies takes text and numbers for truth."""
_encode = msgspec.json.Encoder().encode
_decode = msgspec.json.Decoder().decode


class SoaBody(msgspec.Struct, frozen=True):
    """Members that are not sent stay; a null name returns to the server's choice."""

    mname: str | Unset | None = msgspec.UNSET
    rname: str | Unset | None = msgspec.UNSET
    refresh: int | None = None
    retry: int | None = None
    expire: int | None = None
    min_ttl: int | None = None
    ttl: int | None = None


class NameserversBody(msgspec.Struct, frozen=True):
    type: str | None = None
    ns_set: int | None = None


class InternalDns(msgspec.Struct, frozen=True):
    """There are no internal zones here, so none can be referred to."""

    reference_zone_id: str | None = None


class DnsSettingsBody(msgspec.Struct, frozen=True):
    """What PATCH takes; null and absent mean that a field stays as it is."""

    flatten_all_cnames: Truth = None
    foundation_dns: Truth = None
    internal_dns: InternalDns | None = None
    multi_provider: Truth = None
    nameservers: NameserversBody | None = None
    ns_ttl: int | None = None
    secondary_overrides: Truth = None
    soa: SoaBody | None = None
    zone_mode: str | None = None


class AccountDnsSettingsBody(msgspec.Struct, frozen=True):
    zone_defaults: DnsSettingsBody | None = None
    enforce_dns_only: Truth = None


class NameserversView(msgspec.Struct, frozen=True, omit_defaults=True):
    type: str
    ns_set: int | None = None


class DnsSettingsView(msgspec.Struct, frozen=True, kw_only=True):
    """Contract "DNS settings". `internal_dns` is for internal zones, of which there are none."""

    flatten_all_cnames: bool
    foundation_dns: bool
    multi_provider: bool
    nameservers: NameserversView
    ns_ttl: int
    secondary_overrides: bool
    soa: StoredSoa
    zone_mode: str


class AccountDnsSettingsView(msgspec.Struct, frozen=True):
    zone_defaults: DnsSettingsView
    enforce_dns_only: bool


class SwitchBody(msgspec.Struct, frozen=True):
    """What the two dedicated routes of before 2024-09-13 take."""

    value: Truth


class SwitchView(msgspec.Struct, frozen=True):
    id: str
    value: bool
    editable: bool
    modified_on: str | None


def show(call: Call, reader: Reader, platform: Platform, zone_id: str) -> DnsSettingsView:
    """Raises ZoneNotFound."""
    zone = zone_of(reader, zone_id)
    rname = names.text_from_wire(platform.renderer.rname(facts.facts_of(reader, zone)))
    return _view(call, settings.family(reader, zone_id, FAMILY), rname, is_zone=True)


def patch(
    call: Call, tx: Transaction, platform: Platform, zone_id: str, body: DnsSettingsBody
) -> DnsSettingsView:
    """Change what was sent; DNS serves it.

    Raises ZoneNotFound, ZoneIsSecondary, DnsSettingRefused, ZoneModeRefused, PresignedRefused.
    """
    zone = zone_of(tx, zone_id)
    fields = _fields(body, settings.family(tx, zone_id, FAMILY), "")
    _check_kept_here(zone, fields)
    if fields.get("zone_mode", "standard") != "standard" and zone.plan != "enterprise":
        raise ZoneModeRefused(pointer="/zone_mode")
    check_set(tx, zone, fields.get(NAMESERVERS), "/nameservers")
    _write(call, tx, platform, zone, fields)
    return show(call, tx, platform, zone_id)


def check_set(reader: Reader, zone: ZoneRow, wanted: Nameservers | None, pointer: str) -> None:
    """A zone moves to a custom set only when that has a name server. Raises DnsSettingRefused."""
    if wanted is None or not wanted.type.startswith("custom.") or wanted.type == "custom.tenant":
        return
    if not facts.server_names(reader, zone, wanted):
        where = "account" if wanted.type == CUSTOM_ACCOUNT else "zone"
        reason = f"set {wanted.ns_set} of this {where} has no name server."
        raise DnsSettingRefused(field=NAMESERVERS, reason=reason, pointer=pointer)


def check_stored_set(reader: Reader, zone: ZoneRow) -> None:
    """The same of what is stored now. Raises DnsSettingRefused."""
    stored = settings.one(reader, zone.id, STORED_SET)
    if stored is not None:
        check_set(reader, zone, facts.read_nameservers(stored.value), "")


def _check_kept_here(zone: ZoneRow, fields: Mapping[str, Any]) -> None:
    """What a transfer says of a secondary zone, or what would serve something else in its place, is not set
    here; off it may be said to be, and its name servers the standard ones. Raises ZoneIsSecondary.
    """
    wanted = {name for name, value in fields.items() if value is not False and not _is_standard(value)}
    if zone.type == facts.SECONDARY and not wanted <= OF_SECONDARIES:
        raise ZoneIsSecondary(name=zone.name, what="these DNS settings are changed")


def _is_standard(value: object) -> bool:
    return isinstance(value, facts.Nameservers) and value.type == STANDARD


def put_fields(edit: ZoneEdit, fields: Mapping[str, Any]) -> None:
    """Checked fields of a zone as part of a change of its settings, by whichever of their views they came.

    Raises ZoneIsSecondary.
    """
    _check_kept_here(edit.zone, fields)
    for name, value in fields.items():
        edit.settings.put(f"{FAMILY}.{name}", value)


def _write(call: Call, tx: Transaction, platform: Platform, zone: ZoneRow, fields: Mapping[str, Any]) -> None:
    """Raises PresignedRefused, ZoneIsSecondary."""
    if fields.get("secondary_overrides") and zone.type == facts.SECONDARY:
        if facts.stored_dnssec(tx, zone.id).presigned:
            raise PresignedRefused(name=zone.name, other="dnssec_presigned", pointer="/secondary_overrides")
    edit = ZoneEdit(call, tx, platform, zone.id)
    put_fields(edit, fields)
    edit.finish()


def show_switch(reader: Reader, zone_id: str, name: str) -> SwitchView:
    """One of SWITCHES as its dedicated route shows it. Raises ZoneNotFound."""
    zone_of(reader, zone_id)
    stored = settings.one(reader, zone_id, f"{FAMILY}.{SWITCHES[name]}")
    modified_on = six_digits(stored.modified_us) if stored else None
    return SwitchView(name, bool(stored and _decode(stored.value)), True, modified_on)


def patch_switch(
    call: Call, tx: Transaction, platform: Platform, zone_id: str, name: str, body: SwitchBody
) -> SwitchView:
    """Raises ZoneNotFound, InvalidBody, PresignedRefused, ZoneIsSecondary."""
    fields = {SWITCHES[name]: _truth(body.value, "/value")}
    _write(call, tx, platform, zone_of(tx, zone_id), fields)
    return show_switch(tx, zone_id, name)


def show_defaults(call: Call, reader: Reader, platform: Platform, account_id: str) -> AccountDnsSettingsView:
    """Raises AccountNotSeen."""
    account_of(reader, account_id)
    rname = names.text_from_wire(platform.renderer.rname(PLAIN))
    defaults = _view(call, settings.family(reader, account_id, FAMILY), rname, is_zone=False)
    enforced = settings.one(reader, account_id, ENFORCE_DNS_ONLY)
    return AccountDnsSettingsView(defaults, bool(enforced and _decode(enforced.value)))


def patch_defaults(
    call: Call, tx: Transaction, platform: Platform, account_id: str, body: AccountDnsSettingsBody
) -> AccountDnsSettingsView:
    """Change what zones of later get; `enforce_dns_only` holds for those that are there, too.

    Raises AccountNotSeen, DnsSettingRefused.
    """
    account_of(tx, account_id)
    wanted = body.zone_defaults or DnsSettingsBody()
    stored = settings.family(tx, account_id, FAMILY)
    _store_defaults(call, tx, account_id, _fields(wanted, stored, "/zone_defaults"))
    if body.enforce_dns_only is not None:
        enforced = _truth(body.enforce_dns_only, "/enforce_dns_only")
        _enforce_dns_only(call, tx, platform, account_id, enforced)
    return show_defaults(call, tx, platform, account_id)


def _enforce_dns_only(
    call: Call, tx: Transaction, platform: Platform, account_id: str, enforced: bool
) -> None:
    """Serve the account's zones anew: at once while they are small, else the upkeep does it, zone by zone."""
    stored = settings.one(tx, account_id, ENFORCE_DNS_ONLY)
    if (stored is not None and _decode(stored.value)) == enforced:
        return
    rows = zones.of_account(tx, account_id, ZONES_SERVED_ANEW_MAX + 1)
    many = zones.records_of_account(tx, account_id) > REFRESHED_NAMES_MAX
    many = many or len(rows) > ZONES_SERVED_ANEW_MAX
    edits = [] if many else [ZoneEdit(call, tx, platform, row.id) for row in rows]
    settings.put(tx, account_id, ENFORCE_DNS_ONLY, _text(enforced), call.now_us)
    if many:
        flattened.refresh_every_zone(tx)  # names of other accounts may hang on these zones
    for edit in edits:
        edit.take_facts()
        edit.finish()


def remarks(body: DnsSettingsBody) -> list[str]:
    """What an operator should know of settings that were just sent."""
    sent = {name: getattr(body, name) for name in DNS_SETTINGS}
    idle = [name for name, value in sent.items() if value is not None and DNS_SETTINGS[name].is_idle(value)]
    return [stored_only(idle)] if idle else []


def stored_only(ids: Sequence[str]) -> str:
    """What is answered to a change of settings that this server keeps and does not act on."""
    return f"Stored only, this server serves nothing else for it: {', '.join(ids)}."


def give_defaults(call: Call, tx: Transaction, account_id: str, zone_id: str) -> None:
    """What a new zone has from its account. A random standard set is one of the standard sets."""
    for name, stored in settings.family(tx, account_id, FAMILY).items():
        if name in DNS_SETTINGS:
            value = stored.value.replace('"edge.standard.random"', f'"{STANDARD}"')
            settings.put(tx, zone_id, f"{FAMILY}.{name}", value, call.now_us)


def default_nameservers(reader: Reader, account_id: str) -> str:
    """`zone_defaults.nameservers.type`, in our spelling."""
    stored = settings.one(reader, account_id, f"{FAMILY}.{NAMESERVERS}")
    return facts.read_nameservers(stored.value).type if stored else STANDARD


def set_default_nameservers(call: Call, tx: Transaction, account_id: str, type_: str, pointer: str) -> None:
    """The account's older setting of the same meaning. Raises DnsSettingRefused."""
    checked = Nameservers(_kind(type_, ACCOUNT_TYPES, pointer))
    _store_defaults(call, tx, account_id, {NAMESERVERS: checked})


def flattening(reader: Reader, zone_id: str) -> Stored | None:
    """The row behind `flatten_all_cnames`, for the zone setting of the same meaning."""
    return settings.one(reader, zone_id, f"{FAMILY}.{FLATTEN}")


def spelled(call: Call, type_: str) -> str:
    """A kind of name servers as the profile spells it."""
    return type_.replace(_OWN, _VENDOR) if call.profile is Profile.CLIENTS else type_


def _fields(body: DnsSettingsBody, stored: Mapping[str, Stored], at: str) -> dict[str, Any]:
    """The fields that were sent, checked and merged. Raises DnsSettingRefused, InvalidBody."""
    fields: dict[str, Any] = {}
    for name, row in DNS_SETTINGS.items():
        value = getattr(body, name)
        if value is None:
            continue
        if name == SOA:
            fields[name] = _soa(value, stored.get(name), f"{at}/{name}")
        elif name == NAMESERVERS:
            fields[name] = _nameservers(value, stored.get(name), f"{at}/{name}", is_account=bool(at))
        elif isinstance(row.default, bool):
            fields[name] = _truth(value, f"{at}/{name}")
        else:
            fields[name] = _checked(name, row.check, value, f"{at}/{name}")
    if body.internal_dns and body.internal_dns.reference_zone_id:
        pointer = f"{at}/internal_dns/reference_zone_id"
        raise DnsSettingRefused(field="internal_dns", reason="there are no internal zones.", pointer=pointer)
    return fields


def _truth(value: Any, pointer: str) -> bool:
    if not isinstance(value, bool):
        raise InvalidBody(reason="Expected `bool`: true or false, no text and no number.", pointer=pointer)
    return value


def _checked(name: str, check: Any, value: Any, pointer: str) -> Any:
    try:
        return check.read(value, None)
    except InvalidValue as error:
        raise DnsSettingRefused(field=name, reason=f"{error.reason}.", pointer=pointer) from None


def _soa(body: SoaBody, stored: Stored | None, pointer: str) -> StoredSoa:
    """Contract: retry ≤ refresh ≤ expire."""
    soa = facts.read_soa(stored.value) if stored else StoredSoa()
    changes: dict[str, Any] = {}
    for name in ("mname", "rname"):
        value = getattr(body, name)
        if value is not msgspec.UNSET:
            changes[name] = _host(f"soa.{name}", value, f"{pointer}/{name}") if value else None
    for name, check in SOA_TIMES.items():
        value = getattr(body, name)
        if value is not None:
            changes[name] = _checked(f"soa.{name}", check, value, f"{pointer}/{name}")
    soa = msgspec.structs.replace(soa, **changes)
    if not soa.retry <= soa.refresh <= soa.expire:
        raise DnsSettingRefused(field="soa", reason="retry ≤ refresh ≤ expire must hold.", pointer=pointer)
    return soa


def _host(field: str, text: str, pointer: str) -> str:
    try:
        name = names.wire_from_text(text.strip())
        if "@" in text:
            raise InvalidName("a mailbox is written as a name, with a dot for its @")
        names.check_zone_name(name)
    except InvalidName as error:
        raise DnsSettingRefused(field=field, reason=f"{error.reason}.", pointer=pointer) from None
    return names.text_from_wire(name)


def _nameservers(
    body: NameserversBody, stored: Stored | None, pointer: str, *, is_account: bool
) -> Nameservers:
    present = facts.read_nameservers(stored.value) if stored else Nameservers()
    type_, ns_set = present.type, present.ns_set
    if body.type is not None:
        type_ = _kind(body.type, ACCOUNT_TYPES if is_account else ZONE_TYPES, f"{pointer}/type")
    if body.ns_set is not None:
        ns_set = _checked("nameservers.ns_set", NS_SET, body.ns_set, f"{pointer}/ns_set")
    return Nameservers(type_, ns_set)


def _kind(text: str, kinds: Sequence[str], pointer: str) -> str:
    """A kind of name servers in our spelling. Raises DnsSettingRefused."""
    kind: str = _checked("nameservers.type", Choice(kinds), text.replace(_VENDOR, _OWN), pointer)
    return kind


def _store_defaults(call: Call, tx: Transaction, account_id: str, fields: Mapping[str, Any]) -> None:
    """Write what differs."""
    stored = settings.family(tx, account_id, FAMILY)
    for name, value in fields.items():
        text = _text(value)
        if name not in stored or stored[name].value != text:
            settings.put(tx, account_id, f"{FAMILY}.{name}", text, call.now_us)


def _view(call: Call, stored: Mapping[str, Stored], rname: str, *, is_zone: bool) -> DnsSettingsView:
    def value(name: str) -> Any:
        return _decode(stored[name].value) if name in stored else DNS_SETTINGS[name].default

    soa = facts.read_soa(stored[SOA].value) if SOA in stored else StoredSoa()
    servers = Nameservers()
    if NAMESERVERS in stored:
        servers = facts.read_nameservers(stored[NAMESERVERS].value)
    return DnsSettingsView(
        flatten_all_cnames=value(FLATTEN),
        foundation_dns=value("foundation_dns"),
        multi_provider=value("multi_provider"),
        nameservers=NameserversView(spelled(call, servers.type), servers.ns_set if is_zone else None),
        ns_ttl=value("ns_ttl"),
        secondary_overrides=value("secondary_overrides"),
        soa=soa if soa.rname else msgspec.structs.replace(soa, rname=rname),
        zone_mode=value("zone_mode"),
    )


def _text(value: Any) -> str:
    return _encode(value).decode()
