"""A server's state as a document.

Owns  which answers a document is made of, and what of them the server makes by itself.
Not   the document's shape (`cli.state.document`). Imports click and the standard library only.
"""

from collections.abc import Collection, Iterable, Sequence
from typing import TYPE_CHECKING

from edgestead.cli.http import Refused
from edgestead.cli.kv.remote import namespaces_path
from edgestead.cli.progress import Progress
from edgestead.cli.rule.names import Names
from edgestead.cli.rule.phases import word_of
from edgestead.cli.server.account_import_zones import VIEWS
from edgestead.cli.state import tokens
from edgestead.cli.state.document import (
    DNS_SETTINGS,
    DNSSEC_DEFAULTS,
    Json,
    record_form,
    rule_form,
    ruleset_form,
    setting_form,
)
from edgestead.cli.state.secondaries import FULL, SECONDARY, Peers, key_forms
from edgestead.cli.target import cursor_pages, whole_list

if TYPE_CHECKING:
    from edgestead.cli.http import Api

ENTRY_KINDS = frozenset({"zone", "root"})
_NOT_OURS = frozenset({400, 401, 403, 404, 405})  # what credentials get that may not do it
_PER_PAGE = 50  # what the smallest of the servers gives


def zones_of(server: "Api", account: str) -> dict[str, Json]:
    """Zones by name, as the API answers them."""
    query: dict[str, object] = {"account.id": account, "per_page": _PER_PAGE}
    return {one["name"]: one for one in whole_list(server, "/zones", query)}


def names_of(server: "Api", account: str) -> Names:
    """What custom rulesets are called; of those alone that a zone shows, if the account's may not be read."""

    def rules_of(ruleset_id: str) -> Sequence[Json]:
        rules: Sequence[Json] = _ruleset(server, f"/accounts/{account}", ruleset_id).get("rules") or ()
        return rules

    try:
        return Names(cursor_pages(server, f"/accounts/{account}/rulesets"), rules_of)
    except Refused as refusal:
        if refusal.status not in _NOT_OURS:
            raise
        return Names((), lambda _: ())


def account_rules(server: "Api", account: str, names: Names, left: list[str]) -> Json:
    """The account's own `rules` and `rulesets`; neither, and a line of `left`, if they may not be read."""
    path = f"/accounts/{account}"
    try:
        rules = _rules(server, path, names)
        customs = [_ruleset(server, path, ruleset_id) for ruleset_id in names.custom.values()]
    except Refused as refusal:
        if refusal.status not in _NOT_OURS:
            raise
        left.append(f"rulesets of the account: {refusal.messages[0]}")
        return {}
    for whole in customs:
        names.set_rules(whole["id"], whole.get("rules") or ())
    forms = [_custom_form(whole, names) for whole in customs]
    return {"rules": rules, "rulesets": sorted(forms, key=lambda one: (one["phase"], one["name"]))}


def _custom_form(ruleset: Json, names: Names) -> Json:
    name = names.name(ruleset["id"]).partition("/")[2]
    rules = [rule_form(names.named(rule)) for rule in ruleset.get("rules") or ()]
    return ruleset_form({**ruleset, "name": name, "rules": rules})


def state_of(
    server: "Api",
    account: str,
    names: Names,
    chosen: Collection[str] | None = None,
    *,
    transferred: bool = False,
) -> Json:
    """Zones, all or those that are named as far as they are there, and namespaces. Raises Failed.

    `transferred`: secondary zones have their primary's records, to be compared and never to be written.
    """
    peers = Peers(server, account)
    found = zones_of(server, account)
    wanted = [name for name in sorted(found) if chosen is None or name in chosen]
    zones = {}
    with Progress("Zones", "zones", len(wanted)) as progress:
        for name in wanted:
            zones[name] = zone_state(server, found[name], names, peers, transferred=transferred)
            progress.advance(1, 1)
    query: dict[str, object] = {"per_page": 100}
    return {
        "namespaces": sorted(one["title"] for one in whole_list(server, namespaces_path(account), query)),
        "zones": zones,
    }


