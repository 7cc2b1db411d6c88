"""What an account of the hosted service has that is not carried over, by name.

Owns  which products are looked for, and what to do about each.
Not   what is carried over. Imports click and the standard library only.

Nothing is said of what these credentials may not read: a token for the import need not see all products. What
was refused otherwise, as for too many requests, may be there, and is named.
"""

from collections.abc import Iterable, Iterator
from typing import NamedTuple

from edgestead.cli.failure import counted
from edgestead.cli.http import Api, Refused, segment
from edgestead.cli.target import Json

_ABSENT = frozenset({400, 401, 403, 404, 405, 410, 501})


class Product(NamedTuple):
    """`path` is below the zone or account; `thing` is one of its items; `next_step` says what to do."""

    path: str
    thing: str
    next_step: str


_NOT_HERE = "docs/differences.md lists what is not here"
OF_ZONE = (
    Product("custom_pages", "custom page", "a rule's own response has its text: docs/how-to/edge-rules.md"),
    Product("pagerules", "page rule", "write redirects and headers as rules: docs/how-to/edge-rules.md"),
    Product("workers/routes", "route of Workers", _NOT_HERE),
    Product("load_balancers", "load balancer", "one origin a name: docs/how-to/edge.md"),
    Product("healthchecks", "health check", _NOT_HERE),
    Product("waiting_rooms", "waiting room", _NOT_HERE),
    Product("spectrum/apps", "application of Spectrum", _NOT_HERE),
    Product("email/routing/rules", "rule of Email Routing", "leave its MX records out, or keep it there"),
    Product("custom_hostnames", "custom hostname", "make each name a zone or a record here"),
)
OF_ACCOUNT = (
    Product("custom_pages", "custom page", "a rule's own response has its text: docs/how-to/edge-rules.md"),
    Product("rules/lists", "list", "write its items into the expressions of rules"),
    Product("workers/scripts", "script of Workers", "objects are classes of Python: docs/how-to/objects.md"),
    Product("cfd_tunnel", "tunnel", "origins are asked at their addresses: docs/how-to/edge.md"),
    Product("access/apps", "application of Access", _NOT_HERE),
    Product("r2/buckets", "bucket of R2", _NOT_HERE),
    Product("d1/database", "database of D1", "objects have SQL: docs/how-to/objects.md"),
    Product("queues", "queue", _NOT_HERE),
    Product("pages/projects", "project of Pages", _NOT_HERE),
)
TOKENS = Product(
    "tokens?per_page=50", "token", "no secret moves, make new ones: docs/how-to/move-in.md has the commands"
)


def tokens_left(there: Api, account: str) -> Iterator[str]:
    """A line for the user's tokens and one for the account's, of which `edgecli import` brings none."""
    yield from _line(there, "the user", "/user", TOKENS)
    yield from _line(there, "the account", f"/accounts/{segment(account)}", TOKENS)


def left_behind(there: Api, account: str, zones: Iterable[Json]) -> Iterator[str]:
    """A line for each product that has something, with its place, count and next step."""
    for product in OF_ACCOUNT:
        yield from _line(there, "the account", f"/accounts/{segment(account)}", product)
    for zone in zones:
        if zone.get("type") == "secondary":
            yield f"{zone['name']}: it is secondary there: `edgecli dns secondary add {zone['name']} PRIMARY`"
        for product in OF_ZONE:
            yield from _line(there, zone["name"], f"/zones/{zone['id']}", product)


def signed_there(there: Api, zones: Iterable[Json]) -> Iterator[str]:
    """A line for each zone that is signed there."""
    for zone in zones:
        try:
            held = there.call("GET", f"/zones/{zone['id']}/dnssec")["result"] or {}
        except Refused as refusal:
            if refusal.status not in _ABSENT:
                yield _unseen(zone["name"], "DNSSEC", refusal)
            continue
        if zone.get("type") != "secondary" and held.get("status") in ("active", "pending"):
            yield keys_stay(zone["name"])


def _unseen(where: str, what: str, refusal: Refused) -> str:
    return f"{where}: {what}: nobody could look whether there is one: {refusal.messages[0]}"


def keys_stay(zone: str) -> str:
    return f"{zone}: DNSSEC: the keys stay there; how to move a signed zone: docs/how-to/move-in.md"


def _line(there: Api, where: str, path: str, product: Product) -> Iterator[str]:
    try:
        found = there.call("GET", f"{path}/{product.path}")["result"]
    except Refused as refusal:
        if refusal.status not in _ABSENT:
            yield _unseen(where, product.path.partition("?")[0], refusal)
        return
    items = (
        next((one for one in found.values() if isinstance(one, list)), [])
        if isinstance(found, dict)
        else found
    )
    # Every custom page is listed; one that nobody made has the state "default".
    count = sum(not (isinstance(one, dict) and one.get("state") == "default") for one in items or ())
    if count:
        name, *of = product.thing.split(" of ")
        yield f"{where}: {' of '.join([counted(count, name), *of])}: {product.next_step}"
