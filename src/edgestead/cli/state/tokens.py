"""Tokens in a document: what each may do, and nothing of its secret.

Owns  their form, from answers and to requests; names for what the API names by ids.
Not   documents as a whole (`cli.state.document`). Imports click and the standard library only.

    [[tokens]]
    name = "certbot"
    policies = [ { effect = "allow", permissions = ["DNS Write"], on = ["zone example.com"] } ]

`on` is `zone NAME`, `zones` (of this account), `account`, `user`, or `all zones` and `all accounts` that the
owner sees; a zone or account that is not known here is named by its id. `account = true` says that the token
is the account's own. `from` and `not_from` are client addresses.
"""

from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Any

from edgestead.cli.failure import Failed, changed_meanwhile, listed
from edgestead.cli.server.token_life import permission_groups, tokens_path
from edgestead.cli.target import Json, is_id, whole_list

if TYPE_CHECKING:
    from edgestead.cli.http import Api

MEMBERS: Mapping[str, type] = {
    "name": str,
    "account": bool,
    "policies": list,
    "from": list,
    "not_from": list,
    "not_before": str,
    "expires_on": str,
    "disabled": bool,
}
POLICY_MEMBERS = ("effect", "permissions", "on")
_PREFIX = "com.edge.api"
_EVERY_ZONE = f"{_PREFIX}.account.zone.*"
_WORDS = {"all zones": _EVERY_ZONE, "all accounts": f"{_PREFIX}.account.*"}
_CONDITIONS = (("in", "from"), ("not_in", "not_from"))


def checked(value: object) -> list[Json]:
    """Raises ValueError with the place."""
    if not isinstance(value, list):
        raise ValueError("tokens are not a list")
    return [_checked(one, f"token {place}") for place, one in enumerate(value, 1)]


def _checked(token: object, where: str) -> Json:
    if not isinstance(token, dict):
        raise ValueError(f"{where} is not a table")
    _known(token, where, MEMBERS)
    for member, kind in MEMBERS.items():
        if member in token and not isinstance(token[member], kind):
            raise ValueError(f"{where}: {member} is not {_KINDS[kind]}")
    if not token.get("name") or not token.get("policies"):
        raise ValueError(f"{where}: name or policies are missing")
    for policy in token["policies"]:
        if not isinstance(policy, dict):
            raise ValueError(f"{where}: a policy is not a table")
        _known(policy, f"{where}, policy", POLICY_MEMBERS)
        if policy.get("effect", "allow") not in ("allow", "deny"):
            raise ValueError(f"{where}: effect is allow or deny")
        if not all(_are_texts(policy.get(member)) for member in ("permissions", "on")):
            raise ValueError(f"{where}: a policy has permissions and on, each a list of texts")
    if not all(_are_texts(token.get(member, [""])) for _, member in _CONDITIONS):
        raise ValueError(f"{where}: from and not_from are lists of addresses")
    policies = [
        _policy(one.get("effect", "allow"), one["permissions"], one["on"]) for one in token["policies"]
    ]
    return _without_defaults({**token, "policies": policies})


_KINDS = {str: "a text", bool: "true or false", list: "a list"}


def _known(value: Json, where: str, known: Mapping[str, Any] | tuple[str, ...]) -> None:
    if unknown := [name for name in value if name not in known]:
        raise ValueError(f"{where}: {listed(map(repr, unknown))} is unknown; known are {listed(known)}")


def _are_texts(value: object) -> bool:
    return isinstance(value, list) and bool(value) and all(isinstance(one, str) for one in value)


def _policy(effect: str, permissions: list[str], on: list[str]) -> Json:
    return {"effect": effect, "permissions": sorted(permissions), "on": sorted(on)}


def _without_defaults(token: Json) -> Json:
    return {member: token[member] for member in MEMBERS if token.get(member) not in (None, False, [], "")}


def tokens_of(server: "Api", account: str, zones: Mapping[str, Json], *, of_account: bool) -> list[Json]:
    """The user's tokens, or the account's, by name. Raises Refused: these credentials may not read them."""
    return [form for form, _ in _found(server, account, zones, of_account=of_account)]


def _found(
    server: "Api", account: str, zones: Mapping[str, Json], *, of_account: bool
) -> Iterator[tuple[Json, str]]:
    """Each with its id, also those that have expired: or they would be created again each time.

    Permissions have the names that this version knows their published ids by.
    """
    names = {zone["id"]: name for name, zone in zones.items()}
    found = whole_list(server, tokens_path(server, of_account), {"per_page": 50, "include_expired": "true"})
    for one in sorted(found, key=lambda one: (one["name"], one["id"])):
        yield _form(one, account, names, of_account=of_account), one["id"]


