"""Routes of products that ended before this server began: firewall rules, tunnels, organizations and so on.

Owns  one route for each method and path that such a row of `changes` names, and one for all other methods.
Not   settings and aliases that a date changed: their own modules answer them; those of the products that
      answer before their day, as views of rulesets (`firewall_rules`, `rate_limits`, `waf_packages`,
      `waf_overrides`).

Nothing of the others was ever built here, so before its day such a path is a clear 400 and not a part of the
past that works. Whether the zone or account is the caller's is decided first.
"""

from collections.abc import Callable, Iterator
from typing import Any, NoReturn

from edgestead.changes import CHANGES, Change, Kind, changed
from edgestead.model.refusals import Gone
from edgestead.model.refusals.account import AccountNotSeen
from edgestead.model.refusals.request import NeverHere
from edgestead.rest.declared import Answers
from edgestead.rest.deprecation import headers_of
from edgestead.rest.exchange import Exchange
from edgestead.rest.limits import BODY_BYTES_MAX
from edgestead.rest.routes import (  # noqa: F401 - importing them fills BEFORE
    firewall_rules,
    rate_limits,
    waf_overrides,
    waf_packages,
)
from edgestead.rest.routing import ANY, BASE_PATH, BEFORE, CONTROL, ROUTES, Route, not_allowed, parameters_of
from edgestead.usecases.access import authorise
from edgestead.usecases.access.authorise import CONTENTS, PLATFORM
from edgestead.usecases.lookup import account_of, zone_of

_KEPT = ("zone_id", "account_id")


def _routes() -> Iterator[list[Route]]:
    """The routes of each path, the one of all other methods last."""
    for change in CHANGES:
        if change.kind is Kind.ENDPOINT:
            for path in dict.fromkeys(endpoint.path for endpoint in change.endpoints):
                methods = [one.method for one in change.endpoints if one.path == path]
                named = [_route(change, method, path, _handler(change)) for method in methods]
                yield [*named, _route(change, ANY, path, _handler(change, tuple(named)))]


def _route(change: Change, method: str, path: str, handler: Callable[..., NoReturn]) -> Route:
    """Older products had ids of many forms: those of the path's end may be any text."""
    parts = [_any_text(part) if part.startswith("{") else part for part in path.split("/")]
    parameters = parameters_of("/".join(parts))
    return Route(
        face=CONTROL,
        adds=None,
        method=method,
        path=BASE_PATH + "/".join(parts),
        handler=handler,
        permission=None,
        family=CONTENTS if "zone_id" in parameters else PLATFORM,
        public=False,
        user_only=path.startswith("/user/"),
        summary=f"Ended on {change.day}. {change.advice()}",
        description="",
        parameters=parameters,
        wants=(),
        arguments=lambda exchange: (exchange,),
        body=None,
        body_bytes_max=BODY_BYTES_MAX,
        wants_query=False,
        zone_at=_at(parameters, "zone_id"),
        account_at=_at(parameters, "account_id"),
        query=(),
        takes={},
        answers=Answers(None, status=410),
        change=change,
        watches=(),
        before=BEFORE.get((method, BASE_PATH + path)),
    )


def _any_text(part: str) -> str:
    return part if part[1:-1] in _KEPT else part.replace("_id}", "}")


def _at(parameters: tuple[str, ...], name: str) -> int | None:
    return parameters.index(name) if name in parameters else None


def _handler(change: Change, named: tuple[Route, ...] = ()) -> Callable[..., NoReturn]:
    """Raises ZoneNotFound, AccountNotSeen or the family's refusal; then Gone, or before the day NeverHere,
    and MethodNotAllowed when it stands for the methods that are not `named`.
    """

    def refuse(*parts: Any) -> NoReturn:
        exchange: Exchange = parts[-1]
        _check_seen(exchange)
        path = exchange.raw_path.decode("ascii").removeprefix(BASE_PATH)
        advice = change.advice(path)
        if changed(change.subject, exchange.call.as_of):
            ids = dict(zip(exchange.route.parameters, exchange.parameters, strict=True))
            raise Gone(date=change.day, advice=advice, headers=headers_of(change, ids))
        if named:
            raise not_allowed(exchange.request.method, named)
        raise NeverHere(date=change.day, advice=advice)

    refuse.__name__ = f"ended_{change.subject.replace('-', '_')}"
    return refuse


def _check_seen(exchange: Exchange) -> None:
    route, identity = exchange.route, exchange.identity
    read = exchange.api.barrier.read
    if route.zone_at is not None:
        zone_id = exchange.parameters[route.zone_at]
        target = read(lambda reader: authorise.zone_target(reader, zone_id))
        if not authorise.sees_zone(identity, target):
            raise route.family.denied
        read(lambda reader: zone_of(reader, zone_id))
    elif route.account_at is not None:
        account_id = exchange.parameters[route.account_at]
        if not authorise.sees_account(identity, account_id):
            raise AccountNotSeen
        read(lambda reader: account_of(reader, account_id))


OTHER_METHODS: list[Route] = []  # the router knows them, and no list of routes shows them
for _found in _routes():
    ROUTES.extend(_found[:-1])
    OTHER_METHODS.append(_found[-1])
