"""Tokens of the user: made by what they are for, what each may do in words, rolled, revoked.

Owns  these pages, the table of tasks, policies in words.
Not   what a token may be: the API says. A secret is in the answer that makes it and nowhere else.
"""

from datetime import UTC, datetime, timedelta
from typing import NamedTuple

from edgestead.web.asker import Json, Refused
from edgestead.web.pages.shared import account_of, listed, zone_of
from edgestead.web.visit import ROOT, Data, Moved, Shown, Visit, segment

_PREFIXES = ("com.cloudflare.api.", "com.edge.api.")
_EVERY = {"account.zone": "every zone", "account": "every account", "user": "every user"}
ROWS_MAX = 16  # of a page: two buttons and a policy's words each
MAY_MAX = 3  # policies of a token that the list puts into words
NAMES_MAX = 50  # of zones that one page looks up
DAYS_DIGITS_MAX = 4  # of a token's life


class Task(NamedTuple):
    """What a token is for. `scope` is what its groups are about: a zone, the account, the user."""

    words: str
    scope: str
    groups: tuple[str, ...]


_RECORDS = ("Zone Read", "DNS Write")
_ALL_READ = ("Zone Read", "DNS Read", "Zone Settings Read", "Zone WAF Read", "Firewall Services Read")
_ALL_WRITE = ("Zone Write", "DNS Write", "Zone Settings Write", "Zone WAF Write", "Firewall Services Write")
TASKS = {
    "certificates": Task(
        "certificates of a zone: certbot, lego, acme.sh", "zone", ("Zone Read", "DNS Write")
    ),
    "dns": Task("records of a zone: octoDNS, external-dns, Terraform", "zone", _RECORDS),
    "look": Task("looking at a zone", "zone", _ALL_READ),
    "rules": Task("rules and managed rules of a zone", "zone", ("Zone Read", "Zone WAF Write")),
    "bans": Task("banning addresses in a zone: fail2ban", "zone", ("Firewall Services Write",)),
    "zone": Task("everything of a zone", "zone", _ALL_WRITE),
    "values": Task("keys and values", "account", ("Workers KV Storage Write",)),
    "call": Task("calling stateful objects", "account", ("Objects Invoke",)),
    "objects": Task("operating stateful objects", "account", ("Objects Write", "Objects Invoke")),
    "metrics": Task("reading metrics", "user", ("Metrics Read",)),
}


async def show(visit: Visit) -> Shown:
    found = await listed(visit, "/user/tokens", per_page=ROWS_MAX)
    words = _Words(visit)
    for token in found["items"]:
        token["may"] = [await words.of(policy) for policy in token["policies"]]
    return Shown("tokens.html", "Tokens", {"tokens": found, "may_max": MAY_MAX})


async def act(visit: Visit) -> Shown | Moved:
    path = f"/user/tokens/{segment(visit.field('id'))}"
    if visit.field("what") == "roll":
        secret = (await visit.api.send("PUT", f"{path}/value", {}))["result"]
        return _secret(visit.field("name"), secret)
    await visit.api.send("DELETE", path)
    return Moved(f"{ROOT}/tokens", "The token is revoked: nothing that it asked for happens from now on.")


async def new(visit: Visit, refused: Refused | None = None) -> Shown:
    form = {
        "name": "",
        "task": "certificates",
        "zone": visit.query.get("zone", ""),
        "days": "",
        "address": "",
    }
    data: Data = {
        "form": form | dict(visit.query) | dict(visit.form or {}),
        "tasks": {name: task.words for name, task in TASKS.items()},
        "errors": refused.messages if refused else [],
    }
    return Shown("new_token.html", "New token", data, 400 if refused else 200)


async def create(visit: Visit) -> Shown:
    task = TASKS.get(visit.field("task")) or TASKS["look"]
    try:
        known = {one["name"]: one["id"] for one in await visit.api.result("/user/tokens/permission_groups")}
        body: Json = {
            "name": visit.field("name") or task.words,
            "policies": [
                {
                    "effect": "allow",
                    "permission_groups": [{"id": known[name]} for name in task.groups],
                    "resources": {f"com.cloudflare.api.{await _resource(visit, task)}": "*"},
                }
            ],
        }
        if visit.field("address"):
            body["condition"] = {"request_ip": {"in": visit.field("address").split()}}
        days = visit.field("days")
        if days:
            body["expires_on"] = _after(days)
        made = (await visit.api.send("POST", "/user/tokens", body))["result"]
    except Refused as refused:
        if refused.status not in (400, 404):
            raise
        return await new(visit, refused)
    return _secret(made["name"], made["value"])


async def _resource(visit: Visit, task: Task) -> str:
    if task.scope == "zone":
        return f"account.zone.{(await zone_of(visit, visit.field('zone').lower()))['id']}"
    if task.scope == "account":
        return f"account.{await account_of(visit)}"
    return f"user.{(await visit.api.result('/user'))['id']}"


def _after(days: str) -> str:
    """Raises Refused."""
    if not (days.isascii() and days.isdigit() and len(days) <= DAYS_DIGITS_MAX and int(days)):
        raise Refused(400, [{"code": 1001, "message": f"{days} is no number of days."}])
    return (datetime.now(UTC) + timedelta(days=int(days))).strftime("%Y-%m-%dT%H:%M:%SZ")


def _secret(name: str, secret: str) -> Shown:
    return Shown("secret.html", f"Token {name}", {"secret": secret})


class _Words:
    """What policies say, for people: zones and accounts by their names."""

    def __init__(self, visit: Visit) -> None:
        self._visit = visit
        self._names: dict[str, str] = {}

    async def of(self, policy: Json) -> str:
        names = [group["name"] for group in policy["permission_groups"]]
        implied = {name.removesuffix("Write") + "Read" for name in names if name.endswith("Write")}
        groups = ", ".join(name for name in names if name not in implied)
        resources = [await self._named(key, value) for key, value in policy["resources"].items()]
        verb = "may not" if policy["effect"] == "deny" else "may"
        return f"{verb}: {groups}, of {' and '.join(resources)}"

    async def _named(self, key: str, value: object) -> str:
        for prefix in _PREFIXES:
            key = key.removeprefix(prefix)
        if isinstance(value, dict):
            inner = [await self._named(one, "*") for one in value]
            return f"{' and '.join(inner)} of {await self._named(key, '*')}"
        kind, _, id_ = key.rpartition(".")
        if id_ == "*":
            return {"account.zone": "every zone", "account": "every account", "user": "every user"}.get(
                kind, key
            )
        if kind == "account.zone":
            return f"the zone {await self._name(f'/zones/{id_}', id_)}"
        if kind == "account":
            return f"the account {await self._name(f'/accounts/{id_}', id_)}"
        return "its user" if kind == "user" else key

    async def _name(self, path: str, otherwise: str) -> str:
        if path not in self._names and len(self._names) < NAMES_MAX:
            try:
                self._names[path] = (await self._visit.api.result(path))["name"]
            except Refused:
                self._names[path] = otherwise  # gone, or not for this session to see
        return self._names.get(path, otherwise)