def tokens_of(
    server: "Api", account: str, owners: Iterable[bool], left: list[str] | None = None
) -> list[Json]:
    """The account's tokens (True), the user's (False), or both.

    Raises Refused: these credentials may not read them; with `left` that is a line of it.
    """
    zones = zones_of(server, account)
    found: list[Json] = []
    for of_account in owners:
        try:
            found += tokens.tokens_of(server, account, zones, of_account=of_account)
        except Refused as refusal:
            if left is None or refusal.status not in _NOT_OURS:
                raise
            left.append(f"tokens of the {'account' if of_account else 'user'}: {refusal.messages[0]}")
    return found


def keys_of(server: "Api", account: str, left: list[str]) -> Json:
    """The account's `tsig_keys` without their secrets; not, and a line of `left`, if they may not be read."""
    try:
        return {"tsig_keys": key_forms(Peers(server, account).keys())}
    except Refused as refusal:
        if refusal.status not in _NOT_OURS:
            raise
        left.append(f"TSIG keys: {refusal.messages[0]}")
        return {}


def zone_state(server: "Api", zone: Json, names: Names, peers: Peers, *, transferred: bool) -> Json:
    path, name = f"/zones/{zone['id']}", zone["name"]
    is_secondary = zone.get("type") == SECONDARY
    settings = server.call("GET", f"{path}/settings")["result"]
    dns = server.call("GET", f"{path}/dns_settings")["result"]
    known = DNS_SETTINGS[SECONDARY if is_secondary else FULL]
    state: Json = {"type": SECONDARY, "primaries": peers.primaries(path)} if is_secondary else {}
    state |= {
        "paused": zone["paused"],
        "settings": {one["id"]: setting_form(one["value"]) for one in settings if _is_set(one)},
        "dns_settings": {member: dns[member] for member in known if member in dns},
        **_dnssec(server, path, is_secondary=is_secondary),
    }
    if transferred or not is_secondary:
        state["records"] = sorted(
            (record_form(one, name) for one in records_of(server, zone)),
            key=lambda one: (one["name"] != "@", one["name"], one["type"], one["content"]),
        )
    return {**state, "rules": _rules(server, path, names)}


def _dnssec(server: "Api", path: str, *, is_secondary: bool) -> Json:
    """Whether a zone is signed or about to be, and what of that is not as by default."""
    held = server.call("GET", f"{path}/dnssec")["result"]
    other = {
        name: held[name] for name, default in DNSSEC_DEFAULTS.items() if held.get(name) not in (None, default)
    }
    is_signed = held.get("status") in ("active", "pending")
    state: Json = {} if is_secondary else {"dnssec": "active" if is_signed else "disabled"}
    return state | ({"dnssec_settings": other} if other else {})


def records_of(server: "Api", zone: Json) -> list[Json]:
    """Those that people make: SOA and the server's own name servers are not among them."""
    found = whole_list(server, f"/zones/{zone['id']}/dns_records", {})
    return [one for one in found if not (one.get("locked") or _is_own(one, zone["name"]))]


def _is_set(setting: Json) -> bool:
    """Somebody's choice. One that is an older view of a DNS setting is there under its new name."""
    is_chosen = setting.get("modified_on") and setting["editable"] and setting.get("value") is not None
    return bool(is_chosen and setting["id"] not in VIEWS)


def _is_own(record: Json, zone: str) -> bool:
    return record["type"] == "SOA" or (record["type"], record["name"]) == ("NS", zone)


def _rules(server: "Api", path: str, names: Names) -> dict[str, list[Json]]:
    """Of the entry points of a zone or account, by phase."""
    rules = {}
    listed = list(cursor_pages(server, f"{path}/rulesets"))
    names.learn(listed)
    for ruleset in listed:
        if ruleset["kind"] in ENTRY_KINDS:
            whole = _ruleset(server, path, ruleset["id"])
            if whole.get("rules"):
                rules[word_of(ruleset["phase"])] = [rule_form(names.named(rule)) for rule in whole["rules"]]
    return dict(sorted(rules.items()))


def _ruleset(server: "Api", path: str, ruleset_id: str) -> Json:
    whole: Json = server.call("GET", f"{path}/rulesets/{ruleset_id}")["result"]
    return whole
