"""Changes of a plan, made through the API.

Owns  which requests make them, and their order: zone by zone.
Not   what has to change; records (`cli.state.records`). Imports click and the standard library only.
"""

import shlex
from collections.abc import Callable, Iterable, Sequence
from typing import TYPE_CHECKING

from edgestead.cli.kv.remote import namespaces_path
from edgestead.cli.rule.names import Names
from edgestead.cli.state import rules, tokens
from edgestead.cli.state.document import Json
from edgestead.cli.state.plan import Change
from edgestead.cli.state.records import make_records
from edgestead.cli.state.secondaries import FULL, SECONDARY, Peers
from edgestead.cli.state.server import names_of, zones_of

if TYPE_CHECKING:
    from edgestead.cli.http import Api

Tell = Callable[[str], None]


def make(server: "Api", account: str, changes: Sequence[Change], seen: Names, *, tell: Tell) -> None:
    """All of them, zone by zone; `tell` gets a line for what is done.

    `seen` are the names that rules have in the changes.
    Raises Failed at the first that the server refuses; what is printed is done, another run does the rest.
    """
    for change in changes:
        if change.kind == "namespace":
            server.call("POST", namespaces_path(account), json_body={"title": change.after}, repeat=False)
            tell(str(change))
    naming, peers = rules.Naming(then=seen, now=names_of(server, account)), Peers(server, account)
    for change in changes:
        if change.kind == "tsig key":
            peers.send_key(change.before, change.after)
            secret = (
                f"; `edgecli dns key show {shlex.quote(change.what)}` prints its secret for the other end"
            )
            tell(f"{change}{secret if change.sign == '+' else ''}")
    rulesets = [one for one in changes if one.kind == "ruleset"]
    rules.make_rulesets(server, account, naming, rulesets, tell)
    for change in changes:
        if change.kind == "rules" and not change.where:
            rules.make_rules(server, f"/accounts/{account}", naming, change)
            tell(str(change))
    zones = zones_of(server, account)
    for name in dict.fromkeys(change.where for change in changes if change.where):
        here = [change for change in changes if change.where == name]
        zone = zones.get(name) or _new_zone(server, account, name, here, tell)
        _make_zone(server, naming, peers, name, zone, here, tell)
    _make_tokens(server, account, [change for change in changes if change.kind == "token"], tell)


def _make_tokens(server: "Api", account: str, changes: Sequence[Change], tell: Tell) -> None:
    """After the zones that they name. A new one has a secret that nobody saw, which `roll` replaces."""
    zones = zones_of(server, account) if changes else {}
    for change in changes:
        tokens.send(server, account, zones, change.before, change.after)
        of_account = " --account" if change.after.get("account") else ""
        secret = f"; `edgecli token roll {shlex.quote(change.what)}{of_account}` prints a secret for it"
        tell(f"{change}{secret if change.sign == '+' else ''}")


def _new_zone(server: "Api", account: str, name: str, changes: Sequence[Change], tell: Tell) -> Json:
    made = [change for change in changes if change.kind == "zone" and change.sign == "+"]
    type_ = SECONDARY if made[0].after == SECONDARY else FULL
    body = {"name": name, "type": type_, "account": {"id": account}}
    zone: Json = server.call("POST", "/zones", json_body=body, repeat=False)["result"]
    _done(name, made, tell)
    return zone


def _make_zone(
    server: "Api",
    naming: rules.Naming,
    peers: Peers,
    name: str,
    zone: Json,
    changes: Sequence[Change],
    tell: Tell,
) -> None:
    path = f"/zones/{zone['id']}"
    make_records(server, zone, [change for change in changes if change.kind == "record"], tell)
    settings = [change for change in changes if change.kind == "setting"]
    if settings:
        items = [{"id": change.what, "value": change.after} for change in settings]
        server.call("PATCH", f"{path}/settings", json_body={"items": items})
        _done(name, settings, tell)
    dns = [change for change in changes if change.kind == "dns setting"]
    if dns:
        server.call("PATCH", f"{path}/dns_settings", json_body={change.what: change.after for change in dns})
        _done(name, dns, tell)
    dnssec = [change for change in changes if change.kind in ("dnssec", "dnssec setting")]
    if dnssec:
        named = {"status" if one.kind == "dnssec" else one.what: one.after for one in dnssec}
        server.call("PATCH", f"{path}/dnssec", json_body=named)
        _done(name, dnssec, tell)
    for change in changes:
        if change.kind == "primaries":
            peers.send(path, name, change.before, change.after)
            _done(name, [change], tell)
        elif change.kind == "rules":
            rules.make_rules(server, path, naming, change)
            _done(name, [change], tell)
        elif change.kind == "zone" and change.sign == "~":
            server.call("PATCH", path, json_body={"paused": change.after})
            _done(name, [change], tell)


def _done(zone: str, changes: Iterable[Change], tell: Tell) -> None:
    for change in changes:
        tell(f"{zone}: {change}")
