"""A server's state as a document.

Owns  which answers a document is made of, and what of them the server makes by itself.
Not   the document's shape (`cli.state.document`). Imports click and the standard library only.
"""

from collections.abc import Collection
from typing import TYPE_CHECKING

from edgestead.cli.kv.remote import namespaces_path
from edgestead.cli.progress import Progress
from edgestead.cli.rule.phases import word_of
from edgestead.cli.server.account_import_zones import VIEWS
from edgestead.cli.state.document import DNS_SETTINGS, Json, record_form, rule_form
from edgestead.cli.target import pages

if TYPE_CHECKING:
    from edgestead.cli.http import Api

_PER_PAGE = 50  # what the smallest of the servers gives


def zones_of(server: "Api", account: str) -> dict[str, Json]:
    """Zones by name, as the API answers them."""
    query: dict[str, object] = {"account.id": account, "per_page": _PER_PAGE}
    return {one["name"]: one for one in pages(server, "/zones", query)}


def state_of(server: "Api", account: str, names: Collection[str] | None = None) -> Json:
    """Everything, or the zones that are named as far as they are there. Raises Failed."""
    found = zones_of(server, account)
    chosen = [name for name in sorted(found) if names is None or name in names]
    zones = {}
    with Progress("Zones", "zones", len(chosen)) as progress:
        for name in chosen:
            zones[name] = zone_state(server, found[name])
            progress.advance(1, 1)
    query: dict[str, object] = {"per_page": 100}
    return {
        "namespaces": sorted(one["title"] for one in pages(server, namespaces_path(account), query)),
        "zones": zones,
    }


def zone_state(server: "Api", zone: Json) -> Json:
    path, name = f"/zones/{zone['id']}", zone["name"]
    settings = server.call("GET", f"{path}/settings")["result"]
    dns = server.call("GET", f"{path}/dns_settings")["result"]
    return {
        "paused": zone["paused"],
        "settings": {one["id"]: one["value"] for one in settings if _is_set(one)},
        "dns_settings": {member: dns[member] for member in DNS_SETTINGS if member in dns},
        "records": sorted(
            (record_form(one, name) for one in records_of(server, zone)),
            key=lambda one: (one["name"] != "@", one["name"], one["type"], one["content"]),
        ),
        "rules": _rules(server, path),
    }


def records_of(server: "Api", zone: Json) -> list[Json]:
    """Those that people make: SOA and the server's own name servers are not among them."""
    found = pages(server, f"/zones/{zone['id']}/dns_records", {})
    return [one for one in found if not (one.get("locked") or _is_own(one, zone["name"]))]


def _is_set(setting: Json) -> bool:
    """Somebody's choice. One that is an older view of a DNS setting is there under its new name."""
    return bool(setting.get("modified_on") and setting["editable"] and setting["id"] not in VIEWS)


def _is_own(record: Json, zone: str) -> bool:
    return record["type"] == "SOA" or (record["type"], record["name"]) == ("NS", zone)


def _rules(server: "Api", path: str) -> dict[str, list[Json]]:
    rules = {}
    for ruleset in server.call("GET", f"{path}/rulesets")["result"]:
        if ruleset["kind"] == "zone":
            whole = server.call("GET", f"{path}/rulesets/{ruleset['id']}")["result"]
            if whole.get("rules"):
                rules[word_of(ruleset["phase"])] = [rule_form(rule) for rule in whole["rules"]]
    return dict(sorted(rules.items()))
