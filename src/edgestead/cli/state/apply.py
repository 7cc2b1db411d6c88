"""Changes of a plan, made through the API.

Owns  which requests make them, and their order: zone by zone, records of a zone in one transaction up to
      BATCH_MAX of them.
Not   what has to change. Imports click and the standard library only.
"""

from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import TYPE_CHECKING, Any

from edgestead.cli.failure import Failed
from edgestead.cli.http import segment
from edgestead.cli.kv.remote import namespaces_path
from edgestead.cli.rule.phases import full_name
from edgestead.cli.state.document import RECORD_DEFAULTS, Json, absolute, record_form
from edgestead.cli.state.plan import Change
from edgestead.cli.state.server import records_of, zones_of

if TYPE_CHECKING:
    from edgestead.cli.http import Api

BATCH_MAX = 200  # what the smallest plan takes in one transaction


Tell = Callable[[str], None]


def make(server: "Api", account: str, changes: Sequence[Change], *, tell: Tell) -> None:
    """All of them, zone by zone; `tell` gets a line for what is done.

    Raises Failed at the first that the server refuses; what is printed is done, another run does the rest.
    """
    for change in changes:
        if change.kind == "namespace":
            server.call("POST", namespaces_path(account), json_body={"title": change.after}, repeat=False)
            tell(str(change))
    zones = zones_of(server, account)
    for name in dict.fromkeys(change.where for change in changes if change.where):
        here = [change for change in changes if change.where == name]
        _make_zone(server, account, name, zones.get(name), here, tell)


def _make_zone(
    server: "Api", account: str, name: str, zone: Json | None, changes: list[Change], tell: Tell
) -> None:
    if zone is None:
        body = {"name": name, "type": "full", "account": {"id": account}}
        zone = server.call("POST", "/zones", json_body=body, repeat=False)["result"]
        assert zone is not None
        _done(name, [change for change in changes if change.kind == "zone" and change.sign == "+"], tell)
    path = f"/zones/{zone['id']}"
    _make_records(server, path, zone, [change for change in changes if change.kind == "record"], tell)
    settings = [change for change in changes if change.kind == "setting"]
    if settings:
        items = [{"id": change.what, "value": change.after} for change in settings]
        server.call("PATCH", f"{path}/settings", json_body={"items": items})
        _done(name, settings, tell)
    dns = [change for change in changes if change.kind == "dns setting"]
    if dns:
        server.call("PATCH", f"{path}/dns_settings", json_body={change.what: change.after for change in dns})
        _done(name, dns, tell)
    for change in changes:
        if change.kind == "rules":
            entry = f"{path}/rulesets/phases/{segment(full_name(change.what))}/entrypoint"
            rules = [{"expression": "true", **rule} for rule in change.after]
            server.call("PUT", entry, json_body={"rules": rules})
            _done(name, [change], tell)
        elif change.kind == "zone" and change.sign == "~":
            server.call("PATCH", path, json_body={"paused": change.after})
            _done(name, [change], tell)


def _make_records(server: "Api", path: str, zone: Json, changes: list[Change], tell: Tell) -> None:
    name = zone["name"]
    ids = list(_with_ids(server, zone, changes))
    for portion in _portions(ids, BATCH_MAX):
        body = {
            "deletes": [{"id": id_} for id_, change in portion if change.sign == "-"],
            "puts": [
                {"id": id_, **_body(change.after, name)} for id_, change in portion if change.sign == "~"
            ],
            "posts": [_body(change.after, name) for _, change in portion if change.sign == "+"],
        }
        server.call("POST", f"{path}/dns_records/batch", json_body=body, repeat=False)
        _done(name, [change for _, change in portion], tell)


def _with_ids(server: "Api", zone: Json, changes: list[Change]) -> Iterator[tuple[str, Change]]:
    """Each with the record that it is about. Raises Failed: somebody changed it since the plan."""
    if not changes:
        return
    left = [(record_form(one, zone["name"]), one["id"]) for one in records_of(server, zone)]
    for change in changes:
        if change.before is None:
            yield "", change
            continue
        found = next((one for one in left if one[0] == change.before), None)
        if found is None:
            raise Failed(f"{zone['name']}: {change.what} was changed meanwhile.", "Run it again.")
        left.remove(found)
        yield found[1], change


def _body(record: Json, zone: str) -> Json:
    whole = {**RECORD_DEFAULTS, **record, "name": absolute(record["name"], zone)}
    return {member: value for member, value in whole.items() if member != "priority" or value is not None}


def _done(zone: str, changes: Iterable[Change], tell: Tell) -> None:
    for change in changes:
        tell(f"{zone}: {change}")


def _portions(items: Sequence[Any], size: int) -> Iterator[Sequence[Any]]:
    for start in range(0, len(items), size):
        yield items[start : start + size]
