"""What a request changes, as its route's path says.

Owns  the words for actions and resources, read from method and path.
Not   writing them down (`usecases.audit`); which writes are told (`rest.rights`).

The resource is the last segment of the path that is one; behind it are its identifier and, for some routes,
a verb. What is not in the table keeps the segment as it is, so a new route is in the log without a row here.
"""

from collections.abc import Sequence
from typing import NamedTuple

from edgestead.rest.routing import BASE_PATH, Route
from edgestead.usecases.audit import About

_ACTIONS = {"POST": "create", "PUT": "update", "PATCH": "update", "DELETE": "delete"}
VERBS = {  # the last segment of a path that is no resource
    "activation_check": "check",
    "batch": "batch",
    "disable": "disable",
    "enable": "enable",
    "force_axfr": "transfer",
    "force_notify": "notify",
    "import": "import",
    "invitation": "invite",
    "keep": "keep",
    "refresh": "refresh",
    "restore": "restore",
    "undo": "undo",
    "value": "roll",
}
RESOURCES = {  # a segment of a path, and what one of them is called
    "accounts": "account",
    "acls": "transfer_acl",
    "catalog": "catalog",
    "catalogs": "followed_catalog",
    "certificates": "origin_certificate",
    "incoming": "incoming_transfer",
    "outgoing": "outgoing_transfer",
    "peers": "peer",
    "custom_ns": "name_server",
    "dns_records": "record",
    "dns_settings": "dns_settings",
    "dnssec": "dnssec",
    "history": "change",
    "filters": "filter",
    "hold": "hold",
    "lockdowns": "lockdown",
    "rate_limits": "rate_limit",
    "members": "member",
    "memberships": "membership",
    "namespaces": "namespace",
    "rules": "rule",
    "rulesets": "ruleset",
    "settings": "setting",
    "subscription": "subscription",
    "tokens": "token",
    "tsigs": "tsig_key",
    "ua_rules": "ua_rule",
    "user": "user",
    "versions": "ruleset_version",
    "zones": "zone",
}


class _Reading(NamedTuple):
    """Of one route: `id_at` is the parameter that names the resource, `fixed` a segment that does."""

    action: str
    resource: str
    id_at: int | None
    fixed: str
    scope: str


_readings: dict[tuple[str, str], _Reading] = {}


def about(route: Route, parameters: Sequence[str]) -> About:
    key = route.method, route.path
    reading = _readings.get(key) or _readings.setdefault(key, _read(route))
    return About(
        reading.action,
        reading.resource,
        reading.fixed if reading.id_at is None else parameters[reading.id_at],
        None if route.account_at is None else parameters[route.account_at],
        None if route.zone_at is None else parameters[route.zone_at],
        reading.scope,
    )


def _read(route: Route) -> _Reading:
    parts = route.path.removeprefix(BASE_PATH).strip("/").split("/")
    verb = VERBS.get(parts[-1])
    if verb is not None:
        del parts[-1]
    known = [at for at, part in enumerate(parts) if part in RESOURCES]
    at = known[-1] if known else 0
    ids = [part[1:-1].rstrip("*") for part in parts[at + 1 :] if part.startswith("{")]
    literals = [part for part in parts[at + 1 :] if not part.startswith("{")]
    return _Reading(
        verb or _ACTIONS.get(route.method, route.method.lower()),
        RESOURCES.get(parts[at], parts[at]),
        route.parameters.index(ids[-1]) if ids else None,
        "" if ids or not literals else literals[-1],
        "user" if route.user_only else "account",
    )
