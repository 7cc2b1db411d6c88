"""REST face of what stands beside a zone: its hold, plan, activation, caches, and lists that are empty.

Owns  hold, available_plans, available_rate_plans, subscription, activation_check, purge_cache, pagerules,
      workers/routes.
Not   the zone itself (`rest.routes.zones`).
"""

from edgestead.model import envelope
from edgestead.model.call import Call
from edgestead.model.envelope import REMARK, Message
from edgestead.rest.context import AppContext, Write
from edgestead.rest.declared import Answers, flag, text
from edgestead.rest.query import Query
from edgestead.rest.routing import Answer, route
from edgestead.usecases.access.authorise import PLATFORM
from edgestead.usecases.lookup import zone_of
from edgestead.usecases.zone import actions, hold, plans
from edgestead.usecases.zone.actions import PurgeBody, ZoneId
from edgestead.usecases.zone.hold import HoldBody, HoldView
from edgestead.usecases.zone.plans import PlanView, SubscriptionBody, SubscriptionView

_ZONE = "/zones/{zone_id}"
_HOLD, _PLANS, _SUBSCRIPTION = f"{_ZONE}/hold", f"{_ZONE}/available_plans", f"{_ZONE}/subscription"
_READ, _WRITE = "Zone Read", "Zone Write"


@route("PUT", f"{_ZONE}/activation_check", permission=_WRITE, family=PLATFORM, answers=Answers(ZoneId))
async def check_activation(zone_id: str, call: Call, write: Write) -> Answer:
    """Check activation again: every zone is active already. Once in 5 minutes, on the free plan an hour."""
    found = await write(lambda tx: actions.check_activation(call, tx, zone_id))
    # flarectl reads the first message without looking whether there is one.
    message = Message(REMARK, "The zone is active: this server answers for it from its creation on.")
    return Answer(envelope.success(found, [message]))


@route("GET", _HOLD, permission=_READ, family=PLATFORM)
def show_hold(zone_id: str, api: AppContext, call: Call) -> HoldView:
    """Whether the zone is held."""
    return api.barrier.read(lambda reader: hold.show(call, reader, zone_id))


@route(
    "POST",
    _HOLD,
    permission=_WRITE,
    family=PLATFORM,
    query=(flag("include_subdomains", "Also hold the names below it."),),
)
async def put_hold(zone_id: str, api: AppContext, call: Call, query: Query, write: Write) -> HoldView:
    """Hold a zone; with `include_subdomains` also the names below it."""
    below = query.flag("include_subdomains") or False
    return await write(lambda tx: hold.put(call, tx, api.platform, zone_id, include_subdomains=below))


@route("PATCH", _HOLD, permission=_WRITE, family=PLATFORM)
async def patch_hold(zone_id: str, api: AppContext, call: Call, body: HoldBody, write: Write) -> HoldView:
    """Change a hold."""
    return await write(lambda tx: hold.patch(call, tx, api.platform, zone_id, body))


@route(
    "DELETE",
    _HOLD,
    permission=_WRITE,
    family=PLATFORM,
    query=(text("hold_after", "When it is held again."),),
)
async def delete_hold(zone_id: str, api: AppContext, call: Call, query: Query, write: Write) -> HoldView:
    """Lift a hold, or with `hold_after` until then."""
    after = query.text("hold_after")
    return await write(lambda tx: hold.delete(call, tx, api.platform, zone_id, after))


@route("GET", _PLANS, permission=_READ, family=PLATFORM)
def list_plans(zone_id: str, api: AppContext) -> list[PlanView]:
    """The plans that a zone can have. No paging."""
    return api.barrier.read(lambda reader: plans.available(reader, zone_id))


@route("GET", f"{_PLANS}/{{plan}}", permission=_READ, family=PLATFORM)
def show_plan(zone_id: str, plan: str, api: AppContext) -> PlanView:
    """One plan, by its id."""
    return api.barrier.read(lambda reader: plans.one_available(reader, zone_id, plan))


@route("GET", f"{_ZONE}/available_rate_plans", permission=_READ, family=PLATFORM)
def list_rate_plans(zone_id: str, api: AppContext) -> list[PlanView]:
    """The same plans under the names that a subscription takes. No paging."""
    return api.barrier.read(lambda reader: plans.rate_plans(reader, zone_id))


@route("GET", _SUBSCRIPTION, permission=_READ, family=PLATFORM)
def show_subscription(zone_id: str, api: AppContext) -> SubscriptionView:
    """The zone's plan as a subscription."""
    return api.barrier.read(lambda reader: plans.subscription(reader, zone_id))


@route("POST", _SUBSCRIPTION, permission=_WRITE, family=PLATFORM)
async def post_subscription(
    zone_id: str, api: AppContext, call: Call, body: SubscriptionBody, write: Write
) -> SubscriptionView:
    """Choose a plan."""
    return await write(lambda tx: plans.subscribe(call, tx, api.platform, zone_id, body))


@route("PUT", _SUBSCRIPTION, permission=_WRITE, family=PLATFORM)
async def put_subscription(
    zone_id: str, api: AppContext, call: Call, body: SubscriptionBody, write: Write
) -> SubscriptionView:
    """Choose a plan."""
    return await write(lambda tx: plans.subscribe(call, tx, api.platform, zone_id, body))


@route("POST", f"{_ZONE}/purge_cache", permission="Zone Settings Write", family=PLATFORM)
def purge_cache(zone_id: str, api: AppContext, body: PurgeBody) -> ZoneId:
    """Forget what is cached. Nothing is cached in this release."""
    return api.barrier.read(lambda reader: actions.purge(reader, zone_id, body))


@route("DELETE", f"{_ZONE}/purge_cache", permission="Zone Settings Write", family=PLATFORM)
def delete_cache(zone_id: str, api: AppContext) -> ZoneId:
    """The older method: forget everything. What a DELETE carries is ignored, here as everywhere."""
    return purge_cache(zone_id, api, PurgeBody(purge_everything=True))


@route("GET", f"{_ZONE}/pagerules", permission=_READ, family=PLATFORM)
def list_page_rules(zone_id: str, api: AppContext) -> list[str]:
    """Page rules, which this server does not have: always empty."""
    return _nothing_of(zone_id, api)


@route("GET", f"{_ZONE}/workers/routes", permission=_READ, family=PLATFORM)
def list_worker_routes(zone_id: str, api: AppContext) -> list[str]:
    """Worker routes, which this server does not have: always empty."""
    return _nothing_of(zone_id, api)


def _nothing_of(zone_id: str, api: AppContext) -> list[str]:
    api.barrier.read(lambda reader: zone_of(reader, zone_id))
    return []
