"""A zone as the API shows it.

Owns  the members of the zone object and their order (contract "Zone object").
Asks  `model.plans`, `model.times`.
Tells `services.zones`.
Not   which zones somebody sees.
"""

import msgspec

from edgestead.model.plans import PLANS
from edgestead.model.times import six_digits
from edgestead.services.access import ALL_GROUPS, Identity
from edgestead.services.platform import Platform
from edgestead.tables.zones import ZoneRow

# The areas of the older permission strings, and the groups that stand for them now.
_AREAS = (
    ("dns_records", "DNS"),
    ("waf", "Zone WAF"),
    ("zone", "Zone"),
    ("zone_settings", "Zone Settings"),
)


class Meta(msgspec.Struct, frozen=True):
    step: int = 4  # ready
    custom_certificate_quota: int = 0
    page_rule_quota: int = 0
    phishing_detected: bool = False


class Owner(msgspec.Struct, frozen=True):
    id: str | None
    type: str
    email: str | None


class Named(msgspec.Struct, frozen=True):
    id: str | None
    name: str | None


class Unit(msgspec.Struct, frozen=True):
    id: str | None = None


class PlanView(msgspec.Struct, frozen=True):
    id: str
    name: str
    legacy_id: str
    price: int = 0
    currency: str = "USD"
    frequency: str = ""
    is_subscribed: bool = True
    can_subscribe: bool = True
    legacy_discount: bool = False
    externally_managed: bool = False


class ZoneView(msgspec.Struct, frozen=True):
    id: str
    name: str
    status: str
    paused: bool
    type: str
    development_mode: int
    name_servers: list[str]
    original_name_servers: None
    original_registrar: None
    original_dnshost: None
    modified_on: str
    created_on: str
    activated_on: str | None
    vanity_name_servers: list[str]
    vanity_name_servers_ips: None
    meta: Meta
    owner: Owner
    account: Named
    tenant: Named
    tenant_unit: Unit
    permissions: list[str]
    plan: PlanView


def permissions_of(identity: Identity) -> list[str]:
    """`#area:edit` and `#area:read` strings that the caller holds somewhere."""
    held = ALL_GROUPS if identity.full else frozenset().union(*(r.groups for r in identity.rules if r.allow))
    return [
        f"#{area}:{verb}"
        for area, group in _AREAS
        for verb, kind in (("edit", "Write"), ("read", "Read"))
        if f"{group} {kind}" in held
    ]


def view(row: ZoneRow, account_name: str, platform: Platform, identity: Identity) -> ZoneView:
    plan = PLANS[row.plan]
    actor = identity.actor
    is_user = actor.kind == "user"
    return ZoneView(
        id=row.id,
        name=row.name,
        status=row.status,
        paused=bool(row.paused),
        type=row.type,
        development_mode=0,
        name_servers=sorted(platform.nameservers),
        original_name_servers=None,
        original_registrar=None,
        original_dnshost=None,
        modified_on=six_digits(row.modified_us),
        created_on=six_digits(row.created_us),
        activated_on=None if row.activated_us is None else six_digits(row.activated_us),
        vanity_name_servers=[],
        vanity_name_servers_ips=None,
        meta=Meta(),
        owner=Owner(actor.id, "user", actor.email) if is_user else Owner(None, "user", None),
        account=Named(row.account_id, account_name),
        tenant=Named(None, None),
        tenant_unit=Unit(),
        permissions=permissions_of(identity),
        plan=PlanView(plan.id, plan.name, plan.legacy_id),
    )
