"""Plans of zones, and the subscription that chooses one.

Owns  their JSON shapes; which rate plan means which plan.
Not   money: every plan costs nothing, and any may be chosen.
"""

from collections.abc import Iterable

import msgspec

from edgestead.model import names
from edgestead.model.call import Call
from edgestead.model.plans import PLANS, Plan
from edgestead.model.refusals.setting import PlanNotFound, PlanRefused
from edgestead.model.times import whole_seconds
from edgestead.store.control import Reader, Transaction
from edgestead.tables import settings
from edgestead.tables.zones import ZoneRow
from edgestead.usecases.change.edit import ZoneEdit
from edgestead.usecases.change.log import PLAN
from edgestead.usecases.lookup import zone_of
from edgestead.usecases.platform import Platform

RATE_PLAN = "zone.rate_plan"
# Rate plans of the contract, and the plan whose limits each one has.
RATE_PLANS = {
    "free": "free",
    "lite": "free",
    "pro": "pro",
    "pro_plus": "pro",
    "business": "business",
    "enterprise": "enterprise",
    "partners_free": "free",
    "partners_pro": "pro",
    "partners_business": "business",
    "partners_enterprise": "enterprise",
}


class PlanView(msgspec.Struct, frozen=True, kw_only=True):
    id: str
    name: str
    price: int = 0
    currency: str = "USD"
    frequency: str = ""
    is_subscribed: bool
    can_subscribe: bool
    legacy_id: str
    legacy_discount: bool = False
    externally_managed: bool = False


class RatePlanBody(msgspec.Struct, frozen=True):
    id: str | None = None


class SubscriptionBody(msgspec.Struct, frozen=True):
    rate_plan: RatePlanBody | None = None


class RatePlanView(msgspec.Struct, frozen=True):
    id: str
    public_name: str
    currency: str = "USD"
    scope: str = "zone"
    externally_managed: bool = False
    is_contract: bool = False
    sets: tuple[str, ...] = ()


class ZoneReference(msgspec.Struct, frozen=True):
    id: str
    name: str


class SubscriptionView(msgspec.Struct, frozen=True, kw_only=True):
    """One for each zone; its id is the zone's."""

    id: str
    state: str = "Provisioned"
    price: int = 0
    currency: str = "USD"
    frequency: str = "monthly"
    component_values: tuple[str, ...] = ()
    zone: ZoneReference
    rate_plan: RatePlanView
    current_period_start: str
    current_period_end: None = None


def view(plan: Plan, *, subscribed: bool) -> PlanView:
    return PlanView(
        id=plan.id,
        name=plan.name,
        legacy_id=plan.legacy_id,
        is_subscribed=subscribed,
        can_subscribe=not subscribed,
    )


def by_id(plan_id: str | None) -> Plan:
    """A plan by its id, or by its short name. Raises PlanNotFound."""
    for plan in PLANS.values():
        if plan_id in (plan.id, plan.legacy_id):
            return plan
    raise PlanNotFound


def available(reader: Reader, zone_id: str) -> list[PlanView]:
    """Raises ZoneNotFound."""
    zone = zone_of(reader, zone_id)
    return [view(plan, subscribed=plan.legacy_id == zone.plan) for plan in PLANS.values()]


def one_available(reader: Reader, zone_id: str, plan_id: str) -> PlanView:
    """Raises ZoneNotFound, PlanNotFound."""
    zone, plan = zone_of(reader, zone_id), by_id(plan_id)
    return view(plan, subscribed=plan.legacy_id == zone.plan)


def rate_plans(reader: Reader, zone_id: str) -> list[PlanView]:
    """The same plans under the names that subscriptions take. Raises ZoneNotFound."""
    return [msgspec.structs.replace(plan, id=plan.legacy_id) for plan in available(reader, zone_id)]


def subscription(reader: Reader, zone_id: str) -> SubscriptionView:
    """Raises ZoneNotFound."""
    zone = zone_of(reader, zone_id)
    stored = settings.one(reader, zone_id, RATE_PLAN)
    rate_plan = msgspec.json.decode(stored.value, type=str) if stored else zone.plan
    since_us = stored.modified_us if stored else zone.created_us
    return SubscriptionView(
        id=zone_id,
        zone=ZoneReference(zone_id, zone.name),
        rate_plan=RatePlanView(rate_plan, PLANS[zone.plan].name),
        current_period_start=whole_seconds(since_us),
    )


def subscribe(
    call: Call, tx: Transaction, platform: Platform, zone_id: str, body: SubscriptionBody
) -> SubscriptionView:
    """Raises ZoneNotFound, PlanRefused."""
    zone = zone_of(tx, zone_id)
    wanted = (body.rate_plan and body.rate_plan.id) or ""
    if wanted not in RATE_PLANS:
        raise _refused(wanted, RATE_PLANS, "/rate_plan/id")
    edit = ZoneEdit(call, tx, platform, zone.id)
    edit.settings.put(RATE_PLAN, wanted)
    edit.settings.put_own(PLAN, RATE_PLANS[wanted])
    edit.finish()
    return subscription(tx, zone_id)


def choose(edit: ZoneEdit, zone: ZoneRow, plan_id: str | None) -> None:
    """Another plan as part of a change of a zone; the rate plan of a subscription is forgotten with it.

    Raises PlanRefused.
    """
    try:
        plan = by_id(plan_id).legacy_id
    except PlanNotFound:
        raise _refused(plan_id or "", PLANS, "/plan/id") from None
    if plan != zone.plan:
        edit.settings.clear(RATE_PLAN)
        edit.settings.put_own(PLAN, plan)


def _refused(wanted: str, offered: Iterable[str], pointer: str) -> PlanRefused:
    return PlanRefused(plan=names.shown(wanted), plans=", ".join(offered), pointer=pointer)