def _form(token: Json, account: str, names: Mapping[str, str], *, of_account: bool) -> Json:
    condition = token.get("condition") or {}
    addresses = condition.get("request_ip") or condition.get("request.ip") or {}
    policies = [
        _policy(
            one["effect"],
            [_permission(group) for group in one["permission_groups"]],
            list(dict.fromkeys(_named(one["resources"], account, names))),
        )
        for one in token["policies"]
    ]
    times = {member: token.get(member) for member in ("not_before", "expires_on")}
    return _without_defaults(
        {
            "name": token["name"],
            "account": of_account,
            "policies": policies,
            **{member: addresses.get(key) for key, member in _CONDITIONS},
            **times,
            "disabled": token["status"] == "disabled",
        }
    )


def _permission(group: Json) -> str:
    from edgestead.model.permissions import BY_ID

    return BY_ID[group["id"]].name if group["id"] in BY_ID else str(group["name"])


def unknown_here(token: Json) -> list[str]:
    """Permissions of a token of another server that this version has no group for."""
    from edgestead.model.permissions import BY_ID

    known = {group.name for group in BY_ID.values()}
    return [name for one in token["policies"] for name in one["permissions"] if name not in known]


def refuse_unknown(token: Json) -> None:
    """Before anything is changed. Raises Failed: it has a permission that this version has not."""
    _refuse(token, unknown_here(token))


def _refuse(token: Json, unknown: list[str]) -> None:
    if unknown:
        raise Failed(
            f"Token {token['name']}: there is no permission group {listed(map(repr, unknown))}.",
            "`edgecli token permissions` shows those there are.",
        )


def _named(resources: Json, account: str, names: Mapping[str, str]) -> Iterator[str]:
    for key, value in resources.items():
        kind, name = key.split(".")[-2:]
        if isinstance(value, dict):
            for inner in value:
                zone = inner.split(".")[-1]
                everywhere = "zones" if name == account else f"zones {name}"
                yield everywhere if zone == "*" else f"zone {names.get(zone, zone)}"
        elif name == "*":
            yield f"all {kind}s"
        elif kind == "user" or (kind, name) == ("account", account):
            yield kind
        else:
            yield f"{kind} {names.get(name, name) if kind == 'zone' else name}"


def send(server: "Api", account: str, zones: Mapping[str, Json], before: Json | None, after: Json) -> None:
    """Create a token, or change the one that is as `before`. Raises Failed."""
    of_account = bool(after.get("account"))
    path = tokens_path(server, of_account)
    body = _body(server, path, account, zones, after)
    if before is None:
        made = server.call("POST", path, json_body=body, repeat=False)["result"]
        if after.get("disabled"):
            server.call("PUT", f"{path}/{made['id']}", json_body=body | {"status": "disabled"})
        return
    token_id = next(
        (id_ for form, id_ in _found(server, account, zones, of_account=of_account) if form == before), None
    )
    if token_id is None:
        raise changed_meanwhile(f"The token {before['name']}")
    status = "disabled" if after.get("disabled") else "active"
    server.call("PUT", f"{path}/{token_id}", json_body=body | {"status": status})


def _body(server: "Api", path: str, account: str, zones: Mapping[str, Json], token: Json) -> Json:
    known = {group["name"]: group["id"] for group in permission_groups(server, path)}
    policies = []
    for policy in token["policies"]:
        _refuse(token, [name for name in policy["permissions"] if name not in known])
        policies.append(
            {
                "effect": policy["effect"],
                "permission_groups": [{"id": known[name]} for name in policy["permissions"]],
                "resources": _resources(server, account, zones, token["name"], policy["on"]),
            }
        )
    body: Json = {"name": token["name"], "policies": policies}
    body |= {member: token[member] for member in ("not_before", "expires_on") if member in token}
    if addresses := {key: token[member] for key, member in _CONDITIONS if member in token}:
        body["condition"] = {"request_ip": addresses}
    return body


def _resources(server: "Api", account: str, zones: Mapping[str, Json], token: str, on: list[str]) -> Json:
    found: Json = {}
    for words in on:
        kind, _, name = words.partition(" ")
        if words in _WORDS:
            key, value = _WORDS[words], "*"
        elif kind == "zones":
            key, value = f"{_PREFIX}.account.{name or account}", {_EVERY_ZONE: "*"}  # type: ignore[assignment]
        elif kind == "zone" and (is_id(name) or name in zones):
            key, value = f"{_PREFIX}.account.zone.{name if is_id(name) else zones[name]['id']}", "*"
        elif kind == "account" and (not name or is_id(name)):
            key, value = f"{_PREFIX}.account.{name or account}", "*"
        elif words == "user":
            key, value = f"{_PREFIX}.user.{server.call('GET', '/user')['result']['id']}", "*"
        else:
            raise Failed(
                f"Token {token}: there is no {words!r} that it could reach.",
                "`on` has `zone NAME`, zones, account, user, all zones or all accounts.",
            )
        if key in found and found[key] != value:
            raise Failed(f"Token {token}: account and zones of one policy are one: write two policies.")
        found[key] = value
    return found
